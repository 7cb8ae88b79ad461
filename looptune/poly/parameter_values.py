"""Parameter arrays as locals, so that their values can be followed like those of any local.

    f(A[n]) { S }      ==>      f(A on entry [n], A on exit [n]) { local A[n]
                                    for e0: A[e0] = (A on entry)[e0]
                                    S
                                    for e0: (A on exit)[e0] = A[e0] }

Every element then has a write before all others, and a read after all others for what the caller sees.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from looptune.ir.def_use import declared_names
from looptune.ir.nodes import Array, Assign, Codelet, Const, Expr, Load, Local, Loop, Stmt, Var

ENTRY, EXIT = "on entry", "on exit"
"""What the arrays of the first and the last values are called, after the name of their array."""


_ENTRY, _EXIT = "entry_", "exit_"
"""What the names of the first and the last statement begin with; those of the text are S0, S1, ..."""


def entry_statement(array: str) -> str:
    """Return the name of the statement that gives the array its first values."""
    return f"{_ENTRY}{array}"


def exit_array(statement: str) -> str:
    """Return the array whose last values the statement stores, or "" if it stores none."""
    return statement.removeprefix(_EXIT) if statement.startswith(_EXIT) else ""


def with_local_parameters(codelet: Codelet, arrays: Collection[str], taken: Collection[str] = ()) -> Codelet:
    """Return the codelet with these parameter arrays, of declared extents, as locals.

    The loops around it are for variables that are not ``taken``, and that the codelet does not use.
    """
    mine = [p for p in codelet.params if isinstance(p, Array) and p.name in arrays]
    others = tuple(p for p in codelet.params if p.name not in arrays)
    used = {*taken, *declared_names(codelet)}
    ends = tuple(replace(p, name=f"{p.name} {end}") for p in mine for end in (ENTRY, EXIT))
    return replace(
        codelet,
        params=(*others, *ends),
        locals=(*codelet.locals, *(Local(p.name, p.dtype, _extents(p)) for p in mine)),
        body=(
            *(_moved(p, used, entry_statement(p.name), p.name, f"{p.name} {ENTRY}") for p in mine),
            *codelet.body,
            *(_moved(p, used, f"{_EXIT}{p.name}", f"{p.name} {EXIT}", p.name) for p in mine),
        ),
    )


def fresh_names(stem: str, count: int, used: set[str]) -> tuple[str, ...]:
    """Return so many names that nothing has that is ``used``.

    >>> fresh_names("e", 2, {"e1"})
    ('e_0', 'e_1')
    """
    tried = ([f"{stem}{'_' * k}{n}" for n in range(count)] for k in range(len(used) + 1))
    return next(tuple(names) for names in tried if not used & set(names))


def _moved(array: Array, used: set[str], statement: str, into: str, source: str) -> Stmt:
    """Return the loops that copy one array into another one of the same extents."""
    names = fresh_names("e", len(array.shape), used)
    index = tuple(Var(name) for name in names)
    made: Stmt = Assign(
        Load(into, index, array.dtype, span=array.span), Load(source, index, array.dtype, span=array.span),
        name=statement, instance=index, span=array.span,
    )  # fmt: skip
    for var, extent in reversed(tuple(zip(index, _extents(array), strict=True))):
        made = Loop(var.name, Const(0), extent, (made,), mode="sequential", span=array.span)
    return made


def _extents(array: Array) -> tuple[Expr, ...]:
    found = tuple(e for e in array.shape if e is not None)
    assert len(found) == len(array.shape), "the extents of an observable array are declared"
    return found
