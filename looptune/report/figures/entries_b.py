"""Each kernel's own times as bars over its default, see ``entries``."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Any

from looptune.report.figures import style
from looptune.report.figures.comparisons import value_at
from looptune.report.figures.entries import Bar, Bars
from looptune.report.figures.style import BLUE, FAINT, GREEN, INK, ORANGE, PINK
from looptune.report.result_table import time_text

COLOURS = {"sequential": FAINT, "default": BLUE, "hand-written": ORANGE, "library": PINK, "tuned": GREEN}
WIDTH = 0.62
_FEWEST = 4
"""Fewer bars are not wider than these."""
_SEEN = 0.01
"""Of the axis: a bar that is shorter is a line."""
_TEAR, _SLANT = 0.045, 0.03
"""Of the axis: how wide a broken bar gapes, and how much the edges of the gap rise."""


def bars(found: Sequence[Bars]) -> Any:
    """A panel for each kernel; a bar that is too long for it is broken, and its number says how long it is."""
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
        style.titled(axes, one.kernel, one.about)
    style.labelled(figure, "", "speed-up over default")
    return figure


def _ends(bar: Bar) -> tuple[float, ...]:
    return (bar.shown,) if bar.broken else (bar.ratio, bar.low, bar.high)


def _draw(axes: Any, x: float, bar: Bar) -> None:
    colour = COLOURS[bar.name]
    if bar.broken:
        _broken(axes, x, bar.shown, colour)
        value_at(axes, x, bar.shown, bar.ratio)
        return
    axes.bar(x, bar.ratio - 1, WIDTH, bottom=1, color=colour)
    low, high = axes.get_ylim()
    if abs(log(bar.ratio)) < _SEEN * log(high / low):
        axes.plot([x - WIDTH / 2, x + WIDTH / 2], [bar.ratio] * 2, color=colour, linewidth=3, solid_capstyle="butt")
    axes.plot([x, x], [bar.low, bar.high], color=INK, linewidth=0.9)
    value_at(axes, x, bar.high if bar.ratio >= 1 else bar.low, bar.ratio)


def _broken(axes: Any, x: float, end: float, colour: str) -> None:
    """Two pieces with a slanted gap between them, halfway to the end."""
    low, high = axes.get_ylim()
    left, right, middle = x - WIDTH / 2, x + WIDTH / 2, end**0.5
    gap, slant = (high / low) ** (_TEAR / 2), (high / low) ** (_SLANT / 2)
    for edge, at in (
        ((1.0, middle * gap), (end, middle / gap)) if end < 1 else ((1.0, middle / gap), (end, middle * gap))
    ):
        axes.fill([left, right, right, left], [edge, edge, at * slant, at / slant], color=colour, linewidth=0)
