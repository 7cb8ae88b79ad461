"""Whether other tools read what looptune exports, and find in it what looptune found.

    python benchmarks/readers.py DB [--kernel K]

Of each search in a database: T4 results against the schema that Kernel Tuner has and, where it is installed, by the
statistics of autotuning-methodology; the T1 problem by Kernel Tuner's reader; the cache file by its simulation mode,
with the parameters and conditions in it and with those of the T1 problem. The best time has to be the same everywhere,
and the number of configurations what it is here. Exit code 1 where anything differs.

Kernel Tuner wants packages that looptune does not: ``pip install kernel-tuner`` into an environment that has looptune.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import kernel_tuner
from kernel_tuner import file_utils

from looptune.tune.formats import files, t1, t4
from looptune.tune.formats import kernel_tuner as cache
from looptune.tune.store.searches import Search, searches
from looptune.tune.store.store import Store

try:
    from autotuning_methodology.searchspace_statistics import SearchspaceStatistics
except ImportError:
    SearchspaceStatistics = None

Check = tuple[str, bool, str]
"""What was looked at, whether it agrees, and what was found."""


def main() -> None:
    options = argparse.ArgumentParser(description="exports read by the tools they are for")
    options.add_argument("db", type=Path, metavar="DB")
    options.add_argument("--kernel", metavar="K")
    given = options.parse_args()
    warnings.filterwarnings("ignore", category=UserWarning, module="kernel_tuner")
    print("kernel-tuner", importlib.metadata.version("kernel-tuner"))
    if SearchspaceStatistics is not None:
        print("autotuning-methodology", importlib.metadata.version("autotuning-methodology"))
    with Store.read(given.db) as store:
        found, commands = searches(store.rows()), store.commands()
    bad = 0
    for search in files.select_searches(found, given.kernel, given.db):
        command = next((commands[e.row.sweep] for e in search.entries if e.row.sweep in commands), "")
        best_ms = search.recording.best_us / 1e3
        print(f"{search.name}: {len(search.entries)} configurations, best {1e3 * best_ms:.6g} us")
        with tempfile.TemporaryDirectory() as folder:
            for what, same, seen in checks(search, command, Path(folder), best_ms):
                print(f"  {'same' if same else 'DIFFERS':8}{what}: {seen}")
                bad += not same
    sys.exit(1 if bad else 0)


def checks(search: Search, command: str, folder: Path, best_ms: float) -> Iterator[Check]:
    """All that the tools say of one search."""
    results, problem, cached = folder / "t4.json", folder / "t1.json", folder / "cache.json"
    results.write_text(t4.text(search))
    problem.write_text(t1.text(search, command))
    cached.write_text(cache.text(search))
    # Kernel Tuner looks for the file, and for its language, though it builds nothing here.
    source = folder / json.loads(problem.read_text())["KernelSpecification"]["KernelFile"]
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_text("")
    held = json.loads(cached.read_text())
    everything, timed = len(search.entries), sum(e.row.status == "timed" for e in search.entries)

    def judged(what: str, wanted: int, count: int, found_ms: float) -> Check:
        return what, (count, found_ms) == (wanted, best_ms), f"{count} configurations, best {1e3 * found_ms:.6g} us"

    jsonschema.validate(json.loads(results.read_text()), file_utils.output_file_schema("results")[1])
    yield "Kernel Tuner's schema of T4 results", True, "valid"
    file_utils.get_input_file(problem)
    yield "Kernel Tuner's reader of T1 problems", True, "valid"
    done, env = kernel_tuner.tune_cache(str(cached), restrictions=held["restrictions"], quiet=True)
    yield judged("Kernel Tuner's simulation of the cache", timed, len(done), env["best_config"]["time"])
    done, env = kernel_tuner.tune_kernel_T1(problem, cached, simulation_mode=True, output_T4=False)
    yield judged("Kernel Tuner's simulation of the T1 problem", everything, len(done), env["best_config"]["time"])
    if SearchspaceStatistics is not None:
        keys = ["compilation", "runtimes", "framework", "validation"]
        read = SearchspaceStatistics(search.name, search.context.device, True, keys, ["time"], results)
        yield judged("the methodology's statistics of the T4 results", everything, read.size,
                     read.total_performance_absolute_optimum())  # fmt: skip


if __name__ == "__main__":
    main()
