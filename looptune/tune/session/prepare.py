"""Everything that is known before the first run: the user's request, read, analysed and given its target."""

from __future__ import annotations

import math
import os
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import numpy as np

from looptune.core import cache_folder, plugins
from looptune.core.errors import LooptuneError, UsageError
from looptune.core.escape import printable, utf8
from looptune.core.floating_point import Floats, floats_of_options
from looptune.core.settings import DATABASE, FINALS_S, TIMEOUT_S, Objective, SearchCompiler
from looptune.core.version import lowering, toolchain
from looptune.frontend import Unit, load
from looptune.ir import interpreter, operation_count
from looptune.ir.nodes import Array, Codelet, Expr, Scalar
from looptune.ir.specialize import specialize
from looptune.lower.plan import evaluate_size
from looptune.poly.out_of_bounds import undecided_accesses
from looptune.poly.reach_data import access_records, always_accessed
from looptune.poly.scop import build
from looptune.runtime import inputs
from looptune.runtime.array_reach import array_reaches, too_short_message
from looptune.runtime.device import cores
from looptune.runtime.host_program import RecordedCall, record
from looptune.runtime.problem_sizes import (
    MOST,
    Problem,
    TooManyStatements,
    at_most,
    edge_sizes,
    integers,
    is_interpretable,
    prime_sizes,
    problem,
    screening_sizes,
)
from looptune.runtime.targets import CACHE, Model
from looptune.schedule.directive_lines import current_text, parse_lines, renamed_words
from looptune.schedule.oversized import oversized_directives
from looptune.schedule.suggest import schedule_with_suggestions
from looptune.tune import strategies
from looptune.tune.execution.local_executor import HERE
from looptune.tune.execution.pool import default_jobs
from looptune.tune.job import Job
from looptune.tune.measure.evaluate import KernelBuilder, idle
from looptune.tune.measure.handwritten import find_kernels
from looptune.tune.measure.reference import ReferenceResult, describe_reference, text_of
from looptune.tune.results.studies import KernelStudy
from looptune.tune.session import dump, find_space
from looptune.tune.session.budget import DERIVATION_SHARE, FINALS_SHARE, Budget, energy_seconds, parse_budget
from looptune.tune.space.pragma_choices import check_choices_decided
from looptune.tune.space.space import Configuration, Space
from looptune.tune.store.source_hash import source_hash
from looptune.tune.store.store import Context, canonical_json

if TYPE_CHECKING:
    from looptune.runtime.device import DeviceInfo
    from looptune.tune.execution.executor import Executor

LIGHTER = ("LARGE_DATASET", "STANDARD_DATASET", "MEDIUM_DATASET", "SMALL_DATASET", "MINI_DATASET")
"""PolyBench's names for sizes, largest first."""
CPU_BUDGET = Budget(count=108)
"""Versions tried on a CPU unless the user says otherwise: what two cores do in about two minutes."""
STARTED_EARLY = 16
"""Compiling processes that are started while a file is analysed: a short search has no use for more."""
SCREENED_FLOPS = 4e9
"""Beyond this a slow version takes seconds on a GPU too: it is tried at reduced sizes first."""
HEAVY_FLOPS = 1e9
"""Beyond this one run can take seconds on a few cores, and a sweep over a hundred versions an hour."""


@dataclass(frozen=True, slots=True)
class TuningRequest:
    """The user's request; see ``looptune run --help`` for each field.

    ``started_s``: the seconds of its budget that had passed before.
    """

    file: Path
    kernel: str | None = None
    defines: Mapping[str, str | None] = field(default_factory=dict)
    include_dirs: tuple[Path, ...] = ()
    dtype: str | None = None
    target: str = "auto"
    sweep: bool = False
    space: Path | None = None
    strategy: str | None = None
    budget: str | None = None
    jobs: int | None = None
    timeout_s: float = TIMEOUT_S
    finals_s: float = FINALS_S
    accept_disturbed: bool = False
    energy: bool = False
    objective: Objective = "time"
    search_compiler: SearchCompiler = "nvrtc"
    seed: int = 0
    fresh: bool = False
    reassociate: bool = True
    fp_contract: str | None = None
    flush_cache: bool = True
    early_stop: bool = True
    ablation: bool = False
    handwritten: bool = True
    db: Path = DATABASE
    directives: tuple[str, ...] = ()
    transfer_from: tuple[KernelStudy, ...] = ()
    data: tuple[str, ...] = ()
    inputs_from_main: bool = False
    dump: tuple[str, ...] = ()
    cluster: str | None = None
    devices: str | None = None
    command: str = ""
    started_s: float = 0.0

    @property
    def floats(self) -> Floats:
        return floats_of_options(strict=not self.reassociate, contract=self.fp_contract)


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """Everything that is known before the first run.

    ``annotated`` is the configuration of the file as the user gave it; ``name``: the kernel's name in reports;
    ``reference``: what versions are compared with; ``prepared_s``: the seconds that the preparation took.
    """

    request: TuningRequest
    unit: Unit
    job: Job
    model: Model
    context: Context
    space: Space
    budget: Budget
    annotated: Configuration
    name: str
    notes: tuple[str, ...] = ()
    reference: str = ""
    warnings: tuple[str, ...] = ()
    prepared_s: float = 0.0

    @property
    def facts(self) -> DeviceInfo:
        return self.model.facts

    @property
    def sizes(self) -> dict[str, int]:
        return integers(self.job.codelet, self.job.problem.values)

    @property
    def jobs(self) -> int:
        """Return the number of compiling processes.

        On a GPU one core is reserved for measuring; on a CPU nothing is measured while versions compile.
        """
        if self.request.jobs is not None:
            return self.request.jobs
        return default_jobs() if self.job.target.specializes_sizes else cores()

    @property
    def by_hand(self) -> Path | None:
        """Return the Python file of hand-written kernels for the finals, or None if there is none or none is wanted."""
        return _by_hand(self.request)

    @property
    def transfer_sources(self) -> tuple[KernelStudy, ...]:
        """Return the studies of these loops in this type in other databases.

        They were measured on another device or target or at other sizes.
        """
        c = self.context
        alike = [s for s in self.request.transfer_from if _of(s, c) and s.context.source_hash == c.source_hash]
        return tuple(s for s in alike if _where(s.context) != _where(c))


def single_version_command(prepared: PreparedRun) -> str:
    """Return the command that measures one version of this kernel, at these sizes; the directives are added later.

    Sizes and target are those that were chosen, so that it does not depend on what a sweep makes of no sizes.
    """
    request = prepared.request
    given: list[object] = ["looptune", "run", request.file]
    given += [] if request.kernel is None else ["--kernel", request.kernel]
    given += [a for name, value in prepared.unit.defines.items() for a in ("-D", f"{name}={value}")]
    given += [a for folder in request.include_dirs for a in ("-I", folder)]
    given += [] if request.dtype is None else ["--dtype", request.dtype]
    given += ["--target", prepared.job.target.name]
    given += [] if request.cluster is None else ["--cluster", request.cluster]
    given += ["--devices", prepared.model.numbers[0]] if any(prepared.model.numbers[:1]) else []
    given += [a for text in request.data for a in ("--data", text)]
    flags = {
        "--inputs-from-main": request.inputs_from_main,
        "--no-reassociate": not request.reassociate,
        "--no-flush-cache": not request.flush_cache,
        "--accept-disturbed": request.accept_disturbed,
    }
    given += [flag for flag, said in flags.items() if said]
    given += [] if request.fp_contract is None else ["--fp-contract", request.fp_contract]
    given += ["--seed", request.seed] if request.seed else []
    given += ["--timeout", f"{request.timeout_s:g}"] if request.timeout_s != TIMEOUT_S else []
    given += ["--finals-timeout", f"{request.finals_s:g}"] if request.finals_s != FINALS_S else []
    return shlex.join(map(str, given))


def prepare(request: TuningRequest, executor: Executor = HERE) -> PreparedRun:
    """Prepare one run: ``prepare_all`` for the first model."""
    return prepare_all(request, executor)[0]


def prepare_all(request: TuningRequest, executor: Executor = HERE) -> tuple[PreparedRun, ...]:
    """Read and analyse the file and choose the target; mistakes of the user are reported here, before a measurement.

    Return one run for each model of device that the executor has for the target.
    """
    begun = time.monotonic()
    if request.strategy is not None:
        strategies.named(request.strategy).check()
    models = executor.models(request.target, CACHE, floats=request.floats, warm=not request.flush_cache)
    if not request.sweep or request.search_compiler == "own":
        models = tuple(replace(model, target=replace(model.target, search_backend=None)) for model in models)
    target = models[0].target
    given = parse_budget(request.budget) if request.budget is not None else None
    early = request.sweep and given is not None and given.seconds is not None and target.specializes_sizes
    if early:
        jobs = default_jobs() if request.jobs is None else request.jobs
        executor.start_processes(models, min(jobs, STARTED_EARLY), idle)
    unit, notes = (
        _lighter(request, _load(request)) if request.sweep and not target.specializes_sizes else (_load(request), ())
    )
    _check_sizes(request, unit)
    _check_memory(unit.codelet, unit.values)
    _check_reach(unit.codelet, unit.values)
    size = _problem(request, unit)
    needed = (_by_hand(request), size.data)
    executor.require([path for path in needed if path is not None], target.name)
    budget = given if given is not None else Budget() if target.specializes_sizes else CPU_BUDGET
    finals_s = request.finals_s if budget.seconds is None else min(request.finals_s, budget.seconds / FINALS_SHARE)
    seconds = math.inf if budget.seconds is None else budget.seconds
    text, why = text_of(unit, CACHE, request.floats)
    limited = target.specializes_sizes or budget.seconds is not None
    heavy = _heavy(unit, size)
    # At these sizes nothing but the text can say what is right.
    large = None
    if text is not None and limited and (heavy or target.specializes_sizes):
        large = screening_sizes(unit.codelet, size)
    job = Job(
        unit.codelet, size, prime_sizes(unit.codelet, size) if large is None else large, target, CACHE, request.seed,
        request.floats.reorder, screens=large is not None and heavy, cuts=request.early_stop,
        finals_s=finals_s, finals_end=budget.seconds is not None,
        accept_disturbed=request.accept_disturbed, energy=request.energy or request.objective != "time",
        energy_s=energy_seconds(seconds, request.objective), text=text,
        reference_s=_reference_s(budget) if limited else None,
        edge_problems=edge_sizes(unit.codelet, size),
    )  # fmt: skip
    context = _context(request, unit, job, models[0].facts)
    lab = KernelBuilder(job, context)
    if early and request.cluster is None:
        # The device's process needs their results, and the derivation has one core.
        Thread(target=ReferenceResult(job, job.problem, job.seed).run_text, daemon=True).start()
    space = _space(request, unit, lab, seconds / DERIVATION_SHARE)
    given_lines = current_text("\n".join(request.directives)).splitlines()
    annotated = Configuration(tuple(line for line in given_lines if line.strip()))
    placed = parse_lines(annotated.lines, "configuration")
    schedule_with_suggestions(lab.analysis, placed, job.problem.values)
    for _, refusal in oversized_directives(
        lab.analysis, placed, job.problem.values, gpu=target.name in ("numba-cuda", "cuda-c")
    ):
        raise refusal
    name = _name(request, unit)
    first = PreparedRun(
        request, unit, job, models[0], context, space, budget, annotated, name, notes,
        reference=describe_reference(job, why),
        warnings=(*unit.warnings, *renamed_words(unit.codelet, request.directives), *_may_leave(unit.codelet, size)),
    )  # fmt: skip
    first = replace(
        first, notes=(*notes, *_said(cache_folder.choose_folder()[1]), *_missed(first), *_named_by_hand(first))
    )
    first = replace(first, prepared_s=time.monotonic() - begun)
    return (first, *(_on(first, model) for model in models[1:]))


def _check_memory(codelet: Codelet, values: Mapping[str, int | float]) -> None:
    """Raise UsageError, with both numbers, if the arrays of these sizes do not fit in this machine's memory."""
    sizes, have = integers(codelet, values), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    total = 0
    for p, elements in _lengths(codelet, sizes):
        needs = elements * np.dtype(p.dtype).itemsize
        total += needs
        what = f"{p.name} would need {_bytes(needs)}" if needs > have else f"the arrays would need {_bytes(total)}"
        if total > have:
            raise UsageError(f"{what}, this machine has {_bytes(have)}: choose smaller sizes with -D", p.span)


def _lengths(codelet: Codelet, sizes: Mapping[str, int]) -> Iterator[tuple[Array, int]]:
    """Yield the arrays whose number of elements is known, with that number."""
    for p in (p for p in codelet.params if isinstance(p, Array)):
        extents = [None if e is None else _extent(e, sizes) for e in p.shape]
        known = [max(0, n) for n in extents if n is not None]
        if len(known) == len(extents):
            yield p, math.prod(known)


def _check_reach(codelet: Codelet, values: Mapping[str, int | float]) -> None:
    """UsageError, before anything is compiled, where the loops surely leave an array at these sizes."""
    sizes = integers(codelet, values)
    reach = array_reaches(access_records(codelet), sizes)
    for p, elements in _lengths(codelet, sizes):
        wrong = too_short_message(p.name, elements, reach.get(p.name))
        if wrong is not None:
            raise UsageError(f"{wrong}; `looptune check` shows where", p.span)


def _check_passed(codelet: Codelet, recorded: RecordedCall) -> None:
    """Check the arrays that the program passes.

    Raises UsageError if one is shorter than the loops surely reach, or is written and overlaps another.
    """
    looked_at = access_records(codelet)
    reach = array_reaches(looked_at, integers(codelet, recorded.scalars))
    whole = always_accessed(codelet, looked_at)
    ends: list[tuple[int, int, Array]] = []
    for p in (p for p in codelet.params if isinstance(p, Array) and p.name in recorded.allocations):
        place, item, mine = recorded.allocations[p.name], np.dtype(p.dtype).itemsize, reach.get(p.name)
        if place.rows is not None:
            row = recorded.arrays[p.name][0].nbytes if len(recorded.arrays[p.name]) else 0
            ends += [(start, start + row, p) for start in place.rows if start]
            continue
        if place.bytes < recorded.arrays[p.name].nbytes:
            wrong = too_short_message(p.name, place.bytes // item, mine)
            if wrong is not None:
                raise UsageError(f"as the program calls {codelet.name}, {wrong}", p.span)
        items = place.bytes // item if mine is None or p.name not in whole else mine.most + 1
        ends.append((place.address, place.address + items * item, p))
    _check_ends(codelet, sorted(ends, key=lambda e: e[:2]))


def _check_ends(codelet: Codelet, ends: Sequence[tuple[int, int, Array]]) -> None:
    """Raise UsageError if two pieces of memory, in the order of their addresses, overlap and one is written."""
    before: list[tuple[int, Array]] = []
    for start, end, p in ends:
        before = [(last, q) for last, q in before if last > start]
        for _, q in before:
            if start < end and (p.io != "in" or q.io != "in"):
                one, other = (p, q) if p.io != "in" else (q, p)
                what = (
                    f"two rows of {p.name} overlap"
                    if p is q
                    else f"{one.name}, which is written, overlaps {other.name}"
                )
                raise UsageError(
                    f"as the program calls {codelet.name}, {what}: looptune assumes that arrays do not overlap, so "
                    "pass a copy of one of them", one.span
                )  # fmt: skip
        before.append((end, p))


def _may_leave(codelet: Codelet, size: Problem) -> Iterator[str]:
    """One warning of the accesses of which the analysis cannot tell whether they are inside their arrays.

    UsageError where the user's data are such that they are not, if the interpreter can be asked.
    """
    found = undecided_accesses(build(specialize(codelet, integers(codelet, size.values))))
    if not found:
        return
    if size.data is not None and is_interpretable(codelet, size):
        try:
            with suppress(TooManyStatements):
                interpreter.run(codelet, size.arrays(codelet, 0), size.values, at_most(MOST))
        except AssertionError as left:
            raise UsageError(
                f"with these data the loops access memory outside an array: {left}", found[0].span
            ) from None
    more = f" (and {len(found) - 1} more: `looptune check --legal-space`)" if found[1:] else ""
    yield f"{found[0].span}: {found[0]}, and no kernel checks it{more}"


def _extent(e: Expr, sizes: Mapping[str, int]) -> int | None:
    """None where it depends on what is not known."""
    try:
        return evaluate_size(e, sizes)
    except (KeyError, ZeroDivisionError):
        return None


def _bytes(number: int) -> str:
    """Return a number of bytes as text.

    >>> _bytes(4 * 10**12), _bytes(24 * 10**9)
    ('4 TB', '24 GB')
    """
    for unit, size in (("TB", 10**12), ("GB", 10**9)):
        if number >= size:
            return f"{number / size:.3g} {unit}" if number < 10**6 * size else f"{number / size:.2e} {unit}"
    return f"{number / 1e6:.3g} MB"


def _said(note: str) -> tuple[str, ...]:
    return (note,) if note else ()


def _by_hand(request: TuningRequest) -> Path | None:
    return find_kernels(request.file) if request.handwritten else None


def _named_by_hand(prepared: PreparedRun) -> Iterator[str]:
    """Name the Python file that is going to run, before it does."""
    if (path := prepared.by_hand) is not None:
        shown = printable(str(prepared.request.file.parent / path.parent.name / path.name))
        yield f"{shown} contains hand-written kernels and is run; use --no-handwritten to skip it"


def _of(study: KernelStudy, context: Context) -> bool:
    return (study.context.kernel, study.context.dtype) == (context.kernel, context.dtype)


def _where(context: Context) -> tuple[str, ...]:
    return context.device, context.target, context.sizes


def _missed(prepared: PreparedRun) -> Iterator[str]:
    """Yield why a kernel has no transferred configurations though other databases are given."""
    also, c = prepared.request.transfer_from, prepared.context
    if not also or prepared.transfer_sources:
        return
    named = sorted({f"{s.kernel} {s.context.dtype}" for s in also})
    if any(_of(s, c) for s in also):
        yield f"--transfer-from: of {prepared.name} there is only what was measured here, or of other loops"
    else:
        yield f"--transfer-from: no {prepared.name} in {c.dtype}: there are {', '.join(named)}"


def _reference_s(budget: Budget) -> float | None:
    """Return how long the original loops may run at the user's sizes: a quarter of the time that a sweep has."""
    return None if budget.seconds is None else budget.seconds / 4


def _heavy(unit: Unit, size: Problem) -> bool:
    """Return whether slow versions of the unit may take seconds."""
    work = operation_count.count(unit.codelet.body, integers(unit.codelet, size.values))
    return work is None or work > SCREENED_FLOPS


def _on(prepared: PreparedRun, model: Model) -> PreparedRun:
    """Return the same on another model of device."""
    job = replace(prepared.job, target=model.target)
    context = _context(prepared.request, prepared.unit, job, model.facts)
    return replace(prepared, job=job, model=model, context=context)


def _name(request: TuningRequest, unit: Unit) -> str:
    """Return the name of the kernel in reports.

    It is the file's, or the codelet's where the user chose one of several, or has made one of the file by definitions.
    """
    if request.kernel is not None:
        return unit.codelet.name
    if not request.defines:
        return utf8(request.file.stem)
    try:
        plain = load(request.file, include_dirs=request.include_dirs).codelet.name
    except LooptuneError:
        return utf8(request.file.stem)
    return utf8(request.file.stem) if plain == unit.codelet.name else unit.codelet.name


def _load(request: TuningRequest, **more: None) -> Unit:
    """Return the request's codelet, with ``more`` macros defined."""
    return load(
        request.file,
        kernel=request.kernel,
        defines={**request.defines, **more},
        include_dirs=request.include_dirs,
        dtype=request.dtype,
    )


def _problem(request: TuningRequest, unit: Unit) -> Problem:
    """Return the sizes and the data: random, of files, or the program's own."""
    dump.parse_dump_options(request.dump, unit.codelet)
    if request.data and request.inputs_from_main:
        raise UsageError("--data and --inputs-from-main both give the inputs: choose one")
    if request.data:
        return inputs.from_files(request.data, unit, CACHE)
    if request.inputs_from_main:
        plain = unit if request.dtype is None else _own_types(request, unit)
        recorded = record(plain, request.include_dirs, request.timeout_s)
        _check_passed(plain.codelet, recorded)
        return inputs.from_program(recorded, unit, CACHE)
    return problem(unit.codelet, unit.values)


def _own_types(request: TuningRequest, unit: Unit) -> Unit:
    """Return the unit in the floating-point types of the program, which gcc compiles as it is."""
    return load(request.file, kernel=request.kernel, defines=unit.defines, include_dirs=request.include_dirs)


def _lighter(request: TuningRequest, unit: Unit) -> tuple[Unit, tuple[str, ...]]:
    """Where the user gave no sizes and the file's own are too much for a CPU, its largest data set that is not."""
    chosen = bool(request.data) or any(
        n.endswith("_DATASET") or (v is not None and v.isdecimal()) for n, v in request.defines.items()
    )
    work = None if chosen else operation_count.count(unit.codelet.body, integers(unit.codelet, unit.values))
    if work is None or work <= HEAVY_FLOPS:
        return unit, ()
    for name in LIGHTER:
        other = _load(request, **{name: None})
        less = operation_count.count(other.codelet.body, integers(other.codelet, other.values))
        if less is not None and less <= HEAVY_FLOPS:
            return other, (f"{work / 1e9:.3g} GFLOP a run at {request.file.name}'s own sizes is much for a sweep on a "
                           f"CPU: taking its {name}; --dataset or -D choose another",)  # fmt: skip
    return unit, ()


def _check_sizes(request: TuningRequest, unit: Unit) -> None:
    """UsageError for a -D that was to give a size, by its name in any case, and is no number."""
    for p in unit.codelet.params:
        meant = [k for k in request.defines if k.lower() == p.name.lower()] if isinstance(p, Scalar) else []
        if p.name not in unit.values and meant:
            raise UsageError(f"-D {meant[0]}={request.defines[meant[0]]} gives {p.name} no number", p.span)


def _space(request: TuningRequest, unit: Unit, lab: KernelBuilder, seconds: float) -> Space:
    if not request.sweep:
        check_choices_decided(unit, parse_lines(request.directives))
        return Space(())
    gpu = lab.job.target.specializes_sizes
    return find_space.find_space(request.file, request.space, unit, lab.analysis, gpu=gpu, seconds=seconds)


def _element_type(unit: Unit) -> str:
    """Return the type by which tables name the kernel: that of the first array it writes, or else reads."""
    arrays = sorted((p for p in unit.codelet.params if isinstance(p, Array)), key=lambda p: p.io == "in")
    return arrays[0].dtype if arrays else ""


def _context(request: TuningRequest, unit: Unit, job: Job, facts: DeviceInfo) -> Context:
    """Return all that a time depends on besides the directives."""
    return Context(
        kernel=unit.codelet.name, source_hash=source_hash(unit),
        lowering=lowering(job.target.name),
        toolchain=canonical_json(toolchain(job.target.name) | _search_toolchain(job) | plugins.versions()),
        capability=facts.arch, device=facts.name,
        target=job.target.name,
        sizes=canonical_json(job.problem.values), dtype=_element_type(unit),
        options=canonical_json(
            {"seed": job.seed, **request.floats.options(job.target.name), "cores": facts.cores, **_data(job),
             **({"warm": True} if not request.flush_cache else {})}
        ),
    )  # fmt: skip


def _search_toolchain(job: Job) -> dict[str, str]:
    """Return what compiles the versions of the search, where that is not the target's own compiler."""
    if job.target.search_backend is None:
        return {}
    other = job.target.search_backend().name
    return {**toolchain(other), "the search's": other}


def _data(job: Job) -> dict[str, str]:
    """Return what the inputs are, where they are not random: the cache names them by their contents."""
    return {} if job.problem.data is None else {"data": job.problem.data.stem}
