"""The figure of each kernel's own times: the sequential program, the default, what others wrote, the tuned version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from looptune.tune.results.result import Entry
from looptune.tune.results.study import Study, names_of

NAMES = ("sequential", "default", "hand-written", "library", "tuned")
BREAK = 3.0
"""A sequential program that is this many times slower than all others, or faster, would leave their bars no room ..."""
BEYOND = 1.3
"""... and is drawn as this many times slower, or more where they differ much."""


@dataclass(frozen=True, slots=True)
class Bar:
    """``ratio``: how many times faster than the default, in the median; ``low`` and ``high``: by the third and the
    first quartile of its runs. ``broken``: it is drawn up to ``shown`` alone."""

    name: str
    time_us: float
    ratio: float
    low: float
    high: float
    shown: float

    @property
    def broken(self) -> bool:
        return self.shown != self.ratio


@dataclass(frozen=True, slots=True)
class Bars:
    """One panel, ``bars`` in the order of NAMES."""

    kernel: str
    about: str
    bars: tuple[Bar, ...]


def entries(studies: Sequence[Study]) -> list[Bars]:
    """The kernels whose default was timed, and something besides."""
    names = names_of(studies)
    made = [_bars(name, study) for name, study in zip(names, studies, strict=True)]
    return [one for one in made if len(one.bars) > 1 and any(bar.name == "default" for bar in one.bars)]


def _bars(kernel: str, study: Study) -> Bars:
    default_us = study.result.median_us("default")
    timed = [e for name in NAMES if (e := study.result.entry(name)) is not None and e.times is not None]
    about = ", ".join(text for text in (study.sizes, study.kind) if text not in kernel)
    if not default_us:
        return Bars(kernel, about, ())
    ratios = {e.name: default_us / e.times.median_us for e in timed if e.times is not None and e.times.median_us}
    others = [1.0, *(ratio for name, ratio in ratios.items() if name != "sequential")]
    return Bars(kernel, about, tuple(_bar(e, default_us, min(others), max(others)) for e in timed if e.name in ratios))


def _bar(entry: Entry, default_us: float, least: float, most: float) -> Bar:
    """``least`` and ``most``: of the ratios of all but the sequential program."""
    assert entry.times is not None, "only what was timed has a bar"
    ratio, times = default_us / entry.times.median_us, entry.times
    beyond, shown = max(BEYOND, (most / least) ** 0.5), ratio
    if ratio < least / BREAK:
        shown = least / beyond
    elif ratio > most * BREAK:
        shown = most * beyond
    return Bar(entry.name, times.median_us, ratio, default_us / times.q3_us, default_us / times.q1_us, shown)
