"""Does the time at reduced sizes tell which versions are too slow? Finished stores, asked.

    looptune run polybench/*.c --sweep --no-early-stop --db DB        every version at both sizes
    python benchmarks/screening.py DB [DB ...]                     writes a Markdown table to standard output

For each kernel: the versions that have both times and Spearman's correlation of their ranks; then by what factor the
slowest, at reduced sizes, of the versions within 3 (and 1.05) times of the best is slower there than the best. A sweep
has to allow more than that, and allows SCREEN. `any best` is the same for 3, compared with whatever version that is as
fast as the default could have been the best so far. The last columns are what the rule makes of these versions: how
many it would have cut off, the milliseconds that one run of each of those takes, and how many of them are within 3
times of the best, against any best: there should be none.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from looptune.runtime.outcome import Timed
from looptune.tune.incumbent import Incumbent
from looptune.tune.measure.pruning import SCREEN, is_hopeless
from looptune.tune.store.store import Context, Row, Store

NEAR = 3.0
NEXT = 1.05


@dataclass(frozen=True)
class Version:
    best: Incumbent
    default: bool

    @property
    def us(self) -> float:
        return self.best.us

    @property
    def reduced_us(self) -> float:
        assert self.best.reduced_us is not None, "only versions with both times are looked at"
        return self.best.reduced_us


def known(row: Row) -> Version | None:
    """None where the row has not both times."""
    match row.outcome:
        case Timed() as outcome if row.role in ("default", "version"):
            best = Incumbent.of(outcome)
            return None if best.reduced_us is None else Version(best, row.directives == "" or row.role == "default")
    return None


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """
    >>> spearman([1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 40.0, 30.0])
    0.8
    """
    return round(float(np.corrcoef(_ranks(first), _ranks(second))[0, 1]), 12)


def _ranks(values: Sequence[float]) -> np.ndarray:
    """Equal values have the mean of their ranks."""
    _, place, count = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count - 1) / 2)[place]


def least_factor(versions: Iterable[Version], within_us: float, base_us: float) -> float:
    """A rule with a smaller factor than this, or this one, cuts off one of those that take at most ``within_us``."""
    return max(v.reduced_us for v in versions if v.us <= within_us) / base_us


def line(name: str, versions: Sequence[Version]) -> str:
    best = min(versions, key=lambda v: v.us)
    slowest_us = max((v.us for v in versions if v.default), default=max(v.us for v in versions))
    bases = [v for v in versions if v.us <= slowest_us]
    lost = [v for v in versions if is_hopeless(v.reduced_us, v.best.reduced_sizes, best.best)]
    good = [v for v in versions if v.us <= NEAR * best.us]
    wrongly = sum(any(is_hopeless(v.reduced_us, b.best.reduced_sizes, b.best) for b in bases) for v in good)
    cells = [
        name, best.best.reduced_sizes, str(len(versions)),
        f"{spearman([v.us for v in versions], [v.reduced_us for v in versions]):.2f}",
        f"{least_factor(versions, NEAR * best.us, best.reduced_us):.1f}",
        f"{least_factor(versions, NEXT * best.us, best.reduced_us):.1f}",
        f"{least_factor(versions, NEAR * best.us, min(b.reduced_us for b in bases)):.1f}",
        str(len(lost)), f"{sum(v.us for v in lost) / 1e3:.0f}", str(wrongly),
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def table(stores: Iterable[Path]) -> Iterator[str]:
    found: dict[tuple[Context, str], list[Version]] = {}
    for path in stores:
        with Store.read(path) as store:
            for row in store.rows():
                version = known(row)
                if version is not None:
                    found.setdefault((row.context, version.best.reduced_sizes), []).append(version)
    yield (f"| kernel | reduced sizes | versions | Spearman | within {NEAR:g} | within {NEXT:g} | any best | cut off "
           f"at {SCREEN:g} | ms saved | of these within {NEAR:g} |")  # fmt: skip
    yield "|---|---|" + 8 * "---:|"
    for (context, _), versions in sorted(found.items(), key=lambda item: (item[0][0].kernel, item[0][0].dtype)):
        if len({v.us for v in versions}) > 1:
            yield line(f"{context.kernel} {context.dtype}", versions)


def main() -> None:
    options = argparse.ArgumentParser(description="whether times at reduced sizes preserve the order")
    options.add_argument("stores", nargs="+", type=Path, metavar="DB")
    given = options.parse_args()
    lines = list(table(given.stores))
    if len(lines) == 2:
        sys.exit("no version there has both times: they are measured on a GPU, at sizes of a few hundred and more")
    print("\n".join(lines))
    print(f"\nCommand: `python benchmarks/screening.py{''.join(' ' + a for a in sys.argv[1:])}`")


if __name__ == "__main__":
    main()
