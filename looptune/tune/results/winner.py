"""Which version won, by the times of the finals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from looptune.runtime.timing import speedup, summary


def winner(times: Mapping[str, tuple[float, ...]], candidates: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return the best configuration, the plainest of those that are SAME as the fastest, and the others of these.

    Versions that left the finals early were slower.
    """
    rounds = max(len(times[text]) for text in candidates)
    candidates = [text for text in candidates if len(times[text]) == rounds]
    fastest = min(candidates, key=lambda text: summary(times[text]).median_us)
    same = [t for t in candidates if t == fastest or _alike(times[t], times[fastest])]
    best = simplest(same)
    return best, tuple(t for t in same if t != best)


def simplest(texts: Iterable[str]) -> str:
    """Return the one with the fewest directives, then the shortest."""
    return min(texts, key=lambda text: (len(text.splitlines()), len(text), text))


@lru_cache(1024)
def _alike(some_us: tuple[float, ...], other_us: tuple[float, ...]) -> bool:
    """Asked several times of the same finals, and a thousand draws each."""
    return speedup(some_us, other_us, 0).verdict == "SAME"
