"""benchmarks/whole_programs.py on a machine without a GPU: the rows of its table, with programs that are made up."""

from __future__ import annotations

import gzip
import importlib
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.helpers import cross_check
from tests.helpers.paths import ROOT

pytestmark = [
    pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc"),
    pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda"),
]
TIMES = '"kernel_s": 18e-6, "to_device_s": 1, "from_device_s": 0, "to_device_bytes": 8, "from_device_bytes": 8'
SCRIPT = f"""#!/bin/sh
echo '{{"host_calls": 0, {TIMES}}}' > $LOOPTUNE_REPORT
echo "looptune: gemm (gemm.c:1):   exact match, calls: 1; tile" >&2
"""


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """The exit code, the rows and the errors of the benchmark."""
    monkeypatch.syspath_prepend(ROOT)
    module: ModuleType = importlib.import_module("benchmarks.whole_programs")

    def made(program: Any, arch: str, path: Path) -> None:
        """No gesummv, and an atax that ends with an error."""
        if program.name == "gesummv":
            raise module.Failed("no kernel fits")
        path.write_text(SCRIPT + (f"{program.plain}" if program.name == "gemm" else "exit 3"))
        path.chmod(0o755)

    monkeypatch.setattr(module.OneProcess, "call", lambda *_: module.Facts("NVIDIA H200", 132, "sm_90", "CUDA 13.0"))
    monkeypatch.setattr(module, "make_accelerated", made)
    db = tmp_path / "results.sqlite"
    db.write_bytes(gzip.decompress((ROOT / "reports/nvidia-h200/results.sqlite.gz").read_bytes()))

    def run(*arguments: str) -> tuple[int, dict[str, Sequence[str]], str]:
        own = ("--db", str(db), "--folder", str(tmp_path), "--later", "0", "--outputs", str(tmp_path / "outputs"))
        code = module.main([*own, *arguments])
        out, err = capsys.readouterr()
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in out.splitlines() if line.startswith("| ")]
        return code, {row[0]: row[1:] for row in rows}, err

    return run


@pytest.mark.wide
def test_the_rows_of_programs_that_run_and_that_fail(table: Callable[..., Any], tmp_path: Path) -> None:
    """The sweep's time is that of the database; what fails has the reason in its row, and the others go on."""
    code, rows, _ = table("--kernels", "gesummv,atax,gemm", "--runs", "2")
    assert code == 0
    assert rows["gesummv"][0] == "Failed: no kernel fits"
    assert rows["atax"][0].startswith("Failed: exit status 3: looptune: gemm")
    assert {len(row) for row in rows.values()} == {12}
    match, difference, first, later, sweep, again, over, *_ = rows["gemm"]
    assert (match, difference, first, later, again) == ("exact", "none", "18 us [18, 18] n=2", "-", "-")
    assert float(over) == pytest.approx(18 / float(sweep.split()[0]), rel=1e-3)
    (tmp_path / "outputs/gemm.txt").write_text("gemm ni=512 other")
    assert table("--kernels", "gemm", "--runs", "1")[1]["gemm"][1] == "other text"


def test_a_name_that_is_none(table: Callable[..., Any]) -> None:
    code, _, said = table("--kernels", "gem")
    assert code == 2
    assert said.startswith("error: no such kernel: gem; there are 2dconv, 2mm, ")
