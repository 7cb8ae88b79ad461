"""Argreduce: blocks of iterations find the best term, or the first or last match, each for itself.

    for i in 0..n:                                for p in 0..ceil(n / 512):
      if (a[i] < best)                              best_block[p] = best; set[p] = 0
        best = a[i]; at = i              ==>        for i in 512 * p .. min(512 * p + 512, n):
                                                      if (a[i] < best_block[p])
                                                        best_block[p] = a[i]; at_block[p] = i; set[p] = 1
                                                  for p in 0..ceil(n / 512):
                                                    if (set[p]) if (best_block[p] < best)
                                                      best = best_block[p]; at = at_block[p]

The result is that of the loop, also among equal terms and NaNs: the blocks are taken in order, by the same comparison.
The loop over the blocks takes the place of the loop, so that ``parallel`` before it is for the blocks. The dependences
are found anew then.

Legal when: the loop keeps a term that it compares with the best so far, or the first or the last match of a condition;
the bounds are made of sizes, and nothing else there uses the variables. Gain: the loop over the blocks can be
parallel. Cost: memory for the variables of the blocks, and a loop that compares these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, ClassVar, Self

from looptune.core.errors import DirectiveError
from looptune.ir.def_use import names_in, target_name, written_names
from looptune.ir.intervals import has_invariant_bounds
from looptune.ir.nodes import (
    Assign,
    Binary,
    Codelet,
    Const,
    Directive,
    Expr,
    If,
    Load,
    Local,
    Loop,
    Scalar,
    Stmt,
    Var,
    While,
)
from looptune.ir.rewrite import map_blocks, rewrite_stmts, walk, walk_stmts
from looptune.ir.simplify import BIG_STEP, add, ceil_div, max_of, min_of, mul, sub
from looptune.poly.arg_reduction import ArgReduction, Place, arg_reductions, with_values
from looptune.schedule.directives.base import DirectiveSite, Example, Rewrite, Transform, fresh_name, positive

if TYPE_CHECKING:
    from looptune.core.source import Span


@dataclass(frozen=True)
class ArgReduce(Transform):
    name: ClassVar = "argreduce"
    syntax: ClassVar = "argreduce ITERATIONS"
    stage: ClassVar = "storage"

    iterations: int

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        if len(directive.args) != 1 or directive.args[0].key:
            raise DirectiveError(f"argreduce needs the iterations of a block (syntax: {cls.syntax})", directive.span)
        return cls(positive(directive.args[0], "the iterations of a block"), span=directive.span)

    def schedule(self, site: DirectiveSite) -> None:
        """Judge the change. Raises DirectiveError, as a refusal."""
        loop = site.loop
        found = arg_reductions(loop)
        if not found:
            raise site.refuse(f"argreduce: loop {loop.var} keeps no best term, and no first or last match")
        if not has_invariant_bounds(loop):
            raise site.refuse(f"argreduce: the bounds of loop {loop.var} are read from memory, or change in the loop")
        changing = sorted(names_in((loop.lo, loop.hi)) - _constant_sizes(site.loop_context.codelet))
        if changing:
            what = (
                f"the number of its blocks would follow from {changing[0]}, which is no parameter that stays the same"
            )
            raise site.refuse(f"argreduce: loop {loop.var}: {what}")
        site.generated.append(_Blocks(site, self.iterations).change(found))

    def apply(self, site: DirectiveSite) -> Rewrite:
        (change,) = site.generated
        assert isinstance(change, Rewrite), "a site is for one directive"
        return change


@dataclass(frozen=True, slots=True)
class _Blocks:
    """The blocks of the loop at a site, each of so many ``iterations``."""

    site: DirectiveSite
    iterations: int

    def change(self, found: Sequence[ArgReduction]) -> Rewrite:
        """Return the loop over the blocks and the one that compares what they found."""
        loop, taken = self.site.loop, set(self.site.used_names)
        block = Var(_taken(f"{loop.var}_block", taken), loop.dtype)
        groups = [_Group.of(g, block, self.count, taken) for g in found]
        inner = replace(loop, lo=self._start(block), hi=self._end(block), body=loop.body, directives=(), number=0)
        for group in groups:
            inner = replace(inner, body=group.in_block(inner.body))
        begin = tuple(stmt for group in groups for stmt in group.begun(loop.span))
        blocks = Loop(block.name, Const(0, loop.dtype), self.count, (*begin, inner), number=loop.number,
                      dtype=loop.dtype, directives=loop.directives, span=loop.span)  # fmt: skip
        taken_in_order = tuple(group.taken(loop.span) for group in groups)
        last = replace(blocks, body=taken_in_order, number=0, directives=())
        made = tuple(v for group in groups for v in group.locals)
        copies = {held.array: target_name(t) for group in groups for t, held in group.held.items()}
        return Rewrite(_as_text(self.site, (blocks, last)), made, copies)

    @property
    def count(self) -> Expr:
        """Return the number of the blocks."""
        loop = self.site.loop
        unsigned = loop.dtype.startswith("u") and loop.lo != Const(0, loop.dtype)
        hi = max_of(loop.hi, loop.lo) if unsigned else loop.hi
        return ceil_div(sub(hi, loop.lo), loop.step * self.iterations)

    def _width(self) -> Const:
        return Const(self.site.loop.step * self.iterations, self.site.loop.dtype)

    def _start(self, block: Var) -> Expr:
        return add(self.site.loop.lo, mul(self._width(), block))

    def _end(self, block: Var) -> Expr:
        start, hi = self._start(block), self.site.loop.hi
        if self._width().value <= BIG_STEP:
            return min_of(add(start, self._width()), hi)
        return add(start, min_of(self._width(), sub(hi, start)))


@dataclass(frozen=True, slots=True)
class _Group:
    """A group of variables, of which each block has its own in arrays; its ``flag`` tells whether it set them."""

    of_loop: ArgReduction
    held: Mapping[Place, Load]
    flag: Load
    locals: tuple[Local, ...]

    @classmethod
    def of(cls, group: ArgReduction, block: Var, count: Expr, taken: set[str]) -> _Group:
        extent = max_of(count, Const(1, count.dtype))
        names = {t: _taken(f"{target_name(t)}_block", taken) for t in group.targets}
        held = {t: Load(name, (block,), t.dtype) for t, name in names.items()}
        flag = Load(_taken(f"{target_name(group.targets[0])}_set", taken), (block,), "int32")
        made = tuple(Local(e.array, e.dtype, (extent,), True) for e in (*held.values(), flag))
        return cls(group, held, flag, made)

    def begun(self, span: Span) -> Iterator[Stmt]:
        """Yield what begins a block: what the test reads is as it was before the loop, and nothing is set."""
        read = set() if self.of_loop.test is None else {n for n in walk(self.of_loop.test) if n in self.held}
        yield from (Assign(held, target, span=span) for target, held in self.held.items() if target in read)
        yield Assign(self.flag, Const(0), span=span)

    def in_block(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return the statements of the loop with the variables of the block."""
        update = self.of_loop.update
        sets = [replace(s, target=self.held[s.target]) for s in update.then if isinstance(s, Assign)]
        noted = Assign(self.flag, Const(1), span=update.span)
        own = replace(update, cond=with_values(update.cond, self.held), then=(*sets, noted))
        return rewrite_stmts(lambda stmt: own if stmt == update else None, body)

    def taken(self, span: Span) -> Stmt:
        """Return what takes the variables of a block, if it set them and they still pass the test."""
        test = self.of_loop.test_of(self.held)
        sets = tuple(Assign(target, held, span=span) for target, held in self.held.items())
        kept = sets if test is None else (If(test, sets, span=span),)
        return If(Binary("!=", self.flag, Const(0)), kept, span=span)


def _constant_sizes(codelet: Codelet) -> set[str]:
    """Return the parameters that the codelet does not change."""
    return {p.name for p in codelet.params if isinstance(p, Scalar)} - written_names(codelet.body)


def _taken(name: str, taken: set[str]) -> str:
    found = fresh_name(name, taken)
    taken.add(found)
    return found


def _as_text(site: DirectiveSite, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return the loops as a part of the text: with numbers, names of new statements, and the iterations of all."""
    nodes = tuple(walk_stmts(site.loop_context.codelet.body))
    numbers = count(1 + max(n.number for n in nodes if isinstance(n, Loop | While)))
    used = {n.name for n in nodes if isinstance(n, Assign)}
    names = (n for k in count() if (n := f"block{k}") not in used)

    def visit(stmt: Stmt, around: tuple[Expr, ...]) -> Stmt:
        match stmt:
            case Assign():
                return replace(stmt, name=stmt.name or next(names), instance=around)
            case Loop():
                inside = (*around, Var(stmt.var, stmt.dtype))
                made = tuple(visit(s, inside) for s in stmt.body)
                return replace(stmt, number=stmt.number or next(numbers), body=made)
        return map_blocks(lambda block: tuple(visit(s, around) for s in block), stmt)

    enclosing = tuple(Var(f.var, f.dtype) for f in site.enclosing_loops if isinstance(f, Loop))
    return tuple(visit(s, enclosing) for s in body)


_LEAST = """float best = A[0];
  int at = 0;
  for (int i = 1; i < n; i++)
    if (A[i] < best) {
      best = A[i];
      at = i;
    }
  B[0] = best + at;"""
_COPY = "for (int i = 0; i < n; i++)\n    B[i] = A[i];"

ArgReduce.examples = {
    "argreduce 512": Example(_LEAST, """\
float best;
int at;
float *best_block = __builtin_malloc(sizeof(float[((n + 510) / 512 > 1 ? (n + 510) / 512 : 1)]));
if (!best_block) __builtin_abort();
int *at_block = __builtin_malloc(sizeof(int[((n + 510) / 512 > 1 ? (n + 510) / 512 : 1)]));
if (!at_block) __builtin_abort();
int *best_set = __builtin_malloc(sizeof(int[((n + 510) / 512 > 1 ? (n + 510) / 512 : 1)]));
if (!best_set) __builtin_abort();
best = A[0];
at = 0;
for (int i_block = 0; i_block < (n + 510) / 512; i_block++) {
  best_block[i_block] = best;
  best_set[i_block] = 0;
  for (int i = 1 + 512 * i_block; i < (1 + 512 * i_block + 512 < n ? 1 + 512 * i_block + 512 : n); i++) {
    if (A[i] < best_block[i_block]) {
      best_block[i_block] = A[i];
      at_block[i_block] = i;
      best_set[i_block] = 1;
    }
  }
}
for (int i_block = 0; i_block < (n + 510) / 512; i_block++) {
  if (best_set[i_block] != 0) {
    if (best_block[i_block] < best) {
      best = best_block[i_block];
      at = at_block[i_block];
    }
  }
}
B[0] = best + at;
__builtin_free(best_set);
__builtin_free(at_block);
__builtin_free(best_block);"""),
    "argreduce 8": Example(_COPY, refused="loop i keeps no best term, and no first or last match"),
    "argreduce": Example(_LEAST, refused="argreduce needs the iterations of a block"),
}  # fmt: skip
