"""A nest whose conditions on data are statements of their own, which run where the ``if`` is.

    if (A[i] > 0) {                  S0_if0: reads A[i]
      S0: A[i] = 0         ==>       S1_if0: reads A[i]
      S1: B[i] = A[i + 1]            S0 and S1, which may run
    }

Each statement gets its own evaluation of each condition, so that the evaluations of a copy can be compared with those
of its original. A condition that makes its statement a minimum or maximum stays: the two are one step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from looptune.ir.nodes import Assign, Expr, Loop, Var
from looptune.poly.domain import IterationDomains, Statement
from looptune.poly.reduction import accumulation

if TYPE_CHECKING:
    from looptune.poly.data_conditions import DataCondition


def separate_conditions(nest: IterationDomains) -> IterationDomains:
    """Return the nest with the evaluations of conditions as statements that write nothing.

    ``asks`` maps each to the statement of its condition.
    """
    statements: dict[str, Statement] = {}
    for s in nest.statements.values():
        for asking in _askings(s):
            statements[asking.name] = asking
        alone = {id(a.full_condition) for k, a in enumerate(s.data_conditions) if has_own_statement(s, k)}
        left = tuple(c for c in s.conditions if id(c) not in alone)
        statements[s.name] = replace(s, conditions=left, time=_spaced(s.time))
    return replace(nest, statements=statements)


def has_own_statement(s: Statement, k: int) -> bool:
    """Return whether the ``k``-th condition on data is evaluated before the statement and is not part of it."""
    into = accumulation(s.assign, s.guard)
    guards = into is not None and into.extra_conditions is not None
    return not guards or s.data_conditions[k].ifs < max(a.ifs for a in s.data_conditions)


def condition_instance_name(s: Statement, k: int) -> str:
    """Return the name of the statement that evaluates the ``k``-th condition on data."""
    return f"{s.name}_if{k}"


def _askings(s: Statement) -> Iterator[Statement]:
    for k, a in enumerate(s.data_conditions):
        if has_own_statement(s, k):
            yield _asking(s, k, a)


def _asking(s: Statement, k: int, a: DataCondition) -> Statement:
    """Return the evaluation as a statement. Another condition on data before it may prevent it."""
    place = 2 * a.loops
    time = (*_spaced(s.time[:place]), str(2 * a.place - 1), *("0" for _ in s.time[place + 1 :]))
    target = Var(condition_instance_name(s, k), a.cond.dtype)
    at: tuple[Expr, ...] = tuple(Var(f.var, f.dtype) for f in s.loops[: a.loops] if isinstance(f, Loop))
    span = a.cond.span if a.cond.span.line else s.assign.span
    asked = Assign(target, a.cond, name=target.name, instance=at, span=span)
    return Statement(
        target.name, s.loops[: a.loops], asked, s.dims[: a.loops], a.domain, time, k == 0, (),
        None if k == 0 else s.unknown, data_conditions=s.data_conditions[: k + 1], is_condition=s.name,
    )  # fmt: skip


def _spaced(time: tuple[str, ...]) -> tuple[str, ...]:
    """With a place before each place in the text: those are every other entry."""
    return tuple(str(2 * int(e)) if k % 2 == 0 else e for k, e in enumerate(time))
