"""The figure of speed-ups: tuned and hand-written versions over the default, kernel by kernel, and their means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from looptune.report import suite_table
from looptune.report.figures import style
from looptune.report.figures.style import FAINT, GREEN, INK, ORANGE

if TYPE_CHECKING:
    from looptune.tune.results.result import Result


def speedups(rows: Mapping[str, Sequence[tuple[str, Result]]]) -> Any:
    """Return a figure with a row of bars for each title, with the geometric means at the right end."""
    widest = max(map(len, rows.values())) + 1
    figure, panels = style.panels(len(rows), 1, inches=(max(4.5, 0.62 * widest + 1), 3.0))
    handles: dict[str, Any] = {}
    for axes, (title, results) in zip(panels, rows.items(), strict=True):
        handles |= _bars(axes, results)
        style.set_title(axes, title)
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
