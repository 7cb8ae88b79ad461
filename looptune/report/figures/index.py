"""All figures of a set of studies: drawn if there are data, else named with the reason why there are none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from looptune.report import suite_table
from looptune.report.figures import style
from looptune.report.figures.blocks import blocks, register_blocks
from looptune.report.figures.entries import bars, entries
from looptune.report.figures.families import factor_figure, factors, order_figure, orders
from looptune.report.figures.roofline import rooflines, roofs
from looptune.report.figures.sensitivity import sensitivity, sensitivity_figure
from looptune.report.figures.summary import speedups
from looptune.report.figures.transfer import transfer_figure
from looptune.report.transfer_table import transfers
from looptune.tune.results.studies import KernelStudy, comparable_groups, names_of


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure; ``draw`` makes it, and is None if there is nothing to draw: ``missing`` then says why."""

    name: str
    title: str
    caption: str
    draw: Callable[[], Any] | None
    missing: str = ""


@dataclass(frozen=True, slots=True)
class FigureFile:
    """A figure on disk."""

    figure: Figure
    png: Path
    svg: Path


def figures(studies: Sequence[KernelStudy]) -> list[Figure]:
    """Return every possible figure, in the order of the page, of one device or of several."""
    several = len({s.device for s in studies}) > 1
    if several:
        return [_speedups(studies), _transfers(studies)]
    return [_speedups(studies), _times(studies), *_of_versions(studies)]


def _speedups(studies: Sequence[KernelStudy]) -> Figure:
    compared = [s for s in studies if suite_table.ratio(s.result, "default", "tuned") is not None]
    rows = {
        title: [*zip(names_of(same), (s.result for s in same), strict=True)]
        for title, same in comparable_groups(compared).items()
    }
    return _figure(
        "speedups", "Speed-up over the default", rows, speedups,
        "no kernel has both a default and a tuned time",
        "Tuned and hand-written kernels over the default, from the finals; on the right the geometric means.",
    )  # fmt: skip


def _times(studies: Sequence[KernelStudy]) -> Figure:
    return _figure(
        "times", "Each kernel's times over its default", entries(studies), bars,
        "of no kernel both the default and something else was timed",
        "The original loops on one core, the default, what others wrote and the tuned version, from the finals; under "
        "the names the medians, and thin lines from quartile to quartile. A broken bar is longer than it is drawn.",
    )  # fmt: skip


def _transfers(studies: Sequence[KernelStudy]) -> Figure:
    found = transfers(studies)
    return _figure(
        "transfer", "The best of one device on another", found if any(t.cost for t in found) else (), transfer_figure,
        "no configuration that is best on one device was measured on another: `looptune run FILE --sweep "
        "--transfer-from DATABASE` measures those of another database",
        "Time of each device's best directives over the device's own best, where both were measured, in the finals "
        "before the screening; under the names the sizes, of both where they differ. A cross: it fails there.",
    )  # fmt: skip


def _of_versions(studies: Sequence[KernelStudy]) -> list[Figure]:
    return [
        _figure(
            "factors", "Speed-up by unroll and tile factor", _known(factors, studies), factor_figure,
            "no three versions differ in the factor of one directive alone",
            "Versions that differ in this one directive alone, from the screening: contiguous or split copies, the "
            "rest in a remainder loop or guarded, inner loops jammed or not.",
        ),
        _figure(
            "orders", "Speed-up by order of the loops", _known(orders, studies), order_figure,
            "no two versions differ in their permutation alone",
            "Versions that differ in their permutation alone, from the screening.",
        ),
        _figure(
            "sensitivity", "How much each parameter matters", _known(sensitivity, studies), sensitivity_figure,
            "no parameter has two values",
            "The best time with each value of a parameter, all others free, over the best time of all, from the "
            "screening; for each kernel the parameters that matter most.",
        ),
        _figure(
            "blocks", "Register blocks", _known(blocks, studies), register_blocks,
            "no two loops are unrolled and jammed together in several ways",
            "The best time with each block of iterations that a thread runs side by side, all else free, over the "
            "best time of all, from the screening; dark is near the best, white four times it and more.",
        ),
        _figure(
            "roofline", "Roofline", roofs(studies), rooflines,
            "the peaks of the device are not in this database, a sweep of this looptune keeps them",
            "Operations of the original loops a second against operations a byte that any version has to move; the "
            "roof is what the device was measured to do. Times are from the finals. Kernels of equal intensity stand "
            "side by side.",
        ),
    ]  # fmt: skip


def write(wanted: Sequence[Figure], folder: Path) -> list[FigureFile]:
    """Write the figures that have data as ``<name>.png`` and ``<name>.svg``, and remove earlier ones of the others."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in (folder / f"{f.name}.{kind}" for f in wanted if f.draw is None for kind in ("png", "svg")):
        old.unlink(missing_ok=True)
    return [FigureFile(f, *style.save(f.draw, folder / f.name)) for f in wanted if f.draw is not None]


def _known(of: Callable[[KernelStudy], Any], studies: Sequence[KernelStudy]) -> list[Any]:
    """Return what there is to draw of each, under a name that no other has."""
    made = ((name, of(study)) for name, study in zip(names_of(studies), studies, strict=True))
    return [replace(one, kernel=name) for name, one in made if one is not None]


def _figure(
    name: str, title: str, data: Collection[Any], drawn: Callable[[Any], Any], missing: str, caption: str
) -> Figure:
    return Figure(name, title, caption, partial(drawn, data) if data else None, "" if data else missing)
