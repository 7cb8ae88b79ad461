"""Whether Jiang and Snir's strategy finds what is nearly the best of its space with few evaluations.

    looptune run polybench/gemm.c --sweep --space pragmas/jiang-snir.pragmas --dataset STANDARD --db all.sqlite
    python benchmarks/jiang_snir.py all.sqlite [--repeats 50] [--strategy NAME ...]

The first command measures every version. The second replays searches on what it measured and prints, for each recording
and strategy, after how many evaluations the incumbent is within 3 % of the best, and whether that is at most 2 % of the
versions, median and worst of the seeds. Exit code 1 where the median of jiang-snir is more.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from math import inf
from pathlib import Path

from looptune.core.errors import LooptuneError
from looptune.tune.formats import files
from looptune.tune.replay import simulate

LEVEL, SHARE = 1.03, 0.02
ASKED = "jiang-snir"


def counts(comparison: simulate.Comparison, name: str) -> list[float]:
    """Of each search the evaluations until it was so near, in rising order; inf of one that never was."""
    limit = comparison.recording.best_us * LEVEL
    steps = [trace.reached(limit) for trace in comparison.traces[name]]
    return sorted(inf if step is None else step.evaluations for step in steps)


def main(arguments: Sequence[str]) -> int:
    options = argparse.ArgumentParser(description="Jiang and Snir's strategy replayed on an exhaustive sweep")
    options.add_argument("stores", nargs="+", type=Path, metavar="STORE")
    options.add_argument("--repeats", type=int, default=50, metavar="N")
    options.add_argument("--strategy", action="append", metavar="NAME", help="besides jiang-snir")
    given = options.parse_args(arguments)
    late = False
    try:
        kinds, _ = simulate.select_strategies([ASKED, *(given.strategy if given.strategy else ["random"])])
        print("| recording | versions | strategy | evaluations, median | worst | share | at most 2 % |\n|" + 7 * "---|")
        for recording in files.select(given.stores):
            comparison = simulate.compare(recording, kinds, given.repeats, 0, None)
            for name in comparison.traces:
                every = counts(comparison, name)
                share = every[len(every) // 2] / recording.versions
                late |= name == ASKED and share > SHARE
                cells = (recording.name, recording.versions, name, every[len(every) // 2], every[-1], f"{share:.1%}",
                         "yes" if share <= SHARE else "no")  # fmt: skip
                print(f"| {' | '.join(map(str, cells))} |", flush=True)
    except LooptuneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return int(late)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
