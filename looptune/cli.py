"""The command line: arguments in, exit code out.

Exit codes: 0 ok · 1 nothing valid was found · 2 a user error · 130 after Ctrl-C, what was measured being kept.
What a command needs is imported when it runs, so that ``looptune --help`` is immediate.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from looptune.cli_build import build
from looptune.cli_db import database, failures
from looptune.cli_export import export
from looptune.cli_report import report
from looptune.defaults import DATABASE, TIMEOUT_S
from looptune.errors import LooptuneError, UsageError
from looptune.options import (
    STRATEGIES,
    configured,
    db_option,
    defines_of,
    directive_options,
    file_options,
    place_options,
)
from looptune.version import __version__

STOPPED = 130
RESUMES = "stopped; what was measured is kept, the same command goes on from here"


class _Commands(click.Group):
    """Commands in the order a user meets them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="looptune")
def cli() -> None:
    """Annotated C loop nests to proved, verified and tuned GPU and CPU kernels."""


@cli.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@file_options
@click.option("--sweep", is_flag=True, help="Measure the whole space, not only the file as annotated.")
@click.option(
    "--with", "directives", metavar="LINE", multiple=True, help="A directive besides the file's: 'loop k: unroll 4'."
)
@click.option("--target", default="auto", show_default=True, help="auto, numba-cuda or numba-cpu.")
@place_options
@click.option(
    "--space",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Directives with choices, or a T1 problem; default: pragmas/NAME.pragmas, else derived.",
)
@click.option(
    "--strategy",
    metavar="NAME",
    help=f"{', '.join(STRATEGIES)}; default: exhaustive where the budget allows it, else random.",
)
@click.option("--budget", metavar="N|TIME", help="Versions (60) or time (10m); default: all on a GPU, 108 on a CPU.")
@click.option("--jobs", metavar="N", type=click.IntRange(1), help="Compiling processes; default: all cores but one.")
@click.option(
    "--timeout",
    metavar="S",
    type=click.FloatRange(0.1),
    default=TIMEOUT_S,
    show_default=True,
    help="Seconds a version may take.",
)
@click.option("--seed", metavar="N", type=int, default=0, show_default=True, help="Of inputs, samples and rounds.")
@click.option("--resume/--fresh", default=True, show_default=True, help="Keep earlier measurements, or measure again.")
@click.option(
    "--data",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Inputs: a .npz file with arrays and scalars by parameter name; default: random ones.",
)
@click.option("--run-main", is_flag=True, help="Inputs: what the program, compiled by gcc, calls the codelet with.")
@click.option(
    "--dump", metavar="FILE", type=click.Path(path_type=Path), help="Write the arrays the best version leaves, as .npz."
)
@click.option("--strict-float", is_flag=True, help="Keep every sum in its order.")
@click.option("--warm-l2", is_flag=True, help="Do not flush the L2 before each run.")
@click.option("--cut-off/--no-cut-off", default=True, help="Give up versions far slower than the best, or none.")
@db_option
@click.option(
    "--reports",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=Path("reports"),
    show_default=True,
    help="Where tables are written.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per kernel on standard output.")
@click.option("--quiet", is_flag=True, help="No progress, no table.")
def run(files: tuple[Path, ...], **options: Any) -> int:
    """Measure each FILE, or its whole space: --sweep."""
    from looptune import places
    from looptune.experiment import dump_outputs, run_all, together
    from looptune.preparation import Request, prepare_all
    from looptune.report import tables
    from looptune.tune.store import Store

    options = dict(options)
    defines = defines_of(options.pop("defines"), options.pop("dataset"))
    reports, as_json, quiet = options.pop("reports"), options.pop("as_json"), options.pop("quiet")
    fresh, timeout = not options.pop("resume"), options.pop("timeout")
    command = reproducible(sys.argv[1:])
    tables.check_writable(reports)
    if len(files) > 1 and (options["data"] or options["dump"]):
        raise UsageError("--data and --dump are for one FILE")
    if options["cluster"] and (options["dump"] or options["jobs"]):
        raise UsageError("--dump and --jobs are for this machine, and --cluster is not")
    requests = [
        Request(f, defines=defines, fresh=fresh, timeout_s=timeout, command=_alone(f, files, command), **options)
        for f in files
    ]
    say = click.echo if not (quiet or as_json) else _nothing
    results: list[Any] = []
    with places.at(options["cluster"], options["devices"], _warn) as place:
        for group in together([prepare_all(request, place) for request in requests], place):
            for prepared in group:
                _announce(prepared, say)
            every = [one for prepared in group for one in prepared]
            with Store.open(every[0].request.db) as store:
                for warning in (*store.warnings, *(w for prepared in group for w in prepared[0].space.warnings)):
                    click.echo(f"warning: {warning}", err=True)
                found = run_all(every, store, _progress(quiet or as_json), place)
            dump_outputs(every[0], found[0])
            for one, result in zip(every, found, strict=True):
                _show(result, _failed(one, result), reports, say)
            results += found
            if any(result.interrupted for result in found):
                break
    _summarise(
        [r for r in results if r.entries and not r.interrupted], shlex.join(["looptune", *command]), reports, say
    )
    if options["sweep"] and any(r.entries and not r.interrupted for r in results):
        say(f"\ntables, figures and a page of it all: {_report(options['db'], reports)}")
    if as_json:
        records = [r.record() for r in results]
        click.echo(json.dumps(records[0] if len(files) == len(records) == 1 else records, indent=1))
    if any(r.interrupted for r in results):
        click.echo(RESUMES, err=True)
        return STOPPED
    return 0 if all(r.versions.get("timed") for r in results) else 1


def _announce(prepared: Sequence[Any], say: Callable[[str], Any]) -> None:
    """What will be measured, and where."""
    one = prepared[0]
    counts = [len(p.model.numbers) for p in prepared]
    models = [f"{n} {p.facts.name}" if n > 1 else p.facts.name for n, p in zip(counts, prepared, strict=True)]
    say(f"{one.name}: {max(1, one.space.versions)} versions, on {' and on '.join(models)}")
    for note in one.notes:
        click.echo(f"note: {note}", err=True)
    for message in one.unit.warnings:
        _warn(message)


def _show(result: Any, failed: Sequence[str], reports: Path, say: Callable[[str], Any]) -> None:
    """Write the report and say what there is to say of it; ``failed``: how to see what failed."""
    from looptune.report import plots, tables

    lines = [tables.counts(result), *failed]
    if result.interrupted or not result.entries:
        best = min(result.times_us, default=None)
        if best is not None:
            lines += [f"best so far: {tables.time_text(best)}", result.directives, f"legality: {result.proof}"]
        say("\n".join(lines))
        return
    page = tables.write(result, reports)
    if result.directives:
        say("\n" + tables.plain(result) + "\n\nwinning directives (add them with --with):")
        say("\n".join(f"  {line}" for line in result.directives.splitlines()) + "\n")
    else:
        say("\n" + tables.plain(result) + "\n")
    if len(result.times_us) > 1 and plots.available():
        plots.versions(result, result.times_us, page.with_suffix(".png"))
    spent = [tables.time_spent(result)] if result.seconds else []
    say("\n".join([*lines, *spent, f"legality: {result.proof}", f"report: {page}"]))


def _report(db: Path, reports: Path) -> str:
    """The command that makes a report of this database here."""
    command = ["looptune", "report", *([] if db == DATABASE else ["--db", str(db)])]
    return shlex.join([*command, *([] if reports == Path("reports") else ["--reports", str(reports)])])


def _failed(prepared: Any, result: Any) -> list[str]:
    """The command that lists what failed, where anything did."""
    from looptune.report.failures import FAILED

    db = prepared.request.db
    command = ["looptune", "failures", "--kernel", prepared.unit.codelet.name]
    command += [] if db == DATABASE else ["--db", str(db)]
    return [f"what failed: {shlex.join(command)}"] if any(result.versions.get(s) for s in FAILED) else []


def _alone(file: Path, files: Sequence[Path], arguments: Sequence[str]) -> str:
    """The command that measures one of several files as this one does."""
    others = {str(f) for f in files if f != file}
    return shlex.join(["looptune", *(a for a in arguments if a not in others)])


def _summarise(results: Sequence[Any], command: str, reports: Path, say: Callable[[str], Any]) -> None:
    """One page for the several kernels of each model of device, and one for the models of each kernel."""
    from looptune.report import models, plots, summary

    by_device = models.grouped(results)
    for same in by_device.values():
        if len(same) > 1:
            page = summary.write(same, reports, command)
            if plots.available():
                plots.speedups(same, page.with_suffix(".png"))
            say("\n".join(["", summary.plain(same), "", *summary.failures(same), f"summary: {page}"]))
    if len(by_device) > 1:
        say(f"\n{models.plain(results)}\n\nmodels: {models.write(results, reports, command)}")


def reproducible(arguments: Sequence[str]) -> list[str]:
    """The arguments that decide what is measured, without those that say where results are kept."""
    kept: list[str] = []
    skip = False
    for a in arguments:
        if not skip and not a.startswith(("--db", "--reports")):
            kept.append(a)
        skip = not skip and a in ("--db", "--reports")
    return kept


def _nothing(text: str) -> None:
    """Say nothing."""


def _progress(silent: bool) -> Callable[[Any], None]:
    if silent:
        return lambda progress: None
    from looptune.report.progress import Live

    return Live(sys.stderr)


@cli.command()
@click.argument("file", type=click.Path(path_type=Path))
@file_options
@directive_options
@click.option("--all", "everything", is_flag=True, help="Every legal order and tiling of the loops, too.")
@click.option("--strict-float", is_flag=True, help="Keep every sum in its order.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def check(
    file: Path,
    directives: tuple[str, ...],
    config: Path | None,
    everything: bool,
    strict_float: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Say which loops are parallel; judge directives."""
    from looptune.explain import explain
    from looptune.frontend import load
    from looptune.frontend.placed import parse_lines
    from looptune.report import loops, loops_json

    defines = defines_of(options.pop("defines"), options.pop("dataset"))
    unit = load(file, defines=defines, **options)
    for message in unit.warnings:
        _warn(message)
    lines = "\n".join((*directives, *configured(config))).splitlines()
    found = explain(unit, parse_lines(lines, "directives"), reassociate=not strict_float, everything=everything)
    if as_json:
        click.echo(json.dumps(loops_json.record(found), indent=1))
    else:
        click.echo(loops.text(found, colour=sys.stdout.isatty() and "NO_COLOR" not in os.environ), nl=False)
    return 1 if found.refused else 0


@cli.command()
@click.argument("file", type=click.Path(path_type=Path))
@file_options
@directive_options
@click.option("-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="Write to FILE.")
def transform(file: Path, directives: tuple[str, ...], config: Path | None, output: Path | None, **options: Any) -> int:
    """Print FILE as C, its directives applied."""
    from looptune import source_to_source

    defines = defines_of(options.pop("defines"), options.pop("dataset"))
    lines = (*directives, *configured(config))
    text = source_to_source.transform(file, lines, defines=defines, warn=_warn, **options)
    if output is None:
        click.echo(text, nl=False)
    else:
        _write(output, text)
    return 0


def _warn(message: str) -> None:
    click.echo(f"warning: {message}", err=True)


def _write(output: Path, text: str) -> None:
    try:
        output.write_text(text)
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror}") from error


@cli.command()
@click.argument("file", type=click.Path(path_type=Path))
@file_options
@directive_options
@click.option("--target", default="numba-cuda", show_default=True, help="numba-cuda or numba-cpu.")
@click.option("--arch", default="sm_90", show_default=True, help="The GPU architecture of --ptx.")
@click.option("--ptx", is_flag=True, help="The PTX of every kernel; needs no GPU.")
def emit(
    file: Path, directives: tuple[str, ...], config: Path | None, target: str, arch: str, ptx: bool, **options: Any
) -> int:
    """Print the source of the kernels made of FILE."""
    from looptune import source_to_source

    defines = defines_of(options.pop("defines"), options.pop("dataset"))
    lines = (*directives, *configured(config))
    click.echo(
        source_to_source.emit(
            file, lines, target=target, arch=arch, ptx=ptx, defines=defines, warn=_warn, **options
        ), nl=False,
    )  # fmt: skip
    return 0


@cli.command()
@click.argument("files", metavar="[STORE|FILE]...", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--strategy",
    "names",
    metavar="NAME",
    multiple=True,
    default=("all",),
    show_default=True,
    help=f"all, or one or several of {', '.join(STRATEGIES)}.",
)
@click.option("--repeats", metavar="N", type=click.IntRange(1), default=50, show_default=True, help="Seeds of each.")
@click.option("--kernel", "kernels", metavar="NAME", multiple=True, help="Only these; default: all there are.")
@click.option("--budget", metavar="N", type=click.IntRange(1), help="Evaluations of a search; default: no limit.")
@click.option("--seed", metavar="N", type=int, default=0, show_default=True, help="The first seed.")
@click.option("--json", "as_json", is_flag=True, help="A JSON list, one object a kernel, strategy and level.")
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Write searches.md, .csv, .json, .png and .svg.",
)
def simulate(
    files: tuple[Path, ...],
    names: tuple[str, ...],
    repeats: int,
    kernels: tuple[str, ...],
    budget: int | None,
    seed: int,
    as_json: bool,
    output: Path | None,
) -> int:
    """Compare search strategies on what was measured: looptune's stores and exports, files of other tools."""
    from looptune.report import plots, searches, tables
    from looptune.tune import recorded, simulate

    if output is not None:
        tables.check_writable(output)
    chosen, notes = simulate.chosen(names)
    recordings = recorded.select(files if files else (Path(".looptune/results.sqlite"),), kernels)
    for note in notes:
        click.echo(f"note: {note}", err=True)
    comparisons = []
    for recording in recordings:
        comparisons.append(simulate.compare(recording, chosen, repeats, seed, budget))
        if not as_json:
            click.echo(searches.plain(comparisons[-1]) + "\n")
    if as_json:
        click.echo(json.dumps(list(searches.records(comparisons)), indent=1))
    elif len(comparisons) > 1:
        click.echo(searches.summary(comparisons))
    if output is not None:
        _write(output / "searches.md", searches.markdown(comparisons))
        _write(output / "searches.csv", searches.csv_text(comparisons))
        _write(output / "searches.json", json.dumps(list(searches.records(comparisons)), indent=1) + "\n")
        if plots.available():
            plots.searches(comparisons, output / "searches")
    return 0


@cli.command()
@click.option("--measure", is_flag=True, help="What each can do: bandwidth of copying and reading, FMA peaks.")
@click.option("--fresh", is_flag=True, help="Measure again what was measured before.")
@click.option("--json", "as_json", is_flag=True, help="A JSON list.")
def devices(measure: bool, fresh: bool, as_json: bool) -> int:
    """List the devices kernels can run on here."""
    from dataclasses import asdict

    from looptune import targets
    from looptune.api import CACHE
    from looptune.report import tables
    from looptune.runtime import peak

    if fresh and not measure:
        raise UsageError("--fresh is for --measure")
    found = targets.devices()
    peaks = [peak.of(t.machine(), t.backend(), CACHE, fresh=fresh) for t in targets.each(CACHE)] if measure else []
    if as_json:
        more = [{"peaks": p.record()} for p in peaks] if measure else [{} for _ in found]
        click.echo(json.dumps([asdict(f) | m for f, m in zip(found, more, strict=True)], indent=1))
        return 0
    for k, f in enumerate(found):
        memory = f"{f.memory_bytes / 2**30:.0f} GiB"
        click.echo(
            f"{f.target}  {f.name}: {f.arch}, {f.cores} {'SMs' if f.target == 'numba-cuda' else 'cores'}, {memory}"
        )
        for name, rate in tables.peak_texts(peaks[k]).items() if measure else ():
            click.echo(f"  {name:13}{rate}")
    missing = targets.gpu_missing()
    if missing:
        click.echo(f"no GPU: {missing}")
    return 0


@cli.command()
def doctor() -> int:
    """Say what is installed or missing, and what mends it."""
    from looptune.doctor import examine

    findings = examine()
    width = max(len(f.name) for f in findings)
    for f in findings:
        mend = f"   -> {f.mend}" if f.mend else ""
        click.echo(f"{f.status:8}{f.name.ljust(width)}  {f.found}{mend}")
    return 0 if all(f.status != "missing" for f in findings) else 1


cli.add_command(build)
cli.add_command(report)
cli.add_command(failures)
cli.add_command(database)
cli.add_command(export)


def main() -> None:
    """The program ``looptune``. A request to end (SIGTERM) ends it as Ctrl-C does."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        code = cli.main(standalone_mode=False)
    except LooptuneError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    except click.exceptions.Abort:
        click.echo(RESUMES, err=True)
        sys.exit(STOPPED)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    sys.exit(code if isinstance(code, int) else 0)
