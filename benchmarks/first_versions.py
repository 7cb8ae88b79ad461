"""The first versions of derived spaces on a CPU beside gcc, by processor time: for a machine that others use too.

    python -m benchmarks.first_versions --dataset LARGE doitgen durbin          those kernels of polybench/c
    python -m benchmarks.first_versions --sections 8 FILE.c                     any file that times its one codelet

For each kernel it times the file as annotated, the loops on one core, and the first version of each of the first
sections of its derived space, on two threads. A time is that of the thread that computes longest, without the time in
which it waits for the others or for a core; the least of four runs, or of more or fewer where they are short or long.
Beside it stands the time of ``gcc -O3 -march=native`` of the same file, the least of up to three. Nothing is verified:
``looptune run`` does that.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from looptune.core.errors import LooptuneError
from looptune.frontend import Unit, load
from looptune.lower.pipeline import lower
from looptune.runtime.device import Cpu
from looptune.runtime.problem_sizes import problem
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.tune.measure import sequential
from looptune.tune.session.find_space import without_blocks
from looptune.tune.space.derive import derive
from looptune.tune.space.space import Space, parse

FOLDER = Path(__file__).parent.parent / "polybench" / "c"
INTEGERS = ("floyd-warshall", "nussinov")
"""Kernels whose type is no choice."""
RUNS = 4
SHORT_S, LONG_S = 0.02, 4.0
HEADS = ("kernel", "gcc (ms)", "as annotated", "one core", "first section", "best", "which")


@dataclass(frozen=True, slots=True)
class Version:
    """A version, and its seconds; ``why``: it has none."""

    lines: tuple[str, ...]
    seconds: float | None
    why: str = ""


def by_gcc(file: Path, dataset: str, dtype: str) -> float:
    """Return the seconds of processor time of the file's own program."""
    with tempfile.TemporaryDirectory() as folder:
        kind = [] if file.stem in INTEGERS or dtype == "float64" else ["-DDATA_TYPE=float"]
        made = ["gcc", "-O3", "-march=native", "-DTIME", f"-D{dataset}_DATASET", *kind, str(file)]
        subprocess.run([*made, "-o", f"{folder}/program", "-lm"], check=True)
        found: list[float] = []
        while len(found) < 3 and sum(found) < LONG_S:
            done = subprocess.run([f"{folder}/program"], capture_output=True, text=True, check=True)
            found.append(float(done.stderr.split()[0]))
        return min(found)


def clocks() -> dict[str, int]:
    """Return the nanoseconds of processor time of each thread of this process."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        try:
            found[task.name] = int((task / "schedstat").read_text().split()[0])
        except OSError:  # it has ended
            continue
    return found | {str(os.getpid()): time.thread_time_ns()}


def timed(program: Any, arrays: dict[str, Any], values: Any, limit_s: float) -> float:
    """Return the least seconds of the busiest thread, of a few runs on copies of the arrays."""
    times, place = list[float](), Cpu().place
    while (len(times) < RUNS or sum(times) < SHORT_S) and sum(times) < limit_s:
        own = {name: place(array) for name, array in arrays.items()}
        before = clocks()
        program.run(own, values)
        times.append(max(ns - before.get(task, 0) for task, ns in clocks().items()) / 1e9)
    return min(times)


def versions(unit: Unit, analysis: Analysis, values: Any, sections: int) -> Iterator[tuple[str, ...]]:
    """Yield the file as annotated, its loops on one core, and the first version of each of the first sections."""
    yield ()
    yield from (c.lines for c in sequential.version(analysis, (), values))
    space = parse(without_blocks(derive(analysis)), "<derived>").on("cpu")
    yield from islice((next(iter(Space((s,)))).lines for s in space.sections), sections)


def measure(file: Path, options: argparse.Namespace) -> list[Version]:
    """Return the versions of a file, each source once, with their times."""
    from looptune.backends.numba_cpu.backend import NumbaCpu  # noqa: PLC0415 - after the environment is set

    dtype = None if file.stem in INTEGERS else options.dtype
    unit = load(file, defines={f"{options.dataset}_DATASET": None}, dtype=dtype)
    analysis, size = Analysis(unit.codelet), problem(unit.codelet, unit.values)
    arrays, found, known = size.arrays(unit.codelet, 0), list[Version](), set[str]()
    with tempfile.TemporaryDirectory() as folder:
        backend = NumbaCpu(Path(folder))
        for lines in versions(unit, analysis, size.values, options.sections):
            try:
                plan = lower(schedule(analysis, parse_lines(lines), size.values).codelet)
                text = backend.emit(plan)
                if text not in known:
                    known.add(text)
                    program = backend.load(backend.build(plan))
                    found.append(Version(lines, timed(program, arrays, size.values, options.limit)))
            except LooptuneError as error:
                found.append(Version(lines, None, str(error)))
    return found


def row(name: str, gcc_s: float, found: Sequence[Version]) -> str:
    """Return the line of a table: gcc's milliseconds, and how many times as fast each version is."""
    alone = next((v for v in found if v.lines and all(": noParallel" in line for line in v.lines)), None)
    tried = [v for v in found[1:] if v is not alone and v.seconds is not None]
    best = min((v for v in found if v.seconds is not None), key=lambda v: v.seconds or 0.0, default=None)
    shown = "" if best is None else "; ".join(best.lines) or "as annotated"
    first = next(iter(tried), None)
    cells = [name, f"{gcc_s * 1e3:.4g}", *(_times(gcc_s, v) for v in (found[0], alone, first, best)), shown]
    return f"| {' | '.join(cells)} |"


def _times(gcc_s: float, version: Version | None) -> str:
    return "" if version is None or version.seconds is None else f"{gcc_s / version.seconds:.3g}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, a line for each kernel."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", help="names of polybench/c, or files; default: all 30")
    parser.add_argument("--dataset", default="LARGE")
    parser.add_argument("--dtype", default="float32", choices=["float32", "float64"])
    parser.add_argument("--sections", type=int, default=6)
    parser.add_argument("--limit", type=float, default=1.0, help="seconds in which a version is run again")
    options = parser.parse_args(arguments)
    # What a thread that waits for another does meanwhile would count as its work.
    os.environ.update(OMP_WAIT_POLICY="passive", NUMBA_NUM_THREADS="2")
    print(f"| {' | '.join(HEADS)} |\n|---|{'---:|' * (len(HEADS) - 2)}---|")
    for name in options.kernels or sorted(path.stem for path in FOLDER.glob("*.c")):
        file = Path(name) if name.endswith(".c") else FOLDER / f"{name}.c"
        gcc_s = by_gcc(file, options.dataset, options.dtype)
        print(row(file.stem, gcc_s, measure(file, options)), flush=True)


if __name__ == "__main__":
    main()
