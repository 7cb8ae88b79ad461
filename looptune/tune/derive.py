"""A space for a file that comes without one: from its loops and what the dependences allow.

    each nest   the legal orders of its loops        x  unroll of its innermost loop
    each loop   unroll, jammed where it has loops inside, or tile; alone, as the paper sampled
    sums        a team of threads for each, by the shape of the block; several blocks for each
    codelet     block sizes

What comes out is the text of a space file, so that a user can start from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from looptune.analysis import Analysis
from looptune.bind import called
from looptune.errors import DirectiveError, IllegalTransform
from looptune.frontend.placed import parse_lines
from looptune.ir import If, Loop, Stmt, While
from looptune.mapping import plan
from looptune.rewrite import walk
from looptune.schedule import distributed, schedule

BLOCKS = "codelet: grid blocksize {32x8, 16x16, 32x4, 64x4, 128x2, 256x1}"
UNROLL = "unroll {2, 4, 8}, {contiguous, split}, {remainder, guarded}"
TEAMS = "codelet: grid blocksize {32x8, 32x4, 32x32, 64x4, 128x2, 256x1}"
PARTS = "split {4, 16, 64}"
DEEPEST = 4
"""Nests of more loops than this are not permuted whole: 120 orders and more are the user's to ask for."""


def derive(analysis: Analysis) -> str:
    """The space as text, one section a line of thought; of a loop that the file distributes, for each of its pieces."""
    body = distributed(analysis).body
    sections = [*_nests(analysis, body), *_loops(body), *_teams(analysis, body), *([BLOCKS] if _loops_of(body) else [])]
    return "\nor\n".join(sections) + "\n"


def _nests(analysis: Analysis, body: tuple[Stmt, ...]) -> Iterator[str]:
    for outer in _loops_of(body):
        band = _band(outer)
        orders = list(_legal(analysis, band)) if 2 <= len(band) <= DEEPEST else []
        inner = called(band[-1])
        lines = [f"loop {inner}: {{ | {UNROLL} | tile {band[-1].var}:{{2, 4, 8}} }}"]
        if len(orders) > 1:
            lines.insert(0, f"loop {called(outer)}: permute {{{' | '.join(orders)}}}")
        yield "\n".join(lines)


def _loops(body: tuple[Stmt, ...]) -> Iterator[str]:
    for loop in (n for n in walk(body) if isinstance(n, Loop)):
        jam = "{noJam, jam}" if any(isinstance(n, (Loop, While)) for n in walk(loop.body)) else "noJam"
        yield f"loop {called(loop)}: {{ {UNROLL}, {jam} | tile {loop.var}:{{2, 4, 8}} | noParallel }}"


def _teams(analysis: Analysis, body: tuple[Stmt, ...]) -> Iterator[str]:
    """The loops that teams of threads can reduce, all of them together."""
    lines: list[str] = []
    for loop in (n for n in walk(body) if isinstance(n, Loop)):
        line = f"loop {called(loop)}: parallel"
        if _count_teams(analysis, [*lines, line]) > _count_teams(analysis, lines):
            lines.append(line)
    if lines:
        yield "\n".join([*lines, TEAMS])
    dealt = [called(f) for f in walk(body) if isinstance(f, Loop) and _is_legal(analysis, f"loop {called(f)}: split 4")]
    if dealt:
        yield "\n".join([*lines, f"loop {', '.join(dealt)}: {PARTS}"])


def _count_teams(analysis: Analysis, lines: list[str]) -> int:
    """How many kernels of the schedule are those of teams; none where it is not legal."""
    try:
        done = schedule(analysis, parse_lines(lines))
    except (DirectiveError, IllegalTransform):
        return 0
    return sum(k.team is not None for k in plan(done.codelet).kernels)


def _is_legal(analysis: Analysis, line: str) -> bool:
    try:
        schedule(analysis, parse_lines((line,)))
    except (DirectiveError, IllegalTransform):
        return False
    return True


def _loops_of(body: tuple[Stmt, ...]) -> list[Loop]:
    """The outermost loops, those under a condition included."""
    found: list[Loop] = []
    for stmt in body:
        match stmt:
            case Loop():
                found.append(stmt)
            case If(_, then, other):
                found += _loops_of((*then, *other))
            case While(_, inner):
                found += _loops_of(inner)
    return found


def _band(loop: Loop) -> list[Loop]:
    """The loop and, as long as there is just one, the loop inside."""
    band = [loop]
    while len(inner := [s for s in band[-1].body if isinstance(s, Loop)]) == 1:
        band.append(inner[0])
    return band


def _legal(analysis: Analysis, band: list[Loop]) -> Iterator[str]:
    names = [f.var for f in band]
    for order in permutations(names):
        text = ", ".join(order)
        try:
            schedule(analysis, parse_lines([f"loop {called(band[0])}: permute {text}"]))
        except (DirectiveError, IllegalTransform):
            continue
        yield text
