"""Unroll: make several iterations of a loop the body of one trip.

    for j in 0..N: S(j)      q = N div U, r = N mod U

    contiguous  copy c runs U*j + c      split       copy c runs j + c*q   (a warp's accesses stay coalesced)
    vector R    with split: R neighbours at a time, copy c runs R*j + c mod R + (c div R)*R*q   (they fill a vector too)
    remainder   a second loop runs the last r iterations
    guarded     one loop of q + r trips: trip j < q runs the U copies, a later one iteration j + (U-1)*q
    noremainder the user asserts r = 0
    jam         the inner loops of the copies become one: each trip computes a tile of U rows in registers; where
                their bounds differ, the common range is one loop, and the rest of each copy stands before and after

Legal when: contiguous without jam is always legal; split and jam are legal if no dependence is reversed. Gain: fewer
branches, reuse in registers, instruction-level parallelism. Cost: registers, code, a remainder loop. Source: the
directives of HMPP Workbench as used by Grauer-Gray et al., InPar 2012, figure 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

from looptune.core.errors import DirectiveError
from looptune.ir.def_use import referenced_names
from looptune.ir.intervals import affine_terms
from looptune.ir.nodes import Arg, Binary, Const, Directive, Expr, If, Local, Loop, Stmt, Var, While
from looptune.ir.rewrite import has_loop, renaming, rewrite, substitute
from looptune.ir.simplify import add, div, mod, mul, sub
from looptune.poly.scop import SchedulePiece
from looptune.schedule.directives.base import (
    Alternative,
    DirectiveSite,
    Example,
    NewSchedule,
    Rewrite,
    Transform,
    fresh_name,
    isl_conjunction,
    iteration_body,
    positive,
    restrict_schedule,
    statement_names,
    trip_count,
    unknown_argument,
)
from looptune.schedule.directives.jam import jam_loops

Scheme = Literal["contiguous", "split"]
Rest = Literal["remainder", "guarded", "noremainder"]
_WORDS = ("contiguous", "split", "remainder", "guarded", "noRemainder", "jam", "noJam")


@dataclass(frozen=True)
class Unroll(Transform):
    name: ClassVar = "unroll"
    syntax: ClassVar = (
        "unroll U [, contiguous | split [, vector R]] [, remainder | guarded | noremainder] [, jam | noJam]"
    )
    stage: ClassVar = "loop"
    exclusive_group: ClassVar = "copies of the body"
    former: ClassVar = {"runs": "vector"}

    factor: int
    scheme: Scheme = "contiguous"
    rest: Rest = "remainder"
    jam: bool = False
    vector: int = 1

    @property
    def copies(self) -> int:
        return self.factor

    @property
    def grouped_iterations(self) -> tuple[tuple[str, int], ...]:
        return (("", self.factor),)

    @classmethod
    def is_word(cls, arg: Arg, directive: Directive) -> bool:
        """Tell it from a loop's name: ``unroll vector:4`` is for the loop that is called vector."""
        return not arg.values or sum(bool(a.values) for a in directive.args) > 1

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        vectors = _vectors(cls, directive)
        factors = [a for a in directive.args if a.values and a not in vectors]
        unknown = next((a for a in directive.args if not a.values and not _is_known(a.key)), None)
        if unknown is not None:
            raise unknown_argument(cls, unknown, _WORDS)
        if len(factors) != 1:
            raise DirectiveError(f"unroll takes one factor, got {len(factors)} (syntax: {cls.syntax})", directive.span)
        self = cls(positive(factors[0], "unroll factor"), span=directive.span)
        for arg in directive.args:
            match arg.key.lower():
                case _ if arg.values:
                    continue
                case "contiguous" | "split" as scheme:
                    self = replace(self, scheme=scheme)
                case "remainder" | "guarded" | "noremainder" as rest:
                    self = replace(self, rest=rest)
                case "jam" | "nojam" as word:
                    self = replace(self, jam=word == "jam")
                case "vector":
                    raise DirectiveError(
                        "vector needs a number of consecutive iterations, such as split, vector 4", arg.span
                    )
                case _:
                    raise unknown_argument(cls, arg, _WORDS)
        return self._with_vectors(vectors)

    def _with_vectors(self, given: Sequence[Arg]) -> Self:
        if not given:
            return self
        said, width = f"unroll {self.factor}", positive(given[0], "vector length")
        if len(given) > 1:
            raise DirectiveError(f"{said} takes one vector length, got {len(given)}", given[1].span)
        if self.scheme != "split":
            right = f"write {said}, split, vector {width}"
            raise DirectiveError(f"vector {width} needs split: {right}", given[0].span)
        if self.factor % width:
            raise DirectiveError(
                f"{said} cannot have vectors of {width}: {width} does not divide {self.factor}", given[0].span
            )
        return replace(self, vector=width)

    @classmethod
    def alternatives(cls, directive: Directive, loop: Loop | While) -> Iterator[Alternative]:
        """Yield copies left where they are in place of jammed ones, neighbours in place of a split."""
        words = [a.key.lower() for a in directive.args]
        for dropped in ({"split"}, {"jam"}, {"split", "jam"}):
            if dropped <= {*words}:
                yield Alternative(
                    replace(directive, args=tuple(a for a in directive.args if a.key.lower() not in dropped))
                )

    @classmethod
    def per_loop(cls, directive: Directive) -> tuple[tuple[str, Directive], ...]:
        """Return one directive for each loop: ``unroll jj:3, ii:2, guarded`` unrolls both."""
        vectors = _vectors(cls, directive)
        named = [a for a in directive.args if a.key and a.values and a not in vectors]
        if not named:
            return (("", directive),)
        rest = (*(a for a in directive.args if not a.values), *vectors)
        return tuple((a.key, replace(directive, args=(replace(a, key=""), *rest))) for a in named)

    def schedule(self, site: DirectiveSite) -> NewSchedule | None:
        # Trips counted from where a loop around says are no order of the loop's values once its copies are jammed.
        moved = self.scheme == "split" or (self.jam and has_loop(site.loop.body)) or site.relative
        if self.factor == 1 or not moved:
            return None
        p, order = site.depth, restrict_schedule(site.order, statement_names(site.loop.body))
        jam = self.jam and has_loop(site.loop.body)
        new = {
            name: tuple(q for piece in pieces for q in self._pieces(piece, site, jam)) for name, pieces in order.items()
        }
        return NewSchedule(new, None if jam else p + 3, site.private if jam else frozenset(), interleaved=jam)

    def _pieces(self, piece: SchedulePiece, site: DirectiveSite, jam: bool) -> tuple[SchedulePiece, ...]:
        """Return the pieces of time.

        These are the main loop, copy by copy if ``split``, then the rest: ``(0, trip, copy)`` before ``(1, iteration,
        0)``.
        """
        u, s, p = self.factor, site.loop.step, site.depth
        lo = site.bound(site.loop.lo, piece)
        span = _difference(site.bound(site.loop.hi, piece), lo)
        n = f"floor(({span} + {s - 1})/{s})" if s > 1 else span
        q = f"floor({n}/{u})"
        before, e, inner = piece.time[:p], piece.time[p], piece.time[p + 1 :]
        x = f"floor({_difference(e, lo)}/{s})" if s > 1 else _difference(e, lo)

        def timed(half: str, trip: str, copy: str, condition: str) -> SchedulePiece:
            middle = (half, trip, *inner, copy) if jam else (half, trip, copy, *inner)
            return SchedulePiece((*before, *middle), isl_conjunction(piece.when, condition))

        rest = timed("1", x, "0", f"{x} >= {u}*{q}")
        if self.scheme == "contiguous":
            return timed("0", f"floor({x}/{u})", f"({x}) mod {u}", f"{x} < {u}*{q}"), rest
        if self.vector == 1:
            first = timed("0", x, "0", f"{x} < {q}")
            copies = (timed("0", f"{x} - {c}*{q}", str(c), f"{c}*{q} <= {x} < {c + 1}*{q}") for c in range(1, u))
            return (first, *copies, rest)
        r = self.vector
        vectors = (
            timed("0", f"floor(({x} - {c}*{q})/{r})", f"{c} + ({x} - {c}*{q}) mod {r}", f"{c}*{q} <= {x} < {c + r}*{q}")
            for c in range(0, u, r)
        )
        return (*vectors, rest)

    def apply(self, site: DirectiveSite) -> Rewrite:
        loop, u = site.loop, self.factor
        n = trip_count(loop)
        factor = Const(u, loop.dtype)
        q, r = _divided(n, factor)
        self._check_noremainder(site, n, r)
        if u == 1:
            return Rewrite((loop,))
        trip = Var(loop.var, loop.dtype)
        width = u if self.scheme == "contiguous" else self.vector
        first = mul(Const(width, loop.dtype), trip)
        places = [
            add(add(first, Const(c % width, loop.dtype)), mul(Const(c - c % width, loop.dtype), q)) for c in range(u)
        ]
        copies, locals_, of = self._copies(site, places)
        own = tuple(copy for copy, local in of.items() if local in loop.private_arrays)
        main = replace(
            loop, lo=Const(0, loop.dtype), hi=q, step=1, body=copies, private_arrays=(*loop.private_arrays, *own)
        )
        if self.rest == "noremainder" or r == Const(0, loop.dtype):
            return Rewrite((main,), locals_, of)
        if self.rest == "remainder":
            start = mul(q, factor) if isinstance(n, Const) else sub(n, r)
            last = replace(loop, lo=start, hi=n, step=1, body=iteration_body(loop, trip))
            return Rewrite((main, last) if q != Const(0, loop.dtype) else (last,), locals_, of)
        single = iteration_body(loop, add(trip, mul(Const(u - 1, loop.dtype), q)))
        guarded = _guard(Binary("<", trip, q), copies, single, sink=self.jam)
        return Rewrite((replace(main, hi=add(q, r), body=guarded),), locals_, of)

    def _check_noremainder(self, site: DirectiveSite, n: Expr, r: Expr) -> None:
        """Check the assertion that no iteration remains. Raises if it is known to be false."""
        known = {k: Const(int(v)) for k, v in site.values.items() if float(v).is_integer()}
        match substitute((n, r), known):
            case (Const(count), Const(left)) if self.rest == "noremainder" and left:
                raise site.refuse(
                    f"unroll {self.factor}, noremainder: loop {site.loop.var} runs {count} times, "
                    f"with a remainder of {left}"
                )

    def _copies(
        self, site: DirectiveSite, places: Sequence[Expr]
    ) -> tuple[tuple[Stmt, ...], tuple[Local, ...], dict[str, str]]:
        """Return the new body, the locals it needs, and which local each of them stands for."""
        bodies = [iteration_body(site.loop, place) for place in places]
        if not (self.jam and has_loop(site.loop.body)):
            return tuple(s for b in bodies for s in b), (), {}
        renamed, locals_, own = _own_locals(bodies, site)
        return jam_loops(renamed, site), locals_, own


def _divided(n: Expr, factor: Const) -> tuple[Expr, Expr]:
    """Return the quotient and the remainder; of a sum of multiples of the factor, the remainder is 0.

    >>> from looptune.ir.c_printer import expression_text
    >>> tiles = sub(mul(Const(8), div(Var("n"), Const(8))), mul(Const(32), Var("t")))
    >>> [expression_text(e) for e in _divided(tiles, Const(4))]
    ['2 * (n / 8) - 8 * t', '0']
    """
    q, r = div(n, factor), mod(n, factor)
    terms, constant = affine_terms(n)
    by = int(factor.value)
    if r == Const(0, n.dtype) or by < 2 or constant % by or any(k % by for k in terms.values()):
        return q, r
    q = Const(constant // by, n.dtype)
    for term, k in terms.items():
        part = mul(Const(abs(k) // by, n.dtype), term)
        q = add(q, part) if k > 0 else sub(q, part)
    return q, Const(0, n.dtype)


def _is_known(word: str) -> bool:
    return word.lower() in {"vector", *(known.lower() for known in _WORDS)}


def _vectors(cls: type[Unroll], directive: Directive) -> list[Arg]:
    """Return the arguments that say how many neighbours stay together."""
    return [a for a in directive.args if a.key == "vector" and a.values and cls.is_word(a, directive)]


def _difference(a: str, b: str) -> str:
    """Return ``a - b`` as isl text."""
    return a if b == "0" and a.isidentifier() else f"({a} - ({b}))"


def _own_locals(
    bodies: Sequence[tuple[Stmt, ...]], site: DirectiveSite
) -> tuple[list[tuple[Stmt, ...]], tuple[Local, ...], dict[str, str]]:
    """Give each copy but the first its own names for the locals of an iteration, so that copies can interleave."""
    out, made, taken = [bodies[0]], list[Local](), set(site.used_names)
    copies: dict[str, str] = {}
    used = referenced_names(bodies[0])
    mine = sorted((v for v in site.locals if v.name in used), key=lambda v: v.name)
    for c, body in enumerate(bodies[1:], 1):
        own: dict[str, str] = {}
        for v in mine:
            own[v.name] = fresh_name(f"{v.name}_{c}", taken)
            taken.add(own[v.name])
        made += [replace(v, name=own[v.name]) for v in mine]
        copies |= {copy: local for local, copy in own.items()}
        out.append(rewrite(renaming(own), body))
    return out, tuple(made), copies


def _guard(cond: Expr, many: tuple[Stmt, ...], one: tuple[Stmt, ...], *, sink: bool) -> tuple[Stmt, ...]:
    """Return ``if (cond) many else one``, moved into the loops that both share, so that a jammed nest stays a nest."""
    match many, one:
        case (Loop(_, lo, hi, inner, step) as loop,), (Loop(_, lo2, hi2, other, step2) as last,) if sink and (
            (lo, hi, step) == (lo2, hi2, step2)
        ):
            reduces = tuple(dict.fromkeys((*loop.reductions, *last.reductions)))
            return (replace(loop, body=_guard(cond, inner, other, sink=True), reductions=reduces),)
    return (If(cond, many, one),)


_COPY = "for (int i = 0; i < n; i++)\n    B[i] = A[i];"
_ROWS = "for (int i = 0; i < n; i++)\n    for (int j = 0; j < m; j++)\n      D[i][j] = D[i][j] + E[j];"
_CHAIN = "for (int i = 1; i < n; i++)\n    A[i] = A[i - 1];"

Unroll.examples = {
    "unroll 2": Example(_COPY, """\
for (int i = 0; i < n / 2; i++) {
  B[2 * i] = A[2 * i];
  B[2 * i + 1] = A[2 * i + 1];
}
for (int i = n - n % 2; i < n; i++) {
  B[i] = A[i];
}"""),
    "unroll 2, split": Example(_COPY, """\
for (int i = 0; i < n / 2; i++) {
  B[i] = A[i];
  B[i + n / 2] = A[i + n / 2];
}
for (int i = n - n % 2; i < n; i++) {
  B[i] = A[i];
}"""),
    "unroll 4, split, vector 2": Example(_COPY, """\
for (int i = 0; i < n / 4; i++) {
  B[2 * i] = A[2 * i];
  B[2 * i + 1] = A[2 * i + 1];
  B[2 * i + 2 * (n / 4)] = A[2 * i + 2 * (n / 4)];
  B[2 * i + 1 + 2 * (n / 4)] = A[2 * i + 1 + 2 * (n / 4)];
}
for (int i = n - n % 4; i < n; i++) {
  B[i] = A[i];
}"""),
    "unroll 2, split, guarded": Example(_COPY, """\
for (int i = 0; i < n / 2 + n % 2; i++) {
  if (i < n / 2) {
    B[i] = A[i];
    B[i + n / 2] = A[i + n / 2];
  } else {
    B[i + n / 2] = A[i + n / 2];
  }
}"""),
    "unroll 2, noremainder, jam": Example(_ROWS, """\
for (int i = 0; i < n / 2; i++) {
  for (int j = 0; j < m; j++) {
    D[2 * i][j] += E[j];
    D[2 * i + 1][j] += E[j];
  }
}"""),
    "unroll 4, split": Example(_CHAIN, refused="must run before"),
}  # fmt: skip
