"""Bad input of every kind is one ``error:`` line and exit code 2, never a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from looptune.core.errors import ParseError, UsageError
from looptune.frontend import load
from looptune.tune.space.space import parse
from tests.helpers.command_line import alone, looptune

ONE = "void f(int n, float A[n]) {{ for (int i = 0; i < n; i++) A[i] = {}; }}\n"
REFUSED = {
    "parentheses": (ONE.format("(" * 5000 + "1" + ")" * 5000), "nested too deeply"),
    "digits": (ONE.format("1" * 3000), "fits no integer type"),
    "macros": (
        "".join(f"#define M{k} M{k + 1} + M{k + 1}\n" for k in range(40)) + ONE.format("M0"),
        "the macros here expand to more than 100,000 tokens",
    ),
    "directive": (ONE.format("1").replace("for", "\n#pragma looptune unroll " + "9" * 5000 + "\nfor"), "18 digits"),
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.wide) if n == "macros" else n for n in REFUSED])
def test_what_is_too_deep_or_too_long_is_refused(tmp_path: Path, name: str) -> None:
    """By name, whatever part of Python has its limit there."""
    text, said = REFUSED[name]
    (tmp_path / "f.c").write_text(text)
    ran = looptune("transform", "f.c", cwd=tmp_path)
    assert (ran.code, said in ran.err, ran.err.count("error: ")) == (2, True, 1)


@pytest.mark.wide
def test_a_long_sum_is_an_expression_like_others(tmp_path: Path) -> None:
    """Of 500 terms, which Python's own limit of calls has no room for."""
    (tmp_path / "f.c").write_text(ONE.format(" + ".join(["A[i]"] * 500)))
    ran = alone("transform", "f.c", cwd=tmp_path)
    assert (ran.code, ran.out.count("A[i]")) == (0, 501), ran.err


def test_sizes_that_no_parameter_holds_are_refused() -> None:
    """Before anything is computed with them."""
    for value in ("9" * 20, "-9999999999", "1e999", "nan", "1.5", "9" * 5000):
        with pytest.raises(UsageError, match=r"n must be an integer|n has the type int"):
            load(ONE.format("1"), defines={"n": value})


def test_a_condition_asks_for_directives_that_there_are() -> None:
    """One that nobody knows would be 1 everywhere; the nearest is named."""
    with pytest.raises(ParseError, match="unknown directive 'unrol'; did you mean 'unroll'"):
        parse("loop k: unroll {2,4}\nwhere unrol(k) < 4\n", "s")
    with pytest.raises(ParseError, match="unknown directive 'zzz'"):
        parse("loop k: unroll {2,4}\nwhere unroll(k) < 4 or zzz(k) > 1\n", "s")
    assert parse("loop k: unroll {2,4}\nwhere unroll(k) < 4 and Blocksize(0) == 1\n", "s").versions == 1


def test_output_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    """A full device; not a traceback, and not silence."""
    (tmp_path / "f.c").write_text(ONE.format("1"))
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "looptune", "check", "f.c"], cwd=tmp_path, stdout=full, stderr=-1, text=True
        )
    assert (done.returncode, "No space left" in done.stderr, "Traceback" in done.stderr) == (2, True, False)
