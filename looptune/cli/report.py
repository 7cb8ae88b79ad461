"""The command ``looptune report``: write a database as tables, figures and an HTML page."""

from __future__ import annotations

from pathlib import Path

import click

from looptune.cli.options import command, objective_option, option, reports_option
from looptune.core.settings import DATABASE, Objective


@command(
    examples="""
looptune report
looptune report --db gpu.sqlite --db cpu.sqlite --reports reports
"""
)
@option(
    "--db",
    "databases",
    metavar="PATH",
    multiple=True,
    type=click.Path(path_type=Path),
    default=(DATABASE,),
    show_default=True,
    help="Read this results database; repeatable.",
)
@objective_option
@reports_option
@option("--kernel", "kernels", metavar="NAME", multiple=True, help="Select a kernel; repeatable.  [default: all]")
def report(databases: tuple[Path, ...], objective: Objective, reports: Path, kernels: tuple[str, ...]) -> int:
    """Write tables, figures and an HTML page from results databases."""
    from looptune.report import result_table
    from looptune.report.site import folder
    from looptune.tune.results import studies

    found = studies.read(databases, kernels, objective)
    result_table.check_writable(reports)
    for written in folder.write(found, reports, objective):
        for note in written.notes:
            click.echo(note)
        click.echo(f"report: {written.page}")
    return 0
