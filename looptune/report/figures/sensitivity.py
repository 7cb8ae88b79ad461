"""The figure of how much each parameter matters: the best time with each value, over the best time of all.

    y(v) = min { time(c) : c has value v } / min { time(c) }          1 where the best version has this value

Figures 7 and 8 of Jiang and Snir, Automatic Tuning Matrix Multiplication Performance on Graphics Hardware, 2005. No
``unroll`` and no ``rfactor`` is a factor of 1; versions without another parameter say nothing of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from looptune.report.figures import style
from looptune.report.figures.style import CYCLE, INK, MARKERS
from looptune.tune.space.space import Configuration
from looptune.tune.space.table_view import coordinates

if TYPE_CHECKING:
    from looptune.tune.results.studies import KernelStudy

SHOWN = 6
"""Parameters of a kernel that are shown: those that matter most."""
_ONE = ("unroll(", "rfactor(")
_SIDES: Mapping[str, str] = MappingProxyType({"blocksize": "blocksize x", "blocksize.2": "blocksize y"})
_NAME = re.compile(r"([^(]*)(?:\((.*)\))?(.*)")


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The sensitivity of a kernel to its parameters.

    ``axes`` maps a parameter to its values and their ratios, the parameter that matters most first; ``left_out`` counts
    those that are not shown.
    """

    kernel: str
    axes: Mapping[str, Mapping[int, float]]
    left_out: int = 0


def sensitivity(study: KernelStudy) -> Sensitivity | None:
    """Return the best time with each value of each parameter, or None if no parameter has two values."""
    known = [(_numbers(text), us) for text, us in study.screened().items()]
    names = list(dict.fromkeys(name for numbers, _ in known for name in numbers))
    best_us = min((us for _, us in known), default=1.0)
    curves: dict[tuple[tuple[int, float], ...], list[str]] = {}
    for name in names:
        at: dict[int, float] = {}
        for numbers, us in known:
            value = numbers.get(name, 1 if name.startswith(_ONE) else None)
            if value is not None:
                at[value] = min(us, at.get(value, us))
        if len(at) > 1:
            curves.setdefault(tuple(sorted((v, us / best_us) for v, us in at.items())), []).append(name)
    ordered = sorted(curves.items(), key=lambda item: -max(y for _, y in item[0]))
    shown = {_joined(names): dict(curve) for curve, names in ordered[:SHOWN]}
    return Sensitivity(study.kernel, shown, len(ordered) - len(shown)) if shown else None


def _numbers(text: str) -> dict[str, int]:
    found, _ = coordinates(Configuration(tuple(text.splitlines())))
    return {_SIDES.get(name, name): value for name, value in found.items() if isinstance(value, int)}


def _joined(names: list[str]) -> str:
    """Join loops that always have the same value into one parameter.

    >>> _joined(["unroll(1)", "unroll(4)"]), _joined(["blocksize"]), _joined(["tile(k)", "rfactor(k)"])
    ('unroll(1, 4)', 'blocksize', 'tile(k), rfactor(k)')
    """
    inside: dict[tuple[str, str], list[str]] = {}
    for name in names:
        match = _NAME.fullmatch(name)
        assert match is not None, "any name has a word, a loop or neither"
        word, loop, more = match.groups()
        inside.setdefault((word, more), []).extend([loop] if loop else [])
    return ", ".join(
        f"{word}({', '.join(loops)}){more}" if loops else word + more for (word, more), loops in inside.items()
    )


def sensitivity_figure(found: Sequence[Sensitivity]) -> Any:
    """Return a figure of the best time for each value of a parameter, relative to the best of all."""
    figure, panels = style.panels(len(found), 3, inches=(4.1, 2.35))
    for axes, one in zip(panels, found, strict=True):
        for k, (name, curve) in enumerate(one.axes.items()):
            axes.plot(curve.keys(), curve.values(), color=CYCLE[k], marker=MARKERS[k], markersize=3.5, linewidth=1.1,
                      label=style.truncate([name], 22))  # fmt: skip
        values = {v for curve in one.axes.values() for v in curve}
        if min(values) > 0:
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
        style.ratio_axis(axes, [y for curve in one.axes.values() for y in curve.values()])
        shown = f"{len(one.axes)} of {len(one.axes) + one.left_out}" if one.left_out else None
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.02), fontsize=6.5, frameon=False, labelcolor=INK,
                    title=shown, title_fontsize=6.5, alignment="left", borderaxespad=0)  # fmt: skip
        style.set_title(axes, one.kernel)
    style.label_axes(figure, "value of the parameter", "best time with this value over the best of all")
    return figure
