"""The work of ``looptune build``: from a file and a database to the text of a module or C file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from looptune.core.errors import UsageError
from looptune.core.floating_point import DEFAULT, Floats
from looptune.core.si_units import time_text
from looptune.deploy import c_source, jax_module, python_module
from looptune.deploy.best_versions import BestVersion, best_versions
from looptune.deploy.c_timing import CTimer, not_slower_own_text, timed_lines
from looptune.deploy.program.codelet_library import library_files
from looptune.deploy.python_module import ModuleRequest
from looptune.deploy.runtime.cpu_function import this_cpu
from looptune.deploy.runtime.lookup import Device
from looptune.ir.nodes import Array
from looptune.runtime.problem_sizes import integers
from looptune.runtime.targets import check_own, cuda_installed
from looptune.runtime.timing import times_text
from looptune.tune.store.store import Store

if TYPE_CHECKING:
    from looptune.core.settings import Objective
    from looptune.frontend import Unit

GPU, CPU = "numba-cuda", "numba-cpu"


Warn = Callable[[str], object]


def _silent(message: str) -> None:
    """Leave the warning unsaid."""


def as_python(
    unit: Unit, db: Path, target: str, command: str, *, default: bool = False, floats: Floats = DEFAULT,
    warn: Warn = _silent, torch: bool = False, objective: Objective = "time",
) -> str:  # fmt: skip
    """Return the text of a Python module; with ``torch``, its function is an operator of torch as well.

    ``target`` "auto" takes the target of the database, a GPU before the CPU; ``default`` means without the database.
    """
    found = _found(unit, db, target, default, floats, (GPU, CPU), objective)
    _warned(unit, found[1], warn, lambda row: python_module.runs_in_c(unit, row))
    return python_module.text(ModuleRequest(unit, found[0], found[1], command, floats, torch))


def as_c(
    unit: Unit, db: Path, target: str, command: str, *, default: bool = False, floats: Floats = DEFAULT,
    warn: Warn = _silent, cache: Path | None = None, objective: Objective = "time", links: bool = True,
) -> str:  # fmt: skip
    """Return the text of a C file; like ``as_python``, but the CPU is preferred to a GPU.

    With a ``cache`` for programs, texts are timed, and none is returned that is slower than the function of the file.
    ``links``: what is a part of a function has another name than the function, beside which it is linked.
    """
    name, rows = _found(unit, db, target, default, floats, (CPU, GPU), objective)
    _warned(unit, rows, warn, lambda row: row.context.target == CPU)
    here = this_cpu() if name == CPU else Device("", 0, "")
    nearest = dict(rows[-1].sizes) if rows else {}
    sizes = nearest | integers(unit.codelet, unit.values)
    unit = c_source.linkable(unit) if links else unit
    request = ModuleRequest(unit, name, rows, command, floats)
    tuned = c_source.text(request, here, sizes)
    static = () if isinstance(unit.head, str | None) else unit.head.static
    if static:
        warn(f"{unit.codelet.name}: other functions of the file use {', '.join(static)}, which is static: the C that "
             "is written is for the function's place in the file")  # fmt: skip
    return tuned if cache is None else _not_slower(request, here, sizes, tuned, cache, warn)


def as_jax(
    unit: Unit, db: Path, target: str, command: str, *, default: bool = False, floats: Floats = DEFAULT,
    warn: Warn = _silent, cache: Path | None = None, objective: Objective = "time",
) -> str:  # fmt: skip
    """Return the text of a Python module with a function of JAX; the arguments are those of ``as_c``.

    On a CPU it is the C of ``as_c``; a function of the file that has other parameters than the codelet, such as
    variables at file scope, becomes one with the codelet's, which is not timed.
    """
    name, rows = _found(unit, db, target, default, floats, (GPU, CPU), objective)
    request = ModuleRequest(unit, name, rows, command, floats)
    if name == GPU:
        _warned(unit, rows, warn, lambda row: False)
        return jax_module.text(request, jax_module.on_gpu(unit.codelet, library_files(request)))
    first, *others = unit.parts
    own = unit if jax_module.is_plain(unit) else replace(unit, head=None, parts=(replace(first, rows={}), *others))
    timed = cache if own is unit or (unit.head is None and not unit.rows) else None
    made = as_c(
        own, db, CPU, command, default=default, floats=floats, warn=warn, cache=timed, objective=objective, links=False
    )
    return jax_module.text(request, jax_module.on_cpu(own, made))


def _not_slower(
    request: ModuleRequest, here: Device, sizes: dict[str, int], tuned: str, cache: Path, warn: Warn
) -> str:
    """Return the first of three texts that is not slower than the function of the file, with its time."""
    unit = request.unit
    timer = CTimer.of(unit, sizes, request.floats, cache)
    if isinstance(timer, str):
        warn(f"the C that is written was not timed: {timer}")
        return tuned
    refused: list[str] = []
    last_us = 0.0
    first = "What was tuned" if request.measured else "The default"
    for what, one_core in ((f"{first} takes", False), ("The loops on one core take", True)):
        us = timer.time_us(c_source.text(request, here, sizes, one_core=one_core))
        if isinstance(us, str):
            warn(f"the C that is written was not timed: {us}")
            return tuned
        last_us = us
        if not timer.is_slower(us):
            return c_source.text(request, here, sizes, one_core=one_core, notes_of_time=timed_lines(timer, us, refused))
        refused.append(f"{what} {time_text(us)}, and {'are' if one_core else 'is'} not used.")
    own = not_slower_own_text(timer)
    if own is not None:
        warn(f"{unit.codelet.name}: what was made is slower than the function of the file, which is written as it is")
        return c_source.own_text(request, own[0], timed_lines(timer, own[1], refused))
    took, file_took = time_text(last_us), time_text(timer.file_us)
    warn(f"{unit.codelet.name}: {took}, and {file_took} for the function of the file: keep that one")
    return c_source.text(request, here, sizes, one_core=True, notes_of_time=timed_lines(timer, last_us, refused[:1]))


def header(unit: Unit) -> str:
    """Return a C header that declares the function which ``as_c`` makes."""
    return c_source.header(unit)


def _warned(unit: Unit, rows: Sequence[BestVersion], warn: Warn, instead: Callable[[BestVersion], bool]) -> None:
    """Warn of each version whose finals were disturbed, or that is slower than one core.

    ``instead`` says whether the sequential loops are shipped for it.
    """
    for row in rows:
        sizes = " ".join(f"{n}={v}" for n, v in row.sizes.items())
        where = f"{unit.codelet.name} {sizes} on {row.context.device}".replace("  ", " ")
        if row.disturbed:
            again = f"; `{row.command} --sweep` measures again" if row.command else ""
            warn(f"{where}: the finals were disturbed ({row.disturbed}): what is shipped was the fastest in the "
                 f"screening{again}")  # fmt: skip
        if row.slower is not None:
            how = ": the loops of the file are shipped as they are" if instead(row) else ""
            warn(f"{where} is slower than the sequential loops on one core: {times_text(row.slower)} times{how}")


def _found(
    unit: Unit, db: Path, target: str, default: bool, floats: Floats, order: Sequence[str], objective: Objective
) -> tuple[str, tuple[BestVersion, ...]]:
    """Return the target and what was measured on it, the best by the objective.

    Raises UsageError where that is nothing, saying what measures it.
    """
    check_own(target, "kernels are built for")
    if target not in ("auto", GPU, CPU):
        raise UsageError(f"looptune build makes modules for {GPU} and {CPU}: looptune emit prints {target}")
    if default:
        usual = GPU if cuda_installed() else CPU
        return (usual if target == "auto" else target), ()
    if not db.exists():
        raise UsageError(f"no database {db}: {_how(unit, target, objective)}")
    with Store.read(db) as store:
        for name in order if target == "auto" else (target,):
            rows = best_versions(store, unit, name, floats, objective)
            if rows:
                return name, rows
        what = "measurements" if objective == "time" else f"finals by {objective}"
        how = _how(unit, target, objective)
        raise UsageError(f"{db} has no {what} of {_named(unit)}{_others(store, unit)}: {how}")


def _named(unit: Unit) -> str:
    types = dict.fromkeys(p.dtype for p in unit.codelet.params if isinstance(p, Array))
    return f"{unit.codelet.name}{f' in {chr(32).join(types)}' if types else ''} as the file has it"


def _others(store: Store, unit: Unit) -> str:
    """Return what it has of other texts of the kernel, or in other types."""
    held = sorted({f"{row.context.dtype} for {row.context.target}" for row in store.rows(kernel=unit.codelet.name)})
    return f" (it has other texts, types or targets of this name: {', '.join(held)})" if held else ""


def _how(unit: Unit, target: str, objective: Objective) -> str:
    where = "" if target == "auto" else f" --target {target}"
    where += "" if objective == "time" else f" --objective {objective}"
    return f"`looptune run {unit.path} --sweep{where}` measures it; --untuned builds the default without measurements"
