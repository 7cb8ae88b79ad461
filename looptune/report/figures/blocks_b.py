"""The figure of register blocks: a panel for each kernel, a cell for each block, dark where it is near the best."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import log
from typing import Any

from looptune.report.figures import style
from looptune.report.figures.blocks import Blocks
from looptune.report.figures.style import FAINT, INK

_WORST = 4.0
"""From this ratio on cells are white."""
_SHADES = ("#ffffff", "#56b4e9", "#0072b2")
_LIGHT_INK = 0.55
"""Cells darker than this share have white numbers."""


def register_blocks(found: Sequence[Blocks]) -> Any:
    shades = style.shades(_SHADES)
    widest, tallest = max(len(b.across) for b in found), max(len(b.down) for b in found)
    inches = (max(3.4, 0.42 * widest + 0.8), 0.3 * tallest + 1.1)
    figure, panels = style.panels(len(found), max(1, int(11 / inches[0])), inches=inches)
    for axes, one in zip(panels, found, strict=True):
        _cells(axes, one, shades)
        _schemes(axes, one)
        style.titled(axes, one.kernel, f"iterations of {one.rows} by iterations of {one.columns}")
    style.labelled(figure, "iterations a thread runs side by side, by how they lie", "")
    return figure


def _cells(axes: Any, one: Blocks, shades: Any) -> None:
    across, down = one.across, one.down
    for (row, column), ratio in one.cells.items():
        x, y = across.index(column), down.index(row)
        dark = max(0.0, 1 - log(ratio) / log(_WORST))
        axes.bar(x, 0.92, 0.96, bottom=y - 0.46, color=shades(dark), edgecolor=FAINT, linewidth=0.3)
        text = f"{ratio:.2f}" if ratio < 9.95 else f"{ratio:.0f}"
        axes.text(x, y, text, ha="center", va="center", fontsize=6.5, color="white" if dark > _LIGHT_INK else INK)
    axes.set(xlim=(-0.5, len(across) - 0.5), ylim=(-0.5, len(down) - 0.5))
    axes.set_xticks(range(len(across)), [str(c.factor) for c in across])
    axes.set_yticks(range(len(down)), [str(row) for row in down])
    axes.grid(visible=False)


def _schemes(axes: Any, one: Blocks) -> None:
    """Below the factors how the copies lie, once for the columns that have it in common."""
    at = 0
    for scheme, same in groupby(one.across, key=lambda c: c.scheme):
        count = len(list(same))
        axes.text(at + (count - 1) / 2, -0.16, scheme, transform=axes.get_xaxis_transform(), ha="center", va="top",
                  fontsize=6.5, color=INK)  # fmt: skip
        if at:
            axes.axvline(at - 0.5, color=INK, linewidth=0.8)
        at += count
