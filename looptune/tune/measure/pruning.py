"""Early stop: which versions are cut off as too slow, and what is then known of them.

    at reduced sizes     SCREEN times the best's time there           not run at the user's sizes
    in a host loop       CUT times the best's time up to that point   stopped between two launches
    in all               CUT times the best                           stopped between two launches, or run only once

A version that is cut off takes longer than was measured; how long is a guess, made from the times of the best.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from looptune.backends.base import PartialRun, Progress, TimeLimit
from looptune.lower.checkpoints import PARTS
from looptune.runtime.outcome import NOT_RUN, PREDICTED, CutOff, Fact

if TYPE_CHECKING:
    from looptune.tune.incumbent import Incumbent

CUT = 3.0
"""A version that takes this many times the best is not run to its end, or not again where it has only one launch."""
WORTH_US = 10_000.0
"""Below this nothing is cut off: looking costs as much, and of a short run the first may be a hiccup."""
MARK_US = 5_000.0
"""The same by a mark of a host loop, of which there is more to come."""
SCREEN = 15.0
"""So many times the best's time at reduced sizes are beyond doubt. It is five times CUT, because launches, empty
multiprocessors and what fits in a cache make versions differ there in another way (``benchmarks/screening.py``)."""
HOPELESS = 20.0
"""A version whose verifying run takes this many times the best, however short, is not run again either."""
PROMISING = 1.25
"""What is slower than this many times the best is no finalist, and it need not be shown that it is right elsewhere."""
PROMISING_AGAIN = 1.1
"""The same where finalists are compiled once more and verified at all sizes then, so that few are verified twice."""
HOPELESS_PREDICTED = 10.0
"""The same of the time that is predicted for a version, which is seldom three times too long or too short."""
WAITED_US = 1e5
"""A version that is predicted to take less than this is run all the same: it keeps no other one waiting."""
LEAST_NS = 1.0
"""One thread of a GPU takes longer than this for an assignment: it issues less than two instructions in that time."""
LONG_US = 1e6
"""A run this long is not tried twice: a hiccup changes little of it."""
ONCE_US = 3e5
"""A run this long is not repeated while screening, nor warmed up for."""


def is_hopeless(reduced_us: float, sizes: str, best: Incumbent) -> bool:
    """Return whether a version is so slow at ``sizes`` that a run at the user's sizes is not worth it."""
    if best.reduced_us is None or best.reduced_sizes != sizes:
        return False
    ratio = reduced_us / best.reduced_us
    return ratio > SCREEN and ratio * best.us > WORTH_US


def is_promising(us: float, best: Incumbent | None, again: bool = False) -> bool:
    """Tell whether the version may be among the finalists; without a best time, every version may.

    ``again``: finalists are verified once more.
    """
    return best is None or us <= (PROMISING_AGAIN if again else PROMISING) * best.us


def endless_outcome(assignments: int, best: Incumbent, launches: int) -> CutOff | None:
    """Return the outcome of a version in one thread that is hopeless by the number of its assignments, or None."""
    least_us = assignments * LEAST_NS / 1e3
    if least_us < HOPELESS * best.us or least_us < LONG_US:
        return None
    return CutOff(least_us, best.us, 0, launches, _verified(""), where=NOT_RUN)


def is_endless(reduced_us: float, growth: float, best: Incumbent) -> bool:
    """Return whether a version in one thread is so slow that a run at the user's sizes is not worth it.

    ``growth``: how many times as many operations the user's sizes take as the reduced ones; one thread takes about as
    many times as long.
    """
    expected_us = reduced_us * growth
    return expected_us > HOPELESS * best.us and expected_us > LONG_US


def predicted_outcome(predicted_us: float, best: Incumbent, best_predicted_us: float) -> CutOff | None:
    """Return the outcome of a version that is hopeless by its predicted time, or None.

    The prediction is divided by the factor by which that of the best version was too long.
    """
    expected_us = predicted_us * min(1.0, best.us / best_predicted_us)
    if expected_us < HOPELESS_PREDICTED * best.us or expected_us < WAITED_US:
        return None
    return CutOff(expected_us, best.us, 0, 0, _verified(""), where=PREDICTED)


def screened_out(reduced_us: float, sizes: str, best: Incumbent, launches: int, facts: tuple[Fact, ...]) -> CutOff:
    """Return the outcome of a version that was too slow at reduced sizes, relative to the best."""
    return CutOff(reduced_us, best.us, 0, launches, _verified(sizes), facts, best.reduced_us, f"at {sizes}")


def limit(best: Incumbent | None) -> TimeLimit:
    """Return the time limit of a version: infinite without a best time."""
    if best is None:
        return TimeLimit(math.inf)
    pace = best.pace
    marks = None if pace is None else Progress(pace.loop, tuple(max(CUT * us, MARK_US) for us in pace.us))
    return TimeLimit(limit_us(best.us), marks)


def limit_us(best_us: float) -> float:
    """Return the time limit in microseconds of a version, given the best time so far."""
    return max(CUT * best_us, WORTH_US)


def early_stop_outcome(ran: PartialRun, best: Incumbent, sizes: str, facts: tuple[Fact, ...]) -> CutOff:
    """Return the outcome of a run that ended before its last launch.

    ``sizes``: the sizes at which the version was verified, "" if it was not.
    """
    whole = CutOff(ran.us, best.us, ran.launched, ran.launches, _verified(sizes), facts)
    allowed, passed = limit(best), 0 if ran.pace is None else len(ran.pace.us)
    if ran.us > allowed.us or ran.pace is None or best.pace is None or allowed.pace is None:
        return whole
    mark = passed if passed < len(PARTS) and ran.us > allowed.pace.us[passed] else passed - 1
    part = "the end" if PARTS[mark] == 1 else f"1/{PARTS[mark]}"
    where = f"{'before' if mark == passed else 'at'} {part} of the host loop {ran.pace.loop.partition(':')[0]}"
    return replace(whole, best_at_cutoff_us=best.pace.us[mark], where=where)


def _verified(sizes: str) -> str:
    return f"only at {sizes}" if sizes else "not at the sizes timed"


def with_pace(ran: PartialRun | None, median_us: float) -> Progress | None:
    """Return the checkpoints of a complete run, none of them later than the total time of a replay without a wait."""
    if ran is None or ran.pace is None:
        return None
    return Progress(ran.pace.loop, tuple(min(us, median_us) for us in ran.pace.us))


def one_run_suffices(first_us: float, best_us: float | None) -> bool:
    """Tell whether the verifying run suffices as the time of a version.

    It is long, or so slow that precision does not matter.
    """
    if first_us > ONCE_US or best_us is None:
        return first_us > ONCE_US
    return first_us > HOPELESS * best_us or first_us > limit_us(best_us)
