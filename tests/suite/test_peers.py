"""Kernels beside libraries: expressions have the results of looptune, and the table says what was measured."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from looptune.deploy.runtime.lookup import Match
from looptune.runtime.tolerance import compare
from tests.helpers.paths import POLYBENCH, ROOT

SIZES = {
    "gemm": {"ni": 33, "nj": 41, "nk": 37}, "2mm": {"ni": 19, "nj": 23, "nk": 29, "nl": 31},
    "3mm": {"ni": 19, "nj": 23, "nk": 29, "nl": 31, "nm": 37}, "syrk": {"n": 33, "m": 41},
    "syr2k": {"n": 33, "m": 41}, "atax": {"nx": 37, "ny": 45}, "bicg": {"nx": 37, "ny": 45}, "mvt": {"n": 43},
    "gesummv": {"n": 43}, "corr": {"m": 31, "n": 43}, "covar": {"m": 31, "n": 43}, "2dconv": {"ni": 37, "nj": 45},
    "3dconv": {"ni": 9, "nj": 11, "nk": 13}, "fdtd-2d": {"tmax": 5, "nx": 23, "ny": 29},
    "gramschm": {"n": 23, "m": 31}, "bp_stereo": {"height": 13, "width": 25, "iterations": 7},
}  # fmt: skip
NONE = {("library", "fdtd-2d"), ("library", "bp_stereo"),
        *(("Triton", kernel) for kernel in ("corr", "covar", "gramschm", "bp_stereo"))}  # fmt: skip
PEERS = {"library": "torch", "torch.compile": "torch", "JAX": "jax", "Triton": "triton"}


@cache
def module(name: str) -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        return importlib.import_module(name)


def task(kernel: str, dtype: str, folder: Path) -> Any:
    file, gate = str(POLYBENCH / f"{kernel}.c"), str(folder / "gate")
    return module("peers_task").Task(file, dtype, SIZES[kernel], "numba-cpu", "", False, gate)


@cache
def expected(kernel: str, dtype: str, folder: Path) -> dict[str, np.ndarray]:
    """What looptune's kernel for the CPU makes of the data."""
    results = module("peers_looptune").prepare(task(kernel, dtype, folder), "looptune").results
    return dict(results)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What processes share; Triton, which torch imports too, is for CPUs from here on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        patch.setenv("TORCHINDUCTOR_COMPILE_THREADS", "1")
        yield tmp_path_factory.mktemp("peers")


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("kernel", SIZES)
def test_a_peer_has_the_results_of_looptune(kernel: str, peer: str, dtype: str, folder: Path) -> None:
    """At sizes that no block divides; what a peer has nothing for is said as that."""
    if importlib.util.find_spec(PEERS[peer]) is None:
        pytest.skip(f"needs {PEERS[peer]}")
    if peer == "Triton" and np.lib.NumpyVersion(np.__version__) >= "2.4.0":
        pytest.skip("Triton's interpreter needs NumPy 2.3")
    prepare = module(module("peers_process").MODULES[peer]).prepare
    try:
        version = prepare(task(kernel, dtype, folder), peer)
    except module("peers_task").NothingToTime:
        assert (peer, kernel) in NONE
        return
    want = {name: a for name, a in expected(kernel, dtype, folder).items() if name in version.results}
    assert want
    assert compare(want, version.results, terms=256) is None
    assert version.sample() > 0


FAKE = """
import json, os, sys
name, task = sys.argv[1], json.loads(sys.argv[2])
us = {"looptune": 10.0, "library": 20.0, "torch.compile": 5.0, "JAX": 40.0, "Triton": 80.0}[name]
kernel = os.path.basename(task["file"])

def say(**answer):
    print(json.dumps(answer), flush=True)

match kernel, name:
    case _, "JAX":
        say(missing="ModuleNotFoundError: No module named 'jax'")
        sys.exit(1)
    case "bicg.c", "torch.compile":
        say(failed="RuntimeError: no kernel")
        sys.exit(1)
    case "mvt.c", "library":
        os._exit(3)
say(ready=1.0, by="cuBLAS" if name == "library" else "", package=f"{name} 1.0")
for line in sys.stdin:
    request = json.loads(line)
    if "compare" in request:
        say(error=1e-3, wrong="y[0]: got 1, expected 2" if (kernel, name) == ("bicg.c", "Triton") else None)
    elif "save" in request:
        say()
    elif (kernel, name) == ("gemm.c", "Triton"):
        os._exit(4)
    else:
        say(us=us)
"""


@cache
def report(folder: Path, *arguments: str) -> str:
    """The table that the command writes where processes only pretend to measure."""
    script = module("peers")
    (folder / "fake.py").write_text(FAKE)
    given = ["--untuned", "--target", "numba-cpu", "--finals", "0.02", "-o", str(folder / "table.md"), *arguments]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(script, "PROCESS", folder / "fake.py")
        assert script.main(given) == 0
    return (folder / "table.md").read_text()


def cells(text: str, kernel: str) -> list[str]:
    return [c.strip() for c in next(x for x in text.splitlines() if x.startswith(f"| {kernel} ")).split("|")[1:-1]]


def test_a_row_compares_medians_with_that_of_looptune(folder: Path) -> None:
    """The ratio is above 1 where looptune is faster; the fastest of the others is named; means are geometric."""
    text = report(folder, "mvt", "bicg", "gemm", "--gemm", "64,512", "--jobs", "12")
    row = cells(text, "gemm")
    assert row[1:6] == ["ni=512 nj=512 nk=512", "10.0 (10.0 to 10.0)", "20.0 (20.0 to 20.0) **2.00x**",
                        "5.00 (5.00 to 5.00) **0.50x**", "-"]  # fmt: skip
    assert row[7:] == ["0.50x torch.compile", "0.001 / 0.001 / - / 0.001"]
    assert cells(text, "geometric mean")[2:] == ["", "2.00x of 3", "0.50x of 3", "-", "8.00x of 1", "0.71x of 4", ""]
    assert "ni=64 nj=64 nk=64" in text
    assert "- JAX: ModuleNotFoundError: No module named 'jax' (every row)" in text
    assert "- library: cuBLAS (bicg 4096, gemm 512, gemm 64)" in text


def test_a_peer_that_fails_takes_no_other_with_it(folder: Path) -> None:
    """One that raises, crashes while it is prepared or timed, or is wrong: the rest of the row is there."""
    text = report(folder, "mvt", "bicg", "gemm", "--gemm", "64,512", "--jobs", "12")
    assert cells(text, "bicg")[3:7] == ["20.0 (20.0 to 20.0) **2.00x**", "-", "-", "wrong"]
    assert "- torch.compile: RuntimeError: no kernel (bicg 4096)" in text
    assert cells(text, "mvt")[3:5] == ["-", "5.00 (5.00 to 5.00) **0.50x**"]
    assert "- library: the process ended with 3 (mvt 4096)" in text
    assert cells(text, "gemm")[6] == "-"
    assert "- Triton: the process ended with 4 (gemm 512, gemm 64)" in text
    assert "- Triton: wrong: y[0]: got 1, expected 2 (bicg 4096)" in text


def test_results_are_compared_with_those_of_looptune(tmp_path: Path) -> None:
    """Rounding errors pass, a missing term does not; of a very large array some elements are compared."""
    process, right = module("peers_process"), np.linspace(1, 2, 1000, dtype=np.float32)
    process.saved({"y": right}, tmp_path)
    near = process.compared({"y": right * np.float32(1 + 1e-6)}, tmp_path, 1000)
    assert near["wrong"] is None
    assert near["error"] == pytest.approx(6e-7, rel=0.5)
    assert "y[" in process.compared({"y": right * np.float32(1 + 1e-3)}, tmp_path, 1000)["wrong"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "MOST", 10)
        process.saved({"y": right.reshape(10, 100)}, tmp_path)
        assert process.compared({"y": right.reshape(10, 100)}, tmp_path, 1000) == {"error": 0.0, "wrong": None}
    assert np.load(tmp_path / "y.npy").shape == (143,)


def test_what_was_not_tuned_is_said() -> None:
    """The sizes that a version was tuned for where they are others, and the device where it is another."""
    origin, row = module("peers_looptune").origin, {"sizes": {"n": 4, "m": 5}}
    assert origin(Match("exact", row, "")) == ""
    assert origin(Match("same device", row, "")) == "tuned for n=4 m=5"
    assert origin(Match("same family", row, "")) == "tuned for n=4 m=5, same family"
    assert origin(Match("default", None, "")) == "untuned"


def test_what_takes_too_long_is_given_up(folder: Path) -> None:
    """The process is ended, and the note says how long it had."""
    (folder / "sleeping.py").write_text("import time; time.sleep(600)")
    peer = module("peers").Peer("Triton", task("mvt", "float32", folder), folder / "log")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module("peers"), "PROCESS", folder / "sleeping.py")
        peer.start({})
    peer.look(90)
    assert peer.state == "preparing"
    peer.spent_s = 91
    peer.look(90)
    assert (peer.state, peer.why) == ("failed", "not prepared in 90 s")
    assert peer.process.poll() is not None


def test_the_command_ends_in_time(folder: Path) -> None:
    """Rows that could not be measured are there all the same, and say so."""
    text = report(folder, "mvt", "--seconds", "0")
    assert cells(text, "mvt")[2:7] == ["-"] * 5
    assert "looptune: not measured: the time of --seconds is over (mvt 4096)" in text


def test_a_database_that_is_not_there_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert module("peers").main(["--db", str(folder / "none"), "--target", "numba-cpu", "mvt"]) == 2
    assert "no database" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [["nothing"], ["--gemm", "64,x"], ["--peers", "cuBLAS"]])
def test_what_is_no_choice_is_refused(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        module("peers").main(wrong)
    assert wrong[-1] in capsys.readouterr().err
