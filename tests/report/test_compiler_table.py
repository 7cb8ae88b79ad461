"""One device, two compilers: the same configurations side by side, in a sweep of both and in the report."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from looptune.cli.main import cli
from looptune.report import compiler_table
from looptune.report.compiler_table import Comparison
from looptune.report.figures import style
from looptune.report.site import folder as site
from looptune.runtime import targets
from looptune.runtime.device import Cpu
from looptune.tune.results import studies
from looptune.tune.store.store import Context, Store
from tests.helpers import report_database
from tests.helpers.command_line import looptune
from tests.helpers.report_database import GPU

C = replace(GPU, target="cuda-c", toolchain='{"nvidia-cuda-nvrtc": "13"}')
FASTER = {text: us / 2 for text, us in list(report_database.TIMES.items())[:3]}
SAME = dict(list(report_database.TIMES.items())[3:5])
SLOWER = {"nest i: permute j, i, k": 55.0, "only here": 1.0}


def filled(path: Path, *contexts: tuple[Context, dict[str, float]]) -> Path:
    with Store.open(path) as store:
        for context, times in contexts:
            report_database.fill(store, context, times=times, finals={}, sweep=context.target)
    return path


def comparison(path: Path) -> Comparison:
    both = filled(path, (GPU, report_database.TIMES), (C, FASTER | SAME | SLOWER))
    (found,) = compiler_table.compare_compilers(studies.read([both]))
    return found


def test_what_both_timed_is_compared(tmp_path: Path) -> None:
    """The usual compiler first, configurations of both alone, ratios of medians, verdicts by quartiles."""
    found = comparison(tmp_path / "db")
    assert (found.first, found.second) == ("numba-cuda", "cuda-c")
    by = {p.directives: (p.first.median_us, p.second.median_us, p.verdict) for p in found.pairs}
    # A version that repeats the default has its time.
    assert by == {
        **{text: (2 * us, us, "faster") for text, us in FASTER.items()},
        **{text: (us, us, "alike") for text, us in SAME.items()},
        "nest i: permute j, i, k": (50.0, 55.0, "slower"),
        "loop k: tile k:2": (100.0, 50.0, "faster"),
    }
    assert found.best == (40.0, 30.0)
    kernel, sizes, named, count, _, ratio, middle, *counts = found.row
    assert (kernel, sizes, named) == ("gemm", "512, float32", "numba-cuda, cuda-c")
    assert (count, ratio, middle, counts) == ("7", "1.33", "2", ["4", "2", "1"])
    fastest = [min(p.first.median_us, p.second.median_us) for p in found.pairs]
    assert fastest == sorted(fastest)


def test_what_differs_otherwise_is_not_compared(tmp_path: Path) -> None:
    """Another size, source, device or option is no pair; nor is one compiler alone."""
    others = [
        replace(C, sizes='{"n": 64}'), replace(C, source_hash="other"), replace(C, device="NVIDIA A100"),
        replace(C, options="{}"),
    ]  # fmt: skip
    for number, other in enumerate(others):
        both = filled(tmp_path / f"{number}", (GPU, report_database.TIMES), (other, report_database.TIMES))
        assert compiler_table.compare_compilers(studies.read([both])) == ()
    assert compiler_table.compare_compilers(studies.read([filled(tmp_path / "one", (C, report_database.TIMES))])) == ()


@pytest.fixture
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without figures, which take longest."""
    monkeypatch.setattr(style, "available", lambda: False)


@pytest.mark.usefixtures("_plain")
def test_the_report_has_the_table(tmp_path: Path) -> None:
    """A page and every configuration as CSV beside the other tables, the summary in the HTML."""
    comparison(tmp_path / "db")
    (written,) = site.write(studies.read([tmp_path / "db"]), tmp_path / "r")
    folder = written.page.parent
    assert any("compilers.md" in note for note in written.notes)
    page = (folder / "compilers.md").read_text()
    assert "| gemm | 512, float32 | numba-cuda, cuda-c | 7 |" in page
    assert "loop k: unroll 4, split, guarded" in page
    with (folder / "compilers.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 7
    assert {row["verdict"] for row in rows} == {"faster", "alike", "slower"}
    html = written.page.read_text()
    assert "<h2>Compilers</h2>" in html
    assert "numba-cuda, cuda-c" in html
    assert "float32, cuda-c" in (folder / "table-best.md").read_text()


@pytest.mark.usefixtures("_plain")
def test_without_a_second_compiler_there_is_no_table(tmp_path: Path) -> None:
    """One compiler's report is as it was."""
    (written,) = site.write(studies.read([filled(tmp_path / "db", (GPU, report_database.TIMES))]), tmp_path / "r")
    assert not list(written.page.parent.glob("compilers*"))
    assert "<h2>Compilers</h2>" not in written.page.read_text()


KERNEL = "void f(int n, float x[n], float y[n]) { for (int i = 0; i < n; i++) y[i] += 2 * x[i]; }\n"


@pytest.mark.long
def test_a_sweep_of_two_targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each version is timed on both, a row says its target, and both are compared; the CPU stands in for a GPU."""
    real = targets.resolve("numba-cpu", tmp_path / "cache")

    def models(name: str, cache: Path, devices: str | None = None, **options: Any) -> tuple[targets.Model, ...]:
        return (targets.Model(replace(real, name=name), Cpu().facts),)

    monkeypatch.setattr(targets, "models", models)
    monkeypatch.chdir(tmp_path)
    Path("f.c").write_text(KERNEL)
    Path("s.space").write_text("loop i: unroll {2..3}\n")
    line = "run f.c -D n=300 --sweep --finals-timeout 0.3 --space s.space --db db --reports r --jobs 1"
    done = CliRunner().invoke(cli, [*line.split(), "--target", "numba-cuda,cuda-c"], standalone_mode=False)
    assert (done.exception, done.return_value) == (None, 0), done.output
    with Store.read(Path("db")) as store:
        rows = [row for row in store.rows() if row.role in ("default", "version")]
    tried = {(row.context.target, row.directives) for row in rows}
    versions = ("", "loop i: unroll 2", "loop i: unroll 3", "loop 1: noParallel")  # the last is one core, as on any CPU
    assert tried == {(t, d) for t in ("numba-cuda", "cuda-c") for d in versions}
    assert "numba-cuda, cuda-c  4 " in done.output
    assert "f: fastest with " in done.output


def test_targets_that_cannot_be(tmp_path: Path) -> None:
    """Twice the same, one that is none, and a dump of several, each in a line."""
    (tmp_path / "f.c").write_text(KERNEL)
    for given, message in {
        "numba-cpu,numba-cpu": "--target numba-cpu,numba-cpu: numba-cpu is named twice",
        "numba-cpu,metal": "unknown target 'metal': choose one of",
    }.items():
        ran = looptune("run", "f.c", "-D", "n=9", "--target", given, cwd=tmp_path)
        assert (ran.code, ran.out) == (2, "")
        assert message in ran.err
    ran = looptune("run", "f.c", "-D", "n=9", "--target", "numba-cpu,opencl", "--dump", "x.npz", cwd=tmp_path)
    assert "--dump takes only one target" in ran.err
