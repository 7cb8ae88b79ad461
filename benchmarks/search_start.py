"""How many versions `model` asks for until it is within 5 % of the best, by what it knows before its first question.

    python benchmarks/search_start.py STORE [--elsewhere STORE] [--repeats 50] [KERNEL ...]

A STORE is a database of whole sweeps of polybench/*.c with `--dataset PAPER`, plain or compressed by gzip. The columns
are the medians over the seeds, replayed on it: `alone`, without knowledge; `predicted`, with the times that `looptune
predict` gives for the device; `elsewhere`, with the winner of each kernel in the other store, as a database that has
both gives it to a search. The last line has the greatest share of the versions, and the geometric mean. Predictions
take some minutes.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import exp, log
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean

from looptune.core.errors import LooptuneError
from looptune.frontend import load
from looptune.schedule.directive_lines import current_text, parse_lines
from looptune.tune.cost_model.estimate import estimate
from looptune.tune.replay import simulate
from looptune.tune.session.predict import prediction_input
from looptune.tune.space.space import Configuration
from looptune.tune.store.searches import Search, newest, searches
from looptune.tune.store.store import Store, canonical_json
from looptune.tune.strategies.model import Model

FOLDER = Path(__file__).parent.parent / "polybench"
SMALLEST = 100
"""Two per cent of fewer versions are less than two."""
PART = 6
"""A search ends after this part of the versions."""
WAYS = ("alone", "predicted", "elsewhere")


@dataclass(frozen=True, slots=True)
class Line:
    """A kernel, its number of versions, and by way of WAYS the median number of questions; None: not known."""

    name: str
    versions: int
    asked: Mapping[str, float | None]

    def __str__(self) -> str:
        cells = [f"{n:.0f} ({n / self.versions:.1%})" if n is not None else "" for n in self.asked.values()]
        return f"| {self.name} | {self.versions} | {' | '.join(cells)} |"


def read(path: Path) -> list[Search]:
    """Return the newest search of each kernel in a store."""
    with tempfile.NamedTemporaryFile(suffix=".sqlite") as plain:
        content = path.read_bytes()
        plain.write(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
        plain.flush()
        with Store.read(Path(plain.name)) as store:
            return newest(searches(store.rows()))


def predictions(search: Search) -> dict[str, float]:
    """Return the predicted microseconds of the versions of a search that today's directives still allow."""
    found: dict[str, float] = {}
    for file in sorted(FOLDER.glob("*.c")):
        unit = load(file, defines={"PAPER_DATASET": None})
        if unit.codelet.name != search.context.kernel:
            continue
        what = prediction_input(unit, None, search.context.device)
        if canonical_json(what.sized.values) != search.context.sizes:
            continue
        for entry in search.entries:
            lines = current_text(entry.configuration.text).splitlines()
            try:
                planned = what.planned(parse_lines(lines, "configuration"))
            except LooptuneError:
                continue
            found[entry.configuration.text] = estimate(planned, what.sizes, what.chip).time_us
    return found


def line(repeats: int, elsewhere: str | None, search: Search) -> Line:
    """Return the line of a kernel; ``elsewhere``: the directives of the winner of the other store."""
    recording = search.recording
    known = {row.text for row in recording.table.rows}
    fast = (Configuration(tuple(elsewhere.splitlines())),) if elsewhere is not None and elsewhere in known else ()
    ways = {
        "alone": simulate.NOTHING,
        "predicted": simulate.Knowledge(predicted_us=predictions(search)),
        "elsewhere": simulate.Knowledge(fast) if fast else None,
    }
    asked = {way: None if given is None else questions(search, repeats, given) for way, given in ways.items()}
    return Line(search.name, recording.versions, asked)


def questions(search: Search, repeats: int, given: simulate.Knowledge) -> float:
    """Return the median of the questions until the best so far is within 5 % of the best of all."""
    level, recording = simulate.LEVELS[0], search.recording
    compared = simulate.compare(recording, [Model], repeats, 0, recording.versions // PART, given, level)
    return compared.score(Model.name, level).evaluations.median


def summary(lines: Sequence[Line], way: str) -> str:
    shares = [n / one.versions for one in lines if (n := one.asked[way]) is not None]
    return f"{max(shares):.1%}, mean {exp(fmean(map(log, shares))):.1%}" if shares else ""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("store", type=Path, metavar="STORE")
    options.add_argument("kernels", nargs="*", metavar="KERNEL")
    options.add_argument("--elsewhere", type=Path, metavar="STORE")
    options.add_argument("--repeats", type=int, default=50, metavar="N")
    options.add_argument("--jobs", type=int, default=2, metavar="N")
    given = options.parse_args()
    found = [s for s in read(given.store) if not given.kernels or s.context.kernel in given.kernels]
    found = [s for s in found if s.recording.versions >= SMALLEST]
    if not found:
        sys.exit(f"no search of at least {SMALLEST} versions")
    other = {} if given.elsewhere is None else {
        s.context.kernel: s.best.directives for s in read(given.elsewhere) if s.best is not None
    }  # fmt: skip
    print(f"| kernel | versions | {' | '.join(WAYS)} |\n|---|{'---:|' * (len(WAYS) + 1)}", flush=True)
    lines: list[Line] = []
    with ProcessPoolExecutor(given.jobs, get_context("spawn")) as pool:
        tasks = [pool.submit(partial(line, given.repeats, other.get(s.context.kernel)), s) for s in found]
        for task in tasks:
            lines.append(task.result())
            print(lines[-1], flush=True)
    print(f"| at most, and geometric mean | | {' | '.join(summary(lines, way) for way in WAYS)} |")
    print(f"\nCommand: `python benchmarks/search_start.py{''.join(' ' + a for a in sys.argv[1:])}`")


if __name__ == "__main__":
    main()
