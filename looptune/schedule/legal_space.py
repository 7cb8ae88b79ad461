"""All legal orders of each band of loops, and all bands that can be tiled. Each has been judged.

    for i: for j: for k: C[i][j] += A[i][k] * B[k][j]       permute: all six     tile: i, j, k by any sizes

A band may be tiled by any sizes if each of its loops could be the outermost: then no dependence points backward along
any of them. A part of such a band may be tiled too, so only the largest are listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import TYPE_CHECKING

from looptune.core.errors import DirectiveError, IllegalTransform
from looptune.ir.nodes import Assign, Codelet, If, Loop, Node, Stmt, While
from looptune.ir.rewrite import rewrite
from looptune.poly.scop import SchedulePiece
from looptune.schedule.apply import ScheduleResult, schedule
from looptune.schedule.binding import enclosing_path
from looptune.schedule.directive_lines import parse_lines
from looptune.schedule.directives.base import NewSchedule, restrict_schedule, statement_names

if TYPE_CHECKING:
    from looptune.schedule.analysis import Analysis

DEEPEST = 5
"""The orders of more loops than this are not listed: six have 720."""

_SIZE = 32


@dataclass(frozen=True, slots=True)
class Permutation:
    """A legal order of loops; ``line`` is the directive.

    ``outermost`` and ``innermost``: whether these loops are then parallel. ``is_source_order``: it is the order of the
    file, so that ``line`` changes nothing.
    """

    line: str
    number: int
    order: tuple[str, ...]
    outermost: bool
    innermost: bool
    is_source_order: bool


@dataclass(frozen=True, slots=True)
class Tiling:
    """A legal tiling of loops; ``line`` is the directive, with T in place of each size."""

    line: str
    number: int
    loops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LegalSpace:
    """The legal transformations of a codelet: its parallel loops, and the legal permutations and tilings."""

    parallel: tuple[int, ...]
    permutations: tuple[Permutation, ...]
    tilings: tuple[Tiling, ...]


def legal_space(analysis: Analysis) -> LegalSpace:
    """Return the legal orders and tilings of the codelet without its own directives."""
    plain = analysis.of(strip_directives(analysis.codelet))
    chains = list(_chains(plain.codelet.body))
    free = {f.number for chain in chains for f in chain if _parallel(plain, plain.codelet, f.number)}
    return LegalSpace(tuple(sorted(free)), tuple(_permutations(plain, chains)), tuple(_tilings(plain, chains)))


def strip_directives(codelet: Codelet) -> Codelet:
    """Return the codelet without its directives."""

    def rule(n: Node) -> Node | None:
        match n:
            case Loop() | While() | If() | Assign() if n.directives:
                return replace(n, directives=())
        return None

    return replace(codelet, body=rewrite(rule, codelet.body))


def _chains(body: Sequence[Stmt]) -> Iterator[tuple[Loop, ...]]:
    """Yield every chain of loops from an outermost one, as far as loops are directly in loops."""
    for stmt in body:
        match stmt:
            case Loop():
                yield from _down((stmt,))
            case If(_, then, other):
                yield from _chains((*then, *other))
            case While(_, inner):
                yield from _chains(inner)


def _down(chain: tuple[Loop, ...]) -> Iterator[tuple[Loop, ...]]:
    inner = [s for s in chain[-1].body if isinstance(s, Loop)]
    for loop in inner:
        yield from _down((*chain, loop))
    if not inner:
        yield chain
    yield from _chains([s for s in chain[-1].body if isinstance(s, (If, While))])


def _parts(chains: Sequence[tuple[Loop, ...]]) -> Iterator[tuple[Loop, ...]]:
    """Yield the runs of at least two consecutive loops of a chain, the largest first, each once."""
    found = {
        tuple(f.number for f in chain[start : start + size]): chain[start : start + size]
        for chain in chains
        for size in range(len(chain), 1, -1)
        for start in range(len(chain) - size + 1)
    }
    yield from sorted(found.values(), key=lambda band: -len(band))


def _permutations(analysis: Analysis, chains: Sequence[tuple[Loop, ...]]) -> Iterator[Permutation]:
    done: list[tuple[Loop, ...]] = []
    for band in _parts(chains):
        if len(band) > DEEPEST or any(_within(band, larger) for larger in done):
            continue
        written = tuple(f.var for f in band)
        legal = {order: found for order in permutations(written) if (found := _permuted(analysis, band, order))}
        if len(legal) > 1:
            done.append(band)
            yield from (_permutation(analysis, band, order, legal[order]) for order in legal)


def _within(band: tuple[Loop, ...], larger: tuple[Loop, ...]) -> bool:
    return all(any(f is g for g in larger) for f in band)


def _line(band: tuple[Loop, ...], text: str) -> str:
    return f"loop {band[0].number}: {text}"


def _permuted(analysis: Analysis, band: tuple[Loop, ...], order: tuple[str, ...]) -> ScheduleResult | None:
    return _scheduled(analysis, _line(band, f"permute {', '.join(order)}"))


def _scheduled(analysis: Analysis, line: str) -> ScheduleResult | None:
    try:
        return schedule(analysis, parse_lines([line]))
    except (DirectiveError, IllegalTransform):
        return None


def _permutation(
    analysis: Analysis, band: tuple[Loop, ...], order: tuple[str, ...], done: ScheduleResult
) -> Permutation:
    numbers = {f.var: f.number for f in band}
    ends = [_parallel(analysis, done.codelet, numbers[order[k]], done) for k in (0, -1)]
    line = _line(band, f"permute {', '.join(order)}")
    return Permutation(line, band[0].number, order, ends[0], ends[1], order == tuple(numbers))


def _parallel(analysis: Analysis, codelet: Codelet, number: int, done: ScheduleResult | None = None) -> bool:
    """Return whether a loop of a tree carries no dependence, in the order of its statements there."""
    around = enclosing_path(codelet.body, number)
    if not around:  # it never runs, and was left out
        return False
    order = analysis.model.order() if done is None else done.order
    return analysis.verdict(statement_names(around[-1].body), 2 * len(around) - 1, order).kind == "parallel"


def _tilings(analysis: Analysis, chains: Sequence[tuple[Loop, ...]]) -> Iterator[Tiling]:
    done: list[tuple[Loop, ...]] = []
    for band in _parts(chains):
        sizes = ", ".join(f"{f.var}:{_SIZE}" for f in band)
        perfect = all(len(f.body) == 1 for f in band[:-1])
        if not perfect or any(_within(band, larger) for larger in done) or not _forward(analysis, band):
            continue
        if _scheduled(analysis, _line(band, f"tile {sizes}")) is not None:
            done.append(band)
            text = ", ".join(f"{f.var}:T" for f in band)
            yield Tiling(_line(band, f"tile {text}"), band[0].number, tuple(f.var for f in band))


def _forward(analysis: Analysis, band: tuple[Loop, ...]) -> bool:
    """Return whether no dependence inside the loops around the band points backward along one of its loops."""
    order = restrict_schedule(analysis.model.order(), statement_names(band[-1].body))
    first = 2 * len(enclosing_path(analysis.codelet.body, band[0].number)) - 1

    def outermost(p: SchedulePiece, k: int) -> SchedulePiece:
        return SchedulePiece((*p.time[:first], p.time[first + 2 * k]), p.when)

    moved = (NewSchedule({n: tuple(outermost(p, k) for p in ps) for n, ps in order.items()}) for k in range(len(band)))
    return all(analysis.judge(new, analysis.model.order()) is None for new in moved)
