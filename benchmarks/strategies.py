"""How soon each search strategy comes near the best, replayed on finished stores; and whether one meets the aim.

    python benchmarks/strategies.py STORE [STORE ...] [--repeats 50] [--strategy NAME ...] [-o DIR]

The aim: within 5 % of the best of every recording after at most 10 % of its versions, median of the seeds, and sooner
than random search. Writes the summary to standard output, the page, CSV and plot of ``looptune replay`` to DIR. A
recording of fewer than SMALLEST versions says little: a tenth of it is a handful of questions.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from looptune.report import search_table
from looptune.report.figures import style
from looptune.report.figures.searches import searches
from looptune.report.table import csv_text
from looptune.tune.formats import files
from looptune.tune.replay import simulate

SMALLEST = 100


def main() -> None:
    options = argparse.ArgumentParser(description="search strategies replayed on finished stores")
    options.add_argument("stores", nargs="+", type=Path, metavar="STORE")
    options.add_argument("--repeats", type=int, default=50, metavar="N")
    options.add_argument("--strategy", action="append", metavar="NAME")
    options.add_argument("-o", "--output", type=Path, metavar="DIR")
    given = options.parse_args()
    kinds, notes = simulate.select_strategies(given.strategy if given.strategy else ["all"])
    print(*notes, sep="\n", file=sys.stderr)
    comparisons = []
    for recording in files.select(given.stores):
        if recording.versions < SMALLEST:
            print(f"{recording.name}: only {recording.versions} versions, left out", file=sys.stderr)
            continue
        start = time.process_time()
        comparisons.append(simulate.compare(recording, kinds, given.repeats, 0, None))
        print(f"{recording.name}: {time.process_time() - start:.1f} s", file=sys.stderr, flush=True)
    if not comparisons:
        sys.exit(f"no recording of at least {SMALLEST} versions")
    print(search_table.summary(comparisons))
    for c in comparisons:
        counts = ((name, c.score(name, simulate.LEVELS[0]).evaluations.median) for name in c.traces)
        name, least = min(counts, key=lambda pair: pair[1])
        print(f"{c.recording.name}: soonest {name}, {least:.0f} of {c.recording.versions}")
    if given.output is not None:
        given.output.mkdir(parents=True, exist_ok=True)
        (given.output / "searches.md").write_text(search_table.markdown(comparisons))
        (given.output / "searches.csv").write_text(csv_text(search_table.COLUMNS, search_table.records(comparisons)))
        if style.available():
            style.save(lambda: searches(comparisons), given.output / "searches")


if __name__ == "__main__":
    main()
