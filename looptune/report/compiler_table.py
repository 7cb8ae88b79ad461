"""Two compilers of one device on the same configurations: their times for the same plans.

    kernel  sizes  versions  numba-cuda best  cuda-c best  ratio of bests  median ratio  faster  alike  slower

A ratio is the first target's time divided by the second's; above 1 the second is faster. A version is faster if the
quartiles of its runs do not overlap the other's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from looptune.core.cache_file import replace_text
from looptune.core.si_units import time_text
from looptune.report.table import Column, Table, csv_text, plain_columns
from looptune.runtime.outcome import COMPILER, Timed
from looptune.tune.results.studies import KernelStudy

ORDER = ("numba-cuda", "cuda-c", "opencl", "numba-cpu")
"""Which target is the first of a comparison: the usual one."""
SHOWN = 10
"""Configurations of a kernel on the page, the fastest of either compiler; the CSV has all."""
COLUMNS = ("kernel", "sizes", "dtype", "device", "first", "second", "first_us", "second_us", "ratio", "verdict",
           "configuration")  # fmt: skip
_SUMMARY = plain_columns(
    ("kernel", "sizes", "targets", "versions", "best of each", "ratio", "median ratio", "faster", "alike", "slower"),
    ("versions", "best of each", "ratio", "median ratio", "faster", "alike", "slower"),
)
NOTE = """\
Times are medians of the screening, in which every version runs a few times; those that were cut off or failed through
one compiler are left out. A ratio is the first target's time over the second's: above 1 the second is faster. It counts
as faster or slower where the quartiles of the two do not meet. `compilers.csv` has every configuration.
"""


@dataclass(frozen=True, slots=True)
class Pair:
    """A configuration that was timed with both targets."""

    directives: str
    first: Timed
    second: Timed

    @property
    def ratio(self) -> float:
        return self.first.median_us / self.second.median_us

    @property
    def verdict(self) -> str:
        """Return the verdict on the second compiler."""
        if self.second.q3_us < self.first.q1_us:
            return "faster"
        return "slower" if self.second.q1_us > self.first.q3_us else "alike"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The configurations that two targets, ``first`` and ``second``, both timed; the fastest come first."""

    study: KernelStudy
    first: str
    second: str
    pairs: tuple[Pair, ...]

    @property
    def best(self) -> tuple[float, float]:
        """Return the fastest time of each compiler, in microseconds; they may belong to two configurations."""
        return min(p.first.median_us for p in self.pairs), min(p.second.median_us for p in self.pairs)

    @property
    def row(self) -> tuple[str, ...]:
        """Return a text for each column of the summary."""
        first, second = self.best
        counts = [sum(p.verdict == verdict for p in self.pairs) for verdict in ("faster", "alike", "slower")]
        return (
            self.study.kernel, f"{self.study.sizes}, {self.study.kind}", f"{self.first}, {self.second}",
            str(len(self.pairs)), f"{time_text(first)}, {time_text(second)}", f"{first / second:.3g}",
            f"{median(p.ratio for p in self.pairs):.3g}", *map(str, counts),
        )  # fmt: skip


def compare_compilers(studies: Sequence[KernelStudy]) -> tuple[Comparison, ...]:
    """Compare the compilers of each kernel that several compilers built for one device at the same sizes.

    Kernels without a configuration in common are left out.
    """
    groups: dict[tuple[str, ...], list[KernelStudy]] = {}
    for study in sorted((s for s in studies if s.context.target in ORDER), key=lambda s: ORDER.index(s.context.target)):
        c = study.context
        groups.setdefault((c.kernel, c.source_hash, c.device, c.sizes, c.dtype, c.options), []).append(study)
    made = (_comparison(group[0], other) for group in groups.values() for other in group[1:])
    return tuple(one for one in made if one.pairs)


def _comparison(first: KernelStudy, second: KernelStudy) -> Comparison:
    mine, theirs = first.timed(), second.timed()
    pairs = [Pair(text, mine[text], theirs[text]) for text in mine if text in theirs and _is_own(mine[text])]
    pairs.sort(key=lambda p: (min(p.first.median_us, p.second.median_us), p.directives))
    return Comparison(first, first.context.target, second.context.target, tuple(pairs))


def _is_own(outcome: Timed) -> bool:
    """Tell whether a target's own compiler made what was timed: another one may compile the versions of a search."""
    return COMPILER not in dict(outcome.facts)


def grid(comparisons: Sequence[Comparison]) -> Table:
    """Return a row for each kernel."""
    caption = "The same configurations through several compilers: above 1 the second is faster"
    return Table("compilers", caption, _SUMMARY, tuple(c.row for c in comparisons))


def details(c: Comparison, most: int) -> Table:
    """Return a row for each configuration, at most so many."""
    rows = tuple(
        (p.directives, time_text(p.first.median_us), time_text(p.second.median_us), f"{p.ratio:.3g}", p.verdict)
        for p in c.pairs[:most]
    )
    caption = f"{c.study.title}: the {len(rows)} fastest of {len(c.pairs)}"
    columns = (
        Column("configuration", "configuration", "code"), Column("first_us", c.first, "number"),
        Column("second_us", c.second, "number"), Column("ratio", "ratio", "number"),
        Column("verdict", f"{c.second} is"),
    )  # fmt: skip
    return Table("compilers", caption, columns, rows)


def markdown(comparisons: Sequence[Comparison]) -> str:
    """Return the comparison of compilers as a Markdown page."""
    grids = [grid(comparisons), *(details(c, SHOWN) for c in comparisons)]
    return "\n".join(["# Compilers on the same configurations", "", NOTE, *(g.markdown() for g in grids)])


def write(comparisons: Sequence[Comparison], folder: Path) -> Path:
    """Write ``compilers.md``, and ``compilers.csv`` with every configuration; return the path of the page."""
    rows = (
        (c.study.kernel, c.study.sizes, c.study.result.dtype, c.study.device, c.first, c.second, p.first.median_us,
         p.second.median_us, round(p.ratio, 4), p.verdict, "; ".join(p.directives.splitlines()))
        for c in comparisons for p in c.pairs
    )  # fmt: skip
    replace_text(folder / "compilers.csv", csv_text(COLUMNS, rows))
    page = folder / "compilers.md"
    replace_text(page, markdown(comparisons))
    return page
