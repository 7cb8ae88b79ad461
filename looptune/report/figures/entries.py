"""The figure of each kernel's own times: sequential program, default, hand-written, library and tuned version.

Times are bars relative to the default's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Any

from looptune.core.si_units import time_text
from looptune.report.figures import style
from looptune.report.figures.style import BLUE, FAINT, GREEN, INK, ORANGE, PINK
from looptune.tune.results.studies import KernelStudy, names_of

if TYPE_CHECKING:
    from looptune.tune.results.result import Entry

NAMES = ("sequential", "default", "hand-written", "library", "tuned")
BREAK = 3.0
"""A sequential program that is this many times slower than all others, or faster, would leave their bars no room ..."""
BEYOND = 1.3
"""... and is drawn as this many times slower, or more where they differ much."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: ``ratio`` is the speed-up over the default by the medians.

    ``low`` and ``high`` are the speed-ups by the third and the first quartile. If ``broken``, the bar ends at
    ``drawn_ratio``.
    """

    name: str
    time_us: float
    ratio: float
    low: float
    high: float
    drawn_ratio: float

    @property
    def broken(self) -> bool:
        return self.drawn_ratio != self.ratio


@dataclass(frozen=True, slots=True)
class Bars:
    """A panel with its ``bars`` in the order of NAMES."""

    kernel: str
    about: str
    bars: tuple[Bar, ...]


def entries(studies: Sequence[KernelStudy]) -> list[Bars]:
    """Return the kernels whose default and at least one other version were timed."""
    names = names_of(studies)
    made = [_bars(name, study) for name, study in zip(names, studies, strict=True)]
    return [one for one in made if len(one.bars) > 1 and any(bar.name == "default" for bar in one.bars)]


def _bars(kernel: str, study: KernelStudy) -> Bars:
    default_us = study.result.median_us("default")
    timed = [e for name in NAMES if (e := study.result.entry(name)) is not None and e.times is not None]
    about = ", ".join(text for text in (study.sizes, study.kind) if text not in kernel)
    if not default_us:
        return Bars(kernel, about, ())
    ratios = {e.name: default_us / e.times.median_us for e in timed if e.times is not None and e.times.median_us}
    others = [1.0, *(ratio for name, ratio in ratios.items() if name != "sequential")]
    return Bars(kernel, about, tuple(_bar(e, default_us, min(others), max(others)) for e in timed if e.name in ratios))


def _bar(entry: Entry, default_us: float, least: float, most: float) -> Bar:
    """Return the bar of an entry; ``least`` and ``most`` bound the ratios of all but the sequential program."""
    assert entry.times is not None, "only what was timed has a bar"
    ratio, times = default_us / entry.times.median_us, entry.times
    beyond, shown = max(BEYOND, (most / least) ** 0.5), ratio
    if ratio < least / BREAK:
        shown = least / beyond
    elif ratio > most * BREAK:
        shown = most * beyond
    return Bar(entry.name, times.median_us, ratio, default_us / times.q3_us, default_us / times.q1_us, shown)


COLOURS = {"sequential": FAINT, "default": BLUE, "hand-written": ORANGE, "library": PINK, "tuned": GREEN}
WIDTH = 0.62
_FEWEST = 4
"""Fewer bars are not wider than these."""
_SEEN = 0.01
"""Of the axis: a bar that is shorter is a line."""
_TEAR, _SLANT = 0.045, 0.03
"""Of the axis: how wide a broken bar gapes, and how much the edges of the gap rise."""


def bars(found: Sequence[Bars]) -> Any:
    """Return a panel for each kernel; a bar that is too long is broken and labelled with its length."""
    figure, panels = style.panels(len(found))
    for axes, one in zip(panels, found, strict=True):
        style.ratio_axis(axes, [v for bar in one.bars for v in _ends(bar)], room=0.16)
        for x, bar in enumerate(one.bars):
            _draw(axes, x, bar)
        axes.axhline(1, color=INK, linewidth=0.8)
        middle, half = (len(one.bars) - 1) / 2, max(len(one.bars), _FEWEST) / 2 + 0.2
        axes.set_xlim(middle - half, middle + half)
        axes.set_xticks(range(len(one.bars)), [f"{bar.name}\n{time_text(bar.time_us)}" for bar in one.bars])
        axes.tick_params(axis="x", labelsize=7 if len(one.bars) < 5 else 6, length=0)
        style.set_title(axes, one.kernel, one.about)
    style.label_axes(figure, "", "speed-up over default")
    return figure


def _ends(bar: Bar) -> tuple[float, ...]:
    return (bar.drawn_ratio,) if bar.broken else (bar.ratio, bar.low, bar.high)


def _draw(axes: Any, x: float, bar: Bar) -> None:
    colour = COLOURS[bar.name]
    if bar.broken:
        _broken(axes, x, bar.drawn_ratio, colour)
        style.value_at(axes, x, bar.drawn_ratio, bar.ratio)
        return
    axes.bar(x, bar.ratio - 1, WIDTH, bottom=1, color=colour)
    low, high = axes.get_ylim()
    if abs(log(bar.ratio)) < _SEEN * log(high / low):
        axes.plot([x - WIDTH / 2, x + WIDTH / 2], [bar.ratio] * 2, color=colour, linewidth=3, solid_capstyle="butt")
    axes.plot([x, x], [bar.low, bar.high], color=INK, linewidth=0.9)
    style.value_at(axes, x, bar.high if bar.ratio >= 1 else bar.low, bar.ratio)


def _broken(axes: Any, x: float, end: float, colour: str) -> None:
    """Draw a bar in two pieces with a slanted gap between them, halfway to the end."""
    low, high = axes.get_ylim()
    left, right, middle = x - WIDTH / 2, x + WIDTH / 2, end**0.5
    gap, slant = (high / low) ** (_TEAR / 2), (high / low) ** (_SLANT / 2)
    for edge, at in (
        ((1.0, middle * gap), (end, middle / gap)) if end < 1 else ((1.0, middle / gap), (end, middle * gap))
    ):
        axes.fill([left, right, right, left], [edge, edge, at * slant, at / slant], color=colour, linewidth=0)
