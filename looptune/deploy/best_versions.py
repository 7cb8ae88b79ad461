"""The best version of one source for every device and sizes in a database.

    finals of the newest sweep        the winner; without finals, or if they were disturbed, the fastest version of
                                      the screening
    slower than the default there     the default itself
    by energy or EDP                  the winner of finals by that objective, and nothing without them

Rows of this version of the lowering are preferred to those of an older one, then contexts with finals, then the newest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from looptune.core.floating_point import DEFAULT, Floats
from looptune.core.settings import Objective
from looptune.core.version import lowering
from looptune.ir.def_use import integer_parameters
from looptune.runtime.outcome import Timed, WrongResult
from looptune.runtime.timing import Summary, summary
from looptune.schedule.directive_lines import canonical_text
from looptune.tune.store.searches import Search, by_context, disturbance, energies
from looptune.tune.store.source_hash import source_hash
from looptune.tune.store.store import Context, Row, Store

if TYPE_CHECKING:
    from looptune.frontend import Unit

_FLOATS = ("reassociate", "contract")
SLOWER = 1.05
"""Times of the sequential loops, which are timed apart."""


@dataclass(frozen=True, slots=True)
class BestVersion:
    """The best version at one size on one device.

    ``values`` are all scalar parameters at which it was measured, ``sizes`` the integers among them. ``default_us`` is
    None if the default was not measured; ``finished``: seconds since 1970; ``command`` measures a version again.
    ``disturbed``: what disturbed the finals, so that the times are those of the screening; "" for nothing.
    ``objective``: what chose it; ``joules``, ``default_joules``: the energy of one run, None where it is not known.
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
    disturbed: str = ""
    objective: Objective = "time"
    joules: float | None = None
    default_joules: float | None = None

    @property
    def slower(self) -> float | None:
        """Return by which factor the version is slower than the sequential loops on one core, where it is."""
        if self.sequential_us is None or self.time.median_us <= SLOWER * self.sequential_us:
            return None
        return self.time.median_us / self.sequential_us


def best_versions(
    store: Store, unit: Unit, target: str, floats: Floats = DEFAULT, objective: Objective = "time"
) -> tuple[BestVersion, ...]:
    """Return the best version by the objective for each device and sizes, ordered by device name and sizes.

    Of what was measured with these ``floats``.
    """
    asked = floats.options(target)
    known = store.rows(kernel=unit.codelet.name, source_hash=source_hash(unit), target=target)
    whole = integer_parameters(unit.codelet)
    groups: dict[tuple[str, int, str, tuple[int, ...]], list[Search]] = {}
    for search in by_context(row for row in known if isinstance(row.outcome, Timed | WrongResult)):
        context = search.context
        options = {"reassociate": True, **json.loads(context.options)}
        values = json.loads(context.sizes)
        if {k: options[k] for k in _FLOATS if k in options} == asked and values.keys() >= set(whole):
            sizes = tuple(int(values[name]) for name in whole)
            place = (context.device, int(options.get("cores", 0)), context.capability, sizes)
            if objective == "time" or search.best_by(objective) is not None:
                groups.setdefault(place, []).append(search)
    commands = store.commands()
    worth = partial(_worth, objective=objective)
    found = (_best(max(groups[place], key=worth), place[1], whole, commands, objective) for place in sorted(groups))
    return tuple(one for one in found if one is not None)


def _worth(search: Search, objective: Objective) -> tuple[bool, bool, float]:
    """Return a rank of what was measured in one context against what was in another."""
    rows = search.finals_by(objective)
    finals = bool(rows) and not disturbance(rows.values())
    context = search.context
    return context.lowering == lowering(context.target), finals, max(map(_finished, search.rows))


def _best(
    search: Search, cores: int, whole: Sequence[str], commands: Mapping[str, str], objective: Objective
) -> BestVersion | None:
    """Return the winner, or None where no version was measured that the objective can choose."""
    best = search.best_by(objective)
    if best is None:
        return None
    medians, joules = {t: time.median_us for t, time in best.times.items()}, energies(best.rows)
    is_slower = objective == "time" and medians.get("", inf) < medians[best.directives]
    won = "" if is_slower else best.directives
    row, alone, values = best.rows[won], search.sequential, json.loads(search.context.sizes)
    return BestVersion(
        search.context, values, {name: int(values[name]) for name in whole}, cores,
        canonical_text(won, "configuration"), summary(best.times[won].times_us), medians.get(""), best.is_final,
        _finished(row), commands.get(row.sweep, ""), None if alone is None else alone.median_us,
        best.disturbed, objective, *(None if t not in joules else joules[t].joules for t in (won, "")),
    )  # fmt: skip


def _finished(row: Row) -> float:
    return row.started if row.finished is None else row.finished
