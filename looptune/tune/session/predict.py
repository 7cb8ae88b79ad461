"""The computations of ``looptune predict``: versions predicted on a chip, beside the measurements of a database.

file, directives ──▶ plan ──▶ estimate                               one version, kernel by kernel
file, space ──▶ configurations ──▶ estimates, times measured         all versions, and the correlation of the orders
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from looptune.backends.codegen.kernel import check_limits
from looptune.core.errors import DirectiveError, IllegalTransform, ParseError, ResourceError, UsageError
from looptune.frontend import Unit
from looptune.ir import operation_count
from looptune.ir.specialize import specialize
from looptune.lower.machine import MODEL
from looptune.lower.pipeline import finish, lower
from looptune.runtime import peak_rates, targets, work_bounds
from looptune.runtime.problem_sizes import Problem, integers, problem
from looptune.runtime.targets import CACHE
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import DirectiveLine, current_text, parse_lines
from looptune.schedule.suggest import schedule_with_suggestions
from looptune.tune.cost_model import devices
from looptune.tune.cost_model.devices import Chip
from looptune.tune.cost_model.estimate import estimate
from looptune.tune.cost_model.ranking import Prediction, Ranking, Version
from looptune.tune.session import find_space
from looptune.tune.space.pragma_choices import check_choices_decided
from looptune.tune.store.searches import Entry, Search, searches
from looptune.tune.store.source_hash import source_hash
from looptune.tune.store.store import Store, canonical_json

if TYPE_CHECKING:
    from looptune.lower.plan import Plan
    from looptune.tune.space.space import Configuration


@dataclass(frozen=True, slots=True)
class PredictionInput:
    """A codelet at one size on one chip; ``search`` has the newest measurements of it, None if there are none."""

    unit: Unit
    analysis: Analysis
    sized: Problem
    chip: Chip
    search: Search | None

    @property
    def sizes(self) -> dict[str, int]:
        return integers(self.unit.codelet, self.sized.values)

    @property
    def measured(self) -> Mapping[str, Entry]:
        """Return the measured versions by the text of their directives."""
        found = self.search.entries if self.search is not None else ()
        return {entry.configuration.text: entry for entry in found}

    def planned(self, placed: Sequence[DirectiveLine]) -> Plan:
        done = schedule(self.analysis, placed, self.sized.values)
        return lower(specialize(done.codelet, self.sizes), blocks=True)


def prediction_input(unit: Unit, db: Path | None, device: str | None, *, reassociate: bool = True) -> PredictionInput:
    """Return the input of a prediction; ``db`` is the database with measurements, or None.

    The chip is ``device``; if that is None, the one on which the codelet was measured, else this machine's GPU, else
    the first one known. Raises UsageError if sizes or the device are not known.
    """
    sized = problem(unit.codelet, unit.values)
    found = [] if db is None else _searches(db, unit, sized)
    chip = devices.named(device) if device is not None else None
    same = [s for s in found if chip is None or s.context.device == chip.name]
    search = same[-1] if same else None
    if chip is None:
        chip = _chip(search)
    return PredictionInput(unit, Analysis(unit.codelet, reassociate), sized, chip, search)


def _searches(db: Path, unit: Unit, sized: Problem) -> list[Search]:
    """Of this source at these sizes, on GPUs, the newest last."""
    with Store.read(db) as store:
        rows = [r for r in store.rows(kernel=unit.codelet.name) if r.context.sizes == canonical_json(sized.values)]
    source = source_hash(unit)
    own = [s for s in searches(rows) if s.context.source_hash == source and s.context.capability.startswith("sm_")]
    return sorted(own, key=lambda search: search.started)


def _chip(search: Search | None) -> Chip:
    """Return that of the search, with what this machine has measured of it; else one that is here."""
    here = [f for f in targets.devices() if f.arch.startswith("sm_")] if not targets.gpu_missing() else []
    name = search.context.device if search is not None else next((f.name for f in here), devices.DEFAULT.name)
    chip = next((c for c in devices.CHIPS if c.name == name), None)
    if chip is None:
        raise UsageError(f"nothing is known of {name}: name a GPU with --device")
    peaks = next((p for f in here if f.name == name and (p := peak_rates.cached_rates(f, CACHE)) is not None), None)
    return chip if peaks is None else chip.measured(peaks)


def predict_version(what: PredictionInput, lines: Sequence[str]) -> Prediction:
    """Return the prediction for the version with these directives.

    Registers are those that the compiler reports, if it is installed.
    """
    lines = current_text("\n".join(lines)).splitlines()
    placed = parse_lines(lines)
    check_choices_decided(what.unit, placed)
    schedule_with_suggestions(what.analysis, placed, what.sized.values)
    planned = what.planned(placed)
    check_limits(finish(planned, MODEL))
    resources = targets.resources(planned, what.chip.arch, CACHE)
    registers = {r.kernel: r.registers for r in resources}
    made = estimate(planned, what.sizes, what.chip, registers=registers)
    entry = what.measured.get("\n".join(line for line in lines if line.strip()))
    least = work_bounds.minimum_work(what.analysis.model, what.sizes)
    operations = operation_count.count(what.unit.codelet.body, what.sizes)
    return Prediction(what.unit.codelet.name, what.unit.path, what.sized.values, tuple(lines), made, operations,
                     least.bytes, registers, None if entry is None else entry.measured.cost_us)  # fmt: skip


def ranking(what: PredictionInput, file: Path, space: Path | None) -> Ranking:
    """Return the legal versions of the space that fit the device, without duplicates, by predicted time."""
    measured, found, refused = what.measured, dict[object, Version](), 0
    for configuration in find_space.find_space(file, space, what.unit, what.analysis, gpu=True):
        version = _version(what, configuration, measured.get(configuration.text))
        if version is None:
            refused += 1
            continue
        key, one = version
        found.setdefault(key, one)
    versions = sorted(found.values(), key=lambda v: v.predicted_us)
    return Ranking(what.unit.codelet.name, what.unit.path, what.sized.values, what.chip, tuple(versions), refused)


def _version(what: PredictionInput, configuration: Configuration, entry: Entry | None) -> tuple[object, Version] | None:
    """None where it is refused. Equal keys are one version: that of the source or, not measured, of the plan."""
    try:
        planned = what.planned(parse_lines(configuration.lines, "configuration"))
        check_limits(finish(planned, MODEL))
    except (DirectiveError, IllegalTransform, ParseError, ResourceError):
        return None
    seen = entry.facts.get("registers") if entry is not None else None
    registers = {k.name: int(seen) for k in planned.kernels} if seen is not None else {}
    made = estimate(planned, what.sizes, what.chip, registers=registers)
    measured = entry.measured if entry is not None else None
    whole = measured is not None and measured.is_complete
    us = measured.cost_us if measured is not None else None
    key = measured.source if measured is not None else planned.steps
    return key, Version(configuration.text, made.time_us, made.bound, us, whole)
