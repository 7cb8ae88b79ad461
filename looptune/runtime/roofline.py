"""The roofline of a device, and whether a time is too short to be true.

    FLOP/s       at most the FMA peak of the type                                always
    memory       at least (bytes - last-level cache) / bandwidth                 where a run begins with cold caches

Both sides are bounds: the work is a lower bound for every version, the peaks are measured on the device. The capacity
of the cache is not counted, since what was written may still be in it when a run ends. A time that violates a bound is
a mistake of a version, of the clock or of a count, and never a result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from looptune.core.si_units import amount

LEAST_SPREAD = 0.05
"""A clock may be this much higher in a short run than while a peak is measured."""
FloatType = Literal["float32", "float64"]


@dataclass(frozen=True, slots=True)
class Rate:
    """The best of several runs, in GB/s or GFLOP/s, and the fraction by which the median is below it."""

    best: float
    spread: float

    @property
    def limit(self) -> float:
        """Return the rate above which a measurement is impossible."""
        return self.best * (1 + max(self.spread, LEAST_SPREAD))

    def with_runs_of(self, other: Rate) -> Rate:
        """Return the better best rate, and how far the better median is below it."""
        best, median = max(self.best, other.best), max(r.best * (1 - r.spread) for r in (self, other))
        return Rate(best, 1 - median / best)


RATES = ("copy", "read", "fma32", "fma64")
METHOD = 2
"""How rates are measured. The first has no FMA peak: of the loop that a GPU ran 8 instructions in 11 were FMAs."""


@dataclass(frozen=True, slots=True)
class Peaks:
    """The measured rates of a device.

    ``copy`` counts each byte read and each written, ``read`` those read, in GB/s. ``fma32`` and ``fma64`` count two
    operations each, in GFLOP/s; they are None if they were not measured, or by an earlier method.
    """

    copy: Rate
    read: Rate
    fma32: Rate | None
    fma64: Rate | None

    @property
    def rates(self) -> dict[str, Rate]:
        """Return the known rates by name."""
        every = zip(RATES, (self.copy, self.read, self.fma32, self.fma64), strict=True)
        return {name: rate for name, rate in every if rate is not None}

    def fma(self, dtype: str) -> Rate | None:
        return self.fma64 if dtype == "float64" else self.fma32

    def record(self) -> dict[str, Any]:
        rates = {name: {"best": round(r.best, 3), "spread": round(r.spread, 4)} for name, r in self.rates.items()}
        return {**rates, "method": METHOD if "fma32" in rates else METHOD - 1}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Self:
        """Return the rates of a stored record; raises KeyError, TypeError or ValueError if it is not one."""
        names = RATES if record.get("method") == METHOD else RATES[:2]
        copy, read, *fma = (Rate(float(record[name]["best"]), float(record[name]["spread"])) for name in names)
        return cls(copy, read, *(fma if fma else (None, None)))

    def best_of(self, other: Peaks) -> Peaks:
        """Return for each rate that both have the one with the higher limit: the machine may have been busy."""
        return self._joined(other, lambda mine, theirs: max(mine, theirs, key=lambda rate: rate.limit))

    def with_runs_of(self, other: Peaks) -> Peaks:
        """Return for each rate that both have the higher best and the higher median."""
        return self._joined(other, Rate.with_runs_of)

    def _joined(self, other: Peaks, join: Callable[[Rate, Rate], Rate]) -> Peaks:
        mine, theirs = self.rates, other.rates
        joined = {name: join(mine[name], theirs[name]) for name in mine if name in theirs}
        return Peaks(joined["copy"], joined["read"], joined.get("fma32"), joined.get("fma64"))


@dataclass(frozen=True, slots=True)
class MinimumWork:
    """The ``flops`` and ``bytes`` of one run, at least.

    ``dtype`` is the type of the operations: "float64" if all are in double, else "float32", which is faster.
    """

    flops: int
    bytes: int
    dtype: FloatType


@dataclass(frozen=True, slots=True)
class Roofline:
    """The bounds on the times of one codelet on one device.

    ``cache_bytes``: its last-level cache, 0 if unknown; ``cold``: no data of the arrays are in it when a run begins.
    """

    work: MinimumWork
    peaks: Peaks
    cache_bytes: int
    cold: bool

    def violated_by(self, time_us: float, *, matrix_rate: int = 1) -> str | None:
        """Return why no run can be as short as ``time_us``, with both rates, or None if one can.

        ``matrix_rate``: times as many operations are possible as with multiply-adds, because of tensor cores.
        """
        if time_us <= 0:
            return f"faster than the device: {time_us:g} us measured"
        gflops, peak = self.work.flops / time_us / 1e3, self.peaks.fma(self.work.dtype)
        if peak is not None and gflops > peak.limit * matrix_rate:
            shown, most = amount(1e9 * gflops, "FLOP/s"), amount(1e9 * peak.best, "FLOP/s")
            return _said(shown, f"the FMA peak in {self.work.dtype} is {most}", peak)
        if not self.cold or not self.cache_bytes:
            return None
        memory = max(self.peaks.copy, self.peaks.read, key=lambda r: r.limit)
        rate = (self.work.bytes - self.cache_bytes) / time_us / 1e3
        if rate > memory.limit:
            beside = f"besides the {self.cache_bytes / 1e6:.0f} MB that the cache holds"
            shown, most = amount(1e9 * rate, "B/s"), amount(1e9 * memory.best, "B/s")
            return _said(f"{shown} {beside}", f"the memory does {most}", memory)
        return None


MATRIX_RATE, MOST_MATRIX_RATE = 3, 16
"""Times the peak of multiply-adds that tensor cores do where it is not known how factors are rounded: as exactly as the
type asks for, and at most, see ``lower.warp_tiles``."""


def _said(rate: str, peak: str, measured: Rate) -> str:
    return (
        f"faster than the device: {rate}, but {peak} (spread {measured.spread:.1%}), so the measurement must be wrong"
    )
