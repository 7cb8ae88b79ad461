"""Vectorize: combine neighbouring accesses of a thread into one access of up to 16 bytes.

    vectorize        neighbours that other directives make, such as `unroll 4` or `split, vector 4`
    vectorize 4      for a loop: first combine 4 iterations, as `unroll 4, jam` does, with its words for the remainder

    B[4*j] = A[4*j]; B[4*j + 1] = A[4*j + 1]; ...        ==>        B[4*j .. 4*j + 3] = A[4*j .. 4*j + 3]

Arrays have to begin at multiples of 16 bytes, which is checked when a kernel is called. The compiler makes vectors of
the accesses that it can prove aligned: sizes have to be constants, and the length of a row a multiple of the vector
length.

Legal when: ``unroll`` is legal; without a number always. Gain: a quarter of the memory instructions. Cost: none if
there is no vector. On a CPU and in OpenCL, whose compilers vectorize themselves, it is ``unroll`` alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from looptune.core.errors import DirectiveError
from looptune.ir.nodes import Annotation, Arg, Directive
from looptune.schedule.directives.base import (
    DirectiveSite,
    Example,
    Rewrite,
    Transform,
    annotate_nest,
    positive,
    reject_arguments,
    unknown_argument,
)

_REST = ("remainder", "guarded", "noremainder")


@dataclass(frozen=True, slots=True)
class VectorAccess(Annotation):
    """The annotation that arrays begin at multiples of 16 bytes, so that neighbours are accessed together."""

    word: ClassVar = "vectorize"
    inherited: ClassVar = True
    compared: ClassVar = False
    of_join: ClassVar = True

    def pragma(self) -> str:
        return "#pragma looptune vectorize"


@dataclass(frozen=True)
class Vectorize(Transform):
    name: ClassVar = "vectorize"
    syntax: ClassVar = "vectorize [[LOOP:]LENGTH [, remainder | guarded | noremainder]]"
    stage: ClassVar = "mode"
    applies_to_nested: ClassVar = True

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        reject_arguments(directive)
        return cls(span=directive.span)

    @classmethod
    def per_loop(cls, directive: Directive) -> tuple[tuple[str, Directive], ...]:
        """Return ``unroll 4, jam`` for loop j and ``vectorize`` in place of ``vectorize j:4``."""
        if not directive.args:
            return (("", directive),)
        given = [a for a in directive.args if a.values]
        rest = [a for a in directive.args if not a.values]
        if len(given) != 1:
            raise DirectiveError(f"vectorize takes one vector length (syntax: {cls.syntax})", directive.span)
        unknown = next((a for a in rest if a.key.lower() not in _REST), None)
        if unknown is not None:
            raise unknown_argument(cls, unknown, _REST)
        (arg,) = given
        if positive(arg, "the vector length") < 2:
            raise DirectiveError("a vector has at least 2 elements: write `vectorize 2` or more", arg.span)
        jam = Arg("jam", (), span=arg.span)
        side_by_side = replace(directive, name="unroll", args=(replace(arg, key=""), *rest, jam))
        return (arg.key, side_by_side), (arg.key, replace(directive, args=()))

    def apply(self, site: DirectiveSite) -> Rewrite:
        return annotate_nest(site, VectorAccess())


_COPY = "for (int i = 0; i < n; i++)\n    B[i] = A[i];"

Vectorize.examples = {
    "vectorize 2": Example(_COPY, """\
#pragma hmppcg parallel
#pragma looptune vectorize
for (int i = 0; i < n / 2; i++) {
  B[2 * i] = A[2 * i];
  B[2 * i + 1] = A[2 * i + 1];
}
#pragma hmppcg parallel
#pragma looptune vectorize
for (int i = n - n % 2; i < n; i++) {
  B[i] = A[i];
}"""),
    "vectorize": Example(_COPY, """\
#pragma hmppcg parallel
#pragma looptune vectorize
for (int i = 0; i < n; i++) {
  B[i] = A[i];
}"""),
    "vectorize 2, split": Example(_COPY, refused="remainder"),
    "vectorize 1": Example(_COPY, refused="a vector has at least 2 elements"),
}  # fmt: skip
