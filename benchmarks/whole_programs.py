"""Programs of ``looptune cc`` on a GPU: what they print, and their kernels' time beside that of the sweep.

    python benchmarks/whole_programs.py [--db FILE] [--runs N] [--seconds S] [--dataset NAME] [FILE.c ...]

For each C file (default: polybench/*.c): the program as gcc makes it, and as ``looptune cc`` does with what the
database has for this GPU, or for another one at the same sizes. The table has the largest relative difference of the
numbers that both print; the time of the kernels in the program, by the events that LOOPTUNE_REPORT reads, the median
and quartiles over ``--runs`` processes, each of which calls the codelet once; the mean of later calls, of a library of
the same kernels; the time of the same directives at the same sizes as a sweep measures it, with the L2 flushed before
each run, through Numba and through CUDA C; and the program's transfers. A program that was not tuned has no time of a
sweep.

``--folder`` keeps the programs: they are not built again if they are there. ``--outputs`` is a folder with what gcc's
programs print, in files NAME.txt, for the programs that are not to be run here. Writes Markdown to standard output.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from looptune.backends.cuda.cuda_c import CudaC
from looptune.backends.cuda.launch import C_TYPES
from looptune.core.errors import LooptuneError
from looptune.core.settings import FINALS_S
from looptune.deploy import plans
from looptune.deploy.best_versions import BestVersion, best_versions
from looptune.deploy.c_source import best_on
from looptune.deploy.runtime.lookup import Device
from looptune.frontend import Unit, load
from looptune.ir.nodes import Array, promoted_type
from looptune.runtime import targets
from looptune.runtime.problem_sizes import integers, problem
from looptune.runtime.targets import CACHE, Target
from looptune.runtime.timing import Summary, finals, summary
from looptune.schedule.analysis import Analysis
from looptune.tune.store.store import Store

ROOT = Path(__file__).parent.parent
HEAD = (
    "| program | match | difference | kernels, first call | later calls | sweep, Numba | sweep, CUDA C "
    "| first over sweep | later over sweep | to the GPU | from it | whole |"
)
COLUMNS = HEAD.count("|") - 1
TARGET = "numba-cuda"
LONGEST_S = 300.0
"""Of one run of a program."""
LATER = 20
"""Calls after the first one of a library, unless the user says how many."""
CALLER = "--call-library"


@dataclass(frozen=True, slots=True)
class Built:
    """A program as gcc makes it and as looptune does; ``said`` is why there is none."""

    name: str
    source: Path
    plain: Path
    accelerated: Path
    library: Path
    said: str = ""


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of a program on the GPU: figures of the runtime in microseconds and bytes, summed over its codelets."""

    printed: str
    said: str
    kernel_us: tuple[float, ...]
    to_us: tuple[float, ...]
    from_us: tuple[float, ...]
    whole_s: tuple[float, ...]
    to_bytes: int
    from_bytes: int


def built(source: Path, folder: Path, given: argparse.Namespace, arch: str) -> Built:
    """Build both programs, and the library if it is to be called, unless they are there."""
    name = "_".join(source.resolve().relative_to(ROOT).with_suffix("").parts[1:])
    found = Built(
        name, source, folder / f"{name}.gcc", folder / name, folder / f"libof_{re.sub(r'[^A-Za-z0-9]', '_', name)}.so"
    )
    common = [str(source), "-O2", "-w", *dataset(given), "-lm", "-o"]
    own = [sys.executable, "-m", "looptune", "cc", "--arch", arch, "--db", str(given.db), *common]
    commands = {
        found.plain: ["gcc", *common, str(found.plain)],
        found.accelerated: [*own, str(found.accelerated)],
        **({found.library: [*own, str(found.library), "--shared"]} if given.later else {}),
    }
    for path, command in commands.items():
        if not path.exists():
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                return replace(found, said=" ".join(done.stderr.split())[-200:])
    return found


def printed_by_gcc(program: Built, outputs: Path | None) -> str:
    """Return what gcc's program prints."""
    kept = None if outputs is None else outputs / f"{program.name}.txt"
    if kept is not None and kept.exists() and kept.stat().st_size:
        return kept.read_text()
    return subprocess.run([program.plain], capture_output=True, text=True, timeout=LONGEST_S, check=True).stdout


def runs(program: Built, count: int, folder: Path) -> Runs:
    """Run the program so many times."""
    report = folder / f"{program.name}.report"
    figures: list[Mapping[str, float]] = []
    whole: list[float] = []
    for _ in range(count):
        report.unlink(missing_ok=True)
        environment = {**os.environ, "LOOPTUNE_REPORT": str(report), "LOOPTUNE_VERBOSE": "1"}
        begin = time.perf_counter()
        done = subprocess.run(
            [program.accelerated], capture_output=True, text=True, timeout=LONGEST_S, env=environment, check=True
        )
        whole.append(time.perf_counter() - begin)
        lines = [json.loads(line) for line in report.read_text().splitlines()]
        if any(line["host_calls"] for line in lines):
            raise RuntimeError(f"a call ran on the host: {' '.join(done.stderr.split())[:200]}")
        figures.append({key: sum(line[key] for line in lines) for key in lines[0] if key.endswith(("_s", "_bytes"))})

    def times(key: str) -> tuple[float, ...]:
        return tuple(1e6 * f[key] for f in figures)

    return Runs(
        done.stdout, done.stderr, times("kernel_s"), times("to_device_s"), times("from_device_s"), tuple(whole),
        int(figures[0]["to_device_bytes"]), int(figures[0]["from_device_bytes"]),
    )  # fmt: skip


def later_us(program: Built, later: int, options: Sequence[str], folder: Path) -> float:
    """Return the microseconds of the kernels of a later call: in one process, one library is called once, one often."""
    report, often = folder / f"{program.name}.report", folder / f"{program.library.stem}_often.so"
    report.unlink(missing_ok=True)
    shutil.copy(program.library, often)
    command = [
        sys.executable,
        __file__,
        CALLER,
        str(later),
        str(program.source),
        str(program.library),
        str(often),
        *options,
    ]
    environment = {**os.environ, "LOOPTUNE_REPORT": str(report)}
    subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, env=environment, check=True)
    seconds = {line["device_calls"]: line["kernel_s"] for line in map(json.loads, report.read_text().splitlines())}
    if not {1, 1 + later} <= seconds.keys():
        raise RuntimeError("a call of the library ran on the host")
    return 1e6 * float(seconds[1 + later] - seconds[1]) / later


def call_libraries(later: str, source: str, once: str, often: str, *options: str) -> int:
    """Call the function of two libraries, the second one again and again."""
    pairs = (o.removeprefix("-D").partition("=") for o in options)
    unit = load(source, defines={name: value if value else "1" for name, _, value in pairs})
    at = problem(unit.codelet, unit.values)
    arrays = at.arrays(unit.codelet, 0)
    for path, calls in ((once, 1), (often, 1 + int(later))):
        function = getattr(ctypes.CDLL(str(Path(path).resolve())), unit.codelet.name)
        given: list[Any] = []
        for p in unit.codelet.params:
            kind: Any = ctypes.c_void_p if isinstance(p, Array) else C_TYPES[promoted_type(p.dtype)]
            given.append(kind(arrays[p.name].ctypes.data if isinstance(p, Array) else unit.values[p.name]))
        for _ in range(calls):
            if function(*given):
                return 1
    return 0


def difference(expected: str, found: str) -> str:
    """Return the largest relative difference of the numbers in two texts that are otherwise the same.

    >>> difference("x 1.0 2", "x 1.0 2"), difference("x 1.0 2", "x 1.1 2"), difference("x 1", "y 1")
    ('none', '9e-02', 'other text')
    """
    number = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|nan|inf)\b")
    if number.sub("#", expected) != number.sub("#", found):
        return "other text"
    if expected == found:
        return "none"
    pairs = zip(map(float, number.findall(expected)), map(float, number.findall(found)), strict=True)
    largest = max(abs(a - b) / max(abs(a), abs(b)) for a, b in pairs if a != b)
    return f"{largest:.0e}"


def swept(unit: Unit, best: BestVersion, target: Target, limit_s: float) -> dict[str, Summary]:
    """Return the times of a version as a sweep measures them, through Numba and through CUDA C."""
    machine = target.machine()
    given = problem(unit.codelet, best.values).arrays(unit.codelet, 0)
    arrays = {name: machine.place(a) for name, a in given.items()}
    written = [p.name for p in unit.codelet.params if isinstance(p, Array) and p.io != "in"]
    restore = {name: (arrays[name], machine.place(given[name])) for name in written}
    plan = plans.exact(Analysis(unit.codelet), best)
    backends = {"numba": target.backend(), "cuda-c": CudaC(machine.facts.arch, cache=CACHE)}
    programs = {name: backend.load(backend.build(plan)) for name, backend in backends.items()}

    def sampler(name: str) -> Any:
        return machine.sampler(lambda stream: programs[name].run(arrays, best.values, stream), restore)

    times = finals({name: sampler(name) for name in programs}, 0, limit_s=limit_s, patience_s=2 * limit_s)
    return {name: summary(t) for name, t in times.items()}


def row(program: Built, expected: str, given: argparse.Namespace, folder: Path) -> str:
    """Return one line of the table."""
    target = targets.resolve(TARGET, CACHE)
    facts = target.machine().facts
    unit = load(program.source)
    with Store.read(given.db) as store:
        known = best_versions(store, unit, target.name)
    match, best = best_on(known, Device(facts.name, facts.cores, facts.arch), integers(unit.codelet, unit.values))
    theirs = {}
    if best is not None and match.configuration is not None and dict(best.sizes) == dict(match.configuration["sizes"]):
        theirs = swept(unit, best, target, given.seconds)
    ours = runs(program, given.runs, folder)
    later = later_us(program, given.later, dataset(given), folder) if given.later else math.nan
    kernels = summary(ours.kernel_us)
    level = " ".join(dict.fromkeys(re.findall(r"  ([\w ]+) match, calls", ours.said)))
    ratios = [f"{us / theirs['numba'].median_us:.3f}" if theirs else "-" for us in (kernels.median_us, later)]

    def moved(times: Sequence[float], count: int) -> str:
        return f"{median(times) / 1e3:.3f} ms, {count / 1e6:.1f} MB"

    cells = (
        program.name, level, difference(expected, ours.printed), str(kernels), f"{later:.4g} us",
        *(str(theirs.get(name, "-")) for name in ("numba", "cuda-c")), *ratios,
        moved(ours.to_us, ours.to_bytes), moved(ours.from_us, ours.from_bytes), f"{median(ours.whole_s):.2f} s",
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def dataset(given: argparse.Namespace) -> list[str]:
    """Return the macro that chooses the sizes."""
    return [f"-D{given.dataset}_DATASET"] if given.dataset else []


def rows(given: argparse.Namespace, folder: Path) -> Iterator[str]:
    """Yield the lines of the table: first all programs are built and gcc's are run, then one after the other is timed.

    What is timed has the machine for itself.
    """
    arch = targets.resolve(TARGET, CACHE).machine().facts.arch
    files = given.files or sorted(ROOT.glob("polybench/*.c"))
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 2) // 2)) as pool:
        programs = list(pool.map(lambda f: built(f, folder, given, arch), files))
        expected: dict[str, Future[str]] = {
            p.name: pool.submit(printed_by_gcc, p, given.outputs) for p in programs if not p.said
        }
    for program in programs:
        try:
            if program.said:
                raise RuntimeError(program.said)
            yield row(program, expected[program.name].result(), given, folder)
        except (LooptuneError, RuntimeError, ValueError, MemoryError, subprocess.SubprocessError) as error:
            yield f"| {program.name} | {type(error).__name__}: {error} |{' |' * (COLUMNS - 2)}"


def main(arguments: Sequence[str]) -> int:
    """Write the table."""
    if arguments[:1] == [CALLER]:
        return call_libraries(*arguments[1:])
    parser = argparse.ArgumentParser(description="Programs of looptune cc on a GPU.")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--db", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--later", type=int, default=LATER, help="later calls of a library; 0 for none")
    parser.add_argument("--seconds", type=float, default=FINALS_S, help="to time one version as a sweep does")
    parser.add_argument("--dataset", default="", help="sizes, as in PAPER")
    parser.add_argument("--folder", type=Path, help="keep the programs here")
    parser.add_argument("--outputs", type=Path, help="what gcc's programs print")
    given = parser.parse_args(arguments)
    try:
        facts = targets.resolve(TARGET, CACHE).machine().facts
        print(
            f"# Whole programs on {facts.name}, driver {facts.driver_name}\n\n{HEAD}\n|{'---|' * COLUMNS}", flush=True
        )
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) if given.folder is None else given.folder
            folder.mkdir(parents=True, exist_ok=True)
            for line in rows(given, folder):
                print(line, flush=True)
    except LooptuneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"\nCommand: `{' '.join(['python benchmarks/whole_programs.py', *arguments])}`")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
