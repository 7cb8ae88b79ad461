"""The plans of a measured version: one for the sizes at which it was measured, and one for all others.

exact        as in the sweep: on a GPU with its sizes as constants
specialized  the same directives at other sizes, which are constants as well
elsewhere    the same directives without known sizes; ``noremainder``, which is legal at some sizes, is ``remainder``
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from looptune.backends.codegen.kernel import check_limits
from looptune.core.errors import LooptuneError
from looptune.ir.def_use import integer_parameters, names_in
from looptune.ir.nodes import Array, Assign, Binary, Codelet, Load, Local, Loop, Node, Var
from looptune.ir.rewrite import rewrite, walk
from looptune.ir.specialize import specialize
from looptune.lower.machine import MODEL
from looptune.lower.passes.cpu_reassociation import vectorised_sums
from looptune.lower.pipeline import finish, lower
from looptune.schedule.apply import ScheduleResult, schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.tune.session.proof import summarize_proof

if TYPE_CHECKING:
    from looptune.deploy.best_versions import BestVersion
    from looptune.lower.plan import Plan
    from looptune.schedule.analysis import Analysis


def scheduled(analysis: Analysis, best: BestVersion, *, sums: bool = False) -> ScheduleResult:
    """Return the schedule of the version's directives."""
    placed = parse_lines(best.directives.splitlines(), "configuration")
    return schedule(analysis, placed, best.values, sums=sums)


def exact(analysis: Analysis, best: BestVersion) -> Plan:
    """Return the plan for the sizes at which the version was measured."""
    return _exact(scheduled(analysis, best), best)


def _exact(done: ScheduleResult, best: BestVersion) -> Plan:
    blocks = best.context.target == "numba-cuda"
    baked = specialize(done.codelet, best.values) if blocks else done.codelet
    return lower(baked, best.directives, done.asserted, blocks=blocks)


def for_other_sizes(analysis: Analysis, best: BestVersion) -> Plan | None:
    """Return the plan for other sizes, or None.

    There is none if the directives fit these sizes only, as ``fullunroll`` of a loop as long as one of them does, or if
    a block would need more than a GPU has.
    """
    blocks = best.context.target == "numba-cuda"
    try:
        made = default(analysis, size_independent(best.directives), blocks=blocks)
        if blocks:
            check_limits(finish(made, MODEL))
    except LooptuneError:
        return None
    return made


def specialized(analysis: Analysis, directives: str, sizes: Mapping[str, int]) -> Plan | None:
    """Return the plan of the directives with the sizes as constants, for a GPU, or None if they are illegal there.

    Directives that are legal at some sizes only are kept where they are legal.
    """
    for text in dict.fromkeys((directives, size_independent(directives))):
        try:
            done = schedule(analysis, parse_lines(text.splitlines(), "configuration"), sizes)
            made = lower(specialize(done.codelet, sizes), text, done.asserted, blocks=True)
            check_limits(finish(made, MODEL))
        except LooptuneError:
            continue
        return made
    return None


def size_names(codelet: Codelet) -> set[str]:
    """Return the integer parameters that are sizes: extents of arrays, bounds of loops, strides of subscripts.

    Other integers are values, such as the number of a time step, of which a program passes ever other ones.
    """
    found: set[str] = set()
    set_from: dict[str, set[str]] = {}
    for node in walk((*codelet.params, *codelet.locals, *codelet.body)):
        match node:
            case Array(shape=shape) | Local(shape=shape):
                found |= names_in(shape)
            case Loop(lo=lo, hi=hi):
                found |= names_in((lo, hi))
            case Load(index=index):
                products = (n for n in walk(index) if isinstance(n, Binary) and n.op == "*")
                found |= {name for n in products if len(names := names_in(n)) > 1 for name in names}
            case Assign(Var(name), value):
                set_from.setdefault(name, set()).update(names_in(value))
    while more := {name for scalar in found & set(set_from) for name in set_from[scalar]} - found:
        found |= more
    return found & {*integer_parameters(codelet)}


def size_independent(directives: str) -> str:
    """Return the directives for unknown sizes."""
    return re.sub(r"\bnoremainder\b", "remainder", directives, flags=re.IGNORECASE)


def default(analysis: Analysis, directives: str = "", *, blocks: bool) -> Plan:
    """Return the plan without sizes: it runs at any sizes. ``blocks``: threads come in blocks, as on a GPU."""
    done = schedule(analysis, parse_lines(directives.splitlines(), "configuration"))
    return lower(done.codelet, directives, done.asserted, blocks=blocks)


def original(codelet: Codelet) -> Plan:
    """Return the plan of the sequential loops."""
    return lower(sequential(codelet))


def sequential(codelet: Codelet) -> Codelet:
    """Return the loops in the order written, without threads."""

    def rule(n: Node) -> Node | None:
        return replace(n, mode="sequential", reductions=()) if isinstance(n, Loop) else None

    return rewrite(rule, codelet)


def proof(analysis: Analysis, best: BestVersion) -> str:
    """Return the assumptions of the version at the sizes at which it was measured."""
    done = scheduled(analysis, best, sums=True)
    blocks = best.context.target == "numba-cuda"
    made = _exact(done, best)
    reassociate = analysis.reassociate
    vectors = () if blocks or not reassociate else vectorised_sums(analysis.codelet, made)
    sizes = best.sizes
    return summarize_proof(
        analysis.codelet, done, made, sizes, reassociate=reassociate, blocks=blocks, vectors=vectors
    ).text
