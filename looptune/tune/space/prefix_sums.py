"""Sections of a derived space for loops that carry prefix sums, in parallel parts.

    for i: s += x[i]; y[i] = s            GPU: loop i: prefix 16, 64, 64       CPU: loop i: prefix 2500000
    for i: for j: y[i][j] = y[i][j-1] + x[i][j]      also: loop i: expand y_last, y_sums, y_starts; loop i: distribute

A thread of a GPU has few neighbouring elements, read as vectors, and the sums of the parts are divided until what is
left is short. A core of a CPU has one part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from looptune.ir.nodes import Loop, While
from looptune.ir.rewrite import walk_stmts
from looptune.poly.arg_reduction import arg_reductions
from looptune.poly.prefix_sum import PrefixLoop, is_prefix_sum
from looptune.schedule.apply import schedule
from looptune.schedule.binding import at_loops, loop_label
from looptune.schedule.directive_lines import parse_lines
from looptune.schedule.directives.prefix import MOST_LENGTH
from looptune.tune.space.patterns import nested
from looptune.tune.space.space import parse

if TYPE_CHECKING:
    from looptune.ir.nodes import PrefixDivision
    from looptune.tune.space.patterns import Patterns

SHORT, MIDDLE = "{16, 8, 32}", "64"
"""The lengths of parts on a GPU: of iterations, and of sums of such parts."""
WIDE, LONG = "{32, 64}", "{64, 256}"
"""The same with one level fewer."""
LEFT = 1024
"""Sums that one thread may combine in a few microseconds."""
FEWEST = 512
"""Iterations of a loop that parts can make faster."""
CORES = (8, 2, 4, 16, 64)
UNKNOWN = 1_000_000
"""Iterations where the sizes do not tell them."""
ROWS = 4096
"""Of so many rows, each may be a thread."""
BLOCKS = "codelet: grid blocksize {256x1, 128x1, 64x1}"


@dataclass(frozen=True, slots=True)
class _Prefix:
    """A loop that carries prefix sums, and the parallel ones around it, the ``rows``."""

    rows: tuple[Loop, ...]
    loop: Loop

    @property
    def place(self) -> str:
        return f"loop {loop_label(self.loop)}"


def sections(found: Patterns, *, many: bool = False) -> Iterator[str]:
    """Yield sections in which loops are divided into parts: those with few rows, or with ``many``."""
    loops = [p for p in _loops(found) if _has_many_rows(found, p) == many]
    if loops:
        yield from _on_gpu(found, loops)
        yield from _on_cpu(found, [p for p in loops if not p.rows])


def _loops(found: Patterns) -> Iterator[_Prefix]:
    """Yield the prefix sums of the text, of loops inside each other the outer one; the best of terms is none."""
    if found.lines or any(isinstance(s, While) for s in walk_stmts(found.body)):
        return
    chosen: list[Loop] = []
    for around, loop in nested(found.body):
        serial = not found.parallel(loop) and all(f not in chosen for f in around)
        if (
            serial
            and (found.iterations(loop) or FEWEST) >= FEWEST
            and is_prefix_sum(found.analysis.codelet, loop.number)
            and not arg_reductions(loop)
        ):
            one = _Prefix(tuple(filter(found.parallel, around)), loop)
            if found.legal(_divided(found, one, "2", 1)):
                chosen.append(loop)
                yield one


def _has_many_rows(found: Patterns, p: _Prefix) -> bool:
    return bool(p.rows) and prod(found.iterations(f) or ROWS for f in p.rows) >= ROWS


def _on_gpu(found: Patterns, loops: Sequence[_Prefix]) -> Iterator[str]:
    """Yield parts that threads read as vectors, in as many levels as the longest loop needs, and in one fewer.

    Of the loops over sums, several loads are on their way at once.
    """
    most = max(found.iterations(p.loop) or UNKNOWN for p in loops)
    levels = _levels(most, 16, 64)
    shapes = [(SHORT, (MIDDLE,) * (levels - 1)), *([(WIDE, (LONG,) * (levels - 2))] if levels > 1 else [])]
    for first, others in shapes:
        lines = [line for p in loops for line in _divided(found, p, ", ".join((first, *others)), 1 + len(others))]
        if found.legal(lines):
            inner, deep = _inner(found, loops, lines)
            vectors = f"loop {', '.join(map(str, inner))}: {{vectorize 4 | }}"
            yield "\n".join([
                "for gpu", *lines, *([vectors] if found.legal([*lines, vectors]) else []),
                f"loop {', '.join(map(str, deep))}: {{unroll 16 | }}", BLOCKS,
            ])  # fmt: skip


def _levels(iterations: int, first: int, others: int) -> int:
    """Return how many lengths leave few values to one thread."""
    left, levels = iterations // first, 1
    while left > LEFT:
        left, levels = left // others, levels + 1
    return levels


def _inner(found: Patterns, loops: Sequence[_Prefix], lines: Sequence[str]) -> tuple[list[int], list[int]]:
    """Return the numbers of the loops over the iterations of a part, and of those over the sums of parts."""
    steps, first = _steps(found, lines), {p.loop.number for p in loops}
    divided = {step.number for step in steps}
    inner, deep = list[int](), list[int]()
    for step in steps:
        sums = next(f for f in walk_stmts(step.after.body) if isinstance(f, Loop) and f.number == step.loops[0])
        own = inner if step.number in first else deep
        own += [*(f.number for f in sums.body if isinstance(f, Loop)), step.number]
        deep += [] if step.loops[1] in divided else [step.loops[1]]
    return inner, deep


def _divided(found: Patterns, p: _Prefix, lengths: str, levels: int) -> list[str]:
    """Return the lines that divide a loop, and that make the rows around it parallel with the parts."""
    line = f"{p.place}: prefix {lengths}"
    if not p.rows or not found.legal([line]):
        return [line]
    steps = _steps(found, [f"{p.place}: prefix {', '.join(['16'] * levels)}"])
    values = [v.var.name for v in PrefixLoop.of(steps[0].text, steps[0].number).values]
    copies = dict.fromkeys([*values, *(name for s in steps for names in s.names for name in names[:2])])
    return [line, f"{at_loops(p.rows)}: expand {', '.join(copies)}", f"loop {loop_label(p.rows[0])}: distribute"]


def _steps(found: Patterns, lines: Sequence[str]) -> tuple[PrefixDivision, ...]:
    """Return the divisions that the first version of the lines makes, which are legal."""
    version = next(iter(parse("\n".join(lines), "<derived>")))
    derivation = schedule(found.analysis, parse_lines(version.text.splitlines())).expanded.derivation
    assert derivation is not None, "one of the lines divides a loop"
    return derivation.steps


def _on_cpu(found: Patterns, loops: Sequence[_Prefix]) -> Iterator[str]:
    """Yield a part for each core, of loops that no parallel loop is around."""
    lines = []
    for p in loops:
        most = found.iterations(p.loop) or UNKNOWN
        lengths = dict.fromkeys(min(MOST_LENGTH, max(2, -(-most // cores))) for cores in CORES)
        lines.append(f"{p.place}: prefix {{{', '.join(map(str, lengths))}}}")
    if lines:
        yield "\n".join(["for cpu", *lines])
