"""A scheduled codelet as C with OpenMP: parallel loops are shared out to all cores.

    for i (parallel): for j (parallel): loops    #pragma omp parallel for collapse(2)
    for i (reduces +: s)                         #pragma omp parallel for reduction(+:s)
    for i (reduces +: y[k])                      if (lo < hi) { float y_r = y[k]; … reduction(+:y_r) …; y[k] = y_r; }

Of parallel loops in each other the outermost is shared out. Two that are a perfect nest are collapsed where a loop is
left inside them: the innermost loop is the one that a compiler vectorises. A scalar of a loop's own that is declared
outside of it is ``private``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from looptune.ir.c_printer import body as body_of
from looptune.ir.c_printer import function
from looptune.ir.def_use import locals_declared_in, names_in, referenced_names, target_name, written_names
from looptune.ir.nodes import (
    Array,
    Assign,
    Binary,
    Call,
    Codelet,
    Const,
    Expr,
    If,
    Load,
    Local,
    Loop,
    Node,
    Scalar,
    Stmt,
    Var,
    While,
)
from looptune.ir.rewrite import rewrite, walk
from looptune.ir.simplify import is_integer
from looptune.lower.accumulators import Accumulator, ignores_nan
from looptune.lower.passes.split_reduction import accumulation_guard

if TYPE_CHECKING:
    from looptune.frontend.signature import Head


def text(codelet: Codelet, head: Head | None = None, front: str = "", opening: str = "") -> str:
    """Return the function with the headers that it needs.

    All loops' modes are decided. ``head`` is its declaration in the file, ``front`` stands before it, and it begins
    with ``opening``.
    """
    done = accumulate_in_scalars(codelet)
    used = referenced_names(done.body)
    shared = {id(loop) for loop in _shared(done.body)}
    scalars = {v.name for v in done.locals if not v.shape} | {p.name for p in done.params if isinstance(p, Scalar)}
    headers = ({_header(n) for n in walk(done.body)} - {""}) | set(head.headers if head is not None else ())

    def marks(loop: Loop, inside: Mapping[str, Local]) -> str:
        return _pragma(loop, inside, scalars) if id(loop) in shared else ""

    included = "".join(f"#include <{name}>\n" for name in sorted(headers))
    before = f"{included}\n" if included else ""
    names_ = tuple(p.name for p in done.params) if head is None else head.names
    opening += "".join(f"  (void){n};\n" for n in names_ if n not in used | names_in(_bounds(done)))
    declared_ = "" if head is None else "".join(f"{line}\n" for line in head.before)
    signature = function(done).partition("\n")[0] if head is None else head.text
    end = f"  {head.end}\n" if head is not None and head.end else ""
    return f"{before}{front}{declared_}{signature}\n{{\n{opening}{body_of(done, marks=marks)}\n{end}}}\n"


def _bounds(codelet: Codelet) -> tuple[Expr, ...]:
    return tuple(e for p in codelet.params if isinstance(p, Array) for e in p.shape[1:] if e is not None)


def accumulate_in_scalars(codelet: Codelet) -> Codelet:
    """Return the codelet whose parallel loops accumulate into scalars instead of elements."""
    made: list[Local] = []
    taken = {p.name for p in codelet.params} | {v.name for v in codelet.locals} | referenced_names(codelet.body)
    body = tuple(s for stmt in codelet.body for s in _accumulating(stmt, taken, made))
    used = referenced_names(body)
    return replace(codelet, body=body, locals=tuple(v for v in (*codelet.locals, *made) if v.name in used))


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


def _accumulating(stmt: Stmt, taken: set[str], made: list[Local]) -> tuple[Stmt, ...]:
    """``stmt`` with elements that a loop to be shared out accumulates into in scalars: OpenMP reduces those."""
    match stmt:
        case Loop() if _shareable(stmt):
            targets = [r.target for r in stmt.reductions if isinstance(r.target, Load)]
            return (_in_scalars(stmt, targets, taken, made),) if targets else (stmt,)
        case Loop() | While():
            return (replace(stmt, body=tuple(s for x in stmt.body for s in _accumulating(x, taken, made))),)
        case If(_, then, other):
            inner = (tuple(s for x in block for s in _accumulating(x, taken, made)) for block in (then, other))
            return (replace(stmt, then=next(inner), other=next(inner)),)
    return (stmt,)


def _in_scalars(loop: Loop, targets: list[Load], taken: set[str], made: list[Local]) -> Stmt:
    """Return an element that nothing is added to is not touched: there may be none such."""
    own = {t: Var(_fresh(f"{t.array}_r", taken), t.dtype) for t in dict.fromkeys(targets)}
    made += [Local(v.name, v.dtype) for v in own.values()]
    sums = [Accumulator(r.op, r.target, own[r.target], own[r.target], ignores_nan(loop, r.target))
            for r in loop.reductions if isinstance(r.target, Load)]  # fmt: skip

    def rule(n: Node) -> Node | None:
        return own.get(n) if isinstance(n, Load) else None

    reduces = tuple(replace(r, target=own[r.target]) if isinstance(r.target, Load) else r for r in loop.reductions)
    inner = replace(rewrite(rule, loop), reductions=reduces)
    before, after = list[Stmt](), list[Stmt]()
    for a in sums:
        where = accumulation_guard((loop,), a.target)
        always = where.always_accumulates and where.condition is None
        before.append(Assign(a.private, a.target if always else a.identity))
        added = Assign(a.target, a.private) if always else a.update
        after.append(added if where.condition is None else If(where.condition, (added,)))
    return If(Binary("<", loop.lo, loop.hi), (*before, inner, *after))


def _fresh(name: str, taken: set[str]) -> str:
    free = next(c for k in range(len(taken) + 2) if (c := f"{name}{k}" if k else name) not in taken)
    taken.add(free)
    return free


def _shared(body: tuple[Stmt, ...]) -> Iterator[Loop]:
    """Yield the outermost loops that are shared out."""
    for stmt in body:
        match stmt:
            case Loop() if _shareable(stmt):
                yield stmt
            case Loop(_, _, _, inner) | While(_, inner):
                yield from _shared(inner)
            case If(_, then, other):
                yield from _shared((*then, *other))


def _shareable(loop: Loop) -> bool:
    """Parallel; what it reduces, if anything, is one place by an operation that OpenMP has."""
    changing = {loop.var} | written_names(loop.body) | {f.var for f in walk(loop.body) if isinstance(f, Loop)}
    places = (r.target for r in loop.reductions if isinstance(r.target, Load))
    # fmin passes over NaN, OpenMP's min does not.
    odd = any(r.op in ("min", "max") and ignores_nan(loop, r.target) for r in loop.reductions)
    return loop.mode == "parallel" and not odd and not any(names_in(t.index) & changing for t in places)


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
