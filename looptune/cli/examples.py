"""The command ``looptune examples``: the programs, spaces and plug-ins that the documentation uses.

An installed package has them in its folder ``data``; in a checkout they are folders of the repository.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from looptune.cli.options import command
from looptune.core.errors import UsageError

FOLDERS = (
    ("polybench", "the 15 kernels of PolyBench/GPU and belief propagation, with hand-written kernels"),
    ("polybench/c", "the 30 programs of PolyBench/C 4.2.1"),
    ("pragmas", "their search spaces"),
    ("gatlas", "the matrix products of GATLAS, with their space"),
    ("examples", "plug-ins: a directive, a search strategy, two backends; a stereo matcher, floats of 16 bits"),
)


def source() -> Path:
    """Return the folder that holds the examples."""
    package = Path(__file__).parents[1]
    for folder in (package / "data", package.parent):
        if (folder / "polybench" / "gemm.c").is_file():
            return folder
    raise UsageError(f"this installation has no examples: {package / 'data'} is missing")


@command(
    examples="""
looptune examples
looptune examples lessons
"""
)
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
def examples(directory: Path | None) -> int:
    """List the examples, or copy them to DIR.

    Files that DIR has already are left as they are, and a file that differs is an error.
    """
    root = source()
    if directory is None:
        for name, what in FOLDERS:
            others = [root / other for other, _ in FOLDERS if other.startswith(f"{name}/")]
            files = [p for p in _files(root) if p.is_relative_to(root / name)]
            own = [p for p in files if not any(p.is_relative_to(other) for other in others)]
            click.echo(f"{name:12} {len(own):3} files  {what}")
        click.echo(
            "copy them with `looptune examples DIR`, then for example: looptune run DIR/polybench/gemm.c --sweep"
        )
        return 0
    pairs = [(path, directory / path.relative_to(root)) for path in _files(root)]
    differing = [new for path, new in pairs if new.exists() and not _same(path, new)]
    if differing:
        raise UsageError(f"{differing[0]} is not the file of the examples: choose another folder")
    for path, new in pairs:
        new.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, new)
    click.echo(f"{len(pairs)} files in {directory}: continue with `looptune run {directory}/polybench/gemm.c --sweep`")
    return 0


def _files(root: Path) -> list[Path]:
    """Return the files of all folders, without what Python compiles and what looptune writes."""
    tops = dict.fromkeys(name.partition("/")[0] for name, _ in FOLDERS)
    found = (path for top in tops for path in (root / top).rglob("*") if path.is_file())
    written = ("__pycache__", ".looptune")
    return sorted(p for p in found if not any(part in written or part.endswith(".egg-info") for part in p.parts))


def _same(one: Path, other: Path) -> bool:
    return other.is_file() and one.read_bytes() == other.read_bytes()
