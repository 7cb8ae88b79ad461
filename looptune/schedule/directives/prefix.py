"""Prefix: a loop that carries sums runs in parts, each from the sum of all parts before it (parallel prefix, scan).

    for i in 0..N:                      for p in 0..N/L:                         loop i_sum, parallel
      s += x[i]                           s_sum = 0
      y[i] = s                            for i in p*L..p*L + L: s_sum += x[i]   loop i_term
                                          s_sums[p] = s_sum
                                 ==>    for p in 0..N/L:                         loop i_scan
                                          s_starts[p] = s; s += s_sums[p]
                                        for p in 0..N/L:                         loop i_part, parallel
                                          s_part = s_starts[p]
                                          for i in p*L..p*L + L:                 loop i
                                            s_part += x[i]; y[i] = s_part

The loop over the sums of the parts is a prefix sum as well: ``prefix 16, 64`` divides it into parts of 64 sums. The
loops are called after the loop that they are made of; the dependences are found anew then. A recurrence through an
array, ``y[i] = y[i - 1] + x[i]``, is read as the same loop with a scalar.

Legal when: all that the loop carries is accumulated by ``+ * & | ^ min max``, and not under --no-reassociate if another
order rounds differently; what is accumulated depends neither on the values so far nor on what the loop writes. Gain:
threads for a loop that has none. Cost: the terms are computed twice, memory for two values a part, and two kernels.

Source: G. Blelloch, "Prefix sums and their applications", Carnegie Mellon University, CMU-CS-90-190, 1990.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from looptune.core.errors import DirectiveError
from looptune.poly.isl_limits import JUDGEMENT, IslLimitExceeded, isl_operation_limit
from looptune.poly.prefix_sum import NoPrefixSum, PrefixLoop
from looptune.schedule.directives.base import DirectiveSite, Example, Rewrite, Transform, positive

if TYPE_CHECKING:
    from looptune.ir.nodes import Codelet, Directive, Loop, PrefixDivision

MOST_LENGTH = 2**30
"""Iterations of a part."""


@dataclass(frozen=True)
class Prefix(Transform):
    name: ClassVar = "prefix"
    syntax: ClassVar = "prefix LENGTH [, LENGTH ...]"
    stage: ClassVar = "division"

    lengths: tuple[int, ...]

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        if not directive.args:
            raise DirectiveError(f"prefix needs the iterations of a part (syntax: {cls.syntax})", directive.span)
        named = next((a for a in directive.args if a.key), None)
        if named is not None:
            raise DirectiveError(f"prefix takes the iterations of a part, got '{named.key}'", named.span)
        lengths = tuple(positive(a, "the iterations of a part") for a in directive.args)
        for arg, length in zip(directive.args, lengths, strict=True):
            if not 2 <= length <= MOST_LENGTH:
                raise DirectiveError(f"a part has 2 to {MOST_LENGTH:,} iterations, not {length:,}", arg.span)
        return cls(lengths, span=directive.span)

    def divisions(self, codelet: Codelet, loop: Loop) -> tuple[tuple[PrefixLoop, PrefixDivision], ...]:
        """Return the divisions of the loop of ``codelet``, each of what the one before it made, with what they divide.

        Raises DirectiveError where the loop is no prefix sum.
        """
        found: list[tuple[PrefixLoop, PrefixDivision]] = []
        number = loop.number
        try:
            with isl_operation_limit(JUDGEMENT):
                for length in self.lengths:
                    prefix = PrefixLoop.of(codelet, number)
                    found.append((prefix, prefix.divided(length)))
                    codelet, number = found[-1][1].after, found[-1][1].loops[1]
        except NoPrefixSum as reason:
            raise DirectiveError(f"{self._said}: {reason}", self.span) from None
        except IslLimitExceeded as reason:
            why = f"the accesses of loop {loop.var} are too complex to analyse: {reason}"
            raise DirectiveError(f"{self._said}: {why}", self.span) from None
        return tuple(found)

    @property
    def _said(self) -> str:
        return f"prefix {', '.join(map(str, self.lengths))}"

    def apply(self, site: DirectiveSite) -> Rewrite:
        raise NotImplementedError("the stage applies it to the codelet: it makes other statements")


_SCALAR = """float s = 0;
  for (int i = 0; i < n; i++) {
    s += A[i];
    B[i] = s;
  }"""
_ARRAY = "for (int i = 1; i < n; i++)\n    A[i] += A[i - 1];"
_SUM = """float s = 0;
  for (int i = 0; i < n; i++)
    s += A[i];
  B[0] = s;"""
_COPY = "for (int i = 0; i < n; i++)\n    B[i] = A[i];"
_RECURRENCE = "for (int i = 1; i < n; i++)\n    A[i] = 2 * A[i - 1] + B[i];"
_DEPENDS = """float s = 0;
  for (int i = 0; i < n; i++) {
    if (s < 10)
      s += A[i];
    B[i] = s;
  }"""
_WRITTEN = """float s = 0;
  for (int i = 0; i < n; i++) {
    A[i] = B[i] * B[i];
    s += A[i];
    B[i] = s;
  }"""
_MORE = """float s = 0;
  for (int i = 1; i < n; i++) {
    s += A[i];
    B[i] = B[i - 1] * B[i - 1] + s;
  }"""
_TRIANGLE = """for (int i = 0; i < n; i++)
    #pragma hmppcg prefix 4
    for (int j = 1; j < i; j++)
      G[i][j] += G[i][j - 1];"""
_STEPS = "for (int i = 2; i < n; i += 2)\n    A[i] += A[i - 2];"

Prefix.examples = {
    "prefix 16": Example(_SCALAR, """\
float s;
float *s_sums = __builtin_malloc(sizeof(float[((n + 15) / 16 > 1 ? (n + 15) / 16 : 1)]));
if (!s_sums) __builtin_abort();
float *s_starts = __builtin_malloc(sizeof(float[((n + 15) / 16 > 1 ? (n + 15) / 16 : 1)]));
if (!s_starts) __builtin_abort();
s = 0;
for (int i_sum = 0; i_sum < (n + 15) / 16; i_sum++) {
  float s_sum;
  s_sum = 0.0f;
  for (int i_term = 16 * i_sum; i_term < (16 * i_sum + 16 < n ? 16 * i_sum + 16 : n); i_term++) {
    s_sum += A[i_term];
  }
  s_sums[i_sum] = s_sum;
}
for (int i_scan = 0; i_scan < (n + 15) / 16; i_scan++) {
  s_starts[i_scan] = s;
  s += s_sums[i_scan];
}
for (int i_part = 0; i_part < (n + 15) / 16; i_part++) {
  float s_part;
  s_part = s_starts[i_part];
  for (int i = 16 * i_part; i < (16 * i_part + 16 < n ? 16 * i_part + 16 : n); i++) {
    s_part += A[i];
    B[i] = s_part;
  }
}
__builtin_free(s_starts);
__builtin_free(s_sums);"""),
    "prefix 8": Example(
        _ARRAY,
        """\
float A_last;
float *A_sums = __builtin_malloc(sizeof(float[((n + 6) / 8 > 1 ? (n + 6) / 8 : 1)]));
if (!A_sums) __builtin_abort();
float *A_starts = __builtin_malloc(sizeof(float[((n + 6) / 8 > 1 ? (n + 6) / 8 : 1)]));
if (!A_starts) __builtin_abort();
if (1 < n) {
  A_last = A[0];
}
for (int i_sum = 0; i_sum < (n + 6) / 8; i_sum++) {
  float A_sum;
  A_sum = 0.0f;
  for (int i_term = 1 + 8 * i_sum; i_term < (1 + 8 * i_sum + 8 < n ? 1 + 8 * i_sum + 8 : n); i_term++) {
    A_sum = A[i_term] + A_sum;
  }
  A_sums[i_sum] = A_sum;
}
for (int i_scan = 0; i_scan < (n + 6) / 8; i_scan++) {
  A_starts[i_scan] = A_last;
  A_last += A_sums[i_scan];
}
for (int i_part = 0; i_part < (n + 6) / 8; i_part++) {
  float A_part;
  A_part = A_starts[i_part];
  for (int i = 1 + 8 * i_part; i < (1 + 8 * i_part + 8 < n ? 1 + 8 * i_part + 8 : n); i++) {
    A_part = A[i] + A_part;
    A[i] = A_part;
  }
}
__builtin_free(A_starts);
__builtin_free(A_sums);""",
    ),
    "Prefix 4": Example(_SUM, refused="loop i needs no parts: write parallel or rfactor"),
    "PREFIX 4": Example(_COPY, refused="loop i needs no parts: write parallel or rfactor"),
    "prefix 3": Example(_RECURRENCE, refused="loop i carries A[i], which is not accumulated by one operation"),
    "prefix 5": Example(_DEPENDS, refused="what loop i accumulates depends on the value of s so far"),
    "prefix 6": Example(_WRITTEN, refused="what loop i accumulates reads A[i], which the loop has written"),
    "prefix 7": Example(_MORE, refused="loop i carries more than prefix sums: iteration (i_part=0, i=7)"),
    "prefix 4": Example(_TRIANGLE, refused="the bounds of loop j depend on i: they must be made of sizes"),
    "prefix 2": Example(_STEPS, refused="loop i has steps of 2: they must be 1"),
    "prefix 1": Example(_SCALAR, refused="a part has 2 to 1,073,741,824 iterations, not 1"),
    "prefix": Example(_SCALAR, refused="prefix needs the iterations of a part"),
    "prefix i:4": Example(_SCALAR, refused="prefix takes the iterations of a part, got 'i'"),
}  # fmt: skip
