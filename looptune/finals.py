"""The finals: the best few versions, the default and the hand-written kernels, timed in turn on the same arrays.

What they took is kept in the database under the role "final", so that a command repeated after everything was measured
answers at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from looptune.errors import TargetError
from looptune.places import Place
from looptune.runtime.outcome import Timed, WrongResult
from looptune.runtime.timing import speedup, summary
from looptune.targets import Model
from looptune.tune.evaluate import Finals, KernelLab, Plans, finalist, plans_of
from looptune.tune.serving import Raised, Returned
from looptune.tune.space import Configuration
from looptune.tune.store import Role, Row, Store
from looptune.tune.workers import Reply

FINALISTS, NEAR, MOST = 5, 1.10, 12
"""At least this many versions, all within this ratio of the best, at most so many."""
LIMIT_S = 600.0
KEPT = 2000
"""Rounds that are kept, and compared: enough for any interval, and rows stay small."""

Times = Mapping[str, tuple[float, ...]]
"""Microseconds of each round, by directive text, "hand-written" or "library"."""


def chosen(timed: Sequence[Row]) -> tuple[str, ...]:
    """The directives of the fastest few, and of every one that is as fast within the noise of screening."""
    medians = [row.median_us for row in timed if row.median_us is not None]
    near = sum(m <= NEAR * medians[0] for m in medians) if medians else 0
    return tuple(row.directives for row in timed[: min(MOST, max(FINALISTS, near))])


def handwritten(file: Path) -> Path | None:
    """``handwritten/<name>.py`` beside the C file, where there is one."""
    path = file.parent.resolve() / "handwritten" / f"{file.stem.replace('-', '_')}.py"
    return path if path.exists() else None


def run(
    lab: KernelLab,
    store: Store,
    sweep: str,
    texts: Sequence[str],
    default: str,
    by_hand: Path | None,
    seed: int,
    fresh: bool,
    place: Place,
    model: Model,
) -> Finals:
    """Paired times of the versions ``texts`` and of the hand-written kernels; the database's, where they are there.

    ``default``: which of the versions all are compared with.
    """
    rows = {text: _row(lab, text, by_hand, sweep) for text in (*texts, "hand-written", "library")}
    held = None if fresh else _held(store, rows, texts, by_hand)
    if held is not None and not _impossible(lab, held):
        return held
    plans: dict[str, Plans] = {}
    # They were verified at odd sizes when they were screened.
    job = replace(lab.job, odd=None)
    for text in texts:
        plans[text] = plans_of(job, lab.scheduled(Configuration(tuple(text.splitlines()))).codelet, text)
    found = _measured(place.alone(model, partial(finalist, job), LIMIT_S, dict(plans), by_hand, seed, default))
    kept = {name: timed(us) for name, us in found.times_us.items()}
    for name, outcome in kept.items():
        store.record(rows[name], outcome)
    for name, why in found.wrong.items():
        store.record(rows[name], WrongResult(why))
    return Finals({name: outcome.times_us for name, outcome in kept.items()}, found.wrong)


def _row(lab: KernelLab, text: str, by_hand: Path | None, sweep: str) -> Row:
    """The key of a hand-written kernel's times holds its source, so that an edited one is timed again."""
    role: Role = "final"
    if text not in ("hand-written", "library"):
        return Row(lab.context, text, role, sweep)
    source = hashlib.sha256(by_hand.read_bytes()).hexdigest()[:16] if by_hand is not None else ""
    return Row(lab.context, f"{text} {source}", role, sweep)


def _held(store: Store, rows: Mapping[str, Row], texts: Sequence[str], by_hand: Path | None) -> Finals | None:
    """The earlier finals between exactly these."""
    found = store.lookup(row.key for row in rows.values())
    named = {name: found[row.key] for name, row in rows.items() if row.key in found}
    needed = {*texts} if by_hand is None else {*texts, "hand-written"}
    if not needed <= named.keys() or len({row.sweep for row in named.values()}) != 1:
        return None
    times = {name: row.outcome.times_us for name, row in named.items() if isinstance(row.outcome, Timed)}
    wrong = {name: row.outcome.message for name, row in named.items() if isinstance(row.outcome, WrongResult)}
    return Finals(times, wrong)


def _impossible(lab: KernelLab, found: Finals) -> bool:
    """Some of these times cannot be: they were kept before it was known what the device can do."""
    ceiling = lab.job.ceiling
    medians = (summary(us).median_us for us in found.times_us.values())
    return ceiling is not None and any(ceiling.broken_by(us) is not None for us in medians)


def _measured(reply: Reply) -> Finals:
    match reply:
        case Returned(found):
            assert isinstance(found, Finals), f"the finals gave {type(found).__name__}"
            return found
        case Raised(message, trace):
            raise AssertionError(f"the finals failed: {message}\n{trace}")
        case other:
            raise TargetError(f"the finals did not end: {other.message}")


def sequential(lab: KernelLab, store: Store, sweep: str, fresh: bool, place: Place, model: Model) -> tuple[float, ...]:
    """The times of the original loops on one core, kept like the others."""
    row = Row(lab.context, "", "sequential", sweep)
    held = None if fresh else store.lookup([row.key]).get(row.key)
    match held:
        case Row(outcome=Timed(times_us=times)):
            return times
    times = place.sequential_us(model, lab.job)
    store.record(row, timed(times))
    return times


def timed(times_us: Sequence[float]) -> Timed:
    stride = -(-len(times_us) // KEPT)
    kept = tuple(round(t, 3) for t in times_us[::stride])
    s = summary(kept)
    return Timed(kept, s.median_us, s.q1_us, s.q3_us, "in the finals")


def winner(times: Times, candidates: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The best configuration, the plainest of those that are SAME as the fastest; and the others of these.

    Of several that are alike the plainest has the fewest directives, then the shortest text.
    """
    fastest = min(candidates, key=lambda text: summary(times[text]).median_us)
    same = [t for t in candidates if t == fastest or speedup(times[t], times[fastest], 0).verdict == "SAME"]
    best = min(same, key=lambda text: (len(text.splitlines()), len(text), text))
    return best, tuple(t for t in same if t != best)
