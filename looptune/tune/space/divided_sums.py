"""Sections of a derived space for long sums of few iterations: each in parts, and each part of a block of its own.

    for c: { s = 0;                           loop c: expand s
      for b: for i: s += x[b][c][i];          loop c: distribute
      mean[c] = s / n; }                      loop b: rfactor 64, and loop i: parallel for a team in each part

A nest of sums has its outermost loop in parts. A scalar gets copies for the iterations around, because the parts of its
sums are elements of an array. Where a sum is read along a row, the threads of a block share the row; where the terms of
neighbouring sums are neighbours, each thread has a sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from looptune.core.errors import DirectiveError, IllegalTransform
from looptune.ir.nodes import Codelet, Loop, Var
from looptune.lower.pipeline import lower
from looptune.schedule.apply import schedule
from looptune.schedule.binding import at_loops, identity, loop_label
from looptune.schedule.directive_lines import parse_lines
from looptune.tune.space.patterns import ReductionPattern, accumulations, nested
from looptune.tune.space.space import parse

if TYPE_CHECKING:
    from looptune.tune.space.patterns import Patterns

FEW = 2**14
"""Iterations around a sum, for which a GPU has threads to spare."""
LONG = 2**11
"""Terms of a sum that is worth a kernel more."""
PARTS = (64, 256, 16)
"""Of sums in many iterations: parts of each."""
MORE_PARTS = (256, 64, 1024)
"""Of sums in few iterations, or in none."""
VERY_FEW = 256
ROWS = "codelet: grid blocksize {32x8, 32x4, 32x2}"
BESIDE = "codelet: grid blocksize {64x1, 32x1, 128x1}"


@dataclass(frozen=True, slots=True)
class LongSum:
    """A sum over a nest of loops ``chain``, outermost first, in the parallel loops ``around``."""

    pattern: ReductionPattern
    around: tuple[Loop, ...]
    chain: tuple[Loop, ...]

    @property
    def scalars(self) -> list[str]:
        """Return the scalars in which it adds up."""
        targets = (a.target for a in accumulations(self.chain[-1].body))
        return list(dict.fromkeys(t.name for t in targets if isinstance(t, Var)))


def sections(found: Patterns) -> Iterator[str]:
    """Yield the sections, all long sums of few iterations in parts in each."""
    sums = list(_long_sums(found))
    if not any(s.around or len(s.chain) > 1 for s in sums):
        return
    first = _copies(found, sums)
    if first is None:
        return
    counts = MORE_PARTS if max(prod(found.iterations(f) or 1 for f in s.around) for s in sums) <= VERY_FEW else PARTS
    fit = [str(c) for c in counts if c <= min(found.iterations(s.chain[0]) or c for s in sums)]
    if not fit:
        return
    parts = [f"{at_loops(s.chain[0] for s in sums)}: rfactor {{{', '.join(fit)}}}"]
    along = [s for s in sums if s.pattern.contiguous]
    teams = [f"{at_loops(s.chain[-1] for s in along)}: parallel"] if along else []
    higher = [s.chain[-2] if len(s.chain) > 2 else s.chain[-1] for s in along]
    over = [f"{at_loops(higher)}: parallel"] if any(len(s.chain) > 2 for s in along) else []
    none: list[str] = []
    choices = ((over, ROWS), (teams, ROWS), (none, BESIDE))
    for own, blocks in choices:
        if (own or blocks == BESIDE) and _lowers(found, [*first, *parts, *own]):
            yield "\n".join(["for gpu", *found.lines, *first, *parts, *own, blocks])


def _long_sums(found: Patterns) -> Iterator[LongSum]:
    for s in found.sums:
        loops = next((*around, f) for around, f in nested(found.body) if f is s.loop)
        chain: list[Loop] = []
        for loop in reversed(loops):
            if found.parallel(loop) or not found.legal([f"loop {loop_label(loop)}: parallel"]):
                break
            chain.insert(0, loop)
        around = tuple(f for f in loops[: len(loops) - len(chain)] if found.parallel(f))
        counts = [found.iterations(f) for f in (*around, *chain)]
        known = [c for c in counts if c is not None]
        sums, terms = prod(known[: len(around)]), prod(known[len(around) :])
        if chain and len(known) == len(counts) and sums <= FEW and terms >= LONG:
            yield LongSum(s, around, tuple(chain))


def _copies(found: Patterns, sums: Sequence[LongSum]) -> list[str] | None:
    """Return lines that give the scalars of the sums copies, and nests of their own if necessary; None if illegal."""
    lines: list[str] = []
    outer: dict[object, Loop] = {}
    for s in sums:
        names = s.scalars if s.around else []
        for loop in s.around if names else ():
            outer.setdefault(identity(s.around[0]), s.around[0])
            fresh = [x for x in (f"loop {loop_label(loop)}: expand {name}" for name in names) if x not in lines]
            before = _locals(found, lines)
            after = _locals(found, [*lines, *fresh])
            if before is None or after is None:
                return None
            lines += fresh
            names = [name for name in after if name not in before]
    parts = [f"loop {loop_label(s.chain[0])}: rfactor 2" for s in sums]
    apart = [f"loop {loop_label(loop)}: distribute" for loop in outer.values()]
    return next((some for some in (lines, [*lines, *apart]) if _lowers(found, [*some, *parts])), None)


def _locals(found: Patterns, lines: Sequence[str]) -> list[str] | None:
    done = _scheduled(found, lines)
    return None if done is None else [v.name for v in done.locals]


def _lowers(found: Patterns, lines: Sequence[str]) -> bool:
    """Tell whether the first version of the lines is legal and has kernels, which only lowering knows."""
    done = _scheduled(found, lines)
    try:
        return done is not None and bool(lower(done, blocks=True).steps)
    except DirectiveError:
        return False


def _scheduled(found: Patterns, lines: Sequence[str]) -> Codelet | None:
    """Return the first version of the lines, None if it is not legal."""
    text = "\n".join((*found.lines, *lines))
    version = next(iter(parse(text, "<derived>"))).text if text else ""
    try:
        return schedule(found.analysis, parse_lines(version.splitlines())).codelet
    except (DirectiveError, IllegalTransform):
        return None
