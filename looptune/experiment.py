"""One file at one size on one target: sequential, default, hand-written and tuned, measured and put side by side.

file ─▶ unit ─▶ problem ─▶ sweep over the space ─▶ finals: the best, the default, hand-written ─▶ Result

Where there are several models of device, each is prepared, swept and reported for itself; the sweeps run at once.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

from looptune import compulsory, dump, finals, flops, pretty, transforms
from looptune.api import CACHE
from looptune.bind import originals
from looptune.defaults import DATABASE, TIMEOUT_S
from looptune.errors import DirectiveError, UsageError
from looptune.frontend import Unit, directive, load
from looptune.frontend.placed import parse_lines
from looptune.ir import Array, Assign, Codelet, Directive, If, Loop, Scalar
from looptune.mapped import prove_plan
from looptune.places import HERE, Place
from looptune.poly.proof import Proof, prove
from looptune.report.result import Entry, Result
from looptune.rewrite import walk
from looptune.runtime import inputs, peak
from looptune.runtime.machine import Facts
from looptune.runtime.outcome import Timed
from looptune.runtime.program import record
from looptune.runtime.roofline import Ceiling
from looptune.runtime.sizes import Problem, odd, problem, reduced
from looptune.runtime.timing import Speedup, speedup, speedup_apart, summary
from looptune.schedule import Scheduled, schedule
from looptune.simplify import is_integer
from looptune.suggest import advised
from looptune.targets import Model
from looptune.tune import strategies
from looptune.tune.budget import Budget, parse_budget
from looptune.tune.derive import derive
from looptune.tune.evaluate import Finals, Job, KernelLab, plans_of
from looptune.tune.space import Configuration, Space, parse
from looptune.tune.store import Context, Row, Store, packed
from looptune.tune.sweep import Part, Progress, Spent, SweepResult, sweeps
from looptune.tune.workers import default_jobs
from looptune.tune.written import decided, written
from looptune.version import LOWERING, toolchain

LIGHTER = ("LARGE_DATASET", "STANDARD_DATASET", "MEDIUM_DATASET", "SMALL_DATASET", "MINI_DATASET")
"""PolyBench's names for sizes, largest first."""
CPU_BUDGET = Budget(count=108)
"""Versions tried on a CPU unless the user says otherwise: what two cores do in about two minutes."""
SLOWEST_FLOPS = 5e9
"""Beyond this the sequential loops can take a minute on one core and are left out."""
SCREENED_FLOPS = 4e9
"""Beyond this a slow version takes seconds on a GPU too: it is tried at reduced sizes first."""
HEAVY_FLOPS = 1e9
"""Beyond this one run can take seconds on a few cores, and a sweep over a hundred versions an hour."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked for; see ``looptune run --help`` for each."""

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
    seed: int = 0
    fresh: bool = False
    strict_float: bool = False
    warm_l2: bool = False
    cut_off: bool = True
    db: Path = DATABASE
    directives: tuple[str, ...] = ()
    data: Path | None = None
    run_main: bool = False
    dump: Path | None = None
    cluster: str | None = None
    devices: str | None = None
    command: str = ""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Everything known before the first run. ``annotated`` is the configuration of the file as the user gave it."""

    request: Request
    unit: Unit
    job: Job
    model: Model
    context: Context
    space: Space
    budget: Budget
    annotated: Configuration
    notes: tuple[str, ...] = ()

    @property
    def facts(self) -> Facts:
        return self.model.facts

    @property
    def name(self) -> str:
        """What reports call it: the file's name, or the kernel's where the user chose one of several."""
        return self.request.file.stem if self.request.kernel is None else self.unit.codelet.name


def prepare(request: Request, place: Place = HERE) -> Prepared:
    """``prepare_all`` for the first model."""
    return prepare_all(request, place)[0]


def prepare_all(request: Request, place: Place = HERE) -> tuple[Prepared, ...]:
    """Read, analyse and choose the target; every user error shows here, before anything is measured. One for each model
    of device that the place has for the target."""
    if request.strategy is not None:
        strategies.named(request.strategy).check()
    models = place.models(request.target, CACHE, fastmath=not request.strict_float, warm=request.warm_l2)
    target = models[0].target
    unit, notes = _lighter(request, _load(request)) if request.sweep and not target.bakes else (_load(request), ())
    _check_sizes(request, unit)
    size = _problem(request, unit)
    needed = (finals.handwritten(request.file), size.data)
    place.require([path for path in needed if path is not None], target.name)
    large = reduced(unit.codelet, size) if target.bakes else None
    job = Job(
        unit.codelet, size, odd(unit.codelet, size) if large is None else large, target, CACHE, request.seed,
        not request.strict_float, screens=large is not None and _heavy(unit, size), cuts=request.cut_off,
    )  # fmt: skip
    given = parse_budget(request.budget) if request.budget is not None else None
    budget = given if given is not None else Budget() if target.bakes else CPU_BUDGET
    context = _context(request, unit, job, models[0].facts)
    lab = KernelLab(job, context)
    space = _space(request, unit, lab)
    annotated = Configuration(tuple(line for text in request.directives for line in text.splitlines() if line.strip()))
    advised(lab.analysis, parse_lines(annotated.lines, "configuration"), job.problem.values)
    first = Prepared(request, unit, job, models[0], context, space, budget, annotated, notes)
    return (first, *(_on(first, model) for model in models[1:]))


def _heavy(unit: Unit, size: Problem) -> bool:
    """Its slow versions may take seconds."""
    work = flops.count(unit.codelet.body, _integers(unit, size))
    return work is None or work > SCREENED_FLOPS


def _on(prepared: Prepared, model: Model) -> Prepared:
    """The same on another model of device."""
    job = replace(prepared.job, target=model.target)
    context = _context(prepared.request, prepared.unit, job, model.facts)
    return replace(prepared, job=job, model=model, context=context)


def _load(request: Request, **more: None) -> Unit:
    """The request's codelet, with ``more`` macros defined."""
    return load(
        request.file,
        kernel=request.kernel,
        defines={**request.defines, **more},
        include_dirs=request.include_dirs,
        dtype=request.dtype,
    )


def _problem(request: Request, unit: Unit) -> Problem:
    """The sizes and the data: random, a file's, or the program's own."""
    if request.dump is not None:
        dump.check_writable(request.dump)
    if request.data is not None and request.run_main:
        raise UsageError("--data and --run-main both give the inputs: choose one")
    if request.data is not None:
        return inputs.from_file(request.data, unit, CACHE)
    if request.run_main:
        plain = unit if request.dtype is None else _own_types(request, unit)
        return inputs.from_program(record(plain, request.include_dirs, request.timeout_s), unit, CACHE)
    return problem(unit.codelet, unit.values)


def _own_types(request: Request, unit: Unit) -> Unit:
    """The unit in the floating-point types of the program, which gcc compiles as it is."""
    return load(request.file, kernel=request.kernel, defines=unit.defines, include_dirs=request.include_dirs)


def dump_outputs(prepared: Prepared, result: Result) -> None:
    """Write what ``--dump`` asks for: the arrays that the best version leaves, or the file as annotated."""
    if prepared.request.dump is not None and result.versions.get("timed") and not result.interrupted:
        best = result.directives if prepared.request.sweep else prepared.annotated.text
        dump.write(KernelLab(prepared.job, prepared.context), best, prepared.request.dump)


def _lighter(request: Request, unit: Unit) -> tuple[Unit, tuple[str, ...]]:
    """Where the user gave no sizes and the file's own are too much for a CPU, its largest data set that is not."""
    chosen = request.data is not None or any(
        n.endswith("_DATASET") or (v is not None and v.isdecimal()) for n, v in request.defines.items()
    )
    work = None if chosen else flops.count(unit.codelet.body, _known(unit))
    if work is None or work <= HEAVY_FLOPS:
        return unit, ()
    for name in LIGHTER:
        other = _load(request, **{name: None})
        less = flops.count(other.codelet.body, _known(other))
        if less is not None and less <= HEAVY_FLOPS:
            return other, (f"{work / 1e9:.3g} GFLOP a run at {request.file.name}'s own sizes is much for a sweep on a "
                           f"CPU: taking its {name}; --dataset or -D choose another",)  # fmt: skip
    return unit, ()


def _known(unit: Unit) -> dict[str, int]:
    return {n: int(v) for n, v in unit.values.items() if _is_size(unit, n)}


def _check_sizes(request: Request, unit: Unit) -> None:
    """UsageError for a -D that was to give a size, by its name in any case, and is no number."""
    for p in unit.codelet.params:
        meant = [k for k in request.defines if k.lower() == p.name.lower()] if isinstance(p, Scalar) else []
        if p.name not in unit.values and meant:
            raise UsageError(f"-D {meant[0]}={request.defines[meant[0]]} gives {p.name} no number", p.span)


def run(prepared: Prepared, store: Store, progress: Callable[[Progress], None], place: Place = HERE) -> Result:
    """``run_all`` on one model."""
    (result,) = run_all((prepared,), store, progress, place)
    return result


def run_all(
    prepared: Sequence[Prepared], store: Store, progress: Callable[[Progress], None], place: Place = HERE
) -> tuple[Result, ...]:
    """Sweep (or measure the file as annotated) on every model at once, then run the finals of each."""
    prepared = tuple(_with_ceiling(p, place) for p in prepared)
    one = prepared[0]
    request, target = one.request, one.job.target
    wanted = one.space if request.sweep else Space(())
    budget = one.budget if request.sweep else Budget(count=1)
    name = request.strategy if request.strategy is not None else _strategy(budget, wanted)
    labs = [KernelLab(p.job, p.context) for p in prepared]
    parts = [
        Part(lab, strategies.ALL[name](wanted, request.seed), single(p)) for lab, p in zip(labs, prepared, strict=True)
    ]
    searched = sweeps(
        parts, store, budget=budget,
        opening=place.opening([p.model for p in prepared], _jobs(request, one.job), request.timeout_s),
        progress=progress, first=(one.annotated,), overlap=place.overlaps(target.name), fresh=request.fresh,
        cuts=request.cut_off,
    )  # fmt: skip
    return tuple(finish(p, lab, store, s, place) for p, lab, s in zip(prepared, labs, searched, strict=True))


def _with_ceiling(prepared: Prepared, place: Place) -> Prepared:
    """What the device can do is measured before the first sweep on it, and then known; not of another machine's."""
    job, machine = prepared.job, place.machine(prepared.model)
    if machine is None:
        return prepared
    peaks = peak.of(machine, job.target.backend(), job.cache)
    least = compulsory.work(KernelLab(job, prepared.context).analysis.model, _sizes(prepared))
    ceiling = Ceiling(least, peaks, machine.facts.cache_bytes, machine.cold)
    return replace(prepared, job=replace(job, ceiling=ceiling))


def single(prepared: Prepared) -> str:
    """The command that measures one version of this kernel, at these sizes, with the directives still to be added.

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
    given += [] if request.data is None else ["--data", request.data]
    flags = {"--run-main": request.run_main, "--strict-float": request.strict_float, "--warm-l2": request.warm_l2}
    given += [flag for flag, said in flags.items() if said]
    given += ["--seed", request.seed] if request.seed else []
    given += ["--timeout", f"{request.timeout_s:g}"] if request.timeout_s != TIMEOUT_S else []
    return shlex.join(map(str, given))


def _jobs(request: Request, job: Job) -> int:
    """Compiling processes: one core is kept for measuring on a GPU; on a CPU nothing is measured meanwhile."""
    if request.jobs is not None:
        return request.jobs
    return default_jobs() if job.target.bakes else len(os.sched_getaffinity(0))


def _strategy(budget: Budget, space: Space) -> str:
    """The whole space in order where the budget allows it, else a sample of it."""
    return "random" if budget.count is not None and budget.count < space.size else "exhaustive"


def finish(prepared: Prepared, lab: KernelLab, store: Store, searched: SweepResult, place: Place) -> Result:
    """The finals, and the result with its tables' entries. A sweep that was stopped has no finals."""
    request, default = prepared.request, prepared.annotated.text
    texts = finals.chosen(searched.timed)
    found = Finals({})
    best: str = texts[0] if texts else default
    ties: tuple[str, ...] = ()
    alone: tuple[float, ...] = ()
    start = time.monotonic()
    if texts and not searched.interrupted:
        known = any(row.directives == default for row in searched.timed)
        others = (default,) if known and default not in texts else ()
        by_hand = finals.handwritten(request.file)
        where = (place, prepared.model)
        among = (*texts, *others)
        found = finals.run(
            lab, store, searched.sweep, among, default, by_hand, request.seed, request.fresh, *where
        )  # fmt: skip
        right = tuple(t for t in among if t in found.times_us)
        best, ties = finals.winner(found.times_us, right) if right else (default, ())
        alone = finals.sequential(lab, store, searched.sweep, request.fresh, *where) if _affordable(prepared) else ()
    finals_s = time.monotonic() - start
    verified = {row.directives: _verified(row) for row in searched.timed}
    done = {text: _scheduled(lab, text) for text in (default, best)}
    asserted = {text: bool(scheduled.asserted) for text, scheduled in done.items()}
    won = best if request.sweep else ""
    return Result(
        kernel=prepared.name, facts=prepared.facts, target=prepared.job.target.name,
        dtype=prepared.context.dtype, sizes=_named(prepared),
        entries=_entries(prepared, found, alone, default, best, verified, asserted), directives=won, ties=ties,
        proof=_proof(prepared, lab, done[best]), versions=_counts(searched.counts, found, texts),
        command=request.command,
        flops=flops.count(prepared.unit.codelet.body, _sizes(prepared)), interrupted=searched.interrupted,
        times_us=searched.times_us, seconds=_seconds(searched.spent) | {"finals": finals_s},
        devices=searched.spent.devices, ceiling=lab.job.ceiling,
    )  # fmt: skip


def _counts(counts: Mapping[str, int], found: Finals, texts: Sequence[str]) -> Mapping[str, int]:
    """With the versions that were timed while screening, and that the finals found to be wrong, among the wrong."""
    wrong = sum(text in found.wrong for text in texts)
    return dict(counts) | {"timed": counts["timed"] - wrong, "wrong": counts["wrong"] + wrong}


def _seconds(spent: Spent) -> dict[str, float]:
    return {name: seconds for name, seconds in asdict(spent).items() if name != "devices"}


def _entries(
    prepared: Prepared,
    found: Finals,
    alone: tuple[float, ...],
    default: str,
    best: str,
    verified: Mapping[str, str],
    asserted: Mapping[str, bool],
) -> tuple[Entry, ...]:
    times = found.times_us
    base = times.get(default)

    def entry(name: str, key: str, how: str) -> Entry:
        if key not in times:
            why = f"WRONG: {found.wrong[key]}" if key in found.wrong else "not measured"
            return Entry(name, None, None, why, asserted.get(key, False))
        over: Speedup | None = speedup(base, times[key], 0) if base is not None and key != default else None
        return Entry(name, summary(times[key]), over, how, asserted.get(key, False))

    entries = [Entry("sequential", None, None, "not measured")]
    if alone and base is not None:
        entries = [Entry("sequential", summary(alone), speedup_apart(base, alone, 0), "is the reference")]
    entries.append(entry("default", default, verified.get(default, "")))
    others = [n for n in ("hand-written", "library") if n in times or n in found.wrong]
    entries += [entry(n, n, "against the original loops") for n in others]
    if prepared.request.sweep and best in times:
        entries.append(entry("tuned", best, verified.get(best, "")))
    return tuple(entries)


def _affordable(prepared: Prepared) -> bool:
    """The original loops on one core take no longer than anyone waits."""
    work = flops.count(prepared.unit.codelet.body, _sizes(prepared))
    return work is None or work <= SLOWEST_FLOPS


def _sizes(prepared: Prepared) -> dict[str, int]:
    return _integers(prepared.unit, prepared.job.problem)


def _integers(unit: Unit, size: Problem) -> dict[str, int]:
    return {n: int(v) for n, v in size.values.items() if _is_size(unit, n)}


def _named(prepared: Prepared) -> dict[str, int]:
    """The sizes as a user gives them with -D: by the macro NI where the text has one for the parameter ni."""
    unit = prepared.unit
    words = set(re.findall(r"[A-Za-z_]\w*", unit.text))
    named = {n.upper() if n.upper() in words else n: v for n, v in _sizes(prepared).items()}
    given = {n: int(v) for n, v in unit.defines.items() if n in words and "DATASET" not in n and str(v).isdecimal()}
    return given | named


def _verified(row: Row) -> str:
    match row.outcome:
        case Timed(verified=how):
            return how
    return ""


def _proof(prepared: Prepared, lab: KernelLab, done: Scheduled) -> str:
    """What the winner's legality rests on: the judgement of each directive, the proof of the loops and of the plan."""
    job = lab.job
    loops = prove(prepared.unit.codelet, done.codelet, _sizes(prepared), reassociate=job.reassociate)
    found, order = _launched(prepared, lab, done)
    judged = "every directive proved"
    if done.asserted:
        judged = f"asserted by the user, not proved: {', '.join(done.asserted)}"
    grid = "grid, guards, threads, registers" if job.target.bakes else "threads, registers"
    finished = {
        "proved": f"the finished loops, and the kernels as launched ({grid}), proved equivalent at these sizes",
        "failed": f"THE KERNELS AS LAUNCHED ARE WRONG: {found.reason}",
        "unknown": f"the finished loops could not be compared ({loops.reason})" if loops.verdict == "unknown" else
                   f"the finished loops proved, the kernels as launched could not be compared ({found.reason})",
    }  # fmt: skip
    said = finished[found.verdict] if loops.verdict != "failed" else f"THE FINISHED LOOPS ARE WRONG: {loops.reason}"
    return f"{judged}; {said}; {order}"


def _launched(prepared: Prepared, lab: KernelLab, done: Scheduled) -> tuple[Proof, str]:
    """The proof of the plan, and the sums that the winner adds up in another order than the original loops.

    What is proved with every sum in its order is proved in any, so that one proof is often enough for both.
    """
    plan, sums = plans_of(replace(lab.job, odd=None), done.codelet, "").timed, ", ".join(map(str, done.sums))
    proved = partial(prove_plan, prepared.unit.codelet, plan, _sizes(prepared), blocks=lab.job.target.bakes)
    found = proved(reassociate=lab.job.reassociate and not sums)
    if not sums or found.verdict == "proved":
        return found, "holds without reordering any sum"
    return proved() if lab.job.reassociate else found, f"rests on reordering {sums}"


def _scheduled(lab: KernelLab, directives: str) -> Scheduled:
    """As the laboratory schedules it, with the sums that each directive reorders."""
    return schedule(lab.analysis, parse_lines(directives.splitlines(), "configuration"), lab.job.problem.values,
                    sums=True)  # fmt: skip


def _is_size(unit: Unit, name: str) -> bool:
    return any(isinstance(p, Scalar) and p.name == name and is_integer(p.dtype) for p in unit.codelet.params)


def _space(request: Request, unit: Unit, lab: KernelLab) -> Space:
    if not request.sweep:
        decided(unit, parse_lines(request.directives))
        return Space(())
    path = request.space if request.space is not None else _space_file(request.file)
    if path is None:
        own = written(unit)
        return parse(derive(lab.analysis), "<derived>") if own is None else own
    try:
        space = parse(path.read_text(), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the space file {path}: {getattr(error, 'strerror', 'it is no text')}") from error
    _check_space(space, lab.job.codelet)
    return space.on("cpu" if lab.job.target.name == "numba-cpu" else "gpu")


def _check_space(space: Space, codelet: Codelet) -> None:
    """DirectiveError at the line of a space file that names no loop of the codelet, or a directive there cannot be."""
    for line in (line for section in space.sections for line in section.lines):
        for address in line.addresses:
            originals(codelet, address.where, address.loop, line.span)
        for text in (line.template.pick(index) for index in line.template.cover()):
            if not text.strip():
                continue
            said = directive.parse(text, line.span)
            try:
                transforms.find(said).parse(said)
            except DirectiveError as error:
                raise DirectiveError(error.message, line.span) from error


def _space_file(file: Path) -> Path | None:
    """``pragmas/<name>.pragmas`` beside the C file's folder, or ``<name>.pragmas`` beside the file."""
    places = (file.parent.parent / "pragmas" / f"{file.stem}.pragmas", file.with_suffix(".pragmas"))
    return next((p for p in places if p.exists()), None)


def _context(request: Request, unit: Unit, job: Job, facts: Facts) -> Context:
    """All that a time depends on besides the directives."""
    text = pretty.function(unit.codelet) + repr([p.io for p in unit.codelet.params if isinstance(p, Array)])
    arrays = [p.dtype for p in unit.codelet.params if isinstance(p, Array)]
    own = [repr(n) for n in _directives(unit)]
    return Context(
        kernel=unit.codelet.name, source_hash=hashlib.sha256("\n".join([text, *own]).encode()).hexdigest(),
        lowering=LOWERING, toolchain=packed(toolchain()), capability=facts.arch, device=facts.name,
        target=job.target.name,
        sizes=packed(job.problem.values), dtype=arrays[0] if arrays else "",
        options=packed(
            {"seed": job.seed, "reassociate": job.reassociate, "cores": facts.cores, **_data(job),
             **({"warm": True} if request.warm_l2 else {})}
        ),
    )  # fmt: skip


def _data(job: Job) -> dict[str, str]:
    """What the inputs are, where they are not random: the cache names them by their contents."""
    return {} if job.problem.data is None else {"data": job.problem.data.stem}


def _directives(unit: Unit) -> list[tuple[int, tuple[Directive, ...]]]:
    nodes = list(walk(unit.codelet.body))
    loops = [(n.number, n.directives) for n in nodes if isinstance(n, Loop)]
    loops += [(0, unit.codelet.directives)] if unit.codelet.directives else []
    return loops + [(k, n.directives) for k, n in enumerate(nodes) if isinstance(n, (Assign, If)) and n.directives]
