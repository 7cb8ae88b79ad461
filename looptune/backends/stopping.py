"""A plan run in batches of launches, so that it can be given up between two of them.

    1, 2, 4, … launches ──▶ as many as take an eighth of the limit, again and again ──▶ all made, or the limit reached

After each batch the device is waited for, so there are few of them.
"""

from __future__ import annotations

from collections.abc import Callable

from looptune.backends.base import Ran

LOOKS = 8
"""So often it is looked at, about, until the limit is reached."""


def stopped(batch: Callable[[int], tuple[int, float]], limit_us: float, launches: int) -> Ran:
    """``batch(most)`` makes at most so many launches: how many it made, and the microseconds they took, at least."""
    done, us, size = 0, 0.0, 1
    while done < launches and us <= limit_us:
        made, took_us = batch(size)
        done, us = done + made, us + took_us
        assert made == min(size, launches - done + made), "a plan makes the launches that were counted"
        each_us = us / done
        size = min(2 * size, max(1, int(limit_us / LOOKS / each_us)) if each_us > 0 else 2 * size)
    return Ran(us, done, launches)
