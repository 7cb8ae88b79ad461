"""The best versions of a database, called in this process: ``looptune.compile(config="best")``.

sizes ─▶ look-up ─▶ plan ─▶ built once ─▶ program

On a GPU the sizes of a call are constants of its kernels, whether they are those that were measured or others: then the
plan is made and built at the first call with them, or in the background while calls run a program for any sizes.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Thread
from typing import Literal

from looptune.backends.base import Backend, Binary, Program
from looptune.core.errors import LooptuneError
from looptune.deploy import any_size_program, plans
from looptune.deploy.best_versions import BestVersion
from looptune.deploy.runtime.lookup import Device, Match, look_up
from looptune.lower.plan import Plan
from looptune.runtime import targets
from looptune.runtime.targets import CACHE
from looptune.schedule.analysis import Analysis

DEFAULT = "default"
MOST_SPECIALIZED = 64
"""Sets of sizes that kernels are built for; later ones run the program for any sizes."""
Specialize = Literal["background"] | bool
"""Whether kernels are built for sizes that were not measured: True, at their first call."""


@dataclass(frozen=True, slots=True)
class SelectedPlan:
    """A version that was selected from the database for some sizes: its plan, source and program."""

    match: Match
    plan: Plan
    source: str
    program: Program


@dataclass(slots=True)
class BestKernel:
    """A kernel that runs the best measured version for its sizes.

    ``rows`` are its measurements on any device; ``specialize``: whether kernels are built for other sizes.
    """

    analysis: Analysis
    backend: Backend
    device: Device
    rows: tuple[BestVersion, ...]
    specialize: Specialize = True
    _plans: dict[str, Plan] = field(init=False, default_factory=dict)
    _table: list[Mapping[str, object]] = field(init=False, default_factory=list)
    _built: dict[str, tuple[str, Program]] = field(init=False, default_factory=dict)
    _warned: set[str] = field(init=False, default_factory=set)
    _specialized: dict[tuple[str, tuple[int, ...]], _AtSizes] = field(init=False, default_factory=dict)
    _sizes: set[str] = field(init=False, default_factory=set)
    _blocks: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        """Make every plan at once, so that an error in one shows here; plans are built at first use."""
        blocks = self._blocks = targets.specializes_sizes(self.backend.name, CACHE)
        self.specialize = blocks and self.specialize
        self._sizes = plans.size_names(self.analysis.codelet)
        self._plans[DEFAULT] = plans.default(self.analysis, blocks=blocks)
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
        measured = match.configuration is not None and match.configuration["sizes"] == sizes
        made = None if measured or not self.specialize else self._at_sizes(match, sizes)
        return self._chosen(match) if made is None else made

    def default(self) -> SelectedPlan:
        return self._chosen(Match(DEFAULT, None, DEFAULT))

    def _at_sizes(self, match: Match, sizes: Mapping[str, int]) -> SelectedPlan | None:
        """Return the match built for these sizes, or None where that is impossible or has not ended."""
        constant = {name: value for name, value in sizes.items() if name in self._sizes}
        key = (match.plan, tuple(constant.values()))
        if key not in self._specialized:
            if len(self._specialized) >= MOST_SPECIALIZED:
                return None
            directives = "" if match.configuration is None else match.configuration["directives"]
            plan = plans.specialized(self.analysis, directives, constant)
            self._specialized[key] = _AtSizes(match, plan, _built(self.backend, plan, self.specialize == "background"))
        found = self._specialized[key]
        why = found.failure
        if why is not None and why not in self._warned:
            self._warned.add(why)
            at = " ".join(f"{name}={value}" for name, value in constant.items())
            warnings.warn(f"{self.analysis.codelet.name} runs kernels for any sizes, because those for {at} could not "
                          f"be built: {why}", stacklevel=4)  # fmt: skip
        return found.selected(self.backend)

    def _chosen(self, match: Match) -> SelectedPlan:
        plan = self._plans[match.plan]
        if match.plan not in self._built:
            binary = self.backend.build(plan)
            program = any_size_program.load(self.backend, plan, binary, blocks=self._blocks)
            self._built[match.plan] = (binary.source, program)
        source, program = self._built[match.plan]
        return SelectedPlan(match, plan, source, program)


@dataclass(slots=True)
class _AtSizes:
    """A match with the sizes of a call as constants; ``binary`` is None where no device can run it."""

    match: Match
    plan: Plan | None
    binary: Future[Binary | None]
    loaded: SelectedPlan | None = None

    @property
    def failure(self) -> str | None:
        """Return why it could not be built, None where it was, where it exceeds a limit, or while it is built."""
        error = self.binary.exception() if self.binary.done() else None
        return None if error is None else f"{type(error).__name__}: {error}".splitlines()[0]

    def selected(self, backend: Backend) -> SelectedPlan | None:
        """Return the version with its program, or None if there is none, or it is still being built."""
        if self.loaded is None and self.plan is not None and self.binary.done() and self.failure is None:
            binary = self.binary.result()
            if binary is not None:
                program = any_size_program.load(backend, self.plan, binary, blocks=True)
                self.loaded = SelectedPlan(self.match, self.plan, binary.source, program)
        return self.loaded


def _built(backend: Backend, plan: Plan | None, background: bool) -> Future[Binary | None]:
    """Return the binary of a plan as it will be; without ``background`` it is there, or the error is raised."""
    made: Future[Binary | None] = Future()

    def build() -> None:
        try:
            made.set_result(None if plan is None else backend.build(plan))
        except LooptuneError:  # the program for any sizes runs
            made.set_result(None)
        except BaseException as error:
            if not background:
                raise
            made.set_exception(error)

    if background:
        Thread(target=build, daemon=True).start()
    else:
        build()
    return made
