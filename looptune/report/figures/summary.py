"""The figures of a run: the times of one kernel's versions, and the speed-ups of several kernels with their means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from looptune.core.si_units import time_text
from looptune.report import suite_table
from looptune.report.figures import style
from looptune.report.figures.style import BLUE, FAINT, GREEN, INK, ORANGE
from looptune.report.result_table import title

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


def speedups(rows: Mapping[str, Sequence[tuple[str, Result]]]) -> Any:
    """Return a figure with a row of bars for each title, with the geometric means at the right end."""
    widest = max(map(len, rows.values())) + 1
    figure, panels = style.panels(len(rows), 1, inches=(max(4.5, 0.62 * widest + 1), 3.0))
    handles: dict[str, Any] = {}
    for axes, (named, results) in zip(panels, rows.items(), strict=True):
        handles |= _bars(axes, results)
        style.set_title(axes, named)
    style.label_axes(figure, "", "speed-up over default")
    style.legend(figure, handles)
    return figure


def _bars(axes: Any, named: Sequence[tuple[str, Result]]) -> dict[str, Any]:
    results, handles = [result for _, result in named], {}
    every: list[float] = []
    for name, colour, side in (("hand-written", ORANGE, -0.2), ("tuned", GREEN, 0.2)):
        ratios = [*(suite_table.ratio(r, "default", name) for r in results), suite_table.mean(results, "default", name)]
        shown = [(k + side, v) for k, v in enumerate(ratios) if v is not None]
        every += [v for _, v in shown]
        bars = axes.bar([k for k, _ in shown], [v - 1 for _, v in shown], 0.4, bottom=1, color=colour)
        handles[name] = bars
        for x, v in shown:
            style.value_at(axes, x, v, v)
    style.ratio_axis(axes, every, room=0.1)
    axes.axhline(1, color=INK, linewidth=0.8)
    names = [*(style.truncate([n], style.NAME) for n, _ in named), "geometric\nmean"]
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right", rotation_mode="anchor")
    axes.set_xlim(-0.7, len(names) - 0.3)
    axes.axvline(len(names) - 1.5, color=FAINT, linewidth=0.6)
    return handles
