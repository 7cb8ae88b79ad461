"""The number of elements of each parameter that a codelet accesses: the size of a union of affine images.

    touched(A) = { A[f(i)] : S[i] runs, and has an access A[f(i)] }        each element once, however often it is used

Only accesses that surely happen count: those whose index and whose statement's condition are affine. Statements of
which only the last iteration of a loop has an effect are left out, see ``is_dead_store``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING

import islpy as isl

from looptune.ir.def_use import is_dead_store
from looptune.ir.nodes import Array, Loop
from looptune.poly.affine import name
from looptune.poly.coalesce import coalesce
from looptune.poly.delinearization import delinearize
from looptune.poly.domain import constant_value
from looptune.poly.guarded_loads import evaluates_partly
from looptune.poly.isl_limits import IslLimitExceeded, isl_operation_limit
from looptune.poly.isl_objects import Space

if TYPE_CHECKING:
    from looptune.poly.access import Access
    from looptune.poly.domain import Statement
    from looptune.poly.scop import Scop

MOST = 10**7
"""Operations of isl for one array: a second or so."""


def elements(model: Scop, sizes: Mapping[str, int], *, assume: bool = False) -> dict[str, int]:
    """Return how many elements of each array parameter are surely read or written at these sizes.

    An array without an access that surely happens has 0. ``assume``: of arrays that are indexed by hand and only read,
    too, no two rows overlap.
    """
    space = model.space
    if assume:
        space = Space(space.nest, delinearize(space, space.accesses, reads=True)[0])
    arrays = {p.name for p in model.codelet.params if isinstance(p, Array)}
    found: dict[str, list[Access]] = {array: [] for array in arrays}
    for statement in (s for s in model.statements.values() if s.exact and not _overwritten(s)):
        lazy = evaluates_partly(statement.assign.value)
        for access in space.accesses[statement.name]:
            if access.array in arrays and access.must and (access.write or not lazy):
                found[access.array].append(access)
    values = {term: constant_value(e, sizes) for term, e in space.nest.terms.found.items()}
    known = {name(p): n for p, n in sizes.items()} | {term: n for term, n in values.items() if n is not None}
    return {array: _count(space, mine, known) for array, mine in found.items()}


def _overwritten(statement: Statement) -> bool:
    """Of some loop only the last iteration matters, and so do its reads."""
    return any(isinstance(f, Loop) and is_dead_store(statement.assign, f) for f in statement.loops)


def _at(touched: isl.Set, known: Mapping[str, int]) -> isl.Set:
    """Return the elements for values of isl's parameters."""
    for parameter, size in known.items():
        place = touched.find_dim_by_name(isl.dim_type.param, parameter)
        if place >= 0:
            touched = touched.fix_val(isl.dim_type.param, place, isl.Val(size))
    return touched.project_out(isl.dim_type.param, 0, touched.dim(isl.dim_type.param))


def _count(space: Space, mine: list[Access], known: Mapping[str, int]) -> int:
    """0 too where there is no end of them, a term of the sizes has no value, or isl takes too long."""
    if not mine or not known.keys() >= space.nest.terms.found.keys():
        return 0
    try:
        with isl_operation_limit(MOST):
            union = coalesce(reduce(isl.Set.union, (_at(space.touched(a).range(), known) for a in mine)))
            if not union.is_bounded():
                return 0
            count = union.make_disjoint().count_val().to_python()
            return int(count) if count is not None else 0
    except IslLimitExceeded:
        return 0
