"""Every operator for every type is C's, on every target: one table of cases, and gcc's answers.

python -m pytest tests/backends/test_operators.py -m "long or not long"     all types, all targets that run here
python -m pytest tests/backends/test_operators.py -m gpu                    all types, on a GPU
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import looptune
from looptune.core.errors import TargetError
from looptune.lower.pipeline import lower
from looptune.lower.plan import Plan
from looptune.runtime import targets
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from tests.helpers import cross_check, cuda_c_on_cpu, operator_table
from tests.helpers.operator_table import Table

Results = dict[str, dict[str, np.ndarray]]
MISSING = targets.gpu_missing()


def planned(table: Table) -> Plan:
    return lower(schedule(Analysis(table.codelet)).codelet)


def check(found: tuple[Table, ...], want: Results, got: Results) -> None:
    wrong = [line for t in found for line in t.differences(want[t.name], got[t.name])]
    assert not wrong, f"{len(wrong)} differ\n" + "\n".join(wrong[:60])


def steps(everyday: int) -> pytest.MarkDecorator:
    """Every day one pair of types in so many; all in the long run."""
    return pytest.mark.parametrize("step", [everyday, pytest.param(1, marks=pytest.mark.long)])


@pytest.mark.wide
@steps(47)
def test_the_interpreter_and_the_c_that_is_printed(step: int, tmp_path: Path) -> None:
    """The meaning of a tree is gcc's meaning of the text, before and after."""
    found = operator_table.sample(step)
    want = operator_table.by_gcc(found, tmp_path / "text")
    check(found, want, operator_table.by_gcc(found, tmp_path / "printed", printed=True))
    most = 25 if step > 1 else 80
    few = operator_table.by_gcc(found, tmp_path / "few", most)
    check(found, few, {t.name: cross_check.interpreted(t.codelet, t.arguments(most)) for t in found})


@pytest.mark.wide
@pytest.mark.skipif(cuda_c_on_cpu.GXX is None, reason="needs g++")
@steps(47)
def test_cuda_c(step: int, tmp_path: Path) -> None:
    """CUDA C, compiled as C++ by g++."""
    found = operator_table.sample(step)
    cases = [cuda_c_on_cpu.Case(t.name, planned(t), t.codelet, t.arguments()) for t in found]
    check(found, operator_table.by_gcc(found, tmp_path / "text"), cuda_c_on_cpu.run(cases, tmp_path))


@pytest.mark.wide
@steps(120)
def test_a_processor(step: int, tmp_path: Path) -> None:
    """Machine code that Numba makes."""
    found = operator_table.sample(step)[-1:] if step > 1 else operator_table.sample(step)
    backend = targets.backend("numba-cpu", tmp_path / "cache")
    got = {}
    for t in found:
        given = t.arguments()
        program = backend.load(backend.build(planned(t)))
        program.run(cross_check.arrays(given), cross_check.scalars(given))
        got[t.name] = cross_check.arrays(given)
    check(found, operator_table.by_gcc(found, tmp_path / "text"), got)


@pytest.mark.wide
@steps(79)
def test_the_simulator(step: int, tmp_path: Path) -> None:
    """Numba's text for a GPU, run by its simulator."""
    found = operator_table.sample(step)
    most = 25
    backend = targets.backend("numba-cuda", tmp_path / "cache")
    emitted = [cross_check.Emitted(t.name, backend.emit(planned(t)), t.name, t.arguments(most)) for t in found]
    made = cross_check.simulated(emitted, tmp_path, timeout_s=900)
    failed = {name: got for name, got in made.items() if isinstance(got, str)}
    assert not failed, "\n".join(failed.values())
    check(
        found,
        operator_table.by_gcc(found, tmp_path / "text", most),
        {k: v for k, v in made.items() if isinstance(v, dict)},
    )


@steps(60)
def test_opencl(step: int, tmp_path: Path) -> None:
    """OpenCL C on the device there is."""
    try:
        machine = targets.resolve("opencl", tmp_path).machine()
    except TargetError as error:
        pytest.skip(str(error))
    found, backend, got = operator_table.sample(step), targets.backend("opencl", tmp_path), {}
    found = found[-1:] if step > 1 else found
    for t in found:
        given = t.arguments()
        held = {name: machine.place(a) for name, a in cross_check.arrays(given).items()}
        backend.load(backend.build(planned(t))).run(held, cross_check.scalars(given), machine.stream)
        got[t.name] = {name: machine.fetch(a).reshape(given[name].shape) for name, a in held.items()}
    check(found, operator_table.by_gcc(found, tmp_path / "text"), got)


@pytest.mark.wide
@pytest.mark.skipif(cuda_c_on_cpu.GXX is None, reason="needs g++")
@pytest.mark.parametrize("number", [1, pytest.param(20, marks=pytest.mark.long)])
def test_random_expressions(number: int, tmp_path: Path) -> None:
    """Expressions of several operators and types, by gcc, the interpreter, as printed C and as CUDA C."""
    found = tuple(map(operator_table.random_table, range(number)))
    want = operator_table.by_gcc(found, tmp_path / "text")
    check(found, want, operator_table.by_gcc(found, tmp_path / "printed", printed=True))
    check(found, want, {t.name: cross_check.interpreted(t.codelet, t.arguments()) for t in found})
    check(
        found,
        want,
        cuda_c_on_cpu.run([cuda_c_on_cpu.Case(t.name, planned(t), t.codelet, t.arguments()) for t in found], tmp_path),
    )


@pytest.mark.gpu
@pytest.mark.skipif(bool(MISSING), reason=f"no GPU: {MISSING}")
@pytest.mark.parametrize("target", ["numba-cuda", "cuda-c"])
def test_a_gpu(target: str, tmp_path: Path) -> None:
    """All types, compiled for the device and run on it."""
    found, got = operator_table.tables(), {}
    for t in found:
        given = t.arguments()
        looptune.compile(t.text, target=target)(*given.values())
        got[t.name] = cross_check.arrays(given)
    check(found, operator_table.by_gcc(found, tmp_path / "text"), got)
