"""The roofline figure: every kernel under the measured ceilings of its device.

    intensity = operations / bytes that have to be moved
    roof      = min(FMA peak, copy bandwidth * intensity)

Operations are those of the original loops, bytes count each element that is touched once; so a point may lie above the
slope where a cache held some of the arrays, and right of where a program that moves more would be.

The roofline figure: a panel for each type, its roof, and every kernel's default, hand-written and tuned rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import atan2, degrees, log10
from typing import TYPE_CHECKING, Any

from looptune.report.figures import style
from looptune.report.figures.style import BLUE, FAINT, GREEN, INK, ORANGE

if TYPE_CHECKING:
    from looptune.tune.results.studies import KernelStudy

ENTRIES = ("default", "hand-written", "tuned")


@dataclass(frozen=True, slots=True)
class Point:
    """The points of a kernel: ``intensity`` in operations per byte, and GFLOP/s of each entry."""

    kernel: str
    intensity: float
    gflops: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Roof:
    """The roof of a type and the points under it; ``copy`` is in GB/s, ``fma`` in GFLOP/s, None if it is not known."""

    dtype: str
    copy: float
    fma: float | None
    points: tuple[Point, ...]


def roofs(studies: Sequence[KernelStudy]) -> list[Roof]:
    """Return one roof for each type, with the highest peaks that a sweep measured.

    Kernels without a ceiling are left out.
    """
    found: dict[str, list[KernelStudy]] = {}
    for s in studies:
        if s.result.ceiling is not None and s.result.ceiling.work.bytes and s.result.flops:
            found.setdefault(s.result.dtype, []).append(s)
    return [_roof(dtype, same) for dtype, same in sorted(found.items())]


def _roof(dtype: str, studies: Sequence[KernelStudy]) -> Roof:
    peaks = [s.result.ceiling.peaks for s in studies if s.result.ceiling is not None]
    points = tuple(sorted(map(_point, studies), key=lambda p: p.intensity))
    fma = [rate.best for p in peaks if (rate := p.fma(dtype)) is not None]
    return Roof(dtype, max(p.copy.best for p in peaks), max(fma, default=None), points)


def _point(study: KernelStudy) -> Point:
    result = study.result
    assert result.ceiling is not None, "only what has a ceiling is under a roof"
    assert result.flops is not None, "only what has operations is under a roof"
    entries = [e for e in result.entries if e.name in ENTRIES]
    rates = {e.name: rate for e in entries if (rate := result.gflops(e)) is not None}
    return Point(study.kernel, result.flops / result.ceiling.work.bytes, rates)


_LOOKS = (("default", BLUE, "o"), ("hand-written", ORANGE, "s"), ("tuned", GREEN, "^"))
_LABEL_SHARE = 0.034
"""Of a panel's width, between two names."""
_POINT_SHARE = 0.014
"""And between two kernels, whose points would hide each other."""


def rooflines(roofs: Sequence[Roof]) -> Any:
    """Draw the roofs on logarithmic axes; names stand above the panel, each with a line down to its kernel."""
    figure, panels = style.panels(len(roofs), 1, inches=(7.6, 4.3))
    handles: dict[str, Any] = {}
    for axes, roof in zip(panels, roofs, strict=True):
        flat = () if roof.fma is None else (roof.fma,)
        low, high = _range([*(p.intensity for p in roof.points), *(peak / roof.copy for peak in flat)], 2.0)
        rates = [rate for p in roof.points for rate in p.gflops.values()]
        axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=_range([*rates, *flat], 1.6))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:,.12g}")
        _one_roof(axes, roof)
        at = _places(axes, roof)
        handles |= _points(axes, roof, at)
        _label(axes, roof, at)
        axes.grid(axis="both", color=FAINT, alpha=0.25, linewidth=0.6)
    style.label_axes(figure, "operations a byte that has to be moved [FLOP/B]", "GFLOP/s")
    style.legend(figure, handles)
    return figure


def _one_roof(axes: Any, roof: Roof) -> None:
    """Draw the two lines of a roofline and their labels; only the slope if no FMA peak is known."""
    (low, high), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    flat = high * roof.copy if roof.fma is None else roof.fma
    ridge, at = min(high, flat / roof.copy), max(low, bottom / roof.copy)
    axes.plot([low, ridge, high], [low * roof.copy, flat, flat], color=INK, linewidth=1.4, zorder=2)
    said = {"fontsize": 7, "color": INK, "va": "bottom"}
    if roof.fma is not None:
        peak = f"FMA peak, {roof.dtype}: {roof.fma:,.0f} GFLOP/s  "
        axes.text(high, roof.fma * (top / bottom) ** 0.006, peak, ha="right", **said)
    axes.annotate(f"  copy: {roof.copy:,.0f} GB/s", (at, at * roof.copy), (6, 4), textcoords="offset points",
                  rotation=_slope(axes), rotation_mode="anchor", ha="left", **said)  # fmt: skip


def _range(values: Sequence[float], beyond: float) -> tuple[float, float]:
    return min(values) / beyond, max(values) * beyond


def _slope(axes: Any) -> float:
    """Return the angle, in degrees, at which a line of slope 1 rises on the page."""
    (x0, x1), (y0, y1) = axes.get_xlim(), axes.get_ylim()
    return degrees(atan2(3.3 / log10(y1 / y0), 6.9 / log10(x1 / x0)))


def _places(axes: Any, roof: Roof) -> list[float]:
    """Return the horizontal position of each kernel as a share of the panel.

    Kernels of equal intensity stand side by side.
    """
    low, high = axes.get_xlim()
    exact = {str(k): log10(p.intensity / low) / log10(high / low) for k, p in enumerate(roof.points)}
    placed = spread_labels(exact, _POINT_SHARE)
    return [placed[name] for name in exact]


def _points(axes: Any, roof: Roof, at: Sequence[float]) -> dict[str, Any]:
    low, high = axes.get_xlim()
    xs = [low * (high / low) ** share for share in at]
    top = axes.get_ylim()[1]
    for x, p in zip(xs, roof.points, strict=True):
        axes.plot([x] * len(p.gflops), list(p.gflops.values()), color=FAINT, linewidth=0.7, zorder=2)
        axes.plot([x, x], [max(p.gflops.values(), default=top), top], color=FAINT, linewidth=0.4, zorder=1)
    handles = {}
    for name, colour, marker in _LOOKS:
        found = [(x, p.gflops[name]) for x, p in zip(xs, roof.points, strict=True) if name in p.gflops]
        if found:
            (handles[name],) = axes.plot(
                *zip(*found, strict=True), marker, color=colour, markersize=5, linestyle="none", zorder=4,
                markeredgecolor="white", markeredgewidth=0.4,
            )  # fmt: skip
    return handles


def _label(axes: Any, roof: Roof, at: Sequence[float]) -> None:
    placed = spread_labels({str(k): share for k, share in enumerate(at)}, _LABEL_SHARE)
    for k, (share, p) in enumerate(zip(at, roof.points, strict=True)):
        axes.annotate(
            style.truncate([p.kernel], style.NAME), (share, 1), (placed[str(k)], 1.06), xycoords="axes fraction",
            rotation=90, textcoords="axes fraction", ha="center", va="bottom", fontsize=7, color=INK,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": FAINT, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0},
        )  # fmt: skip


def spread_labels(at: Mapping[str, float], least: float) -> dict[str, float]:
    """Return label positions near ``at``, in the same order, with at least ``least`` between neighbours.

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
