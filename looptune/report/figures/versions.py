"""The figure of one kernel: the time of every version that was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from looptune.report.figures import style
from looptune.report.figures.style import BLUE, FAINT, GREEN, ORANGE
from looptune.report.result_table import time_text, title
from looptune.tune.results.result import Result


def versions(result: Result, times_us: Sequence[float]) -> Any:
    """Every version measured, fastest first, with default, hand-written and tuned as lines."""
    figure, (axes,) = style.panels(1, inches=(8, 3.7))
    ordered = sorted(times_us)
    axes.plot(range(1, len(ordered) + 1), ordered, ".", color=BLUE, markersize=4, label=f"{len(ordered)} versions")
    for name, colour, stroke in (("default", FAINT, "--"), ("hand-written", ORANGE, "-."), ("tuned", GREEN, "-")):
        median = result.median_us(name)
        if median is not None:
            axes.axhline(median, color=colour, linestyle=stroke, label=f"{name}: {time_text(median)}")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda us, _: time_text(us))
    axes.set_title(title(result), fontsize=10)
    axes.legend(fontsize=9)
    style.labelled(figure, "versions, fastest first", "time of one run")
    return figure
