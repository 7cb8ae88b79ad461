"""Pictures of a result: what a person sees first.

The only importer of matplotlib, which is optional: see ``available``.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from looptune.report import summary
from looptune.report.result import Result
from looptune.report.tables import time_text, title

BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#999999"
"""Okabe and Ito's palette: told apart by everyone."""


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
    label = f"{len(ordered)} versions, each verified"
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


def speedups(results: Sequence[Result], path: Path) -> None:
    """Every kernel's speed-up over its default, hand-written beside tuned, and their geometric means; a PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    names = [*(r.kernel for r in results), "geometric\nmean"]
    for name, colour, side in (("hand-written", ORANGE, -0.2), ("tuned", GREEN, 0.2)):
        ratios = [*(summary.ratio(r, "default", name) for r in results), summary.mean(results, "default", name)]
        shown = [(k + side, value) for k, value in enumerate(ratios) if value is not None]
        bars = axes.bar([k for k, _ in shown], [v for _, v in shown], 0.4, color=colour, label=name)
        axes.bar_label(bars, [f"{v:.3g}" for _, v in shown], fontsize=7, padding=1)
    axes.axhline(1, color=GREY, linestyle="--", label="default")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}x")
    axes.set_ylabel("speed-up over default")
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
    axes.axvline(len(names) - 1.5, color=GREY, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(summary.title(results), fontsize=10)
    axes.legend(fontsize=9)
    figure.savefig(path, dpi=130)
