"""Pointers that loops test for being null: the codelet assumes that they are not, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptune.core.errors import UnsupportedError, UsageError
from looptune.deploy.c_source import header
from looptune.deploy.source_to_source import transform
from looptune.frontend import load
from looptune.ir.nodes import If, Select
from looptune.ir.rewrite import walk
from looptune.schedule.assumptions import find_assumptions
from tests.helpers.against_gcc import difference, verdicts

HEAD = "#include <stddef.h>\nvoid f(int n, const double *b, const int c[], double *restrict y)"
TESTED = {
    "if": "if (b != NULL) y[i] += b[i]; if (!c) y[i] = 7; else y[i] -= c[i];",
    "chosen": "y[i] += b ? b[i] : 0.5; y[i] *= c == NULL ? 3 : c[i];",
    "with more": "if (b && i > 2) y[i] += b[i]; if (i < 4 || NULL == c) y[i] -= 1;"
    " if (c && b && y[i] > 0) y[i] = c[i] + b[i];",
    "never and always": "if (i > 2 && !b) y[i] = 1; if (i < 5 || b) y[i] += 2; y[i] += (n + i && c) + (i - 3 || !c);",
    "as a value": "y[i] += (b != NULL) + 2 * !c + !(b && c) + (0 != c);",
    "returned": "if (b) { if (y[i] > 3) continue; y[i] += b[i]; } if (c != 0 && c[i] > 2) break;",
}


def text_of(body: str) -> str:
    return f"{HEAD} {{ for (int i = 0; i < n; i++) {{ {body} }} }}\n"


@pytest.mark.parametrize("body", TESTED.values(), ids=TESTED)
def test_the_result_is_that_of_gcc(body: str, tmp_path: Path) -> None:
    shapes = {"b": (9,), "c": (9,), "y": (9,)}
    unit = load(text_of(body))
    assert difference(text_of(body), {"n": 9}, tmp_path, shapes) is None
    assert ("not null", "b and c") in find_assumptions(unit, (), ()).summary()


def test_what_a_test_decides_is_no_condition() -> None:
    codelet = load(text_of(TESTED["if"])).codelet
    assert not [n for n in walk(codelet.body) if isinstance(n, If | Select)]
    assert verdicts(codelet) == {1: "parallel"}


def test_a_pointer_that_the_loops_set_is_no_such_one() -> None:
    with pytest.raises(UnsupportedError):
        load(text_of("if (b) y[i] += 1; b = i > 3 ? y : 0;"))


def test_the_text_is_not_written_without_its_tests(tmp_path: Path) -> None:
    path = tmp_path / "f.c"
    path.write_text(text_of("if (b) y[i] += b[i];"))
    with pytest.raises(UnsupportedError, match="these loops test b for being null"):
        transform(path, ["loop 1: unroll 2"])
    assert transform(path) == path.read_text()


def test_c_that_is_built_has_no_loops_for_null_pointers() -> None:
    unit = load(text_of("if (b) y[i] += b[i];"))
    with pytest.raises(UsageError, match="f tests b for being null"):
        header(unit)
