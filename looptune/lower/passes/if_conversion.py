"""If-conversion: accumulate unconditionally in a register whose value is used only under a condition.

    if (j >= i) r = C[i][j]                          r = 0; if (j >= i) r = C[i][j]
    for k: if (j >= i) r += A[i][k] * B[k][j]  ==>   for k: r += A[i][k] * B[k][j]
    if (j >= i) C[i][j] = r                          if (j >= i) C[i][j] = r

Otherwise a tile of a triangle would evaluate the condition for each of its elements in every iteration, although few
blocks are on the diagonal. This is done if every use of the register is under the condition, and what is read in the
loop can be read in any case: it is in shared memory, or inside its array whatever the condition.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile

from looptune.ir.def_use import names_in, written_names
from looptune.ir.intervals import Range, body_ranges, difference_range, range_of
from looptune.ir.nodes import Assign, Binary, Const, Expr, If, Load, Local, Loop, Node, Stmt, Var, While
from looptune.ir.rewrite import conjuncts, walk
from looptune.ir.simplify import is_integer
from looptune.lower.plan import Kernel, Plan
from looptune.lower.staged_tiles import staged_arrays

Given = tuple[Expr, ...]


def if_convert(kernel: Kernel, plan: Plan) -> Kernel:
    """Return the kernel with accumulations made unconditional; one that takes steps in tiles of its own as it is."""
    made_otherwise = kernel.keeps_tiles or kernel.warp_tiles is not None
    if made_otherwise or not any(isinstance(n, If) for n in walk(kernel.body)):
        return kernel
    uses: dict[str, set[Given]] = {}
    for name, given in _uses(kernel.body, ()):
        uses.setdefault(name, set()).add(given)
    scalars = (v for v in kernel.locals if not v.shape)
    only = {v.name: _common(uses[v.name]) for v in scalars if v.name in uses}
    staged = frozenset(staged_arrays(kernel.loops))
    env: dict[str, Range] = {}
    for axis in kernel.loops:
        env = body_ranges(replace(axis, body=()), env)
    made = _Speculation(
        plan, {name: given for name, given in only.items() if given}, frozenset(written_names(kernel.body))
    )
    body = made.block(kernel.body, (), env, staged, ())
    free = {v.name: (v, only[v.name]) for v in kernel.locals if v.name in made.free}
    return replace(kernel, body=_cleared(body, free, ()))


def _common(some: Collection[Given]) -> Given:
    """Return what all of them begin with."""
    rows = takewhile(lambda row: len(set(row)) == 1, zip(*some, strict=False))
    return tuple(row[0] for row in rows)


def _uses(body: tuple[Stmt, ...], given: Given) -> Iterator[tuple[str, Given]]:
    """Yield the variables used, and what is asked before; a constant that one is set to is no use of it."""
    for stmt in body:
        match stmt:
            case Assign(Var(), Const()):
                continue
            case If(cond, then, other):
                yield from _named(cond, given)
                yield from _uses(then, (*given, *conjuncts(cond)))
                yield from _uses(other, (*given, Const(0)))
            case Loop(_, lo, hi, inner):
                yield from (*_named((lo, hi), given), *_uses(inner, given))
            case While(cond, inner):
                yield from (*_named(cond, given), *_uses(inner, given))
            case Assign():
                yield from _named(stmt, given)


def _named(node: object, given: Given) -> Iterator[tuple[str, Given]]:
    return ((n.name, given) for n in walk(node) if isinstance(n, Var))


@dataclass(slots=True)
class _Speculation:
    """``only``: the conditions under which alone each local is used.

    ``changed``: what the kernel assigns. ``free``: those locals that are used in any case.
    """

    plan: Plan
    only: Mapping[str, Given]
    changed: frozenset[str]
    free: frozenset[str] = frozenset()

    def block(
        self, body: tuple[Stmt, ...], given: Given, env: Mapping[str, Range], staged: frozenset[str],
        around: tuple[Loop, ...],
    ) -> tuple[Stmt, ...]:  # fmt: skip
        out: list[Stmt] = []
        for stmt in body:
            match stmt:
                case If(cond, then, ()) if around and self.harmless(
                    then, (*given, *conjuncts(cond)), env, staged, around
                ):
                    out += then
                    here = (*given, *conjuncts(cond))
                    self.free |= {name for name in names_in(then) if self.only.get(name) == here}
                case If(cond, then, other):
                    yes = self.block(then, (*given, *conjuncts(cond)), env, staged, around)
                    no = self.block(other, (*given, Const(0)), env, staged, around)
                    out.append(replace(stmt, then=yes, other=no))
                case Loop(body=inner):
                    tiled = staged | frozenset(staged_arrays((stmt,)))
                    made = self.block(inner, given, body_ranges(stmt, env), tiled, (*around, stmt))
                    out.append(replace(stmt, body=made))
                case _:
                    out.append(stmt)
        return tuple(out)

    def harmless(
        self, body: tuple[Stmt, ...], given: Given, env: Mapping[str, Range], staged: frozenset[str],
        around: tuple[Loop, ...],
    ) -> bool:  # fmt: skip
        return not names_in(given) & self.changed and all(
            isinstance(s, Assign)
            and isinstance(s.target, Var)
            and self.only.get(s.target.name) == given
            and all(_anew(loop, s.target.name, given) for loop in around)
            and all(self.readable(n, env, staged) for n in walk(s.value))
            for s in body
        )

    def readable(self, n: Node, env: Mapping[str, Range], staged: frozenset[str]) -> bool:
        match n:
            case Load(array) if array in staged:
                return True
            case Load(array, index):
                shape = self.plan.array(array).shape
                if not shape:  # a scalar in memory is one element
                    return True
                inside = (e is not None and _within(i, e, env) for i, e in zip(index, shape, strict=False))
                return len(index) == len(shape) and all(inside)
            case Binary("/" | "%", _, rhs) if is_integer(n.dtype):
                return isinstance(rhs, Const)
        return True


def _within(subscript: Expr, extent: Expr, env: Mapping[str, Range]) -> bool:
    above, below = difference_range(subscript, extent, env), range_of(subscript, env)
    return above is not None and above[1] < 0 and below is not None and below[0] >= 0


def _anew(loop: Loop, name: str, given: Given) -> bool:
    """Tell whether the condition is evaluated again unchanged.

    The iteration has the condition of the previous one, or begins with another value of the local.
    """
    return loop.var not in names_in(given) or _set_first(loop.body, name, given)


def _set_first(body: tuple[Stmt, ...], name: str, given: Given) -> bool:
    """Tell whether the local has a new value before it is used, wherever ``given`` holds."""
    first = next((s for s in body if name in names_in(s) or name in written_names((s,))), None)
    match first:
        case Assign(Var(target), value):
            return target == name and name not in names_in(value)
        case If(cond, then, ()) if all(part in given for part in conjuncts(cond)):
            return _set_first(then, name, given)
    return False


def _loaded_first(body: tuple[Stmt, ...], name: str) -> bool:
    """Tell whether the local has a new value before anything there uses it: what it was is not needed."""
    match next(s for s in body if name in names_in(s) or name in written_names((s,))):
        case Assign(Var(target), value):
            return target == name and name not in names_in(value)
    return False


def _cleared(body: tuple[Stmt, ...], free: Mapping[str, tuple[Local, Given]], given: Given) -> tuple[Stmt, ...]:
    """``body``, those that are ``free`` being 0 before they are loaded under their own condition."""
    if not free:
        return body
    out: list[Stmt] = []
    for stmt in body:
        match stmt:
            case If(cond, then, ()):
                here = (*given, *conjuncts(cond))
                loaded = written_names(then) - written_names(s for s in then if isinstance(s, Loop))
                out += (Assign(Var(v.name, v.dtype), Const(0, v.dtype)) for v, only in free.values()
                        if here[: len(only)] == only and v.name in loaded and _loaded_first(then, v.name))  # fmt: skip
                out.append(replace(stmt, then=_cleared(then, free, here)))
            case Loop():
                out.append(replace(stmt, body=_cleared(stmt.body, free, given)))
            case _:
                out.append(stmt)
    return tuple(out)
