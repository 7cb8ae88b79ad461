"""The chart of GATLAS as a picture: each case over sizes, beside the library and what GATLAS itself was measured to do.

    python benchmarks/gatlas.py -o chart.tsv
    python benchmarks/gatlas_figure.py chart.tsv gatlas       writes gatlas.png and gatlas.svg

Shares of the peak of each device, since devices fifteen years apart differ by a factor of twenty: of the chart's as it
was measured, of GATLAS's the 2,720 GFLOP/s of a Radeon HD 5870. ``peers-gatlas.csv`` has its GFLOP/s on that card at
these sizes, from its own chart (docs/old/bench_sgemm/fullbench_sgemm.chart of github.com/cjang/GATLAS, 2010): float, A
and B as images or as buffers, without and with all transfers.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from looptune.core.errors import LooptuneError, UsageError
from looptune.report.figures import style

PEERS = Path(__file__).parent / "peers-gatlas.csv"
PEER_PEAK = 2720.0
CASES = {"nn": "A B", "nt": "A B'", "tn": "A' B", "tt": "A' B'"}
OURS, LIBRARY, IMAGES, BUFFERS = "tuned", "library", "GATLAS, images, HD 5870", "GATLAS, buffers, HD 5870"
LOOKS = {
    OURS: (style.BLUE, "o", "-"), LIBRARY: (style.ORANGE, "s", "--"),
    IMAGES: (style.GREEN, "^", "-"), BUFFERS: (style.PINK, "D", "--"),
}  # fmt: skip
Shares = dict[str, dict[str, list[tuple[int, float]]]]
"""By case and by whose: sizes, and percent of the peak."""


def shares(chart: Path) -> Shares:
    """UsageError where the file is no chart of square products."""
    lines = [line.split("\t") for line in chart.read_text().splitlines()]
    if not lines or lines[0][:5] != ["case", "M", "N", "K", "kernel us"]:
        raise UsageError(f"{chart} is no chart of benchmarks/gatlas.py: its first line does not name the columns")
    rate, library = 8, 13
    found: Shares = {case: {name: [] for name in LOOKS} for case in CASES}
    for cells in lines[1:]:
        if len({*cells[1:4]}) == 1 and cells[9] != "-":
            case, size, peak = found[cells[0]], int(cells[1]), float(cells[rate]) / float(cells[9])
            case[OURS].append((size, float(cells[rate]) / peak))
            if cells[library] != "-":
                case[LIBRARY].append((size, float(cells[library]) / peak))
    if not any(of[OURS] for of in found.values()):
        raise UsageError(f"{chart} has no line of a square product with its share of the peak")
    with PEERS.open() as file:
        for row in csv.DictReader(file):
            name = IMAGES if row["memory"] == "image" else BUFFERS
            found[row["case"]][name].append((int(row["size"]), 100 * float(row["gflops"]) / PEER_PEAK))
    return {case: of for case, of in found.items() if of[OURS]}


def drawn(found: Shares) -> Any:
    figure, panels = style.panels(len(found), 4, inches=(2.6, 2.6))
    handles: dict[str, Any] = {}
    for axes, (case, of) in zip(panels, found.items(), strict=True):
        style.set_title(axes, f"{case}: {CASES[case]}")
        for name, points in of.items():
            colour, marker, line = LOOKS[name]
            if points:
                (handles[name],) = axes.plot(
                    *zip(*points, strict=True), line, marker=marker, color=colour, ms=4, lw=1.3
                )
        axes.set_xscale("log", base=2)
        ticks = _sizes(of)
        axes.set_xticks(ticks, [str(t) for t in ticks], fontsize=6.5)
        axes.minorticks_off()
        axes.set_ylim(0, 100)
    style.label_axes(figure, "rows and columns of each matrix", "% of the device's peak of multiply-adds")
    style.legend(figure, handles)
    return figure


def _sizes(of: Mapping[str, Iterable[tuple[int, float]]]) -> list[int]:
    return sorted({size for points in of.values() for size, _ in points})


def main(arguments: Sequence[str]) -> int:
    options = argparse.ArgumentParser(description="The chart of benchmarks/gatlas.py as a picture")
    options.add_argument("chart", type=Path, help="tab-separated lines of benchmarks/gatlas.py")
    options.add_argument("stem", type=Path, help="STEM.png and STEM.svg are written")
    given = options.parse_args(arguments)
    try:
        if not style.available():
            raise UsageError("a picture needs matplotlib: pip install 'looptune[plot]'")
        found = shares(given.chart)
        for path in style.save(lambda: drawn(found), given.stem):
            print(path)
    except (LooptuneError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
