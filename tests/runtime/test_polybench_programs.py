"""PolyBench/C programs as they are: what they compute is what gcc makes of them, on their own initial data."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

import looptune
from looptune.backends.codegen.python import ident
from looptune.deploy import source_to_source
from looptune.frontend import Unit, load
from looptune.ir.nodes import Array
from looptune.lower.pipeline import lower
from looptune.runtime import targets
from looptune.runtime.host_program import RecordedCall, record
from looptune.runtime.problem_sizes import prime_sizes, problem
from looptune.runtime.targets import CACHE
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from tests.helpers import cross_check, polybench_programs

pytestmark = [
    pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed"),
    pytest.mark.sampled(2),
]

MACROS: dict[str, dict[str, str | None]] = {
    "C99 double": {"POLYBENCH_USE_C99_PROTO": None},
    "fixed float": {"POLYBENCH_STACK_ARRAYS": None, "DATA_TYPE_IS_FLOAT": None},
}
TOLERANCE = {"C99 double": 1e-12, "fixed float": 2e-5}
CASES = [(style, how) for style in polybench_programs.ALL for how in MACROS]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs in a folder, and the header with its .c file in another."""
    folder = tmp_path_factory.mktemp("polybench")
    (folder / "utilities").mkdir()
    (folder / "utilities" / "polybench.h").write_text(polybench_programs.HEADER)
    (folder / "utilities" / "polybench.c").write_text(polybench_programs.SUPPORT)
    (folder / "kernels").mkdir()
    (folder / "kernels" / "sizes.h").write_text(polybench_programs.SIZES)
    for style in polybench_programs.ALL:
        (folder / "kernels" / f"{style.name}.c").write_text(style.text)
    return folder


def given(bench: Path, style: polybench_programs.Style, macros: Mapping[str, str | None]) -> tuple[Unit, RecordedCall]:
    include_dirs = [bench / "utilities"]
    file = bench / "kernels" / f"{style.name}.c"
    unit = load(file, defines={"MINI_DATASET": None, **macros}, include_dirs=include_dirs)
    return unit, record(unit, include_dirs)


def printed(
    bench: Path,
    style: polybench_programs.Style,
    how: str,
    build: Path,
    arrays: Mapping[str, np.ndarray],
    text: str = "",
) -> dict[str, np.ndarray]:
    """What the program prints, in the shapes and types of ``arrays``; ``text`` stands in for its own."""
    file = bench / "kernels" / f"{style.name}.c"
    if text:
        file = build / "transformed.c"
        file.write_text(text)
    options = [f"-D{name}" for name in ("MINI_DATASET", *MACROS[how])]
    folders = ["-I", bench / "utilities", "-iquote", bench / "kernels"]
    sources = [file, bench / "utilities" / "polybench.c"]
    command = ["gcc", "-O1", "-ffp-contract=off", "-w", *options, *folders, *sources, "-lm", "-o", build / "a.out"]
    subprocess.run(command, check=True, timeout=60)
    done = subprocess.run([build / "a.out"], check=True, capture_output=True, text=True, timeout=60)
    values = iter(done.stdout.split())
    return {name: taken(values, arrays[name]) for name in style.shown}


def taken(values: Iterator[str], like: np.ndarray) -> np.ndarray:
    return np.array([float(next(values)) for _ in range(like.size)]).reshape(like.shape).astype(like.dtype)


@pytest.mark.sampled(3)
@pytest.mark.sampled(12, "wide")
@pytest.mark.parametrize(("style", "how"), CASES, ids=[f"{s.name}, {how}" for s, how in CASES])
def test_the_cpu_kernel_computes_what_gcc_does(
    bench: Path, tmp_path: Path, style: polybench_programs.Style, how: str
) -> None:
    """Every live-out array of the CPU kernel, run on the program's initial data, is what the program prints."""
    unit, start = given(bench, style, MACROS[how])
    defines, include_dirs = {"MINI_DATASET": None, **MACROS[how]}, [bench / "utilities"]
    file = bench / "kernels" / f"{style.name}.c"
    kernel = looptune.compile(file, target="numba-cpu", defines=defines, include_dirs=include_dirs)
    arrays = {name: a.copy() for name, a in start.arrays.items()}
    kernel(*(arrays[p.name] if isinstance(p, Array) else start.scalars[p.name] for p in unit.codelet.params))
    assert cross_check.off(printed(bench, style, how, tmp_path, arrays), arrays, TOLERANCE[how]) is None
    assert {n: start.scalars[n] for n in unit.values} == dict(unit.values)


@pytest.mark.sampled(9, "wide")
@pytest.mark.parametrize("style", polybench_programs.ALL, ids=lambda s: s.name)
def test_the_transformed_file_prints_the_same(bench: Path, tmp_path: Path, style: polybench_programs.Style) -> None:
    """``looptune transform`` gives a whole program that gcc compiles and that prints the same digits."""
    how = "C99 double"
    _, start = given(bench, style, MACROS[how])
    defines, include_dirs = {"MINI_DATASET": None, **MACROS[how]}, [bench / "utilities"]
    file = bench / "kernels" / f"{style.name}.c"
    text = source_to_source.transform(file, defines=defines, include_dirs=include_dirs)
    want = printed(bench, style, how, tmp_path, start.arrays)
    assert cross_check.off(want, printed(bench, style, how, tmp_path, start.arrays, text)) is None


@pytest.mark.long
@pytest.mark.wide
@pytest.mark.simulator
@pytest.mark.skipif(not cross_check.CUDA, reason="numba-cuda is not installed")
def test_the_cuda_kernels_compute_what_gcc_does(bench: Path, tmp_path: Path) -> None:
    """Every live-out array of the CUDA kernels, simulated on the program's initial data, is what the program prints."""
    batch, want = [], {}
    for style, how in CASES:
        unit, start = given(bench, style, MACROS[how])
        source = targets.backend("numba-cuda", CACHE).emit(lower(schedule(Analysis(unit.codelet)).codelet))
        arguments: cross_check.Arguments = {**start.scalars, **start.arrays}
        ordered = {p.name: arguments[p.name] for p in unit.codelet.params}
        batch.append(cross_check.Emitted(f"{style.name}, {how}", source, ident(unit.codelet.name), ordered))
        want[f"{style.name}, {how}"] = printed(bench, style, how, tmp_path, start.arrays)
    results = cross_check.simulated(batch, tmp_path)
    wrong = {}
    for style, how in CASES:
        name = f"{style.name}, {how}"
        got = results[name]
        off = got if isinstance(got, str) else cross_check.off(want[name], got, TOLERANCE[how])
        wrong |= {name: off} if off is not None else {}
    assert wrong == {}


@pytest.mark.parametrize("how", ["C99", "fixed extents", "fixed extents and bounds"])
@pytest.mark.parametrize("style", polybench_programs.ALL, ids=lambda s: s.name)
def test_odd_sizes_are_found_in_no_time(bench: Path, style: polybench_programs.Style, how: str) -> None:
    """Whatever the macros fix, the interpreter is given little to do: at most MOST statements, at sizes that fit."""
    macros: dict[str, dict[str, str | None]] = {
        "C99": {"POLYBENCH_USE_C99_PROTO": None},
        "fixed extents": {},
        "fixed extents and bounds": {"POLYBENCH_USE_SCALAR_LB": None},
    }
    defines = {"MEDIUM_DATASET": None, **macros[how]}
    unit = load(bench / "kernels" / f"{style.name}.c", defines=defines, include_dirs=[bench / "utilities"])
    sizes = problem(unit.codelet, unit.values)
    small = prime_sizes(unit.codelet, sizes)
    if how != "fixed extents and bounds":
        assert small is not None
        assert all(small.values[n] < sizes.values[n] for n in ("n", "t") if n in sizes.values)
