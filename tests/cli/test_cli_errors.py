"""What the command line says of every mistake.

A mistake is one message with its place on standard error, "error:" once, exit code 2, and no traceback.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from looptune.runtime import targets
from tests.helpers import cross_check
from tests.helpers.command_line import filled, looptune


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("cli"))


RUN = ("--target", "numba-cpu", "--db", "db.sqlite", "--reports", "reports")

MISTAKES = {
    "no such file": (["transform", "absent.c"], "no such file: absent.c"),
    "a folder": (["transform", "folder.c"], "a folder, not a C file: folder.c"),
    "an empty file": (["transform", "empty.c"], "empty file: empty.c"),
    "a blank file": (["transform", "blank.c"], "empty file: blank.c"),
    "no text": (["transform", "binary.c"], "not a text file: binary.c"),
    "a syntax error": (
        ["transform", "syntax.c"],
        "syntax.c:2:41: syntax error before ';'\n    for (int i = 0; i < n; i++) x[i] = 1 +;\n" + " " * 42 + "^",
    ),
    "an unknown directive": (
        ["transform", "unknown.c"],
        "unknown.c:2:16: unknown directive 'unrol'; did you mean 'unroll'?\n  #pragma hmppcg unrol 4\n"
        "                 ^^^^^^^",
    ),
    "an unknown directive, run": (["run", "unknown.c", "-D", "n=9", *RUN], "unknown.c:2:16: unknown directive 'unrol'"),
    "a misspelt argument": (
        ["transform", "argument.c"],
        "argument.c:2:26: unroll has no argument 'splitt'; did you mean 'split'? (syntax: unroll U [, contiguous | "
        "split [, vector R]] [, remainder | guarded | noremainder] [, jam | noJam])\n"
        "  #pragma hmppcg unroll 4, splitt\n"
        "                           ^^^^^^",
    ),
    "an illegal directive": (["transform", "illegal.c"], "illegal.c:2:16: parallel is illegal: loop i carries a dep"),
    "an illegal directive, run": (["run", "illegal.c", "-D", "n=9", *RUN], "parallel is illegal: loop i carries a dep"),
    "no such loop": (
        ["transform", "gemm.c", "--directive", "loop q: unroll 2"],
        "--directive:1:9: no loop q in gemm; its loops are i (1), j (2), k (3)\n  loop q: unroll 2\n          ^^^^^^^^",
    ),
    "no such loop, run": (
        ["run", "gemm.c", *RUN, "--directive", "loop q: unroll 2"],
        "no loop q in gemm; its loops are i (1), j (2), k (3)",
    ),
    "unroll 0": (
        ["transform", "gemm.c", "--directive", "loop k: unroll 0"],
        "--directive:1:16: unroll factor must be at least 1, got 0\n  loop k: unroll 0\n                 ^",
    ),
    "tile -1": (
        ["transform", "gemm.c", "--directive", "loop i: tile i:-1"],
        "--directive:1:14: tile size of i must be at least 1, got -1\n  loop i: tile i:-1\n               ^^^^",
    ),
    "a directive alone": (["transform", "gemm.c", "--directive", "unroll 2"], "--directive:1:1: expected `loop NAME"),
    "an unknown one": (["emit", "gemm.c", "--directive", "loop k: tyle k:2"], "unknown directive 'tyle'; did you mean"),
    "another reduction": (
        ["emit", "gemm.c", "--directive", "loop k: parallel, reduce(min:C)"],
        "reduce names min:C, but loop k reduces +:C",
    ),
    "an unparsable space": (
        ["run", "gemm.c", "--sweep", "--space", "open.space", *RUN],
        "open.space:1:16: this { is not closed\n  loop k: unroll {1..\n                 ^",
    ),
    "a space without a sweep": (["run", "gemm.c", "--space", "words.space", *RUN], "--space needs --sweep: without"),
    "a space of words": (["run", "gemm.c", "--sweep", "--space", "words.space", *RUN], "words.space:1:1: expected"),
    "a space of bytes": (
        ["run", "gemm.c", "--sweep", "--space", "binary.space", *RUN],
        "cannot read the space file binary.space: it is not text",
    ),
    "no such space": (
        ["run", "gemm.c", "--sweep", "--space", "absent.space", *RUN],
        "cannot read the space file absent.space: No such file or directory",
    ),
    "-D without a name": (["run", "gemm.c", "-D", "=3", *RUN], "-D =3: expected NAME or NAME=VALUE, got no name"),
    "-D with a bad name": (["emit", "gemm.c", "-D", "3=4"], "-D 3=4: expected NAME or NAME=VALUE, got the name '3'"),
    "-D of no number": (["run", "gemm.c", "-D", "NI=abc", *RUN], "gemm.c:48:22: -D NI=abc gives ni no number"),
    "-D of a parameter that is no number": (
        ["run", "plain.c", "-D", "n=abc", *RUN],
        "-D n=abc: the value of the parameter n must be a number",
    ),
    "a size that is not given": (
        ["run", "plain.c", *RUN],
        "plain.c:1:12: the value of n is not known: give it with -D n=VALUE\n",
    ),
    "a negative size": (["run", "plain.c", "-D", "n=-3", *RUN], "an extent of x is -3"),
    "an unknown dataset": (["transform", "gemm.c", "--dataset", "huge"], "unknown dataset 'huge': choose one of MINI"),
    "no such codelet": (["run", "gemm.c", "--kernel", "no", *RUN], "no codelet no in gemm.c: it has gemm, init, print"),
    "no loops": (["transform", "noloop.c"], "noloop.c"),
    "an unknown target": (
        ["run", "gemm.c", "--target", "gpu"],
        "unknown target 'gpu': choose one of auto, numba-cuda, cuda-c, numba-cpu, opencl",
    ),
    "an unknown target, emit": (["emit", "gemm.c", "--target", "metal"], "unknown target 'metal': choose one of"),
    "PTX of no NVIDIA GPU": (["emit", "gemm.c", "--target", "opencl", "--ptx"], "--ptx is for NVIDIA GPUs"),
    "a module in CUDA C": (["build", "gemm.c", "--target", "cuda-c"], "looptune build makes modules for numba-cuda"),
    "PTX of a processor": (["emit", "gemm.c", "--target", "numba-cpu", "--ptx"], "--ptx is for NVIDIA GPUs"),
    "an unknown strategy": (
        ["run", "gemm.c", "--sweep", "--strategy", "magic", *RUN],
        "unknown strategy 'magic': choose one of exhaustive, random, sampling",
    ),
    "a simulation of nothing": (["replay"], "cannot read .looptune/results.sqlite: No such file or directory"),
    "a simulation of C": (["replay", "gemm.c"], "gemm.c is neither a results database nor JSON"),
    "a simulation of other JSON": (
        ["replay", "notes.json"],
        "notes.json is neither T4 results, a Kernel Tuner cache, results of KTT nor Kernel Launcher wisdom",
    ),
    "a bad budget": (
        ["run", "gemm.c", "--budget", "lots", *RUN],
        "invalid budget `lots`: write a number of configurations (60) or a time (90s, 10m, 1h)",
    ),
    "no budget at all": (["run", "gemm.c", "--budget", "0", *RUN], "invalid budget `0`"),
    "reports that cannot be written": (
        ["run", "gemm.c", "--target", "numba-cpu", "--reports", "regular/reports"],
        "cannot write reports to regular/reports: Not a directory; choose another folder with --reports",
    ),
    "a database that cannot be made": (["run", "gemm.c", *RUN, "--db", "regular/db.sqlite"], "regular/db.sqlite: "),
    "no place for the output": (["transform", "gemm.c", "-o", "regular/out.c"], "cannot write regular/out.c: Not a"),
    "no such configuration": (["emit", "gemm.c", "--config", "absent.json"], "cannot read absent.json: No such file"),
    "a configuration not in JSON": (["transform", "gemm.c", "--config", "broken.json"], "broken.json is not JSON: "),
    "a configuration of something else": (
        ["transform", "gemm.c", "--config", "notes.json"],
        "notes.json holds no result with directives",
    ),
    "no such folder": (["transform", "gemm.c", "-I", "nowhere"], "no such folder: nowhere"),
}  # fmt: skip


@pytest.mark.sampled(3, "wide")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_message(here: Path, mistake: str) -> None:
    """The message begins as expected, stands once after "error:", and nothing else is said; exit code 2."""
    arguments, message = MISTAKES[mistake]
    ran = looptune(*arguments, cwd=here)
    said = [line for line in ran.err.splitlines() if not line.startswith("warning:")]
    assert ran.code == 2, ran.err
    assert re.match(r"([^:]+:\d+:\d+: )?error: ", said[0])
    assert ran.err.count("error: ") == 1
    assert message.rstrip("\n") in ran.err.replace(" error:", "", 1)
    assert "Traceback" not in ran.err
    assert all(line.startswith("  ") for line in said[1:])
    assert all(re.match(r"  (flow|anti|output) on |  instead: ", line) for line in said[3:])


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["run"],
        ["nonsense"],
        ["run", "gemm.c", "--jobs", "0"],
        ["run", "gemm.c", "--seed", "-1"],
        ["run", "gemm.c", "--timeout", "inf"],
        ["run", "gemm.c", "--finals-timeout", "nan"],
        ["emit", "gemm.c", "--wat"],
    ],
    ids=str,
)
def test_wrong_usage_shows_the_usage(here: Path, arguments: list[str]) -> None:
    """click's own refusals have the form of all others, show the usage and end with code 2, without a traceback."""
    ran = looptune(*arguments, cwd=here)
    assert ran.code == 2
    assert not arguments or ran.err.startswith("error: ")
    assert "Usage: " in ran.out + ran.err
    assert "Traceback" not in ran.err


def test_a_gpu_that_is_not_there(here: Path) -> None:
    """Asking for a GPU where there is none says why."""
    if not targets.gpu_missing():
        pytest.skip("there is a GPU")
    ran = looptune("run", "gemm.c", "--target", "numba-cuda", cwd=here)
    assert ran.code == 2
    assert ran.err.startswith("error: the target numba-cuda needs an NVIDIA GPU: ")


@pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")
def test_an_unknown_architecture(here: Path) -> None:
    """PTX for what is no architecture: the message lists those there are."""
    ran = looptune("emit", "gemm.c", "--ptx", "--arch", "sm_9", cwd=here)
    assert ran.code == 2
    assert ran.err.startswith("error: unknown GPU architecture 'sm_9': choose one of ")
    assert "sm_90" in ran.err
