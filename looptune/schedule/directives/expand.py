"""Expand: every iteration of a loop gets its own copy of an array or a scalar.

    for i in 0..n:  t = A[i]; B[i] = t        ==>      for i in 0..n:  t_i[i] = A[i]; B[i] = t_i[i]
    C[0] = t                                           if n >= 1: t = t_i[n - 1]
                                                       C[0] = t

The copies are an array with one more leading dimension, of the loop's extent. Directives on loops inside each other
that name the same variable expand it along all of them. What is read after the outermost of these loops, in the codelet
or by its caller, is copied from the iteration that wrote it last, by element. The dependences are found anew then.

Legal when: each value is read only in the iteration that wrote it, or after the loop. Gain: the loop carries no
dependence on the variable, so that it can be parallel, reordered or distributed. Cost: memory for the copies.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, ClassVar, NoReturn

from looptune.core.errors import DirectiveError, IllegalTransform
from looptune.core.source import location
from looptune.ir.def_use import names_in, written_names
from looptune.ir.nodes import Array, Const, Load, Local, Loop, Scalar, Var, While
from looptune.ir.rewrite import rewrite_stmts, substitute, walk, walk_stmts
from looptune.ir.simplify import is_integer
from looptune.poly.expansion import CopyIndex, Expansion, copied_out, expanded_body
from looptune.poly.isl_limits import JUDGEMENT, IslLimitExceeded, isl_operation_limit
from looptune.poly.loop_generation import GenerationError
from looptune.schedule.directives.base import DirectiveSite, Example, Rewrite, fresh_name
from looptune.schedule.directives.storage import StorageTransform

if TYPE_CHECKING:
    from looptune.ir.nodes import Node, Stmt
    from looptune.poly.legality import Violation


MOST_ELEMENTS = 2**31 - 1
"""Of the copies of a variable: their subscripts have 32 bits."""


@dataclass(frozen=True)
class Expand(StorageTransform):
    name: ClassVar = "expand"
    syntax: ClassVar = "expand NAME [, NAME ...]"
    noun: ClassVar = "a variable"

    inner: tuple[tuple[str, int], ...] = ()
    """(variable, loop number) pairs: the loops inside along which the variables are expanded as well."""

    def change(self, site: DirectiveSite, variable: str) -> Rewrite:
        return _Site(site, variable, self._loops(site, variable)).change()

    def _loops(self, site: DirectiveSite, variable: str) -> tuple[Loop, ...]:
        """Return the loops along which the variable is expanded, outermost first."""
        numbers = {number for name, number in self.inner if name == variable}
        inner = [f for f in walk_stmts(site.loop.body) if isinstance(f, Loop) and f.number in numbers]
        for outer, loop in pairwise(inner):
            if not any(f is loop for f in walk_stmts(outer.body)):
                raise site.refuse(f"expand {variable}: loop {loop.var} is not in loop {outer.var}")
        return (site.loop, *inner)


@dataclass(frozen=True, slots=True)
class _Site:
    """The expansion of one variable at the place of a directive, along ``loops``, outermost first."""

    site: DirectiveSite
    variable: str
    loops: tuple[Loop, ...]

    def change(self) -> Rewrite:
        """Return the expanded loop, with what is copied from it. Raises DirectiveError or IllegalTransform."""
        declared = self._declared()
        self._check_text(declared)
        try:
            with isl_operation_limit(JUDGEMENT):
                return self._judged(declared)
        except IslLimitExceeded as reason:
            raise self.refuse(f"the accesses to {self.variable} are too complex to analyse: {reason}") from None
        except GenerationError as reason:
            raise self.refuse(str(reason)) from None

    def _judged(self, declared: Array | Scalar | Local) -> Rewrite:
        codelet = self.site.loop_context.codelet
        expansion = Expansion.of(codelet, self.variable, self.loops, self.site.enclosing_loops)
        indices = [self._copy_index(expansion, f) for f in self.loops]
        self._check_values(expansion)
        self._check_writers(expansion)
        copies = fresh_name("_".join((self.variable, *(f.var for f in self.loops))), self.site.used_names)
        shape = () if isinstance(declared, Scalar) else tuple(e for e in declared.shape if e is not None)
        local = Local(copies, declared.dtype, (*(x.extent for x in indices), *shape), True, span=declared.span)
        self._check_size(local)
        body = (expanded_body(expansion, copies, indices), *copied_out(expansion, copies, indices))
        return Rewrite(body, (local,), {copies: self.variable})

    def _declared(self) -> Array | Scalar | Local:
        codelet = self.site.loop_context.codelet
        known = {v.name: v for v in (*codelet.params, *codelet.locals)}
        if self.variable not in known:
            raise self.refuse(f"{codelet.name} has no variable {self.variable}; it has {', '.join(known)}")
        if self.variable not in written_names((self.site.loop,)):
            raise self.refuse(f"loop {self.site.loop.var} does not write {self.variable}")
        found = known[self.variable]
        if isinstance(found, Array) and None in found.shape:
            raise self.refuse(f"the first extent of {self.variable} is not declared")
        return found

    def _check_text(self, declared: Array | Scalar | Local) -> None:
        """Raise DirectiveError where the text of the loops does not allow copies."""
        nested = tuple(walk_stmts((self.site.loop,)))
        line = next((f.span.line for f in (*self.site.enclosing_loops, *nested) if isinstance(f, While)), None)
        if line is not None:
            raise self.refuse(f"the nest has a while loop (line {line}), whose trips are not known")
        outer, innermost = self.loops[0], self.loops[-1]

        def rule(n: Stmt) -> Stmt | None:
            return replace(n, body=()) if isinstance(n, Loop) and n.number == innermost.number else None

        rest = rewrite_stmts(rule, (outer,))
        used = next((n for n in walk(rest) if self._names(n)), None)
        if used is not None:
            raise self.refuse(f"{self.variable} is also used outside loop {innermost.var}{_at(used, self.site)}")
        own = (f for f in nested if isinstance(f, Loop) and self.variable in f.private_arrays)
        owner = next((f.var for f in own if f.number not in {g.number for g in self.loops}), None)
        if owner is not None:
            raise self.refuse(f"each iteration of loop {owner} has its own {self.variable} already")
        if is_integer(declared.dtype) and not getattr(declared, "shape", ()):
            subscripts = [n.index for n in walk(outer) if isinstance(n, Load)]
            bounds = [(f.lo, f.hi) for f in nested if isinstance(f, Loop)]
            if self.variable in names_in((*subscripts, *bounds)):
                raise self.refuse(f"a subscript or a bound of a loop is made of {self.variable}")

    def _names(self, n: Node) -> bool:
        match n:
            case Var(name) | Load(name):
                return name == self.variable
        return False

    def _check_size(self, copies: Local) -> None:
        """Raise DirectiveError where subscripts of the copies would overflow, as far as the sizes are known."""
        known = {name: Const(int(v)) for name, v in self.site.values.items() if float(v).is_integer()}
        extents = [e.value for e in substitute(copies.shape, known) if isinstance(e, Const)]
        if len(extents) == len(copies.shape) and prod(extents) > MOST_ELEMENTS:
            raise self.refuse(f"the copies have {prod(extents):,} elements, the limit is {MOST_ELEMENTS:,}")

    def _copy_index(self, expansion: Expansion, loop: Loop) -> CopyIndex:
        found = expansion.copy_index(loop)
        if found is None:
            raise self.refuse(f"the values of loop {loop.var} have no bounds that are sums of sizes")
        return found

    def _check_values(self, expansion: Expansion) -> None:
        """Raise IllegalTransform unless every read in the loops gets its value from the same iteration of them."""
        variable, loops = self.variable, " and ".join(f"loop {f.var}" for f in self.loops)
        said = f"expand {variable} is illegal: "
        carries = "carries" if len(self.loops) == 1 else "carry"
        carried = expansion.carried()
        if carried is not None:
            self._illegal(f"{said}{loops} {carries} a flow of {variable}: {carried.reason(lines=False)}", carried)
        entering = expansion.entering()
        if entering is not None:
            what = f"{said}loop {self.loops[0].var} reads {variable} from before it"
            self._illegal(f"{what}: {entering.reason(lines=True)}", entering)
        read = expansion.read_before_written()
        if read is not None:
            where = location(read.span, self.site.span)
            self._illegal(f"{said}{read.text} ({where}) may be the value that {variable} has on entry")

    def _check_writers(self, expansion: Expansion) -> None:
        """Raise DirectiveError unless it is known which copies are read after the loops."""
        unknown = expansion.unknown_writer()
        if unknown is not None or not expansion.has_last_writers:
            why = "" if unknown is None else f": {unknown}"
            loops = " and ".join(f"loop {f.var}" for f in self.loops)
            raise self.refuse(
                f"{self.variable} is read after loop {self.loops[0].var}, and which iteration of {loops} writes it "
                f"last is not known{why}"
            )

    def refuse(self, why: str) -> DirectiveError:
        return self.site.refuse(f"expand {self.variable}: {why}")

    def _illegal(self, said: str, witness: Violation | None = None) -> NoReturn:
        notes = () if witness is None else (witness.ends(self.site.span),)
        raise IllegalTransform(said, self.site.span, notes)


def _at(n: Node, site: DirectiveSite) -> str:
    return f" ({location(n.span, site.span)})" if n.span.line else ""


_LOCAL = """float t = 0;
  for (int i = 0; i < n; i++) {
    t = A[i];
    B[i] = t * t;
  }
  A[0] = t;"""
_ROWS = """for (int i = 0; i < n; i++) {
    for (int j = 0; j < m; j++)
      E[j] = D[i][j];
    for (int j = 0; j < m; j++)
      D[i][j] = E[m - 1 - j];
  }"""
_NESTED = """float s;
  #pragma hmppcg expand s
  for (int i = 0; i < n; i++)
    #pragma hmppcg expand s
    for (int j = 0; j < m; j++) {
      s = D[i][j];
      D[i][j] = s * s;
    }"""
_LAST = """for (int i = 0; i < n; i++) {
    for (int j = 0; j < i; j++)
      B[j] = A[i];
    for (int j = 0; j < i; j++)
      G[i][j] = B[j];
  }"""
_SUM = """for (int i = 1; i < n; i++)
    E[0] = E[0] + A[i];"""
_BEFORE = """float t = A[0];
  for (int i = 0; i < n; i++) {
    B[i] = t;
    t = A[i];
  }"""
_DATA = """float t = A[0];
  for (int i = 0; i < n; i++)
    if (A[i] > 0)
      t = A[i];
  B[0] = t;"""

Expand.examples = {
    "expand t": Example(_LOCAL, """\
float t;
float *t_i = __builtin_malloc(sizeof(float[(n > 1 ? n : 1)]));
if (!t_i) __builtin_abort();
t = 0;
for (int i = 0; i < n; i++) {
  t_i[i] = A[i];
  B[i] = t_i[i] * t_i[i];
}
if (n >= 1) {
  t = t_i[n - 1];
}
A[0] = t;
__builtin_free(t_i);"""),
    "expand E": Example(_ROWS, """\
float (*E_i)[m] = __builtin_malloc(sizeof(float[(n > 1 ? n : 1)][m]));
if (!E_i) __builtin_abort();
for (int i = 0; i < n; i++) {
  for (int j = 0; j < m; j++) {
    E_i[i][j] = D[i][j];
  }
  for (int j = 0; j < m; j++) {
    D[i][j] = E_i[i][m - 1 - j];
  }
}
if (n >= 1) {
  for (int e0 = 0; e0 < m; e0++) {
    E[e0] = E_i[n - 1][e0];
  }
}
__builtin_free(E_i);"""),
    "expand s": Example(_NESTED, """\
float (*s_i_j)[(m > 1 ? m : 1)] = __builtin_malloc(sizeof(float[(n > 1 ? n : 1)][(m > 1 ? m : 1)]));
if (!s_i_j) __builtin_abort();
for (int i = 0; i < n; i++) {
  for (int j = 0; j < m; j++) {
    s_i_j[i][j] = D[i][j];
    D[i][j] = s_i_j[i][j] * s_i_j[i][j];
  }
}
__builtin_free(s_i_j);"""),
    "expand B": Example(_LAST, """\
float (*B_i)[n] = __builtin_malloc(sizeof(float[(n > 1 ? n : 1)][n]));
if (!B_i) __builtin_abort();
for (int i = 0; i < n; i++) {
  for (int j = 0; j < i; j++) {
    B_i[i][j] = A[i];
  }
  for (int j = 0; j < i; j++) {
    G[i][j] = B_i[i][j];
  }
}
for (int e0 = 0; e0 < n - 1; e0++) {
  B[e0] = B_i[n - 1][e0];
}
__builtin_free(B_i);"""),
    "Expand E": Example(_SUM, refused="loop i carries a flow of E: iteration (i=1) must run before (i=2)"),
    "Expand t": Example(_BEFORE, refused="loop i carries a flow of t"),
    "EXPAND t": Example(_DATA, refused="which iteration of loop i writes it last is not known"),
    "expand q": Example(_LOCAL, refused="f has no variable q; it has n, A, B, t"),
    "expand A": Example(_LOCAL, refused="loop i does not write A"),
    "expand": Example(_LOCAL, refused="expand needs the name of a variable"),
}  # fmt: skip
