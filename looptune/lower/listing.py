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
from functools import reduce

from looptune.ir.c_printer import C_TYPES, declaration, expression_text, function, statements
from looptune.ir.nodes import Array, Assign, Binary, Call, Const, Load, Local, Loop, Node, Stmt, Var
from looptune.ir.rewrite import rewrite, walk
from looptune.ir.simplify import mul
from looptune.lower.addresses import without_addresses
from looptune.lower.cpu_names import CORES, IN_ANY_ORDER
from looptune.lower.plan import HostIf, HostLoop, HostWhile, Kernel, Launch, Plan, Step, with_kernels
from looptune.lower.team import Phase, TeamBranch, TeamFor, TeamLoop, TeamReduce, TeamSingle, all_phases
from looptune.lower.temporal_tiles import steps_per_launch
from looptune.lower.thread_code import map_thread_code
from looptune.lower.tiles import Tile, filled_tiles


def print_plan(plan: Plan) -> str:
    """Return the plan as the text of one C function; before loops are mapped that is the codelet's."""
    if "map-loops" not in plan.passes:
        return function(plan.codelet, pragmas=True)
    if "local-cse" in plan.passes:
        plan = _with_flat_arrays(plan)
    params = ", ".join(declaration(p) for p in plan.codelet.params)
    locals_ = [f"  {declaration(_in_memory(v))};  // in device memory" for v in plan.device_locals]
    if any(CORES.name in kernel.scalars for kernel in plan.kernels):
        locals_.append(f"  {declaration(Local(CORES.name, CORES.dtype))};  // how many cores there are")
    return "\n".join([f"void {plan.codelet.name}({params})", "{", *locals_, *_steps(plan, plan.steps, "  "), "}", ""])


def _with_flat_arrays(plan: Plan) -> Plan:
    """Return the plan with arrays of one subscript, as its kernels have them, and addresses as C has them."""

    def flat(local: Local) -> Local:
        return replace(local, shape=(reduce(mul, local.shape),)) if local.shape else local

    params = tuple(_flat_parameter(p) if isinstance(p, Array) else p for p in plan.codelet.params)
    own = tuple(map(flat, plan.codelet.locals))
    steps = with_kernels(plan.steps, lambda kernel: map_thread_code(kernel, without_addresses))
    return replace(
        plan, codelet=replace(plan.codelet, params=params, locals=own), steps=steps,
        device_locals=tuple(map(flat, plan.device_locals)),
    )  # fmt: skip


def _flat_parameter(array: Array) -> Array:
    """Return the array with as many elements, which are not known where the first extent is not declared."""
    known = tuple(n for n in array.shape if n is not None)
    return replace(array, shape=(reduce(mul, known) if len(known) == len(array.shape) else None,))


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
            case HostWhile(flag, cond, body):
                yield f"{indent}// host, which reads {flag}: {expression_text(cond)}"
                yield f"{indent}while ({flag}[0]) {{"
                yield from (*_steps(plan, body, indent + "  "), f"{indent}}}")
            case HostIf(cond, then, other, flag):
                read = f", which reads {flag}: {expression_text(cond)}" if flag else ""
                cond = Load(flag, (Const(0),), "int32") if flag else cond
                yield from (f"{indent}// host{read}", f"{indent}if ({expression_text(cond)}) {{")
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
        yield from _text(kernel, kernel.body, plan, indent) if kernel.time_body is None else _steps_of(kernel, indent)
    elif kernel.resident is not None:
        yield f"{indent}// threads keep their elements of tiles of {' x '.join(map(str, kernel.resident.shape))}"
        made = kernel.resident_body is not None
        yield from _kept(kernel, indent) if made else _text(kernel, kernel.body, plan, indent)
    elif kernel.team is not None and kernel.team.phases:
        yield from _team(kernel, plan, indent)
    else:
        if kernel.warp_tiles is not None:
            shape = kernel.warp_tiles.shape
            said = f"{shape.rows} x {shape.columns} sums, its warps {shape.warp_rows} x {shape.warp_columns}"
            yield f"{indent}// tensor cores: a block has {said}"
        yield from _text(kernel, _under_axes(kernel), plan, indent)


def _steps_of(kernel: Kernel, indent: str) -> Iterator[str]:
    """Yield what threads do of a tile in blocks at the edge of space, which ask for all bounds."""
    assert kernel.time_tile is not None, "the kernel takes several steps"
    assert kernel.time_body is not None, "its body is made"
    steps, inside = kernel.time_body.anywhere, indent + "  "
    computed = tuple(s for group in steps.groups for s in (*group.compute, *group.publish))
    yield from (f"{indent}{declaration(v)};" for v in kernel.locals)
    for shared in kernel.time_body.shared:
        yield f"{indent}{C_TYPES[shared.dtype]} {shared.name}[{shared.count}];  // shared by a block"
    yield from _places(kernel, (*steps.load, *steps.publish, *computed, *steps.store), indent)
    yield from (f"{indent}// load", statements((*steps.load, *steps.publish), {}, indent))
    yield indent + _head(kernel.time_tile.loop)
    for group in steps.groups:
        for element in group.lanes:
            yield f"{inside}{element.target} = {element.source};  // of the lane {abs(element.by)} {element.side}"
        yield from (f"{inside}// compute", statements(group.compute, {}, inside))
        yield from (f"{inside}// publish", statements(group.publish, {}, inside))
    yield f"{indent}}}"
    yield from (f"{indent}// store", statements(steps.store, {}, indent))


def _kept(kernel: Kernel, indent: str) -> Iterator[str]:
    """Yield what threads do in an iteration of a loop with the elements that they keep."""
    body = kernel.resident_body
    assert body is not None, "its body is made"
    parts = (("load", body.load), ("gather", body.gather), ("compute", body.compute),
             ("exchange", body.exchange), ("store", body.store))  # fmt: skip
    whole = tuple(s for _, part in parts for s in part)
    yield from (f"{indent}{declaration(v)};" for v in kernel.locals)
    for shared in body.shared:
        yield f"{indent}{C_TYPES[shared.dtype]} {shared.name}[{shared.count}];  // shared by a block"
    yield from _places(kernel, whole, indent)
    for name, part in parts:
        yield from (f"{indent}// {name}", statements(part, {}, indent))


def _places(kernel: Kernel, body: tuple[Stmt, ...], indent: str) -> Iterator[str]:
    """Yield the declarations of variables that say where a thread is: names that nothing else declares."""
    known = {*kernel.arrays, *kernel.scalars, *(v.name for v in kernel.locals), *(a.var for a in kernel.loops)}
    made = {n.target.name for n in walk(body) if isinstance(n, Assign) and isinstance(n.target, Var)}
    loops = {n.var for n in walk((*body, *kernel.body)) if isinstance(n, Loop)}
    names = {n.name: n.dtype for n in walk(body) if isinstance(n, Var)}
    for name in sorted(names.keys() - known - made - loops):
        yield f"{indent}{declaration(Local(name, names[name]))};  // where the thread is"


def _under_axes(kernel: Kernel) -> tuple[Stmt, ...]:
    """Return the loops of the grid around what a thread does."""
    body = kernel.body if kernel.tiles is None else kernel.tiles.body
    for axis in reversed(kernel.loops):
        body = (replace(axis, body=body, mode="parallel", thread_axis=""),)
    return body


def _marks(kernel: Kernel) -> Mapping[str, str]:
    """By a loop's variable what it is of the grid."""
    if kernel.serial:
        return {}
    along = {"x": ", its blocks along y", "y": ", its blocks along x"} if kernel.exchanged else {}
    return {axis.var: f"// grid {dim}{along.get(dim, '')}" for dim, axis in kernel.grid_axes}


def _text(kernel: Kernel, body: tuple[Stmt, ...], plan: Plan, indent: str) -> Iterator[str]:
    grid = _marks(kernel)
    for tile in kernel.tiles.tiles if kernel.tiles is not None else ():
        yield f"{indent}{C_TYPES[tile.dtype]} {tile.name}[{tile.buffers * tile.size}];  // shared by a block"
    if kernel.tiles is not None:
        yield from _places(kernel, kernel.tiles.body, indent)
    for tile in kernel.tiles.all if kernel.tiles is not None else ():
        yield indent + _fill(tile)

    reordered = {n.var for n in walk(body) if isinstance(n, Loop) and any(map(_in_any_order, walk(n.body)))}

    def marks(loop: Loop, inside: Mapping[str, Local]) -> str:
        fills = " ".join(map(_fill, filled_tiles(loop)))
        order = "// sums and products in any order" if loop.var in reordered else ""
        return fills if fills else grid.get(loop.var, order)

    body = rewrite(_in_order, body)
    yield statements(body, _declared(kernel, body, plan), indent, pragmas=True, marks=marks)


def _in_any_order(n: Node) -> bool:
    return isinstance(n, Call) and n.fn in IN_ANY_ORDER.values()


def _in_order(n: Node) -> Node | None:
    """Return an operation whose order is free as C has it."""
    if not (isinstance(n, Call) and _in_any_order(n)):
        return None
    (op,) = (op for op, name in IN_ANY_ORDER.items() if name == n.fn)
    return Binary(op, *n.args)


def _fill(tile: Tile) -> str:
    """Return a comment that says what is copied to one tile."""
    at = "".join(f"[{expression_text(e)}]" for e in tile.origin)
    ahead = f", {tile.buffers - 1} iterations of {tile.prefetch_loop} ahead" if tile.prefetch_loop else ""
    copies = f", {len(tile.copies[0])} a thread" if tile.copies else ""
    return (
        f"/* fill {tile.name}: {' x '.join(map(str, tile.shape))} elements of {tile.array} from {at}{ahead}{copies} */"
    )


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
    made = _declared(kernel, _statements(kernel.team.phases), plan)
    yield from (f"{inside}{declaration(v)};" for v in made.values())
    yield from (f"{inside}{declaration(v)};  // shared by a block" for v in kernel.team.tiles)
    yield from _phases(kernel.team.phases, inside)
    for _ in kernel.loops:
        inside = inside[2:]
        yield f"{inside}}}"


def _statements(phases: tuple[Phase, ...]) -> tuple[Stmt, ...]:
    """Return the statements of all phases."""
    found: list[Stmt] = []
    for phase in all_phases(phases):
        match phase:
            case TeamSingle(body):
                found += body
            case TeamReduce(loop, _, _, updates):
                found += (loop, *updates)
            case TeamFor(loop):
                found.append(loop)
    return tuple(found)


def _phases(phases: tuple[Phase, ...], indent: str) -> Iterator[str]:
    for phase in phases:
        match phase:
            case TeamSingle(body, broadcast, by_all):
                told = f", which tells the others {', '.join(v.name for v in broadcast)}" if broadcast else ""
                yield f"{indent}// {'every lane' if by_all else 'lane 0'}{told}"
                yield statements(body, {}, indent, pragmas=True)
            case TeamReduce(loop, accumulators, _, updates):
                for a in accumulators:
                    yield statements((Assign(a.private, a.identity),), {}, indent)
                yield f"{indent}// shared by the lanes"
                yield statements((replace(loop, reductions=()),), {}, indent)
                yield f"{indent}// lanes combine {', '.join(a.private.name for a in accumulators)}, then lane 0"
                yield statements(updates if updates else tuple(a.update for a in accumulators), {}, indent)
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
