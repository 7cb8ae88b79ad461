"""Turn a Plan back into loops, one for every counter of its launches, so that the launches can be proved.

    kernel(i), 8 threads a block      ==>      for block_i in 0..(n + 7) / 8:              parallel
      x[i] = 2 * y[i]                            for thread_i in 0..8:                     parallel
                                                   if (8 * block_i + thread_i < n)         the guard
                                                     x[8 * block_i + thread_i] = ...

Host loops are sequential, launches follow each other, and what a kernel holds for each thread is a local of that
kernel. A proof of that tree establishes that blocks times threads cover every axis, that guards exclude the excess,
that no two threads of a launch access an element that one of them writes, and that no value leaves a thread except
through memory.

For steps that blocks compute in tiles, the tree has the loops that they stand for, not what is computed twice. A team
has a loop over its lanes around each loop that they share, ``for lane in 0..32: for j in lane..m by 32``; the lanes may
accumulate at the same time into what that loop reduces.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import chain
from math import prod
from typing import cast

from looptune.ir.def_use import referenced_names, target_name, written_names
from looptune.ir.nodes import (
    Assign,
    Binary,
    Codelet,
    Const,
    Expr,
    If,
    Load,
    Local,
    Loop,
    Node,
    Reduction,
    Stmt,
    Var,
    While,
)
from looptune.ir.rewrite import rewrite, rewrite_stmts, substitute, walk, walk_stmts
from looptune.ir.simplify import add, mul
from looptune.ir.verify import verify
from looptune.lower.concurrent_launches import is_concurrent
from looptune.lower.partial_sums import after_combine, before_combine, inline_partial_sums
from looptune.lower.passes.grid_compaction import is_launched
from looptune.lower.plan import (
    OF_PARTS,
    HostIf,
    HostLoop,
    HostWhile,
    Kernel,
    Launch,
    Plan,
    Step,
    decisions,
    grid,
    kernels_in,
    with_kernels,
)
from looptune.lower.resident_tiles import is_own, place
from looptune.lower.team import Phase, TeamBranch, TeamFor, TeamLoop, TeamReduce, TeamSingle, shared_rows
from looptune.poly.ownership import Elements, all_stored, has_one_owner
from looptune.poly.translation_validation import Proof, prove
from looptune.schedule.directives.reduction_simplification import undo_regrouping


def prove_plan(
    original: Codelet, plan: Plan, sizes: Mapping[str, int] | None = None, *, reassociate: bool = True,
    blocks: bool = True, most: int | None = None,
) -> Proof:  # fmt: skip
    """Prove that the launches of a plan compute what ``original`` does; see ``prove``.

    Without ``blocks`` each iteration of an axis is a thread of its own.
    """
    for kernel in plan.kernels:
        failure = _ownership(kernel, plan, sizes) if kernel.resident is not None else None
        if failure is not None:
            return failure
    shared = frozenset(v.name for v in plan.device_locals if not v.shape)
    loops = plan_as_loops(plan, blocks=blocks)
    return prove(original, loops, sizes, reassociate=reassociate, shared=shared, most=most)


def _ownership(kernel: Kernel, plan: Plan, sizes: Mapping[str, int] | None) -> Proof | None:
    """Return why elements that threads keep may have no owner, or be read by others without being stored."""
    whole = kernel.resident
    assert whole is not None, "its threads keep elements"
    places = [place(d).name for d in range(len(whole.extents))]
    for array in whole.arrays:
        reads = [
            Elements(n.index, s.conditions)
            for s in whole.statements
            for n in walk(s.value)
            if isinstance(n, Load) and n.array == array and not is_own(n)
        ]
        at = tuple(place(d) for d in range(len(places)))
        stored = [Elements(at, e.conditions) for e in whole.exchanged if e.array == array]
        found = all_stored(reads, stored, places)
        if found is None:
            return Proof("unknown", f"the elements of {array} that other threads read are not affine")
        if not found:
            return Proof("failed", f"other threads read elements of {array} that their owners do not store")
    for d, e in enumerate(whole.extents):
        known = substitute(e, {v: Const(n) for v, n in (sizes or {}).items()})
        extent = int(known.value) if isinstance(known, Const) else 3 * whole.shape[d] - 1
        blocks = -(-extent // whole.shape[d])
        if not has_one_owner(extent, (blocks, whole.threads[d], whole.each[d]), whole.strides(d, blocks)):
            return Proof("failed", f"an element of {whole.arrays[0]} has no owner, or several")
    return None


def plan_as_loops(plan: Plan, *, blocks: bool = True) -> Codelet:
    """Return the plan as a codelet."""
    drawn = _PlanLoops(replace(plan, steps=with_kernels(plan.steps, _apart)), blocks, _elements(plan))
    body = _without_decisions(drawn.steps(drawn.plan.steps), dict(decisions(plan.steps)))
    return verify(replace(plan.codelet, body=body, locals=(*plan.device_locals, *drawn.private)))


def _without_decisions(body: tuple[Stmt, ...], made: Mapping[str, Expr]) -> tuple[Stmt, ...]:
    """Return the body without the assignments to flags that the host reads, each of which is its condition."""

    def rule(n: Node) -> Node | tuple[Node, ...] | None:
        match n:
            case Assign(Var(flag), Binary("!=", cond, Const(0))) if made.get(flag) == cond:
                return ()
        return None

    return rewrite(rule, body)


def _apart(kernel: Kernel) -> Kernel:
    """Each sum by itself, where its element is."""
    held = {sum_.own for sum_ in kernel.sums}
    kept = tuple(v for v in kernel.locals if v.name not in held)
    return replace(kernel, body=undo_regrouping(kernel.body, kernel.sums), locals=kept, sums=())


def _elements(plan: Plan) -> tuple[tuple[str, str], ...]:
    """Return the arrays and locals that parts are made of, each with an operation."""
    terms = [s for k in plan.kernels for sum_ in k.sums for some in sum_.terms for s in walk_stmts(some)]
    adding = [s for s in terms if isinstance(s, Assign)]
    found = [(target_name(s.target), "+") for s in adding] + [
        (target_name(r.target), r.op) for _, r in plan.partial_sums
    ]
    return tuple(dict.fromkeys(found))


class _PlanLoops:
    """``private`` are the locals of the kernels, each by a name of its own; ``sums`` what parts are made of."""

    def __init__(self, plan: Plan, blocks: bool, sums: Collection[tuple[str, str]]) -> None:
        self.plan = plan
        self.blocks = blocks
        self.sums = sums
        self.parts = dict(plan.partial_sums)
        self.scalars = {v.name: v.dtype for v in plan.device_locals if not v.shape}
        self.taken = {p.name for p in plan.codelet.params} | {v.name for v in plan.device_locals}
        self.taken |= {n for k in plan.kernels for n in referenced_names((*k.loops, *k.body))} | _counters(plan.steps)
        self.private: list[Local] = []

    def steps(self, steps: tuple[Step, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        making: Launch | HostLoop | None = None
        start, former = 0, cast("Step | None", None)
        for step in steps:
            last, start = start, len(out)
            match step:
                case Launch(kernel) if kernel.over_parts is not None:
                    making = step
                case HostLoop(body=(Launch(kernel),)) if written_names(kernel.body) & self.parts.keys():
                    making = step  # a launch for each part
                case Launch(kernel) if making is not None:
                    out += self.split_reduction(making, kernel)
                    making = None
                case Launch(kernel) if referenced_names(kernel.body) & self.parts.keys():
                    out += chain.from_iterable(self.before_and_after(kernel))
                case Launch(kernel) if isinstance(former, Launch) and is_concurrent(former.kernel, kernel):
                    made = self.launch(kernel, self.thread_body(kernel))
                    out[last:], start = [self.at_once(tuple(out[last:]), made)], last
                case Launch(kernel):
                    out += self.launch(kernel, self.thread_body(kernel))
                case HostLoop(var, lo, hi, stride, body):
                    out.append(Loop(var, lo, hi, self.steps(body), stride, "sequential", dtype=lo.dtype))
                case HostWhile(_, cond, body):
                    out.append(While(cond, self.steps(body)))
                case HostIf(cond, then, other):
                    out.append(If(cond, self.steps(then), self.steps(other)))
            former = step
        return tuple(out)

    def at_once(self, first: tuple[Stmt, ...], then: tuple[Stmt, ...]) -> Loop:
        """Return a parallel loop of two iterations: in each of them is what one of two kernels does."""
        which = Var(self.fresh("kernel"))
        either = If(Binary("==", which, Const(0)), first, then)
        return Loop(which.name, *_range(2, which.dtype), (either,), mode="parallel", dtype=which.dtype)

    def split_reduction(self, step: Launch | HostLoop, adding: Kernel) -> tuple[Stmt, ...]:
        """Parts made by one kernel and added up by the next ones: every one is added where its sum is.

        What the next kernel does before it adds them is done first, if the parts are made of nothing that it changes.
        """
        (making,) = kernels_in((step,))
        part = step if isinstance(step, HostLoop) else making.over_parts
        assert part is not None, "it makes parts"
        made = self.launch(making, inline_partial_sums(self.thread_body(making), self.parts, part.var))
        if isinstance(step, HostLoop):
            reduces = self.summed(made)  # the parts of a sum are added up on their own
            made = (Loop(step.var, step.lo, step.hi, made, step.step, "parallel", dtype=step.lo.dtype,
                         reductions=reduces),)  # fmt: skip
        ahead, behind = self.before_and_after(adding)
        late = (referenced_names(making.body) - {name for name, _ in self.sums}) & written_names(adding.body)
        return (*made, *ahead, *behind) if late else (*ahead, *made, *behind)

    def before_and_after(self, adding: Kernel) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...]]:
        """Return what a kernel does before it adds up parts, and what it does then."""
        first, rest = before_combine(adding.body, self.parts), after_combine(adding.body, self.parts)
        ahead = self.launch(adding, _in_order(first)) if first else ()
        return ahead, self.launch(adding, _in_order(rest)) if rest else ()

    def launch(self, kernel: Kernel, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return the body in every thread of the kernel's blocks; a kernel without axes is one thread."""
        body, arrays = self.own(kernel, body)
        if kernel.keeps_tiles:
            return body
        if not kernel.loops:
            one = Const(1)
            return (Loop(self.fresh("thread"), Const(0), one, body, mode="parallel"),)
        if not self.blocks:
            for axis in reversed(kernel.loops):
                reduces = self.summed(body) if axis.thread_axis in OF_PARTS else ()
                body = (replace(axis, body=body, mode="parallel", private_arrays=arrays, reductions=reduces),)
            return body
        counters: list[Loop] = []
        guards: list[Expr] = []
        env: dict[str, Expr] = {}
        numbers: dict[str, Expr] = {}
        for (dim, axis), count in zip(kernel.grid_axes, grid(kernel), strict=True):
            size, block, thread = kernel.threads(dim), self.fresh(f"block_{axis.var}"), self.fresh(f"thread_{axis.var}")
            every = Loop(
                block, Const(0, axis.dtype), count, (), mode="parallel", dtype=axis.dtype, thread_axis=axis.thread_axis
            )
            counters.append(every)
            each = Loop(
                thread, *_range(size, axis.dtype), (), mode="parallel", dtype=axis.dtype, private_arrays=arrays,
                thread_axis=axis.thread_axis,
            )  # fmt: skip
            counters.append(each)
            place = add(mul(Const(size, axis.dtype), Var(block, axis.dtype)), Var(thread, axis.dtype))
            env[axis.var] = add(axis.lo, mul(Const(axis.step, axis.dtype), place))
            guards.append(Binary("<", env[axis.var], axis.hi))
            numbers[dim] = Var(block, axis.dtype)
        guards += [is_launched(kernel.packing, numbers["x"], numbers["y"])] if kernel.packing is not None else []
        body = substitute(body, env)
        for guard in reversed(guards):
            body = (If(guard, body),)
        for counter in reversed(counters):
            reduces = self.summed(body) if counter.thread_axis in OF_PARTS else ()
            body = (replace(counter, body=body, thread_axis="", reductions=reduces),)
        return body

    def summed(self, body: tuple[Stmt, ...]) -> tuple[Reduction, ...]:
        """Return the reductions of a loop over the parts: the sums to which the body adds."""
        targets = [s.target for s in walk_stmts(body) if isinstance(s, Assign)]
        return tuple(
            dict.fromkeys(Reduction(op, t) for t in targets for name, op in self.sums if target_name(t) == name)
        )

    def own(self, kernel: Kernel, whole: tuple[Stmt, ...]) -> tuple[tuple[Stmt, ...], tuple[str, ...]]:
        """Return the body with the kernel's own locals, and the arrays among them.

        Scalars in device memory become scalars again.
        """
        private = {v.name: self.fresh(v.name) for v in kernel.locals}
        self.private += [replace(v, name=private[v.name]) for v in kernel.locals]

        def rule(n: Node) -> Node | None:
            match n:
                case Var(name) if name in private:
                    return replace(n, name=private[name])
                case Load(array) if array in private:
                    return replace(n, array=private[array])
                case Load(array, (Const(0),)) if array in self.scalars:
                    return Var(array, self.scalars[array])
                case Loop(private_arrays=(_, *_) as own):
                    return replace(n, private_arrays=tuple(private[a] for a in own if a in private))
            return None

        return rewrite(rule, whole), tuple(private[v.name] for v in kernel.locals if v.shape)

    def thread_body(self, kernel: Kernel) -> tuple[Stmt, ...]:
        """Return what a thread runs, or a team of them."""
        if kernel.keeps_tiles:
            return kernel.body
        if kernel.team is None:
            return _in_order(kernel.body)
        lanes = {"x": (kernel.block[0],), "y": (kernel.block[1],), "xy": kernel.block[::-1]}[kernel.team.block_axis]
        return self.phases(kernel.team.phases, lanes)

    def phases(self, phases: tuple[Phase, ...], lanes: tuple[int, ...]) -> tuple[Stmt, ...]:
        """``lanes`` of the outer of two loops first, where they share out two."""
        out: list[Stmt] = []
        for phase in phases:
            match phase:
                case TeamSingle(body):
                    out += _in_order(body)
                case TeamReduce(loop, into, deep):
                    targets = {a.private.name: a.target for a in into}
                    out.append(self.shared(substitute(loop, targets), lanes if deep else (prod(lanes),)))
                case TeamFor(loop):
                    out.append(self.shared(loop, lanes if shared_rows(loop) is not None else (prod(lanes),)))
                case TeamLoop(loop, body):
                    out.append(replace(loop, body=self.phases(body, lanes), mode="sequential"))
                case TeamBranch(cond, then, other):
                    out.append(If(cond, self.phases(then, lanes), self.phases(other, lanes)))
        return tuple(out)

    def shared(self, loop: Loop, lanes: tuple[int, ...]) -> Loop:
        """Every lane runs one iteration in so many, and of those the loop directly inside likewise."""
        match loop.body:
            case (*ahead, Loop() as inner) if len(lanes) == 2:
                body: tuple[Stmt, ...] = (*ahead, self.shared(inner, lanes[1:]))
            case _:
                body = _in_order(loop.body)
        if not self.blocks:
            return replace(loop, body=body, mode="parallel")
        lane = Var(self.fresh("lane"), loop.dtype)
        first = add(loop.lo, mul(Const(loop.step, loop.dtype), lane))
        own = replace(loop, lo=first, step=loop.step * lanes[0], body=body, mode="sequential", reductions=())
        every = Loop(lane.name, *_range(lanes[0], loop.dtype), (own,), mode="parallel", dtype=loop.dtype)
        return replace(every, reductions=loop.reductions)

    def fresh(self, name: str) -> str:
        free = next(c for k in range(len(self.taken) + 2) if (c := f"{name}_{k}" if k else name) not in self.taken)
        self.taken.add(free)
        return free


def _in_order(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """As one thread runs it."""

    def rule(stmt: Stmt) -> Stmt | None:
        match stmt:
            case Loop():
                return replace(stmt, mode="sequential", reductions=())
        return None

    return rewrite_stmts(rule, body)


def _range(size: int, dtype: str) -> tuple[Const, Const]:
    return Const(0, dtype), Const(size, dtype)


def _counters(steps: tuple[Step, ...]) -> set[str]:
    found: set[str] = set()
    for step in steps:
        match step:
            case HostLoop(var, _, _, _, body):
                found |= {var} | _counters(body)
            case HostWhile(_, _, body):
                found |= _counters(body)
            case HostIf(_, then, other):
                found |= _counters((*then, *other))
    return found
