"""The figure of search strategies: the best so far of each, against the share of the space evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from math import inf
from statistics import median
from typing import TYPE_CHECKING, Any

from looptune.report.figures import style
from looptune.report.figures.style import AMBER, BLUE, FAINT, GREEN, ORANGE, PINK, SKY

if TYPE_CHECKING:
    from looptune.tune.replay.simulate import Comparison, Trace

STROKES = (
    *((colour, "-") for colour in (GREEN, FAINT, BLUE, ORANGE, PINK, SKY, AMBER)),
    *((colour, "--") for colour in ("#000000", BLUE, ORANGE, GREEN, PINK)),
)
"""The palette once in full lines, then in broken ones."""


def searches(comparisons: Sequence[Comparison]) -> Any:
    """Return a figure with a panel for each recording and a line for each strategy: the median over its seeds."""
    figure, panels = style.panels(len(comparisons), 4, inches=(3.2, 2.5))
    names = list(dict.fromkeys(name for c in comparisons for name in c.traces))
    first = [name for name in ("model", "random") if name in names]
    strokes = dict(zip([*first, *(n for n in names if n not in first)], cycle(STROKES), strict=False))
    lines: dict[str, Any] = {}
    for axes, c in zip(panels, comparisons, strict=True):
        for name, traces in c.traces.items():
            colour, stroke = strokes[name]
            width, above = (1.8, 3) if name in first else (1.1, 2)
            (lines[name],) = axes.step(
                *_best_so_far(c, traces), where="post", color=colour, linestyle=stroke, linewidth=width, zorder=above
            )
        axes.axhspan(1.0, 1.05, color=FAINT, alpha=0.25, linewidth=0)
        axes.axvline(10, color=FAINT, linestyle=":", linewidth=1)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(min(1.0, 100 / c.recording.versions), 100)
        axes.set_ylim(0.98, 3.2)
        axes.set_xticks([1, 10, 100], ["1 %", "10 %", "100 %"])
        axes.set_yticks([1, 1.2, 1.5, 2, 3], ["1x", "1.2x", "1.5x", "2x", "3x"])
        axes.minorticks_off()
        style.set_title(axes, c.recording.name)
    style.label_axes(figure, "share of the space evaluated", "best so far over best, median (band: within 5 %)")
    style.legend(figure, lines)
    return figure


def _best_so_far(c: Comparison, traces: Sequence[Trace]) -> tuple[list[float], list[float]]:
    """Return the share of the space in per cent, and the median over searches of the best cost so far over the best."""
    at = range(1, c.recording.versions + 1)
    each = []
    for trace in traces:
        costs, incumbent = dict.fromkeys(at, inf), inf
        costs |= {s.evaluations: s.cost_us / c.recording.best_us for s in trace.steps if s.evaluations in costs}
        for k in at:
            incumbent = costs[k] if costs[k] < inf else incumbent
            costs[k] = incumbent
        each.append(costs)
    shown = [(100 * k / c.recording.versions, median(costs[k] for costs in each)) for k in at]
    return [x for x, y in shown if y < inf], [y for _, y in shown if y < inf]
