"""The command ``looptune predict``: predict the times of versions of a file by counting."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from looptune.cli.options import (
    command,
    defines_of,
    directive_options,
    directives_of_config,
    file_options,
    option,
    reassociate_option,
    warn,
)
from looptune.core.settings import DATABASE


@command(
    examples="""
looptune predict polybench/gemm.c --device h200
looptune predict polybench/gemm.c --device a100 --directive 'loop k: unroll 4'
looptune predict polybench/gemm.c --sweep
"""
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@file_options
@directive_options
@option(
    "--device",
    metavar="NAME",
    help="Predict for a GPU, such as h200, a100 or 'rtx 4090'.  [default: the GPU of the database, or h200]",
)
@option(
    "--sweep",
    is_flag=True,
    help="Predict every version of the search space, and compare the order with the measurements.",
)
@option(
    "--space",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Read the search space of --sweep from a file, as run does.",
)
@option(
    "--db", metavar="PATH", type=click.Path(path_type=Path),
    help=f"Compare with the measurements of this database.  [default: {DATABASE}, if it exists]",
)  # fmt: skip
@reassociate_option
@option("--json", "as_json", is_flag=True, help="Print one JSON object, or a list for several files.")
def predict(
    files: tuple[Path, ...], directives: tuple[str, ...], config: Path | None, device: str | None, sweep: bool,
    space: Path | None, db: Path | None, no_reassociate: bool, as_json: bool, **options: Any,
) -> int:  # fmt: skip
    """Predict time, memory traffic and coalescing on a GPU.

    Nothing is run: the GPU need not be present.
    """
    from looptune.core.errors import UsageError
    from looptune.frontend import load
    from looptune.report import cost_model
    from looptune.schedule.directive_lines import renamed_words
    from looptune.tune.session import predict as predicting

    if space is not None and not sweep:
        raise UsageError("--space needs --sweep")
    lines = (*directives, *directives_of_config(config))
    if sweep and lines:
        raise UsageError("--directive and --config choose one version: leave out --sweep")
    defines = defines_of(options.pop("defines"), options.pop("dataset"))
    held = db if db is not None else DATABASE if DATABASE.exists() else None
    records, rankings = [], []
    for file in files:
        unit = load(file, defines=defines, **options)
        for message in (*unit.warnings, *renamed_words(unit.codelet, lines)):
            warn(message)
        what = predicting.prediction_input(unit, held, device, reassociate=not no_reassociate)
        if sweep:
            rankings.append(predicting.ranking(what, file, space))
            records.append(cost_model.ranking_record(rankings[-1]))
            said = cost_model.ranking_text(rankings[-1])
        else:
            one = predicting.predict_version(what, lines)
            records.append(cost_model.record(one))
            said = cost_model.text(one)
        if not as_json:
            click.echo(said)
    if as_json:
        click.echo(json.dumps(records[0] if len(records) == 1 else records, indent=1))
    elif len(rankings) > 1:
        click.echo("\n".join(cost_model.verdict(r) for r in rankings))
    return 0
