"""Programs of ``looptune cc`` on a GPU: what they print, and their kernels' time beside that of the sweep.

    python benchmarks/whole_programs.py --db FILE [--kernels NAMES] [--dataset NAME] [--runs N] [--again] [FILE.c ...]

For each C file (default: polybench/*.c): the program as gcc makes it, and as ``looptune cc`` does with what the
database has for this GPU, or for another one at the same sizes. Programs are compiled on all cores first. Then one
after the other is timed, and its row printed:

    difference     the largest relative one of the numbers that both programs print
    first call     the kernels in the program, by the events that LOOPTUNE_REPORT reads: the median and quartiles over
                   ``--runs`` processes, each of which calls the codelet once
    later calls    the mean of ``--later`` calls of a library of the same kernels after the first one; 0 leaves it out
    sweep          the time that the database has of this version at these sizes on this GPU
    again          ``--again``: the same directives, compiled from CUDA C and measured now, as a sweep does, in a CUDA
                   graph and with the L2 flushed before each run
    over           first and later calls over ``again``, or else over ``sweep``
    gcc            how many of gcc's programs ran on other cores meanwhile

gcc's programs take minutes at large sizes. They begin when they are compiled, at low priority; rows whose gcc has
printed come first. ``--outputs`` is a folder with what they print, in files NAME.txt: what is there is not run again,
and what was run is put there. It may be made on any machine whose gcc and libm round in the same way.

``--folder`` keeps the programs: they are not built again if they are there. Where a program fails, its row says why.
Writes Markdown to standard output.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from looptune.backends.cuda.cuda_c import CudaC
from looptune.core.errors import LooptuneError
from looptune.deploy import plans
from looptune.deploy.best_versions import BestVersion, best_versions
from looptune.deploy.c_source import best_on
from looptune.deploy.runtime.lookup import Device
from looptune.frontend import Unit, load
from looptune.ir.nodes import Array
from looptune.runtime import targets
from looptune.runtime.problem_sizes import integers, problem
from looptune.runtime.targets import CACHE
from looptune.runtime.timing import Summary, finals, summary
from looptune.schedule.analysis import Analysis
from looptune.tune.store.store import Store

ROOT = Path(__file__).parent.parent
HEAD = (
    "| program | match | difference | kernels, first call | later calls | sweep | again | first over | later over "
    "| to the GPU | from it | whole | gcc |"
)
COLUMNS = HEAD.count("|") - 1
TARGET = "numba-cuda"
LONGEST_S = 300.0
"""Of one run of a program."""
LATER = 20
"""Calls after the first one of a library, unless the user says how many."""


class Facts(NamedTuple):
    """Of the GPU."""

    name: str
    cores: int
    arch: str
    driver: str


@dataclass(frozen=True, slots=True)
class Program:
    """A C file with the macros that choose its sizes, and the programs that are made of it in a folder."""

    source: Path
    macros: tuple[str, ...]
    folder: Path
    db: Path

    @property
    def name(self) -> str:
        inside = self.source.resolve().is_relative_to(ROOT)
        parts = self.source.resolve().relative_to(ROOT).with_suffix("").parts[1:] if inside else (self.source.stem,)
        return "_".join(parts)

    @property
    def options(self) -> tuple[str, ...]:
        return tuple(f"-D{macro}" for macro in self.macros)

    @property
    def plain(self) -> Path:
        return self.folder / f"{self.name}.gcc"

    @property
    def accelerated(self) -> Path:
        return self.folder / self.name

    @property
    def library(self) -> Path:
        return self.folder / f"libof_{re.sub(r'[^A-Za-z0-9]', '_', self.name)}.so"

    def unit(self) -> Unit:
        return load(self.source, defines=dict.fromkeys(self.macros, "1"))

    def best(self, unit: Unit, facts: Facts) -> BestVersion | None:
        """Return what the database has for this GPU at the sizes of the program."""
        with Store.read(self.db) as store:
            known = best_versions(store, unit, TARGET)
        sizes = integers(unit.codelet, unit.values)
        _, best = best_on(known, Device(facts.name, facts.cores, facts.arch), sizes)
        here = best is not None and best.context.device == facts.name and dict(best.sizes) == sizes
        return best if here else None


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


class Failed(Exception):
    """A program could not be built or run."""


# -- before the timing ------------------------------------------------------------------------------------------------


def make(path: Path, command: Sequence[str | Path]) -> None:
    """Build a program unless it is there."""
    if path.exists():
        return
    done = subprocess.run([*map(str, command), "-o", str(path)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(" ".join(done.stderr.split())[-300:])


def make_plain(program: Program) -> None:
    make(program.plain, ["gcc", program.source, "-O2", "-w", *program.options, "-lm"])


def make_accelerated(program: Program, arch: str, path: Path) -> None:
    own: list[str | Path] = [sys.executable, "-m", "looptune", "cc", "--arch", arch, "--db", program.db]
    shared = ["--shared"] if path == program.library else []
    make(path, [*own, program.source, "-O2", "-w", *program.options, *shared, "-lm"])


def printed_by_gcc(program: Program, outputs: Path | None) -> str:
    """Return what gcc's program prints, which is run if nothing of it is kept."""
    kept = None if outputs is None else outputs / f"{program.name}.txt"
    if kept is not None and kept.exists() and kept.stat().st_size:
        return kept.read_text()
    make_plain(program)
    command = ["nice", "-n", "19", str(program.plain)]
    said: str = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, check=True).stdout
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(said)
    return said


def compile_again(program: Program, facts: Facts) -> None:
    """Compile what ``measured_again`` measures into the cache of kernels; needs no GPU."""
    unit = program.unit()
    best = program.best(unit, facts)
    if best is not None:
        CudaC(facts.arch, cache=CACHE).build(plans.exact(Analysis(unit.codelet), best))


# -- on the GPU -------------------------------------------------------------------------------------------------------


def facts() -> Facts:
    found = targets.resolve(TARGET, CACHE).machine().facts
    return Facts(found.name, found.cores, found.arch, found.driver_name)


def measured_again(program: Program, found: Facts, limit_s: float) -> Summary | None:
    """Return the time of the version as a sweep measures it, None if the database has none for these sizes."""
    unit = program.unit()
    best = program.best(unit, found)
    if best is None:
        return None
    machine = targets.resolve(TARGET, CACHE).machine()
    given = problem(unit.codelet, best.values).arrays(unit.codelet, 0)
    arrays = {name: machine.place(a) for name, a in given.items()}
    written = [p.name for p in unit.codelet.params if isinstance(p, Array) and p.io != "in"]
    restore = {name: (arrays[name], machine.place(given[name])) for name in written}
    backend = CudaC(found.arch, cache=CACHE)
    made = backend.load(backend.build(plans.exact(Analysis(unit.codelet), best)))
    sampler = machine.sampler(lambda stream: made.run(arrays, best.values, stream), restore)
    return summary(finals({"": sampler}, 0, seconds=limit_s, limit_s=limit_s, patience_s=2 * limit_s)[""])


@dataclass(slots=True)
class OneProcess:
    """Calls functions in a process of its own, and in a new one after a failure, which may have cost its device."""

    pool: ProcessPoolExecutor | None = None

    def call(self, function: Callable[..., Any], *arguments: object) -> Any:
        self.pool = self.pool or ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        try:
            return self.pool.submit(function, *arguments).result(LONGEST_S)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self.pool is not None:
            self.pool.shutdown(wait=False, cancel_futures=True)
        self.pool = None


def reported(command: Sequence[Any], report: Path) -> tuple[subprocess.CompletedProcess[str], Mapping[str, Any]]:
    """Run a program, and return what the runtime reports, summed over its codelets."""
    report.unlink(missing_ok=True)
    environment = {**os.environ, "LOOPTUNE_REPORT": str(report), "LOOPTUNE_VERBOSE": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=LONGEST_S, env=environment, check=False
    )  # fmt: skip
    if done.returncode:
        raise Failed(f"exit status {done.returncode}: {' '.join(done.stderr.split())[-200:]}")
    lines = [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else []
    if not lines or any(line["host_calls"] for line in lines):
        raise Failed(f"a call ran on the host: {' '.join(done.stderr.split())[:200]}")
    return done, {key: sum(line[key] for line in lines) for key in lines[0] if key.endswith(("_s", "_bytes"))}


def runs(program: Program, count: int) -> Runs:
    """Run the program so many times."""
    figures: list[Mapping[str, Any]] = []
    whole: list[float] = []
    for _ in range(count):
        begin = time.perf_counter()
        done, found = reported([program.accelerated], program.folder / f"{program.name}.report")
        whole.append(time.perf_counter() - begin)
        figures.append(found)

    def times(key: str) -> tuple[float, ...]:
        return tuple(1e6 * f[key] for f in figures)

    return Runs(
        done.stdout, done.stderr, times("kernel_s"), times("to_device_s"), times("from_device_s"), tuple(whole),
        int(figures[0]["to_device_bytes"]), int(figures[0]["from_device_bytes"]),
    )  # fmt: skip


def later_us(program: Program, later: int) -> float:
    """Return the microseconds of the kernels of a later call: a process calls the library once, another one often."""
    report, script = program.folder / f"{program.name}.report", Path(__file__).with_name("library_calls.py")

    def kernels(calls: int) -> float:
        command = [sys.executable, script, str(calls), program.source, program.library, *program.macros]
        return float(reported(command, report)[1]["kernel_s"])

    return 1e6 * (kernels(1 + later) - kernels(1)) / later


# -- the table --------------------------------------------------------------------------------------------------------


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


@dataclass(slots=True)
class Table:
    """The programs while they are built, run and timed: ``waiting`` for gcc's, of which ``expected`` is the text."""

    given: argparse.Namespace
    facts: Facts
    programs: Sequence[Program]
    process: OneProcess
    expected: dict[str, Future[str]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def rows(self) -> Iterator[str]:
        """Yield the lines of the table: first all programs are built, then one after the other is timed.

        No other program is timed meanwhile, but gcc's programs may run.
        """
        with ThreadPoolExecutor(max(1, len(self.programs))) as gcc:
            self.expected = {p.name: gcc.submit(printed_by_gcc, p, self.given.outputs) for p in self.programs}
            self._build()
            waiting = list(self.programs)
            while waiting:
                ready = [p for p in waiting if p.name in self.failed or self.expected[p.name].done()]
                if not ready:
                    wait([self.expected[p.name] for p in waiting], return_when=FIRST_COMPLETED)
                    continue
                waiting.remove(ready[0])
                yield self._row_or_reason(ready[0])

    def _build(self) -> None:
        """Build programs and libraries on all cores, and the kernels that are to be measured again."""
        cores = os.cpu_count() or 2
        compilers = ProcessPoolExecutor(cores, multiprocessing.get_context("spawn"))
        with ThreadPoolExecutor(cores) as threads, compilers:
            jobs: list[tuple[Program, Future[None]]] = []
            for p in self.programs:
                paths = [p.accelerated, *([p.library] if self.given.later else [])]
                jobs += [(p, threads.submit(make_accelerated, p, self.facts.arch, path)) for path in paths]
                jobs += [(p, compilers.submit(compile_again, p, self.facts))] if self.given.again else []
            for program, job in jobs:
                try:
                    job.result()
                except Exception as error:
                    self.failed.setdefault(program.name, f"{type(error).__name__}: {error}")

    def _row_or_reason(self, program: Program) -> str:
        try:
            said = self.failed.get(program.name)
            if said is None:
                return f"| {' | '.join(self._cells(program))} |"
        except Exception as error:
            # Of whatever kind: the other programs have their rows.
            said = f"{type(error).__name__}: {error}"
        return f"| {program.name} | {' '.join(said.split()).replace('|', '/')} |{' |' * (COLUMNS - 2)}"

    def _cells(self, program: Program) -> Iterator[str]:
        beside = sum(not text.done() for text in self.expected.values())
        best = program.best(program.unit(), self.facts)
        ours = runs(program, self.given.runs)
        later = later_us(program, self.given.later) if self.given.later else math.nan
        again = self.process.call(measured_again, program, self.facts, self.given.seconds) if self.given.again else None
        theirs = again or (best and best.time)
        kernels = summary(ours.kernel_us)
        yield program.name
        yield " ".join(dict.fromkeys(re.findall(r":   ([\w ]+) match, calls", ours.said)))
        yield self._difference(program, ours.printed)
        yield str(kernels)
        yield f"{later:.4g} us" if self.given.later else "-"
        yield str(best.time) if best else "-"
        yield str(again or "-")
        yield from (f"{us / theirs.median_us:.3f}" if theirs and us == us else "-" for us in (kernels.median_us, later))
        for times, count in ((ours.to_us, ours.to_bytes), (ours.from_us, ours.from_bytes)):
            yield f"{median(times) / 1e3:.3f} ms, {count / 1e6:.1f} MB"
        yield f"{median(ours.whole_s):.2f} s"
        yield str(beside)

    def _difference(self, program: Program, printed: str) -> str:
        try:
            return difference(self.expected[program.name].result(), printed)
        except (Failed, OSError, subprocess.SubprocessError) as error:
            return f"gcc's: {type(error).__name__}"


def chosen(given: argparse.Namespace, folder: Path) -> list[Program]:
    """Return the programs that the user asks for. Raises LooptuneError for a name that is none."""
    files = given.files or sorted(ROOT.glob("polybench/*.c"))
    names = [name for name in given.kernels.split(",") if name]
    unknown = [name for name in names if name not in {f.stem for f in files}]
    if unknown:
        raise LooptuneError(f"no such kernel: {unknown[0]}; there are {', '.join(f.stem for f in files)}")
    macros = (f"{given.dataset}_DATASET",) if given.dataset else ()
    return [Program(f, macros, folder, given.db) for f in files if not names or f.stem in names]


def main(arguments: Sequence[str]) -> int:
    """Write the table."""
    parser = argparse.ArgumentParser(description="Programs of looptune cc on a GPU.")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--db", type=Path, required=True)
    parser.add_argument("--kernels", default="", help="names of files, as in gemm,atax; all without it")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--later", type=int, default=LATER, help="later calls of a library; 0 for none")
    parser.add_argument("--again", action="store_true", help="measure as a sweep does, too")
    parser.add_argument("--seconds", type=float, default=1.0, help="to measure one version again")
    parser.add_argument("--dataset", default="", help="sizes, as in PAPER")
    parser.add_argument("--folder", type=Path, help="keep the programs here")
    parser.add_argument("--outputs", type=Path, help="what gcc's programs print")
    given = parser.parse_args(arguments)
    process = OneProcess()
    try:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) if given.folder is None else given.folder
            programs = chosen(given, folder)
            folder.mkdir(parents=True, exist_ok=True)
            found = process.call(facts)
            print(
                f"# Whole programs on an {found.name}, driver {found.driver}\n\n{HEAD}\n|{'---|' * COLUMNS}", flush=True
            )
            for line in Table(given, found, programs, process).rows():
                print(line, flush=True)
    except LooptuneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    finally:
        process.close()
    print(f"\nCommand: `{' '.join(['python benchmarks/whole_programs.py', *arguments])}`")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
