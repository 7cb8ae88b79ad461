"""The finals: the best few versions, the default and the hand-written kernels, timed in turn on the same arrays.

    built in parallel ─▶ timed, alone on the device ─▶ the winner ─▶ proved; if it is wrong, the next one wins

The default, and the version that is likely to win, are proved while the others are built. On a GPU the original loops
are timed on one core meanwhile.

The times are stored in the database under the role "final", so that a command repeated after everything was measured
answers at once. Finals that decide by energy or EDP have more versions and are stored under the role "energy": they
never replace those that decide by time.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from looptune.core.settings import Objective
from looptune.runtime.device import cores
from looptune.runtime.energy import OVERHEAD_S, SECONDS, Energy, time_of_window, to_facts
from looptune.runtime.outcome import COMPILER, Crashed, NotBuilt, Outcome, OverLimit, Timed, TimedOut, WrongResult
from looptune.runtime.roofline import MOST_MATRIX_RATE
from looptune.runtime.targets import Model
from looptune.runtime.timing import summary
from looptune.schedule.apply import ScheduleResult, schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.tune.execution.executor import compile_all, measure_all
from looptune.tune.execution.lab import PlainLab
from looptune.tune.execution.worker import Reply, returned_value
from looptune.tune.execution.worker_loop import PickledValue, TaskError, TaskResult
from looptune.tune.measure.build_steps import Finalist, VersionSources, plans_of
from looptune.tune.measure.evaluate import KernelBuilder
from looptune.tune.measure.finalists import (
    CHECKS,
    build_check,
    build_finalist,
    finalist_steps,
    finals_backend,
    version_sources,
)
from looptune.tune.measure.finals_energy import LEAST_S
from looptune.tune.measure.finals_rounds import FinalsRequest, Times
from looptune.tune.measure.sequential import SequentialTimes, description, sequential_timer
from looptune.tune.session.proof import ProofSummary, prove_version
from looptune.tune.store.searches import DISTURBED, disturbance, energies
from looptune.tune.store.store import Context, Role, Row, Store
from looptune.tune.store.winners import simplest, winner, winner_by

if TYPE_CHECKING:
    from looptune.tune.execution.executor import Executor, Workers
    from looptune.tune.job import Job

FINALISTS, NEAR, MOST = 5, 1.10, 16
"""At least this many versions, all within this ratio of the best, at most so many."""
WIDER, ALSO, ALSO_S = 1.5, 16, 60.0
"""Where energy decides, versions up to this ratio slower take part as well, at most so many, for so many seconds."""
LIKE = 1.01
"""Versions are as fast as each other by a few runs within this ratio."""
LIMIT_S = 600.0
KEPT = 2000
"""Rounds that are kept, and compared: enough for any interval, and rows stay small."""

Step = Literal["prove", "build", "at_prime_sizes", "at_edge_sizes", "write"]
"""What a helper does with a version; at other sizes: build what it is verified with before "build" needs it."""

ORDER: tuple[Step, ...] = ("prove", "build", "at_prime_sizes", "at_edge_sizes", "write")
"""What takes longest begins first."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Finals:
    """The result of the finals of one kernel.

    ``us``: microseconds of each round, by directive text, "hand-written" or "library"; versions that left early have
    the first rounds only. ``wrong``: why others have no times; ``proofs``: those of the winner and of the default, each
    made in a process of its own, ``proofs_s`` seconds in all; ``sources``: those of the winner; ``disturbed``: what
    disturbed the machine; ``energy``: that of one run, where it was measured; ``refused``: why a version is not built;
    ``compilers``: the targets that other compilers than the target's own are of, by the versions that they made.
    """

    us: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    wrong: Mapping[str, str] = field(default_factory=dict)
    proofs: Mapping[str, ProofSummary] = field(default_factory=dict)
    sources: Mapping[str, VersionSources] = field(default_factory=dict)
    proofs_s: float = 0.0
    disturbed: str = ""
    energy: Mapping[str, Energy] = field(default_factory=dict)
    refused: Mapping[str, Outcome] = field(default_factory=dict)
    compilers: Mapping[str, str] = field(default_factory=dict)


def schedule_finalist(lab: KernelBuilder, text: str) -> ScheduleResult:
    """Return the schedule of a version, with the reductions that each of its directives reorders."""
    return schedule(lab.analysis, parse_lines(text.splitlines(), "configuration"), lab.job.problem.values, sums=True)


def write_winner(lab: KernelBuilder, text: str) -> VersionSources:
    """Return the sources and the resources of the version with the directives ``text``."""
    done = schedule_finalist(lab, text).codelet
    plans = plans_of(lab.job, done, text)
    # It was built for the finals, and what was built is kept.
    built = finals_backend(lab, finalist_steps(lab.job, plans)).build(plans.timed)
    return version_sources(lab, done, built)


Made = PickledValue | Outcome | ProofSummary | VersionSources | None
"""What a helper returns of a version, by the step."""


def finals_worker(job: Job, context: Context, unverified: Collection[str] = frozenset()) -> Callable[[Step, str], Made]:
    """Return what a process does that builds finalists of a kernel, and proves and writes its winner.

    ``unverified``: versions that the search has not verified at prime sizes.
    """
    lab = KernelBuilder(job, context)

    def work(step: Step, text: str) -> Made:
        match step:
            case "build":
                codelet = schedule_finalist(lab, text).codelet
                return build_finalist(lab, codelet, text, verified=text not in unverified)
            case "at_prime_sizes" | "at_edge_sizes":
                build_check(lab, schedule_finalist(lab, text).codelet, text, step)
                return None
            case "prove":
                return prove_version(job, schedule_finalist(lab, text))
            case "write":
                return write_winner(lab, text)

    return work


def select_finalists(
    timed: Sequence[Row], objective: Objective = "time", energy_s: float = math.inf, most: int = MOST
) -> tuple[str, ...]:
    """Return the directives of the fastest few versions; ``timed`` are all, the fastest first.

    ``energy_s``: for so many seconds energies are measured; ``most``: so many at most, besides those for their energy.

    All versions that are equally fast within the noise of screening are among them. A slower version may need less
    energy, if its power is lower by more than its time is longer: where energy decides, versions from all over the
    next slower ones take part as well.
    """
    medians = [row.median_us for row in timed if row.median_us is not None]
    near = sum(m <= NEAR * medians[0] for m in medians) if medians else 0
    count = min(most, max(FINALISTS, near))
    fastest = tuple(row.directives for row in timed[:count])
    return fastest if objective == "time" else (*fastest, *_slower_finalists(timed, count, energy_s))


def _slower_finalists(timed: Sequence[Row], count: int, energy_s: float) -> tuple[str, ...]:
    """Return versions at equal distances in the order of times, without the first ``count``, from WIDER times on none.

    The energy of all of them is measured within ALSO_S, and within a third of ``energy_s``.
    """
    most_us = WIDER * (timed[0].median_us or 0.0) if timed else 0.0
    left = [(row.median_us, row.directives) for row in timed[count:] if row.median_us is not None]
    left = [(us, text) for us, text in left if us <= most_us]
    longest_us = max((us for us, _ in left), default=0.0)
    within_s = min(ALSO_S, energy_s / 3)
    window_s = min(SECONDS, max(LEAST_S, within_s / ALSO - OVERHEAD_S))
    also = min(ALSO, len(left), int(within_s / time_of_window(longest_us / 1e6, window_s)))
    return tuple(left[k * len(left) // also][1] for k in range(also))


def in_one_round(texts: Sequence[str], screened_us: Mapping[str, float], seconds: float) -> tuple[str, ...]:
    """Return those of the versions, the first always, that run once each within so many seconds.

    >>> in_one_round(("a", "b", "c", "d"), {"a": 2e6, "b": 3e6, "c": 9e6, "d": 1e6}, 6.5)
    ('a', 'b', 'd')
    """
    found, left_us = list(texts[:1]), seconds * 1e6 - sum(screened_us.get(text, 0.0) for text in texts[:1])
    for text in texts[1:]:
        us = screened_us.get(text, 0.0)
        if us <= left_us:
            found.append(text)
            left_us -= us
    return tuple(found)


@dataclass(frozen=True, slots=True)
class KernelFinals:
    """The finals of one kernel on one model of device.

    The versions ``texts`` and the hand-written kernels of a file take part. ``default``: the version that all are
    compared with; ``sweep``: the name of the sweep; ``role``: that of the rows stored; ``screened_us``: times from the
    screening, where they are known. ``screening_is_final``: one more run would exceed the time of the finals.
    ``objective``: what decides; ``done``: what was done before, by its step and version;
    ``unverified``: versions that the search has not verified at prime sizes.
    """

    lab: KernelBuilder
    store: Store
    sweep: str
    model: Model
    texts: Sequence[str]
    default: str
    by_hand: Path | None = None
    seed: int = 0
    fresh: bool = False
    role: Role = "final"
    screened_us: Mapping[str, float] = field(default_factory=dict)
    screening_is_final: bool = False
    objective: Objective = "time"
    done: Mapping[tuple[Step, str], Reply] = field(default_factory=dict)
    unverified: Collection[str] = frozenset()

    def earlier(self) -> Finals | None:
        """Return the earlier finals between exactly these finalists, or the screening's times where these stand.

        Finals that were disturbed are made again, and so are those without the energy that is asked for.
        """
        if self.screening_is_final:
            return Finals({text: (self.screened_us[text],) for text in self.texts if text in self.screened_us})
        rows = self._rows()
        found = {} if self.fresh else self.store.lookup(row.key for row in rows.values())
        named = {name: found[row.key] for name, row in rows.items() if row.key in found}
        needed = {*self.texts} if self.by_hand is None else {*self.texts, "hand-written"}
        if not needed <= named.keys() or len({row.sweep for row in named.values()}) != 1:
            return None
        outcomes = {name: row.outcome for name, row in named.items() if row.outcome is not None}
        times = {name: outcome.times_us for name, outcome in outcomes.items() if isinstance(outcome, Timed)}
        wrong = {name: outcome.message for name, outcome in outcomes.items() if isinstance(outcome, WrongResult)}
        refused = {name: outcome for name, outcome in outcomes.items() if name not in times.keys() | wrong.keys()}
        facts = {name: dict(outcome.facts) for name, outcome in outcomes.items() if isinstance(outcome, Timed)}
        compilers = {name: str(known[COMPILER]) for name, known in facts.items() if COMPILER in known}
        energy = energies(named)
        missing = self._measures_energy and not energy
        if missing or self._impossible(times) or disturbance(named.values()):
            return None
        return Finals(times, wrong, energy=energy, refused=refused, compilers=compilers)

    @property
    def _measures_energy(self) -> bool:
        return self.lab.job.energy and self._chooses

    @property
    def _chooses(self) -> bool:
        """Tell whether these are the finals of a sweep, which choose its winner, and not those of an ablation."""
        return self.role != "ablation"

    @property
    def labs(self) -> tuple[PlainLab, PlainLab]:
        """Return the laboratory that times the finalists, and the one that times the original loops on one core."""
        job = self.lab.job
        build = partial(finals_worker, job, self.lab.context, frozenset(self.unverified))
        return PlainLab(build, self.lab.measure_setups), PlainLab(build, (partial(sequential_timer, job),))

    def request(self, finalists: Mapping[str, PickledValue]) -> FinalsRequest:
        """Return the task of the process that times the finalists."""
        return FinalsRequest(
            finalists, self.by_hand, self.seed, self.default, self.screened_us, self._measures_energy,
            energy_decides=self.objective != "time",
        )  # fmt: skip

    def store_times(self, found: Times, refused: Mapping[str, Outcome]) -> Finals:
        """Store the times, the wrong results, and why others are ``refused``, and return the finals."""
        rounds = max(map(len, found.us.values()), default=0)
        us = {
            name: outcome_of_rounds(us, rounds, found.disturbed, found.energy.get(name), found.compilers.get(name, ""))
            for name, us in found.us.items()
        }
        for name, outcome in us.items():
            self._record(name, outcome)
        for name, why in found.wrong.items():
            self._record(name, WrongResult(why))
        refused = {**refused, **{name: OverLimit(why) for name, why in found.over_limit.items()}}
        for name, why_not in refused.items():
            self._record(name, why_not)
        times = {name: outcome.times_us for name, outcome in us.items()}
        return Finals(
            times, found.wrong, disturbed=found.disturbed, energy=found.energy, refused=refused,
            compilers=found.compilers,
        )  # fmt: skip

    def best(self, found: Finals) -> tuple[str, tuple[str, ...]] | None:
        """Return the winner and the versions that are as fast, or None if no version of the finals is right.

        Finals that were disturbed choose no winner: the fastest version of the screening stays the best.
        Where no energy is known, the time decides (``decided_by``).
        """
        right = [text for text in self.texts if text in found.us]
        if not right:
            return None
        if found.disturbed:
            return min(right, key=lambda text: self.screened_us.get(text, math.inf)), ()
        return winner_by(self.objective, found.us, found.energy, right) or winner(found.us, right)

    def decided_by(self, found: Finals) -> Objective:
        """Return what chose the best of these finals: the time where no energy of a right version is known."""
        known = found.us.keys() & found.energy.keys() & set(self.texts)
        return self.objective if known or found.disturbed else "time"

    @property
    def likely_winners(self) -> tuple[str, ...]:
        """Return the versions that will probably have to be proved: the likely winner and the default.

        Of the versions that are as fast as the first, the one with the fewest directives is likely to win.
        """
        if not self._chooses:
            return ()
        us = self.screened_us
        near = [t for t in self.texts if us.get(t, math.inf) <= LIKE * us.get(self.texts[0], 0.0)]
        return self._matter(simplest(near or self.texts[:1]))

    @property
    def first_tasks(self) -> list[tuple[Step, str]]:
        """Return what is done before the finals: proofs of likely winners, the builds, and what these need as well."""
        checks = CHECKS if self.lab.job.target.search_backend is not None else ()
        steps: tuple[Step, ...] = ("build", *checks)
        return [("prove", t) for t in self.likely_winners] + [(step, t) for step in steps for t in self.texts]

    def remaining_tasks(self, found: Finals) -> list[tuple[Step, str]]:
        """Return what remains to be done: proofs of the winner and the default, and the sources of the winner."""
        won = self.best(found)
        if won is None or not self._chooses:
            return []
        best = won[0]
        proofs: list[tuple[Step, str]] = [("prove", t) for t in self._matter(best) if t not in found.proofs]
        return proofs + ([] if best in found.sources else [("write", best)])

    def _matter(self, best: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys((best, *(text for text in self.texts if text == self.default))))

    def without_wrong(self, found: Finals, text: str, proof: ProofSummary, took_s: float) -> Finals:
        """Return the finals without the times of versions that are proved wrong."""
        found = replace(found, proofs_s=found.proofs_s + took_s)
        if not proof.wrong:
            return replace(found, proofs={**found.proofs, text: proof})
        self._record(text, WrongResult(proof.wrong))
        left = {name: us for name, us in found.us.items() if name != text}
        return replace(found, us=left, wrong={**found.wrong, text: proof.wrong})

    def _record(self, name: str, outcome: Outcome) -> None:
        self.store.record(self._row(name), outcome)

    def sequential(self) -> SequentialTimes | None:
        """Return the times of the original loops on one core in the database, or None; disturbed ones do not count."""
        row = self._sequential()
        held = None if self.fresh else self.store.lookup([row.key]).get(row.key)
        match held:
            case Row(outcome=Timed(times_us=times)) if not disturbance((held,)):
                return SequentialTimes(times)
        return None

    def keep_sequential(self, found: SequentialTimes) -> None:
        outcome = outcome_of_rounds(found.us, len(found.us), found.disturbed)
        self.store.record(self._sequential(), replace(outcome, verified=description(self.lab.job)))

    def _sequential(self) -> Row:
        return Row(self.lab.context, "", "sequential", self.sweep)

    def _rows(self) -> dict[str, Row]:
        return {text: self._row(text) for text in (*self.texts, "hand-written", "library")}

    def _row(self, text: str) -> Row:
        """Return the row of a version or of a hand-written kernel.

        The key of a hand-written kernel contains a hash of its source, so that an edited one is timed again.
        """
        if text not in ("hand-written", "library"):
            return Row(self.lab.context, text, self.role, self.sweep)
        source = hashlib.sha256(self.by_hand.read_bytes()).hexdigest()[:16] if self.by_hand is not None else ""
        return Row(self.lab.context, f"{text} {source}", self.role, self.sweep)

    def _impossible(self, times: Mapping[str, Sequence[float]]) -> bool:
        """Tell whether some of these times cannot be: they were kept before it was known what the device can do."""
        ceiling = self.lab.job.ceiling
        medians = (summary(us).median_us for us in times.values())
        return ceiling is not None and any(
            ceiling.violated_by(us, matrix_rate=MOST_MATRIX_RATE) is not None for us in medians
        )


@dataclass(frozen=True, slots=True)
class FinalsResult:
    """The finals of several kernels.

    ``sequential``: by number of the kernel, the times of its original loops on one core; ``finals_s``,
    ``sequential_s``: seconds that both took.
    """

    finals: tuple[Finals, ...] = ()
    sequential: Mapping[int, SequentialTimes] = field(default_factory=dict)
    finals_s: float = 0.0
    sequential_s: float = 0.0


def run(matches: Sequence[KernelFinals], executor: Executor, jobs: int, timed: Sequence[int] = ()) -> FinalsResult:
    """Return all finals, from the database where it has them.

    ``jobs`` processes build the others, and prove and write the winners. The kernels with the numbers ``timed`` have
    their original loops timed on one core as well: some beside the finals if versions are timed on a GPU, and one after
    the other when nothing else runs.
    """
    if not matches:
        return FinalsResult()
    start = time.monotonic()
    originals = _Originals(matches, timed)
    labs = [match.labs[0] for match in matches] + [matches[n].labs[1] for n in originals.untimed.values()]
    models = [match.model for match in matches] + [matches[n].model for n in originals.untimed.values()]
    with executor.open(labs, models, jobs, LIMIT_S, exclusive=True, baselines=len(originals.untimed)) as workers:
        ahead = list(originals.untimed)[: cores()] if executor.overlaps_compilation(models[0].target.name) else []
        for lab in ahead:
            workers.warm(lab, 1)
        found = {number: held for number, match in enumerate(matches) if (held := match.earlier()) is not None}
        known, finalists = _build(matches, [n for n in range(len(matches)) if n not in found], workers)
        found |= _race(matches, finalists, workers, originals, workers.get_ready(ahead))
        _conclude(matches, found, known, workers)
        finals_s = time.monotonic() - start
        originals.time(workers)
    sequential_s = time.monotonic() - start - finals_s
    return FinalsResult(tuple(found[n] for n in range(len(matches))), originals.times, finals_s, sequential_s)


class _Originals:
    """The original loops that are timed on one core.

    ``times``: by number of the kernel, what is known; ``untimed``: the others, by the lab that times them.
    """

    def __init__(self, matches: Sequence[KernelFinals], timed: Sequence[int]) -> None:
        self._matches = matches
        self.times = {n: times for n in timed if (times := matches[n].sequential()) is not None}
        self.untimed = dict(enumerate((n for n in timed if n not in self.times), len(matches)))

    def time(self, workers: Workers) -> None:
        """Time the loops that have no times yet, one after the other; as many as there are cores are set up at once."""
        left = list(self.untimed)
        for labs in (left[at : at + cores()] for at in range(0, len(left), cores())):
            workers.get_ready(labs)
            for lab in labs:
                for _, reply in measure_all(workers, {lab: ()}):
                    self.keep(lab, reply)

    def keep(self, lab: int, reply: Reply) -> None:
        """Store the times of a lab's loops."""
        number = self.untimed.pop(lab)
        self.times[number] = _returned(reply, SequentialTimes, "the sequential loops")
        self._matches[number].keep_sequential(self.times[number])


_Replies = dict[tuple[int, str, str], Reply]
"""The replies to compiling tasks: a kernel, a step and a version."""
_Finalists = Mapping[int, Mapping[str, PickledValue | Outcome]]
"""By kernel and version, what was built of it, or why nothing was."""


def _build(matches: Sequence[KernelFinals], new: Sequence[int], workers: Workers) -> tuple[_Replies, _Finalists]:
    """Return what is known of the winners, and the finalists.

    Known are the proofs of likely winners, and the sources of all that are built.
    """
    anew = [n for n in new if matches[n].lab.job.target.search_backend is not None]
    tasks = [(n, step, text) for n in new for step, text in matches[n].first_tasks]
    replies = {(n, step, text): reply for n in new for (step, text), reply in matches[n].done.items()}
    left = [
        task
        for task in tasks
        if task not in replies and not (task[1] in CHECKS and (task[0], "build", task[2]) in replies)
    ]
    left.sort(key=lambda task: ORDER.index(task[1]))
    replies |= dict(zip(left, compile_all(workers, left), strict=True))
    made = {n: {t: _built(replies[n, "build", t], anew=n in anew) for t in matches[n].texts} for n in new}
    written = {
        (n, "write", t): replies[n, "build", t] for n in new for t, f in made[n].items() if isinstance(f, PickledValue)
    }
    return {task: reply for task, reply in replies.items() if task[1] == "prove"} | written, made


def _built(reply: Reply, *, anew: bool) -> PickledValue | Outcome:
    """Return a finalist, or why there is none; what was built before, and not ``anew``, is always built again."""
    match reply:
        case TaskResult(value) if isinstance(value, Outcome):
            return value
        case TaskError(message) if anew:
            return NotBuilt(message)
        case Crashed(message) if anew:
            return Crashed(f"while it compiled: {message}")
        case TimedOut() if anew:
            return reply
    return _returned(reply, PickledValue)


def _race(
    matches: Sequence[KernelFinals],
    finalists: _Finalists,
    workers: Workers,
    originals: _Originals,
    beside: Sequence[int],
) -> dict[int, Finals]:
    """Return the finals between these, by number of the kernel; each is stored as it ends.

    A device has nothing else to do meanwhile, and nothing compiles. The labs ``beside`` time original loops.
    """
    built = {n: {t: f for t, f in own.items() if isinstance(f, PickledValue)} for n, own in finalists.items()}
    refused = {n: {t: f for t, f in own.items() if isinstance(f, Outcome)} for n, own in finalists.items()}
    tasks: dict[int, tuple[Any, ...]] = {n: (matches[n].request(own),) for n, own in built.items()}
    found: dict[int, Finals] = {}
    failed: list[int] = []
    for lab, reply in measure_all(workers, tasks | dict.fromkeys(beside, ())):
        if lab in originals.untimed:
            originals.keep(lab, reply)
        elif isinstance(reply, TaskResult):
            found[lab] = matches[lab].store_times(_returned(reply, Times), refused[lab])
        else:
            failed.append(lab)
    for lab in failed:
        found[lab] = _race_without_failing(matches[lab], lab, built[lab], refused[lab], workers)
    return found


def _race_without_failing(
    match: KernelFinals,
    lab: int,
    built: Mapping[str, PickledValue],
    refused: Mapping[str, Outcome],
    workers: Workers,
) -> Finals:
    """Return finals that have failed, without the versions and hand-written kernels that fail when tried alone.

    Raises TargetError if what is left fails once more.
    """
    trial = replace(match.request(built), trial=True)

    def reply_to(asked: FinalsRequest) -> Reply:
        ((_, reply),) = measure_all(workers, {lab: (asked,)})
        return reply

    alone = {t: _failure(reply_to(replace(trial, finalists={t: f}, by_hand=None))) for t, f in built.items()}
    refused = {**refused, **{t: why for t, why in alone.items() if why is not None}}
    by_hand = None if match.by_hand is None else _failure(reply_to(replace(trial, finalists={})))
    wrong = {} if by_hand is None else {"hand-written": by_hand.message}
    left = {t: f for t, f in built.items() if alone[t] is None}
    again = replace(match.request(left), by_hand=None if wrong else match.by_hand)
    times = _returned(reply_to(again), Times) if left else Times({})
    return match.store_times(replace(times, wrong={**times.wrong, **wrong}), refused)


def _failure(reply: Reply) -> Crashed | TimedOut | None:
    """Return why something that was tried has failed, or None."""
    match reply:
        case TaskError(message) | Crashed(message):
            return Crashed(f"in the finals: {message}")
        case TimedOut():
            return reply
    return None


def _conclude(matches: Sequence[KernelFinals], found: dict[int, Finals], known: _Replies, workers: Workers) -> None:
    """Add proofs and sources to the finals that are found, until the winners are proved; ``known`` are made already."""
    while due := [(n, step, text) for n, match in enumerate(matches) for step, text in match.remaining_tasks(found[n])]:
        missing = [task for task in due if task not in known]
        replies = dict(zip(missing, compile_all(workers, missing), strict=True)) | known
        for n, step, text in due:
            reply = replies[n, step, text]
            if step == "write":
                found[n] = replace(found[n], sources={text: _sources(reply)})
            else:
                took_s = reply.seconds if isinstance(reply, TaskResult) else 0.0
                found[n] = matches[n].without_wrong(found[n], text, _returned(reply, ProofSummary), took_s)


def _sources(reply: Reply) -> VersionSources:
    """Return the sources of a version that was written, or built as a finalist."""
    match reply:
        case TaskResult(PickledValue() as sealed):
            finalist: Finalist = sealed.load()
            return finalist.sources
    return _returned(reply, VersionSources)


def _returned(reply: Reply, kind: type[_T], what: str = "the finals") -> _T:
    found = returned_value(reply, what)
    assert isinstance(found, kind), f"{what} gave {type(found).__name__}"
    return found


def outcome_of_rounds(
    times_us: Sequence[float], rounds: int, disturbed: str = "", energy: Energy | None = None, compiler: str = ""
) -> Timed:
    """Return the outcome of a finalist with times ``times_us``, of which at most KEPT are stored.

    ``rounds`` is the number of rounds of all that are compared, so that the same rounds are stored of each.
    ``disturbed``: what disturbed the machine; ``energy``: that of one run, which is stored as well; ``compiler``: the
    target whose compiler made it, "" for its own.
    """
    stride = -(-rounds // KEPT)
    kept = tuple(round(t, 3) for t in times_us[::stride])
    s = summary(kept)
    facts = tuple((name, said) for name, said in ((DISTURBED, disturbed), (COMPILER, compiler)) if said)
    return Timed(kept, s.median_us, s.q1_us, s.q3_us, "in the finals", (*facts, *to_facts(energy)))
