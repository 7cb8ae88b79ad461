"""Everything that can be made of the databases in ``reports/``, without a GPU: ``make reports``.

python benchmarks/published.py [FOLDER]      into build/reports, if no other folder is named

reports/<device>/results.sqlite.gz  ──▶  FOLDER/<device>/          tables, figures, index.html
                                         FOLDER/<device>/<type>/   a page for each kernel, summary-<type>.png
reports/across/devices.sqlite.gz    ──▶  FOLDER/across/            several devices together, transfer.md
reports/<device>/gatlas.tsv         ──▶  FOLDER/<device>/gatlas.png
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import gatlas_figure

from looptune.core.errors import LooptuneError
from looptune.report import result_table, suite_table
from looptune.report.figures import style
from looptune.report.figures.summary import speedups
from looptune.report.site import folder
from looptune.tune.results import studies
from looptune.tune.results.studies import KernelStudy, comparable_groups

REPORTS = Path(__file__).resolve().parent.parent / "reports"
DEVICES = tuple(sorted(REPORTS.glob("*/results.sqlite.gz")))
TOGETHER = REPORTS / folder.ACROSS / "devices.sqlite.gz"


def read(packed: Path) -> list[KernelStudy]:
    """The studies of a database, which is unpacked for as long as it takes to read it."""
    with TemporaryDirectory() as unpacked:
        path = Path(unpacked) / packed.stem
        path.write_bytes(gzip.decompress(packed.read_bytes()))
        return studies.read([path])


def device(packed: Path, output: Path) -> None:
    """Write the report of one device, and for each type a folder with the pages of its kernels."""
    found, name = read(packed), packed.parent.name
    folder.write(found, output)
    for same in comparable_groups(found).values():
        _only(name, output / name / same[0].result.dtype, partial(pages, same))


def pages(same: Sequence[KernelStudy], reports: Path) -> None:
    """Write what a sweep writes: a page for each kernel, and the picture of the speed-ups of all."""
    written = [result_table.write(study.result, reports) for study in same]
    if style.available():
        results = [study.result for study in same]
        rows = {suite_table.title(results): [(result.kernel, result) for result in results]}
        style.save(partial(speedups, rows), written[0].with_name(f"summary-{results[0].dtype}"), ("png",))


def together(packed: Path, output: Path) -> None:
    """Write the tables and the page of several devices together, and no folders of their own."""
    _only(folder.ACROSS, output / folder.ACROSS, partial(folder.write, read(packed)))


def _only(name: str, target: Path, write: Callable[[Path], object]) -> None:
    """Move one of the folders that ``write`` makes to ``target``."""
    with TemporaryDirectory() as made:
        write(Path(made))
        shutil.copytree(Path(made) / name, target, dirs_exist_ok=True)


def main(arguments: Sequence[str]) -> int:
    options = argparse.ArgumentParser(description="make the reports of the databases in reports/")
    options.add_argument("folder", nargs="?", type=Path, default=Path("build/reports"))
    output = options.parse_args(arguments).folder
    try:
        for packed in DEVICES:
            device(packed, output)
            print(output / packed.parent.name, flush=True)
        together(TOGETHER, output)
        print(output / folder.ACROSS)
    except (LooptuneError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    charts = sorted(REPORTS.glob("*/gatlas.tsv")) if style.available() else []
    return max((gatlas_figure.main([str(c), str(output / c.parent.name / "gatlas")]) for c in charts), default=0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
