"""The best version of one source for every device and sizes in a database.

    finals of the newest sweep        the winner; without finals the fastest version of the screening
    slower than the default there     the default itself

Rows of this lowering go before those of an older one, then contexts with finals, then the newest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from looptune.core.floating_point import DEFAULT, Floats
from looptune.core.version import lowering
from looptune.ir.nodes import Scalar
from looptune.ir.simplify import is_integer
from looptune.runtime.outcome import Timed
from looptune.runtime.timing import Summary, summary
from looptune.schedule.directive_lines import canonical_text
from looptune.tune.results.winner import winner
from looptune.tune.store.searches import VERSIONS
from looptune.tune.store.source_hash import source_hash
from looptune.tune.store.store import Context, Row, Store

if TYPE_CHECKING:
    from looptune.frontend import Unit

_FLOATS = ("reassociate", "contract")
SLOWER = 1.05
"""Times of the sequential loops, which are timed apart."""
_OTHERS = ("hand-written", "library")
"""What else runs in finals; their rows have a hash behind the name."""


@dataclass(frozen=True, slots=True)
class BestVersion:
    """The best version at one size on one device.

    ``values`` are all scalar parameters at which it was measured, ``sizes`` the integers among them. ``default_us`` is
    None if the default was not measured; ``finished``: seconds since 1970; ``command`` measures a version again.
    """

    context: Context
    values: Mapping[str, int | float]
    sizes: Mapping[str, int]
    cores: int
    directives: str
    time: Summary
    default_us: float | None
    final: bool
    finished: float
    command: str
    sequential_us: float | None = None

    @property
    def slower(self) -> float | None:
        """Return by which factor the version is slower than the sequential loops on one core, where it is."""
        if self.sequential_us is None or self.time.median_us <= SLOWER * self.sequential_us:
            return None
        return self.time.median_us / self.sequential_us


def best_versions(store: Store, unit: Unit, target: str, floats: Floats = DEFAULT) -> tuple[BestVersion, ...]:
    """Return the best version for each device and sizes, ordered by device name and sizes.

    Of what was measured with these ``floats``.
    """
    asked = floats.options(target)
    known = store.rows(kernel=unit.codelet.name, source_hash=source_hash(unit), target=target)
    groups: dict[tuple[str, int, str, tuple[int, ...]], dict[str, list[Row]]] = {}
    whole = [p.name for p in unit.codelet.params if isinstance(p, Scalar) and is_integer(p.dtype)]
    for row in known:
        options = {"reassociate": True, **json.loads(row.context.options)}
        if {k: options[k] for k in _FLOATS if k in options} != asked or not isinstance(row.outcome, Timed):
            continue
        values = json.loads(row.context.sizes)
        if not values.keys() >= set(whole):
            continue
        sizes = tuple(int(values[name]) for name in whole)
        place = (row.context.device, int(options.get("cores", 0)), row.context.capability, sizes)
        groups.setdefault(place, {}).setdefault(row.context.hash, []).append(row)
    commands = store.commands()
    found = []
    for place in sorted(groups):
        _, cores, _, sizes = place
        rows = max(groups[place].values(), key=_worth)
        found.append(_won(rows, cores, dict(zip(whole, sizes, strict=True)), commands))
    return tuple(m for m in found if m is not None)


def _worth(rows: Sequence[Row]) -> tuple[bool, bool, float]:
    """Return a rank of the rows of one context against those of another."""
    finals = any(row.role == "final" for row in rows)
    context = rows[0].context
    return context.lowering == lowering(context.target), finals, max(_finished(row) for row in rows)


def _won(rows: Sequence[Row], cores: int, sizes: Mapping[str, int], commands: Mapping[str, str]) -> BestVersion | None:
    """Return the winner, or None where only hand-written kernels and the original loops were timed."""
    finals = [row for row in rows if row.role == "final" and row.directives.split(" ")[0] not in _OTHERS]
    newest = max(finals, key=_finished).sweep if finals else ""
    among = [r for r in finals if r.sweep == newest] if finals else [r for r in rows if r.role in VERSIONS]
    times = {row.directives: row.outcome.times_us for row in among if isinstance(row.outcome, Timed)}
    if not times:
        return None
    medians = {text: summary(us).median_us for text, us in times.items()}
    best = winner(times, list(times))[0] if finals else min(medians, key=lambda text: (medians[text], len(text), text))
    if medians.get("", medians[best]) < medians[best]:
        best = ""
    row = next(r for r in among if r.directives == best)
    directives = canonical_text(best, "configuration")
    return BestVersion(
        row.context, json.loads(row.context.sizes), sizes, cores, directives, summary(times[best]),
        medians.get(""), bool(finals), _finished(row), commands.get(row.sweep, ""), _alone(rows),
    )  # fmt: skip


def _alone(rows: Sequence[Row]) -> float | None:
    """Return what the sequential loops took on one core, by the newest row."""
    own = [row for row in rows if row.role == "sequential" and isinstance(row.outcome, Timed)]
    newest = max(own, key=_finished, default=None)
    return newest.median_us if newest is not None else None


def _finished(row: Row) -> float:
    return row.started if row.finished is None else row.finished
