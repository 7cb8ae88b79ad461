"""A codelet as isl sees it: statements, their accesses, and their dependences. It is built once and then queried.

    build(codelet) -> Scop        over-approximates what it cannot analyse, and says so in ``unknown``
    scop.order()   -> Order       when each statement runs: (static, loop, static, loop, ..., static)

``legality`` judges other orders, ``translation_validation`` whole trees.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import islpy as isl

from looptune.ir.c_printer import expression_text
from looptune.ir.def_use import written_names
from looptune.ir.nodes import Codelet, Loop, Scalar
from looptune.ir.simplify import is_integer
from looptune.poly.access import accesses, distinct_accesses, memory
from looptune.poly.affine import condition_to_isl, name, to_isl
from looptune.poly.condition_instances import separate_conditions
from looptune.poly.dataflow import Flows, flows
from looptune.poly.delinearization import SizeRelation, delinearize
from looptune.poly.dependence import Dependence, dependences
from looptune.poly.domain import Statement, Unanalysable, scan
from looptune.poly.isl_limits import CODELET, Effort, IslLimitExceeded
from looptune.poly.isl_objects import Order, SchedulePiece, Space, union

__all__ = [
    "Order",
    "SchedulePiece",
    "Scop",
    "Statement",
    "Unanalysable",
    "build",
    "condition_to_isl",
    "name",
    "to_isl",
]


@dataclass(frozen=True, eq=False)
class Scop:
    """The polyhedral model of a codelet; dependences and flows are computed on demand and cached.

    ``assumed`` are relations of sizes on which the accesses to arrays that are indexed by hand rest.
    """

    codelet: Codelet
    space: Space
    unknown: tuple[Unanalysable, ...]
    assumed: tuple[SizeRelation, ...] = ()
    _flows: dict[tuple[str, bool], Flows] = field(default_factory=dict, repr=False)

    @property
    def statements(self) -> Mapping[str, Statement]:
        return self.space.nest.statements

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Return the integer scalar parameters that no statement assigns, by the user's names, and the opaque terms.

        They are in the order of isl's parameters.
        """
        assigned = written_names(self.codelet.body)
        scalars = (p for p in self.codelet.params if isinstance(p, Scalar))
        own = (p.name for p in scalars if is_integer(p.dtype) and p.name not in assigned)
        return (*own, *map(expression_text, self.space.nest.terms.found.values()))

    @cached_property
    def internal_names(self) -> frozenset[str]:
        """Return the names of what only the codelet sees: its locals and its scalar parameters."""
        scalars = {p.name for p in self.codelet.params if isinstance(p, Scalar)}
        return frozenset({v.name for v in self.codelet.locals} | scalars)

    @cached_property
    def sizes(self) -> Mapping[str, str]:
        """Return the user's name of each isl parameter."""
        return dict(zip(self.space.nest.parameters, self.parameters, strict=True))

    def reads_initial_value(self, array: str, statements: Collection[str]) -> bool:
        """Return whether one of the statements may read the value that a parameter had when the codelet was called."""
        passed = any(p.name == array for p in self.codelet.params)
        return passed and any(n in self.flows(array).unwritten for n in statements)

    @cached_property
    def over_approximation(self) -> Scop:
        """Return a model that knows nothing but the text, for codelets that isl cannot analyse within its limits."""
        return self.over_approximate(IslLimitExceeded(CODELET), self.statements)

    def over_approximate(self, reason: IslLimitExceeded, names: Collection[str]) -> Scop:
        space, unknown = over_approximate(self.space, reason, names)
        return Scop(self.codelet, space, (*self.unknown, *unknown), self.assumed)

    def order(self) -> Order:
        return {s.name: (SchedulePiece(s.time),) for s in self.statements.values()}

    @property
    def dependences(self) -> tuple[Dependence, ...]:
        return self.space.memoized(("dependences",), lambda: dependences(self.space))

    @cached_property
    def constraints(self) -> Mapping[bool, tuple[Dependence, ...]]:
        """Return the dependences on arrays to preserve, one for each pair of statements, by ``reassociate``."""
        return {flag: self._constraints(flag) for flag in (False, True)}

    def _constraints(self, reassociate: bool) -> tuple[Dependence, ...]:
        by_pair: dict[tuple[str, str], list[isl.Map]] = {}
        for d in self.dependences:
            if d.array not in self.internal_names and not d.commutes(reassociate):
                by_pair.setdefault((d.source, d.sink), []).append(d.map)
        return tuple(Dependence(s, t, "", None, union(maps)) for (s, t), maps in by_pair.items())

    def flows(self, array: str, *, reassociate: bool = False) -> Flows:
        """Return the flows of a local: the writes from which its reads get their values."""
        key = (array, reassociate)
        if key not in self._flows:
            self._flows[key] = flows(self.space, self.codelet, array, reassociate=reassociate)
        return self._flows[key]

    def always_runs(self, loop: Loop) -> bool:
        """Return whether ``loop`` has an iteration whenever the code around it runs, for all sizes of the codelet."""
        for known, dims, domain, runs in self.space.nest.ranges:
            if known is not loop and not (loop.number and known.number == loop.number):
                continue
            if runs is None:
                return False
            reached, nonempty = (
                isl.Set(f"{self.space.prefix}{{ [{', '.join(dims)}] : {condition} }}")
                for condition in (domain or "true", runs)
            )
            return reached.intersect_params(self.space.context()).is_subset(nonempty)
        return False


def build(codelet: Codelet, *, asked_apart: bool = False) -> Scop:
    """Return the model of a codelet.

    ``asked_apart``: conditions on data are evaluated where they stand, else where the statements they decide on run.
    """
    nest = separate_conditions(scan(codelet)) if asked_apart else scan(codelet)
    storage = memory(codelet)
    named = {s.name: accesses(s, nest, storage) for s in nest.statements.values()}
    named, assumed = delinearize(Space(nest, named), named)
    touched = {s: distinct_accesses(mine) for s, mine in named.items()}
    for s in codelet.derivation.distinct & touched.keys() if codelet.derivation is not None else ():
        touched[s] = tuple(replace(a, distinct=a.write) for a in touched[s])
    found = list(nest.unknown)
    for mine in touched.values():
        found += [a.unknown for a in mine if a.unknown is not None and a.unknown.statements]
    return Scop(codelet, Space(nest, touched), tuple(dict.fromkeys(found)), assumed)


def with_dependences(model: Scop, effort: Effort) -> Scop:
    """Return the model with its dependences computed.

    It is coarser in the statements between which they are too involved, or as a whole where that is no help.
    """
    while effort.left > 0:
        space = model.space
        try:
            space.memoized(("dependences",), partial(dependences, space, effort=effort))
        except IslLimitExceeded as reason:
            names = {n for n in reason.between if model.statements[n].domain}
            if not names:
                break
            model = model.over_approximate(reason, names)
        else:
            return model
    return model.over_approximation


def over_approximate(
    space: Space, reason: IslLimitExceeded, names: Collection[str]
) -> tuple[Space, tuple[Unanalysable, ...]]:
    """Let the statements ``names`` run whenever, on any element; with what is to be said of each.

    What is asked about them is answered at once, and never wrongly:

        S0: { [i, j] : bounds } writes A[i % 5][j]    ==>    S0: { [i, j] } may write A[anything]
    """
    statements, touched = dict(space.nest.statements), dict(space.accesses)
    unknown: list[Unanalysable] = []
    for one in names:
        s = statements[one]
        about = Unanalysable(f"this nest, on which {reason},", s.assign.span, frozenset({one}))
        unknown.append(about)
        statements[one] = replace(s, domain="", exact=False, unknown=about)
        touched[one] = tuple(
            replace(a, index=tuple(None for _ in a.index), must=False, unknown=about) for a in touched[one]
        )
    return Space(replace(space.nest, statements=statements), touched), tuple(unknown)
