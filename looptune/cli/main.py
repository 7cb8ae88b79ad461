"""The command line: arguments in, exit code out.

Exit codes: 0 ok · 1 nothing valid was found · 2 a user error · 130 after Ctrl-C, what was measured being kept.
What a command needs is imported when it runs, so that ``looptune --help`` is immediate.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn

import click

from looptune.cli.build import build
from looptune.cli.cc import cc
from looptune.cli.db import database
from looptune.cli.examples import examples
from looptune.cli.export import export
from looptune.cli.options import (
    HELP,
    PASSES,
    SEED,
    STRATEGIES,
    Group,
    command,
    defines_of,
    deliver,
    directive_options,
    directives_of_config,
    file_options,
    float_options,
    note,
    option,
    output_option,
    reassociate_option,
    warn,
    write,
)
from looptune.cli.predict import predict
from looptune.cli.report import report
from looptune.cli.run import RESUMES, STOPPED, run
from looptune.cli.scan import scan
from looptune.core import recursion
from looptune.core.errors import LooptuneError, UsageError
from looptune.core.settings import DATABASE
from looptune.core.source import caret, with_severity
from looptune.core.version import __version__

FORMER = {"model": "predict", "simulate": "replay", "failures": "db failures"}


@click.group(cls=Group, context_settings=HELP, former=FORMER)
@click.version_option(__version__, prog_name="looptune")
def cli() -> None:
    """Compile annotated C loop nests to GPU and CPU kernels, verify them and tune them."""


@command(
    examples="""
looptune check polybench/gemm.c
looptune check polybench/gemm.c --legal-space
looptune check polybench/gemm.c --directive 'nest i: permute k, i, j'
looptune check polybench/gemm.c --derive-space > gemm.pragmas
"""
)
@click.argument("file", type=click.Path(path_type=Path))
@file_options
@directive_options
@option(
    "--legal-space",
    "everything",
    was="--all",
    is_flag=True,
    help="Also list every legal order and tiling of the loops.",
)
@option(
    "--derive-space",
    "derived",
    was="--space",
    is_flag=True,
    help="Print only the search space that is derived for FILE, as a space file.",
)
@reassociate_option
@option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check(
    file: Path,
    directives: tuple[str, ...],
    config: Path | None,
    everything: bool,
    derived: bool,
    no_reassociate: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Say which loops are parallel and which directives are legal.

    The exit code is 1 if a directive is refused.
    """
    if derived and (directives or config or everything or as_json):
        raise UsageError(
            "--derive-space prints only a space file: leave out --directive, --config, --legal-space and --json"
        )
    from looptune.frontend import load
    from looptune.report.check import json as loops_json
    from looptune.report.check import text as loops
    from looptune.report.check.explanation import explain
    from looptune.runtime.problem_sizes import integers
    from looptune.schedule.analysis import Analysis
    from looptune.schedule.directive_lines import parse_lines, renamed_words
    from looptune.tune.space.derive import derive

    defines = defines_of(options.pop("defines"), options.pop("dataset"))
    try:
        unit = load(file, defines=defines, **options)
    except LooptuneError as error:
        if derived or directives or config or everything:
            raise
        return _check_nests(file, options["kernel"], error, not no_reassociate, as_json, defines, options)
    lines = "\n".join((*directives, *directives_of_config(config))).splitlines()
    for message in (*unit.warnings, *renamed_words(unit.codelet, lines)):
        warn(message)
    if derived:
        sizes = integers(unit.codelet, unit.values)
        click.echo(derive(Analysis(unit.codelet, not no_reassociate), sizes=sizes), nl=False)
        return 0
    lines = "\n".join((*directives, *directives_of_config(config))).splitlines()
    found = explain(unit, parse_lines(lines), reassociate=not no_reassociate, everything=everything)
    for outside in found.out_of_bounds:
        warn(caret(outside.span, str(outside)))
    if as_json:
        click.echo(json.dumps(loops_json.record(found), indent=1))
    else:
        click.echo(loops.text(found, colour=sys.stdout.isatty() and "NO_COLOR" not in os.environ), nl=False)
    return 1 if found.refused else 0


def _check_nests(
    file: Path, kernel: str | None, why: LooptuneError, reassociate: bool, as_json: bool, defines: Any,
    options: dict[str, Any],
) -> int:  # fmt: skip
    """Print the analysis of the nests of a file that is not one codelet. Raises ``why`` if none can be analysed."""
    from looptune.report.check.nests import nests_record, nests_text, report

    try:
        found = report(file, kernel, reassociate, defines=defines, include_dirs=options["include_dirs"])
    except LooptuneError:
        raise why from None
    if not any(n.loops for n in found):
        raise why
    warn(str(why))
    if as_json:
        click.echo(json.dumps(nests_record(file, found), indent=1))
    else:
        click.echo(nests_text(found, colour=sys.stdout.isatty() and "NO_COLOR" not in os.environ))
    return int(any(n.refused for n in found))


@command(
    examples="""
looptune transform polybench/gemm.c --directive 'loop k: unroll 4, split, guarded'
looptune transform polybench/gemm.c --config reports/gemm.json -o gemm_tuned.c
"""
)
@click.argument("file", type=click.Path(path_type=Path))
@file_options
@directive_options
@option(
    "--no-reassociate",
    "no_reassociate",
    was="--strict-float",
    is_flag=True,
    help="Refuse directives that change the order of floating-point sums.",
)
@output_option
def transform(
    file: Path,
    directives: tuple[str, ...],
    config: Path | None,
    no_reassociate: bool,
    output: Path | None,
    **options: Any,
) -> int:
    """Print FILE as C with its directives applied."""
    from looptune.core.floating_point import DEFAULT, STRICT
    from looptune.deploy import source_to_source

    defines = defines_of(options.pop("defines"), options.pop("dataset"))
    lines = (*directives, *directives_of_config(config))
    floats = STRICT if no_reassociate else DEFAULT
    text = source_to_source.transform(file, lines, floats=floats, defines=defines, warn=warn, note=note, **options)
    deliver(source_to_source.encode(file, text), output)
    return 0


@command(
    examples="""
looptune emit polybench/gemm.c
looptune emit polybench/gemm.c --target cuda-c -o gemm.cu
looptune emit polybench/gemm.c --ptx --arch sm_80
"""
)
@click.argument("file", type=click.Path(path_type=Path))
@file_options
@directive_options
@option(
    "--target",
    help="Generate for numba-cuda, cuda-c, hip, opencl or numba-cpu.  [default: numba-cuda, or cuda-c without it]",
)
@option("--arch", default="sm_90", show_default=True, help="Set the GPU architecture for --ptx.")
@option("--ptx", is_flag=True, help="Print the PTX of every kernel; needs no GPU.")
@option(
    "--after",
    type=click.Choice(PASSES),
    metavar="PASS",
    help="Print the loops after this lowering pass instead; an unknown name lists the passes.",
)
@float_options
@output_option
def emit(
    file: Path,
    directives: tuple[str, ...],
    config: Path | None,
    target: str | None,
    arch: str,
    ptx: bool,
    after: str | None,
    no_reassociate: bool,
    fp_contract: str | None,
    output: Path | None,
    **options: Any,
) -> int:
    """Print the source code of the kernels generated from FILE."""
    from looptune.core.floating_point import floats_of_options
    from looptune.deploy import source_to_source

    defines = defines_of(options.pop("defines"), options.pop("dataset"))
    lines = (*directives, *directives_of_config(config))
    floats = floats_of_options(strict=no_reassociate, contract=fp_contract)
    text = source_to_source.emit(
        file, lines, target=_emitted(target, ptx), arch=arch, ptx=ptx, floats=floats, defines=defines, after=after,
        warn=warn, **options,
    )  # fmt: skip
    deliver(text, output)
    return 0


def _emitted(target: str | None, ptx: bool) -> str:
    """Return the target of ``emit``: by default numba-cuda or, if it is missing, CUDA C, which needs no library."""
    from looptune.runtime.targets import cuda_installed

    if target is not None or ptx or cuda_installed():
        return target if target is not None else "numba-cuda"
    warn("numba-cuda is not installed: this is CUDA C, as --target cuda-c gives")
    return "cuda-c"


@command(
    examples="""
looptune replay
looptune replay results.sqlite --strategy random,model --repeats 20
looptune replay exported/gemm-float32.t4.json -o searches
"""
)
@click.argument("files", metavar="[STORE|FILE]...", nargs=-1, type=click.Path(path_type=Path))
@option(
    "--strategy",
    "names",
    metavar="NAME",
    multiple=True,
    default=("all",),
    show_default=True,
    help=f"Compare these strategies, separated by commas: all, {', '.join(STRATEGIES)}.",
)
@option(
    "--repeats",
    metavar="N",
    type=click.IntRange(1),
    default=50,
    show_default=True,
    help="Run each strategy with this number of seeds.",
)
@option("--kernel", "kernels", metavar="NAME", multiple=True, help="Select a kernel; repeatable.  [default: all]")
@option(
    "--budget",
    metavar="N",
    type=click.IntRange(1),
    help="Limit the evaluations of each search.  [default: 5% of more than 20,000 versions, else no limit]",
)
@option("--seed", metavar="N", type=SEED, default=0, show_default=True, help="Set the first seed.")
@option("--json", "as_json", is_flag=True, help="Print a JSON list: one object per kernel, strategy and level.")
@option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Write searches.md, .csv, .json, .png and .svg to this directory.",
)
def replay(
    files: tuple[Path, ...],
    names: tuple[str, ...],
    repeats: int,
    kernels: tuple[str, ...],
    budget: int | None,
    seed: int,
    as_json: bool,
    output: Path | None,
) -> int:
    """Compare search strategies on recorded measurements.

    It reads results databases, T4 results, Kernel Tuner caches and Kernel Launcher wisdom; by default it reads the
    database of run.
    """
    from looptune.report import result_table, search_table
    from looptune.report.figures import style
    from looptune.report.figures.searches import searches
    from looptune.report.table import csv_text
    from looptune.tune.formats import files as recorded
    from looptune.tune.replay import simulate

    if output is not None:
        result_table.check_writable(output)
    chosen, notes = simulate.select_strategies(names)
    recordings = recorded.select(files if files else (DATABASE,), kernels)
    for said in notes:
        note(said)
    comparisons = []
    for recording in recordings:
        most = simulate.evaluations_at_most(recording, budget)
        if most != budget:
            note(f"{recording.name}: {recording.versions:,} versions, searches end after {most:,} (see --budget)")
        comparisons.append(simulate.compare(recording, chosen, repeats, seed, most))
        if not as_json:
            click.echo(search_table.plain(comparisons[-1]) + "\n")
    if as_json:
        click.echo(json.dumps(list(search_table.records(comparisons)), indent=1))
    elif len(comparisons) > 1:
        click.echo(search_table.summary(comparisons))
    if output is not None:
        write(output / "searches.md", search_table.markdown(comparisons))
        write(output / "searches.csv", csv_text(search_table.COLUMNS, search_table.records(comparisons)))
        write(output / "searches.json", json.dumps(list(search_table.records(comparisons)), indent=1) + "\n")
        if style.available():
            style.save(partial(searches, comparisons), output / "searches")
    return 0


@command(
    examples="""
looptune devices
looptune devices --measure --remeasure
"""
)
@option("--measure", is_flag=True, help="Measure the bandwidths of copying and reading, and the FMA peaks.")
@option("--remeasure", was="--fresh", is_flag=True, help="Repeat measurements that were made before.")
@option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def devices(measure: bool, remeasure: bool, as_json: bool) -> int:
    """List the devices of this machine that kernels can run on."""
    from dataclasses import asdict

    from looptune.report import result_table
    from looptune.runtime import peak_rates, targets
    from looptune.runtime.targets import CACHE

    if remeasure and not measure:
        raise UsageError("--remeasure needs --measure")
    found = targets.devices()
    own = targets.all_targets(CACHE) if measure else ()
    peaks = [
        peak_rates.peak_rates(t.machine(), t.backend(), CACHE, fresh=remeasure) if t.name in peak_rates.KNOWN else None
        for t in own
    ]
    if as_json:
        more = [{} if p is None else {"peaks": p.record()} for p in peaks] if measure else [{} for _ in found]
        click.echo(json.dumps([asdict(f) | m for f, m in zip(found, more, strict=True)], indent=1))
        return 0
    for k, f in enumerate(found):
        memory = f"{f.memory_bytes / 2**30:.0f} GiB"
        click.echo(
            f"{f.target}  {f.name}: {f.arch}, {f.cores} {'SMs' if f.target == 'numba-cuda' else 'cores'}, {memory}"
        )
        known = peaks[k] if measure else None
        for name, rate in result_table.peak_texts(known).items() if known is not None else ():
            click.echo(f"  {name:13}{rate}")
    missing = targets.gpu_missing()
    if missing:
        click.echo(f"no GPU: {missing}")
    return 0


@command(
    examples="""
looptune doctor
"""
)
def doctor() -> int:
    """Say what is installed, what is missing, and how to install it."""
    from looptune.cli.doctor import examine

    findings = examine()
    width = max(len(f.name) for f in findings)
    for f in findings:
        mend = f"   -> {f.mend}" if f.mend else ""
        click.echo(f"{f.status:8}{f.name.ljust(width)}  {f.found}{mend}")
    return 0 if all(f.status != "missing" for f in findings) else 1


for part in (
    run, scan, check, predict, transform, emit, report, build, cc, export, database, replay, examples, devices, doctor,
):  # fmt: skip
    cli.add_command(part)


def _system(error: OSError | MemoryError | RecursionError) -> str:
    """Return what the system refused, in a sentence."""
    match error:
        case RecursionError():
            return recursion.TOO_DEEP
        case MemoryError():
            return (
                f"this takes more memory than is available{f' ({error})' if str(error) else ''}: choose smaller sizes"
            )
        case OSError(filename=str() | bytes() as name):
            return f"{os.fsdecode(name)}: {error.strerror}"
    return f"the system reports an error: {error.strerror if error.strerror else error}"


def _usage(error: click.ClickException) -> str:
    """Return click's message about the command line, in the form of all others, and where its help is."""
    said = error.format_message().strip().removesuffix(".")
    lines = [f"{said[:1].lower()}{said[1:]}"]
    if isinstance(error, click.UsageError) and error.ctx is not None:
        lines += [error.ctx.get_usage(), f"Try '{error.ctx.command_path} --help' for help."]
    return "\n".join(lines)


def _fail(message: str) -> NoReturn:
    """Print the error and exit with code 2; output that could not be written is not tried again."""
    with suppress(OSError):
        click.echo(with_severity("error", message), err=True)
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(2)


def main() -> None:
    """Run the program ``looptune``. A request to end (SIGTERM) ends it as Ctrl-C does."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Names of files may be bytes that are no text, and a terminal may know less than Unicode.
            stream.reconfigure(errors="backslashreplace")
    recursion.raise_recursion_limit()
    try:
        code = cli.main(standalone_mode=False)
        sys.stdout.flush()
    except LooptuneError as error:
        _fail(str(error))
    except (OSError, MemoryError, RecursionError) as error:
        _fail(_system(error))
    except click.exceptions.Abort:
        click.echo(RESUMES if sys.argv[1:2] == ["run"] else "stopped", err=True)
        # Where Ctrl-C came within an exec (a dataclass is made by one), Python would end by the signal all the same.
        exec("")
        sys.exit(STOPPED)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(2)
    except click.ClickException as error:
        _fail(_usage(error))
    sys.exit(code if isinstance(code, int) else 0)
