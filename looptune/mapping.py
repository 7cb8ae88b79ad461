"""Parallel loops to grid and block, the rest to thread or host: a Codelet becomes a Plan.

    sequential loop around a parallel one    ─▶ host loop, a launch per iteration
    parallel loop                            ─▶ kernel; with the parallel loop directly inside: y and x of the grid;
                                                where three are asked for: z, y and x
    loop that reduces, parallel              ─▶ the threads of one block, along one of its dimensions: see ``team``
    anything else, in runs of statements     ─▶ kernel of one thread; of the block that reduces beside it, the first

The outermost two nested parallel loops form the grid where the inner one's bounds do not depend on the outer one;
one parallel loop alone is linearised over the whole block. Copies that unrolling made of the inner one, a remainder
too, become kernels of their own, so that each has its partner. The strips of a tiled parallel loop (mode "thread") move
into the thread. A local that more than one kernel needs lives in device memory.

A loop that reduces may be one of the two, or the only one:

    for i: for j (reduces): y[i] += …        i on y, a block has as many rows as it is high; j on x, its threads a team
    for i (reduces): for j: s[j] += …        j on x, the grid's; i on y
    for i (reduces): s += …                  one block, all of whose threads are a team
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from looptune.dealt import dealt
from looptune.hull import hull
from looptune.ir import (
    Array,
    Bin,
    Call,
    Cast,
    Codelet,
    Const,
    Expr,
    If,
    Load,
    Local,
    Loop,
    Node,
    Reduced,
    Scalar,
    Select,
    Stmt,
    Un,
    Var,
)
from looptune.rewrite import rewrite, walk
from looptune.scope import begins_with_write, names, names_in, read, written
from looptune.simplify import add, div, evaluate, is_integer, sub
from looptune.team import Team, has_tree, nested, phases, promoted, shareable, told_apart

BLOCK = (32, 8)
"""Threads of a block along x and y where no directive says otherwise: the paper's default."""
Dimension = Literal["x", "y", "z"]
_DIMENSIONS: tuple[Dimension, ...] = ("x", "y")


@dataclass(frozen=True, slots=True)
class Kernel:
    """One launch. ``axes`` are the grid's loops, outermost first: none (one thread), x, or y and x.

    ``block`` is (x, y) threads; ``arrays`` and ``scalars`` are the parameters it needs, in the codelet's order;
    ``locals`` live in each thread. With a ``team``, ``body`` is what each of its threads would do if it were alone,
    and the one axis, if there is one, has the other dimension of the block. ``deep`` is a loop along z, each of whose
    iterations has blocks of its own: an axis like the others, or one over the parts of sums.
    """

    name: str
    axes: tuple[Loop, ...]
    block: tuple[int, int]
    body: tuple[Stmt, ...]
    arrays: tuple[str, ...]
    scalars: tuple[str, ...]
    locals: tuple[Local, ...]
    team: Team | None = None
    deep: Loop | None = None

    @property
    def sides(self) -> tuple[tuple[Dimension, Loop], ...]:
        """Each axis with its dimension of the grid, x first."""
        along: tuple[tuple[Dimension, Loop], ...] = (("z", self.deep),) if self.deep is not None else ()
        if self.team is None:
            return (*zip(_DIMENSIONS, reversed(self.axes), strict=False), *along)
        return (*(("y" if self.team.along == "x" else "x", axis) for axis in self.axes), *along)

    @property
    def makes_parts(self) -> bool:
        """Each iteration along z makes parts of sums."""
        return self.deep is not None and self.deep.axis == "parts"

    @property
    def grid(self) -> tuple[Loop, ...]:
        """The loops that the blocks are laid over, outermost first; parts are none of them."""
        return self.axes if self.makes_parts else self.loops

    @property
    def loops(self) -> tuple[Loop, ...]:
        """Of which each iteration is a thread or a team, outermost first."""
        return self.axes if self.deep is None else (self.deep, *self.axes)

    def threads(self, dimension: Dimension) -> int:
        """How many a block has along it."""
        return (*self.block, 1)["xyz".index(dimension)]

    @property
    def lanes(self) -> int:
        """How many threads share the iterations of a loop that reduces."""
        x, y = self.block
        return 1 if self.team is None else {"x": x, "y": y, "xy": x * y}[self.team.along]


@dataclass(frozen=True, slots=True)
class Launch:
    kernel: Kernel


@dataclass(frozen=True, slots=True)
class HostLoop:
    var: str
    lo: Expr
    hi: Expr
    step: int
    body: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class HostIf:
    cond: Expr
    then: tuple[Step, ...]
    other: tuple[Step, ...]


Step = Launch | HostLoop | HostIf


@dataclass(frozen=True, slots=True)
class Plan:
    """``resident`` are the codelet's locals that live in device memory; a scalar there is an array of one element.

    ``parts``: what each array of parts holds parts of, see ``dealt``.
    """

    codelet: Codelet
    steps: tuple[Step, ...]
    resident: tuple[Local, ...]
    note: str = ""
    parts: tuple[tuple[str, Reduced], ...] = ()
    asserted: tuple[str, ...] = ()

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return tuple(_kernels(self.steps))

    def array(self, name: str) -> Array | Local:
        return next(a for a in _arrays(self.codelet, self.resident) if a.name == name)

    def dtype(self, scalar: str) -> str:
        """The type of a scalar parameter or host loop variable."""
        given = {p.name: p.dtype for p in self.codelet.params if isinstance(p, Scalar)}
        return given.get(scalar, "int32")


def _kernels(steps: Iterable[Step]) -> Iterator[Kernel]:
    for step in steps:
        match step:
            case Launch(kernel):
                yield kernel
            case HostLoop(_, _, _, _, body):
                yield from _kernels(body)
            case HostIf(_, then, other):
                yield from _kernels((*then, *other))


def plan(codelet: Codelet, note: str = "", asserted: tuple[str, ...] = (), *, blocks: bool = False) -> Plan:
    """``codelet``, all modes decided, as host steps and kernels; ``note`` says which schedule made it, ``asserted``
    which of its directives are not proved. ``blocks``: of threads, as on a GPU; the one that reduces alone does what
    stands beside it as well, which saves launches."""
    sizes = frozenset(p.name for p in codelet.params if isinstance(p, Scalar) and is_integer(p.dtype))
    whole = dealt(codelet)
    steps = _Stepping(blocks).steps(whole.codelet.body, sizes - written(codelet.body))
    done = _finish(whole.codelet, steps, note)
    return replace(done, parts=tuple(whole.parts.items()), asserted=asserted)


@dataclass(frozen=True, slots=True)
class _Stepping:
    """``gathering``: statements join the block that reduces beside them."""

    gathering: bool

    def steps(self, body: tuple[Stmt, ...], known: frozenset[str]) -> tuple[Step, ...]:
        """``known`` are the names the host can compute with."""
        out: list[Step] = []
        alone: list[Stmt] = []
        team: list[Loop] = []

        def flush() -> None:
            if alone:
                out.append(Launch(_bare((), _block(team[0]) if team else BLOCK, tuple(alone), _whole(team))))
                alone.clear()
                team.clear()

        for stmt in body:
            if not _launchable(stmt, known):
                alone.append(stmt)
                continue
            kernel = _kernel(stmt, known) if isinstance(stmt, Loop) else None
            if self.gathering and isinstance(stmt, Loop) and kernel is not None and _one_block(kernel):
                if team and _block(team[0]) != _block(stmt):
                    flush()
                alone.append(stmt)
                team.append(stmt)
                continue
            flush()
            out.append(self.step(stmt, kernel, known))
        flush()
        return tuple(out)

    def step(self, stmt: Stmt, kernel: Kernel | None, known: frozenset[str]) -> Step:
        match stmt:
            case Loop(var, lo, hi, inner, step):
                return Launch(kernel) if kernel else HostLoop(var, lo, hi, step, self.steps(inner, known | {var}))
            case If(cond, then, other):
                return HostIf(cond, self.steps(then, known), self.steps(other, known))
        raise AssertionError("only loops and conditions are launched")


def _one_block(kernel: Kernel) -> bool:
    """All that it does is the reduction of one loop, by the threads of a block."""
    return kernel.team is not None and not kernel.loops and not nested(kernel.body)


def _whole(team: Sequence[Loop]) -> Team | None:
    return Team("xy") if team else None


def _launchable(stmt: Stmt, known: frozenset[str]) -> bool:
    """The statement is, or holds at the host's reach, a loop whose iterations are threads."""
    match stmt:
        case Loop(var, lo, hi, body) if _on_host((lo, hi), known):
            return _kernel(stmt, known) is not None or any(_launchable(s, known | {var}) for s in body)
        case If(cond, then, other) if _on_host((cond,), known):
            return any(_launchable(s, known) for s in (*then, *other))
    return False


def _on_host(exprs: tuple[Expr, ...], known: frozenset[str]) -> bool:
    return all(
        node.name in known if isinstance(node, Var) else is_integer(node.dtype) and not isinstance(node, (Load, Call))
        for node in walk(exprs)
        if isinstance(node, (Var, Load, Call, Const, Bin, Un, Cast, Select))
    )


def _kernel(loop: Loop, known: frozenset[str]) -> Kernel | None:
    """The kernel of a perfect chain of parallel and thread loops: its first two parallel ones are the grid."""
    if loop.axis in ("z", "parts") and loop.mode == "parallel":
        return _deep(loop, known)
    shared = _shared(loop, known)
    if shared is not None:
        return shared
    axes: list[Loop] = []
    inside: list[Loop] = []
    body: tuple[Stmt, ...] = (loop,)
    while len(axes) < 2 and (here := _only_loop(body)) is not None and here.mode in ("parallel", "thread"):
        if here.mode == "parallel":
            boxed = hull(here, axes[0]) if axes and not inside and here.axis else None
            here = here if boxed is None else boxed
            if here.reduces or not _on_host((here.lo, here.hi), known):
                break
            axes.append(here)
        else:
            inside.append(here)
        body = here.body
    if not axes:
        return None
    while inside and not _encloses(inside[-1], axes[-1]):
        body = (replace(inside.pop(), body=body),)
    for thread in reversed(inside):
        body = (replace(thread, body=body),)
    turned = len(axes) == 2 and axes[0].axis == "x"
    return _bare(tuple(reversed(axes)) if turned else tuple(axes), _block(loop), body)


def _only_loop(body: tuple[Stmt, ...]) -> Loop | None:
    """The loop that the body is; of one under a condition each iteration asks for it."""
    match body:
        case (Loop() as loop,):
            return loop
        case (If(cond, (Loop(mode="parallel") as loop,), ()),) if not any(isinstance(n, Load) for n in walk(cond)):
            return None if names_in(cond) & written(loop.body) else replace(loop, body=(If(cond, loop.body),))
    return None


def _deep(loop: Loop, known: frozenset[str]) -> Kernel | None:
    """A grid, or one block, for each iteration of the loop."""
    inner = _only_loop(loop.body)
    kernel = None if inner is None else _kernel(inner, known)
    if loop.axis == "z" and (kernel is None or kernel.team is not None):
        return _kernel(replace(loop, axis=""), known)
    if inner is None:
        kernel = _bare((), _block(loop), loop.body, Team("xy")) if has_tree(loop.body) else None
    alone = replace(loop, body=())
    return replace(_bare((), BLOCK, loop.body) if kernel is None else kernel, deep=alone)


def _shared(loop: Loop, known: frozenset[str]) -> Kernel | None:
    """The kernel in which teams of threads share a loop that reduces, at ``loop`` or in it."""
    if loop.mode != "parallel":
        return None
    inner = _inner_axis(loop, known)
    if not loop.reduces:
        if inner is not None or not has_tree(loop.body):
            return None
        return _bare((loop,), _block(loop), loop.body, Team("y" if loop.axis == "x" else "x"))
    if inner is not None and told_apart(loop, inner):
        team = Team("x" if loop.axis == "x" else "y", outer=True)
        return _bare((inner,), _block(loop), (replace(loop, body=inner.body),), team)
    return _bare((), _block(loop), (loop,), Team("xy")) if shareable(loop) else None


def _inner_axis(loop: Loop, known: frozenset[str]) -> Loop | None:
    """The parallel loop that is all of the loop's body, where the two can be a grid."""
    match loop.body:
        case (Loop(lo=lo, hi=hi, mode="parallel", reduces=()) as inner,) if _on_host((lo, hi), known):
            return inner
    return None


def _block(loop: Loop) -> tuple[int, ...]:
    """The block asked for; in a permuted nest the loop that asks may stand further in."""
    return next((f.block for f in walk(loop) if isinstance(f, Loop) and f.block), ())


def _encloses(outer: Loop, inner: Loop) -> bool:
    return any(n is inner for n in walk(outer.body))


def _bare(axes: tuple[Loop, ...], block: tuple[int, ...], body: tuple[Stmt, ...], team: Team | None = None) -> Kernel:
    """A kernel whose parameters are not known yet."""
    x, y = (*block, 1)[:2] if block else BLOCK
    dimensions = len(axes) + (0 if team is None else 2 if team.along == "xy" and nested(body) else 1)
    shape = (1, 1) if not dimensions else (x * y, 1) if dimensions == 1 else (x, y)
    return Kernel("", axes, shape, body, (), (), (), team)


def _finish(codelet: Codelet, steps: tuple[Step, ...], note: str) -> Plan:
    kernels = list(_kernels(steps))
    own = [_private(k, kernels, codelet) for k in kernels]
    shared = {n for k, mine in zip(kernels, own, strict=True) for n in names(k.body) - mine}
    resident = tuple(v for v in codelet.locals if v.name in shared)
    taken = {p.name for p in codelet.params} | {v.name for v in codelet.locals} | names(codelet.body)
    called = codelet.name
    while any(f"{called}_{i}" in taken for i in range(len(kernels))):
        called += "_"
    done = {
        id(k): _complete(k, f"{called}_{i}", codelet, resident, mine)
        for i, (k, mine) in enumerate(zip(kernels, own, strict=True))
    }
    return Plan(codelet, _named(steps, done), resident, note)


def _private(kernel: Kernel, kernels: list[Kernel], codelet: Codelet) -> set[str]:
    """The scalar locals each thread of ``kernel`` owns: written before read, and read by no later kernel."""
    used = names(kernel.body) & written(kernel.body)
    mine = {v.name for v in codelet.locals if not v.shape and v.name in used and begins_with_write(kernel.body, v.name)}
    if kernel.loops:
        return mine
    elsewhere = [k for k in kernels if k is not kernel]
    return {n for n in mine if not any(n in read(k.body) and not begins_with_write(k.body, n) for k in elsewhere)}


def _complete(kernel: Kernel, name: str, codelet: Codelet, resident: tuple[Local, ...], mine: set[str]) -> Kernel:
    scalars = {v.name: v.dtype for v in resident if not v.shape and v.name not in mine}

    def rule(n: Node) -> Node | None:
        match n:
            case Var(v) if v in scalars:
                return Load(v, (Const(0),), scalars[v])
        return None

    taken = {p.name for p in codelet.params} | {v.name for v in codelet.locals} | names(codelet.body)
    bounds = tuple(a.hi for a in kernel.axes if a.lo == Const(0, a.dtype))
    whole, team = rewrite(rule, kernel.body), kernel.team
    own = tuple(v for v in codelet.locals if v.name in mine)
    made: tuple[Local, ...] = ()
    if team is not None:
        shared, made = phases(whole, own, taken, bounds)
        team = replace(team, phases=shared)
    body = whole
    if team is None or team.along != "xy":
        body, more = promoted(whole, taken, bounds, within=team is not None and team.outer)
        made += more
    used = names(body) | {n for a in kernel.loops for n in names((replace(a, body=()),))}
    inner = {f.var for f in walk(body) if isinstance(f, Loop)} | {a.var for a in kernel.loops}
    private = own + made
    arrays = [p.name for p in codelet.params if isinstance(p, Array)] + [v.name for v in resident]
    arrays = [a for a in arrays if a in used]
    tiled = {a for f in (*kernel.loops, *walk(body)) if isinstance(f, Loop) for a in f.staged}
    extents = {
        n
        for a in _arrays(codelet, resident)
        if a.name in arrays
        for n in (names_in(a.shape) if a.name in tiled else _extent_names(a))
    }
    given = {p.name for p in codelet.params if isinstance(p, Scalar)}
    free = (used | extents) - inner - {v.name for v in private} - set(arrays)
    order = [p.name for p in codelet.params if p.name in free & given]
    return replace(
        kernel, name=name, body=body, arrays=tuple(arrays), locals=private, scalars=(*order, *sorted(free - given)),
        team=team,
    )  # fmt: skip


def _arrays(codelet: Codelet, resident: tuple[Local, ...]) -> tuple[Array | Local, ...]:
    return (*(p for p in codelet.params if isinstance(p, Array)), *resident)


def _extent_names(array: Array | Local) -> set[str]:
    """The parameters that the strides of an array are computed from: every extent but the first."""
    return {n.name for n in walk(tuple(e for e in array.shape[1:] if e is not None)) if isinstance(n, Var)}


def _named(steps: tuple[Step, ...], done: Mapping[int, Kernel]) -> tuple[Step, ...]:
    out: list[Step] = []
    for step in steps:
        match step:
            case Launch(kernel):
                out.append(Launch(done[id(kernel)]))
            case HostLoop(_, _, _, _, body):
                out.append(replace(step, body=_named(body, done)))
            case HostIf(_, then, other):
                out.append(replace(step, then=_named(then, done), other=_named(other, done)))
    return tuple(out)


def value(e: Expr, env: Mapping[str, int]) -> int:
    """An integer expression of sizes and host loop variables, as the host computes it."""
    match e:
        case Const(v):
            return int(v)
        case Var(name):
            return env[name]
        case Cast(_, arg):
            return value(arg, env)
        case Un("-", arg):
            return -value(arg, env)
        case Un("!", arg):
            return int(not value(arg, env))
        case Un(_, arg):
            return ~value(arg, env)
        case Select(cond, then, other):
            return value(then if value(cond, env) else other, env)
        case Bin(op, lhs, rhs):
            result = evaluate(op, value(lhs, env), value(rhs, env))
            assert result is not None, f"{op} is undefined for these sizes"
            return result
    raise AssertionError(f"{type(e).__name__} is not the host's to compute")


def launches(steps: tuple[Step, ...], env: Mapping[str, int]) -> Iterator[tuple[Kernel, dict[str, int]]]:
    """Every kernel in the order it is launched, with the values of sizes and host loop variables."""
    for step in steps:
        match step:
            case Launch(kernel):
                yield kernel, dict(env)
            case HostLoop(var, lo, hi, stride, body):
                for i in range(value(lo, env), value(hi, env), stride):
                    yield from launches(body, {**env, var: i})
            case HostIf(cond, then, other):
                yield from launches(then if value(cond, env) else other, env)


def repeats(plan: Plan) -> bool:
    """It has a host loop, between the launches of which it may be stopped."""
    return any(isinstance(step, HostLoop) for step in _all_steps(plan.steps))


def _all_steps(steps: Sequence[Step]) -> Iterator[Step]:
    for step in steps:
        yield step
        match step:
            case HostLoop(_, _, _, _, body):
                yield from _all_steps(body)
            case HostIf(_, then, other):
                yield from _all_steps((*then, *other))


def count(steps: Sequence[Step], env: Mapping[str, int]) -> int:
    """How many launches that makes, without going through the iterations of a host loop that all launch the same."""
    return sum(_count(step, env) for step in steps)


def _count(step: Step, env: Mapping[str, int]) -> int:
    match step:
        case Launch():
            return 1
        case HostIf(cond, then, other):
            return count(then if value(cond, env) else other, env)
        case HostLoop(var, lo, hi, stride, body):
            trips = range(value(lo, env), value(hi, env), stride)
            if trips and var not in {n for s in body for n in _deciding(s)}:
                return len(trips) * count(body, {**env, var: trips[0]})
            return sum(count(body, {**env, var: i}) for i in trips)


def _deciding(step: Step) -> Iterator[str]:
    """The names that decide how many kernels a step launches."""
    match step:
        case HostLoop(_, lo, hi, _, body):
            yield from names_in((lo, hi))
            yield from (n for s in body for n in _deciding(s))
        case HostIf(cond, then, other):
            yield from names_in(cond)
            yield from (n for s in (*then, *other) for n in _deciding(s))


def extent(kernel: Kernel, env: Mapping[str, int]) -> tuple[int, ...]:
    """How many iterations each loop of the grid has, outermost first; one that does not run has none."""
    return tuple(max(0, -(-(value(a.hi, env) - value(a.lo, env)) // a.step)) for a in kernel.grid)


def grid(kernel: Kernel) -> tuple[Expr, ...]:
    """How many blocks lie along each of the ``sides``; 0 or less where the kernel does not run."""
    per = (Const(axis.step * kernel.threads(dim), axis.dtype) for dim, axis in kernel.sides)
    axes = (axis for _, axis in kernel.sides)
    return tuple(div(add(sub(a.hi, a.lo), sub(p, Const(1, a.dtype))), p) for a, p in zip(axes, per, strict=True))


Blocks = tuple[int, int, int]
"""A grid in blocks, along x, y and z."""


def blocks(kernel: Kernel, env: Mapping[str, int]) -> Blocks:
    """The grid in blocks: one along the dimension of a team."""
    return _blocks(kernel, grid(kernel), env)


def _blocks(kernel: Kernel, counts: Sequence[Expr], env: Mapping[str, int]) -> Blocks:
    along = {dim: max(0, value(count, env)) for (dim, _), count in zip(kernel.sides, counts, strict=True)}
    return along.get("x", 1), along.get("y", 1), along.get("z", 1)


def sized(kernel: Kernel) -> Callable[[Mapping[str, int]], Blocks | None]:
    """``blocks`` for any sizes and host loop variables; None where no thread runs.

    It is asked for at every launch, of which there may be thousands, and computes nothing twice.
    """
    used = sorted(names_in(tuple(e for axis in kernel.loops for e in (axis.lo, axis.hi))))
    counts = grid(kernel)
    known: dict[tuple[int, ...], Blocks | None] = {}

    def at(env: Mapping[str, int]) -> Blocks | None:
        key = tuple(env[name] for name in used)
        if key not in known:
            known[key] = None if 0 in extent(kernel, env) else _blocks(kernel, counts, env)
        return known[key]

    return at
