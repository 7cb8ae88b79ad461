"""The figure of transfers: the time of one device's best directives on another device.

    cost(A on B) = time on B of A's best directives / time on B of B's own best          1 if they are as fast

Only measurements count: both in B's finals, else both in its screening. A's best is that for B's target and sizes if A
has such a sweep, else any best of A that was measured on B, such as a GPU's on a CPU. It is Figure 10 of Grauer-Gray et
al., 2012.

    a panel for each place      a group of bars for each kernel, a bar for each other device, then their geometric means
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from looptune.report.figures import style
from looptune.report.figures.style import CYCLE, FAINT, INK
from looptune.runtime.outcome import Timed, WrongResult
from looptune.runtime.timing import Speedup, paired_speedup, summary
from looptune.tune.results.studies import KernelStudy

if TYPE_CHECKING:
    from looptune.tune.store.store import Row

UNKNOWN = "not measured"


@dataclass(frozen=True, slots=True)
class Transfer:
    """The best ``directives`` of ``own`` in the place of ``there``.

    ``times_us``: theirs, and those of the best of ``there``; None where they have none, and ``why``. ``speedup``:
    theirs over that best, in finals; None: both times are of the screening, a few runs each.
    """

    own: KernelStudy
    there: KernelStudy
    directives: str
    times_us: tuple[float, float] | None
    speedup: Speedup | None = None
    why: str = ""

    @property
    def cost(self) -> float | None:
        return None if self.times_us is None else self.times_us[0] / self.times_us[1]

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return the 95 % interval of the cost."""
        return None if self.speedup is None else (1 / self.speedup.high, 1 / self.speedup.low)

    @property
    def is_measured(self) -> bool:
        """Return whether the configuration was tried there."""
        return self.why != UNKNOWN


def transfers(studies: Sequence[KernelStudy]) -> list[Transfer]:
    """Return each kernel that both of a pair of devices have, for all ordered pairs.

    Results at other targets and sizes are included where they were tried.
    """
    found = []
    for there in studies:
        others = [s for s in studies if s.device != there.device and _loops(s) == _loops(there)]
        for device in dict.fromkeys(s.device for s in others):
            found += _from([s for s in others if s.device == device], there)
    return sorted(found, key=lambda t: (t.there.device, t.there.context.target, t.own.device))


def _from(others: Sequence[KernelStudy], there: KernelStudy) -> list[Transfer]:
    """Return the results of one device; those measured like ``there`` come first."""
    same = [s for s in others if _kind(s) == _kind(there)]
    if same:
        return [_taken(s, there) for s in same]
    usual = [s for s in others if s.kind == there.kind]
    return [made for s in (usual if usual else others) if (made := _taken(s, there)).is_measured]


def mean(found: Iterable[Transfer]) -> float | None:
    """Return the geometric mean of the costs that are known."""
    costs = [t.cost for t in found if t.cost is not None]
    return math.exp(math.fsum(map(math.log, costs)) / len(costs)) if costs else None


def _loops(study: KernelStudy) -> tuple[str, ...]:
    context = study.context
    return context.kernel, context.source_hash, context.dtype


def _kind(study: KernelStudy) -> tuple[str, ...]:
    """Return a key that is equal for the same loops at the same sizes, whatever the seeds."""
    return study.context.target, study.context.sizes, study.kind


def _taken(own: KernelStudy, there: KernelStudy) -> Transfer:
    """Return the time of the best configuration, and of those that are as fast as it.

    The best itself where it failed there, else the first that was in the finals there, else the first that was tried.
    """
    tried = [_tried(own, there, text) for text in (own.result.directives, *own.result.ties)]
    first = tried[0]
    if first.is_measured and first.times_us is None:
        return first
    return min(tried, key=lambda t: (t.speedup is None, t.times_us is None, not t.is_measured))


def _tried(own: KernelStudy, there: KernelStudy, text: str) -> Transfer:
    """Return the directives ``text`` there."""
    rows = {row.directives: row for row in there.rows}
    best = _final(there.result.directives, there, rows)
    taken = _final(text, there, rows)
    match taken, best:
        case WrongResult(message), _:
            return Transfer(own, there, text, None, why=f"wrong: {message}")
        case Timed(), Timed():
            # What left the finals early has the first rounds: they are compared, and no others.
            rounds = min(len(taken.times_us), len(best.times_us))
            both = summary(taken.times_us[:rounds]).median_us, summary(best.times_us[:rounds]).median_us
            return Transfer(own, there, text, both, paired_speedup(best.times_us, taken.times_us, 0))
    screened = there.screened()
    us, best_us = screened.get(text), screened.get(there.result.directives)
    if us is not None and best_us:
        return Transfer(own, there, text, (us, best_us))
    return Transfer(own, there, text, None, why=_why(rows.get(text)))


def _final(text: str, study: KernelStudy, rows: dict[str, Row]) -> Timed | WrongResult | None:
    """Return what became of these directives in the finals, or of others that make the same kernels."""
    if text in study.finals_outcomes:
        return study.finals_outcomes[text]
    source = rows[text].emitted if text in rows else ""
    same = (t for t in study.finals_outcomes if source and t in rows and rows[t].emitted == source)
    return next((study.finals_outcomes[t] for t in same), None)


def _why(row: Row | None) -> str:
    if row is None or row.outcome is None or isinstance(row.outcome, Timed):
        return UNKNOWN
    return f"{row.status.replace('_', ' ')}: {row.outcome.message}"


_MEAN = "geometric\nmean"
_WIDTH = 0.8
"""Of a group of bars, whose distance is 1."""
_SIZES = 16
"""Characters of sizes that are shown; longer ones are left out where the kernel has no others."""
_FAILED = "fails there"


def transfer_figure(found: Sequence[Transfer]) -> Any:
    """Draw, for each place and kernel, the cost there of the best configurations of the other places."""
    places = _grouped(found)
    sources = _sources(found)
    colours = {source: CYCLE[k % len(CYCLE)] for k, source in enumerate(dict.fromkeys(sources.values()))}
    widest = max(len({*_names(same).values()}) for same in places.values()) + 1
    figure, panels = style.panels(len(places), 1, inches=(max(4.5, 0.62 * widest + 1), 2.9))
    handles: dict[str, Any] = {}
    for axes, (title, same) in zip(panels, places.items(), strict=True):
        handles |= _panel(axes, same, sources, colours)
        style.set_title(axes, title)
    style.label_axes(figure, "", "time over that of the device's own best")
    last = {_FAILED: handles.pop(_FAILED)} if _FAILED in handles else {}
    style.legend(figure, {style.truncate([f"best of {s}"], 2 * style.NAME): h for s, h in handles.items()} | last)
    return figure


def _grouped(found: Sequence[Transfer]) -> dict[str, list[Transfer]]:
    """Group transfers by the place where they ran, without places that have no times."""
    groups: dict[str, list[Transfer]] = {}
    for t in found:
        title = f"on {t.there.device} ({t.there.context.target}), {t.there.result.dtype}"
        groups.setdefault(title, []).append(t)
    return {title: same for title, same in groups.items() if mean(same) is not None}


def _panel(
    axes: Any, found: Sequence[Transfer], of: Mapping[tuple[str, str], str], colours: Mapping[str, str]
) -> dict[str, Any]:
    """Return the bars; what stands for each source."""
    named = _names(found)
    names = sorted({named[id(t)] for t in found if t.is_measured})
    sources = [s for s in colours if any(of[_own(t)] == s for t in found)]
    handles: dict[str, Any] = {}
    costs = [t.cost for t in found if t.cost is not None]
    style.ratio_axis(axes, costs, room=0.14)
    for k, source in enumerate(sources):
        own = [t for t in found if of[_own(t)] == source and t.is_measured]
        shift = _WIDTH * ((k + 0.5) / len(sources) - 0.5)
        bars = [(names.index(named[id(t)]) + shift, t.cost) for t in own if t.cost is not None]
        average = mean(own)
        bars += [] if average is None else [(len(names) + shift, average)]
        handles[source] = axes.bar(
            [x for x, _ in bars], [c - 1 for _, c in bars], _WIDTH / len(sources), bottom=1, color=colours[source]
        )
        for x, cost in bars:
            style.value_at(axes, x, cost, cost)
        for t in (t for t in own if t.cost is None):
            (handles[_FAILED],) = axes.plot(
                names.index(named[id(t)]) + shift, 0.04, "x", color=INK, markersize=5, linestyle="none",
                transform=axes.get_xaxis_transform(),
            )  # fmt: skip
    axes.axhline(1, color=INK, linewidth=0.8)
    axes.axvline(len(names) - 0.5, color=FAINT, linewidth=0.6)
    axes.set_xlim(-0.6, len(names) + 0.6)
    kernels = [kernel for kernel, _ in names]
    labels = [_label(kernel, sizes, kernels.count(kernel) == 1) for kernel, sizes in names]
    axes.set_xticks(range(len(names) + 1), [*labels, _MEAN], rotation=30, ha="right", rotation_mode="anchor")
    return handles


def _own(t: Transfer) -> tuple[str, str]:
    return t.own.device, t.own.context.target


def _sources(found: Sequence[Transfer]) -> dict[tuple[str, str], str]:
    """Return what each is called: the device, with the target where it has several."""
    every = sorted({_own(t) for t in found})
    several = {device for device, _ in every if sum(device == other for other, _ in every) > 1}
    return {(device, target): f"{device} ({target})" if device in several else device for device, target in every}


def _names(found: Sequence[Transfer]) -> dict[int, tuple[str, str]]:
    """Return the kernel and its sizes in the place, by the identity of each transfer.

    Those that it was tuned at as well where one device has several of a kernel to give.
    """
    given = Counter((_own(t), t.there.kernel, t.there.sizes) for t in found)
    several = {(kernel, sizes) for (_, kernel, sizes), count in given.items() if count > 1}
    names: dict[int, tuple[str, str]] = {}
    for t in found:
        at = t.there.kernel, t.there.sizes
        names[id(t)] = (at[0], f"{t.own.sizes} to {at[1]}") if at in several else at
    return names


def _label(kernel: str, sizes: str, alone: bool) -> str:
    short = style.truncate([kernel], style.NAME)
    return short if alone and len(sizes) > _SIZES else f"{short}\n{style.truncate([sizes], _SIZES)}"
