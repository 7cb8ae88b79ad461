"""C code that checks the assumptions of a codelet at each call, for ``looptune build --c``, under LOOPTUNE_CHECK.

    #ifdef LOOPTUNE_CHECK
      f_check(n >= 0, "n is negative");
      f_check(f_apart(x, 8.0 * n, y, 8.0 * n), "x and y overlap");
      f_check(f_rows_apart(1, a, n, 8.0 * m, a, n, 8.0 * m), "rows of a overlap");
      f_check((double)n * m - 1 <= 2147483647.0, "i * m + j overflows");
    #endif

Only the accesses that a call surely makes count: a bound that conditions or remainders reduce gives no assertion.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from looptune.ir.c_printer import expression_text
from looptune.ir.def_use import names_in
from looptune.ir.nodes import Array, Codelet, Loop, Scalar, Unary
from looptune.ir.rewrite import walk_stmts
from looptune.poly import array_extent
from looptune.runtime.size_relations import size_relations
from looptune.schedule.assumptions import may_overflow, may_overlap, rows_may_overlap

if TYPE_CHECKING:
    from looptune.frontend import Unit
    from looptune.poly.array_extent import Poly

MACRO = "LOOPTUNE_CHECK"
_MOST = "2147483647.0"


@dataclass(frozen=True, slots=True)
class CallChecks:
    """C text that checks calls: ``before`` precedes the function, ``body`` begins it; "" if nothing is checked."""

    before: str = ""
    body: str = ""


def call_checks(unit: Unit) -> CallChecks:
    """Return the checks of a call as C: sizes, overlaps and overflows."""
    codelet = unit.codelet
    name = f"{codelet.name}_looptune"
    checks = [f'{name}_check({holds}, "{otherwise}");' for holds, otherwise in size_conditions(codelet)]
    checks += _overlaps(unit, name)
    checks += [f'{name}_check({holds}, "{otherwise}");' for holds, otherwise in _overflows(codelet)]
    if not checks:
        return CallChecks()
    apart = _APART.format(name=name) if any("_apart(" in line for line in checks) else ""
    apart += _ROWS_APART.format(name=name) if any("_rows_apart(" in line for line in checks) else ""
    front = f"#ifdef {MACRO}\n{_FRONT.format(name=name, function=codelet.name)}{apart}#endif\n\n"
    return CallChecks(front, f"#ifdef {MACRO}\n{''.join(f'  {line}' + chr(10) for line in checks)}#endif\n")


_FRONT = """#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void {name}_check(int holds, const char *what)
{{
  if (!holds) {{
    fprintf(stderr, "{function}: %s\\n", what);
    abort();
  }}
}}
"""
_APART = """
static int {name}_apart(const void *a, double a_bytes, const void *b, double b_bytes)
{{
  const uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
  if (!(a_bytes > 0 && b_bytes > 0)) return 1;
  return x < y ? (double)(y - x) >= a_bytes : (double)(x - y) >= b_bytes;
}}
"""
_ROWS_APART = """
static int {name}_rows_apart(int same, const void *const *a, double a_rows, double a_bytes,
  const void *const *b, double b_rows, double b_bytes)
{{
  for (long r = 0; r < a_rows; r++)
    for (long s = 0; s < (same ? r : b_rows); s++)
      if (!{name}_apart(a[r], a_bytes, b[s], b_bytes)) return 0;
  return 1;
}}
"""


def size_conditions(codelet: Codelet) -> Iterator[tuple[str, str]]:
    """Yield what is assumed of the sizes of a call as conditions in C, each with what to say where it does not hold."""
    yield from _not_negative(codelet)
    yield from _relations(codelet)


def _not_negative(codelet: Codelet) -> Iterator[tuple[str, str]]:
    """Yield conditions of the signed parameters that determine an array's size or a loop's trip count."""
    arrays = [p for p in codelet.params if isinstance(p, Array)]
    ends = tuple(e for p in arrays for e in p.shape if e is not None)
    ends += tuple(f.hi for f in walk_stmts(codelet.body) if isinstance(f, Loop))
    used = names_in(ends) & array_extent.sizes_of(codelet)
    for p in codelet.params:
        if isinstance(p, Scalar) and p.name in used and p.dtype.startswith("int"):
            yield f"{p.name} >= 0", f"{p.name} is negative"


def _relations(codelet: Codelet) -> Iterator[tuple[str, str]]:
    """Yield the relations of sizes that the analysis assumes."""
    for relation in size_relations(codelet):
        lower, upper = _c(relation.lower), _c(relation.upper)
        if lower is not None and upper is not None:
            yield f"{lower} <= {upper}", f"{relation} does not hold"


def _overlaps(unit: Unit, name: str) -> Iterator[str]:
    arrays = [p for p in unit.codelet.params if isinstance(p, Array)]
    factors = {p.name: found for p in arrays if (found := _factors(unit.codelet, p))}
    bytes_ = {a: " * ".join(found) for a, found in factors.items()}
    pairs = may_overlap(unit, restrict=True)
    if unit.head is None:
        # All arrays are parameters then, those at file scope too.
        pairs = tuple((p.name, q.name) for p, q in combinations(arrays, 2) if p.io != "in" or q.io != "in")

    def table(p: str) -> str:
        if p not in unit.rows:
            return f"(const void *const[]){{{p}}}, 1, {bytes_[p]}"
        size, rows, *row = factors[p]
        return f"(const void *const *){p}, {rows}, {' * '.join([size, *row])}"

    texts = {n: text for part in unit.parts for n, text in part.texts.items() if text.element and unit.head is not None}
    bytes_ = {p: text for p, text in bytes_.items() if p not in texts}
    for p, q in (*((p, p) for p in rows_may_overlap(unit)), *pairs):
        if p in bytes_ and q in bytes_:
            said = f'"rows of {p} overlap"' if p == q else f'"{p} and {q} overlap"'
            if {p, q} & unit.rows.keys():
                yield f"{name}_check({name}_rows_apart({int(p == q)}, {table(p)}, {table(q)}), {said});"
            else:
                yield f"{name}_check({name}_apart({p}, {bytes_[p]}, {q}, {bytes_[q]}), {said});"


def _factors(codelet: Codelet, p: Array) -> list[str]:
    """Return the bytes of an element and the extents, as the text declares or the loops surely reach them.

    Empty where one is not known.
    """
    sizes = array_extent.sizes_of(codelet)
    polys: list[Poly | None] = [None if e is None else array_extent.polynomial(e, sizes) for e in p.shape]
    if p.shape[0] is None:
        polys[0] = _reached(codelet, p.name, sizes)
    factors = [f"{np.dtype(p.dtype).itemsize}.0"]
    for poly in polys:
        text = None if poly is None else _c(poly)
        if text is None:
            return []
        factors.append(f"({text})" if poly is not None and len(poly) > 1 else text)
    return factors


def _reached(codelet: Codelet, name: str, sizes: frozenset[str]) -> Poly | None:
    """Return the farthest of the formulas, or None where there is none, or none that is."""
    found = [
        bound for load, index, around in array_extent.array_accesses(codelet, sure=True) if load.array == name
        if (bound := array_extent.bound(index[0], around, sizes, exact=True)) is not None
    ]  # fmt: skip
    return next((p for p in found if all(array_extent.never_greater(q, p) for q in found)), None)


def _overflows(codelet: Codelet) -> Iterator[tuple[str, str]]:
    sizes, seen = array_extent.sizes_of(codelet), set[str]()
    risky = {*may_overflow(codelet)}
    for _, index, around in array_extent.array_accesses(codelet, sure=True):
        for e in index:
            if expression_text(e) in risky and e.dtype == "int32":
                ends = (array_extent.bound(e, around, sizes, exact=True),
                        array_extent.bound(Unary("-", e), around, sizes, exact=True))  # fmt: skip
                for bound in ends:
                    text = None if bound is None or not any(k > 0 for at, k in bound.items() if at) else _c(bound)
                    if text is not None and text not in seen:
                        seen.add(text)
                        yield f"{text} - 1 <= {_MOST}", f"{expression_text(e)} overflows"


def _c(p: Poly) -> str | None:
    """Return the formula in double, which no size overflows, or None where C's text would be another."""
    terms = []
    for factors, k in sorted(p.items(), key=lambda item: (item[1] < 0, -len(item[0]), item[0])):
        if any(f.startswith("(") and re.fullmatch(r"\([\w +*()-]+ / [1-9]\d*\)", f) is None for f in factors):
            return None
        made = [f"(double){f}" for f in factors]
        size = " * ".join([*([f"{abs(k)}.0"] if abs(k) != 1 or not factors else []), *made])
        terms.append(f"{'-' if k < 0 else '+'} {size}")
    text = " ".join(terms).removeprefix("+ ")
    return text if text else "0.0"
