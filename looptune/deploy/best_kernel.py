"""The best versions of a database, called in this process: ``looptune.compile(config="best")``.

sizes ─▶ look-up ─▶ plan, with the sizes as constants if they are those measured ─▶ built once ─▶ program
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

from looptune.backends.base import Backend, Program
from looptune.deploy import plans
from looptune.deploy.best_versions import BestVersion
from looptune.deploy.runtime.lookup import Device, Match, look_up
from looptune.lower.plan import Plan
from looptune.runtime import targets
from looptune.runtime.targets import CACHE
from looptune.schedule.analysis import Analysis

DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class SelectedPlan:
    """A version that was selected from the database for some sizes: its plan, source and program."""

    match: Match
    plan: Plan
    source: str
    program: Program


@dataclass(slots=True)
class BestKernel:
    """A kernel that runs the best measured version for its sizes; ``rows`` are its measurements on any device."""

    analysis: Analysis
    backend: Backend
    device: Device
    rows: tuple[BestVersion, ...]
    _plans: dict[str, Plan] = field(init=False, default_factory=dict)
    _table: list[Mapping[str, object]] = field(init=False, default_factory=list)
    _built: dict[str, tuple[str, Program]] = field(init=False, default_factory=dict)
    _warned: set[str] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        """Make every plan at once, so that an error in one shows here; plans are built at first use."""
        self._plans[DEFAULT] = plans.default(self.analysis, blocks=targets.specializes_sizes(self.backend.name, CACHE))
        for k, row in enumerate(self.rows):
            anywhere = plans.for_other_sizes(self.analysis, row)
            self._plans[f"exact {k}"] = plans.exact(self.analysis, row)
            self._plans |= {f"elsewhere {k}": anywhere} if anywhere is not None else {}
            self._table.append(
                {
                    "device": row.context.device, "cores": row.cores, "capability": row.context.capability,
                    "sizes": dict(row.sizes), "directives": row.directives, "time_us": row.time.median_us,
                    "default_us": row.default_us, "final": row.final, "plan": f"exact {k}",
                    "elsewhere": None if anywhere is None else f"elsewhere {k}",
                }
            )  # fmt: skip

    def at(self, sizes: Mapping[str, int]) -> SelectedPlan:
        """Return the version to run at these sizes, with one warning if nothing was measured there."""
        match = look_up(self._table, DEFAULT, self.device, sizes)
        kind = match.level
        if kind != "exact" and kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(f"{self.analysis.codelet.name}: {match.description(self.device, sizes)}", stacklevel=4)
        return self._chosen(match)

    def default(self) -> SelectedPlan:
        return self._chosen(Match(DEFAULT, None, DEFAULT))

    def _chosen(self, match: Match) -> SelectedPlan:
        plan = self._plans[match.plan]
        if match.plan not in self._built:
            binary = self.backend.build(plan)
            self._built[match.plan] = (binary.source, self.backend.load(binary))
        source, program = self._built[match.plan]
        return SelectedPlan(match, plan, source, program)
