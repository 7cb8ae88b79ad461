"""Whether the loop nests of other people's programs compute what gcc makes of them: a table by suite, and differences.

    python -m tests.differential.nests cminpack=cminpack-1.3.6 qhull=qhull-2020.2/src

Each argument is a name and a folder (or a file) with C, and each nest that can be compiled runs on several random
inputs: its own text compiled by gcc, the loop IR in the interpreter, and the loop IR with its parallel loops in any
order. A nest with a loop that is parallel or a reduction also runs as the machine code of Numba, chunk after chunk from
the last one, and as C with OpenMP; ``compiled`` are these. ``undefined`` nests leave their arrays with each input, or
divide by zero. A difference can also be the program's: a variable that it does not set, a shift by too many bits.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import TimeoutError as OverTime
from dataclasses import dataclass, replace
from pathlib import Path
from zlib import crc32

import numpy as np
from pebble import ProcessExpired, ProcessPool

from looptune.backends import openmp
from looptune.core.errors import LooptuneError, UsageError
from looptune.frontend import load
from looptune.frontend.survey import survey
from looptune.frontend.unit import Unit
from looptune.ir import interpreter
from looptune.ir.nodes import Array, Codelet, Scalar
from looptune.ir.simplify import is_integer
from looptune.lower.passes.openmp_scalars import accumulate_in_scalars
from looptune.lower.pipeline import lower
from looptune.report.check.loop_facts import loop_facts
from looptune.report.scan.sources import Source, sources
from looptune.report.table import Column, Table
from looptune.runtime.c_reference import CReference, NoReference
from looptune.runtime.size_relations import broken_relation
from looptune.runtime.verification import extents
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.differential import runners
from tests.helpers import threaded_interpreter
from tests.helpers.against_gcc import in_parallel
from tests.helpers.cross_check import GCC, called, off

RESULTS = ("same", "compiled", "different", "undefined", "not run")
INPUTS = 12
ENOUGH = 4
"""Inputs on which a nest computes something, after which no more are tried."""
OPEN = 400
"""The first extent of arrays that do not declare it."""
REORDERED = 1e-3
"""The error that sums of floats in another order may have."""
LARGEST = 200_000
STATEMENTS = 100_000
LIMIT_S = 60
RANGES = ((1, 9), (2, 14), (0, 5), (-4, 10), (0, 127))
"""Of integers. They are sizes, places and data alike."""


Arrays = dict[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Run:
    """An input, and what gcc's code leaves in the arrays that the nest writes."""

    arrays: Arrays
    scalars: dict[str, int | float]
    theirs: Arrays

    def wrong(self, mine: Mapping[str, np.ndarray], tolerance: float = 1e-5) -> str | None:
        """Return where arrays differ from gcc's."""
        found = off(self.theirs, mine, tolerance)
        return None if found is None else f"{found} with {self.scalars}"


def compared(source: Source, kernel: str) -> tuple[str, str]:
    """Return one of RESULTS for a nest, and what differs or why it is not run."""
    try:
        unit = load(source.path, kernel=kernel, defines=dict(source.defines), include_dirs=source.include_dirs)
        parallel = in_parallel(unit.codelet)
    except LooptuneError as error:
        return "not run", str(error)
    said, same = Counter[tuple[str, str]](), list[Run]()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(INPUTS):
            try:
                found = _on_input(unit, parallel, Path(folder), number)
            except UsageError as error:
                found = "not run", str(error)
            if isinstance(found, Run):
                same.append(found)
            elif found[0] == "different":
                return found
            else:
                said[found] += 1
            if len(same) == ENOUGH:
                break
        return _compiled(unit, same, Path(folder)) if same else said.most_common(1)[0][0]


def _on_input(unit: Unit, parallel: Codelet, folder: Path, number: int) -> Run | tuple[str, str]:
    """Return an input on which the interpreter does what gcc's code does, or else a result."""
    codelet = unit.codelet
    rng = np.random.default_rng((number, crc32(codelet.name.encode())))
    values = next(_values(codelet, rng, unit.values if number == 0 else {}))
    arrays = {p.name: _filled(p, values, rng) for p in codelet.params if isinstance(p, Array)}
    written = sorted(p.name for p in codelet.params if isinstance(p, Array) and p.io != "in")
    results = []
    for run, variant in ((interpreter.run, codelet), (threaded_interpreter.run, parallel)):
        left = STATEMENTS
        mine = {name: array.copy() for name, array in arrays.items()}

        def count(_statement: str, _iterations: tuple[int, ...]) -> None:
            nonlocal left
            left -= 1
            assert left, "it runs too many statements"

        try:
            run(variant, mine, values, count)
        except (AssertionError, OverflowError, ValueError) as error:
            return "undefined", str(error)
        results.append(mine)
    if unit.excerpt is None or not written:
        return "not run", "there is no text to compile, or nothing is written"
    try:
        theirs = CReference(unit.excerpt).run(folder, arrays, values, written).arrays
    except NoReference as error:
        return "not run", str(error)
    ran = Run(arrays, values, {name: theirs[name] for name in written})
    for mine in results:
        if (difference := ran.wrong(mine)) is not None:
            return "different", difference
    changed = any(off({name: arrays[name]}, results[0], 0.0) is not None for name in written)
    return ran if changed else ("not run", "it changes nothing")


def _compiled(unit: Unit, runs: Sequence[Run], folder: Path) -> tuple[str, str]:
    """Return what comes of the machine code of a nest that is right in the interpreter."""
    analysis = Analysis(unit.codelet)
    lines = tuple(_shared_out(analysis))
    if not lines:
        return "same", ""
    for name, made in (("numba-cpu", _by_numba), ("openmp", _by_openmp)):
        try:
            call = made(unit, analysis, lines, folder)
        except LooptuneError as error:
            return "same", f"{name}: {error.message}"
        except Exception as error:
            return "different", f"{name} fails: {type(error).__name__}: {error}"
        for run in runs:
            mine = {name: array.copy() for name, array in run.arrays.items()}
            call(mine, run.scalars)
            if (difference := run.wrong(mine, REORDERED)) is not None:
                return "different", f"{name}: {difference}"
    return "compiled", ""


Call = Callable[[Arrays, dict[str, int | float]], object]


def _shared_out(analysis: Analysis) -> Iterator[str]:
    """Yield the directives that share out the outermost loops that are parallel or reductions."""
    inside: int | None = None
    for f in loop_facts(analysis):
        if inside is not None and f.depth > inside:
            continue
        inside = f.depth if f.kind in ("parallel", "reduction") and not f.shared else None
        if inside is not None:
            yield f"loop {f.number}: parallel"


@dataclass(slots=True)
class _Held:
    """What a program of ``runners`` is called with."""

    arrays: Arrays
    scalars: dict[str, int | float]


def _by_numba(unit: Unit, analysis: Analysis, lines: Sequence[str], folder: Path) -> Call:
    done = schedule(analysis, parse_lines(lines, "nests"), unit.values)
    plan = lower(done.codelet, "\n".join(lines), done.asserted)
    program = runners.numba_cpu(plan, folder / "numba", threads=False)
    return lambda arrays, scalars: program(_Held(arrays, scalars))  # type: ignore[arg-type]


def _by_openmp(unit: Unit, analysis: Analysis, lines: Sequence[str], folder: Path) -> Call:
    if unit.rows:
        raise UsageError("its C takes pointers to rows")
    codelet = schedule(analysis, parse_lines(lines, "nests"), unit.values).codelet
    codelet = replace(accumulate_in_scalars(codelet), name="nest")
    (folder / "nest.c").write_text(openmp.text(codelet))
    command = [*GCC, "-fopenmp", "nest.c", "-o", "nest.so", "-lm"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:500]
    library = ctypes.CDLL(str(folder / "nest.so"))

    def call(arrays: Arrays, scalars: dict[str, int | float]) -> None:
        for name, array in called(library, codelet, {**arrays, **scalars}).items():
            arrays[name][...] = array

    return call


def _values(
    codelet: Codelet, rng: np.random.Generator, known: Mapping[str, int | float]
) -> Iterator[dict[str, int | float]]:
    """Yield values of the scalar parameters with which the sizes are as the analysis assumes."""
    for attempt in range(100):
        values: dict[str, int | float] = {}
        for p in (p for p in codelet.params if isinstance(p, Scalar)):
            low, high = RANGES[rng.integers(len(RANGES))]
            whole = int(rng.integers(0 if p.dtype.startswith("u") else low, high + 1))
            drawn = whole % 2 if p.dtype == "bool" else whole if is_integer(p.dtype) else rng.uniform(-2, 3)
            values[p.name] = known[p.name] if attempt == 0 and p.name in known else drawn
        if broken_relation(codelet, values) is None:
            yield values
    raise UsageError("no sizes are as the analysis assumes")


def _filled(p: Array, values: Mapping[str, int | float], rng: np.random.Generator) -> np.ndarray:
    declared = p.shape if p.shape[0] is not None else p.shape[1:]
    shape = extents(Array(p.name, p.dtype, declared), values)
    if declared is not p.shape:
        shape = (max(4, min(OPEN, LARGEST // max(1, int(np.prod(shape))))), *shape)
    if np.prod(shape) > LARGEST:
        raise UsageError(f"{p.name} is too large")
    dtype = np.dtype(p.dtype)
    if not is_integer(p.dtype):
        return rng.uniform(-4, 4, shape).astype(dtype)
    low, high = RANGES[rng.integers(len(RANGES))]
    return rng.integers(0 if dtype.kind in "ub" else low, 2 if dtype.kind == "b" else high + 1, shape).astype(dtype)


def compared_file(source: Source, seen: set[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the place of each nest of a file that can be compiled, its result and what is said of it.

    Places that were ``seen``, as those of headers, are left out.
    """
    try:
        read = survey(source.path, defines=dict(source.defines), include_dirs=source.include_dirs, tolerant=True)
    except LooptuneError:
        return
    for nest in (n for n in read.nests if n.codelet is not None and n.refusal is None):
        place = f"{nest.span.file}:{nest.span.line}"
        if place in seen:
            continue
        seen.add(place)
        with ProcessPool(1) as pool:
            task = pool.schedule(compared, args=(source, nest.kernel), timeout=LIMIT_S)
            try:
                result = task.result()
            except OverTime:
                result = "not run", f"it took more than {LIMIT_S} s"
            except ProcessExpired as error:
                result = "different", f"its process ended: {error}"
        yield place, *result


def main(arguments: list[str]) -> int:
    """Print the differences and the table of the suites that are given as NAME=FOLDER; 1 if there is a difference."""
    if not arguments or not all("=" in a for a in arguments):
        print(__doc__)
        return 2
    rows: list[tuple[str, ...]] = []
    differences = 0
    for name, _, folder in (a.partition("=") for a in arguments):
        begin = time.monotonic()
        counts, seen = Counter[str](), set[str]()
        for source in sources((Path(folder),), {}, ()):
            for place, result, said in compared_file(source, seen):
                counts[result] += 1
                if result == "different":
                    print(f"{place}: {said}", flush=True)
        differences += counts["different"]
        rows.append((name, *(str(counts[r]) for r in RESULTS), f"{time.monotonic() - begin:.0f}"))
    columns = (Column("suite", "suite"), *(Column(c, c, "number") for c in (*RESULTS, "seconds")))
    print(Table("nests", "Nests", columns, tuple(rows)).text())
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
