"""The products of GATLAS: every case is the product it says, in C, in its space's versions, and in the chart."""

from __future__ import annotations

import ctypes
import importlib
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from looptune.backends.codegen.python import ident
from looptune.core.errors import LooptuneError
from looptune.core.floating_point import DEFAULT
from looptune.frontend import load
from looptune.ir.specialize import specialize
from looptune.lower.pipeline import lower
from looptune.lower.plan import Plan
from looptune.runtime import targets
from looptune.runtime.targets import CACHE
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.tune.execution.local_executor import HERE, LocalExecutor
from looptune.tune.session.experiment import run_all
from looptune.tune.session.prepare import PreparedRun, TuningRequest, prepare
from looptune.tune.space.space import Configuration, parse
from tests.helpers import cross_check, synthetic_database
from tests.helpers.paths import ROOT

FILE, SPACE = ROOT / "gatlas" / "product.c", ROOT / "gatlas" / "product.pragmas"
CASES = [
    tuple(name for name, given in zip(("TRANS_A", "TRANS_B", "NO_ALPHA_BETA"), on, strict=True) if given)
    for on in product((False, True), repeat=3)
]
SIZES = {"NI": 5, "NJ": 7, "NK": 6}
cuda = pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(case) or "NN")


@cache
def analysis(case: tuple[str, ...]) -> Analysis:
    return Analysis(load(FILE, defines=dict.fromkeys(case)).codelet)


@cache
def space() -> tuple[Configuration, ...]:
    return tuple(parse(SPACE.read_text(), SPACE.name))


def sample(count: int, begin: int = 0) -> list[Configuration]:
    return list(space()[begin :: len(space()) // count])


def planned(case: tuple[str, ...], configuration: Configuration, sizes: dict[str, int]) -> Plan:
    done = schedule(analysis(case), parse_lines(configuration.lines)).codelet
    return lower(specialize(done, sizes), blocks=True)


def element(shape: tuple[int, int], seed: int) -> np.ndarray:
    """What the program's ``init`` makes."""
    i, j = np.indices(shape)
    return ((i * 7 + j * 3 + seed) % 11) / 11


@every_case
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_the_program_prints_the_product(case: tuple[str, ...], tmp_path: Path) -> None:
    """Compiled without a warning, at three sizes that differ: NumPy's product of the same matrices."""
    macros = [f"-D{name}" for name in case] + [f"-D{name}={value}" for name, value in SIZES.items()]
    options = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-DDUMP", "-DDATA_TYPE=double"]
    subprocess.run(["gcc", *options, *macros, FILE, "-o", tmp_path / "p"], check=True, timeout=60)
    printed = subprocess.run([tmp_path / "p"], check=True, capture_output=True, text=True, timeout=60).stdout
    got = np.array([[float(x) for x in line.split()] for line in printed.splitlines()[: SIZES["NI"]]])
    ni, nj, nk = SIZES.values()
    a = element((nk, ni), 2).T if "TRANS_A" in case else element((ni, nk), 2)
    b = element((nj, nk), 3).T if "TRANS_B" in case else element((nk, nj), 3)
    want = a @ b if "NO_ALPHA_BETA" in case else 1.5 * (a @ b) + 0.5 * element((ni, nj), 1)
    np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.wide
def test_cases_are_kernels_of_their_own() -> None:
    """In a database none is taken for another."""
    assert len({analysis(case).codelet.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize(
    ("macros", "name"), [({}, "product"), ({"NI": "8"}, "product"), ({"NI": "8", "TRANS_B": None}, "gemm_nt")]
)
def test_reports_tell_cases_apart(macros: dict[str, str | None], name: str) -> None:
    """What is defined makes another kernel of the file; of the same one it makes another size."""
    assert prepare(TuningRequest(FILE, defines=macros, target="numba-cpu")).name == name


@pytest.mark.sampled(30, "wide")
@every_case
def test_every_case_has_the_whole_space(case: tuple[str, ...]) -> None:
    """Versions from all over it are legal: other ones of each case."""
    for configuration in sample(8, 5 * CASES.index(case)):
        planned(case, configuration, {"ni": 40, "nj": 36, "nk": 33})


@pytest.mark.sampled(30, "wide")
@cuda
@pytest.mark.parametrize("case", CASES[::3], ids=lambda case: "-".join(case) or "NN")
def test_versions_compile_for_a_gpu(case: tuple[str, ...]) -> None:
    """An order and a shared tile of a case; what a thread holds stays in registers."""
    orders, shared = space()[130 + CASES.index(case)], space()[-2]
    for configuration in (orders, shared):
        made = planned(case, configuration, {"ni": 1024, "nj": 512, "nk": 256})
        used = targets.backend("cuda-c", CACHE).build(made).resources
        assert all(r.local_bytes == 0 and 0 < r.registers <= 255 for r in used), configuration.text


@pytest.mark.long
@cuda
@pytest.mark.simulator
def test_a_sample_computes_the_product_in_the_simulator(tmp_path: Path) -> None:
    """Three versions of each case at sizes that blocks leave something of, against the interpreter: the same bits."""
    batch, expected = [], {}
    size = {"ni": 5, "nj": 6, "nk": 5}
    backend = targets.backend("numba-cuda", CACHE)
    for number, case in enumerate(CASES):
        codelet = analysis(case).codelet
        given = cross_check.arguments(codelet, {**size, "alpha": 2, "beta": 3})
        for name, array in cross_check.arrays(given).items():
            given[name] = np.rint(array)
        want = cross_check.interpreted(codelet, given)
        for configuration in [*sample(2, 31 * number), space()[-1 - 5 * number]]:
            name = f"{case} {configuration.text}"
            source = backend.emit(planned(case, configuration, size))
            batch.append(cross_check.Emitted(name, source, ident(codelet.name), given))
            expected[name] = want
    assert cross_check.misses(batch, expected, tmp_path) == {}


@cache
def chart() -> ModuleType:
    return benchmark("gatlas")


@cache
def line() -> ModuleType:
    return benchmark("gatlas_line")


def benchmark(name: str) -> ModuleType:
    """What lies beside a script is found by it as where Python runs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        return importlib.import_module(name)


def test_the_chart_goes_over_cases_and_sizes() -> None:
    """Every size of a case, then the next case; a size is a number or three."""
    found = [(c.name, c.macros, c.m, c.n, c.k) for c in chart().cases(["nn", "tn"], True, "256,8x12x20")]
    assert found == [
        ("nn", ("NO_ALPHA_BETA",), 256, 256, 256),
        ("nn", ("NO_ALPHA_BETA",), 8, 12, 20),
        ("tn", ("TRANS_A", "NO_ALPHA_BETA"), 256, 256, 256),
        ("tn", ("TRANS_A", "NO_ALPHA_BETA"), 8, 12, 20),
    ]


def read(text: str) -> list[dict[str, str]]:
    """The lines by the names of their columns, of which some are twice: ``n``, ``n 2``."""
    head, *lines = (line.split("\t") for line in text.splitlines())
    assert head == list(chart().HEAD)
    names = [f"{name} {k}" if (k := head[:at].count(name) + 1) > 1 else name for at, name in enumerate(head)]
    return [dict(zip(names, line, strict=True)) for line in lines]


@pytest.mark.wide
def test_a_line_of_the_chart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the database has finals of is not swept again: timed four ways; tab-separated, as wide as its head."""
    unit = load(FILE, defines={"TRANS_A": None, "NI": "8", "NJ": "12", "NK": "20"}, dtype="float32")
    at = synthetic_database.this_cpu(unit, {"ni": 8, "nj": 12, "nk": 20, "alpha": 1.5, "beta": 0.5})
    synthetic_database.keep(tmp_path / "db", at, {"": 9.0, "loop k: unroll 4": 5.0})
    options = ["--case", "tn", "--sizes", "8x12x20", "--target", "numba-cpu", "--db", str(tmp_path / "db")]
    made = tmp_path / "chart.tsv"
    assert chart().main([*options, "-o", str(made)]) == 0
    said = capsys.readouterr()
    assert (made.read_text(), said.err) == (said.out, "")
    (line,) = read(said.out)
    assert [line[name] for name in ("case", "M", "N", "K")] == ["tn", "8", "12", "20"]
    assert line["directives"] == "loop k: unroll 4"
    assert 0 < float(line["q1"]) <= float(line["kernel us"]) <= float(line["q3"])
    assert all(float(line[f"{name} us"]) > 0 for name in ("arguments", "library", "transfers"))
    assert all(float(line[name]) >= 0 for name in ("GFLOP/s", "GFLOP/s 2", "GFLOP/s 3", "GFLOP/s 4"))
    assert int(line["n"]) >= 5
    assert int(line["n 2"]) >= 3
    assert float(line["error"]) < 1e-6


@pytest.mark.long
def test_a_chart_is_tuned_at_once_and_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sizes of one kernel in one group, with progress for each; the second time nothing is swept."""
    monkeypatch.setattr(LocalExecutor, "overlaps_compilation", lambda place, target: True)
    groups: list[int] = []

    def counted(every: Sequence[PreparedRun], *given: Any) -> Any:
        groups.append(len(every))
        return run_all(every, *given)

    monkeypatch.setattr(chart(), "run_all", counted)
    options = ["--case", "nt", "--target", "numba-cpu", "--db", str(tmp_path / "db"), "--budget", "3"]
    options += ["--finals-timeout", "0.1", "--sizes", "24,20x16x12"]
    assert chart().main(options) == 0
    said = capsys.readouterr()
    assert [(line["M"], line["N"], line["K"]) for line in read(said.out)] == [("24", "24", "24"), ("20", "16", "12")]
    assert "tuning 2 of 2 cases and sizes" in said.err
    assert "ni=24 nj=24 nk=24: [3/3]" in said.err
    assert "ni=20 nj=16 nk=12: [3/3]" in said.err
    assert chart().main([*options[:-1], "24"]) == 0
    said = capsys.readouterr()
    assert ([line["M"] for line in read(said.out)], said.err) == (["24"], "")
    assert groups == [2]


def test_screening_is_no_result(tmp_path: Path) -> None:
    """The finals of a sweep that was broken off are still to come."""
    unit = load(FILE, defines={"NI": "8", "NJ": "12", "NK": "20"}, dtype="float32")
    at = synthetic_database.this_cpu(unit, {"ni": 8, "nj": 12, "nk": 20, "alpha": 1.5, "beta": 0.5})
    case = next(chart().cases(["nn"], False, "8x12x20"))
    (model,) = HERE.models("numba-cpu", CACHE, floats=DEFAULT, warm=False)
    assert chart().bests({case: unit}, model, tmp_path / "none") == {}
    synthetic_database.keep(tmp_path / "db", at, {"": 9.0}, role="version")
    assert chart().bests({case: unit}, model, tmp_path / "db") == {}
    synthetic_database.keep(tmp_path / "db", at, {"": 9.0})
    assert chart().bests({case: unit}, model, tmp_path / "db").keys() == {case}


@pytest.mark.wide
def test_a_mistake_of_the_user_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert chart().main(["--target", "numba-cpu", "--devices", "1", "--db", str(tmp_path / "db")]) == 2
    assert capsys.readouterr() == ("", "error: --devices 1 selects GPUs, but the target is numba-cpu\n")


class Blas:
    """What cuBLAS does, as its manual says it, by columns and on arrays of the host."""

    def cublasCreate_v2(self, handle: Any) -> int:
        return 0

    def cublasSetStream_v2(self, handle: Any, stream: Any) -> int:
        return 0

    def cublasSgemm_v2(self, handle: Any, turn_a: int, turn_b: int, m: int, n: int, k: int, alpha: Any, a: Any,
                       lda: int, b: Any, ldb: int, beta: Any, c: Any, ldc: int) -> int:  # fmt: skip
        def columns(at: Any, ld: int, rows: int, width: int) -> np.ndarray:
            held = np.ctypeslib.as_array(ctypes.cast(at, ctypes.POINTER(ctypes.c_float)), (width, ld))
            return held.T[:rows]

        left = columns(a, lda, k, m).T if turn_a else columns(a, lda, m, k)
        right = columns(b, ldb, n, k).T if turn_b else columns(b, ldb, k, n)
        made = columns(c, ldc, m, n)
        made[...] = alpha._obj.value * (left @ right) + beta._obj.value * made
        return 0


class Placed(np.ndarray):
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"data": (self.ctypes.data, False)}


@pytest.mark.parametrize("target", ["numba-cpu", "numba-cuda"])
@pytest.mark.parametrize("name", ["nn", "nt", "tn", "tt"])
def test_the_library_makes_the_same_product(name: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each case's own shapes; cuBLAS takes matrices by columns."""
    monkeypatch.setattr(line()._by_hand(), "cublas", Blas)
    case = next(chart().cases([name], False, "6x5x4"))
    rng = np.random.default_rng(0)
    a, b, c = (rng.random(shape, np.float32) for shape in ((6, 4), (4, 5), (6, 5)))
    want, got = 1.5 * (a @ b) + 0.5 * c, c.copy()
    turn_a, turn_b = case.turned
    given = got, a.T.copy() if turn_a else a, b.T.copy() if turn_b else b
    call = line().library(case, target, "float32", {"alpha": 1.5, "beta": 0.5})
    call(*(x.view(Placed) for x in given))
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_a_wrong_product_is_found() -> None:
    """Paranoid: one element a thousandth off is an error, rounding is none."""
    case = next(chart().cases(["tt"], True, "6x5x4"))
    rng = np.random.default_rng(0)
    given = {
        "A": rng.random((4, 6), np.float32),
        "B": rng.random((5, 4), np.float32),
        "C": np.zeros((6, 5), np.float32),
    }
    right, product = line().Right.of(case, given, {}), given["A"].T @ given["B"].T
    assert right.error(product) < 1e-6
    product[3, 2] *= 1.001
    with pytest.raises(LooptuneError, match="tt at 6x5x4 is wrong"):
        right.error(product)
