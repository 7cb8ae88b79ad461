"""A run of so many cases: which targets each has, what comes of all of them, and failures made small."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from differential import cases, pool, texts
from differential.batch import EVERY, HEAVY
from differential.cases import Case
from differential.outcomes import Failure, Report
from differential.pool import Work
from differential.shrinking import shrunk

BATCH = 20
Say = Callable[[str], object]


def rotation(targets: Sequence[str], *, every: bool) -> Callable[[int], Sequence[str]]:
    """Which targets a case has: all, or those that cost little and one of the others."""
    if every:
        return lambda index: targets
    light = [t for t in targets if t not in HEAVY]
    heavy = [t for t in targets if t in HEAVY]
    # A Numba kernel takes a second to compile, so that fewer cases have one.
    often = {"numba-cpu": 1, "opencl": 1, "simulator": 2, "cuda-c": 3}
    dealt = [t for t in heavy for _ in range(often[t])]

    def of(index: int) -> Sequence[str]:
        return [*light, *([dealt[index % len(dealt)]] if dealt else [])]

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
    groups: dict[tuple[str, str, str], list[Failure]] = {}
    for f in failures:
        groups.setdefault(f.signature, []).append(f)
    for shown, (_, alike) in enumerate(sorted(groups.items(), key=lambda item: -len(item[1]))):
        first = alike[0]
        say(f"\n=== {first.target}: {first.kind}, {len(alike)} cases: {', '.join(str(f.index) for f in alike[:12])}")
        if first.index < 0 or shown >= most:
            say(first.said)
            continue
        case = Case(first.index, texts.program(seed, first.index))
        small, failure = shrunk(seed, case, first, seconds)
        say(cases.shown(small, min(failure.number, len(small.program.sizes) - 1)))
        say(f"--> {failure.said}")


def summary(report: Report) -> str:
    return "\n".join(f"{count:8} {what}" for what, count in sorted(report.counts.items()))
