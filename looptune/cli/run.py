"""The command ``looptune run``: prepare, measure, print and report."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from looptune.cli.options import (
    SEED,
    STRATEGIES,
    Seconds,
    check_not_input,
    command,
    db_option,
    defines_of,
    directive_option,
    each_size,
    file_options,
    float_options,
    option,
    reports_option,
    site_options,
    warn,
)
from looptune.core.errors import UsageError
from looptune.core.escape import utf8
from looptune.core.process_clock import seconds_running
from looptune.core.settings import DATABASE, FINALS_S, OBJECTIVES, REPORTS, SEARCH_COMPILERS, TIMEOUT_S

STOPPED = 130
PRELOADED = (
    "looptune.tune.measure.evaluate", "looptune.tune.session.finals", "looptune.tune.session.predicted_time",
    "looptune.runtime.cuda_device", "looptune.backends.numba_cuda.backend", "looptune.backends.cuda.cuda_c",
)  # fmt: skip
"""What the processes of a sweep on a GPU import, a second's work."""
DRIVERS = (Path("/dev/nvidiactl"), Path("/dev/dxg"))
"""One of these is there where NVIDIA's driver is; the second on Windows."""
RESUMES = "stopped; the measurements are saved: run the same command again to continue"


@command(
    examples="""
looptune run polybench/gemm.c
looptune run polybench/gemm.c --sweep --budget 10m
looptune run polybench/*.c --sweep --target numba-cpu --dataset SMALL
looptune run polybench/gemm.c --directive 'loop k: unroll 4'
"""
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@file_options
@option("--sweep", is_flag=True, help="Measure the whole search space, not only FILE as annotated.")
@directive_option
@option(
    "--target",
    default="auto",
    show_default=True,
    help="Generate for numba-cuda, cuda-c, numba-cpu, opencl, several of them (a,b), or auto: a GPU if there is one.",
)
@site_options
@option(
    "--space",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Read the search space from a space file or a T1 problem.  [default: pragmas/NAME.pragmas, or derived]",
)
@option(
    "--strategy",
    metavar="NAME",
    help=f"Search with {', '.join(STRATEGIES)}.  [default: exhaustive if the budget allows it, else random; with a "
    "budget of time, sections]",
)
@option(
    "--budget",
    metavar="N|TIME",
    help="Limit the versions (60) or the time of the run (10m).  [default: no limit on a GPU, 108 on a CPU]",
)
@option(
    "--search-compiler",
    type=click.Choice(SEARCH_COMPILERS),
    default=None,
    help="Compile the versions of a search for an NVIDIA GPU with NVRTC, or as the finalists.  [default: nvrtc; own "
    "for several targets]",
)
@option(
    "--jobs",
    metavar="N",
    type=click.IntRange(1),
    help="Compile in this number of processes.  [default: all cores but one]",
)
@option(
    "--timeout",
    metavar="S",
    type=Seconds(),
    default=TIMEOUT_S,
    show_default=True,
    help="Limit the seconds of one version.",
)
@option(
    "--finals-timeout",
    "finals_s",
    was="--finals",
    metavar="S",
    type=Seconds(),
    default=FINALS_S,
    show_default=True,
    envvar="LOOPTUNE_FINALS",
    help="Limit the seconds that the finals wait for clear verdicts; a sixth of a budget of time at most.",
)
@option(
    "--accept-disturbed",
    is_flag=True,
    envvar="LOOPTUNE_ACCEPT_DISTURBED",
    help="Take the times of the finals as they are even if other programs disturb them.",
)
@option(
    "--energy",
    is_flag=True,
    help="Also measure the energy of one run, the power and the clock, of the versions of the finals.",
)
@option(
    "--objective",
    type=click.Choice(OBJECTIVES),
    default=OBJECTIVES[0],
    show_default=True,
    help="Choose the version with the least time, energy, or energy times time (edp), in the finals of a sweep.",
)
@option(
    "--seed", metavar="N", type=SEED, default=0, show_default=True, help="Set the seed of inputs, samples and rounds."
)
@option(
    "--resume/--fresh", default=True, show_default=True, help="Continue from earlier measurements, or measure again."
)
@option(
    "--data",
    metavar="[NAME=]FILE",
    multiple=True,
    help="Read inputs: a .npz file with arrays by name, or one array as .png, .pgm, .ppm or .npy.  [default: random]",
)
@option(
    "--inputs-from-main",
    "inputs_from_main",
    was="--run-main",
    is_flag=True,
    help="Compile the whole program with gcc, run it, and record the arguments of the codelet as inputs.",
)
@option(
    "--dump",
    metavar="[NAME=]FILE",
    multiple=True,
    help="Write the outputs of the best version as .npz, or one array as .png, .pgm or .npy; repeatable.",
)
@float_options
@option(
    "--no-flush-cache",
    "no_flush_cache",
    was="--warm-l2",
    is_flag=True,
    help="Do not flush the L2 cache before each run.",
)
@option(
    "--early-stop/--no-early-stop",
    "early_stop",
    was="--cut-off/--no-cut-off",
    default=True,
    help="Stop versions that are far slower than the best, or measure all of them in full.  [default: early-stop]",
)
@option(
    "--transfer-from",
    "transfer_from",
    was="--also",
    metavar="PATH",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Also time the best configurations of FILE in another database, in the finals; repeatable.",
)
@option(
    "--handwritten/--no-handwritten",
    default=True,
    help="Time, or do not time, the kernels of handwritten/NAME.py beside FILE in the finals.  [default: handwritten]",
)
@option(
    "--whole",
    is_flag=True,
    help="Also time the whole program: as gcc makes it, with default, tuned and hand-written kernels.",
)
@option("--ablation", is_flag=True, help="Also time the winner without each of its directives.")
@db_option
@reports_option
@option("--json", "as_json", is_flag=True, help="Print one JSON object per kernel.")
@option("--quiet", is_flag=True, help="Print neither progress nor tables.")
def run(files: tuple[Path, ...], **options: Any) -> int:
    """Measure FILE as annotated, or search with --sweep.

    A sweep searches the space of versions for the fastest one. Every version is verified against the original loops.
    Results are kept in a database and written as reports.
    """
    from looptune.core import cache_folder

    copied = _preloads(options)  # at the same time as this process imports the rest
    from looptune.report import result_table
    from looptune.tune.execution.local_executor import open_executor
    from looptune.tune.results import studies
    from looptune.tune.session.experiment import concurrent_groups
    from looptune.tune.session.prepare import TuningRequest, prepare_all
    from looptune.tune.store.connection import check_path

    start, options = time.monotonic(), dict(options)
    sizes = each_size(defines_of(options.pop("defines"), options.pop("dataset"), lists=True))
    reports, as_json, quiet = options.pop("reports"), options.pop("as_json"), options.pop("quiet")
    fresh, timeout = not options.pop("resume"), options.pop("timeout")
    timed_whole = _programs(files, options, sizes)
    reassociate, flush_cache = (not options.pop(f"no_{name}") for name in ("reassociate", "flush_cache"))
    command = reproducible(map(utf8, sys.argv[1:]))
    check_path(options["db"])
    cache_folder.trim_hourly(cache_folder.choose_folder()[0])
    result_table.check_writable(reports)
    _check_together(len(files) * len(sizes), options)
    options["transfer_from"] = studies.best_of_databases(options["transfer_from"])
    targets = _several(options.pop("target"), options["dump"])
    options["search_compiler"] = options["search_compiler"] or ("nvrtc" if len(targets) == 1 else "own")
    # Where it is for several kernels, each has a budget of its own.
    started_s = seconds_running() if len(files) * len(sizes) * len(targets) == 1 else 0.0
    requests = [
        [
            TuningRequest(
                f, target=target, defines=own, fresh=fresh, timeout_s=timeout, reassociate=reassociate,
                flush_cache=flush_cache,
                command=_alone(f, files, command, own), started_s=started_s, **options,
            )
            for f in files
            for own in sizes
        ]
        for target in targets
    ]  # fmt: skip
    say = click.echo if not (quiet or as_json) else _nothing
    results: list[Any] = []
    troubles: list[str] = []
    with open_executor(options["cluster"], options["devices"], warn, copied=copied) as executor:
        # Mistakes show before anything is measured; then one target after the other, for they may share a device.
        ready = [[prepare_all(request, executor) for request in own] for own in requests]
        for group in (group for own in ready for group in concurrent_groups(own, executor)):
            found, unwritten = _measure(group, executor, quiet or as_json, sum(map(len, requests)) > 1, reports, say)
            results += found
            troubles += unwritten
            if any(result.interrupted for result in found):
                break
    if troubles:
        raise UsageError(
            f"{troubles[0]}; the measurements are saved: write the report with {_report(options['db'], reports)}"
        )
    whole = [r for r in results if r.entries and not r.interrupted]
    _summarise_targets(whole, shlex.join(["looptune", *command]), time.monotonic() - start, reports, say)
    if len(targets) > 1 and len(whole) == len(results):
        _compare(whole, options["db"], say)
    _time_programs(timed_whole, whole, say)
    if options["sweep"] and whole:
        say(f"\nwrite tables, figures and a page with: {_report(options['db'], reports)}")
    if as_json:
        records = [r.record() for r in results]
        click.echo(
            json.dumps(records[0] if len(requests[0]) == len(targets) == len(records) == 1 else records, indent=1)
        )
    if any(r.interrupted for r in results):
        click.echo(RESUMES, err=True)
        return STOPPED
    return 0 if all(r.versions.get("timed") for r in results) else 1


def _preloads(options: Mapping[str, Any]) -> bool:
    """Start to import what the processes of a sweep on an NVIDIA GPU need, and tell whether there will be one."""
    from looptune.tune.execution.process import preload

    on_gpu = any(p.exists() for p in DRIVERS) and not {*options["target"].split(",")} <= {"numba-cpu", "opencl"}
    if not options["sweep"] or options["cluster"] is not None or not on_gpu:
        return False
    preload(PRELOADED)
    return True


def _programs(
    files: Sequence[Path], options: dict[str, Any], sizes: Sequence[Mapping[str, str | None]]
) -> list[Callable[[Sequence[Any]], Any]]:
    """Return what --whole times, each as a function of the results that returns the times; nothing without it.

    Raises UsageError if the options do not fit the program as it is.
    """
    from looptune.core.floating_point import floats_of_options
    from looptune.deploy.program.whole import WholeProgram, time_program
    from looptune.frontend import load
    from looptune.tune.session.conclude import named_sizes

    if not options.pop("whole"):
        return []
    if options["objective"] != "time":
        raise UsageError("--whole times the program with the fastest versions: leave out --objective")
    if options["dtype"] is not None:
        raise UsageError("--whole takes the program as it is: choose the type with -D, not with --dtype")
    floats = floats_of_options(contract=options["fp_contract"])

    def timed(file: Path, defines: Mapping[str, str | None], results: Sequence[Any]) -> Any:
        unit = load(file, kernel=options["kernel"], defines=defines, include_dirs=options["include_dirs"])
        macros = {name: value for name, value in unit.defines.items() if name not in unit.known_values}
        mine = [r for r in results if r.kernel in (unit.codelet.name, file.stem)]
        # A parameter's value given by -D does not change the program.
        program = load(file, kernel=options["kernel"], defines=macros, include_dirs=options["include_dirs"])
        own = named_sizes(program, {n: v for n, v in program.values.items() if isinstance(v, int)})
        same = [r for r in mine if all(r.sizes.get(name) == value for name, value in own.items())]
        if not same:
            where = " ".join(f"{name}={value}" for name, value in own.items())
            warn(f"the whole program {file} is not timed: it runs at {where}, and nothing was measured there")
            return file, ()
        result = same[0]
        architectures = (result.facts.arch,) if result.facts.arch.startswith("sm_") else ()
        whole = WholeProgram(
            file, macros, options["include_dirs"], options["kernel"], options["db"], architectures, floats
        )
        return file, time_program(whole, result.median_us("hand-written"), warn)

    return [partial(timed, file, own) for file in files for own in sizes]


def _time_programs(
    programs: Sequence[Callable[[Sequence[Any]], Any]], results: Sequence[Any], say: Callable[[str], Any]
) -> None:
    """Print the times of whole programs."""
    from looptune.report.whole_table import notes, whole_table

    for program in programs:
        file, times = program(results)
        if times:
            say("\n".join([f"\nthe whole program {file}", "", whole_table(times).text(), *notes(times)]))


def _check_together(problems: int, options: Mapping[str, Any]) -> None:
    """Raise UsageError for options that exclude each other, and for outputs that would overwrite inputs."""
    if problems > 1 and (options["data"] or options["dump"]):
        raise UsageError("--data and --dump take only one FILE, at one size")
    for text in options["dump"]:
        for path in (Path(text), Path(text.partition("=")[2])):
            check_not_input(
                path, "--dump", [Path(p) for given in options["data"] for p in (given, given.partition("=")[2])]
            )
    if options["cluster"] and (options["dump"] or options["jobs"]):
        raise UsageError("--dump and --jobs apply to this machine only: leave out --cluster")
    if options["transfer_from"] and not options["sweep"]:
        raise UsageError("--transfer-from needs --sweep: configurations of another database take part in its finals")
    if options["space"] is not None and not options["sweep"]:
        raise UsageError("--space needs --sweep: without it only the file as annotated is measured")
    if options["objective"] != "time" and not options["sweep"]:
        raise UsageError("--objective needs --sweep, which chooses a version; --energy measures the energy of one")
    if options["objective"] != "time" and options["ablation"]:
        raise UsageError("--ablation times the winner without each directive: leave out --objective")


def _measure(
    group: Sequence[Sequence[Any]], executor: Any, silent: bool, several: bool, reports: Path, say: Callable[[str], Any]
) -> tuple[list[Any], list[str]]:
    """Measure kernels at the same time, and write a report of each.

    ``silent``: without progress; ``several``: the command measures more than one.

    Return the results, and what could not be written.
    """
    from looptune.report.result_table import energy_missing, time_decided
    from looptune.tune.session.experiment import dump_outputs, run_all
    from looptune.tune.store.store import Store

    for prepared in group:
        _announce(prepared, say)
    every = [one for prepared in group for one in prepared]
    with Store.open(every[0].request.db) as store:
        for warning in (*store.warnings, *(w for prepared in group for w in prepared[0].space.warnings)):
            warn(warning)
        found = run_all(every, store, _progress(every, silent), executor)
    for message in dump_outputs(every[0], found[0]):
        warn(message)
    unwritten: list[str] = []
    for one, result in zip(every, found, strict=True):
        said = [energy_missing(result)] if one.job.energy else []
        said += [time_decided(result, one.request.objective)]
        for message in filter(None, () if result.interrupted else said):
            warn(message)
        unwritten += _show(result, _failed(one, result), _limit(one.request.budget, several), reports, say)
    return list(found), unwritten


def _announce(prepared: Sequence[Any], say: Callable[[str], Any]) -> None:
    """Print what will be measured, and where."""
    one = prepared[0]
    counts = [len(p.model.numbers) for p in prepared]
    models = [f"{n} {p.facts.name}" if n > 1 else p.facts.name for n, p in zip(counts, prepared, strict=True)]
    say(f"{one.name}: {max(1, one.space.versions)} versions, on {' and on '.join(models)}")
    say(f"reference: {one.reference}")
    for note in one.notes:
        click.echo(f"note: {note}", err=True)
    for message in one.warnings:
        warn(message)


def _show(result: Any, failed: Sequence[str], limit: str, reports: Path, say: Callable[[str], Any]) -> list[str]:
    """Write the report and print the result; ``failed`` are lines that say how to see what failed.

    What could not be written is returned.
    """
    from looptune.core.si_units import time_text
    from looptune.report import result_table

    lines = [result_table.counts(result), *failed]
    if result.interrupted or not result.entries:
        best = min((*result.finals_us, *result.times_us), default=None)
        if best is not None:
            lines += [f"best so far: {time_text(best)}", result.directives, f"legality: {result.proof}"]
        say("\n".join(lines))
        return []
    try:
        page, trouble = f"report: {_written(result, reports)}", []
    except OSError as error:
        page, trouble = "report: not written", [f"cannot write the report to {reports}: {error.strerror}"]
    if result.directives:
        say("\n" + result_table.plain(result) + "\n\nwinning directives (add them with --directive):")
        say("\n".join(f"  {line}" for line in result.directives.splitlines()) + "\n")
        if result.directive_gains:
            say(
                "gain of each directive (time without it over time with it):\n"
                + result_table.directive_gain_lines(result)
                + "\n"
            )
    else:
        say("\n" + result_table.plain(result) + "\n")
    if result.transfers:
        say("the best of other databases (time over the winner's):\n" + result_table.transfer_lines(result) + "\n")
    spent = (
        [f"{result_table.time_spent(result)}; {seconds_running():.1f} s since the command was given{limit}"]
        if result.seconds
        else []
    )
    say("\n".join([*lines, *spent, f"legality: {result.proof}", page]))
    return trouble


def _limit(budget: str | None, several: bool) -> str:
    """Return how long the user was to wait, as the end of a sentence; each of several kernels and sizes takes so long.

    >>> _limit("30s", several=True), _limit("200", several=False)
    (', of a budget of 30s for each', '')
    """
    return "" if budget is None or budget.isdecimal() else f", of a budget of {budget}{' for each' * several}"


def _written(result: Any, reports: Path) -> Path:
    """Return the page of a result, its data and its figure."""
    from looptune.report import result_table
    from looptune.report.figures import style
    from looptune.report.figures.summary import versions

    page = result_table.write(result, reports)
    if len(result.times_us) + len(result.finals_us) > 1 and style.available():
        style.save(partial(versions, result), page.with_suffix(""), ("png",))
    return page


def _report(db: Path, reports: Path) -> str:
    """Return the command that makes a report of this database here."""
    command = ["looptune", "report", *([] if db == DATABASE else ["--db", str(db)])]
    return shlex.join([*command, *([] if reports == REPORTS else ["--reports", str(reports)])])


def _failed(prepared: Any, result: Any) -> list[str]:
    """Return the command that lists what failed, where anything did."""
    from looptune.report.failure_table import FAILED
    from looptune.runtime.outcome import WrongResult

    db = prepared.request.db
    command = ["looptune", "db", "failures", "--kernel", prepared.unit.codelet.name]
    command += [] if db == DATABASE else ["--db", str(db)]
    hint = prepared.job.stricter if result.versions.get(WrongResult.status) else ""
    failed = [f"list the failures with: {shlex.join(command)}"] if any(result.versions.get(s) for s in FAILED) else []
    return [*failed, *([f"if only rounding is wrong: {hint}"] if hint else [])]


def _alone(file: Path, files: Sequence[Path], arguments: Sequence[str], defines: Mapping[str, str | None]) -> str:
    """Return the command that measures one of several files at one of several sizes as this one does."""
    others = {utf8(str(f)) for f in files if f != file}
    return shlex.join(["looptune", *(_with_size(a, defines) for a in arguments if a not in others)])


def _with_size(argument: str, defines: Mapping[str, str | None]) -> str:
    """Return ``N=512`` for a list of sizes ``N=512,1000``, and any other argument as it is."""
    head, equals, text = argument.partition("=")
    size = defines.get(head.removeprefix("-D"))
    return f"{head}={size}" if equals and size is not None and size in text.split(",") else argument


def _summarise_targets(
    results: Sequence[Any], command: str, elapsed_s: float, reports: Path, say: Callable[[str], Any]
) -> None:
    """Summarise the results of each target; ``elapsed_s`` is divided among the targets by their numbers of results."""
    for target in dict.fromkeys(r.target for r in results):
        same = [r for r in results if r.target == target]
        _summarise(same, command, elapsed_s * len(same) / len(results), reports, say)


def _summarise(
    results: Sequence[Any], command: str, elapsed_s: float, reports: Path, say: Callable[[str], Any]
) -> None:
    """Write one page for the kernels of each device model, and one for the device models of each kernel."""
    from looptune.report import suite_table
    from looptune.report.figures import style
    from looptune.report.figures.summary import speedups

    by_device = suite_table.group_by_model(results)
    for same in by_device.values():
        if len(same) > 1:
            spent = suite_table.time_spent(same, elapsed_s)
            page = suite_table.write(same, reports, command, spent)
            if style.available():
                rows = {suite_table.title(same): [(r.kernel, r) for r in same]}
                style.save(partial(speedups, rows), page.with_suffix(""), ("png",))
            lines = [*suite_table.failures(same), *([spent] if spent else []), f"summary: {page}"]
            say("\n".join(["", suite_table.plain(same), "", *lines]))
    if len(by_device) > 1:
        table, page = suite_table.models_table(results), suite_table.write_models(results, reports, command)
        say(f"\n{table.text()}\n\nmodels: {page}")


def _several(text: str, dump: Sequence[str]) -> list[str]:
    """Return the targets of ``a,b``. Raises UsageError where one is named twice, or outputs are to be dumped."""
    names = [name.strip() for name in text.split(",")]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UsageError(f"--target {text}: {twice[0]} is named twice")
    if len(names) > 1 and dump:
        raise UsageError("--dump takes only one target")
    return names


def _compare(results: Sequence[Any], db: Path, say: Callable[[str], Any]) -> None:
    """Print the targets on the configurations timed on all of them, and the fastest of each kernel."""
    from looptune.core.si_units import time_text
    from looptune.report import compiler_table
    from looptune.tune.results import studies

    kernels, used = {r.kernel for r in results}, {r.target for r in results}
    found = compiler_table.compare_compilers(
        [s for s in studies.read((db,), sorted(kernels)) if s.context.target in used]
    )
    if found:
        say("\n" + compiler_table.grid(found).text())
    problems = sorted({(r.kernel, studies.sizes(r)) for r in results})
    for kernel, sizes in problems:
        same = [r for r in results if (r.kernel, studies.sizes(r)) == (kernel, sizes)]
        tuned = {r.target: us for r in same if (us := r.median_us("tuned")) is not None}
        named = kernel if len(problems) == len(kernels) else f"{kernel} {sizes}"
        if tuned:
            best = min(tuned, key=lambda target: tuned[target])
            others = ", ".join(f"{time_text(us)} with {target}" for target, us in tuned.items() if target != best)
            say(f"\n{named}: fastest with {best}, {time_text(tuned[best])}{f'; {others}' if others else ''}")


def reproducible(arguments: Iterable[str]) -> list[str]:
    """Return the arguments that determine what is measured, without those for where results are stored."""
    kept: list[str] = []
    skip = False
    for a in arguments:
        if not skip and not a.startswith(("--db", "--reports")):
            kept.append(a)
        skip = not skip and a in ("--db", "--reports")
    return kept


def _nothing(text: str) -> None:
    """Say nothing."""


def _progress(every: Sequence[Any], silent: bool) -> Callable[[Any], None]:
    if silent:
        return lambda progress: None
    from looptune.cli.progress import ProgressLine

    return ProgressLine(sys.stderr, [one.context for one in every])
