"""The picture of GATLAS's chart: what it reads of the lines, and of which it says that they are no chart."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from tests.helpers.built_modules import imported
from tests.helpers.paths import ROOT

CHART = ROOT / "reports" / "nvidia-h100-80gb-hbm3" / "gatlas.tsv"


@cache
def script() -> ModuleType:
    return imported(ROOT / "benchmarks" / "gatlas_figure.py")


def test_what_a_line_says_is_drawn() -> None:
    """Shares as the chart prints them, the library's by the same peak; beside those of GATLAS at its sizes."""
    found = script().shares(CHART)
    line = next(x.split("\t") for x in CHART.read_text().splitlines() if x.startswith("tn\t2048"))
    ours, library = (dict(found["tn"][name])[2048] for name in (script().OURS, script().LIBRARY))
    assert ours == pytest.approx(float(line[9]))
    assert library / ours == pytest.approx(float(line[13]) / float(line[8]))
    assert [size for size, _ in found["tn"][script().IMAGES]] == [256, 512, 1024, 2048, 4096]
    assert dict(found["tn"][script().IMAGES])[2048] == pytest.approx(100 * 981 / 2720)


def test_it_is_written(tmp_path: Path) -> None:
    """Both files, with a panel for each case that the chart has."""
    pytest.importorskip("matplotlib")
    few = [x for x in CHART.read_text().splitlines() if x.startswith(("case", "nn", "tt"))]
    (tmp_path / "chart.tsv").write_text("\n".join(few) + "\n")
    assert script().main([str(tmp_path / "chart.tsv"), str(tmp_path / "gatlas")]) == 0
    assert (tmp_path / "gatlas.png").read_bytes().startswith(b"\x89PNG")
    assert len(script().shares(tmp_path / "chart.tsv")) == 2


@pytest.mark.parametrize("text", ["", "a,b\n", CHART.read_text().splitlines()[0] + "\n"], ids=["empty", "else", "none"])
def test_what_is_no_chart_is_refused(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2 and a message that names the file."""
    (tmp_path / "no.tsv").write_text(text)
    pytest.importorskip("matplotlib")
    assert script().main([str(tmp_path / "no.tsv"), str(tmp_path / "x")]) == 2
    assert str(tmp_path / "no.tsv") in capsys.readouterr().err
