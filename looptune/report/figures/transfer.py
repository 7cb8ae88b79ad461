"""The figure of the best of one device on another.

a panel for each place      a group of bars for each kernel, a bar for each other device, then their geometric means
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from looptune.report.figures import style
from looptune.report.figures.style import CYCLE, FAINT, INK
from looptune.report.transfer_table import Transfer, mean

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
