"""What a thread computes of two jammed loops: the best time with each block of iterations, over the best of all.

    loop i: unroll 4, jam                        row 4
    loop j: unroll 8, split, vector 4, jam       column 8 of `split, vector 4`          cell = min { time } / best time

Of the loops that are unrolled and jammed together, the two with the most such cells; loops that go by their numbers
have to follow each other, as one directly in the other does. After Jiang and Snir, "Automatic Tuning Matrix
Multiplication Performance on Graphics Hardware", PACT 2005, who asked the same of their blocks, `mrt`, and packings,
`mc`.

The figure of register blocks: a panel for each kernel, a cell for each block, dark where it is near the best.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from math import log
from typing import TYPE_CHECKING, Any

from looptune.report.figures import style
from looptune.report.figures.style import FAINT, INK

if TYPE_CHECKING:
    from looptune.tune.results.studies import KernelStudy

_NUMBER = re.compile(r"loop (\d+)(?:\.\d+)?")
_UNROLL = re.compile(r"unroll\s+(\d+)\s*((?:,\s*\w+(?:\s+\d+)?\s*)*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Column:
    """A factor of the second loop, with the order of its copies: ``contiguous``, ``split``, ``split, vector 4``."""

    scheme: str
    factor: int


@dataclass(frozen=True, slots=True)
class Blocks:
    """The best times of the register blocks of a kernel.

    ``rows`` and ``columns`` are the places of the two loops; ``cells`` maps a factor of the first and a column to the
    ratio of the time to the best.
    """

    kernel: str
    rows: str
    columns: str
    cells: Mapping[tuple[int, Column], float]

    @property
    def column_names(self) -> list[Column]:
        return sorted({column for _, column in self.cells}, key=lambda c: (c.scheme, c.factor))

    @property
    def row_names(self) -> list[int]:
        return sorted({row for row, _ in self.cells})


def blocks(study: KernelStudy) -> Blocks | None:
    """Return the times by register block, or None if no two loops are jammed together in several ways."""
    times = study.screened()
    best_us = min(times.values(), default=1.0)
    found: dict[tuple[str, str], dict[tuple[int, Column], float]] = {}
    for text, us in times.items():
        for (rows, here), (columns, there) in combinations(jammed_loops(text).items(), 2):
            if _may_nest(rows, columns):
                cells, cell = found.setdefault((rows, columns), {}), (here.factor, there)
                cells[cell] = min(us / best_us, cells.get(cell, us / best_us))
    made = [Blocks(study.kernel, rows, columns, cells) for (rows, columns), cells in found.items()]
    both = [b for b in made if len(b.row_names) > 1 and len(b.column_names) > 1]
    return max(both, key=lambda b: len(b.cells), default=None)


def _may_nest(outer: str, inner: str) -> bool:
    """Tell whether the loops may be nested in this order, by their names.

    >>> _may_nest("loop i", "loop j"), _may_nest("loop 1", "loop 4"), _may_nest("loop 7.2", "loop 8")
    (True, False, True)
    """
    numbers = [_NUMBER.fullmatch(place) for place in (outer, inner)]
    known = [int(match[1]) for match in numbers if match is not None]
    return len(known) < 2 or known[1] == known[0] + 1


def jammed_loops(text: str) -> dict[str, Column]:
    """Return how each loop is unrolled whose copies are jammed, by its place.

    >>> jammed_loops("loop i: unroll 4, jam\\nloop j: unroll 8, split, vector 4, jam\\nloop k: unroll 2")
    {'loop i': Column(scheme='contiguous', factor=4), 'loop j': Column(scheme='split, vector 4', factor=8)}
    """
    found: dict[str, Column] = {}
    for line in text.splitlines():
        place, _, what = (part.strip() for part in line.partition(":"))
        match = _UNROLL.fullmatch(what)
        words = [] if match is None else [w.strip().lower() for w in match[2].split(",")]
        if match is not None and "jam" in words:
            lie = ["split" if "split" in words else "contiguous", *(w for w in words if w.startswith("vector "))]
            found[place] = Column(", ".join(lie), int(match[1]))
    return found


_WORST = 4.0
"""From this ratio on cells are white."""
_SHADES = ("#ffffff", "#56b4e9", "#0072b2")
_LIGHT_INK = 0.55
"""Cells darker than this share have white numbers."""
_WHITE, _BLACK = "#fdfdfd", "#15181c"
"""The colours of numbers in cells that have a colour, which stay as they are on a dark page."""


def register_blocks(found: Sequence[Blocks]) -> Any:
    """Return a figure with a panel for each pair of jammed loops."""
    shades = style.shades(_SHADES)
    widest, tallest = max(len(b.column_names) for b in found), max(len(b.row_names) for b in found)
    inches = (max(3.4, 0.42 * widest + 0.8), 0.3 * tallest + 1.1)
    figure, panels = style.panels(len(found), max(1, int(11 / inches[0])), inches=inches)
    for axes, one in zip(panels, found, strict=True):
        _cells(axes, one, shades)
        _schemes(axes, one)
        style.set_title(axes, one.kernel, f"iterations of {one.rows} by iterations of {one.columns}")
    style.label_axes(figure, "iterations a thread runs side by side, by how they lie", "")
    return figure


def _cells(axes: Any, one: Blocks, shades: Any) -> None:
    across, down = one.column_names, one.row_names
    for (row, column), ratio in one.cells.items():
        x, y = across.index(column), down.index(row)
        dark = max(0.0, 1 - log(ratio) / log(_WORST))
        axes.bar(x, 0.92, 0.96, bottom=y - 0.46, color=shades(dark), edgecolor=FAINT, linewidth=0.3)
        text = f"{ratio:.2f}" if ratio < 9.95 else f"{ratio:.0f}"
        ink = _WHITE if dark > _LIGHT_INK else _BLACK if dark else INK
        axes.text(x, y, text, ha="center", va="center", fontsize=7.5, color=ink)
    axes.set(xlim=(-0.5, len(across) - 0.5), ylim=(-0.5, len(down) - 0.5))
    axes.set_xticks(range(len(across)), [str(c.factor) for c in across])
    axes.set_yticks(range(len(down)), [str(row) for row in down])
    axes.grid(visible=False)


def _schemes(axes: Any, one: Blocks) -> None:
    """Label, below the factors, how the copies lie, once for neighbouring columns that share it."""
    at = 0
    for scheme, same in groupby(one.column_names, key=lambda c: c.scheme):
        count = len(list(same))
        axes.text(at + (count - 1) / 2, -0.16, scheme, transform=axes.get_xaxis_transform(), ha="center", va="top",
                  fontsize=6.5, color=INK)  # fmt: skip
        if at:
            axes.axvline(at - 0.5, color=INK, linewidth=0.8)
        at += count
