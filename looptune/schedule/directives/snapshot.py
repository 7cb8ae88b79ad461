"""Snapshot: a loop reads the old values of an array from a copy that is made before it.

    for i in 0..n - 1:  B[i] = B[i] + B[i + 1]    ==>      for e in 1..n:      B_old[e] = B[e]
                                                           for i in 0..n - 1:  B[i] = B[i] + B_old[i + 1]

A read takes the copy if a later iteration of the loop overwrites its element. The copy has those elements that such
reads take, and is made each time that the loop begins. The dependences are found anew then.

Legal when: nothing in the loop writes the element before it is read, for one of these reads at least. Gain: the loop
carries no anti dependence on the array, so that it can be parallel, reordered or distributed. Cost: memory for the
copy, and the time to make it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from looptune.core.errors import DirectiveError, IllegalTransform
from looptune.ir.def_use import written_names
from looptune.ir.nodes import Array, Local, Loop, While
from looptune.ir.rewrite import walk_stmts
from looptune.poly.copy_loops import extents
from looptune.poly.isl_limits import JUDGEMENT, IslLimitExceeded, isl_operation_limit
from looptune.poly.loop_generation import GenerationError
from looptune.poly.snapshot import Snapshot as OldValues
from looptune.schedule.directives.base import DirectiveSite, Example, Rewrite, fresh_name
from looptune.schedule.directives.storage import StorageTransform


@dataclass(frozen=True)
class Snapshot(StorageTransform):
    name: ClassVar = "snapshot"
    syntax: ClassVar = "snapshot ARRAY [, ARRAY ...]"
    noun: ClassVar = "an array"

    def change(self, site: DirectiveSite, variable: str) -> Rewrite:
        return _Site(site, variable).change()


@dataclass(frozen=True, slots=True)
class _Site:
    """The copy of one array at the place of a directive."""

    site: DirectiveSite
    variable: str

    def change(self) -> Rewrite:
        """Return the copy and the loop that reads it. Raises DirectiveError or IllegalTransform."""
        declared = self._declared()
        try:
            with isl_operation_limit(JUDGEMENT):
                return self._judged(declared)
        except IslLimitExceeded as reason:
            raise self.refuse(f"the accesses to {self.variable} are too complex to analyse: {reason}") from None
        except GenerationError as reason:
            raise self.refuse(str(reason)) from None

    def _judged(self, declared: Array | Local) -> Rewrite:
        site, variable, loop = self.site, self.variable, self.site.loop
        values = OldValues.of(site.loop_context.codelet, declared, loop, site.enclosing_loops)
        if not values.overwritten:
            raise self.refuse(f"no iteration of loop {loop.var} reads what a later one overwrites")
        if not values.old:
            flow = values.new()
            what = f"snapshot {variable} is illegal: loop {loop.var} reads what it has written: "
            raise IllegalTransform(f"{what}{flow.reason(lines=False)}", site.span, (flow.ends(site.span),))
        copy = fresh_name(f"{variable}_old", site.used_names)
        local = Local(copy, declared.dtype, extents(declared), True, span=declared.span)
        return Rewrite((*values.copied(copy), values.reading_copy(copy)), (local,), {copy: variable})

    def _declared(self) -> Array | Local:
        codelet, loop = self.site.loop_context.codelet, self.site.loop
        known = {v.name: v for v in (*codelet.params, *codelet.locals)}
        if self.variable not in known:
            raise self.refuse(f"{codelet.name} has no variable {self.variable}; it has {', '.join(known)}")
        found = known[self.variable]
        if not isinstance(found, (Array, Local)) or not found.shape:
            raise self.refuse(f"{self.variable} is no array")
        if self.variable not in written_names((loop,)):
            raise self.refuse(f"loop {loop.var} does not write {self.variable}")
        if None in found.shape:
            raise self.refuse(f"the first extent of {self.variable} is not declared")
        nested = tuple(walk_stmts((loop,)))
        whiles = (f for f in (*self.site.enclosing_loops, *nested) if isinstance(f, While))
        line = next((f.span.line for f in whiles), None)
        if line is not None:
            raise self.refuse(f"the nest has a while loop (line {line}), whose trips are not known")
        around = (f for f in self.site.enclosing_loops if isinstance(f, Loop))
        own = (f for f in (*around, *nested) if isinstance(f, Loop) and self.variable in f.private_arrays)
        owner = next((f.var for f in own), None)
        if owner is not None:
            raise self.refuse(f"each iteration of loop {owner} has its own {self.variable}")
        return found

    def refuse(self, why: str) -> DirectiveError:
        return self.site.refuse(f"snapshot {self.variable}: {why}")


_NEXT = """for (int i = 0; i < n - 1; i++)
    B[i] = B[i] + B[i + 1];"""
_TRIANGLE = """for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      for (int k = i + 1; k < n; k++)
        D[i][j] = D[i][j] + G[k][i] * D[k][j];"""
_STEPS = """for (int j = 0; j < m; j++)
    #pragma hmppcg snapshot E
    for (int i = j; i < m - 2; i += 2)
      if (D[0][i] > 0)
        E[i] = E[i + 2] * E[i / 2];"""
_BOTH = """for (int i = 1; i < n - 1; i++)
    B[i] = B[i - 1] + B[i + 1];"""
_PREVIOUS = """for (int i = 1; i < n; i++)
    A[i] = A[i - 1] + B[i];"""
_SAME = """for (int i = 0; i < n; i++) {
    B[i] = A[i];
    A[i] = B[n - 1 - i];
  }"""

Snapshot.examples = {
    "snapshot B": Example(_NEXT, """\
float *B_old = __builtin_malloc(sizeof(float[n]));
if (!B_old) __builtin_abort();
for (int e0 = 1; e0 < n; e0++) {
  B_old[e0] = B[e0];
}
for (int i = 0; i < n - 1; i++) {
  B[i] += B_old[i + 1];
}
__builtin_free(B_old);"""),
    "snapshot D": Example(_TRIANGLE, """\
float (*D_old)[m] = __builtin_malloc(sizeof(float[n][m]));
if (!D_old) __builtin_abort();
for (int e0 = 1; e0 < n; e0++) {
  for (int e1 = 0; e1 < m; e1++) {
    D_old[e0][e1] = D[e0][e1];
  }
}
for (int i = 0; i < n; i++) {
  for (int j = 0; j < m; j++) {
    for (int k = i + 1; k < n; k++) {
      D[i][j] += G[k][i] * D_old[k][j];
    }
  }
}
__builtin_free(D_old);"""),
    "snapshot E": Example(_STEPS, """\
float *E_old = __builtin_malloc(sizeof(float[m]));
if (!E_old) __builtin_abort();
for (int j = 0; j < m; j++) {
  for (int e0 = j + 2; e0 < m; e0 += 2) {
    E_old[e0] = E[e0];
  }
  for (int i = j; i < m - 2; i += 2) {
    if (D[0][i] > 0) {
      E[i] = E_old[i + 2] * E[i / 2];
    }
  }
}
__builtin_free(E_old);"""),
    "Snapshot B": Example(_BOTH, """\
float *B_old = __builtin_malloc(sizeof(float[n]));
if (!B_old) __builtin_abort();
for (int e0 = 2; e0 < n; e0++) {
  B_old[e0] = B[e0];
}
for (int i = 1; i < n - 1; i++) {
  B[i] = B[i - 1] + B_old[i + 1];
}
__builtin_free(B_old);"""),
    "snapshot A": Example(_PREVIOUS, refused="no iteration of loop i reads what a later one overwrites"),
    "SNAPSHOT B": Example(_SAME, refused="loop i reads what it has written: iteration (i=0)"),
    "snapshot q": Example(_NEXT, refused="f has no variable q; it has n, B"),
    "snapshot n": Example(_NEXT, refused="n is no array"),
    "snapshot": Example(_NEXT, refused="snapshot needs the name of an array"),
}  # fmt: skip
