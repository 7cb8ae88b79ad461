"""The figure of one kernel: the time of every version that was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from looptune.report.figures import style
from looptune.report.figures.style import BLUE, FAINT, GREEN, ORANGE
from looptune.report.result_table import time_text, title

if TYPE_CHECKING:
    from looptune.tune.results.result import Result


def versions(result: Result) -> Any:
    """Draw the time of every version, with default, hand-written and tuned as lines.

    The versions that the finals timed come first, by their medians there, which the lines and the table show, too; the
    others follow by their medians in the screening. The legend says so.
    """
    figure, (axes,) = style.panels(1, inches=(8, 3.7))
    start = 1
    for times_us, colour, of in ((result.finals_us, GREEN, "finals"), (result.times_us, BLUE, "screening")):
        if times_us:
            places, label = range(start, start + len(times_us)), f"{len(times_us)} versions, medians of the {of}"
            axes.plot(places, sorted(times_us), ".", color=colour, markersize=4, label=label)
        start += len(times_us)
    for name, colour, stroke in (("default", FAINT, "--"), ("hand-written", ORANGE, "-."), ("tuned", GREEN, "-")):
        median = result.median_us(name)
        if median is not None:
            axes.axhline(median, color=colour, linestyle=stroke, label=f"{name}, finals: {time_text(median)}")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda us, _: time_text(us))
    axes.set_title(title(result), fontsize=10)
    axes.legend(fontsize=9)
    style.label_axes(figure, "versions, fastest first, those of the finals before the others", "time of one run")
    return figure
