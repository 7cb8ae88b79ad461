"""Derive a space for a file without one, from the patterns of its nests and from the dependences.

    vectors     on a CPU, loops along rows inside, see ``vector_order``; parts of sums, see ``core_parts``
    histograms  copies of arrays for parts of loops that accumulate into any of their elements, see ``histograms``
    prefix sums parallel parts of loops that carry running sums, see ``prefix_sums``
    forms       copies of what iterations use one after the other, loops split where their dependences are
    products    register tiles of both parallel loops, on a GPU with tiles in shared memory, on a CPU in vector order
    volumes     on a GPU, grids over three of more than two parallel loops, and the others in the thread
    blocks      the steps of an elimination in blocks, see ``blocked``
    waves       waves of tiles that a block shares, where every loop carries a dependence, after the smallest skew
    batches     a block for each of many small problems, with a copy of what it updates
    threads     small blocks for few threads that have a recurrence each, unrolled
    schedules   the orders that isl finds, where a loop of the text is sequential
    waves       likewise, each tile one thread's
    values      copies of scalars along nested loops, and then the orders
    stencils    on a GPU, several rows per thread; grids of three dimensions
    rows        what is read along one loop and written along the other, turned in shared memory
    steps       several time steps at once
    owners      elements that threads keep through all iterations of a loop
    sums        a team of threads for each, or several blocks, by whether they run along rows or columns
    each nest   the legal orders of its loops        x  unroll of its innermost loop
    each loop   unroll, jammed if it has inner loops, or tile; alone, as the paper sampled
    codelet     block sizes

The result is the text of a space file, so that a user can start from it. A section for several nests gives each of them
the same directive, which keeps the space of similar nests small.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING

from looptune.ir.def_use import continuing_condition
from looptune.ir.nodes import Loop, Stmt, While
from looptune.schedule.binding import at_loops, identity, loop_label
from looptune.tune.space import (
    blocked,
    core_parts,
    divided_sums,
    fitted_tiles,
    forms,
    grid_choices,
    histograms,
    matrix_units,
    nest_combinations,
    owners,
    prefix_sums,
    single_loops,
    sums_at_once,
    time_steps,
    uneven_products,
    vector_order,
)
from looptune.tune.space.patterns import Patterns, ReductionPattern, nested, outermost
from looptune.tune.space.sums_at_once import VECTORS
from looptune.tune.space.tiled_waves import shared_waves, tiled_waves

if TYPE_CHECKING:
    from looptune.schedule.analysis import Analysis

BLOCKS = "for gpu\ncodelet: grid blocksize {32x8, 16x16, 32x4, 64x4, 128x2, 256x1, 32x2, 32x1}"
TEAMS = "codelet: grid blocksize {32x8, 32x4, 32x32, 64x4, 128x2, 256x1}"
SHARED_BLOCKS = "codelet: grid blocksize {32x8, 32x16, 32x32, 16x64}"
BATCHES = "codelet: grid blocksize {32x4, 32x8, 32x2, 32x1, 32x32}"
"""Of teams in more than one parallel loop, of which each has a whole block."""
ROWS = "codelet: grid blocksize {256x1, 128x2, 32x8, 64x4, 32x32}"
"""Of teams that share a row: a wide one has all of it in flight."""
"""Of few threads with long loops: each warp may have a multiprocessor of its own."""
BESIDE = "codelet: grid blocksize {32x4, 32x8, 64x4}"
"""Of what a thread reads of a row: 8 or 16 bytes at once, of floats."""
PARTS = "rfactor {4, 16, 64}"
STAGED = (
    ("unroll 4, jam", "unroll 4, jam", "tile {16, 32}", "out", "16x8, 16x16, 32x4"),
    ("unroll 8, jam", "unroll 4, jam", "tile {16, 32}", "out", "16x8, 16x16, 32x4"),
    ("unroll 8, jam", "unroll 8, split, vector 4, jam", "tile 16", "transposed", "16x8, 16x16, 8x16"),
    ("unroll 8, jam", "unroll 8, split, jam", "tile {8, 16}", "", "16x8, 16x16"),
)
"""Of a product: what its outer and inner parallel loop and its sum's loop are, how its tiles are read, the blocks."""
HALVED = ("unroll {4, 8}, jam", "unroll {4, 8}, jam", "tile {8, 16}", "")
"""Of a product whose other half is the same."""
SHARED = ("unroll {4, 8}, jam", "unroll 4, jam", "tile 16", "out")
"""Likewise, where several blocks may share each sum."""
PACK = "codelet: pack"
"""Of products whose blocks are a triangle."""
WARP = 32
"""Threads that read neighbours at once: a row of them that begins at a multiple of this begins a line of the cache."""
SCHEDULES = ("parallel:outer, fuse:min", "parallel:outer", "parallel:inner, fuse:min", "parallel:inner")
"""Of an automatic schedule: most often best first."""
DEVELOPED = 2
"""Of the schedules of a codelet, so many are looked at for products, sums and stencils."""

COPIED = "Copies of what iterations use one after the other, and loops split where one depends on another."
ELIMINATED = "The steps of an elimination in blocks, whose updates are products, or of a triangular system."
TAKEN_APART = "Copies of scalars, which take apart what no order could."
SHARED_WAVES = "Waves of tiles that the threads of a block share."
REORDERED = "Orders in which more loops are parallel than in the text."
TILED_WAVES = "Waves of tiles, where every loop of a nest carries a dependence."
SCHEDULED_LAST = (COPIED, ELIMINATED, TAKEN_APART, SHARED_WAVES, REORDERED, TILED_WAVES)
"""What sections are about for which isl looks for schedules, which may take seconds."""


def derive(
    analysis: Analysis, seconds: float = math.inf, sizes: Mapping[str, int] = MappingProxyType({}), device: str = ""
) -> str:
    """Return the derived space as text, one section for each idea.

    A section for a loop that the file distributes is made for each of its pieces. After ``seconds`` no more sections
    are made, but for the first; those that isl has to find schedules for are made last. Those that win most often
    stand first. Where ``sizes`` say how many iterations loops have, there are tiles that divide them. ``device``: leave
    out the sections for another one, "gpu" or "cpu".
    """
    found, end = Patterns(analysis, sizes=sizes), time.monotonic() + seconds
    thoughts = (
        ("Innermost loops along rows, whose iterations are a CPU's vectors.", vector_order.sections(found)),
        ("A part of the sums for each core, all from one read.", core_parts.sections(found)),
        ("A copy of an array for each part of a loop that accumulates into any of its elements.",
         histograms.sections(found)),
        ("Prefix sums in parallel parts, and the sums of the parts too.", prefix_sums.sections(found)),
        (COPIED,
         _forms(found)),
        ("Products: several rows and columns a thread, and what they read in shared memory; or the order that a CPU's "
         "vectors want.", _products(found)),
        ("Grids over three of more than two parallel loops, several iterations of the others a thread.",
         grid_choices.volumes(found)),
        (ELIMINATED,
         blocked.sections(found)),
        (TAKEN_APART, _values(found)),
        (SHARED_WAVES, shared_waves(found)),
        ("A block of threads for each of many small problems.", grid_choices.batches(found)),
        ("Threads with a recurrence each, unrolled, in small blocks.", grid_choices.recurrences(found)),
        ("Prefix sums in parallel parts, of rows that are many.", prefix_sums.sections(found, many=True)),
        (REORDERED, _schedules(found)),
        (TILED_WAVES, tiled_waves(found)),
        ("Rows that become columns, in tiles that are read along rows and written along rows.",
         grid_choices.transpositions(found)),
        ("Several time steps at once, in tiles that overlap, or in bands of rows.", time_steps.sections(found)),
        ("Elements that threads keep through all iterations.", owners.sections(found)),
        ("Sums along rows and beside each other, from one read.", sums_at_once.sections(found)),
        ("Who adds up: teams of threads, or several blocks.", _sums(found)),
        ("Several rows of a stencil a thread.", _stencils(found)),
        ("Threads for both of two loops that are a triangle.", _grids(found)),
        ("A team of threads for each row.", _teams(found)),
        ("The order of the loops.", single_loops.nests(found)),
        ("Each loop by itself.", single_loops.loops(found)),
        ("The shape of the block.", iter([BLOCKS] if any(outermost(found.body)) else [])),
    )  # fmt: skip
    made: dict[str, list[str]] = {thought: [] for thought, _ in thoughts}
    for thought, own in sorted(thoughts, key=lambda t: t[0] in SCHEDULED_LAST):
        while (not any(made.values()) or time.monotonic() < end) and (section := next(own, None)) is not None:
            if _device(section) in ("", device or _device(section)):
                made[thought].append(section)
    known: set[str] = set()
    sections: list[str] = []
    for thought, some in made.items():
        fresh = [section for section in dict.fromkeys(some) if section not in known]
        known.update(fresh)
        sections += [f"# {thought}\n{section}" if section is fresh[0] else section for section in fresh]
    return "\nor\n".join(nest_combinations.with_others(found, sections)) + "\n"


def _device(section: str) -> str:
    """Return the device that a section is for, "" for any."""
    first, _, _ = section.partition("\n")
    return first.removeprefix("for ") if first.startswith("for ") else ""


def matrix_products(analysis: Analysis, sizes: Mapping[str, int] = MappingProxyType({})) -> str:
    """Return the sections of a derived space for tensor cores, as text; "" where no product is one for them."""
    found = Patterns(analysis, sizes=sizes)
    cores = (matrix_units.sections(f, *_products_in(f)) for f in (found, found.perfect_products))
    return "\nor\n".join(dict.fromkeys(section for some in cores for section in some))


def _forms(found: Patterns) -> Iterator[str]:
    """Yield what to try where variables have copies, or loops are split: then more loops are parallel."""
    for find in (forms.expansions, forms.snapshots, forms.blocks, forms.splits):
        lines = find(found.analysis)
        if lines and found.legal(lines):
            after = replace(found, lines=(*found.lines, *lines))
            if after.modes_of_statements != found.modes_of_statements:
                yield from _developed(after, (_products, _sums, _stencils, single_loops.orders))
                yield from _schedules(after)


def _developed(after: Patterns, makers: Sequence[Callable[[Patterns], Iterator[str]]]) -> Iterator[str]:
    """Yield a form or an order of the codelet with what is tried for its patterns, which the ``makers`` find.

    A sum that one thread would add up has a team in those that are not about sums.
    """
    alone = [f"loop {loop_label(s.loop)}: parallel" for s in after.sums if not s.around]
    lines = [*after.lines, *alone] if alone and after.legal(alone) else [*after.lines]
    if _products in makers:
        yield from (_begin(section, after.lines) for section in _products(after))
    yield from (_begin(section, after.lines) for section in owners.sections(after))
    for make in (_teams, _grids):
        yield from (_begin(section, lines) for section in make(after))
    if _sums in makers:
        yield from divided_sums.sections(after)
    yield "\n".join([*lines, single_loops.SCHEDULED])
    yield from (_begin(section, lines) for section in _persistent(after))
    yield from (_begin(section, after.lines) for make in makers if make is not _products for section in make(after))


def _schedules(found: Patterns) -> Iterator[str]:
    """Yield the distinct orders that isl finds for nests with sequential loops, and what the patterns then are.

    For a CPU, which has enough parallel iterations in an outermost loop, only nests whose outermost loop is sequential
    are scheduled.
    """
    nests = [f for f in found.body if isinstance(f, Loop)]
    serial = [f for f in (*nests, *_in_passes(found.body)) if not found.parallel(f)]
    yield from _scheduled(found, serial, SCHEDULES)
    inside = [f for f in nests if found.parallel(f) and found.serial_around_parallel(f)]
    if inside:
        made = _scheduled(found, [*serial, *inside], SCHEDULES[:DEVELOPED])
        yield from (_begin(section, ("for gpu",)) for section in made if not section.startswith("for cpu"))


def _values(found: Patterns) -> Iterator[str]:
    """Yield orders of a codelet with copies of its scalars, where no order is found without, or more sums are products.

    A scalar that adds up what a nested loop computes keeps the loop from being one of a matrix product.
    """
    values = forms.nested_expansions(found.analysis)
    if values and found.legal(values):
        after = replace(found, lines=(*found.lines, *values))
        if next(_schedules(found), None) is None or _most_products(after) > _most_products(found):
            yield from _schedules(after)


def _most_products(found: Patterns) -> int:
    """Return how many sums are products in that automatic schedule that has most of them."""
    return max(sum(s.product for s in after.sums) for after in _in_orders(found, SCHEDULES[:DEVELOPED]))


def _in_orders(found: Patterns, schedules: Sequence[str]) -> Iterator[Patterns]:
    """Yield the codelet with each of the schedules of its sequential nests, and as it is where none is legal."""
    nests = [f for f in found.body if isinstance(f, Loop) and not found.parallel(f)]
    for words in schedules:
        lines = [x for f in nests if found.legal([x := f"loop {loop_label(f)}: schedule {words}"])]
        yield replace(found, lines=(*found.lines, *lines)) if lines else found


def _scheduled(found: Patterns, nests: Sequence[Loop], schedules: Sequence[str]) -> Iterator[str]:
    """Yield what to try with each of the schedules of the nests.

    An order in which each statement has the same parallel and sequential loops around it as in the text is left out.
    """
    known = [found.body]
    for words in schedules:
        lines = [x for f in nests for x in _order(found, f, words)]
        after = replace(found, lines=(*found.lines, *lines)) if lines else found
        if after.body in known or after.modes_of_statements == found.modes_of_statements:
            continue
        known.append(after.body)
        makers = (_products, _sums, _stencils, single_loops.orders) if len(known) <= 1 + DEVELOPED else ()
        yield from _developed(after, makers)


def _order(found: Patterns, loop: Loop, words: str) -> list[str]:
    """Return the line that schedules a nest, or distributes one in a ``while``, which is not scheduled; [] if neither.

    Distribution takes apart what is parallel and what adds up.
    """
    ways = [f"schedule {words}", *(["distribute"] if loop in _in_passes(found.body) else [])]
    lines = (f"loop {loop_label(loop)}: {way}" for way in ways)
    return list(islice((line for line in lines if found.legal([line])), 1))


def _in_passes(body: tuple[Stmt, ...]) -> list[Loop]:
    """Return the nests in the loops that data end."""
    made = [s for s in body if isinstance(s, While) or (isinstance(s, Loop) and continuing_condition(s) is not None)]
    return [f for stmt in made for f in outermost(stmt.body)]


def _begin(section: str, lines: Sequence[str]) -> str:
    """Return the section with the lines before its own, after the line that says for which targets it is."""
    own = [line for line in section.splitlines() if line not in lines]
    place = 1 if own[0].startswith("for ") and not lines[0].startswith("for ") else 0
    return "\n".join([*own[:place], *lines, *own[place:]])


def _persistent(found: Patterns) -> Iterator[str]:
    """Yield one launch for all iterations of a sequential loop around parallel ones."""
    lines = _single_launches(found)
    if lines:
        yield "\n".join(["for gpu", *lines, "codelet: grid blocksize {32x8, 256x1}"])


def _single_launches(found: Patterns) -> list[str]:
    """Return a line for each sequential loop around parallel ones whose iterations can be one launch."""
    loops = (f for f in found.body if isinstance(f, Loop) and not found.parallel(f))
    lines = [x for f in loops if found.legal([x := f"loop {loop_label(f)}: persistent"])]
    return [f"{x} {{1, 2}}" for x in lines]


def _products(found: Patterns) -> Iterator[str]:
    yield from _in_tiles(found.perfect_products)
    products = [s for s in found.sums if s.product]
    ordered = [(p, order) for p in products if (order := found.vector_order(p))]
    turned = [f"loop {loop_label(p.outer)}: permute {', '.join(order)}" for p, order in ordered]
    if turned and found.legal(turned):
        outer, sums = at_loops(p.outer for p, _ in ordered), at_loops(p.loop for p, _ in ordered)
        yield "\n".join(["for cpu", *turned, f"{outer}: {{ | unroll {{2, 4}}, jam }}",
                         f"{sums}: {{ | unroll {{2, 4, 8}}, jam }}"])  # fmt: skip
        yield "\n".join(["for cpu", *turned, f"{sums}: unroll {{3, 4, 8}}, remainder, jam"])
        for p, order in ordered[:1]:
            tiles = f"loop {loop_label(p.outer)}: tile {order[0]}:32, {order[1]}:{{32, 64}}, {order[2]}:{{256, 512}}"
            if found.legal([*turned, tiles]):
                yield "\n".join(["for cpu", *turned, tiles])
    if found.distributed_products is not None:
        yield from _apart(found.distributed_products)
    left = [p for p in products if not found.vector_order(p)]
    if left:
        yield "\n".join(["for cpu", f"{at_loops(p.outer for p in left)}: {{ | unroll {{2, 4}}, jam }}",
                         f"{at_loops(p.inner for p in left)}: {{ | unroll {{2, 4}}, jam }}"])  # fmt: skip


def _products_in(found: Patterns) -> tuple[list[ReductionPattern], list[str]]:
    """Return the products, and the lines with which sections for them on a GPU begin."""
    products = [s for s in found.sums if s.product]
    first = ["for gpu", *found.lines, *_batches(found, products)]
    return products, first + _beside(found, [s for s in found.sums if not s.product])


def _in_tiles(found: Patterns) -> Iterator[str]:
    """Derive the space of products on a GPU."""
    products, first = _products_in(found)
    yield from matrix_units.sections(found, products, first)
    even = [p for p in products if not p.uneven and (found.iterations(p.loop) or WARP) >= WARP]
    for outer, inner, blocks in fitted_tiles.of_threads(found, even):
        lines = _staged(even, outer, inner, "tile 16", "out")
        if found.legal(lines):
            yield "\n".join([*first, *_factors(found, even), *lines, f"codelet: grid blocksize {{{blocks}}}"])
    for outer, inner, strip, read, blocks in STAGED:
        fit = [p for p in even if found.legal(_staged([p], outer, inner, strip, read))]
        if fit:
            packed = [PACK] if any(p.triangular for p in fit) else []
            yield "\n".join([*first, *_factors(found, fit), *_staged(fit, outer, inner, strip, read),
                             f"codelet: grid blocksize {{{blocks}}}", *packed])  # fmt: skip
            if outer == "unroll 4, jam":
                parts = [
                    *_staged(fit, outer, inner, "tile 16", read),
                    f"{at_loops(p.loop for p in fit)}: rfactor {{2, 4}}",
                ]
                if found.legal(parts):
                    yield "\n".join([*first, *parts, "codelet: grid blocksize {16x8, 16x16}", *packed])
    yield from uneven_products.sections(found, products, first)
    if products and found.legal(_register_tiles(products)):
        lines = ["for gpu", *found.lines, *_batches(found, products), *_register_tiles(products)]
        yield "\n".join([*lines, "codelet: grid blocksize {32x4, 32x8, 64x4}"])
    halved = [p for p in even if found.legal([f"loop {loop_label(p.outer)}: fold", *_staged([p], *HALVED, half=True)])]
    if halved:
        first = [*first, f"{at_loops(p.outer for p in halved)}: fold"]
        last = ["codelet: grid blocksize {16x8, 16x16}", PACK]
        yield "\n".join([*first, *_staged(halved, *HALVED, half=True), *last])
        split = f"{at_loops(p.loop for p in halved)}: {{ | rfactor {{2, 4}} }}"
        yield "\n".join([*first, *_staged(halved, *SHARED, half=True), split, *last])


def _register_tiles(products: Sequence[ReductionPattern]) -> list[str]:
    """Return a tile of registers for each thread, without one in shared memory: its loops need not run as one.

    In a triangle, the threads of a block have sums of different lengths.
    """
    return [f"{at_loops(p.outer for p in products)}: unroll {{4, 8}}, jam",
            f"{at_loops(p.inner for p in products)}: unroll {{2, 4}}, split, jam"]  # fmt: skip


def _batches(found: Patterns, products: Sequence[ReductionPattern]) -> list[str]:
    """Return grids of three dimensions for the products that a loop repeats, and for what stands beside them."""
    lines: list[str] = []
    for p in products:
        if p.batch is not None:
            line = f"loop {p.batch.number}: gridify({p.batch.var}, {p.outer.var}, {p.inner.var})"
            lines += [line] if line not in lines and found.legal([*lines, line]) else []
    return lines


def _apart(found: Patterns) -> Iterator[str]:
    """Products of which the rest of their nests was taken away, several rows at a time.

    With sums along columns in strips of these, and what goes along rows and columns at once in squares.
    """
    fit = [p for p in found.sums if p.product and found.vector_order(p)]
    turned = [f"loop {loop_label(p.outer)}: permute {', '.join(found.vector_order(p))}" for p in fit]
    if not fit or not found.legal(turned):
        return
    lines = [*found.lines, *turned, f"{at_loops(p.outer for p in fit)}: unroll 4, jam",
             f"{at_loops(p.loop for p in fit)}: unroll {{4, 8}}, jam"]  # fmt: skip
    columns = [s.around[0] for s in found.sums if len(s.around) == 1 and not s.contiguous and not s.outside_target_loop]
    if columns:
        lines.append(f"{at_loops(columns)}: {{ | unroll {{16, 32}}, jam }}")
    for p, q in found.transposes:
        square = f"tile {p.var}:16, {q.var}:16"
        if found.legal([*turned, f"loop {loop_label(p)}: {square}"]):
            lines.append(f"loop {loop_label(p)}: {{ | {square} }}")
    yield "\n".join(["for cpu", *lines])


def _factors(found: Patterns, products: Sequence[ReductionPattern]) -> list[str]:
    """Return the line of a space that offers ``factor`` for the products of which it is legal."""
    fit = [p.loop for p in products if found.legal([f"loop {loop_label(p.loop)}: factor"])]
    return [f"{at_loops(fit)}: {{ | factor }}"] if fit else []


def _staged(
    products: Sequence[ReductionPattern], outer: str, inner: str, strip: str, read: str, *, half: bool = False
) -> list[str]:
    """Register tiles, and what they read in shared memory, the next tiles on their way.

    ``read``: see ``_tiles``; ``half``: of a triangle.
    """
    triangles = [p for p in products if p.triangular or half]
    boxes = [f"{at_loops(f for p in triangles for f in (p.outer, p.inner))}: box 8"] if triangles else []
    return [
        *boxes,
        f"{at_loops(p.outer for p in products)}: {outer}",
        f"{at_loops(p.inner for p in products)}: {inner}",
        f"{at_loops(p.loop for p in products)}: {strip}",
        *(f"loop {loop_label(p.loop)}: {_tiles(p, read)}" for p in products),
    ]


def _tiles(product: ReductionPattern, read: str) -> str:
    """``read``: by strips written ``out``, or these and what goes along rows ``transposed`` in its tile, or neither."""
    words = [f"stage {', '.join(product.reused)}", "buffers 2"]
    if read == "transposed" and product.across:
        words.append(f"transposed({', '.join(product.across)})")
    if read:
        words.append(f"unroll {4 if product.triangular else 16}")
    return ", ".join(words)


def _beside(found: Patterns, sums: Iterable[ReductionPattern]) -> list[str]:
    """Return a team of threads for each sum.

    Along a row for one that goes along it, else along the columns beside it.
    """
    lines: list[str] = []
    for s in sums:
        whole = f"loop {loop_label(s.loop)}: parallel"
        upright = bool(s.around) and not s.contiguous and not s.outside_target_loop
        grid = f"loop {loop_label(s.around[-1])}: gridify({s.loop.var}, {s.around[-1].var})" if upright else ""
        line = next((x for x in (grid, whole) if x and found.legal([*lines, x])), None)
        lines += [line] if line is not None else []
    return lines


def _sums(found: Patterns) -> Iterator[str]:
    """Yield the loops that teams of threads can reduce, all of them together.

    Those along columns otherwise, too, with what stands beside them for the same threads.
    """
    yield from divided_sums.sections(found)
    lines: list[str] = []
    teams: list[ReductionPattern] = []
    for s in found.sums:
        line = f"loop {loop_label(s.loop)}: parallel"
        if (found.iterations(s.loop) or WARP) >= WARP // 2 and found.legal([*lines, line]):
            lines.append(line)
            teams.append(s)
    around = {identity(loop): sum(map(found.parallel, loops)) for loops, loop in nested(found.body)}
    blocks = BATCHES if any(around[identity(s.loop)] > 1 for s in teams) else TEAMS
    if lines:
        yield "\n".join([*lines, blocks])
    wide = [f"loop {loop_label(s.loop)}: vectorize 4" for s in teams if s.contiguous]
    if wide and found.legal([*lines, *wide]):
        yield "\n".join(["for gpu", *lines, f"{at_loops(s.loop for s in teams if s.contiguous)}: {VECTORS}", blocks])
    yield from _shared(found, teams, lines, BATCHES if blocks == BATCHES else SHARED_BLOCKS)
    if found.distributed_column_sums is not None:
        yield from _shared(found.distributed_column_sums, found.distributed_column_sums.sums, (), SHARED_BLOCKS)
    dealt = [s for s in found.sums if found.legal([f"loop {loop_label(s.loop)}: rfactor 4"])]
    dealt = [s for s in dealt if not histograms.is_histogram(found, s.loop)]
    if dealt:
        yield "\n".join([*lines, f"{at_loops(s.loop for s in dealt)}: {PARTS}"])
    columns = [(s, turn) for s in found.sums if (turn := _upright(found, s)) is not None]
    if columns:
        rows = _beside(found, [s for s in teams if all(s is not c for c, _ in columns)])
        turned = [line for _, turn in columns for line in turn]
        yield "\n".join(
            ["for gpu", *rows, *turned, f"{at_loops(s.loop for s, _ in columns)}: rfactor {{16, 64}}", BESIDE]
        )


def _shared(found: Patterns, sums: Sequence[ReductionPattern], known: Sequence[str], blocks: str) -> Iterator[str]:
    """Teams that go along rows or columns as their sums do, with what stands beside these.

    Nothing where that is what is ``known``. What goes along columns and adds up nothing has rows of its own.
    """
    beside = _beside(found, sums)
    shared = [(s, f) for s in sums for f in found.adjacent_loops(s)]
    alone = dict.fromkeys(loop_label(f) for s, f in shared if not s.around)
    rows = [band for band in found.stencils if len(band) == 2 and found.strided_nests(band)] if found.lines else []
    if beside == [*known] and not alone and not rows:
        return
    together = [f"loop {f}: {{ parallel, team | }}" for f in alone]
    turned = [f"loop {loop_label(p)}: permute {q.var}, {p.var}" for p, q in rows]
    own = [s for s in sums if not s.around], [s for s in sums if s.around]
    loops = ([*(s.loop for s in some), *(f for s, f in shared if s in some)] for some in own)
    more = [f"{at_loops(sorted(f, key=identity))}: {{ | unroll 4 }}" for f in loops if f]
    jammed = [f"{at_loops(q for _, q in rows)}: {{ | unroll {{2, 4}}, jam }}"] if rows else []
    yield "\n".join(["for gpu", *found.lines, *beside, *together, *turned, *more, *jammed, blocks])


def _upright(found: Patterns, s: ReductionPattern) -> list[str] | None:
    """Return what makes a sum along columns one that several blocks can share, with the columns beside each other.

    None where nothing does.
    """
    loop = loop_label(s.loop)
    turn = [f"loop {loop}: permute {s.around[-1].var}, {s.loop.var}"] if s.outside_target_loop else []
    fits = bool(s.around) and not s.contiguous and found.legal([*turn, f"loop {loop}: rfactor 4"])
    return turn if fits else None


def _stencils(found: Patterns) -> Iterator[str]:
    summed = {id(f) for s in found.sums for f in s.around}
    bands = [band for band in found.stencils if not any(id(f) in summed for f in band)]
    # First, for the threads of a grid over the two outer loops read no neighbours.
    deep = [band for band in bands if len(band) == 3]
    if deep:
        grids = [f"loop {loop_label(band[0])}: gridify({', '.join(f.var for f in band)})" for band in deep]
        inner, box = at_loops(band[2] for band in deep), f"box {WARP}"
        aligned = [f"{inner}: {{ | {box} | {VECTORS}, guarded }}"] if found.legal([f"{inner}: {box}"]) else []
        planes, rows = (at_loops(band[k] for band in deep) for k in range(2))
        blocks = "codelet: grid blocksize {32x4, 32x8, 64x4}"
        yield "\n".join(["for gpu", *grids, f"{planes}: {{ | tile {{2, 4, 8}} }}", *aligned, blocks])
        yield "\n".join(["for gpu", *grids, f"{planes}: unroll {{2, 4, 8}}, guarded, jam",
                         f"{rows}: {{ | unroll 2, guarded, jam }}", *aligned, blocks])  # fmt: skip
    if bands:
        # On a CPU, rows beside each other keep LLVM from making vectors: their stores might overlap.
        yield "\n".join(["for gpu", f"{at_loops(band[0] for band in bands)}: unroll {{2, 3, 4, 8}}, guarded, jam",
                         "codelet: grid blocksize {32x4, 32x8, 64x4, 128x2}"])  # fmt: skip
        inner = at_loops(band[-1] for band in bands)
        if found.legal([f"{inner}: vectorize 4, guarded"]):
            yield "\n".join(["for gpu", f"{at_loops(band[0] for band in bands)}: {{ | unroll {{2, 4}}, guarded, jam }}",
                             f"{inner}: {VECTORS}, guarded", "codelet: grid blocksize {32x4, 32x8, 64x4}"])  # fmt: skip


def _grids(found: Patterns) -> Iterator[str]:
    """Yield grids over loops of which the bounds of the inner name the outer: else each thread has all of the inner."""
    lines: list[str] = []
    for outer, inner in found.triangles:
        line = f"loop {loop_label(outer)}: gridify({outer.var}, {inner.var})"
        lines += [line] if found.legal([*lines, line]) else []
    if lines:
        yield "\n".join(["for gpu", *lines, "codelet: grid blocksize {32x8, 32x4, 16x16, 64x4}"])


def _teams(found: Patterns) -> Iterator[str]:
    """Yield a team of threads for each iteration of a parallel loop around several loops, which it shares."""
    lines: list[str] = []
    for loops in found.rows:
        line = f"{at_loops(loops)}: parallel, team"
        lines += [line] if found.legal([*lines, line]) else []
    if lines:
        beside = f"{at_loops(found.adjacent_to_rows)}: parallel, team" if found.adjacent_to_rows else ""
        if beside and found.legal([*lines, beside]):
            lines.append(beside.replace("parallel, team", "{ parallel, team | }"))
        yield "\n".join(["for gpu", *lines, ROWS])
        launches = _single_launches(found)
        if launches and found.legal([*lines, *launches]):
            yield "\n".join(["for gpu", *lines, *launches, "codelet: grid blocksize {32x8, 256x1}"])
