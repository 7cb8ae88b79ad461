"""A run of so many cases: which targets each has, what comes of all of them, and failures made small."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence

from tests.differential import cases, pool, texts
from tests.differential.batch import EVERY
from tests.differential.cases import Case
from tests.differential.outcomes import Failure, Report
from tests.differential.pool import Work
from tests.differential.shrinking import shrunk

BATCH = 10
Say = Callable[[str], object]


def rotation(targets: Sequence[str], *, every: bool) -> Callable[[int], Sequence[str]]:
    """Which targets a case has: all, or those that cost little and one of the others."""
    if every:
        return lambda index: targets
    light = [t for t in targets if t in ("front", "transform")]
    heavy = [t for t in targets if t not in light]
    # A Numba kernel takes a second to compile, so that fewer cases have one.
    often = {"numba-cpu": 1, "opencl": 1, "simulator": 6, "cuda-c": 8, "built": 1, "built-c": 6, "interpreter": 6}
    dealt = [t for t in heavy for _ in range(often.get(t, 1))]

    def of(index: int) -> Sequence[str]:
        return [*light, *([random.Random(index).choice(dealt)] if dealt else [])]

    return of


def run(
    seed: int,
    numbers: Sequence[int],
    targets: Sequence[str] = EVERY,
    *,
    every: bool = False,
    processes: int = 0,
    say: Say | None = None,
) -> Report:
    """Cases with these numbers; each failure is said at once."""
    whole = Report()
    for report in pool.run(_works(seed, numbers, rotation(targets, every=every)), processes or os.cpu_count() or 1):
        whole.add(report)
        for f in report.failures if say is not None else ():
            say(f"case {f.index}, {f.target}: {f.kind}: {f.said.strip().splitlines()[-1][:200]}")  # type: ignore[misc]
    return whole


def _works(seed: int, numbers: Sequence[int], of: Callable[[int], Sequence[str]]) -> Iterator[Work]:
    for first in range(0, len(numbers), BATCH):
        some = numbers[first : first + BATCH]
        yield Work(seed, tuple(Case(k, texts.program(seed, k)) for k in some), of)


def minimised(seed: int, failures: Sequence[Failure], say: Say, most: int, seconds: float) -> None:
    """Say each kind of failure once, as small as it can be made, the others as a count."""
    groups: dict[object, list[Failure]] = {}
    for f in failures:
        groups.setdefault(f.signature if f.kind == "traceback" else f.index, []).append(f)
    for shown, alike in enumerate(sorted(groups.values(), key=lambda group: -len(group))):
        first = min(alike, key=lambda f: EVERY.index(f.target) if f.target in EVERY else -1)
        where = ", ".join(dict.fromkeys(f.target for f in alike))
        cases_ = ", ".join(dict.fromkeys(str(f.index) for f in alike))
        say(f"\n=== case {cases_} on {where}: {first.kind}")
        if first.index < 0 or shown >= most:
            say(first.said)
            continue
        case = Case(first.index, texts.program(seed, first.index))
        small, failure = shrunk(seed, case, first, seconds)
        say(cases.shown(small, min(failure.number, len(small.program.sizes) - 1)))
        say(f"--> {failure.target}: {failure.said}")


def summary(report: Report) -> str:
    return "\n".join(f"{count:8} {what}" for what, count in sorted(report.counts.items()))
