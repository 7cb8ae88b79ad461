"""Directives that ask for more than there is are refused before anything is compiled, those of a space are versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptune.core.errors import DirectiveError
from looptune.frontend import load
from looptune.report.check.explanation import explain
from looptune.schedule.directive_lines import parse_lines
from looptune.tune.session.prepare import TuningRequest, prepare
from tests.helpers.command_line import looptune

NEST = """
void f(int n, float A[n][6]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < 6; j++)
      A[i][j] += 1;
}
"""
KNOWN = {
    "loop i: unroll 4": "unroll 4 needs 4 iterations of loop i, which runs 3 times",
    "loop j: unroll 7, jam": "unroll 7, jam needs 7 iterations of loop j, which runs 6 times",
    "loop i: tile i:2, j:7": "tile i:2, j:7 needs 7 iterations of loop j, which runs 6 times",
    "loop j: tile j:1000000000": "needs 1,000,000,000 iterations of loop j, which runs 6 times",
}


@pytest.mark.parametrize("line", KNOWN)
def test_more_than_a_loop_runs_is_refused(line: str, tmp_path: Path) -> None:
    """By check and by run, with both numbers; check shows how the code runs without it."""
    found = explain(load(NEST, defines={"n": 3}), parse_lines([line], "directives"))
    bare = explain(load(NEST, defines={"n": 3}))
    assert [(d.judgement, KNOWN[line] in str(d.refusal)) for d in found.directives] == [("refused", True)]
    assert found.runs.outline == bare.runs.outline
    (tmp_path / "f.c").write_text(NEST)
    with pytest.raises(DirectiveError, match=KNOWN[line]):
        prepare(TuningRequest(tmp_path / "f.c", target="numba-cpu", defines={"n": "3"}, directives=(line,)))


@pytest.mark.parametrize("line", ["loop i: unroll 4", "loop i: tile i:64", "loop j: unroll 6", "loop j: tile j:6"])
def test_what_may_be_there_is_not_refused(line: str) -> None:
    """Sizes that are not known allow any factor, and the whole loop is not too much."""
    found = explain(load(NEST), parse_lines([line], "directives"))
    assert [d.judgement for d in found.directives] == ["proved"]


@pytest.mark.parametrize("block", ["1025x1", "64x32", "256x256"])
def test_a_block_of_too_many_threads_is_refused(block: str) -> None:
    """Wherever it is written, with the threads and the limit; 1,024 are not too many."""
    placed = explain(load(NEST), parse_lines([f"codelet: grid blocksize {block}"], "directives"))
    own = explain(load(NEST.replace("void", f"#pragma hmppcg grid blocksize {block}\nvoid")))
    for found in (placed, own):
        assert {d.judgement for d in found.directives} == {"refused"}
        assert "the limit of a GPU is 1,024" in str(found.directives[0].refusal)
        assert found.runs.plan.kernels[0].block == explain(load(NEST)).runs.plan.kernels[0].block
    fits = explain(load(NEST), parse_lines(["codelet: grid blocksize 32x32"], "directives"))
    assert not fits.refused


def test_a_space_may_ask_for_too_much(tmp_path: Path) -> None:
    """A sweep at a small size goes through all of its versions."""
    (tmp_path / "f.c").write_text(NEST)
    (tmp_path / "f.space").write_text("loop j: tile j:{2, 64}\ncodelet: grid blocksize {32x8, 64x32}\n")
    prepared = prepare(
        TuningRequest(tmp_path / "f.c", target="numba-cpu", defines={"n": "3"}, sweep=True, space=tmp_path / "f.space")
    )
    assert prepared.space.size == 4


def test_the_command_ends_with_2(tmp_path: Path) -> None:
    """The line, a caret, and no traceback."""
    (tmp_path / "f.c").write_text(NEST)
    ran = looptune("run", "f.c", "-D", "n=3", "--target", "numba-cpu", "--directive", "loop j: unroll 7", cwd=tmp_path)
    assert (ran.code, "loop j: unroll 7\n" in ran.err, "^^^^^^^^" in ran.err) == (2, True, True)
