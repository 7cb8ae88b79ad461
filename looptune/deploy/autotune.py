"""``@looptune.autotune``: a Python function that is a C kernel, tuned when it is first called with new sizes.

    @looptune.autotune("gemm.c", budget="20s")
    def gemm(ni, nj, nk, alpha, beta, C, A, B):
        "What it computes; the body is not run."

    first call at some sizes     a sweep over the file's space on random data, into the database; then the winner
    any later one, here or in    the winner
    another process

A sweep starts processes of its own that import the main module, as everything does that uses ``multiprocessing``: a
script calls the function under ``if __name__ == "__main__":``.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from multiprocessing import current_process
from pathlib import Path
from typing import TYPE_CHECKING, Any

from looptune.core.errors import UsageError
from looptune.core.renamed import renamed_argument
from looptune.core.settings import DATABASE
from looptune.deploy import compile
from looptune.deploy.best_versions import best_versions
from looptune.deploy.compile import CompiledKernel
from looptune.deploy.host_arrays import as_scalar
from looptune.frontend import Unit, load
from looptune.ir.nodes import Scalar
from looptune.ir.simplify import is_integer
from looptune.runtime.objective import objective_of
from looptune.runtime.targets import CACHE
from looptune.tune.execution.lab import Progress
from looptune.tune.execution.local_executor import LocalExecutor
from looptune.tune.execution.process import ProcessCache
from looptune.tune.session.budget import parse_budget
from looptune.tune.session.experiment import run
from looptune.tune.session.prepare import TuningRequest, prepare
from looptune.tune.store.store import Store

if TYPE_CHECKING:
    from looptune.deploy.runtime.lookup import Match

EVERY_S = 2.0
"""So many seconds pass between two lines of progress."""


@renamed_argument("strict_float", "reassociate", operator.not_)
def autotune(
    file: str | Path,
    *,
    budget: str = "20s",
    db: str | Path = DATABASE,
    target: str = "auto",
    kernel: str | None = None,
    defines: Mapping[str, str | int | float | None] | None = None,
    include_dirs: Sequence[str | Path] = (),
    dtype: str | None = None,
    space: str | Path | None = None,
    reassociate: bool = True,
    fp_contract: str | None = None,
    progress: bool | None = None,
    accept_disturbed: bool = False,
    objective: str = "time",
) -> Callable[[Callable[..., Any]], TunedFunction]:
    """Return a decorator for a function with the C parameters.

    ``budget``: of each search, a time or a number of versions; ``progress``: lines on stderr while it searches, by
    default where that is a terminal; the other arguments are those of ``compile`` and ``looptune run``. No Python file
    beside the C file is executed. What is returned is called like the function, and has ``match``: what the last call
    ran.

    UsageError where the budget is none, and when the function is decorated where its parameters are not the C
    function's.
    """
    parse_budget(budget)
    given = {} if defines is None else dict(defines)
    unit = load(Path(file), kernel=kernel, defines=given, include_dirs=include_dirs, dtype=dtype)
    macros = {name: None if value is None else str(value) for name, value in given.items()}
    request = TuningRequest(
        Path(file), kernel, macros, tuple(map(Path, include_dirs)), dtype, target, sweep=True,
        handwritten=False,
        space=None if space is None else Path(space), budget=budget, db=Path(db), reassociate=reassociate,
        fp_contract=fp_contract, accept_disturbed=accept_disturbed, objective=objective_of(objective),
    )  # fmt: skip
    shown = sys.stderr.isatty() if progress is None else progress

    def decorate(function: Callable[..., Any]) -> TunedFunction:
        _check(function, unit)
        return TunedFunction(function, unit, request, _ProgressLines(unit.codelet.name) if shown else _quietly)

    return decorate


def _check(function: Callable[..., Any], unit: Unit) -> None:
    wanted = [p.name for p in unit.codelet.params]
    has = list(inspect.signature(function).parameters)
    if has != wanted:
        name = getattr(function, "__name__", "the function")
        raise UsageError(f"{name}({', '.join(has)}) is to have the parameters of the C function: "
                         f"{unit.codelet.name}({', '.join(wanted)})")  # fmt: skip


@dataclass(repr=False)
class TunedFunction:
    """A function that tunes itself when it is first called; ``request`` is that of its sweeps, without sizes.

    ``kernel`` is what the last call ran, None before the first one.
    """

    function: Callable[..., Any]
    unit: Unit
    request: TuningRequest
    progress: Callable[[Progress], None]
    kernel: CompiledKernel | None = None
    known_values: set[tuple[int, ...]] = field(default_factory=set)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        """Take the name, the text and the module of the function."""
        functools.update_wrapper(self, self.function)

    @property
    def match(self) -> Match | None:
        """Return how well what the last call ran fits the device and the sizes, None before the first call."""
        return None if self.kernel is None else self.kernel.match

    def __repr__(self) -> str:
        ran = "not called yet" if self.kernel is None else repr(self.kernel).strip("<>")
        return f"<tuned function {self.unit.codelet.name}, {ran}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows of what the last call ran."""
        return escape(repr(self)) if self.kernel is None else self.kernel._repr_html_()

    def __call__(self, *given: Any, **named: Any) -> None:
        """Run the kernel, after a search where these sizes are new. TypeError and UsageError as of a function."""
        args = inspect.signature(self.function).bind(*given, **named).args
        pairs = zip(self.unit.codelet.params, args, strict=True)
        whole = [(p, a) for p, a in pairs if isinstance(p, Scalar) and is_integer(p.dtype)]
        sizes = {p.name: int(compile.scalar(p, as_scalar(a))) for p, a in whole}
        # One at a time: a kernel says of its last call what it matched.
        with self.lock:
            if self.kernel is None or tuple(sizes.values()) not in self.known_values:
                self.kernel = self._tuned(sizes)
                self.known_values.add(tuple(sizes.values()))
            self.kernel(*args)

    def _tuned(self, sizes: Mapping[str, int]) -> CompiledKernel:
        """Search for the best version, unless the database has one for these sizes on this device."""
        defines = {**self.request.defines, **{name: str(value) for name, value in sizes.items()}}
        request = replace(self.request, defines=defines)
        with ProcessCache() as spares, Store.open(request.db) as store:
            here = LocalExecutor(None, spares)
            model = here.models(request.target, CACHE, floats=request.floats, warm=False)[0]
            facts = model.facts
            place = (facts.name, facts.cores, dict(sizes))

            def is_known() -> bool:
                rows = best_versions(store, self.unit, model.target.name, request.floats, request.objective)
                return any((row.context.device, row.cores, row.sizes) == place and row.final for row in rows)

            if not is_known():
                _check_main(self.unit.codelet.name)
                made = run(prepare(request, here), store, self.progress, here)
                if not made.versions.get("timed"):
                    warnings.warn(
                        f"{self.unit.codelet.name}: no version was measured in a budget of {request.budget}: the next "
                        "process searches again",
                        stacklevel=3,
                    )
            objective = request.objective
            if objective != "time" and not is_known():
                warnings.warn(
                    f"{self.unit.codelet.name}: the finals chose nothing by {objective}, because they were disturbed "
                    "or no energy is known: the fastest version runs",
                    stacklevel=3,
                )
                objective = "time"
        return compile.compile(
            request.file, kernel=request.kernel, target=request.target, defines=defines,
            include_dirs=request.include_dirs, dtype=request.dtype, config="best", db=request.db,
            reassociate=request.reassociate, fp_contract=request.fp_contract, objective=objective,
        )  # fmt: skip


def _check_main(name: str) -> None:
    """Raise UsageError in a worker process that imports the user's script, which would start processes of its own."""
    if getattr(current_process(), "_inheriting", False):
        raise UsageError(f"{name} is called while a worker process imports this script: call it under "
                         'if __name__ == "__main__":')  # fmt: skip


@dataclass
class _ProgressLines:
    """Progress on stderr: a line at first, then one every EVERY_S seconds, and one at the end."""

    name: str
    last: float = -math.inf

    def __call__(self, progress: Progress) -> None:
        ended = progress.done >= progress.total
        if not ended and time.monotonic() - self.last < EVERY_S:
            return
        self.last = time.monotonic()
        best_us = None if progress.best is None else progress.best.median_us
        best = "" if best_us is None else f", best {best_us:.4g} us"
        left = "" if ended or progress.eta_s is None else f", {progress.eta_s:.0f} s left"
        print(f"looptune tunes {self.name}: {progress.done}/{progress.total} versions{best}{left}", file=sys.stderr)


def _quietly(progress: Progress) -> None:
    """Say nothing."""
