"""The command ``looptune build``: write tuned kernels as a file that does not need looptune."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from looptune.cli.options import (
    command,
    db_option,
    defines_of,
    deliver,
    file_options,
    float_options,
    objective_option,
    option,
    output_option,
    warn,
    write,
)
from looptune.core import cache_folder
from looptune.core.errors import UsageError
from looptune.core.escape import utf8

if TYPE_CHECKING:
    from looptune.core.settings import Objective


@command(
    examples="""
looptune build polybench/gemm.c -o gemm_tuned.py
looptune build polybench/gemm.c --c -o gemm_tuned.c
looptune build polybench/gemm.c --jax -o gemm_jax.py
looptune build polybench/gemm.c --untuned -o gemm_default.py
"""
)
@click.argument("file", type=click.Path(path_type=Path))
@file_options
@output_option
@option("--c", "as_c", is_flag=True, help="Write C with OpenMP instead of a Python module.")
@option("--torch", is_flag=True, help="Also register the function as an operator of torch, for torch.compile.")
@option("--jax", is_flag=True, help="Write a Python module whose function takes and returns arrays of JAX.")
@option(
    "--header",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="With --c: also write a header that declares the function.",
)
@option(
    "--target",
    default="auto",
    show_default=True,
    help="Build for numba-cuda, numba-cpu, or auto: the target that was measured.",
)
@db_option
@objective_option
@option("--untuned", was="--default", is_flag=True, help="Build the default configuration, without a database.")
@float_options
def build(
    file: Path,
    output: Path | None,
    as_c: bool,
    header: Path | None,
    torch: bool,
    jax: bool,
    target: str,
    db: Path,
    objective: Objective,
    untuned: bool,
    no_reassociate: bool,
    fp_contract: str | None,
    **options: Any,
) -> int:
    """Write the tuned kernels of FILE as a Python module or as C.

    Neither needs looptune.
    """
    from looptune.core.floating_point import floats_of_options
    from looptune.deploy import build as building
    from looptune.frontend import load
    from looptune.schedule.directive_lines import renamed_words

    if header is not None and not as_c:
        raise UsageError("--header needs --c: a Python module has none")
    if header is not None and output is not None and header.resolve() == output.resolve():
        raise UsageError(f"--header {header} and -o name one file: name two")
    if jax and (torch or as_c):
        raise UsageError(f"--jax writes a module of its own: leave out {'--torch' if torch else '--c'}")
    if untuned and objective != "time":
        raise UsageError("--untuned builds the default: leave out --objective")
    if torch and as_c:
        raise UsageError("--torch makes an operator of a Python module: leave out --c")
    defines = defines_of(options.pop("defines"), options.pop("dataset"))
    unit = load(file, defines=defines, **options)
    for message in (*unit.warnings, *renamed_words(unit.codelet)):
        warn(message)
    floats = floats_of_options(strict=no_reassociate, contract=fp_contract)
    command = shlex.join(["looptune", *map(utf8, sys.argv[1:])])
    if as_c or jax:
        made = building.as_jax if jax else building.as_c
        text = made(
            unit, db, target, command, default=untuned, floats=floats, warn=warn,
            cache=cache_folder.choose_folder()[0], objective=objective,
        )  # fmt: skip
        if header is not None:
            write(header, building.header(unit), "--header")
    else:
        text = building.as_python(
            unit, db, target, command, default=untuned, floats=floats, warn=warn, torch=torch, objective=objective
        )
    deliver(text, output)
    return 0
