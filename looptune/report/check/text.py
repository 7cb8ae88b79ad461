"""An explanation as text: a line for each loop and directive, with the two iterations that make a loop sequential.

1  for t        4  sequential  flow on A, when steps=2, n=3
                     (t=0, i=1) writes A[1]   A[i]      7:7
                     (t=1, i=1) reads  A[1]   A[i - 1]  5:26
2    for i      5  parallel
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from looptune.core.source import Span, location
from looptune.poly.legality import DOES, Violation
from looptune.poly.witness import assignments_text
from looptune.schedule.messages import vectorised_sums_note

if TYPE_CHECKING:
    from looptune.report.check.explanation import CheckedDirective, Explanation
    from looptune.report.check.loop_facts import LoopFacts
    from looptune.report.check.races import Race
    from looptune.schedule.legal_space import LegalSpace, Permutation

_COLOURS = {
    "parallel": 32, "reduction": 36, "sequential": 33, "unknown": 35, "proved": 32, "asserted": 35, "refused": 31,
}  # fmt: skip

WIDTH = 110
"""Columns that what is assumed takes."""


def text(e: Explanation, *, colour: bool = False) -> str:
    """Return the explanation as text; with ``colour``, verdicts have terminal colours."""
    strict = "" if e.reassociate else "  sums in their order"
    lines = [f"{e.codelet}  {e.path}{strict}", "", *loop_lines(e.loops, colour)]
    if e.directives:
        lines += ["", *directive_lines(e.directives, colour)]
    if e.races:
        lines += ["", *_races(e.races)]
    *picture, summary = e.runs.outline
    lines += ["", f"  runs as {summary}", *(f"    {line}" for line in picture)]
    lines += [f"  {vectorised_sums_note(e.vectors)}"] if e.vectors else []
    if e.permitted is not None:
        lines += ["", *_permitted(e.permitted, e.loops)]
        lines += ["  assumed", *(f"    {line}" for line in e.assumes)]
    else:
        lines += ["", *_assumed(e.assumption_summary)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _assumed(brief: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield a line or a few of each kind."""
    width = max((len(kind) for kind, _ in brief), default=0)
    if brief:
        yield "  assumed"
    for kind, what in brief:
        opening = f"    {kind.ljust(width)}  "
        yield from textwrap.wrap(what, WIDTH, initial_indent=opening, subsequent_indent=" " * len(opening),
                                 break_long_words=False, break_on_hyphens=False)  # fmt: skip


def _races(races: Sequence[Race]) -> Iterator[str]:
    for race in races:
        yield f"  {race.title} ({location(race.span, race.loop)})  data race: {race.what}"
        if race.reason is not None:
            yield from (f"    {end}" for end in dependence_ends(race.reason.dependence, race.loop))


def _word(word: str, width: int, colour: bool) -> str:
    painted = f"\x1b[{_COLOURS[word]}m{word}\x1b[0m" if colour else word
    return painted + " " * (width - len(word))


# -- loops -----------------------------------------------------------------------------------------------------------


def loop_lines(loops: Sequence[LoopFacts], colour: bool) -> Iterator[str]:
    """Yield the table of the loops with their verdicts."""
    if not loops:
        yield "  no loop"
        return
    heads = [f"{'  ' * f.depth}{'while' if f.var == 'while' else f'for {f.var}'}" for f in loops]
    number = max(len(str(f.number)) for f in loops)
    width = max(map(len, heads))
    line = max(4, *(len(str(f.span.line)) for f in loops))
    yield f"  {'loop'.ljust(number + 2 + width)}  {'line':>{line}}"
    for f, head in zip(loops, heads, strict=True):
        opening = f"  {f.number:>{number}}  {head.ljust(width)}  {f.span.line:>{line}}  "
        yield f"{opening}{_word(f.kind, 10, colour)}  {because(f)}"
        if f.reason is not None and f.left_at is None and f.ordered_at is None and f.data is None:
            yield from (f"{' ' * (len(opening) + 2)}{end}" for end in dependence_ends(f.reason.dependence, f.span))


def _reductions(f: LoopFacts) -> Iterator[str]:
    """Yield the reductions; the variables of an argmin follow each other."""
    for op, group in groupby(f.reductions, key=lambda r: r.op):
        variables = [r.variable for r in group]
        if op.isalpha() and op not in ("min", "max"):
            yield f"{op} of {', '.join(variables)}"
        else:
            yield from (f"{op} of {variable}" for variable in variables)


def because(f: LoopFacts) -> str:
    """Return what follows a loop's verdict: private copies, sums, the dependence or what cannot be analysed."""
    own = [f"own {', '.join(f.private)}"] if f.private else []
    match f.kind:
        case "parallel":
            kept = (
                [f"runs serially: {', '.join(f'`{n}`' for n in f.shared)} cannot be made private"] if f.shared else []
            )
            return "; ".join([*own, *kept])
        case "reduction":
            divided = [f.division.text] if f.division is not None else []
            return "; ".join([", ".join(_reductions(f)), *own, *divided])
        case "unknown":
            assert f.unknown is not None, "what is unknown has a reason"
            return f"{f.unknown}, {location(f.unknown.span, f.span)}"
    if f.ordered_at is not None:
        return f"it calls {_function(f.ordered_at)} in this order, {location(f.ordered_at, f.span)}"
    if f.left_at is not None:
        return f"a jump may end it early, {location(f.left_at, f.span)}"
    if f.carried is not None:
        return f"an iteration reads {f.carried.name}, which one before may set, {location(f.carried.span, f.span)}"
    if f.reason is None:
        return "each iteration decides whether there is a next one"
    if f.data is not None:
        return f"{f.data.what} comes from data and may be the same in two iterations, {location(f.data.span, f.span)}"
    d, others = f.reason.dependence, [a for a in f.reason.arrays if a != f.reason.dependence.array]
    also = f" (also {', '.join(others)})" if others else ""
    parts = [f"{d.kind} on {d.array}{also}", *([] if f.reason.value else ["no value flows"])]
    given = [
        *([assignments_text(d.sizes)] if d.sizes else []),
        *([f"the {d.because.what.removeprefix('the ')} holds"] if d.because else []),
    ]
    divided = [f.division.text] if f.division is not None else []
    return "; ".join([", ".join([*parts, *([f"when {' and '.join(given)}"] if given else [])]), *divided])


def _function(call: Span) -> str:
    """Return the function's name at the place of its call, or the pointer through which it is called."""
    found = _CALLED.match(call.text, call.col - 1)
    return "a function" if found is None else found[1]


_CALLED = re.compile(r"(\w+(?:(?:\.|->)\w+|\[[^]]*\])*(?=\s*\()|\w+)")


def dependence_ends(d: Violation, loop: Span) -> Iterator[str]:
    """Yield both accesses of a dependence, aligned: iteration, effect on the element, source text and place."""
    done = DOES[d.kind]
    element = d.array + "".join(f"[{v}]" for v in (d.element if d.element is not None else ("?",)))
    rows = (
        (f"({assignments_text(d.source_iteration)})", done[0], d.source_text, location(d.source, loop)),
        (f"({assignments_text(d.sink_iteration)})", done[1], d.sink_text, location(d.sink, loop)),
    )
    at, verb, code = (max(len(row[k]) for row in rows) for k in range(3))
    for where, does, written, span in rows:
        yield f"{where.ljust(at)} {does.ljust(verb)} {element}   {written.ljust(code)}  {span}"


# -- directives ------------------------------------------------------------------------------------------------------


def directive_lines(judged: Sequence[CheckedDirective], colour: bool) -> Iterator[str]:
    """Yield a line for each directive, and below it why it is refused, if it is."""
    places = [f"loop {j.number}" + (f".{j.piece}" if j.piece else "") for j in judged]
    column, width = max(map(len, places)), max(len(j.text) for j in judged)
    for j, where in zip(judged, places, strict=True):
        word = _word(j.judgement, 0, colour)
        sums = f", reordering {', '.join(map(str, j.sums))}" if j.sums else ""
        yield f"  {where.ljust(column)}  {j.text.ljust(width)}  {word}{sums}"
        if j.refusal is not None:
            yield from (f"      {line}" for line in str(j.refusal).splitlines())
        for s in j.suggestions:
            yield f"      instead: {s.text}"


# -- what is permitted -----------------------------------------------------------------------------------------------


def _permitted(p: LegalSpace, loops: Sequence[LoopFacts]) -> Iterator[str]:
    names = {f.number: f.var for f in loops}
    free = ", ".join(f"{n} ({names[n]})" for n in p.parallel)
    yield f"  parallel loops  {free if free else 'none'}"
    if p.permutations:
        width = max(len(o.line) for o in p.permutations)
        yield "  legal orders"
        yield from (f"    {o.line.ljust(width)}  {_ordered(o)}" for o in p.permutations)
    if p.tilings:
        yield "  legal tilings, T being any sizes"
        yield from (f"    {t.line}" for t in p.tilings)
    if not p.permutations and not p.tilings:
        yield "  no other order, and no band to tile"


def _ordered(o: Permutation) -> str:
    ends = [*(["outermost"] if o.outermost else []), *(["innermost"] if o.innermost else [])]
    free = f"{' and '.join(ends)} parallel" if ends else ""
    return ", ".join(x for x in (free, "as written" if o.is_source_order else "") if x)
