"""The score of search strategies by the methodology of the field, beside Kernel Tuner's on the same recorded spaces.

    pip install kernel-tuner autotuning-methodology       # into an environment of its own that has looptune
    python benchmarks/search_score.py T4 [T4 ...] [--repeats 25] [--strategy NAME ...] [--kernel-tuner NAME ...] [-o MD]

The score is P of Willemsen et al., "A methodology for comparing optimization algorithms for auto-tuning" (2024): over
the budget of a space, how far the best configuration so far is from what a random search is expected to have (0) to
the optimum (1). The budget is the time in which a random search is expected to cover 95 % of the way from the median
to the optimum. The time of a question is what the file says of compiling, running and verifying, and the time that the
strategy itself took. All of this, the curves included, is computed by the package ``autotuning_methodology``.

Kernel Tuner's strategies run in its simulation mode on a cache file made of the same T4 file. Files may be compressed
by gzip. The public spaces: benchmark hub of auto-tuning, doi 10.5281/zenodo.15364124.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import random
import sys
import tempfile
import time
import warnings
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import kernel_tuner
import numpy as np
from autotuning_methodology.baseline import RandomSearchCalculatedBaseline
from autotuning_methodology.curves import StochasticOptimizationAlgorithm
from autotuning_methodology.searchspace_statistics import SearchspaceStatistics

from looptune.tune.formats import files
from looptune.tune.strategies import named

TIMES = ("compilation", "runtimes", "framework", "search_algorithm", "validation")
KERNEL_TUNER = ("genetic_algorithm", "hybrid_vndx", "diff_evo", "pso", "simulated_annealing", "greedy_ils")
START, END = 0.01, 0.95
"""Of the way of a random search from the median to the optimum: where the budget begins and ends."""
MARGIN = 1.1
"""Searches go on for so much of the budget, as those of the methodology do."""
POINTS = 1000
"""Of time, at which curves are compared."""

Run = tuple[np.ndarray, np.ndarray]
"""Of one search: the seconds after each question, and the best value so far, nan where there is none."""


@dataclass(frozen=True)
class Space:
    """A recorded space, with the time of each configuration in seconds and its value, nan where it failed."""

    name: str
    t4: dict[str, Any]
    statistics: Any
    table: Any
    seconds: np.ndarray
    values: np.ndarray
    begin_s: float
    end_s: float
    questions: int


def main() -> None:
    options = argparse.ArgumentParser(description="scores of search strategies on recorded spaces")
    options.add_argument("spaces", nargs="+", type=Path, metavar="T4")
    options.add_argument("--repeats", type=int, default=25, metavar="N")
    options.add_argument("--strategy", action="append", metavar="NAME", help="of looptune")
    options.add_argument("--kernel-tuner", action="append", metavar="NAME", help="a strategy of Kernel Tuner, or none")
    options.add_argument("-o", "--output", type=Path, metavar="MD")
    given = options.parse_args()
    warnings.filterwarnings("ignore")
    spaces = [read(path) for path in given.spaces]
    table: dict[str, list[float]] = {}
    searches = [(f"looptune `{n}`", partial(ours, n)) for n in given.strategy or ["model"]]
    searches += [(f"Kernel Tuner `{n}`", partial(theirs, n)) for n in given.kernel_tuner or KERNEL_TUNER if n != "none"]
    for title, search in searches:
        for space in spaces:
            start = time.process_time()
            runs = [search(space, seed) for seed in range(given.repeats)]
            table.setdefault(title, []).append(score(space, runs))
            asked = mean(len(times) for times, _ in runs)
            print(
                f"{title} {space.name}: {table[title][-1]:.3f}, {asked:.0f} questions, "
                f"{time.process_time() - start:.0f} s", file=sys.stderr, flush=True,
            )  # fmt: skip
    text = "\n".join(rows(spaces, table)) + "\n"
    print(text, end="")
    if given.output is not None:
        given.output.write_text(text)


def rows(spaces: list[Space], table: dict[str, list[float]]) -> Iterator[str]:
    """The table in Markdown: a line for each strategy, the best first."""
    yield f"| | {' | '.join(space.name for space in spaces)} | mean |"
    yield "|---|" + "---:|" * (len(spaces) + 1)
    for title, scores in sorted(table.items(), key=lambda row: -mean(row[1])):
        yield f"| {title} | {' | '.join(f'{s:.3f}' for s in scores)} | {mean(scores):.3f} |"


def read(path: Path) -> Space:
    """Read a T4 file by the methodology's reader and by looptune's, which have to agree on how much there is."""
    data = path.read_bytes()
    text = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "t4.json"
        plain.write_bytes(text)
        statistics = SearchspaceStatistics("", "", True, list(TIMES), ["time"], plain, full_validate=False)
        (recording,) = files.all_recordings(plain)
    values, seconds = statistics.objective_performances_total, statistics.objective_times_total
    assert len(recording.table.rows) == len(values), "no configuration twice"
    _, questions, begin_s, end_s = statistics.cutoff_point_fevals_time_start_end(START, END)
    name = path.name.split(".")[0].removesuffix("_T4").replace("_", " ")
    return Space(name, json.loads(text), statistics, recording.table, seconds, values, begin_s, end_s, int(questions))


def ours(name: str, space: Space, seed: int) -> Run:
    """One search by a strategy of looptune, whose own time is measured and counted."""
    number = {row.text: k for k, row in enumerate(space.table.rows)}
    start = time.perf_counter()
    strategy = named(name)(space.table, seed)
    own_s, spent_s = time.perf_counter() - start, 0.0
    asked: list[tuple[float, float]] = []
    opened: deque[int] = deque()
    while spent_s < MARGIN * space.end_s:
        start = time.perf_counter()
        configuration = strategy.ask()
        own_s += time.perf_counter() - start
        if configuration is None:
            break
        opened.append(number[configuration.text])
        spent_s += own_s + space.seconds[opened[-1]]
        own_s = 0.0
        asked.append((spent_s, space.values[opened[-1]]))
        start = time.perf_counter()
        while len(opened) >= strategy.window:
            k = opened.popleft()
            strategy.tell(space.table[k], None if np.isnan(space.values[k]) else 1e3 * float(space.values[k]))
        own_s += time.perf_counter() - start
    times, values = np.array(asked).T
    return times, np.fmin.accumulate(values)


def theirs(name: str, space: Space, seed: int) -> Run:
    """One search by a strategy of Kernel Tuner in its simulation mode; its own time is what it says of it."""
    results = space.t4["results"]
    parameters = {key: sorted({r["configuration"][key] for r in results}) for key in results[0]["configuration"]}
    members = {tuple(r["configuration"].values()) for r in results}

    def is_member(point: dict[str, Any]) -> bool:
        # Kernel Tuner would read the text of a lambda.
        return tuple(point.values()) in members

    cache = cache_of(space.name, parameters, space)
    random.seed(seed)
    np.random.seed(seed)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        path = Path(folder) / "cache.json"
        path.write_text(cache)
        found, _ = kernel_tuner.tune_kernel(
            "kernel", "__global__ void kernel() {}", 1, [], parameters, lang="CUDA", simulation_mode=True,
            restrictions=[is_member], cache=str(path), strategy=name, quiet=True,
            strategy_options={"time_limit": MARGIN * space.end_s}, verbose=False, seed=seed,
        )  # fmt: skip
    spent = ("compile_time", "verification_time", "benchmark_time", "strategy_time", "framework_time")
    times = np.cumsum([sum(r.get(key, 0.0) for key in spent) / 1e3 for r in found])
    values = np.array([r["time"] if isinstance(r.get("time"), float) else np.nan for r in found])
    return times, np.fmin.accumulate(values)


def cache_of(name: str, parameters: dict[str, list[Any]], space: Space) -> str:
    """Return a cache file of Kernel Tuner with the measurements of a T4 file; durations are milliseconds."""
    entries = {}
    for result, value in zip(space.t4["results"], space.values, strict=True):
        times, point = result["times"], result["configuration"]
        runs = times.get("runtimes", [])
        entries[",".join(map(str, point.values()))] = point | {
            "time": "RuntimeFailedConfig" if np.isnan(value) else float(value), "times": runs,
            "compile_time": times.get("compilation", 0.0), "verification_time": times.get("validation", 0.0),
            "benchmark_time": sum(runs), "strategy_time": 0.0, "framework_time": times.get("framework", 0.0),
            "timestamp": "2024-01-01 00:00:00+00:00",
        }  # fmt: skip
    return json.dumps({
        "device_name": name, "kernel_name": "kernel", "problem_size": 1, "tune_params_keys": list(parameters),
        "tune_params": parameters, "objective": "time", "cache": entries,
    })  # fmt: skip


@dataclass(frozen=True)
class _Results:
    """What the methodology reads of the searches: a row for each question, a column for each search."""

    fevals_results: np.ndarray
    objective_time_results: np.ndarray
    objective_performance_best_results: np.ndarray

    group_name = group_display_name = device_name = application_name = "search"
    stochastic = minimization = True

    @property
    def objective_time_results_per_key(self) -> np.ndarray:
        return self.objective_time_results[None]

    @property
    def objective_performance_results_per_key(self) -> np.ndarray:
        return self.objective_performance_best_results[None]

    def get_results(self) -> _Results:
        return self


def score(space: Space, runs: list[Run]) -> float:
    """Return the score of one strategy on one space: the mean over the budget, as ``get_strategy_scores`` takes it."""
    longest = max(len(times) for times, _ in runs)

    def padded(columns: list[np.ndarray]) -> np.ndarray:
        return np.array([np.pad(c.astype(float), (0, longest - len(c)), constant_values=np.nan) for c in columns]).T

    results = _Results(
        padded([np.arange(1, len(times) + 1) for times, _ in runs]),
        padded([times for times, _ in runs]),
        padded([values for _, values in runs]),
    )
    # The package draws bootstrap samples of the searches for its curve.
    np.random.seed(0)
    at = np.linspace(space.begin_s, space.end_s, POINTS)
    ordered = space.statistics.objective_performances_total_sorted
    curve = StochasticOptimizationAlgorithm(results).get_curve_over_time(
        at, dist=ordered, confidence_level=0.95, return_split=False
    )[2]
    baseline = RandomSearchCalculatedBaseline(space.statistics)
    return float(np.mean(baseline.get_standardised_curve(at, curve, x_type="time")))


if __name__ == "__main__":
    main()
