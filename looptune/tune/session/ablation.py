"""The gain of each directive of a winner: the winner is measured beside the winner without that directive.

    a; b; c  ─▶  b; c    a; c    a; b   ─▶ screened like a space's versions ─▶ timed in turn with the winner

Without one directive the others may be illegal or have no effect; the report then says so instead of a time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from looptune.runtime.outcome import Timed
from looptune.runtime.timing import paired_speedup, without_verdict
from looptune.tune import strategies
from looptune.tune.measure.evaluate import KernelBuilder
from looptune.tune.results.result import DirectiveGain
from looptune.tune.session import finals
from looptune.tune.session.budget import Budget
from looptune.tune.session.finals import KernelFinals
from looptune.tune.session.prepare import PreparedRun
from looptune.tune.session.sweep import Part, sweeps
from looptune.tune.space.space import Space, parse
from looptune.tune.store.store import Store, key

if TYPE_CHECKING:
    from looptune.tune.execution.executor import Executor
    from looptune.tune.execution.lab import Progress


@dataclass(frozen=True, slots=True)
class Winner:
    """The winner of one kernel on one model of device.

    ``match`` are the finals that it won; ``command`` measures one version again.
    """

    prepared: PreparedRun
    match: KernelFinals
    directives: str
    command: str

    @property
    def without(self) -> dict[str, str]:
        """Return for each line of the directives the text of the others, as a space writes it."""
        lines = self.directives.splitlines()
        return {line: _canonical("\n".join(x for x in lines if x is not line)) for line in lines}


def run(
    winners: Sequence[Winner], store: Store, executor: Executor
) -> tuple[tuple[tuple[DirectiveGain, ...], ...], float]:
    """Measure what each directive of each winner gains, and return the gains and the seconds that this took.

    The gains of a winner are empty if it has no directives, or if the measurement is interrupted.
    """
    start = time.monotonic()
    asked = [w for w in winners if w.directives]
    found: dict[int, tuple[DirectiveGain, ...]] = {}
    if asked:
        one = asked[0].prepared
        parts = [
            Part(
                _whole(w.match.lab), strategies.ALL["exhaustive"](_space(tuple(w.without.values())), 0),
                w.prepared.model, w.command,
            )
            for w in asked
        ]  # fmt: skip
        searched = sweeps(
            parts, store, executor, jobs=one.jobs, timeout_s=one.request.timeout_s, budget=Budget(), progress=_silent,
            first=(one.annotated,), cuts=False,
        )  # fmt: skip
        if not any(s.interrupted for s in searched):
            found = {id(w): e for w, e in zip(asked, _finals(asked, store, executor), strict=True)}
    return tuple(found.get(id(w), ()) for w in winners), time.monotonic() - start


def _finals(winners: Sequence[Winner], store: Store, executor: Executor) -> list[tuple[DirectiveGain, ...]]:
    tried = [DirectiveGains(w, store) for w in winners]
    matches = [
        replace(
            t.won.match, texts=(t.won.directives, *t.timed), default=t.won.directives, by_hand=None, role="ablation"
        )
        for t in tried
    ]
    times = finals.run(matches, executor, winners[0].prepared.jobs).finals
    return [t.gains(found) for t, found in zip(tried, times, strict=True)]


class DirectiveGains:
    """The outcomes of the versions that lack one line of a winner each."""

    def __init__(self, won: Winner, store: Store) -> None:
        self.won, self.without = won, won.without
        keys = {text: key(won.prepared.context, text) for text in (won.directives, *self.without.values())}
        found = store.lookup(keys.values())
        self.rows = {text: found[k] for text, k in keys.items() if k in found}

    @property
    def timed(self) -> tuple[str, ...]:
        """Return the versions that are worth a final."""
        return tuple(t for t in dict.fromkeys(self.without.values()) if not self._why(t))

    def gains(self, made: finals.Finals) -> tuple[DirectiveGain, ...]:
        """Return what each line earns, without a verdict where the finals ``made`` were disturbed."""
        us = made.us
        best = us.get(self.won.directives, ())
        found = {line: paired_speedup(us.get(text, ()), best, 0) for line, text in self.without.items()}
        found = {line: without_verdict(s) if made.disturbed else s for line, s in found.items()}
        return tuple(
            DirectiveGain(line, found[line], "" if found[line] else self._why(text) or "not measured")
            for line, text in self.without.items()
        )

    def _why(self, text: str) -> str:
        """Why it has no time of its own, "" where it has one."""
        row, best = self.rows.get(text), self.rows.get(self.won.directives)
        if row is not None and (row.status == "duplicate" or (best is not None and row.emitted == best.emitted != "")):
            return "makes the same kernels"
        if row is None or row.outcome is None:
            return "not measured"
        match row.outcome:
            case Timed():
                return ""
            case other:
                return f"{row.status.replace('_', ' ')}: {other.message.splitlines()[0]}"


def _whole(lab: KernelBuilder) -> KernelBuilder:
    """Return the laboratory that gives up no version: a slow one says what its directive earned."""
    return KernelBuilder(replace(lab.job, cuts=False), lab.context)


def _space(texts: Sequence[str]) -> Space:
    """Return these versions; the one without directives is measured at any rate."""
    return parse("\n\nor\n\n".join(dict.fromkeys(t for t in texts if t)), "ablation") if any(texts) else Space(())


def _canonical(text: str) -> str:
    found = next(iter(parse(text, "ablation")), None) if text else None
    return "" if found is None else found.text


def _silent(progress: Progress) -> None:
    """Ignore the progress."""
