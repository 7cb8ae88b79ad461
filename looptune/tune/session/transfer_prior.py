"""The winners that a database has for a program at other sizes and on other devices: a search begins with them."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING

from looptune.core.errors import LooptuneError
from looptune.runtime.outcome import Timed, WrongResult
from looptune.schedule.directive_lines import canonical_text
from looptune.tune.space.space import Configuration, Space
from looptune.tune.store.searches import by_context

if TYPE_CHECKING:
    from looptune.tune.store.store import Context, Store

MOST = 4
"""Winners to begin with."""


def transfer_prior(store: Store, context: Context, space: Space, besides: str) -> tuple[Configuration, ...]:
    """Return the winners of other contexts with the same source and target, the nearest first.

    Near are those of the same device, and then those of similar sizes. Their words are words of the ``space``: what a
    user has to ask for, as ``assume`` and ``tf32x3``, is not taken from a search in which somebody did. ``besides``:
    directives that are evaluated anyway, as the default is.
    """
    offered = _words("\n".join(line.template.source for section in space.sections for line in section.lines))
    known = store.rows(kernel=context.kernel, source_hash=context.source_hash, target=context.target)
    found: dict[str, tuple[bool, float]] = {}
    for search in by_context(row for row in known if isinstance(row.outcome, Timed | WrongResult)):
        there = search.context
        best = None if there == context else search.best
        if best is None:
            continue
        try:
            text = canonical_text(best.directives, "database")
        except LooptuneError:  # of another version of looptune
            continue
        bodies = "\n".join(line.partition(": ")[2] for line in text.splitlines())
        rank = there.device != context.device, _distance(there.sizes, context.sizes)
        if text not in ("", besides) and _words(bodies) <= offered:
            found[text] = min(rank, found.get(text, rank))
    ordered = sorted(found, key=lambda text: (*found[text], text))
    return tuple(Configuration(tuple(text.splitlines())) for text in ordered[:MOST])


def _words(text: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Za-z_]\w*", text)}


def _distance(there: str, here: str) -> float:
    """Return how far sizes are from others, as the sum of the logarithms of their ratios."""
    one, other = json.loads(there), json.loads(here)
    shared = one.keys() & other.keys()
    return sum(abs(math.log(max(1, one[n]) / max(1, other[n]))) for n in shared)
