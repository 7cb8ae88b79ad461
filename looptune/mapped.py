"""A Plan as loops again, one for every counter of its launches, so that what is launched can be proved.

    kernel(i), 8 threads a block      ==>      for block_i in 0..(n + 7) / 8:              parallel
      x[i] = 2 * y[i]                            for thread_i in 0..8:                     parallel
                                                   if (8 * block_i + thread_i < n)         the guard
                                                     x[8 * block_i + thread_i] = ...

Host loops are sequential, launches follow each other, and what a kernel keeps for each thread is a local of that
kernel alone. ``prove`` of that tree says that blocks times threads cover every axis, that the guards cut what is over,
that no two threads of a launch touch an element that one writes, and that no value leaves a thread but through memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from looptune.ir import Bin, Codelet, Const, Expr, If, Load, Local, Loop, Node, Stmt, Var
from looptune.mapping import HostIf, HostLoop, Kernel, Launch, Plan, Step, grid
from looptune.poly.proof import Proof, prove
from looptune.rewrite import rewrite, substitute
from looptune.scope import names
from looptune.simplify import add, mul
from looptune.verify import verify


def prove_plan(
    original: Codelet, plan: Plan, sizes: Mapping[str, int] | None = None, *, reassociate: bool = True,
    blocks: bool = True,
) -> Proof:  # fmt: skip
    """As ``prove``, of what the plan launches; without ``blocks`` each iteration of an axis is a thread of its own."""
    shared = frozenset(v.name for v in plan.resident if not v.shape)
    return prove(original, tree(plan, blocks=blocks), sizes, reassociate=reassociate, shared=shared)


def tree(plan: Plan, *, blocks: bool = True) -> Codelet:
    """The plan as a codelet."""
    drawn = _Drawing(plan, blocks)
    body = drawn.steps(plan.steps)
    return verify(replace(plan.codelet, body=body, locals=(*plan.resident, *drawn.private)))


class _Drawing:
    """``private`` are the locals of the kernels, each by a name of its own."""

    def __init__(self, plan: Plan, blocks: bool) -> None:
        self.blocks = blocks
        self.scalars = {v.name: v.dtype for v in plan.resident if not v.shape}
        self.taken = {p.name for p in plan.codelet.params} | {v.name for v in plan.resident}
        self.taken |= {n for k in plan.kernels for n in names((*k.axes, *k.body))} | _counters(plan.steps)
        self.private: list[Local] = []

    def steps(self, steps: tuple[Step, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for step in steps:
            match step:
                case Launch(kernel):
                    out += self.launch(kernel)
                case HostLoop(var, lo, hi, stride, body):
                    out.append(Loop(var, lo, hi, self.steps(body), stride, "sequential", dtype=lo.dtype))
                case HostIf(cond, then, other):
                    out.append(If(cond, self.steps(then), self.steps(other)))
        return tuple(out)

    def launch(self, kernel: Kernel) -> tuple[Stmt, ...]:
        """The kernel's body in every thread of its blocks; a kernel without axes is one thread."""
        body = self.own(kernel)
        if not kernel.axes:
            one = Const(1)
            return (Loop(self.fresh("thread"), Const(0), one, body, mode="parallel"),)
        if not self.blocks:
            for axis in reversed(kernel.axes):
                body = (replace(axis, body=body, mode="parallel"),)
            return body
        counts, sizes = grid(kernel), kernel.block[: len(kernel.axes)][::-1]
        counters: list[Loop] = []
        guards: list[Expr] = []
        env: dict[str, Expr] = {}
        for axis, count, size in zip(kernel.axes, counts, sizes, strict=True):
            block, thread = self.fresh(f"block_{axis.var}"), self.fresh(f"thread_{axis.var}")
            counters.append(Loop(block, Const(0, axis.dtype), count, (), mode="parallel", dtype=axis.dtype))
            counters.append(Loop(thread, *_range(size, axis.dtype), (), mode="parallel", dtype=axis.dtype))
            place = add(mul(Const(size, axis.dtype), Var(block, axis.dtype)), Var(thread, axis.dtype))
            env[axis.var] = add(axis.lo, mul(Const(axis.step, axis.dtype), place))
            guards.append(Bin("<", env[axis.var], axis.hi))
        body = substitute(body, env)
        for guard in reversed(guards):
            body = (If(guard, body),)
        for counter in reversed(counters):
            body = (replace(counter, body=body),)
        return body

    def own(self, kernel: Kernel) -> tuple[Stmt, ...]:
        """The body, its locals being the kernel's own, and scalars in device memory scalars again."""
        private = {v.name: Var(self.fresh(v.name), v.dtype) for v in kernel.locals}
        self.private += [replace(v, name=private[v.name].name) for v in kernel.locals]

        def rule(n: Node) -> Node | None:
            match n:
                case Var(name) if name in private:
                    return private[name]
                case Load(array, (Const(0),)) if array in self.scalars:
                    return Var(array, self.scalars[array])
            return None

        body: tuple[Stmt, ...] = rewrite(rule, kernel.body)
        return body

    def fresh(self, name: str) -> str:
        free = next(c for k in range(len(self.taken) + 2) if (c := f"{name}_{k}" if k else name) not in self.taken)
        self.taken.add(free)
        return free


def _range(size: int, dtype: str) -> tuple[Const, Const]:
    return Const(0, dtype), Const(size, dtype)


def _counters(steps: tuple[Step, ...]) -> set[str]:
    found: set[str] = set()
    for step in steps:
        match step:
            case HostLoop(var, _, _, _, body):
                found |= {var} | _counters(body)
            case HostIf(_, then, other):
                found |= _counters((*then, *other))
    return found
