"""A plan as text, in the notation of ``looptune transform``: C, with comments that say what blocks and threads do.

    // kernel gemm_0(A, B, C, n): blocks of 32 x 8 threads
    // grid y
    #pragma hmppcg parallel
    for (int i = 0; i < n; i++) {
      // grid x
      #pragma hmppcg parallel
      for (int j = 0; j < n; j++) {
        float C_r;
        ...

The loops of a team stand in phases, and a loop before which a block copies tiles says which. It is what
``looptune emit FILE --after PASS`` prints.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from looptune.ir.c_printer import C_TYPES, declaration, expression_text, function, statements
from looptune.ir.nodes import Assign, Const, Local, Loop, Stmt, Var
from looptune.ir.rewrite import walk
from looptune.lower.passes.temporal_tiling import steps_per_launch
from looptune.lower.plan import HostIf, HostLoop, Kernel, Launch, Plan, Step
from looptune.lower.team import Phase, TeamBranch, TeamFor, TeamLoop, TeamReduce, TeamSingle
from looptune.lower.tiles import Tile, filled_tiles


def print_plan(plan: Plan) -> str:
    """Return the plan as the text of one C function; before loops are mapped that is the codelet's."""
    if "map-loops" not in plan.passes:
        return function(plan.codelet, pragmas=True)
    params = ", ".join(declaration(p) for p in plan.codelet.params)
    locals_ = [f"  {declaration(_in_memory(v))};  // in device memory" for v in plan.device_locals]
    return "\n".join([f"void {plan.codelet.name}({params})", "{", *locals_, *_steps(plan, plan.steps, "  "), "}", ""])


def _in_memory(v: Local) -> Local:
    return v if v.shape else replace(v, shape=(Const(1),))


def _steps(plan: Plan, steps: tuple[Step, ...], indent: str) -> Iterator[str]:
    for step in steps:
        match step:
            case Launch(kernel):
                yield from _kernel(plan, kernel, indent)
            case HostLoop(var, lo, hi, stride, body, blocks):
                who = f"one launch, {blocks} blocks a multiprocessor" if blocks else "host"
                yield f"{indent}// {who}"
                yield indent + _head(Loop(var, lo, hi, (), stride, dtype=lo.dtype))
                yield from (*_steps(plan, body, indent + "  "), f"{indent}}}")
            case HostIf(cond, then, other):
                yield from (f"{indent}// host", f"{indent}if ({expression_text(cond)}) {{")
                yield from _steps(plan, then, indent + "  ")
                if other:
                    yield from (f"{indent}}} else {{", *_steps(plan, other, indent + "  "))
                yield f"{indent}}}"


def _head(loop: Loop) -> str:
    by = f"{loop.var}++" if loop.step == 1 else f"{loop.var} += {loop.step}"
    start = f"{C_TYPES[loop.dtype]} {loop.var} = {expression_text(loop.lo)}"
    return f"for ({start}; {loop.var} < {expression_text(loop.hi, 8)}; {by}) {{"


def _kernel(plan: Plan, kernel: Kernel, indent: str) -> Iterator[str]:
    x, y = kernel.block
    given = ", ".join((*kernel.arrays, *kernel.scalars))
    apart = ", products apart from sums" if kernel.no_contraction else ""
    threads = f"{x} x {y} threads" if y > 1 else f"{x} thread{'s' * (x > 1)}"
    who = "cores" if kernel.serial else f"blocks of {threads}"
    yield f"{indent}// kernel {kernel.name}({given}): {who}{apart}"
    if kernel.packing is not None:
        yield f"{indent}// launched as {' x '.join(map(str, kernel.packing.blocks))} blocks: idle ones are left out"
    if kernel.serial:
        yield from _text(kernel, kernel.serial, plan, indent)
    elif kernel.time_tile is not None:
        steps, core = steps_per_launch(kernel.time_tile.loop), " x ".join(map(str, kernel.time_tile.core))
        yield f"{indent}// {steps} steps of {kernel.time_tile.loop.var} in tiles with cores of {core}"
        yield from _text(kernel, kernel.body, plan, indent)
    elif kernel.team is not None and kernel.team.phases:
        yield from _team(kernel, plan, indent)
    else:
        yield from _text(kernel, _under_axes(kernel), plan, indent)


def _under_axes(kernel: Kernel) -> tuple[Stmt, ...]:
    """Return the loops of the grid around what a thread does."""
    body = kernel.body if kernel.tiles is None else kernel.tiles.body
    for axis in reversed(kernel.loops):
        body = (replace(axis, body=body, mode="parallel", thread_axis=""),)
    return body


def _marks(kernel: Kernel) -> Mapping[str, str]:
    """By a loop's variable what it is of the grid."""
    return {} if kernel.serial else {axis.var: f"// grid {dim}" for dim, axis in kernel.grid_axes}


def _text(kernel: Kernel, body: tuple[Stmt, ...], plan: Plan, indent: str) -> Iterator[str]:
    grid = _marks(kernel)
    for tile in kernel.tiles.tiles if kernel.tiles is not None else ():
        yield f"{indent}{C_TYPES[tile.dtype]} {tile.name}[{tile.buffers * tile.size}];  // shared by a block"
    for tile in kernel.tiles.all if kernel.tiles is not None else ():
        yield indent + _fill(tile)

    def marks(loop: Loop, inside: Mapping[str, Local]) -> str:
        fills = " ".join(map(_fill, filled_tiles(loop)))
        return fills if fills else grid.get(loop.var, "")

    yield statements(body, _declared(kernel, body, plan), indent, pragmas=True, marks=marks)


def _fill(tile: Tile) -> str:
    """Return a comment that says what is copied to one tile."""
    at = "".join(f"[{expression_text(e)}]" for e in tile.origin)
    ahead = f", {tile.buffers - 1} iterations of {tile.prefetch_loop} ahead" if tile.prefetch_loop else ""
    return f"/* fill {tile.name}: {' x '.join(map(str, tile.shape))} elements of {tile.array} from {at}{ahead} */"


def _declared(kernel: Kernel, body: tuple[Stmt, ...], plan: Plan) -> dict[str, Local]:
    """Return the locals that occur, and those that passes added without a declaration, of their value's type."""
    known = {v.name for v in (*plan.codelet.params, *plan.device_locals)}
    made = {n.target.name: Local(n.target.name, n.target.dtype) for n in walk(body)
            if isinstance(n, Assign) and isinstance(n.target, Var) and n.target.name not in known}  # fmt: skip
    return made | {v.name: v for v in kernel.locals}


def _team(kernel: Kernel, plan: Plan, indent: str) -> Iterator[str]:
    """Yield the loops of the grid around the phases of a team."""
    assert kernel.team is not None, "the kernel has a team"
    grid, inside = _marks(kernel), indent
    for axis in kernel.loops:
        yield from (f"{inside}{grid[axis.var]}", inside + _head(axis))
        inside += "  "
    yield f"{inside}// a team of {kernel.lanes} threads"
    yield from (f"{inside}{declaration(v)};" for v in kernel.locals)
    yield from _phases(kernel.team.phases, inside)
    for _ in kernel.loops:
        inside = inside[2:]
        yield f"{inside}}}"


def _phases(phases: tuple[Phase, ...], indent: str) -> Iterator[str]:
    for phase in phases:
        match phase:
            case TeamSingle(body, broadcast, by_all):
                told = f", which tells the others {', '.join(v.name for v in broadcast)}" if broadcast else ""
                yield f"{indent}// {'every lane' if by_all else 'lane 0'}{told}"
                yield statements(body, {}, indent, pragmas=True)
            case TeamReduce(loop, accumulators):
                for a in accumulators:
                    yield statements((Assign(a.private, a.identity),), {}, indent)
                yield f"{indent}// shared by the lanes"
                yield statements((replace(loop, reductions=()),), {}, indent)
                yield f"{indent}// lanes combine {', '.join(a.private.name for a in accumulators)}, then lane 0"
                yield statements(tuple(a.update for a in accumulators), {}, indent)
            case TeamFor(loop):
                yield f"{indent}// shared by the lanes"
                yield statements((replace(loop, reductions=()),), {}, indent)
            case TeamLoop(loop, body):
                yield from (f"{indent}// all lanes", indent + _head(loop), *_phases(body, indent + "  "), f"{indent}}}")
            case TeamBranch(cond, then, other):
                yield from (f"{indent}if ({expression_text(cond)}) {{", *_phases(then, indent + "  "))
                if other:
                    yield from (f"{indent}}} else {{", *_phases(other, indent + "  "))
                yield f"{indent}}}"
