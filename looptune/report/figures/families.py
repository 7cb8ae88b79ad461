"""Figures of versions that differ in one directive alone: the speed-up by factor and by loop order.

    rest                                  its line               a family: one rest, one place
    codelet: grid blocksize 32x4          (none)                 factor 1
                                          loop k: unroll 2       factor 2, contiguous, remainder
                                          loop k: unroll 4, split factor 4, split, remainder

The line stands for all loops that it says the same of (``condensed``). Figures 5 and 7 of Grauer-Gray et al.,
InPar 2012, are of two such families.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from looptune.report.best_table import condense
from looptune.report.figures import style
from looptune.report.figures.style import AMBER, BLUE, FAINT, GREEN, INK, ORANGE, PINK

if TYPE_CHECKING:
    from looptune.tune.results.studies import KernelStudy

_FACTOR = re.compile(r"(unroll|tile)\s+(?:[A-Za-z_]\w*\s*:\s*)?(\d+)\s*((?:,\s*[A-Za-z]+\s*)*)")
_ORDER = re.compile(r"permute\s+(.+)")
Cost = float | None
"""Microseconds; None of a version that was cut off, being far slower than the best."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve of speed-ups over the default by factor; factor 1 is the version without the directive."""

    scheme: str
    points: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Factors:
    """The curves of one kernel, one for each scheme; ``rest`` are the other directives of all these versions."""

    kernel: str
    place: str
    rest: tuple[str, ...]
    curves: tuple[Curve, ...]


@dataclass(frozen=True, slots=True)
class Orders:
    """The orders of one kernel's loops with their speed-ups over the default, None for an order that was cut off."""

    kernel: str
    place: str
    rest: tuple[str, ...]
    orders: tuple[tuple[str, float | None], ...]


def factors(study: KernelStudy) -> Factors | None:
    """Return the family with the most factors and schemes, the fastest of several.

    None if no scheme has three factors including 1.
    """
    found: list[tuple[tuple[float, ...], Factors]] = []
    times, base_us = _costs(study), study.default_us
    for (place, rest), lines in _families(times, _is_factor).items():
        known = [
            (scheme, factor, us) for line, us in lines.items() for scheme, factor in _factor(line) if us is not None
        ]
        plain = times.get(rest)
        if base_us is None:
            continue
        first = [] if plain is None else [(1, base_us / plain)]
        schemes = dict.fromkeys(scheme for scheme, _, _ in known)
        curves = [
            Curve(s, (*first, *sorted((f, base_us / us) for scheme, f, us in known if scheme == s))) for s in schemes
        ]
        if max((len(c.points) for c in curves), default=0) < 3:
            continue
        rank = (-len(known), len(rest), min(us for _, _, us in known))
        found.append((rank, Factors(study.kernel, place, rest, tuple(sorted(curves, key=lambda c: c.scheme)))))
    return min(found, key=lambda one: one[0], default=(None, None))[1]


def orders(study: KernelStudy) -> Orders | None:
    """Return the family without other directives, or else the one with the most orders.

    None if none has two that were timed.
    """
    found: list[tuple[tuple[float, ...], Orders]] = []
    times, base_us = _costs(study), study.default_us
    sources = {tuple(condense(row.directives).splitlines()): row.emitted for row in study.rows}
    for (place, rest), lines in _families(times, _ORDER.fullmatch).items():
        known = {" ".join(line.split()[1:]): us for line, us in lines.items()}
        if rest in times:
            same = [
                line for line in lines if sources[rest] and sources.get((f"{place}: {line}", *rest)) == sources[rest]
            ]
            known = {order: us for order, us in known.items() if f"permute {order}" not in same}
            known = {f"{' '.join(same[0].split()[1:])} (as written)" if same else "as written": times[rest]} | known
        timed = [us for us in known.values() if us is not None]
        if base_us is None or len(timed) < 2:
            continue
        shown = tuple((order, None if us is None else base_us / us) for order, us in known.items())
        found.append(((len(rest) > 0, -len(timed), min(timed)), Orders(study.kernel, place, rest, shown)))
    return min(found, key=lambda one: one[0], default=(None, None))[1]


_Rest = tuple[str, ...]


def _costs(study: KernelStudy) -> dict[_Rest, Cost]:
    """Return the cost of every version by its condensed lines."""
    times: dict[str, Cost] = dict(study.screened())
    times |= {row.directives: None for row in study.rows if row.status == "cut_off"}
    return {tuple(condense(text).splitlines()): us for text, us in times.items()}


def _families(times: Mapping[_Rest, Cost], wanted: Callable[[str], object]) -> dict[tuple[str, _Rest], dict[str, Cost]]:
    """Group versions by place and remaining lines; each group maps the wanted directive to its cost."""
    found: dict[tuple[str, _Rest], dict[str, Cost]] = {}
    for lines, us in times.items():
        for k, line in enumerate(lines):
            place, _, what = (part.strip() for part in line.partition(":"))
            if wanted(what):
                found.setdefault((place, (*lines[:k], *lines[k + 1 :])), {})[what] = us
    return found


def _is_factor(what: str) -> bool:
    return _FACTOR.fullmatch(what) is not None


def _factor(what: str) -> list[tuple[str, int]]:
    """Return the scheme in full and the factor.

    >>> _factor("unroll 4, split, jam"), _factor("tile k:8")
    ([('split, remainder, jam', 4)], [('tile', 8)])
    """
    match = _FACTOR.fullmatch(what)
    if match is None:
        return []
    words = [w.strip().lower() for w in match[3].split(",") if w.strip()]
    if match[1] == "tile":
        return [("tile", int(match[2]))]
    copies = "split" if "split" in words else "contiguous"
    rest = next((w for w in words if w in ("guarded", "noremainder")), "remainder")
    return [(", ".join([copies, rest, *(["jam"] if "jam" in words else [])]), int(match[2]))]


_PLACE_CHARACTERS = 62


def factor_figure(found: Sequence[Factors]) -> Any:
    """Draw the speed-up over the default against the factor; colour is the kind of copies, line style the remainder."""
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
        style.set_title(axes, family.kernel, _versions(family.place, family.rest))
    style.label_axes(figure, "unroll or tile factor (1: without the directive)", "speed-up over default")
    style.legend(figure, dict(sorted(handles.items())))
    return figure


def _versions(place: str, rest: Sequence[str]) -> str:
    return f"{place}" + (f"; all with {style.truncate(rest, _PLACE_CHARACTERS - len(place) - 10)}" if rest else "")


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


def order_figure(found: Sequence[Orders]) -> Any:
    """Draw one bar for each loop order, up or down from 1; a cross marks an order that was cut off."""
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
                style.value_at(axes, k, ratio, ratio)
        axes.axhline(1, color=INK, linewidth=0.8)
        axes.set_xlim(-0.6, len(family.orders) - 0.4)
        names = [order.replace(" (as", "\n(as").replace("as written", "as\nwritten") for order, _ in family.orders]
        axes.set_xticks(range(len(names)), [n.replace("(as\n", "(as ") for n in names], fontsize=6.5)
        style.set_title(axes, family.kernel, _versions(family.place, family.rest))
    style.label_axes(figure, "order of the loops, outermost first", "speed-up over default")
    style.legend(figure, handles)
    return figure


def _cross(axes: Any, k: float) -> Any:
    (cross,) = axes.plot(
        k, 0.04, "x", color=ORANGE, markersize=6, linestyle="none", transform=axes.get_xaxis_transform()
    )
    return cross
