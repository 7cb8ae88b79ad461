"""Makes a failing case smaller while it fails in the same way: directives, sizes, statements, expressions left out."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from tests.differential import pool
from tests.differential.cases import Case
from tests.differential.outcomes import Failure
from tests.differential.pool import Work
from tests.differential.tree import simpler

TRIES = 400


def shrunk(seed: int, case: Case, failure: Failure, seconds: float = 120) -> tuple[Case, Failure]:
    """The smallest case found, and how it fails."""
    case = Case(case.index, case.program, failure.lines)
    until = time.monotonic() + seconds
    best, known = case, failure
    progress = True
    while progress and time.monotonic() < until:
        progress = False
        for smaller in _simpler(best, known):
            if time.monotonic() > until:
                break
            found = _fails(seed, smaller, failure)
            if found is not None:
                best, known, progress = smaller, found, True
                break
    return best, known


def _simpler(case: Case, failure: Failure) -> Iterator[Case]:
    for k in range(len(case.lines)):
        yield replace(case, lines=case.lines[:k] + case.lines[k + 1 :])
    program = case.program
    if len(program.sizes) > 1:
        yield replace(case, program=replace(program, sizes=(program.sizes[failure.number],)))
    length = len(program.text)
    for tree in simpler(program.tree):
        if len(str(tree)) < length:
            yield replace(case, program=replace(program, tree=tree))


def _fails(seed: int, case: Case, failure: Failure) -> Failure | None:
    """The failure of the same kind that the case has, if it has one."""
    work = Work(seed, (case,), lambda _: (failure.target,), given=True)
    for report in pool.run(iter((work,)), 1):
        for found in report.failures:
            if (
                found.target == failure.target
                and found.kind == failure.kind
                and (failure.kind != "traceback" or found.signature == failure.signature)
            ):
                return found
    return None
