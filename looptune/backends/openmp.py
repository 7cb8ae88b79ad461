"""A scheduled codelet as C with OpenMP: the iterations of parallel loops are divided among all cores.

    for i (parallel): for j (parallel): loops    #pragma omp parallel for collapse(2)
    for i (reduces +: s)                         #pragma omp parallel for reduction(+:s)
    for i (reduces +: y[k])                      if (lo < hi) { float y_r = y[k]; … reduction(+:y_r) …; y[k] = y_r; }

Of nested parallel loops the outermost is divided. Two that are a perfect nest are collapsed if a loop remains inside
them: a compiler vectorises the innermost loop. A scalar of a loop that is declared outside of it is ``private``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from looptune.ir.accumulators import is_shareable
from looptune.ir.c_printer import C_TYPES, declaration
from looptune.ir.c_printer import body as body_of
from looptune.ir.def_use import locals_declared_in, names_in, referenced_names, target_name, written_names
from looptune.ir.nodes import (
    Array,
    Call,
    Codelet,
    Const,
    Expr,
    If,
    Local,
    Loop,
    Scalar,
    Stmt,
    While,
)
from looptune.ir.rewrite import walk
from looptune.ir.simplify import is_integer

if TYPE_CHECKING:
    from looptune.frontend.signature import Head


_NAME = re.compile(r"[A-Za-z_]\w*")
"""In the text of a field, which stands for a variable: ``p[i].id``."""


def text(
    codelet: Codelet, head: Head | None = None, front: str = "", opening: str = "", tables: Collection[str] = ()
) -> str:
    """Return the function with the headers that it needs.

    All loops' modes are decided, and parallel loops accumulate into scalars, see ``lower.passes.openmp_scalars``.
    ``head`` is its declaration in the file, ``front`` stands before it, and it begins with ``opening``. ``tables`` are
    the arrays of rank 2 that are pointers to pointers.
    """
    used = {name for text in referenced_names(codelet.body) for name in _NAME.findall(text)}
    shared = {id(loop) for loop in _shared(codelet.body)}
    scalars = {v.name for v in codelet.locals if not v.shape} | {
        p.name for p in codelet.params if isinstance(p, Scalar)
    }

    def marks(loop: Loop, inside: Mapping[str, Local]) -> str:
        return _pragma(loop, inside, scalars) if id(loop) in shared else ""

    included = includes(codelet, head)
    before = f"{included}\n" if included else ""
    names_ = tuple(p.name for p in codelet.params) if head is None else head.names
    opening += "".join(f"  (void){n};\n" for n in names_ if n not in used | names_in(_bounds(codelet)))
    declared_ = "" if head is None else "".join(f"{line}\n" for line in head.before)
    declared_as = signature(codelet, tables) if head is None else head.text
    start = f"  {head.start}\n" if head is not None and head.start else ""
    end = f"  {head.end}\n" if head is not None and head.end else ""
    return f"{before}{front}{declared_}{declared_as}\n{{\n{start}{opening}{body_of(codelet, marks=marks)}\n{end}}}\n"


def includes(codelet: Codelet, head: Head | None) -> str:
    """Return the lines that include what the loops and the declaration need."""
    headers = ({_header(n) for n in walk(codelet.body)} - {""}) | set(head.headers if head is not None else ())
    return "".join(f"#include <{name}>\n" for name in sorted(headers))


def signature(codelet: Codelet, tables: Collection[str] = ()) -> str:
    """Return the declaration of a function of its own, without a semicolon; ``tables`` are as for ``text``."""
    params = (f"{C_TYPES[p.dtype]} **{p.name}" if p.name in tables else declaration(p) for p in codelet.params)
    return f"void {codelet.name}({', '.join(params)})"


def _bounds(codelet: Codelet) -> tuple[Expr, ...]:
    return tuple(e for p in codelet.params if isinstance(p, Array) for e in p.shape[1:] if e is not None)


def _header(n: object) -> str:
    """Return what has to be included for it; an infinity and NaN are macros."""
    match n:
        case Call("abs"):
            return "stdlib.h"
        case Call():
            return "math.h"
        case Const(value, dtype) if not is_integer(dtype) and not abs(float(value)) < float("inf"):
            return "math.h"
    return ""


def _shared(body: tuple[Stmt, ...]) -> Iterator[Loop]:
    """Yield the outermost loops that are shared out."""
    for stmt in body:
        match stmt:
            case Loop() if is_shareable(stmt):
                yield stmt
            case Loop(_, _, _, inner) | While(_, inner):
                yield from _shared(inner)
            case If(_, then, other):
                yield from _shared((*then, *other))


def _pragma(loop: Loop, inside: Mapping[str, Local], scalars: set[str]) -> str:
    clauses = [" collapse(2)"] if _collapses(loop, inside) else []
    reduced = dict.fromkeys((r.op, target_name(r.target)) for r in loop.reductions)
    clauses += [f" reduction({op}:{name})" for op, name in reduced]
    own = (
        ((scalars | set(loop.private_arrays)) & written_names(loop.body))
        - inside.keys()
        - {name for _, name in reduced}
    )
    clauses += [f" private({', '.join(sorted(own))})"] if own else []
    return f"#pragma omp parallel for{''.join(clauses)}"


def _collapses(loop: Loop, inside: Mapping[str, Local]) -> bool:
    match loop.body:
        case (Loop(_, lo, hi, body, mode="parallel", reductions=()),) if not loop.reductions:
            free = loop.var not in names_in((lo, hi)) and not locals_declared_in(loop.body, set(inside))
            return free and any(isinstance(n, Loop) for n in walk(body))
    return False
