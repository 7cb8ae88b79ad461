"""No directive leaves a loop run by threads whose iterations share a private array."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from looptune.core.errors import LooptuneError
from looptune.frontend import load
from looptune.ir import c_printer
from looptune.ir.def_use import names_in
from looptune.ir.nodes import Assign, Codelet, Const, If, Load, Loop, Stmt, While
from looptune.ir.rewrite import rewrite, walk
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import random_nests

CASES = 60
NEST = """
void f(int n, int m, double A[n][m], double B[n][m], double x[n]) {
  for (int i = 0; i < n; i++) {
    double g[4];
    for (int j = 0; j < m; j++) {
      double h[4];
      for (int p = 0; p < 4; p++) h[p] = A[i][j] + p;
      for (int p = 1; p < 4; p++) h[p] += h[p - 1];
      B[i][j] = h[1];
    }
    g[0] = B[i][0]; g[1] = g[0];
    x[i] = g[1];
  }
  for (int i = 0; i < n; i++) { double e[2]; e[0] = x[i]; e[1] = e[0]; x[i] = e[1]; }
}
"""
ONE_PASS = NEST.replace("      for (int p = 1; p < 4; p++) h[p] += h[p - 1];\n", "")
LINES = (
    "loop 1: parallel", "loop 1: gridify(i, j)", "loop 1: permute j, i", "loop 1: unroll 2, jam",
    "loop 1: unroll 2, split", "loop 1: unroll 3", "loop 1: tile i:3", "loop 1: tile i:2, j:3", "loop 1: tile i:1, j:2",
    "loop 1: fuse", "loop 1: distribute", "loop 1: box 4", "loop 2: parallel", "loop 2: gridify(j, p)",
    "loop 2: unroll 2, jam",
    "loop 2: tile j:3", "loop 2: tile j:3, p:4", "loop 2: tile j:1, p:3", "loop 2: distribute", "loop 2: box 2",
    "loop 3: fullunroll", "loop 3: fuse", "loop 3: unroll 2", "loop 3: tile p:2",
)  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.sampled(4, "wide")
@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("other", ["", "loop 2: tile j:3, p:4", "loop 1: unroll 2, jam", "loop 1: tile i:3"])
def test_after_each_directive_threads_share_no_array(line: str, other: str) -> None:
    """Of nests that declare arrays in two of their loops, after one directive and after two."""
    lines = [line] if other in ("", line) else [line, other]
    for text in (NEST, ONE_PASS):
        check(text, lines)


@pytest.mark.wide
def test_after_random_directives_threads_share_no_array() -> None:
    """The same of random nests around a local array, declared in a loop or before all of them."""

    @settings(
        deadline=None, database=None, suppress_health_check=list(HealthCheck), phases=(Phase.generate,),
        max_examples=CASES, derandomize=True,
    )  # fmt: skip
    @given(data=st.data(), text=random_nests.with_own_array())
    def each(data: st.DataObject, text: str) -> None:
        lines = data.draw(random_nests.directives(load(text).codelet, cutting=False))
        note(f"{text}\n{lines}")
        check(text, lines)

    each()


def test_shared_arrays_are_found() -> None:
    """A loop over the points of a tile, made parallel inside the loop that declares the array, is named."""
    lines = parse_lines(["loop 2: tile j:3, p:4"])
    codelet = schedule(Analysis(load(ONE_PASS).codelet), lines).codelet
    assert shared_arrays(codelet) == []
    broken = rewrite(lambda n: replace(n, mode="thread") if isinstance(n, Loop) and n.var == "j" else None, codelet)
    assert shared_arrays(broken) == [("j", "h")]


def check(text: str, lines: list[str]) -> None:
    codelet = load(text).codelet
    try:
        done = schedule(Analysis(codelet), parse_lines(lines), {"n": 4, "m": 6}).codelet
    except LooptuneError:
        return
    assert shared_arrays(done) == [], c_printer.body(done, pragmas=True)


def shared_arrays(codelet: Codelet) -> list[tuple[str, str]]:
    """Return the loops run by threads, each with a local array of which its iterations write the same elements.

    An array that a loop declares has its own elements in every iteration of that loop and of those around it. A
    subscript depends on the loops it names, and on those that the bounds of these name. What a loop reduces, its
    threads may share. A loop of one iteration shares nothing.
    """
    local = {v.name for v in codelet.locals if v.shape}
    found: list[tuple[str, str]] = []
    for target, around in _written(codelet.body):
        names = names_in(target.index)
        for f in reversed(around) if target.array in local else ():
            if target.array in f.private_arrays:
                break
            reduced = any(isinstance(n, Load) and n.array == target.array for r in f.reductions for n in walk(r.target))
            if f.mode in ("parallel", "thread") and f.var not in names and not reduced and not _runs_once(f):
                found.append((f.var, target.array))
            names |= names_in((f.lo, f.hi)) if f.var in names else set()
    return list(dict.fromkeys(found))


def _runs_once(loop: Loop) -> bool:
    match loop:
        case Loop(lo=Const(lo), hi=Const(hi), step=step):
            return hi - lo <= step
    return False


def _written(body: tuple[Stmt, ...], around: tuple[Loop, ...] = ()) -> Iterator[tuple[Load, tuple[Loop, ...]]]:
    """Yield the elements that are assigned, with the loops around each."""
    for stmt in body:
        match stmt:
            case Loop(body=inner):
                yield from _written(inner, (*around, stmt))
            case While(body=inner):
                yield from _written(inner, around)
            case If(_, then, other):
                yield from _written((*then, *other), around)
            case Assign(Load() as target):
                yield target, around
