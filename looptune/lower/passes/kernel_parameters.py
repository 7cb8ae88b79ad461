"""Find the parameters of a kernel: the arrays and scalars of the codelet, and of the host, that its text names."""

from __future__ import annotations

from dataclasses import replace

from looptune.ir.def_use import names_in, referenced_names, stride_parameters
from looptune.ir.nodes import Loop, Scalar
from looptune.ir.rewrite import walk
from looptune.lower.plan import Kernel, Plan, device_arrays, host_loops
from looptune.lower.staged_tiles import staged_arrays


def find_parameters(kernel: Kernel, plan: Plan) -> Kernel:
    """Return the kernel with its parameters, arrays and scalars in the codelet's order, then others by name.

    Of the extents of an array it needs those by which subscripts are multiplied; all where a tile of it is copied,
    which may reach over its end.
    """
    codelet, body = plan.codelet, kernel.body
    pairs = (*(kernel.time_tile.spares if kernel.time_tile is not None else ()),
             *(kernel.resident.spares if kernel.resident is not None else ()))  # fmt: skip
    spares = {a for pair in pairs for a in pair}
    used = spares | referenced_names(body) | referenced_names(tuple(replace(a, body=()) for a in kernel.loops))
    used |= set() if kernel.warp_tiles is None else names_in(tuple(o.within for o in kernel.warp_tiles.operands))
    bound = {f.var for f in (*kernel.loops, *walk(body)) if isinstance(f, Loop)}
    own = {v.name for v in kernel.locals}
    in_memory = device_arrays(codelet, plan.device_locals)
    arrays = tuple(a.name for a in in_memory if a.name in used - own)
    tiled = {*staged_arrays((*kernel.loops, *walk(body))), *spares}
    extents = {
        n
        for a in in_memory
        if a.name in arrays
        for n in (names_in(a.shape) if a.name in tiled else stride_parameters(a))
    }
    given = {p.name for p in codelet.params if isinstance(p, Scalar)}
    free = (used | extents) - bound - own - set(arrays)
    hosts = {loop.var for loop in host_loops(plan.steps)}
    assert free <= given | hosts, f"{kernel.name}: {sorted(free - given - hosts)} are variables of no loop around it"
    order = [p.name for p in codelet.params if p.name in free & given]
    return replace(kernel, arrays=arrays, scalars=(*order, *sorted(free - given)))
