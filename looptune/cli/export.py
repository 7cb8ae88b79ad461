"""The command ``looptune export``: write the searches of a database in the formats of other tools."""

from __future__ import annotations

from pathlib import Path

import click

from looptune.cli.db import select_rows, write_rows
from looptune.cli.options import check_not_input, command, db_option, option

FORMATS = ("t4", "t1", "kernel-tuner", "kernel-launcher", "csv")


@command(
    examples="""
looptune export --format t4 -o exported
looptune export --format kernel-tuner --kernel gemm -o gemm.cache.json
"""
)
@db_option
@option(
    "--format",
    "how",
    type=click.Choice(FORMATS),
    required=True,
    help="Choose the file format; docs/formats.md describes them.",
)
@option("--kernel", metavar="NAME", help="Select a kernel, or one search of it: 'gemm float32'.")
@option(
    "-o",
    "--output",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Write to a file or, for several searches, to a directory.  [default: standard output]",
)
def export(db: Path, how: str, kernel: str | None, output: Path | None) -> int:
    """Write the searches of a database in the formats of other tools."""
    from looptune.tune.formats import csv, files
    from looptune.tune.store.searches import searches
    from looptune.tune.store.store import Store

    with Store.read(db) as store:
        if how == "csv":
            write_rows(csv.write, select_rows(store, kernel), output)
            return 0
        found, commands = searches(store.rows()), store.commands()
    made = files.export_texts(files.select_searches(found, kernel, db), how, commands)
    if len(made) == 1 and output is None:
        click.echo(next(iter(made.values())), nl=False)
        return 0
    if output is not None:
        check_not_input(output)
    for path in files.write(made, output):
        click.echo(path, err=True)
    return 0
