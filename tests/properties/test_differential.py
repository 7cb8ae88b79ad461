"""Random finished programs on all targets against gcc: what is accepted leaves what C says, and nothing beside it.

    python -m tests.differential --cases 10000 [--seed 7]     from the repository's folder; --help lists the rest

Each case is a C file with one function under directives of every kind. Where gcc's sanitizers find the original
defined, it is what all of these are compared with, integers to the bit, floats to the bit where none was rounded:

    front         the tree that was read, by the interpreter        numba-cpu   machine code of this processor
    transform     the C that ``looptune transform`` writes, by gcc  simulator   numba-cuda's text in Numba's simulator
    interpreter   the tree after its directives                     cuda-c      CUDA C, compiled as C++
                                                                    opencl      on the device that there is
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest

from looptune.schedule.directives import ALL
from tests.differential import directives, planted, texts
from tests.differential.tree import nodes, simpler
from tests.helpers.paths import ROOT

OTHERS = (1, 2, 3)
"""Cases that are run beside those that show a planted bug."""

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


def tried(*words: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own: in the simulator's environment, and what it forks has no threads."""
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "NUMBA_OPT": "0"}
    command = [sys.executable, "-m", "tests.differential", *words]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@needs_gcc
@pytest.mark.wide
@pytest.mark.sampled(5)
@pytest.mark.parametrize("bug", planted.BUGS)
def test_a_planted_bug_is_found(bug: str) -> None:
    """The test fails where a known mistake is built in, and on these cases only there."""
    planting = planted.BUGS[bug]
    numbers = ",".join(str(k) for k in sorted({*OTHERS, *planting.cases}))
    words = ("--only", numbers, "--seed", "1", "--shrink", "0", "--processes", "1", "--targets", planting.target)
    done = tried(*words, "--plant", bug)
    assert done.returncode == 1, done.stdout + done.stderr[-2000:]
    assert "accepted" in done.stdout
    assert all(f"case {k}, {planting.target}: " in done.stdout for k in planting.cases)
    assert tried(*words).returncode == 0


def test_elements_are_inside_at_every_size() -> None:
    """No program looks at an element of an array that has as many as a size says, but in loops below that size."""
    for number in range(60):
        program = texts.program(1, number)
        bare = {v.name: e.size for v in program.variables for e in v.extents if e.size and not e.plus}
        for name in bare:
            assert not re.search(rf"\b{name}\[(0|\()", program.text), program.text


def test_every_directive_is_tried() -> None:
    """There is a random line for each one that looptune has."""
    assert directives.KINDS.keys() == {t.name for t in ALL}


def test_a_number_makes_the_same_program() -> None:
    """Seed and number are all that a case depends on."""
    assert texts.program(3, 5) == texts.program(3, 5)
    assert texts.program(3, 5).text != texts.program(4, 5).text


def test_smaller_programs_have_a_part_less() -> None:
    """Shrinking leaves statements out and puts constants and parts in the place of expressions."""
    program = texts.program(1, 1)
    assert len(list(nodes(program.tree))) > 50
    assert all(tree != program.tree for tree in simpler(program.tree))
    assert any(len(str(tree)) < 0.8 * len(program.text) for tree in simpler(program.tree))
