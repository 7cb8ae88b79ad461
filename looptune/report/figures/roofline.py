"""Every kernel under its device's roof.

    intensity = operations / bytes that have to be moved
    roof      = min(FMA peak, copy bandwidth * intensity)

Operations are those of the original loops, bytes count each element that is touched once; so a point may lie above the
slope where a cache held some of the arrays, and right of where a program that moves more would be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from looptune.tune.results.study import Study

ENTRIES = ("default", "hand-written", "tuned")


@dataclass(frozen=True, slots=True)
class Point:
    """``intensity`` in operations a byte; GFLOP/s by entry."""

    kernel: str
    intensity: float
    gflops: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Roof:
    """``copy`` in GB/s, ``fma`` in GFLOP/s (None: not known), and what lies under it."""

    dtype: str
    copy: float
    fma: float | None
    points: tuple[Point, ...]


def roofs(studies: Sequence[Study]) -> list[Roof]:
    """One for each type; the highest peaks that any sweep measured. Without the kernels that lack a ceiling."""
    found: dict[str, list[Study]] = {}
    for s in studies:
        if s.result.ceiling is not None and s.result.ceiling.work.bytes and s.result.flops:
            found.setdefault(s.result.dtype, []).append(s)
    return [_roof(dtype, same) for dtype, same in sorted(found.items())]


def _roof(dtype: str, studies: Sequence[Study]) -> Roof:
    peaks = [s.result.ceiling.peaks for s in studies if s.result.ceiling is not None]
    points = tuple(sorted(map(_point, studies), key=lambda p: p.intensity))
    fma = [rate.best for p in peaks if (rate := p.fma(dtype)) is not None]
    return Roof(dtype, max(p.copy.best for p in peaks), max(fma, default=None), points)


def _point(study: Study) -> Point:
    result = study.result
    assert result.ceiling is not None, "only what has a ceiling is under a roof"
    assert result.flops is not None, "only what has operations is under a roof"
    entries = [e for e in result.entries if e.name in ENTRIES]
    rates = {e.name: rate for e in entries if (rate := result.gflops(e)) is not None}
    return Point(study.kernel, result.flops / result.ceiling.work.bytes, rates)
