"""The report of a device as a folder: tables, figures, and the page that holds them all.

reports/<device>/  table-best.md .csv .tex .json   table-times.md .csv .tex   figures/*.png .svg   index.html
                   compilers.md .csv, where a device was measured through several
reports/<device>-energy/    the same of what was chosen by energy, or -edp by EDP
reports/across/    the same of several devices together, and transfer.md .csv: the best of one on another
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from looptune.core.cache_file import replace_text
from looptune.report import best_table, compiler_table, transfer_table
from looptune.report.figures import index, style
from looptune.report.site.html import Picture, page
from looptune.report.transfer_table import transfers
from looptune.tune.results.studies import KernelStudy, by_device

if TYPE_CHECKING:
    from looptune.core.settings import Objective

ACROSS = "across"
_INSTALL = "no figures: matplotlib is not installed; install it with: pip install 'looptune[plot]'"
_SEARCHES = "searches"


@dataclass(frozen=True, slots=True)
class WrittenPage:
    """A page that was written; ``notes`` are lines that say what was left out."""

    page: Path
    notes: tuple[str, ...]


def write(studies: Sequence[KernelStudy], reports: Path, objective: Objective = "time") -> list[WrittenPage]:
    """Write a folder for each device and, if there are several, one that compares them; return the files.

    ``objective``: what the studies were chosen by. No other one's folder is overwritten.
    """
    folders, of = by_device(studies), "" if objective == "time" else f"-{objective}"
    made = [_folder(same, reports / f"{name}{of}") for name, same in folders.items()]
    return [*made, _folder(studies, reports / f"{ACROSS}{of}")] if len(folders) > 1 else made


def _folder(studies: Sequence[KernelStudy], folder: Path) -> WrittenPage:
    folder.mkdir(parents=True, exist_ok=True)
    best_table.write(studies, folder)
    pairs = compiler_table.compare_compilers(studies)
    if pairs:
        compiler_table.write(pairs, folder)
    taken = transfers(studies)
    if taken:
        transfer_table.write(taken, folder)
    wanted = index.figures(studies)
    drawn = index.write(wanted, folder / "figures") if style.available() else []
    notes = [f"no figure of {f.title[0].lower()}{f.title[1:]}: {f.missing}" for f in wanted if f.missing]
    pictures = [Picture(d.figure.name, d.figure.title, d.figure.caption, d.svg.read_text()) for d in drawn]
    pictures += _searches(folder)
    if not style.available():
        notes = [_INSTALL]
    elif not folder.name.startswith(ACROSS) and all(p.name != _SEARCHES for p in pictures):
        notes.append(f"no figure of search strategies: `looptune replay DATABASE --output {folder}` makes one")
    notes += [f"compilers on the same configurations: {folder / 'compilers.md'}"] if pairs else []
    notes += [f"the best of one device on another: {folder / 'transfer.md'}"] if taken else []
    written = folder / "index.html"
    replace_text(written, page(studies, pictures, notes))
    return WrittenPage(written, tuple(notes))


def _searches(folder: Path) -> list[Picture]:
    """Return what ``looptune replay`` drew here, which takes minutes and is not done again."""
    path = folder / f"{_SEARCHES}.svg"
    if not path.exists():
        return []
    caption = (
        "Best so far over the best of the space, against the share of the space evaluated; medians over seeds, from "
        "`looptune replay`."
    )
    return [Picture(_SEARCHES, "Search strategies", caption, path.read_text())]
