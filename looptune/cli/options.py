"""The options that commands share, and what their values mean."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from looptune.core.cache_file import read_file, replace_by
from looptune.core.errors import UsageError
from looptune.core.floating_point import CONTRACTS
from looptune.core.settings import DATABASE, OBJECTIVES, REPORTS
from looptune.core.source import with_severity

DATASETS = ("MINI", "SMALL", "MEDIUM", "STANDARD", "LARGE", "EXTRALARGE", "PAPER")
STRATEGIES = (
    "exhaustive", "random", "sampling", "sections", "jiang-snir", "gatlas-trials", "gatlas-nested", "local",
    "evolutionary", "model", "optuna", "pyatf",
)  # fmt: skip
"""The names of ``looptune.tune.strategies.ALL``, here so that the help needs none of them."""
PASSES = (
    "split-reduction", "ping-pong-arrays", "resident-arrays", "map-loops", "temporal-tiling", "resident-tiles",
    "reduction-simplification", "thread-teams", "scalar-replacement", "warp-tiles", "kernel-parameters",
    "grid-compaction", "annotations", "tall-grids", "host-launches", "fp-contraction", "uneven-strips",
    "if-conversion", "init-fusion", "lane-registers", "block-copies", "own-copies", "shared-memory",
    "temporal-tile-bodies", "resident-bodies", "team-updates", "full-strips", "tile-copies", "local-cse",
    "address-split", "time-bands", "serial-nests", "reassociation", "unswitch",
)  # fmt: skip
"""Those of ``looptune.lower.pipeline.PASSES``, likewise."""

HELP = {"help_option_names": ["-h", "--help"]}


class Option(click.Option):
    """An option that also answers to its former name, ``was``, for one release."""

    def __init__(self, names: Sequence[str], was: str = "", **settings: Any) -> None:
        super().__init__(names, **settings)
        pairs = zip(was.split("/"), names[0].split("/"), strict=True) if was else ()
        self.former = {old.lstrip("-"): new.lstrip("-") for old, new in pairs}


class Command(click.Command):
    """A command that accepts former names of its options, and whose help ends with ``examples``, one a line."""

    def __init__(self, *args: Any, examples: str = "", **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.examples = examples.strip().splitlines()
        former = {old: new for p in self.params if isinstance(p, Option) for old, new in p.former.items()}

        def current(name: str) -> str:
            if name not in former:
                return name
            warn(f"--{name} is now --{former[name]}")
            return former[name]

        self.context_settings = {**self.context_settings, "token_normalize_func": current}

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}{line.strip()}\n")


class Group(click.Group):
    """Commands in the order of their declaration; ``former`` maps the names of one release ago to the new ones."""

    command_class = Command

    def __init__(self, *args: Any, former: Mapping[str, str] | None = None, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.former = former if former is not None else {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, by its former name too."""
        new = self.former.get(args[0])
        if new is not None:
            parent = "" if ctx.parent is None else f"{ctx.info_name} "
            warn(f"{parent}{args[0]} is now {parent}{new}")
            args = [*new.split(), *args[1:]]
        return super().resolve_command(ctx, args)


command = partial(click.command, cls=Command)
option = partial(click.option, cls=Option)


def file_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how a C file is read; they are the same for every command that takes one."""
    options = (
        option(
            "--kernel",
            metavar="NAME",
            help="Select a function, a loop (FUNCTION:LINE), an hmpp label or an hmpp group of FILE.",
        ),
        option(
            "-D",
            "defines",
            metavar="NAME[=VALUE]",
            multiple=True,
            help="Define a macro, or set a parameter of the function; run takes lists of sizes, N=512,1000.",
        ),
        option(
            "-I",
            "include_dirs",
            metavar="DIR",
            multiple=True,
            type=click.Path(path_type=Path),
            help="Search this directory for headers.",
        ),
        option(
            "--dataset",
            metavar="NAME",
            help=f"Define the macro NAME_DATASET, which selects sizes: {', '.join(DATASETS)}.",
        ),
        option("--dtype", type=click.Choice(["float32", "float64"]), help="Replace the floating-point type of FILE."),
    )
    for declared in reversed(options):
        function = declared(function)
    return function


def directive_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option for directives outside the file."""
    return option(
        "--directive",
        "directives",
        was="--with",
        metavar="LINE",
        multiple=True,
        help="Add a directive, such as 'loop k: unroll 4'; repeatable.",
    )(function)


def directive_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for directives outside the file: single lines, and the directives of a result file."""
    config = option(
        "--config",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="Add the winning directives of a result, a JSON file that run wrote.",
    )
    return directive_option(config(function))


def reassociate_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option that forbids reassociation, for commands that compute nothing."""
    return option(
        "--no-reassociate",
        "no_reassociate",
        was="--strict-float",
        is_flag=True,
        help="Keep the order of floating-point sums: no reduction is reassociated.",
    )(function)


def float_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for floating-point semantics; see ``looptune.core.floating_point.floats_of_options``."""
    strict = option(
        "--no-reassociate",
        "no_reassociate",
        was="--strict-float",
        is_flag=True,
        help="Round each floating-point operation by itself and in C's order: no reassociation, no contraction.",
    )
    contract = option(
        "--fp-contract",
        type=click.Choice(CONTRACTS),
        help="Round a * b + c once: as the C compiler does (cc), always (fast) or never (off).  [default: cc]",
    )
    return strict(contract(function))


def site_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say where a sweep runs; see ``looptune.tune.execution.executor``."""
    devices = option(
        "--devices",
        metavar="LIST",
        help="Use these GPUs: all, or numbers or model names (0,1 or h100). GPUs of one model share the work; each "
        "model is tuned separately.  [default: the first GPU]",
    )
    cluster = option(
        "--cluster",
        metavar="ADDRESS",
        help="Compile and measure on a Dask cluster: the address of its scheduler, or local[:N] for N local processes.",
    )
    return devices(cluster(function))


def db_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option for the results database."""
    return option(
        "--db",
        metavar="PATH",
        type=click.Path(path_type=Path),
        default=DATABASE,
        show_default=True,
        help="Use this results database.",
    )(function)


def objective_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option for what a version was chosen by."""
    return option(
        "--objective",
        type=click.Choice(OBJECTIVES),
        default=OBJECTIVES[0],
        show_default=True,
        help="Take the versions with the least time, or those that a sweep with this objective chose.",
    )(function)


def reports_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option for the directory of reports; see ``looptune.report``."""
    return option(
        "--reports",
        metavar="DIR",
        type=click.Path(path_type=Path),
        default=REPORTS,
        show_default=True,
        help="Write reports to this directory, in one folder per device.",
    )(function)


def output_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an option for an output file that replaces standard output; see ``deliver``."""
    return option(
        "-o",
        "--output",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="Write to FILE instead of standard output.",
    )(function)


def deliver(text: str | bytes, output: Path | None) -> None:
    """Write to a file, or to standard output: bytes as they are, where it takes bytes."""
    if output is not None:
        write(output, text)
    elif isinstance(text, str) or hasattr(sys.stdout, "buffer"):
        click.echo(text, nl=False)
    else:
        click.echo(text.decode("utf-8", errors="replace"), nl=False)


def write(output: Path, text: str | bytes, option: str = "-o") -> None:
    """Write to a file that the user named with -o, or with another option."""
    check_not_input(output, option)
    try:
        data = text.encode("utf-8") if isinstance(text, str) else text
        replace_by(output, lambda file: file.write(data))
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror}") from error


WRITTEN = ("output", "header")
"""The parameters of commands that name a file to write."""


def check_not_input(output: Path, option: str = "-o", also: Iterable[Path] = ()) -> None:
    """Raise UsageError if the output is a file that the command reads: one of its paths, or one of ``also``."""
    context = click.get_current_context(silent=True)
    given = [] if context is None else [v for name, v in context.params.items() if name not in WRITTEN]
    paths = [p for v in given for p in (v if isinstance(v, tuple) else (v,)) if isinstance(p, Path)]
    for path in (*paths, *also):
        if path.is_file() and output.exists() and path.samefile(output):
            raise UsageError(f"{option} {output} is a file that this command reads: name another one")


class Seconds(click.FloatRange):
    """A time that a process can wait: up to eleven days."""

    def __init__(self) -> None:
        super().__init__(0.1, 1e6)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number; NaN is refused."""
        found = super().convert(value, param, ctx)
        if math.isnan(found):
            self.fail(f"{value} is not a number of seconds", param, ctx)
        return found


SEED = click.IntRange(0, 2**32 - 1)
"""What every strategy and NumPy take as a seed."""


def warn(message: str) -> None:
    """Print a warning on standard error, after its place in a file where it has one, once in a run of the command."""
    context = click.get_current_context(silent=True)
    said = set[str]() if context is None else context.meta.setdefault(f"{__name__}.said", set[str]())
    if message not in said:
        said.add(message)
        click.echo(with_severity("warning", message), err=True)


def note(message: str) -> None:
    """Print a note on standard error, after its place in a file where it has one."""
    click.echo(with_severity("note", message), err=True)


def defines_of(defines: tuple[str, ...], dataset: str | None, *, lists: bool = False) -> dict[str, str | None]:
    """Return ``NAME=VALUE`` texts as a mapping; ``lists``: a value may be a list of sizes.

    Raises UsageError if a name is missing or is not an identifier, and for lists that are not taken.
    """
    made: dict[str, str | None] = {}
    for text in defines:
        name, equals, value = text.partition("=")
        if not name.isidentifier() or not name.isascii():
            raise UsageError(
                f"-D {text}: expected NAME or NAME=VALUE, got {f'the name {name!r}' if name else 'no name'}"
            )
        if not lists and _SIZES.fullmatch(value):
            raise UsageError(f"-D {text}: run alone takes a list of sizes, give one")
        made[name] = value if equals else None
    if dataset is not None:
        size = dataset.upper().removesuffix("_DATASET")
        if size not in DATASETS:
            raise UsageError(f"unknown dataset '{dataset}': choose one of {', '.join(DATASETS)}")
        made[f"{size}_DATASET"] = None
    return made


_SIZES = re.compile(r"\d+(?:,\d+)+", re.ASCII)
_BROKEN_LIST = re.compile(r"\s*(?:\d+\s*,|,\s*\d).*", re.ASCII | re.DOTALL)
"""What begins with a size and a comma, or with a comma and a size."""


def each_size(defines: Mapping[str, str | None]) -> list[dict[str, str | None]]:
    """Return the definitions once for each size where some are lists of sizes, ``N=512,1000,4096``.

    Several lists are taken together, so that they have one length. Raises UsageError where they have not, where a
    size occurs twice, and where a value begins as a list and is none.

    >>> each_size({"N": "8,16", "M": "2,4", "K": "3"})
    [{'N': '8', 'M': '2', 'K': '3'}, {'N': '16', 'M': '4', 'K': '3'}]
    """
    for name, text in defines.items():
        if text is not None and _BROKEN_LIST.fullmatch(text) and not _SIZES.fullmatch(text):
            raise UsageError(f"-D {name}={text}: a list of sizes has whole numbers between its commas, as in 512,1000")
    lists = {name: text.split(",") for name, text in defines.items() if text is not None and _SIZES.fullmatch(text)}
    if not lists:
        return [dict(defines)]
    (first, sizes), *others = lists.items()
    for name, other in others:
        if len(other) != len(sizes):
            raise UsageError(
                f"-D {name}={defines[name]}: {len(other)} sizes, and -D {first}={defines[first]} has {len(sizes)}: "
                "lists of sizes are taken together"
            )
    made = [{**defines, **dict(zip(lists, values, strict=True))} for values in zip(*lists.values(), strict=True)]
    for k, one in enumerate(made):
        if one in made[:k]:
            raise UsageError(f"-D {first}={defines[first]}: {one[first]} is named twice")
    return made


def directives_of_config(config: Path | None) -> tuple[str, ...]:
    """Return the directives of a report's JSON: one object, or the list of a device folder."""
    if config is None:
        return ()
    try:
        held = json.loads(read_file(config))
    except OSError as error:
        raise UsageError(f"cannot read {config}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{config} is not JSON: {error}") from error
    found = [r for r in (held if isinstance(held, list) else [held]) if isinstance(r, Mapping) and "directives" in r]
    if not found:
        raise UsageError(f"{config} holds no result with directives")
    return tuple(str(found[-1]["directives"]).splitlines())
