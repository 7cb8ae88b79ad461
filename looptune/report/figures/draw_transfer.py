"""The figure of what the best of each device costs on the others; its data are in ``transfer``.

a panel for each place      a group of bars for each kernel, a bar for each other device, then their geometric means
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from looptune.report.figures import style
from looptune.report.figures.draw import NAME, value_at
from looptune.report.figures.style import CYCLE, FAINT, INK
from looptune.report.figures.transfer import Transfer, mean

_MEAN = "geometric\nmean"
_WIDTH = 0.8
"""Of a group of bars, whose distance is 1."""
_SIZES = 16
"""Characters of sizes that are shown."""
_FAILED = "fails there"


def transfers(found: Sequence[Transfer]) -> Any:
    """For each place what the best of each other one costs there, kernel by kernel."""
    places = _grouped(found)
    sources = _sources(found)
    colours = {source: CYCLE[k % len(CYCLE)] for k, source in enumerate(dict.fromkeys(sources.values()))}
    widest = max(len({_name(t) for t in same}) for same in places.values()) + 1
    figure, panels = style.panels(len(places), 1, inches=(max(4.5, 0.62 * widest + 1), 2.9))
    handles: dict[str, Any] = {}
    for axes, (title, same) in zip(panels, places.items(), strict=True):
        handles |= _panel(axes, same, sources, colours)
        style.titled(axes, title)
    style.labelled(figure, "", "time over that of the device's own best")
    last = {_FAILED: handles.pop(_FAILED)} if _FAILED in handles else {}
    style.legend(figure, {style.wrapped([f"best of {s}"], 2 * NAME): h for s, h in handles.items()} | last)
    return figure


def _grouped(found: Sequence[Transfer]) -> dict[str, list[Transfer]]:
    """By where they ran; without places of which no time is known."""
    groups: dict[str, list[Transfer]] = {}
    for t in found:
        title = f"on {t.there.device} ({t.there.context.target}), {t.there.result.dtype}"
        groups.setdefault(title, []).append(t)
    return {title: same for title, same in groups.items() if mean(same) is not None}


def _panel(
    axes: Any, found: Sequence[Transfer], of: Mapping[tuple[str, str], str], colours: Mapping[str, str]
) -> dict[str, Any]:
    """The bars; what stands for each source."""
    names = sorted({_name(t) for t in found if t.known})
    sources = [s for s in colours if any(of[_own(t)] == s for t in found)]
    handles: dict[str, Any] = {}
    costs = [t.cost for t in found if t.cost is not None]
    style.ratio_axis(axes, costs, room=0.14)
    for k, source in enumerate(sources):
        own = [t for t in found if of[_own(t)] == source and t.known]
        shift = _WIDTH * ((k + 0.5) / len(sources) - 0.5)
        bars = [(names.index(_name(t)) + shift, t.cost) for t in own if t.cost is not None]
        average = mean(own)
        bars += [] if average is None else [(len(names) + shift, average)]
        handles[source] = axes.bar(
            [x for x, _ in bars], [c - 1 for _, c in bars], _WIDTH / len(sources), bottom=1, color=colours[source]
        )
        for x, cost in bars:
            value_at(axes, x, cost, cost)
        for t in (t for t in own if t.cost is None):
            (handles[_FAILED],) = axes.plot(
                names.index(_name(t)) + shift, 0.04, "x", color=INK, markersize=5, linestyle="none",
                transform=axes.get_xaxis_transform(),
            )  # fmt: skip
    axes.axhline(1, color=INK, linewidth=0.8)
    axes.axvline(len(names) - 0.5, color=FAINT, linewidth=0.6)
    axes.set_xlim(-0.6, len(names) + 0.6)
    axes.set_xticks(range(len(names) + 1), [*(_label(name) for name in names), _MEAN], rotation=30, ha="right",
                    rotation_mode="anchor")  # fmt: skip
    return handles


def _own(t: Transfer) -> tuple[str, str]:
    return t.own.device, t.own.context.target


def _sources(found: Sequence[Transfer]) -> dict[tuple[str, str], str]:
    """What each is called: the device, with the target where it has several."""
    every = sorted({_own(t) for t in found})
    several = {device for device, _ in every if sum(device == other for other, _ in every) > 1}
    return {(device, target): f"{device} ({target})" if device in several else device for device, target in every}


def _name(t: Transfer) -> tuple[str, str]:
    """The kernel, and the sizes: those of the place, and of where it comes from if these differ."""
    same = t.own.context.sizes == t.there.context.sizes
    return t.there.kernel, t.there.sizes if same else f"{t.own.sizes} to {t.there.sizes}"


def _label(name: tuple[str, str]) -> str:
    return f"{style.wrapped([name[0]], NAME)}\n{style.wrapped([name[1]], _SIZES)}"
