"""The command ``looptune cc``: a C compiler that builds programs whose codelets run on a GPU where there is one."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from looptune.cli.options import Command, db_option, float_options, note, option, warn


class CompilerWrapper(Command):
    """A command that takes its own long options from anywhere, and everything else as arguments of a compiler."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the own options first, and the compiler's after ``--``."""
        takes_value = {name: not p.is_flag for p in self.params if isinstance(p, click.Option)
                       for name in (*p.opts, *p.secondary_opts) if name.startswith("--")}  # fmt: skip
        own: list[str] = []
        others: list[str] = []
        items = iter(args)
        for item in items:
            name, given, _ = item.partition("=")
            if item in ("-h", "--help"):
                own.append(item)
            elif name in takes_value:
                own.append(item)
                if takes_value[name] and not given:
                    value = next(items, None)
                    if value is None:
                        raise click.BadOptionUsage(name, f"{name} needs a value", ctx)
                    own.append(value)
            else:
                others.append(item)
        return super().parse_args(ctx, [*own, "--", *others])


@click.command(
    cls=CompilerWrapper,
    examples="""
looptune cc polybench/gemm.c -O2 -o gemm
looptune cc app.c util.c -O3 -march=native -lm -o app --arch sm_90
looptune cc -c app.c -o app.o --kernel update:120 --keep generated
""",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[GCC'S ARGUMENTS]...")
@option(
    "--kernel",
    "kernels",
    metavar="NAME",
    multiple=True,
    help="Replace this function, loop (FUNCTION:LINE) or hmpp label; repeatable.  [default: the codelets and scops]",
)
@option(
    "--arch",
    metavar="LIST",
    help="Carry machine code for these architectures, and PTX of the last for later ones; none: for the host alone.  "
    "[default: sm_80,sm_90]",
)
@option("--keep", metavar="DIR", type=click.Path(path_type=Path), help="Keep the generated files in this directory.")
@option("--shared", "library", flag_value="shared", help="Build a shared library of the codelets, with a header.")
@option("--static", "library", flag_value="static", help="Build a static library of the codelets, with a header.")
@option("--openmp/--no-openmp", default=True, show_default=True, help="Run parallel loops on all cores of the host.")
@db_option
@float_options
def cc(
    arguments: tuple[str, ...],
    kernels: tuple[str, ...],
    arch: str | None,
    keep: Path | None,
    library: Literal["shared", "static"] | None,
    openmp: bool,
    db: Path,
    no_reassociate: bool,
    fp_contract: str | None,
) -> int:
    """Compile and link C as gcc does, with codelets that run on a GPU where there is one.

    All options of gcc are passed on. Every codelet, `#pragma scop` or --kernel is replaced by a call that runs the best
    version of the database for the GPU and the sizes of the call, and elsewhere the original loops.
    """
    from looptune.core.errors import UsageError
    from looptune.core.floating_point import floats_of_options
    from looptune.core.settings import DATABASE
    from looptune.deploy.program.build import ProgramBuild, ProgramOptions, execute_compiler
    from looptune.deploy.program.command_line import is_question, parse
    from looptune.deploy.program.machine_code import architectures

    if is_question(arguments):
        return execute_compiler(arguments)
    if db != DATABASE and not db.exists():
        raise UsageError(f"no database {db}: `looptune run --sweep` creates it, --db names another")
    floats = floats_of_options(strict=no_reassociate, contract=fp_contract)
    options = ProgramOptions(
        kernels, architectures(arch), db, keep, openmp, library="" if library is None else library, floats=floats
    )
    return ProgramBuild(parse(arguments), options, warn, note).run()
