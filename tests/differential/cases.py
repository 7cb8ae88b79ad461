"""A case: a program, its directives, and what looptune makes of them; and how two results are compared."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from looptune.core.errors import LooptuneError
from looptune.frontend import Unit
from looptune.ir.nodes import Codelet, Loop, Node
from looptune.ir.rewrite import rewrite
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import ScheduleResult, schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.schedule.directives.grid import BlockSize
from looptune.schedule.suggest import schedule_with_suggestions
from looptune.tune.space.pragma_choices import check_choices_decided
from tests.differential.programs import Program


@dataclass(frozen=True, slots=True)
class Case:
    """``lines`` are directives; ``index`` with the seed makes the same case again."""

    index: int
    program: Program
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """A case that looptune accepts."""

    case: Case
    unit: Unit
    done: ScheduleResult


def chosen(unit: Unit, drawn: Sequence[str], *, suggesting: bool) -> tuple[ScheduleResult, tuple[str, ...]]:
    """The codelet under those of the directives that looptune takes together, and they.

    ``suggesting``: the whole list goes the way of a user's, so that suggestions are made where it is refused.
    """
    analysis = Analysis(unit.codelet)
    try:
        return under(analysis, unit, drawn, schedule_with_suggestions if suggesting else schedule), tuple(drawn)
    except LooptuneError as refusal:
        check_refusal(refusal)
    kept: list[str] = []
    done = under(analysis, unit, [], schedule)
    for line in drawn if len(drawn) > 1 else ():
        try:
            done = under(analysis, unit, [*kept, line], schedule)
            kept.append(line)
        except LooptuneError as refusal:
            check_refusal(refusal)
    return done, tuple(kept)


def under(analysis: Analysis, unit: Unit, lines: Sequence[str], how: Callable[..., ScheduleResult]) -> ScheduleResult:
    placed = parse_lines(lines, "directives")
    check_choices_decided(unit, placed)
    return how(analysis, placed, unit.values)


def check_refusal(refusal: LooptuneError) -> None:
    """A message of one line."""
    assert refusal.message, "a refusal says why"
    assert "\n" not in refusal.message, f"a refusal of several lines: {refusal.message}"


def small_blocks(codelet: Codelet, rng: random.Random) -> Codelet:
    """Blocks of a few threads where no directive says otherwise, as arrays are small."""
    shape = rng.choice(((3, 2), (4, 2), (8, 1), (2, 3)))

    def rule(n: Node) -> Node | None:
        return n.annotated(BlockSize(shape)) if isinstance(n, Loop) and n.annotation(BlockSize) is None else None

    return rewrite(rule, codelet)


def differs(
    want: Mapping[str, np.ndarray], got: Mapping[str, np.ndarray], *, tolerance: bool, integers: bool = True
) -> str:
    """Where two results first differ, "" where they do not. ``tolerance``: floats may be off by a little."""
    for name, expected in want.items():
        have = got[name]
        if have.dtype != expected.dtype or have.shape != expected.shape:
            return f"{name}: got {have.dtype}{list(have.shape)}, expected {expected.dtype}{list(expected.shape)}"
        if expected.dtype.kind != "f" and not integers:
            continue
        close = (have == expected) | ((have != have) & (expected != expected))
        if expected.dtype.kind == "f" and tolerance:
            off = {2: 4e-3, 4: 1e-3}.get(expected.dtype.itemsize, 1e-9)
            with np.errstate(all="ignore"):
                close |= np.isclose(have, expected, rtol=off, atol=off)
        if not close.all():
            at = tuple(int(k) for k in np.argwhere(~close)[0])
            wrong = int((~close).sum())
            return f"{name}{list(at)}: got {have[at]}, expected {expected[at]} ({wrong} of {close.size} wrong)"
    return ""


def shown(case: Case, number: int) -> str:
    """A case as one would send it to somebody: the text, the directives, the sizes."""
    said: Sequence[str] = [f"--directive '{line}'" for line in case.lines]
    return f"{case.program.text}\n{' '.join(said)}\nsizes {dict(case.program.sizes[number])}"
