"""Choose the winner among finalists: the fastest, or the one with the least energy or energy-delay product."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from looptune.runtime.objective import cost
from looptune.runtime.timing import speedup, summary

if TYPE_CHECKING:
    from looptune.core.settings import Objective
    from looptune.runtime.energy import Energy


def winner(times: Mapping[str, tuple[float, ...]], candidates: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return the fastest configuration, the plainest of those that are SAME as it, and the others of these.

    Versions that left the finals early were slower.
    """
    rounds = max(len(times[text]) for text in candidates)
    candidates = [text for text in candidates if len(times[text]) == rounds]
    fastest = min(candidates, key=lambda text: summary(times[text]).median_us)
    same = [t for t in candidates if t == fastest or _alike(times[t], times[fastest])]
    best = simplest(same)
    return best, tuple(t for t in same if t != best)


def winner_by(
    objective: Objective,
    times: Mapping[str, tuple[float, ...]],
    energy: Mapping[str, Energy],
    candidates: Sequence[str],
) -> tuple[str, tuple[str, ...]] | None:
    """Return the best configuration by the objective, and those that are as good as it; None if nothing decides.

    Of the versions whose energy, or EDP, is like the least one within what was measured, the time decides. A version
    whose energy is not known cannot win.
    """
    if objective == "time":
        return winner(times, candidates) if candidates else None
    found = {t: cost(objective, summary(times[t]).median_us, energy.get(t)) for t in candidates}
    known = {text: one for text, one in found.items() if one is not None}
    if not known:
        return None
    least = min(known.values(), key=lambda one: one.value)
    return winner(times, [text for text, one in known.items() if least.is_like(one)])


def simplest(texts: Iterable[str]) -> str:
    """Return the directives of the version with the fewest directives, and of several the shortest."""
    return min(texts, key=lambda text: (len(text.splitlines()), len(text), text))


# The verdict takes a thousand draws, and is asked for several times of the same finals.
@lru_cache(1024)
def _alike(some_us: tuple[float, ...], other_us: tuple[float, ...]) -> bool:
    return speedup(some_us, other_us, 0).verdict == "SAME"
