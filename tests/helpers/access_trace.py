"""Every access of every thread of a kernel, one after the other: what counting in warps is compared with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from looptune.ir.nodes import Assign, Expr, If, Load, Loop, Stmt
from looptune.ir.rewrite import walk
from looptune.lower.plan import Kernel, Plan, blocks, evaluate_size
from looptune.tune.cost_model.warp_samples import Sample

EVERYTHING = Sample(1 << 30, 1 << 30)
"""The sample that has every warp and every iteration, so that counts are exact."""

Key = tuple[Load, bool]
"""What stands in the code, and whether it is written."""


Iterations = tuple[tuple[str, int, int], ...]
"""Of the loops around: variable, value, and the iteration's number, which the lanes of a warp have in common."""


@dataclass
class Trace:
    """``warps``: by access, the addresses in elements of each warp and iteration; ``blocks``: bytes touched of each
    array, by block."""

    warps: dict[Key, dict[tuple[object, ...], set[int]]] = field(default_factory=lambda: defaultdict(dict))
    blocks: dict[int, set[tuple[str, int]]] = field(default_factory=lambda: defaultdict(set))
    threads: dict[Key, int] = field(default_factory=lambda: defaultdict(int))

    def sectors(self, key: Key, itemsize: int) -> int:
        return sum(len({a * itemsize // 32 for a in at}) for at in self.warps[key].values())


def trace(kernel: Kernel, plan: Plan, sizes: Mapping[str, int]) -> Trace:
    """``kernel`` has no team, no tiles and no integer locals."""
    found = Trace()
    width, height = kernel.block
    for number, (bx, by, bz) in enumerate(_places(blocks(kernel, sizes))):
        at = {"x": bx, "y": by, "z": bz}
        for thread in range(width * height):
            within = {"x": thread % width, "y": thread // width, "z": 0}
            env = dict(sizes)
            for dim, axis in kernel.grid_axes:
                first = at[dim] * kernel.threads(dim) + within[dim]
                env[axis.var] = evaluate_size(axis.lo, sizes) + axis.step * first
            if all(env[axis.var] < evaluate_size(axis.hi, sizes) for _, axis in kernel.grid_axes):
                for load, write, iteration, copy in _run(kernel.body, env, ()):
                    turn = tuple(number_ for _, _, number_ in iteration)
                    names = {**env, **{var: v for var, v, _ in iteration}}
                    _note(found, plan, (load, write), (number, thread // 32, turn, copy), names)
    return found


def _places(grid: tuple[int, int, int]) -> Iterator[tuple[int, int, int]]:
    return ((x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0]))


def _note(
    found: Trace, plan: Plan, key: Key, where: tuple[object, ...], names: Mapping[str, int]
) -> None:  # fmt: skip
    load = key[0]
    shape = plan.array(load.array).shape
    address = 0
    for index, extent in zip(load.index, shape, strict=True):
        address = address * (evaluate_size(extent, names) if extent is not None else 1) + evaluate_size(index, names)
    found.warps[key].setdefault(where, set()).add(address)
    found.threads[key] += 1
    found.blocks[int(str(where[0]))].add((load.array, address))


def _run(
    body: tuple[Stmt, ...], env: Mapping[str, int], iteration: Iterations, copy: str = ""
) -> Iterator[tuple[Load, bool, Iterations, str]]:
    """The accesses of one thread; ``copy`` tells places in the text from each other."""
    seen: set[tuple[Load, bool]] = set()
    line = 0
    names = {**env, **{var: v for var, v, _ in iteration}}
    for k, stmt in enumerate(body):
        match stmt:
            case Assign(target, value_):
                here = [(n, False) for n in walk(value_) if isinstance(n, Load)]
                here += [(target, True)] if isinstance(target, Load) else []
                for access in here:
                    if access not in seen:
                        seen.add(access)
                        yield *access, iteration, f"{copy}.{line}"
            case Loop(var, lo, hi, inner, step):
                seen, line = set(), k + 1
                for turn, i in enumerate(range(evaluate_size(lo, names), evaluate_size(hi, names), step)):
                    yield from _run(inner, env, (*iteration, (var, i, turn)), f"{copy}.{k}")
            case If(cond, then, other):
                seen, line = set(), k + 1
                yield from _run(then if _holds(cond, names) else other, env, iteration, f"{copy}.{k}")


def _holds(cond: Expr, names: Mapping[str, int]) -> bool:
    return bool(evaluate_size(cond, names))
