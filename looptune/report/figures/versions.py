"""Pictures of a result: what a person sees first.

The only importer of matplotlib, which is optional: see ``available``.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from itertools import cycle
from math import inf
from pathlib import Path
from statistics import median

from looptune.report import suite_table
from looptune.report.result_table import time_text, title
from looptune.tune.replay.simulate import Comparison, Trace
from looptune.tune.results.result import Result

BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#999999"
"""Okabe and Ito's palette: told apart by everyone."""
STROKES = (
    (GREEN, "-"), (GREY, "-"), (BLUE, "-"), (ORANGE, "-"), ("#cc79a7", "-"), ("#56b4e9", "-"), ("#e69f00", "-"),
    ("#000000", "--"), (BLUE, "--"), (ORANGE, "--"), (GREEN, "--"), ("#cc79a7", "--"),
)  # fmt: skip
"""Strategies in a plot of searches: the palette once in full lines, then in broken ones."""


def available() -> bool:
    return importlib.util.find_spec("matplotlib") is not None


def versions(result: Result, times_us: Sequence[float], path: Path) -> None:
    """Every version measured, fastest first, with default, hand-written and tuned as lines; a PNG at ``path``."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    ordered = sorted(times_us)
    label = f"{len(ordered)} versions"
    axes.plot(range(1, len(ordered) + 1), ordered, ".", color=BLUE, markersize=4, label=label)
    for name, colour, style in (("default", GREY, "--"), ("hand-written", ORANGE, "-."), ("tuned", GREEN, "-")):
        median = result.median_us(name)
        if median is not None:
            axes.axhline(median, color=colour, linestyle=style, label=f"{name}: {time_text(median)}")
    axes.set_yscale("log")
    axes.set_xlabel("versions, fastest first")
    axes.set_ylabel("time of one run")
    axes.yaxis.set_major_formatter(lambda us, _: time_text(us))
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(title(result), fontsize=10)
    axes.grid(axis="y", alpha=0.3)
    axes.legend(fontsize=9)
    figure.savefig(path, dpi=130)


def searches(comparisons: Sequence[Comparison], stem: Path) -> list[Path]:
    """The best so far of each strategy, median over its seeds, against the share of the space; a PNG and an SVG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(4, len(comparisons))
    rows = -(-len(comparisons) // columns)
    figure = Figure(figsize=(3.2 * columns + 0.4, 2.5 * rows + 1.0), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    names = list(dict.fromkeys(name for c in comparisons for name in c.traces))
    first = [name for name in ("model", "random") if name in names]
    strokes = dict(zip([*first, *(n for n in names if n not in first)], cycle(STROKES), strict=False))
    lines = {}
    for axes, c in zip(panels, comparisons, strict=False):
        for name, traces in c.traces.items():
            shares, ratios = _best_so_far(c, traces)
            colour, style = strokes[name]
            (lines[name],) = axes.step(
                shares,
                ratios,
                where="post",
                color=colour,
                linestyle=style,
                linewidth=1.8 if name in first else 1.1,
                zorder=3 if name in first else 2,
            )
        axes.axhspan(1.0, 1.05, color=GREY, alpha=0.25, linewidth=0)
        axes.axvline(10, color=GREY, linestyle=":", linewidth=1)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(min(1.0, 100 / c.recording.versions), 100)
        axes.set_ylim(0.98, 3.2)
        axes.set_xticks([1, 10, 100], ["1 %", "10 %", "100 %"])
        axes.set_yticks([1, 1.2, 1.5, 2, 3], ["1x", "1.2x", "1.5x", "2x", "3x"])
        axes.minorticks_off()
        axes.set_title(c.recording.name, fontsize=9)
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels[len(comparisons) :]:
        axes.set_visible(False)
    figure.supxlabel("share of the space evaluated", fontsize=9)
    figure.supylabel("best so far over best, median (band: within 5 %)", fontsize=9)
    figure.legend(lines.values(), lines.keys(), loc="outside upper center", ncols=min(6, len(lines)), fontsize=8)
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in ("png", "svg")]
    for path in paths:
        figure.savefig(path, dpi=130)
    return paths


def _best_so_far(c: Comparison, traces: Sequence[Trace]) -> tuple[list[float], list[float]]:
    """Per cent of the space, and the median over searches of what the incumbent costs there, over the best."""
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


def speedups(results: Sequence[Result], path: Path) -> None:
    """Every kernel's speed-up over its default, hand-written beside tuned, and their geometric means; a PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.6, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    names = [*(r.kernel for r in results), "geometric\nmean"]
    for name, colour, side in (("hand-written", ORANGE, -0.2), ("tuned", GREEN, 0.2)):
        ratios = [*(suite_table.ratio(r, "default", name) for r in results), suite_table.mean(results, "default", name)]
        shown = [(k + side, value) for k, value in enumerate(ratios) if value is not None]
        bars = axes.bar([k for k, _ in shown], [v for _, v in shown], 0.4, color=colour, label=name)
        axes.bar_label(bars, [f"{v:.3g}" for _, v in shown], fontsize=6.2, padding=1)
    axes.axhline(1, color=GREY, linestyle="--", label="default")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}x")
    axes.set_ylabel("speed-up over default")
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
    axes.axvline(len(names) - 1.5, color=GREY, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(suite_table.title(results), fontsize=10)
    axes.legend(fontsize=9)
    figure.savefig(path, dpi=130)
