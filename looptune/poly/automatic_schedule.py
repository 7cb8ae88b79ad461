"""A schedule that isl finds for the statements of a nest, from their dependences.

    for t, i, j: A[i][j] = f(A[i-1][j], A[i][j-1], A[i+1][j], ...)      time (4*t + 2*i + j, t, i): t and i in parallel

What is kept: every dependence on arrays, and of locals every value. Where two uses of a local do not share a value,
one need not end before the other begins; they only may not overlap in one iteration of a loop that is not parallel.

Sources: Verdoolaege and Janssens, "Scheduling for PPCG", KU Leuven report CW 706, 2017; Bondhugula et al., "A practical
automatic polyhedral parallelizer and locality optimizer", PLDI 2008; Feautrier, "Some efficient solutions to the affine
scheduling problem, part II", IJPP 21(6), 1992.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Literal

import islpy as isl

from looptune.poly.dependence import Dependence, pieces
from looptune.poly.isl_limits import JUDGEMENT, isl_operation_limit
from looptune.poly.symbolic_sizes import sizes_in, with_parameters, with_values

if TYPE_CHECKING:
    from looptune.poly.loop_generation import LoopNest, Times
    from looptune.poly.scop import Scop

Parallel = Literal["outer", "inner", "none"]
"""outer: outermost loops parallel where they can be · inner: as few sequential loops around parallel ones as possible ·
none: outermost loops that can be tiled together."""
Fusion = Literal["max", "min"]
"""max: statements share loops as far as they can · min: only those do that depend on each other in a circle."""


@dataclass(frozen=True, slots=True)
class ScheduleOptions:
    """The options of an automatic schedule."""

    parallel: Parallel = "outer"
    fusion: Fusion = "max"


def find_schedule(model: Scop, nest: LoopNest, options: ScheduleOptions, *, reassociate: bool) -> Times:
    """Return { statement[loops of the nest] -> [time] } for each statement of the nest; the loops around are sizes.

    ``model`` has the dependences of the codelet in which the nest stands. IslLimitExceeded where isl gives up.
    """
    # Each has a limit of its own, so that no schedule depends on which flows are known already.
    with isl_operation_limit(JUDGEMENT):
        constraints, sizes = _constraints(model, nest, reassociate)
    with isl_operation_limit(JUDGEMENT), _options(options):
        found = constraints.compute_schedule().get_map()
        maps: dict[str, isl.Map] = {}
        for copy in nest.copies:
            domain = isl.UnionSet.from_set(nest.domain(copy))
            maps[copy] = with_values(isl.Map.from_union_map(found.intersect_domain(domain)), sizes)
    return maps


@contextmanager
def _options(options: ScheduleOptions) -> Generator[None]:
    """Set isl's options, and set those of before again afterwards: they are isl's defaults."""
    context = isl.DEFAULT_CONTEXT
    context.set_schedule_outer_coincidence(int(options.parallel == "outer"))
    context.set_schedule_algorithm(int(options.parallel == "inner"))
    context.set_schedule_serialize_sccs(int(options.fusion == "min"))
    try:
        yield
    finally:
        context.set_schedule_outer_coincidence(0)
        context.set_schedule_algorithm(0)
        context.set_schedule_serialize_sccs(0)


def _constraints(model: Scop, nest: LoopNest, reassociate: bool) -> tuple[isl.ScheduleConstraints, Mapping[str, int]]:
    """Return the constraints, and the values of the parameters that stand for constants in them."""
    names = frozenset(nest.copies)
    within = [d for d in model.dependences if {d.source, d.sink} <= names]
    # Their union, coalesced, takes isl a hundred times as long where it has a facet for each two pairs of accesses.
    relations = {d: _union(model, [nest.between(m) for m in pieces(model.space, d)]) for d in within}
    stored = [d for d in model.dependences if d.array in model.internal_names]
    flows = {a: model.flows(a, reassociate=reassociate).flows for a in {d.array for d in stored}}
    shared = {a for a in flows if _is_shared(model, a, names)}

    def union(some: Callable[[Dependence], bool]) -> isl.UnionMap:
        return reduce(isl.UnionMap.union, (m for d, m in relations.items() if some(d)), _union(model, ()))

    def is_local(d: Dependence) -> bool:
        return d.array in model.internal_names

    values = _union(model, [nest.between(f.map) for a in flows for f in flows[a] if {f.write, f.read} <= names])
    domain = reduce(isl.UnionSet.union, (isl.UnionSet.from_set(nest.domain(c)) for c in nest.copies))
    arrays = union(lambda d: not is_local(d))
    kept = union(lambda d: d.array in shared or not (is_local(d) or d.commutes(reassociate)))
    reuse = union(lambda d: is_local(d) and d.array not in shared and not d.commutes(reassociate))
    lasting = union(lambda d: d.array in shared)
    sizes = sizes_in((domain.identity(), kept, arrays, lasting, values, reuse))
    domain = with_parameters(domain.identity(), sizes).domain()
    kept, arrays, lasting, values, reuse = (with_parameters(m, sizes) for m in (kept, arrays, lasting, values, reuse))
    constraints = isl.ScheduleConstraints.on_domain(domain).set_context(nest.context())
    constraints = constraints.set_validity(kept.union(values)).set_proximity(arrays.union(values))
    constraints = constraints.set_coincidence(arrays.union(lasting).union(values))
    return constraints.set_conditional_validity(values, reuse), sizes


def _union(model: Scop, maps: Iterable[isl.Map]) -> isl.UnionMap:
    none = isl.UnionMap(f"{model.space.prefix}{{ }}")
    return reduce(isl.UnionMap.union, map(isl.UnionMap.from_map, maps), none)


def _is_shared(model: Scop, local: str, names: frozenset[str]) -> bool:
    """Tell whether a value of the local goes into or out of the nest."""
    crossing = any((f.write in names) != (f.read in names) for f in model.flows(local).flows)
    return crossing or model.reads_initial_value(local, names)
