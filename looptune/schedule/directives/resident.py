"""Resident: each thread keeps the elements that it owns in registers through all iterations of a persistent loop.

    for k: launch: for i: for j: A[i][j] = f(A[i][j], A[i][k], A[k][j])      ==>      one launch
                                                            each thread loads its elements of A
                                                            for k: read row k and column k from memory
                                                                   a = f(a, ...) for each of its elements a
                                                                   store those of row k + 1 and column k + 1
                                                                   all blocks of the grid wait for each other
                                                            each thread stores its elements

An element belongs to one thread, which executes all iterations that write it (owner computes). What a thread reads at
the place that it writes is in a register; all else goes through memory, and the owner stores only what others read in
the next iteration. A value that another thread computes in the same iteration is computed again from what that thread
reads, so that one wait for each iteration is enough. A thread has ``rows`` elements along the outermost dimension and
``columns`` along the innermost one, of which the last ``shared`` rows are in shared memory. A block has a rectangle of
elements; with ``cyclic``, its rows and columns are dealt out in turn, for loops whose nests shrink. On a CPU and with
fewer blocks than rectangles, elements stay in memory.

Legal when: in each iteration a nest writes an element at most once, and each value read is either from before the
iteration or from one known assignment in it. Gain: the arrays are read and written once for all iterations. Cost:
registers and shared memory have to hold the arrays; each iteration has a wait of all blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar, Self

from looptune.core.errors import DirectiveError
from looptune.ir.nodes import Annotation, Arg, Directive
from looptune.schedule.directives.base import DirectiveSite, Example, Rewrite, Transform, positive, unknown_argument

MOST = MappingProxyType({"rows": 64, "columns": 16, "shared": 64})
"""Of a thread's elements along the outermost and the innermost dimension, and of its rows in shared memory."""
CYCLIC = "cyclic"


@dataclass(frozen=True, slots=True)
class OwnedElements(Annotation):
    """Annotation of a sequential loop through which each thread keeps its elements of the arrays that are written.

    Each thread has ``rows`` times ``columns`` of them, the last ``shared`` rows in shared memory.
    """

    word: ClassVar = "resident"

    rows: int = 1
    columns: int = 1
    shared: int = 0
    cyclic: bool = False

    def pragma(self) -> str:
        numbers = (("rows", self.rows, 1), ("columns", self.columns, 1), ("shared", self.shared, 0))
        args = [f"{word} {n}" for word, n, least in numbers if n > least] + [CYCLIC] * self.cyclic
        return f"#pragma looptune resident{' ' * bool(args)}{', '.join(args)}"


@dataclass(frozen=True)
class Resident(Transform):
    name: ClassVar = "resident"
    syntax: ClassVar = "resident [rows N] [, columns N] [, shared N] [, cyclic]"
    stage: ClassVar = "mode"

    rows: int = 1
    columns: int = 1
    shared: int = 0
    cyclic: bool = False

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        found: dict[str, int] = {}
        cyclic = False
        for arg in directive.args:
            if arg.key in MOST and arg.key not in found:
                found[arg.key] = positive(arg, f"the number of {arg.key}")
                if found[arg.key] > MOST[arg.key]:
                    raise DirectiveError(
                        f"resident: the number of {arg.key} must be at most {MOST[arg.key]}, got {found[arg.key]}",
                        arg.span,
                    )
            elif arg == Arg(CYCLIC) and not cyclic:
                cyclic = True
            else:
                raise unknown_argument(cls, arg, (*MOST, CYCLIC))
        if found.get("shared", 0) > found.get("rows", 1):
            raise DirectiveError(f"resident: {found['shared']} rows in shared memory are more than the thread's "
                                 f"{found.get('rows', 1)}", directive.span)  # fmt: skip
        return cls(**found, cyclic=cyclic, span=directive.span)

    def apply(self, site: DirectiveSite) -> Rewrite:
        owned = OwnedElements(self.rows, self.columns, self.shared, self.cyclic)
        return Rewrite((replace(site.loop.annotated(owned), span=self.span),))


_LU = """\
for (int k = 0; k < n; k++) {
    for (int i = k + 1; i < n; i++)
      G[i][k] = G[i][k] / G[k][k];
    for (int i = k + 1; i < n; i++)
      for (int j = k + 1; j < n; j++)
        G[i][j] -= G[i][k] * G[k][j];
  }"""
_KEEP = "#pragma hmppcg noParallel\n#pragma looptune resident"
_KEPT = """\
for (int k = 0; k < n; k++) {
  #pragma hmppcg parallel
  for (int i = k + 1; i < n; i++) {
    G[i][k] /= G[k][k];
  }
  #pragma hmppcg parallel
  for (int i = k + 1; i < n; i++) {
    #pragma hmppcg parallel
    for (int j = k + 1; j < n; j++) {
      G[i][j] -= G[i][k] * G[k][j];
    }
  }
}"""
_PATHS = """\
for (int k = 0; k < n; k++)
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++)
        G[i][j] = G[i][j] < G[i][k] + G[k][j] ? G[i][j] : G[i][k] + G[k][j];"""
_SUMS = """\
for (int k = 0; k < 100; k++) {
    for (int i = 0; i < n; i++)
      A[0] += B[i];
    for (int i = 0; i < n; i++)
      B[i] = B[i] / A[0];
  }"""
_GATHER = """\
for (int k = 0; k < 100; k++)
    for (int i = 0; i < n; i++)
      A[n - 1 - i] = A[n - 1 - i] + B[k];"""
_COPY = "for (int i = 0; i < n; i++)\n    B[i] = A[i];"

Resident.examples = {
    "resident rows 4, columns 2": Example(_LU, f"{_KEEP} rows 4, columns 2\n{_KEPT}"),
    "resident rows 4, shared 2, cyclic": Example(_LU, f"{_KEEP} rows 4, shared 2, cyclic\n{_KEPT}"),
    "resident": Example(_PATHS, refused="the value of G[i][k] is from its own iteration of k only in a part of the "
                        "nest: separate the parts with splitat"),
    "resident columns 2": Example(_SUMS, refused="iterations of loop i inside it write the same element of A"),
    "resident columns 3": Example(_GATHER, refused="it writes A[n - 1 - i], which is not at the place of "
                                   "the iteration"),
    "resident columns 4": Example(_COPY, refused="its iterations are independent, and it needs a sequential loop"),
    "resident rows 65": Example(_LU, refused="the number of rows must be at most 64, got 65"),
    "resident rows 2, shared 3": Example(_LU, refused="3 rows in shared memory are more than the thread's 2"),
    "resident lines 2": Example(_LU, refused="resident has no argument 'lines'"),
    "resident rows 0": Example(_LU, refused="must be at least 1"),
}  # fmt: skip
