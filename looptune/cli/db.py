"""The commands on a results database: ``looptune db show | failures | merge | prune | dump``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from io import TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import click

from looptune.cli.options import HELP, Group, check_not_input, db_option, option, output_option
from looptune.core.cache_file import replace_by
from looptune.core.errors import UsageError
from looptune.core.settings import DATABASE

CLASSES = ("illegal", "not_built", "over_limit", "wrong", "crashed", "timed_out")
"""Of what failed."""
UNTIMED = (*CLASSES, "cut_off")


def _other(db: Path) -> str:
    return "" if db == DATABASE else f" --db {db}"


def select_rows(store: Any, kernel: str | None) -> Any:
    """Return the rows of a kernel, or all. Raises UsageError if the database has none."""
    if kernel is None:
        return store.rows()
    rows = list(store.rows(kernel=kernel))
    if not rows:
        names = sorted({row.context.kernel for row in store.rows()})
        raise UsageError(f"no kernel {kernel} in {store.path}: it has {', '.join(names) if names else 'no rows'}")
    return rows


@click.group("db", cls=Group, context_settings=HELP, former={"export": "dump"})
def database() -> None:
    """Show, merge, prune and dump results databases."""


@database.command(
    examples="""
looptune db show
looptune db show --db gpu.sqlite --json
"""
)
@db_option
@option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(db: Path, as_json: bool) -> int:
    """Show what a database contains."""
    from looptune.core.si_units import amount
    from looptune.report import database_table
    from looptune.tune.store import maintenance
    from looptune.tune.store.connection import MIGRATIONS
    from looptune.tune.store.store import Store

    with Store.read(db) as store:
        rows = list(store.rows())
        found = database_table.parts(rows)
        counts = {"rows": len(rows), "sweeps": len(store.commands()), "schema": store.schema}
    size = maintenance.size_bytes(db)
    if as_json:
        record = {"path": str(db), "bytes": size, **counts, "contents": [database_table.record(part) for part in found]}
        click.echo(json.dumps(record, indent=1))
        return 0
    older = "" if counts["schema"] == len(MIGRATIONS) else f" (present: {len(MIGRATIONS)}; migrated when next written)"
    click.echo(f"{db}: {counts['rows']} rows of {counts['sweeps']} sweeps, {amount(size, 'B')}, "
               f"schema version {counts['schema']}{older}")  # fmt: skip
    for part in found:
        click.echo("\n" + database_table.text(part))
    return 0


@database.command(
    examples="""
looptune db failures
looptune db failures --kernel gemm --status wrong --no-group
"""
)
@db_option
@option("--kernel", metavar="NAME", help="Select a kernel.")
@option(
    "--status",
    "classes",
    was="--class",
    multiple=True,
    type=click.Choice(CLASSES),
    help="Select a status; repeatable.  [default: all]",
)
@option("--no-group", was="--each", is_flag=True, help="List every configuration separately.")
@option("--json", "as_json", is_flag=True, help="Print a JSON list with the complete evidence.")
def failures(db: Path, kernel: str | None, classes: tuple[str, ...], no_group: bool, as_json: bool) -> int:
    """List failed versions by reason, with evidence.

    Each reason is listed with a command that reproduces it.
    """
    from looptune.report import failure_table as failed
    from looptune.tune.store.store import Store

    with Store.read(db) as store:
        rows = list(select_rows(store, kernel))
        found = failed.collect(rows, store.commands(), classes if classes else failed.FAILED, each=no_group)
    if as_json:
        click.echo(json.dumps([{**f.record(), "command": f.command + _other(db)} for f in found], indent=1))
    elif found:
        click.echo(failed.text(found))
        if db != DATABASE:
            click.echo(f"\nadd --db {db} to a command to store its new outcome there")
    else:
        of = f" of status {' or '.join(classes)}" if classes else ""
        click.echo(f"no failures{of} among {len(rows)} rows{f' of {kernel}' if kernel is not None else ''} in {db}")
    return 0


@database.command(
    examples="""
looptune db merge other.sqlite --db results.sqlite
"""
)
@click.argument("others", metavar="OTHER...", nargs=-1, required=True, type=click.Path(path_type=Path))
@db_option
def merge(others: tuple[Path, ...], db: Path) -> int:
    """Copy the rows of OTHER databases into one.

    Of two rows of one configuration, a finished one is preferred to an unfinished one, then the newer to the older.
    """
    from looptune.tune.store import maintenance
    from looptune.tune.store.store import Store

    for path in others:
        Store.read(path).close()
    with Store.change(db, create=True) as store:
        for path, m in maintenance.merge_all(store, others):
            running = f", {m.running} left out because they are running" if m.running else ""
            click.echo(f"{path}: {m.new} rows new, {m.replaced} in place of older ones, "
                       f"{m.existing} not newer than those in {db}{running}")  # fmt: skip
    return 0


@database.command(
    examples="""
looptune db prune --failed --older-than 30d --dry-run
looptune db prune --kernel gemm --status crashed
"""
)
@db_option
@option("--kernel", metavar="NAME", help="Remove rows of this kernel.")
@option("--device", metavar="NAME", help="Remove rows of this device, as `db show` names it.")
@option("--lowering", metavar="V", help="Remove rows of this version of the code generator.")
@option(
    "--status",
    "classes",
    was="--class",
    multiple=True,
    type=click.Choice(UNTIMED),
    help="Remove rows of this status; repeatable.",
)
@option("--failed", is_flag=True, help="Remove rows of every status except timed and cut_off.")
@option(
    "--older-than", "age", metavar="AGE", help="Remove rows started longer ago than 30d, 2w, 12h or 90m, for example."
)
@option("--screened", is_flag=True, help="Remove the versions of finished sweeps that no finals timed.")
@option("--dry-run", is_flag=True, help="Only print what would be removed.")
def prune(
    db: Path, kernel: str | None, device: str | None, lowering: str | None, classes: tuple[str, ...], failed: bool,
    age: str | None, screened: bool, dry_run: bool,
) -> int:  # fmt: skip
    """Remove the rows that meet all given conditions.

    Rows of a running sweep are never removed.
    """
    from looptune.core.si_units import amount
    from looptune.report import database_table
    from looptune.tune.store import maintenance
    from looptune.tune.store.store import Store

    condition = maintenance.PruneFilter(
        kernel, device, lowering, CLASSES if failed else classes, maintenance.before(age), screened
    )
    if condition.empty:
        every = "--kernel, --device, --lowering, --status, --failed, --older-than or --screened"
        raise UsageError(f"say what to remove: {every}")
    with Store.change(db) as store:
        before = maintenance.size_bytes(db)
        removed = maintenance.prune(store, condition, dry_run=dry_run)
    for line in database_table.removed_text(removed):
        click.echo(line)
    count = sum(removed.values())
    if dry_run:
        click.echo(f"{count} rows would be removed from {db}")
    else:
        was, now = amount(before, "B"), amount(maintenance.size_bytes(db), "B")
        click.echo(f"{count} rows removed from {db}: {was} before, {now} now")
    return 0


@database.command(
    examples="""
looptune db dump -o rows.csv
looptune db dump --format jsonl --kernel gemm
"""
)
@db_option
@option("--kernel", metavar="NAME", help="Select a kernel.  [default: all]")
@option(
    "--format",
    "how",
    type=click.Choice(("csv", "jsonl")),
    default="csv",
    show_default=True,
    help="Print CSV or JSON lines.",
)
@output_option
def dump(db: Path, kernel: str | None, how: str, output: Path | None) -> int:
    """Print every row of a database.

    JSON lines also contain the results of sweeps.
    """
    from functools import partial

    from looptune.core.settings import OBJECTIVES
    from looptune.report import database_table
    from looptune.tune.formats import csv
    from looptune.tune.store.store import Store

    with Store.read(db) as store:
        concluded = [store.conclusions(objective) for objective in OBJECTIVES]
        write = csv.write if how == "csv" else partial(database_table.write_lines, concluded=concluded)
        write_rows(write, select_rows(store, kernel), output)
    return 0


def write_rows(write: Callable[[Any, TextIO], None], rows: Any, output: Path | None) -> None:
    """Write rows to a file, or to standard output."""
    if output is None:
        write(rows, sys.stdout)
        return

    def put(file: BinaryIO) -> None:
        text = TextIOWrapper(file, "utf-8", newline="")
        write(rows, text)
        text.detach()  # the file is closed where it was opened, and what that raises is seen

    check_not_input(output)
    try:
        replace_by(output, put)
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror}") from error
