"""What a device can do, what a codelet has to do, and the verdict on a time that cannot be."""

from __future__ import annotations

import json
import math
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from looptune.backends.numba_cpu.fma_peak import CHAINS, fma_chains
from looptune.cli.main import cli
from looptune.frontend import load
from looptune.ir import operation_count
from looptune.poly.scop import build
from looptune.report.result_table import peak_texts
from looptune.runtime import device_compare, peak_rates, targets, work_bounds
from looptune.runtime.device import Cpu, DeviceInfo
from looptune.runtime.roofline import MATRIX_RATE, MinimumWork, Peaks, Rate, Roofline
from looptune.runtime.tolerance import RoundingEstimate
from looptune.runtime.verification import ReferenceComparison
from looptune.tune.cost_model.devices import DEFAULT
from tests.helpers import cross_check
from tests.helpers.paths import POLYBENCH

FACTS = DeviceInfo("H100", "numba-cuda", "sm_90", 132, 80 * 2**30, 50_000_000, "13")
PEAKS = Peaks(Rate(3000.0, 0.01), Rate(3100.0, 0.02), Rate(60_000.0, 0.1), Rate(30_000.0, 0.0))
ROOF = Roofline(MinimumWork(6_000_000_000, 450_000_000, "float32"), PEAKS, FACTS.cache_bytes, cold=True)


@pytest.mark.parametrize(
    ("ceiling", "time_us", "said"),
    [
        (ROOF, 128.0, None),  # 3.1 TB/s of what the cache does not hold
        (ROOF, 120.0, "3.33 TB/s besides the 50 MB"),
        (replace(ROOF, cold=False), 120.0, None),
        (replace(ROOF, cache_bytes=0), 120.0, None),
        (replace(ROOF, work=MinimumWork(0, 49_000_000, "float32")), 0.001, None),  # all of it may be in the cache
        (replace(ROOF, cold=False), 91.0, None),  # 65.9 TFLOP/s: within the spread of the peak
        (replace(ROOF, cold=False), 90.0, "66.7 TFLOP/s, but the FMA peak in float32 is 60 TFLOP/s"),
        (
            replace(ROOF, cold=False, work=MinimumWork(6_000_000_000, 8, "float64")),
            180.0,
            "FMA peak in float64 is 30 TFLOP/s",
        ),
        (replace(ROOF, cold=False, work=MinimumWork(6_000_000_000, 8, "float64")), 195.0, None),
        (replace(ROOF, work=MinimumWork(0, 0, "float32")), 0.0, "0 us measured"),
        (replace(ROOF, work=MinimumWork(0, 0, "float32")), 1e-9, None),
    ],
)
def test_a_rate_above_the_roof_is_said_to_be_wrong(ceiling: Roofline, time_us: float, said: str | None) -> None:
    """Flops always, bytes beyond the cache where runs begin cold, and nothing within the spread of a measurement."""
    found = ceiling.violated_by(time_us)
    assert (found is None) == (said is None), found
    assert said is None or (said in str(found) and "faster than the device" in str(found))


def test_the_higher_of_two_measurements_counts() -> None:
    """A peak measured while something else ran is mended by the next one, rate by rate."""
    busy = replace(PEAKS, fma32=Rate(1000.0, 0.9), copy=Rate(3200.0, 0.0))
    assert PEAKS.best_of(busy) == busy.best_of(PEAKS) == replace(PEAKS, copy=Rate(3200.0, 0.0))


def test_an_older_databases_fma_peaks_are_none() -> None:
    """They were too low; its bandwidths hold, and times are compared with those alone."""
    assert Peaks.of(PEAKS.record()) == PEAKS
    older = {name: rate for name, rate in PEAKS.record().items() if name != "method"}
    found = Peaks.of(older)
    assert found == replace(PEAKS, fma32=None, fma64=None) == Peaks.of(found.record()) == PEAKS.best_of(found)
    assert replace(ROOF, peaks=found, cold=False).violated_by(90.0) is None
    assert replace(ROOF, peaks=found).violated_by(120.0) is not None
    assert list(peak_texts(found)) == ["copy", "read"]
    assert DEFAULT.measured(found).ghz == DEFAULT.ghz


def test_the_best_run_is_the_rate() -> None:
    """The first run warms up and does not count; runs end with the limit, later where none came up to what is sure."""
    ticks = iter(np.arange(0, 100, 0.3))
    assert peak_rates._rate(iter([99.0, 10.0, 20.0, 15.0, 40.0]), clock=lambda: float(next(ticks))) == Rate(20.0, 0.25)
    ticks = iter(np.arange(0, 100, 0.3))
    later = peak_rates._rate(iter([99.0, 10.0, 20.0, 15.0, 40.0, 1.0]), 30.0, clock=lambda: float(next(ticks)))
    assert later.best == 40.0
    assert peak_rates._rate(iter([1.0, 2.0, 2.0, 2.0]), 30.0).best == 30.0


def test_peaks_are_kept_by_device(tmp_path: Path) -> None:
    """What was measured is known from then on, of this device, driver and number of cores; a damaged file is none."""
    assert peak_rates.cached_rates(FACTS, tmp_path / "c") is None
    peak_rates.cache_rates(FACTS, tmp_path / "c", PEAKS)
    peak_rates.cache_rates(replace(FACTS, name="H200"), tmp_path / "c", PEAKS.best_of(PEAKS))
    assert peak_rates.cached_rates(FACTS, tmp_path / "c") == PEAKS
    for other in (replace(FACTS, driver="14"), replace(FACTS, cores=1), replace(FACTS, target="numba-cpu")):
        assert peak_rates.cached_rates(other, tmp_path / "c") is None
    older = {**PEAKS.record(), "method": 1}
    for text in (
        "",
        "[1]",
        json.dumps({peak_rates._key(FACTS): {"copy": 3}}),
        json.dumps({peak_rates._key(FACTS): older}),
    ):
        (tmp_path / "c" / "peaks.json").write_text(text)
        assert peak_rates.cached_rates(FACTS, tmp_path / "c") is None
        assert not list((tmp_path / "c").glob("*.part"))
    (tmp_path / "file").write_text("")
    peak_rates.cache_rates(FACTS, tmp_path / "file" / "c", PEAKS)


def test_what_was_disturbed_is_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the next process, not by this one; the best of all runs is kept, and what has a median near it stays."""
    lucky, busy, sound = (
        replace(PEAKS, copy=Rate(rate, spread)) for rate, spread in ((9.0, 0.8), (5.0, 0.1), (8.0, 0.1))
    )
    machine, found = Cpu(), iter([lucky, busy, sound])
    monkeypatch.setattr(peak_rates, "measure", lambda *given: next(found))

    def process() -> Peaks:
        monkeypatch.setattr(peak_rates, "_measured", set())
        return asked()

    def asked() -> Peaks:
        return peak_rates.peak_rates(machine, None, tmp_path)  # type: ignore[arg-type]

    assert [process(), asked()] == [lucky, lucky]
    assert process().copy == Rate(9.0, 0.5)
    for settled in (process(), process()):
        assert (settled.copy.best, settled.copy.spread) == (9.0, pytest.approx(0.2))
    assert next(found, None) is None


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of a megabyte and a few runs: what is measured then is no peak, but found all the same."""
    for name, value in (("LARGE_BYTES", 2**20), ("LIMIT_S", 0.005), ("PATIENCE_S", 0.01), ("CPU_PASSES", 1000)):
        monkeypatch.setattr(peak_rates, name, value)


@pytest.mark.wide
@pytest.mark.usefixtures("small")
def test_devices_measures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``looptune devices --measure``: four rates for the CPU, kept, measured again with --remeasure."""
    monkeypatch.setattr("looptune.runtime.targets.CACHE", tmp_path)
    monkeypatch.setattr(targets, "gpu_missing", lambda: "not asked")
    monkeypatch.setattr(targets, "opencl_facts", tuple)

    def devices(*options: str) -> str:
        return CliRunner().invoke(cli, ["devices", *options], catch_exceptions=False).stdout

    first = json.loads(devices("--measure", "--json"))
    assert [set(d["peaks"]) for d in first] == [{"copy", "read", "fma32", "fma64", "method"}]
    rates = [d["peaks"][name] for d in first for name in ("copy", "read", "fma32", "fma64")]
    assert all(rate["best"] > 0 and 0 <= rate["spread"] < 1 for rate in rates)
    assert json.loads(devices("--measure", "--json")) == first
    assert json.loads(devices("--measure", "--remeasure", "--json")) != first
    said = devices("--measure").splitlines()
    assert [line.split()[0] for line in said[1:5]] == ["copy", "read", "FMA", "FMA"]
    # the prefix of a unit depends on how busy the machine is
    assert [line.split("(")[0].split()[-1][1:] for line in said[1:5]] == ["B/s", "B/s", "FLOP/s", "FLOP/s"]
    assert "peaks" not in json.loads(devices("--json"))[0]


def test_a_cpu_makes_the_operations_that_are_counted() -> None:
    """Ten times the passes take ten times as much of a core, give or take: no pass is optimised away, nor a chain."""
    one, _, operations = fma_chains("float32")
    assert operations % (2 * CHAINS) == 0
    one(1)

    def core_us(passes: int) -> float:
        start = time.thread_time_ns()
        one(passes)
        return (time.thread_time_ns() - start) / 1e3

    least = {n: min(core_us(n) for _ in range(30)) for n in (100_000, 1_000_000)}
    assert 4 < least[1_000_000] / least[100_000] < 25
    fastest = operations * 1_000_000 / least[1_000_000] / 1e3
    assert fastest < 2 * 16 * 2 * 2 * 8, "GFLOP/s of one core: two units of 16 lanes, two operations, 8 GHz at most"


def test_bytes_are_those_of_the_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU whose every run takes a millisecond: a copy reads one array and writes another, a sum reads a matrix."""
    placed: list[list[int]] = []

    def load(binary: object) -> SimpleNamespace:
        placed.append([])
        return SimpleNamespace(run=lambda *given: None)

    def place(array: np.ndarray) -> np.ndarray:
        placed[-1].append(array.nbytes)
        return array

    monkeypatch.setattr(peak_rates, "LARGE_BYTES", 2**20)
    monkeypatch.setattr(peak_rates, "LEAST_BYTES", 2**20)
    facts = DeviceInfo("GPU", "numba-cuda", "sm_90", 2, 2**30, 2**20, "13000")
    backend: Any = SimpleNamespace(build=lambda plan: plan, load=load)
    backend.measuring = lambda: backend
    machine: Any = SimpleNamespace(facts=facts, place=place, sampler=lambda run, restore: lambda: 1000.0)
    found = peak_rates.measure(machine, backend)
    copied, read, fma32, fma64 = placed
    assert found.copy.best * 1e6 == sum(copied) == 2 * copied[0]
    assert found.read.best * 1e6 == read[0] == copied[0]
    assert found.fma32 == found.fma64
    assert fma64[0] == 2 * fma32[0]


@pytest.mark.wide
@pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")
def test_a_gpu_would_run_fused_chains(tmp_path: Path) -> None:
    """Without a GPU the kernels compile to cubins without spills; every chain is one fused operation a pass."""
    backend = targets.backend("numba-cuda", tmp_path)
    for dtype, fused in (("float32", "fma.rn.f32"), ("float64", "fma.rn.f64")):
        made = peak_rates.plan_of_text(peak_rates.fma_text(dtype), n=132 * 8192, m=peak_rates.PASSES)  # type: ignore[arg-type]
        ptx = backend.ptx(made)  # type: ignore[attr-defined]
        assert ptx.count(fused) == peak_rates.CHAINS * peak_rates.PASSES_AT_ONCE, (
            "else a loop's own operations count too"
        )
        assert ptx.count("mul.f") == 0
        assert [r.local_bytes for r in backend.build(made).resources] == [0]
    for text in (peak_rates.COPY, peak_rates.COLUMNS):
        (kernel,) = backend.build(peak_rates.plan_of_text(text, n=2**19, m=64)).resources
        assert kernel.local_bytes == 0


@pytest.mark.wide
@pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")
def test_the_gpu_kernels_compute_what_they_say(tmp_path: Path) -> None:
    """Simulated: the copy copies, the sums are sums, the chains are run to their end, bad elements are counted."""
    backend = targets.backend("numba-cuda", tmp_path)
    rng = np.random.default_rng(0)
    x, m = rng.random((5, 37)), 3
    got, want = rng.random(90).astype(np.float32), rng.random(90).astype(np.float32)
    got[::3], got[7] = want[::3], np.nan
    cases = {
        "copy": (peak_rates.plan_of_text(peak_rates.COPY, n=37), {"n": 37, "x": x[0].copy(), "y": np.zeros(37)}),
        "sums": (peak_rates.plan_of_text(peak_rates.COLUMNS, n=37, m=5), {"n": 37, "m": 5, "x": x, "y": np.zeros(37)}),
        "fma": (
            peak_rates.plan_of_text(peak_rates.fma_text("float64"), n=37, m=m),
            {"n": 37, "m": m, "x": x[0].copy(), "z": np.array([0.5, 0.25])},
        ),
        "off": (
            device_compare.comparison_plan("float32", gpu=True),
            {"n": 90, "lanes": 40, "rows": 3, "got": got, "want": want, "allowed": np.full(90, 1e-6, np.float32),
             "bad": np.full(40, -1, np.int32)},
        ),
    }  # fmt: skip
    programs = [cross_check.Emitted(n, backend.emit(p), p.codelet.name, given) for n, (p, given) in cases.items()]
    found = cross_check.simulated(programs, tmp_path)
    assert {n: r for n, r in found.items() if isinstance(r, str)} == {}
    np.testing.assert_array_equal(found["copy"]["y"], x[0])  # type: ignore[index]
    np.testing.assert_allclose(found["sums"]["y"], x.sum(0), rtol=1e-14)  # type: ignore[index]
    chains = [x[0] + c for c in range(peak_rates.CHAINS)]
    for _ in range(m):
        chains = [a * 0.5 + 0.25 for a in chains]
    np.testing.assert_allclose(found["fma"]["x"], sum(chains), rtol=1e-14)  # type: ignore[index]
    wrong = ~(np.abs(got - want) <= np.float32(1e-6))
    lanes = [int(wrong[b::40].sum()) for b in range(40)]
    np.testing.assert_array_equal(found["off"]["bad"], lanes)  # type: ignore[index]


WORK = [
    # text, sizes, flops, bytes, type
    ("void f(int n, float x[n]) { for (int i = 0; i < n; i++) x[i] = 2 * x[i] + 1; }", 20, 40, "float32"),
    ("void f(int n, double x[n], double y[n]) { for (int i = 0; i < n; i++) for (int j = 0; j <= i; j++)"
     " y[i] += x[j] * x[i]; }", 65, 160, "float64"),
    # what no loop changes is not computed again in it; neighbours share what they compute alike
    ("void f(int n, float a, float b, float x[n]) { for (int i = 0; i < n; i++) x[i] = x[i] + a * b; }",
     11, 40, "float32"),
    ("void f(int n, float x[n], float y[n]) { for (int i = 1; i < n - 1; i++)"
     " y[i] = 3.0f * x[i - 1] + 3.0f * x[i + 1]; }", 16, 72, "float32"),
    # only the last value stays
    ("void f(int n, float x[n], float y[1]) { for (int i = 0; i < n; i++) y[0] = x[i] + 1.0f; }", 0, 0, "float32"),
    # nobody knows what is reached
    ("void f(int n, int k[n], float x[n], float y[n]) { for (int i = 0; i < n; i++) y[k[i]] = x[i] + 1.0f; }",
     10, 80, "float32"),
    ("void f(int n, float x[n], float y[n]) { for (int i = 0; i < n; i++) if (x[i] > 0.0f) y[i] = x[i] * 2.0f; }",
     0, 0, "float32"),
    ("void f(int n, float x[n], float y[n]) { for (int i = 0; i < n; i++) y[i] = i < 3 ? x[i] * 2.0f : 0.0f; }",
     0, 40, "float32"),
    ("void f(int n, int k[n], float x[n]) { int i = 0; while (i < n) { x[i] = x[i] * 2.0f; i = i + k[i]; } }",
     0, 0, "float32"),
    # half of a square whose other half is the same, the factor of its sums apart: two for each term of 55 sums, the
    # factor, and of 45 of them the factor again
    ("void f(int n, float a, float A[n][n], float C[n][n]) { for (int i = 0; i < n; i++) for (int j = 0; j < n; j++)"
     " for (int k = 0; k < n; k++) C[i][j] += a * A[i][k] * A[j][k]; }", 1200, 800, "float32"),
    ("void f(int n, float a, float A[n][n], float B[n][n], float C[n][n]) { for (int i = 0; i < n; i++)"
     " for (int j = 0; j < n; j++) for (int k = 0; k < n; k++) C[i][j] += a * A[i][k] * B[j][k]; }",
     2100, 1200, "float32"),
    # every other element, and a type that is not only double
    ("void f(int n, float x[n], double y[n]) { for (int i = 0; i < n; i += 2) y[i] = x[i] * 2.0; }", 5, 60, "float32"),
    ("void f(int n, int x[n]) { for (int i = 0; i < n; i++) x[i] = x[i] * 2; }", 0, 40, "float64"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "operations", "touched", "dtype"), WORK)
def test_the_work_nobody_saves(text: str, operations: int, touched: int, dtype: str) -> None:
    """By hand, at n=10: operations at least, bytes at least, and the type they are in."""
    assert work_bounds.minimum_work(build(load(f"{text}\n").codelet), {"n": 10}) == MinimumWork(
        operations, touched, dtype
    )  # type: ignore[arg-type]


def test_the_suite_has_as_much_to_do_as_is_counted() -> None:
    """Of a matrix product the bound is the count, and the three matrices are the bytes."""
    unit = load(POLYBENCH / "gemm.c", defines={"NI": 64, "NJ": 48, "NK": 40})
    sizes = {n: int(v) for n, v in unit.values.items() if isinstance(v, int)}
    found = work_bounds.minimum_work(build(unit.codelet), sizes)
    counted = operation_count.count(unit.codelet.body, sizes)
    assert counted is not None
    assert counted <= found.flops <= 1.1 * counted
    assert found.bytes == 4 * (64 * 48 + 64 * 40 + 40 * 48)


@pytest.mark.parametrize(("term", "operations"), [("t * t", 20), ("a * t", 10), ("a * x[j]", 10), ("2.0f * a * t", 10)])
def test_a_factor_that_a_loop_sets_is_counted(term: str, operations: int) -> None:
    """Of a term of a sum what no loop changes is taken out of the sum; a temporary of the iteration is not."""
    loop = f"for (int j = 0; j < n; j++) {{ float t = x[j]; s[0] += {term}; }}"
    text = f"void f(int n, float a, float s[1], float x[n]) {{ {loop} }}\n"
    assert operation_count.count(load(text).codelet.body, {"n": 10}) == operations


@pytest.mark.sampled(3, "wide")
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("most", [device_compare.MOST, 16])
def test_results_are_compared_where_they_are(
    dtype: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel passes and refuses what the judge does, whatever element is wrong and however, in pieces too."""
    monkeypatch.setattr(device_compare, "MOST", most)
    rng = np.random.default_rng(1)
    want = {
        "a": (rng.random((13, 7)) * 9).astype(dtype),
        "b": (rng.random(5) * 9).astype(dtype),
        "c": np.empty(0, dtype),
    }
    machine, backend = Cpu(), targets.backend("numba-cpu", tmp_path)
    judge = ReferenceComparison(want, 10, lambda: RoundingEstimate({}, {}))
    comparison = device_compare.Comparison(machine, backend, judge)
    fetched: list[int] = []
    machine.fetch = lambda array: fetched.append(array.size) or np.array(array)  # type: ignore[method-assign,func-returns-value]
    assert comparison.wrong({name: a.copy() for name, a in want.items()}) is None
    assert max(fetched) <= 4 * machine.facts.cores, "no array is brought back where all is well"
    odd = [1, 100] + ([math.nan, math.inf, -math.inf] if dtype.startswith("float") else [])
    for name, at in (("a", (0, 0)), ("a", (12, 6)), ("a", (6, 3)), ("b", (4,))):
        for value in odd:
            got = {n: a.copy() for n, a in want.items()}
            got[name][at] += np.dtype(dtype).type(value)
            assert comparison.wrong(got) == judge.wrong(got) is not None


def test_a_comparison_learns_what_the_judge_allows(tmp_path: Path) -> None:
    """A result within what an ill-conditioned original means is right, and then at once."""
    want = {"a": np.linspace(1, 2, 50, dtype=np.float32)}
    moved = {"a": want["a"] + np.float32(0.1)}
    judge = ReferenceComparison(want, 10, lambda: RoundingEstimate(moved, {}))
    comparison = device_compare.Comparison(Cpu(), targets.backend("numba-cpu", tmp_path), judge)
    near = {"a": want["a"] + np.float32(0.05)}
    assert not comparison._passes("a", near["a"])
    assert comparison.wrong(near) is None
    assert comparison._passes("a", near["a"])
    assert comparison.wrong({"a": want["a"] + np.float32(5)}) is not None


def test_tensor_cores_exceed_the_peak_of_multiply_adds() -> None:
    """By up to three times; more is as impossible as before."""
    peak = replace(ROOF, cold=False)
    rate = peak.peaks.fma(peak.work.dtype)
    assert rate is not None
    fastest_us = peak.work.flops / rate.limit / 1e3
    assert peak.violated_by(fastest_us / 2) is not None
    assert peak.violated_by(fastest_us / 2, matrix_rate=MATRIX_RATE) is None
    assert peak.violated_by(fastest_us / 4, matrix_rate=MATRIX_RATE) is not None
