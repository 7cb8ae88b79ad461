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
from looptune.cli.db import database
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
    warn,
    write,
)
from looptune.cli.predict import predict
from looptune.cli.report import report
from looptune.cli.run import RESUMES, STOPPED, run
from looptune.core import recursion
from looptune.core.errors import LooptuneError, UsageError
from looptune.core.settings import DATABASE
from looptune.core.source import caret
from looptune.core.version import __version__

FORMER = {"model": "predict", "simulate": "replay", "failures": "db failures"}


@click.group(cls=Group, context_settings=HELP, former=FORMER)
@click.version_option(__version__, prog_name="looptune")
def cli() -> None:
    """Annotated C loop nests to proved, verified and tuned GPU and CPU kernels."""


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
@option("--legal-space", "everything", was="--all", is_flag=True, help="Add every legal order and tiling of the loops.")
@option(
    "--derive-space",
    "derived",
    was="--space",
    is_flag=True,
    help="Print the derived space, to start a space file.",
)
@option(
    "--no-reassociate",
    "strict_float",
    was="--strict-float",
    is_flag=True,
    help="Keep every sum of floats in its order.",
)
@option("--json", "as_json", is_flag=True, help="One JSON object.")
def check(
    file: Path,
    directives: tuple[str, ...],
    config: Path | None,
    everything: bool,
    derived: bool,
    strict_float: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Say which loops are parallel; judge directives."""
    if derived and (directives or config or everything or as_json):
        raise UsageError(
            "--derive-space prints only a space file: leave out --directive, --config, --legal-space and --json"
        )
    from looptune.frontend import load
    from looptune.frontend.directive_lines import parse_lines
    from looptune.report.check import json as loops_json
    from looptune.report.check import text as loops
    from looptune.report.check.explanation import explain
    from looptune.schedule.analysis import Analysis
    from looptune.tune.space.derive import derive

    defines = defines_of(options.pop("defines"), options.pop("dataset"))
    unit = load(file, defines=defines, **options)
    for message in unit.warnings:
        warn(message)
    if derived:
        click.echo(derive(Analysis(unit.codelet, not strict_float)), nl=False)
        return 0
    lines = "\n".join((*directives, *directives_of_config(config))).splitlines()
    found = explain(unit, parse_lines(lines), reassociate=not strict_float, everything=everything)
    for outside in found.leaves:
        warn(caret(outside.span, str(outside)))
    if as_json:
        click.echo(json.dumps(loops_json.record(found), indent=1))
    else:
        click.echo(loops.text(found, colour=sys.stdout.isatty() and "NO_COLOR" not in os.environ), nl=False)
    return 1 if found.refused else 0


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
    "strict_float",
    was="--strict-float",
    is_flag=True,
    help="Refuse directives that add up a sum of floats in another order.",
)
@output_option
def transform(
    file: Path,
    directives: tuple[str, ...],
    config: Path | None,
    strict_float: bool,
    output: Path | None,
    **options: Any,
) -> int:
    """Print FILE as C, its directives applied."""
    from looptune.core.floating_point import STRICT, USUAL
    from looptune.deploy import source_to_source

    defines = defines_of(options.pop("defines"), options.pop("dataset"))
    lines = (*directives, *directives_of_config(config))
    floats = STRICT if strict_float else USUAL
    text = source_to_source.transform(file, lines, floats=floats, defines=defines, warn=warn, note=note, **options)
    deliver(source_to_source.encoded(file, text), output)
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
@option("--target", help="numba-cuda (default where installed), cuda-c (else), opencl or numba-cpu.")
@option("--arch", default="sm_90", show_default=True, help="The GPU architecture of --ptx.")
@option("--ptx", is_flag=True, help="The PTX of every kernel; needs no GPU.")
@option(
    "--after",
    type=click.Choice(PASSES),
    metavar="PASS",
    help="Instead the loops as they are after this pass of lowering; a name that is none lists them.",
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
    strict_float: bool,
    fp_contract: str | None,
    output: Path | None,
    **options: Any,
) -> int:
    """Print the source of the kernels made of FILE."""
    from looptune.core.floating_point import chosen
    from looptune.deploy import source_to_source

    defines = defines_of(options.pop("defines"), options.pop("dataset"))
    lines = (*directives, *directives_of_config(config))
    floats = chosen(strict=strict_float, contract=fp_contract)
    text = source_to_source.emit(
        file, lines, target=_emitted(target, ptx), arch=arch, ptx=ptx, floats=floats, defines=defines, after=after,
        warn=warn, **options,
    )  # fmt: skip
    deliver(text, output)
    return 0


def _emitted(target: str | None, ptx: bool) -> str:
    """Return what is emitted where no target is named: CUDA C, which needs no library, where numba-cuda is missing."""
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
    help=f"all, or one or several of {', '.join(STRATEGIES)}.",
)
@option("--repeats", metavar="N", type=click.IntRange(1), default=50, show_default=True, help="Seeds of each.")
@option("--kernel", "kernels", metavar="NAME", multiple=True, help="Only these; default: all there are.")
@option("--budget", metavar="N", type=click.IntRange(1), help="Evaluations of a search; default: no limit.")
@option("--seed", metavar="N", type=SEED, default=0, show_default=True, help="The first seed.")
@option("--json", "as_json", is_flag=True, help="A JSON list, one object a kernel, strategy and level.")
@option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Write searches.md, .csv, .json, .png and .svg.",
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
    """Compare search strategies on what was measured: looptune's stores and exports, files of other tools."""
    from looptune.report import result_table, search_table
    from looptune.report.figures import style
    from looptune.report.figures.searches import searches
    from looptune.report.table import csv_text
    from looptune.tune.replay import load as recorded
    from looptune.tune.replay import simulate

    if output is not None:
        result_table.check_writable(output)
    chosen, notes = simulate.chosen(names)
    recordings = recorded.select(files if files else (DATABASE,), kernels)
    for said in notes:
        note(said)
    comparisons = []
    for recording in recordings:
        comparisons.append(simulate.compare(recording, chosen, repeats, seed, budget))
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
@option("--measure", is_flag=True, help="What each can do: bandwidth of copying and reading, FMA peaks.")
@option("--remeasure", was="--fresh", is_flag=True, help="Measure again what was measured before.")
@option("--json", "as_json", is_flag=True, help="A JSON list.")
def devices(measure: bool, remeasure: bool, as_json: bool) -> int:
    """List the devices kernels can run on here."""
    from dataclasses import asdict

    from looptune.report import result_table
    from looptune.runtime import peak_rates, targets
    from looptune.runtime.targets import CACHE

    if remeasure and not measure:
        raise UsageError("--remeasure needs --measure")
    found = targets.devices()
    own = targets.all_targets(CACHE) if measure else ()
    peaks = [
        peak_rates.of(t.machine(), t.backend(), CACHE, fresh=remeasure) if t.name in peak_rates.KNOWN else None
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
    """Say what is installed or missing, and how to fix it."""
    from looptune.cli.doctor import examine

    findings = examine()
    width = max(len(f.name) for f in findings)
    for f in findings:
        mend = f"   -> {f.mend}" if f.mend else ""
        click.echo(f"{f.status:8}{f.name.ljust(width)}  {f.found}{mend}")
    return 0 if all(f.status != "missing" for f in findings) else 1


for part in (
    run, check, predict, transform, emit, report, build, export, database, replay, devices, doctor,
):  # fmt: skip
    cli.add_command(part)


def _system(error: OSError | MemoryError | RecursionError) -> str:
    """Return what the system refused, in a sentence."""
    match error:
        case RecursionError():
            return recursion.TOO_DEEP
        case MemoryError():
            return f"this takes more memory than there is{f' ({error})' if str(error) else ''}: choose smaller sizes"
        case OSError(filename=str() | bytes() as name):
            return f"{os.fsdecode(name)}: {error.strerror}"
    return f"the system refused: {error.strerror if error.strerror else error}"


def _fail(message: str) -> NoReturn:
    """Say it and end; what standard output still holds is not tried again, where that is what failed."""
    with suppress(OSError):
        click.echo(f"error: {message}", err=True)
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
    recursion.allow()
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
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    sys.exit(code if isinstance(code, int) else 0)
