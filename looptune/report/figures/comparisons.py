"""The figures themselves, one function each: data in, a matplotlib figure out. How they look is in ``style``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from looptune.report import suite_table
from looptune.report.figures import style
from looptune.report.figures.families import Curve, Factors, Orders
from looptune.report.figures.sensitivity import Sensitivity
from looptune.report.figures.style import AMBER, BLUE, CYCLE, FAINT, GREEN, INK, MARKERS, ORANGE, PINK
from looptune.tune.results.study import KernelStudy, alike, names_of

_PLACE_CHARACTERS = 62
NAME = 24
"""Characters of a name that are shown."""


def factors(found: Sequence[Factors]) -> Any:
    """Speed-up over the default against the factor; colour is how copies lie, the stroke what is left over."""
    figure, panels = style.panels(len(found))
    handles: dict[str, Any] = {}
    for axes, family in zip(panels, found, strict=True):
        for curve in family.curves:
            (handles[curve.scheme],) = axes.plot(*zip(*curve.points, strict=True), **_stroke(curve))
        values = sorted({x for c in family.curves for x, _ in c.points})
        if max(values) > 16:
            axes.set_xscale("log", base=2)
            values = [2**k for k in range(max(values).bit_length())]
        axes.set_xticks(values, [f"{x:g}" for x in values])
        axes.set_xticks([], minor=True)
        axes.axhline(1, color=FAINT, linewidth=0.8, zorder=1)
        style.ratio_axis(axes, [y for c in family.curves for _, y in c.points], one=False)
        style.titled(axes, family.kernel, _versions(family.place, family.rest))
    style.labelled(figure, "unroll or tile factor (1: without the directive)", "speed-up over default")
    style.legend(figure, dict(sorted(handles.items())))
    return figure


def _versions(place: str, rest: Sequence[str]) -> str:
    return f"{place}" + (f"; all with {style.wrapped(rest, _PLACE_CHARACTERS - len(place) - 10)}" if rest else "")


def _stroke(curve: Curve) -> dict[str, Any]:
    words = curve.scheme.replace(",", "").split()
    if words[0] == "tile":
        return {"color": GREEN, "marker": "^", "markersize": 3.5, "linewidth": 1.2, "label": curve.scheme}
    split, jam = "split" in words, "jam" in words
    colour = (PINK if jam else ORANGE) if split else (AMBER if jam else BLUE)
    line = "--" if "guarded" in words else ":" if "noremainder" in words else "-"
    return {
        "color": colour, "linestyle": line, "marker": "s" if jam else "o", "markersize": 3.2, "linewidth": 1.2,
        "markerfacecolor": "none" if "guarded" in words else colour,
    }  # fmt: skip


def orders(found: Sequence[Orders]) -> Any:
    """Bars from 1 up or down, one for each order of the loops; a cross stands for an order that was cut off."""
    figure, panels = style.panels(len(found))
    handles: dict[str, Any] = {}
    for axes, family in zip(panels, found, strict=True):
        known = [ratio for _, ratio in family.orders if ratio is not None]
        style.ratio_axis(axes, known, room=0.14)
        width = 0.13 * max(3, len(family.orders)) if len(family.orders) < 6 else 0.7
        for k, (order, ratio) in enumerate(family.orders):
            if ratio is None:
                handles["cut off, being far slower than the best"] = _cross(axes, k)
            else:
                axes.bar(k, ratio - 1, width, bottom=1, color=FAINT if "as written" in order else BLUE)
                axes.plot([k - width / 2, k + width / 2], [ratio, ratio], color=INK, linewidth=1)
                _value(axes, k, ratio)
        axes.axhline(1, color=INK, linewidth=0.8)
        axes.set_xlim(-0.6, len(family.orders) - 0.4)
        names = [order.replace(" (as", "\n(as").replace("as written", "as\nwritten") for order, _ in family.orders]
        axes.set_xticks(range(len(names)), [n.replace("(as\n", "(as ") for n in names], fontsize=6.5)
        style.titled(axes, family.kernel, _versions(family.place, family.rest))
    style.labelled(figure, "order of the loops, outermost first", "speed-up over default")
    style.legend(figure, handles)
    return figure


def _cross(axes: Any, k: float) -> Any:
    (cross,) = axes.plot(
        k, 0.04, "x", color=ORANGE, markersize=6, linestyle="none", transform=axes.get_xaxis_transform()
    )
    return cross


def _value(axes: Any, x: float, ratio: float) -> None:
    """Draw the number at the end of a bar that begins at 1."""
    value_at(axes, x, ratio, ratio)


def value_at(axes: Any, x: float, end: float, ratio: float) -> None:
    """Draw the number beyond ``end``, which is the end of the bar, or of what is drawn over it."""
    up = ratio >= 1
    text = f"{ratio:.0f}" if ratio >= 99.5 else f"{ratio:.3g}" if ratio >= 0.1 else f"{ratio:.2g}"
    axes.annotate(text, (x, end), (0, 2 if up else -2), textcoords="offset points", ha="center",
                  va="bottom" if up else "top", fontsize=6.5, color=INK)  # fmt: skip


def speedups(studies: Sequence[KernelStudy]) -> Any:
    """Every kernel's speed-up over its default, hand-written beside tuned, and the geometric means.

    A row for each device and type.
    """
    rows = alike(studies)
    widest = max(map(len, rows.values())) + 1
    figure, panels = style.panels(len(rows), 1, inches=(max(4.5, 0.62 * widest + 1), 3.0))
    handles: dict[str, Any] = {}
    for axes, (title, same) in zip(panels, rows.items(), strict=True):
        handles |= _bars(axes, same)
        style.titled(axes, title)
    style.labelled(figure, "", "speed-up over default")
    style.legend(figure, handles)
    return figure


def _bars(axes: Any, studies: Sequence[KernelStudy]) -> dict[str, Any]:
    results, handles = [s.result for s in studies], {}
    every: list[float] = []
    for name, colour, side in (("hand-written", ORANGE, -0.2), ("tuned", GREEN, 0.2)):
        ratios = [*(suite_table.ratio(r, "default", name) for r in results), suite_table.mean(results, "default", name)]
        shown = [(k + side, v) for k, v in enumerate(ratios) if v is not None]
        every += [v for _, v in shown]
        bars = axes.bar([k for k, _ in shown], [v - 1 for _, v in shown], 0.4, bottom=1, color=colour)
        handles[name] = bars
        for x, v in shown:
            _value(axes, x, v)
    style.ratio_axis(axes, every, room=0.1)
    axes.axhline(1, color=INK, linewidth=0.8)
    names = [*(style.wrapped([n], NAME) for n in names_of(studies)), "geometric\nmean"]
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right", rotation_mode="anchor")
    axes.set_xlim(-0.7, len(names) - 0.3)
    axes.axvline(len(names) - 1.5, color=FAINT, linewidth=0.6)
    return handles


def sensitivities(found: Sequence[Sensitivity]) -> Any:
    """Return the best time for each value of a parameter, divided by the best of all; one panel per parameter."""
    figure, panels = style.panels(len(found), 3, inches=(4.1, 2.35))
    for axes, one in zip(panels, found, strict=True):
        for k, (name, curve) in enumerate(one.axes.items()):
            axes.plot(curve.keys(), curve.values(), color=CYCLE[k], marker=MARKERS[k], markersize=3.5, linewidth=1.1,
                      label=style.wrapped([name], 22))  # fmt: skip
        values = {v for curve in one.axes.values() for v in curve}
        if min(values) > 0:
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
        style.ratio_axis(axes, [y for curve in one.axes.values() for y in curve.values()])
        shown = f"{len(one.axes)} of {len(one.axes) + one.left_out}" if one.left_out else None
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.02), fontsize=6.5, frameon=False, labelcolor=INK,
                    title=shown, title_fontsize=6.5, alignment="left", borderaxespad=0)  # fmt: skip
        style.titled(axes, one.kernel)
    style.labelled(figure, "value of the parameter", "best time with this value over the best of all")
    return figure


def spread_labels(at: Mapping[str, float], least: float) -> dict[str, float]:
    """Positions for labels as near to ``at`` as they can be with ``least`` between neighbours, in the same order.

    >>> spread_labels({"a": 0.5, "b": 0.5, "c": 0.9}, 0.2)
    {'a': 0.4, 'b': 0.6, 'c': 0.9}
    """
    groups: list[tuple[list[str], float]] = []
    for name, x in sorted(at.items(), key=lambda item: item[1]):
        members, centre = [name], x
        # Groups that would overlap are one, centred on the mean of where its labels belong.
        while groups and centre - least * (len(members) - 1) / 2 - least < _end(groups[-1], least) - 1e-9:
            before, _ = groups.pop()
            members = [*before, *members]
            centre = sum(at[m] for m in members) / len(members)
        groups.append((members, centre))
    return {
        name: round(centre + least * (k - (len(members) - 1) / 2), 9)
        for members, centre in groups
        for k, name in enumerate(members)
    }


def _end(group: tuple[list[str], float], least: float) -> float:
    members, centre = group
    return centre + least * (len(members) - 1) / 2
