"""The style of every figure: the palette, the panels, the file formats.

It is the only importer of matplotlib, which is optional: see ``available``.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

INK, FAINT = "#222222", "#999999"
BLUE, ORANGE, GREEN, PINK, SKY, AMBER = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"
"""Okabe and Ito's palette: told apart by everyone."""
CYCLE = (BLUE, ORANGE, GREEN, PINK, SKY, AMBER)
MARKERS = ("o", "s", "^", "D", "v", "P")
PANEL_INCHES = (3.4, 2.35)
NAME = 24
"""Characters of a name that are shown."""


def available() -> bool:
    """Tell whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def panels(count: int, columns: int = 3, *, inches: tuple[float, float] = PANEL_INCHES) -> tuple[Any, list[Any]]:
    """Return a figure and ``count`` axes, in rows of ``columns``."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(columns, count)
    rows = -(-count // columns)
    figure = Figure(figsize=(inches[0] * columns, inches[1] * rows + 0.5), layout="constrained")
    FigureCanvasAgg(figure)
    every = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for axes in every[count:]:
        axes.set_visible(False)
    for axes in every[:count]:
        plain_axes(axes)
    return figure, every[:count]


def plain_axes(axes: Any) -> None:
    """Leave only the two axes that matter, and a faint grid behind the data."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(INK)
    axes.tick_params(labelsize=7.5, colors=INK, which="both")
    axes.grid(axis="y", color=FAINT, alpha=0.3, linewidth=0.6)
    axes.set_axisbelow(True)


def shades(colours: Sequence[str]) -> Any:
    """Return a function from 0 .. 1 to the shades between these colours."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("shades", colours)


def ratio_axis(axes: Any, values: Iterable[float], *, one: bool = True, room: float = 0.06) -> None:
    """Make the y axis a logarithmic axis of ratios, with few ticks that say 0.5x, 1x, 20x.

    ``one``: 1 has to be seen; ``room``: the share of the axis left free at either end. Noise is not blown up: it spans
    a quarter.
    """
    values = [v for v in values if v > 0]
    low, high = min([1.0, *values] if one else values), max([1.0, *values] if one else values)
    widen = max(1.0, 1.25 / (high / low)) ** 0.5
    low, high = low / widen, high * widen
    axes.set_yscale("log")
    axes.set_ylim(low / (high / low) ** room, high * (high / low) ** room)
    ticks = ratio_ticks(*axes.get_ylim())
    axes.set_yticks(ticks, [f"{t:g}x" for t in ticks])
    axes.minorticks_off()


def ratio_ticks(low: float, high: float) -> list[float]:
    """Round numbers between two ratios, 1 among them where it lies there: at most seven.

    >>> ratio_ticks(0.4, 30), ratio_ticks(0.97, 1.12), ratio_ticks(91, 113)
    ([0.5, 1.0, 2.0, 5.0, 10.0, 20.0], [1.0, 1.05, 1.1], [95.0, 100.0, 105.0, 110.0])
    """
    if high / low < 4:
        steps = (d * 10.0**e for e in range(-9, 10) for d in (1, 2, 5))
        step = next(s for s in steps if (high - low) / s <= 7.5)
        return [round(k * step, 9) for k in range(ceil(low / step), floor(high / step) + 1)]
    for digits in ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
        ticks = [round(d * 10.0**e, 9) for e in range(-9, 10) for d in digits if low <= d * 10.0**e <= high]
        if len(ticks) <= 6:
            return ticks
    return [t for t in ticks if log10(t) % -(-len(ticks) // 6) < 0.5]


def legend(figure: Any, handles: dict[str, Any]) -> None:
    """Draw one legend for all panels, above them, in as many columns as fit."""
    if handles:
        widest = max(map(len, handles)) * 0.075 + 0.7
        width, height = figure.get_size_inches()
        columns = max(1, int(width / widest))
        figure.set_figheight(height + 0.18 * (-(-len(handles) // columns) - 1))
        figure.legend(
            handles.values(), handles.keys(), loc="outside upper center", ncols=min(columns, len(handles)), fontsize=8,
            frameon=False, labelcolor=INK,
        )  # fmt: skip


def value_at(axes: Any, x: float, end: float, ratio: float) -> None:
    """Draw the number beyond ``end``, which is the end of the bar, or of what is drawn over it."""
    up = ratio >= 1
    text = f"{ratio:.0f}" if ratio >= 99.5 else f"{ratio:.3g}" if ratio >= 0.1 else f"{ratio:.2g}"
    axes.annotate(text, (x, end), (0, 2 if up else -2), textcoords="offset points", ha="center",
                  va="bottom" if up else "top", fontsize=6.5, color=INK)  # fmt: skip


def label_axes(figure: Any, x: str, y: str) -> None:
    """Label the axes of the figure."""
    figure.supxlabel(x, fontsize=9, color=INK)
    figure.supylabel(y, fontsize=9, color=INK)


def set_title(axes: Any, title: str, below: str = "") -> None:
    """Set the title of a panel, and ``below`` it a smaller second line."""
    axes.set_title(truncate([title], 48), fontsize=9, color=INK, loc="left", pad=14 if below else 6)
    if below:
        axes.text(0, 1.03, below, transform=axes.transAxes, fontsize=6.5, color=INK, va="bottom")


def save(draw: Callable[[], Any], stem: Path, kinds: Sequence[str] = ("png", "svg")) -> list[Path]:
    """Write the figure that ``draw`` makes to a file of each kind.

    Equal figures give equal files, and a $ in a name is a $.
    """
    from matplotlib import rc_context

    options: Mapping[str, Mapping[str, Any]] = {
        "png": {"dpi": 150},
        "svg": {"metadata": {"Date": None, "Creator": None}, "transparent": True},
    }
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in kinds]
    with rc_context({"svg.hashsalt": stem.name, "text.parse_math": False}):
        figure = draw()
        _plain_ticks(figure)
        for path, kind in zip(paths, kinds, strict=True):
            figure.savefig(path, **options[kind])
    return paths


def _plain_ticks(figure: Any) -> None:
    """Write the numbers of logarithmic axes as plain text, since Matplotlib's formulas and minor ticks overlap."""
    from matplotlib.ticker import FuncFormatter, LogFormatter, LogLocator, NullFormatter

    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        if isinstance(axis.get_minor_formatter(), LogFormatter):
            axis.set_minor_formatter(NullFormatter())
        low, high = sorted(axis.get_view_interval())
        decimal = axis.get_scale() == "log" and axis.get_transform().base == 10
        if decimal and isinstance(axis.get_major_locator(), LogLocator) and high < 100 * low:
            axis.set_major_locator(LogLocator(10, subs=(1.0, 2.0, 5.0)))  # there are two powers of ten at most
        if isinstance(axis.get_major_formatter(), LogFormatter):
            axis.set_major_formatter(FuncFormatter(lambda number, place: f"{number:,.12g}"))


def truncate(texts: Sequence[str], limit: int) -> str:
    """Return the texts on one line, cut to ``limit`` characters.

    >>> truncate(["loop i: unroll 4", "codelet: grid blocksize 32x4"], 24)
    'loop i: unroll 4; cod...'
    """
    line = "; ".join(texts)
    return line if len(line) <= limit else f"{line[: limit - 3]}..."
