"""Timing: how often to run, what to report, and when two versions differ.

    screen     up to 5 runs of one version, fewer if it is hopeless                     every configuration
    finals     rounds; in each round every finalist runs once, in shuffled order, until  the best, default, hand-written
               every verdict is decided; what is surely slower leaves early
    speedup    median(a) / median(b), bootstrap 95 % interval over the paired rounds    the verdict

A sampler is a callable that runs its version once and returns microseconds. All times are in microseconds, limits in
seconds.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median_low
from typing import Literal

import numpy as np

from looptune.core.si_units import plain_number

LOOKS = 200
"""Draws for an interval that says only whether to go on: a fifth of what is reported."""

DRAWN = 8192
"""Runs that are drawn at a time: they fit into a core's first cache."""

FAR = 10.0
"""So many times as slow as the fastest version, the default and hand-written kernels are not run for its sake."""

FEWEST = 5
"""Rounds of the finals, however long they take."""

FEW = 10
"""Rounds that suffice for a version more than FAR times as slow: their verdict is certain."""

MARGIN = 0.01
"""Ratios within this margin of 1 are the same."""

Sampler = Callable[[], float]
Verdict = Literal["FAST", "SLOW", "SAME", "AMBIGUOUS", "disturbed"]


@dataclass(frozen=True, slots=True)
class Summary:
    """The median and quartiles (linear interpolation) of ``n`` runs."""

    median_us: float
    q1_us: float
    q3_us: float
    n: int

    def __str__(self) -> str:
        quartiles = f"{plain_number(self.q1_us)}, {plain_number(self.q3_us)}"
        return f"{plain_number(self.median_us)} us [{quartiles}] n={self.n}"


@dataclass(frozen=True, slots=True)
class Speedup:
    """The ``ratio`` of two medians with its 95 % interval, and the verdict.

    FAST, SLOW: the whole interval is beyond the margin around 1; SAME: it is inside; AMBIGUOUS: it crosses the margin.
    The interval has no upper end where the base was stopped before its end (``at_least``). "disturbed" is no verdict:
    the machine was not the same for both.
    """

    ratio: float
    low: float
    high: float
    verdict: Verdict

    @property
    def is_least(self) -> bool:
        return math.isinf(self.high)

    def __str__(self) -> str:
        if self.verdict == "disturbed":
            return self.verdict
        return f"{'at least ' if self.is_least else ''}{ratio_text(self.ratio)} {self.verdict}"


def ratio_text(ratio: float) -> str:
    """Return a speed-up as text; one far below 1 as a fraction, and never with an exponent.

    >>> ratio_text(1.534), ratio_text(0.52), ratio_text(0.0000866), ratio_text(18345.6)
    ('1.53x', '0.52x', '1/11,547x', '18,346x')
    """
    return f"{times_text(ratio)}x" if ratio >= 0.1 else f"1/{1 / ratio:,.0f}x"


def times_text(factor: float) -> str:
    """Return a factor with three significant digits, all digits of it before the point.

    >>> times_text(0.523), times_text(12.345), times_text(999.7), times_text(1834.5)
    ('0.523', '12.3', '1,000', '1,834')
    """
    return f"{factor:,.0f}" if factor >= 999.5 else f"{factor:.3g}"


def without_verdict(speedup: Speedup | None) -> Speedup | None:
    """Return the speed-up of a measurement that was disturbed, which allows no verdict."""
    return None if speedup is None else replace(speedup, verdict="disturbed")


def at_least(stopped_us: float, us: float) -> Speedup | None:
    """Return the speedup over a run that was stopped after ``stopped_us``, or None if that does not exceed ``us``.

    >>> str(at_least(6e7, 2e4))
    'at least 3,000x FAST'
    """
    ratio = stopped_us / us
    return Speedup(ratio, ratio, math.inf, "FAST") if ratio > 1 else None


def screen(sample: Sampler, best_us: float | None) -> tuple[float, ...]:
    """Return the times of five runs in microseconds; of fewer if their (lower) median exceeds twice ``best_us``.

    One slow run alone rejects no version, since something may have delayed it, unless it takes more than twenty times
    as long as the best. Two runs that took 50 ms together are enough: the longer a run, the less a delay changes it.
    """
    times: list[float] = []
    while len(times) < 5:
        times.append(sample())
        if len(times) > 1 and sum(times) > 5e4:
            break
        factor = 2 if len(times) > 1 else 20
        if best_us is not None and median_low(times) > factor * best_us:
            break
    return tuple(times)


def finals(
    samplers: Mapping[str, Sampler],
    seed: int,
    default: str | None = None,
    leaving: Collection[str] = (),
    *,
    rounds: int = 30,
    seconds: float = 0.5,
    spread: float = 0.01,
    limit_s: float = 15.0,
    patience_s: float = 30.0,
    fewest: int = FEWEST,
    most: int = 10_000,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, tuple[float, ...]]:
    """Time all versions in rounds, and return their paired times in microseconds.

    Run number r of every version was made in round r, in an order shuffled anew each round. There are at least
    ``rounds`` rounds, and ``seconds`` for each version on average, with all that precedes a run (so that a slow version
    is not run thousands of times for the sake of a fast one), until for each the spread from minimum to third quartile
    is below ``spread``, or every verdict beside the fastest, and beside ``default``, is decided; after ``limit_s`` the
    rounds alone suffice. Runs so slow that these take longer stop after ``fewest`` rounds: past ``limit_s`` if the
    above holds, past ``patience_s`` in any case. Very short ones stop after ``most``: no interval needs more.

    Those of ``leaving`` that are SLOW beside the fastest of them are not run again: they have the first rounds only. So
    do others more than FAR times as slow, after FEW rounds and ``seconds`` of their own.
    """
    order = sorted(samplers)
    times: dict[str, list[float]] = {name: [] for name in order}
    spent = dict.fromkeys(order, 0.0)
    shuffler = random.Random(seed)
    start = clock()
    look = rounds
    while order:
        shuffler.shuffle(order)
        for name in order:
            before = clock()
            times[name].append(samplers[name]())
            spent[name] += clock() - before
        elapsed = clock() - start
        done = len(times[order[0]])
        late = elapsed >= limit_s
        ample = {name for name in order if name not in leaving and done >= FEW and spent[name] >= seconds}
        if far := ample and _far(times, ample, leaving):
            order = [name for name in order if name not in far]
        if done < fewest or (done < look and not late):
            continue
        if done >= most or elapsed >= patience_s or (late and done >= rounds):
            break
        # Looking costs time in proportion to the rounds so far, hence ever more seldom.
        look = done + 1 + done // 10
        slow = _slow({name: times[name] for name in order if name in leaving}, seed)
        order = [name for name in order if name not in slow]
        running = {name: times[name] for name in order}
        enough = late or elapsed >= seconds * len(running)
        if enough and (all(_spread(t) < spread for t in running.values()) or _decided(running, default, seed)):
            break
    return {name: tuple(times[name]) for name in samplers}


def _far(times: Mapping[str, Sequence[float]], names: Collection[str], leaving: Collection[str]) -> set[str]:
    """Those of ``names`` that no further round brings near the fastest of ``leaving``."""
    fastest = min((float(np.median(times[name])) for name in leaving), default=math.inf)
    return {name for name in names if float(np.median(times[name])) > FAR * fastest}


def _slow(times: Mapping[str, Sequence[float]], seed: int) -> set[str]:
    """Those that are surely slower than the fastest."""
    fastest = min(times, key=lambda name: float(np.median(times[name])), default="")
    others = times.keys() - {fastest}
    return {n for n in others if speedup(times[n], times[fastest], seed, resamples=LOOKS).verdict == "FAST"}


def _decided(times: Mapping[str, Sequence[float]], default: str | None, seed: int) -> bool:
    """Whether none is AMBIGUOUS beside the fastest, or beside ``default`` where that is one of them."""
    # The nearest first: where something is not decided it is most likely that.
    fastest, *others = sorted(times, key=lambda name: float(np.median(times[name])))
    pairs = [(name, fastest) for name in others]
    if default is not None and default in times:
        pairs += [(default, name) for name in (fastest, *others) if name != default]
    return all(speedup(times[a], times[b], seed, resamples=LOOKS).verdict != "AMBIGUOUS" for a, b in pairs)


def summary(times_us: Sequence[float]) -> Summary:
    """Return the median, the quartiles and the number of the times.

    >>> str(summary([4.0, 1.0, 2.0, 3.0, 5.0]))
    '3 us [2, 4] n=5'
    """
    assert times_us, "a summary needs at least one run"
    q1, middle, q3 = np.percentile(times_us, (25, 50, 75))
    return Summary(float(middle), float(q1), float(q3), len(times_us))


def speedup(
    base_us: Sequence[float], other_us: Sequence[float], seed: int, *, margin: float = MARGIN, resamples: int = 1000
) -> Speedup:
    """Return how many times faster ``other`` is than ``base``; run r of both was made in the same round.

    The interval is a bootstrap: rounds are drawn with replacement, the same ones for both, so that a drift common to
    both cancels.
    """
    assert len(base_us) == len(other_us) > 0, "the runs are paired by round"
    base, other = np.asarray(base_us, dtype=np.float64), np.asarray(other_us, dtype=np.float64)
    return _speedup(base, other, list(_ratios(base, other, seed, resamples)), margin)


def unpaired_speedup(base_us: Sequence[float], other_us: Sequence[float], seed: int) -> Speedup:
    """Return the speedup of runs that were not made in common rounds: each side is resampled separately."""
    base, other = np.asarray(base_us, dtype=np.float64), np.asarray(other_us, dtype=np.float64)
    assert min(len(base), len(other)) > 0, "there are runs of both"
    rng = np.random.default_rng(seed)

    def drawn(runs: np.ndarray) -> float:
        return float(np.median(rng.choice(runs, len(runs))))

    return _speedup(base, other, [drawn(base) / drawn(other) for _ in range(1000)], MARGIN)


def _speedup(base: np.ndarray, other: np.ndarray, ratios: Sequence[float], margin: float) -> Speedup:
    """Of the medians, with the interval that 95 % of the drawn ``ratios`` lie in."""
    low, high = map(float, np.percentile(ratios, (2.5, 97.5)))
    return Speedup(float(np.median(base) / np.median(other)), low, high, verdict(low, high, margin))


def paired_speedup(base_us: Sequence[float], other_us: Sequence[float], seed: int) -> Speedup | None:
    """Return the speedup over the rounds that both ran, or None if there are none."""
    rounds = min(len(base_us), len(other_us))
    return speedup(base_us[:rounds], other_us[:rounds], seed) if rounds else None


def _ratios(base: np.ndarray, other: np.ndarray, seed: int, count: int) -> Iterable[float]:
    """Of as many draws; of short runs many draws at a time."""
    rng, n = np.random.default_rng(seed), len(base)
    at_once = max(1, DRAWN // n)
    for done in range(0, count, at_once):
        rounds = rng.integers(n, size=(min(at_once, count - done), n))
        yield from np.median(base[rounds], axis=1) / np.median(other[rounds], axis=1)


def verdict(low: float, high: float, margin: float) -> Verdict:
    """Return the verdict on a ratio that lies between ``low`` and ``high``."""
    if low > 1 + margin:
        return "FAST"
    if high < 1 - margin:
        return "SLOW"
    if low >= 1 - margin and high <= 1 + margin:
        return "SAME"
    return "AMBIGUOUS"


def _spread(times: Sequence[float]) -> float:
    least = min(times)
    return (float(np.percentile(times, 75)) - least) / least if least > 0 else 0.0
