"""The stereo example: its pair shows one scene, and what belief propagation finds there is judged and drawn."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from looptune.frontend import Unit, load
from looptune.lower.pipeline import lower
from looptune.lower.plan import Plan
from looptune.runtime import images
from looptune.runtime.inputs import from_files
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check, cuda_c_on_cpu
from tests.helpers.paths import POLYBENCH, ROOT

STEREO = runpy.run_path(str(ROOT / "examples" / "stereo.py"))


def ran(*words: str | Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["stereo.py", *map(str, words)])
        STEREO["main"]()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stereo") / "pair"
    ran("render", folder)
    return folder


def samples(path: Path) -> np.ndarray:
    return np.asarray(Image.open(path))


def test_the_rendered_pair_shows_one_scene(pair: Path) -> None:
    """At whole disparities a left pixel is the right one so far to the left, but for noise, edges, what is hidden."""
    left, right, truth = (samples(pair / f"{name}.png").astype(int) for name in ("left", "right", "truth"))
    assert left.shape == (288, 384)
    assert (truth.min(), truth.max()) == (0, 14 * 16)
    y, x = np.indices(truth.shape)
    for whole, most_apart in ((0, 0.1), (5, 0.05), (9, 0.05), (12, 0.2), (14, 0.05)):
        inside = (truth == 16 * whole) & (x >= whole)
        apart = np.abs(left[inside] - right[y[inside], x[inside] - whole])
        assert inside.sum() > 1000
        assert np.mean(apart > 8) < most_apart, whole
    assert np.mean(truth % 16 != 0) > 0.5


def test_a_seed_gives_one_pair(pair: Path, tmp_path: Path) -> None:
    """The same files again."""
    ran("render", tmp_path, "--seed", STEREO["SEED"])
    for name in ("left.png", "right.png", "truth.png"):
        assert (pair / name).read_bytes() == (tmp_path / name).read_bytes()


def test_wrong_pixels_are_counted_and_red(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """More than 1 off, by parts of a disparity, and not in the border."""
    truth = np.full((12, 10), 40)  # 2.5
    found = np.full((12, 10), 3)
    found[0, :] = 9
    found[5, 4:7] = 4
    images.write(tmp_path / "truth.png", truth)
    images.write(tmp_path / "found.pgm", found)
    files = (tmp_path / "found.pgm", tmp_path / "truth.png")
    ran("judge", *files, "--border", "2", "-o", tmp_path / "result.png")
    assert capsys.readouterr().out == "6.25 % of 48 pixels are more than 1 off, a border of 2 left out\n"
    drawn = samples(tmp_path / "result.png")
    assert drawn.shape == (12, 28, 3)
    assert [tuple(at) for at in np.argwhere((drawn == STEREO["RED"]).all(axis=2))] == [(5, 22), (5, 23), (5, 24)]
    ran("judge", *files, "--border", "0", "--scale", "8")
    assert capsys.readouterr().out == "97.50 % of 120 pixels are more than 1 off\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("none.png", "truth.png"), "no such file: none.png"),
        (("small.png", "truth.png"), "small.png is [2, 2], truth.png [12, 10]"),
        (("truth.png", "truth.png", "--border", "5"), "a border of 5 leaves nothing of [12, 10]"),
    ],
)
def test_what_cannot_be_judged_is_said(
    words: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Exit code 2 and one line."""
    monkeypatch.chdir(tmp_path)
    images.write(Path("truth.png"), np.zeros((12, 10), int))
    images.write(Path("small.png"), np.zeros((2, 2), int))
    with pytest.raises(SystemExit) as ended:
        ran("judge", *words)
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1].endswith(f"error: {message}")


@pytest.mark.long
@pytest.mark.skipif(cuda_c_on_cpu.GXX is None, reason="needs g++")
def test_tuned_versions_find_what_the_sequential_program_finds(pair: Path, tmp_path: Path) -> None:
    """On a part of the pair: to the pixel, so that all have one error against the truth, and it is small."""
    part = np.s_[110:176, 30:120]
    for name in ("left", "right"):
        images.write(tmp_path / f"{name}.png", samples(pair / f"{name}.png")[part])
    program = POLYBENCH / "bp_stereo.c"
    unit = load(program, defines={"ITERATIONS": 16})
    data = [f"{name}={tmp_path}/{name}.png" for name in ("left", "right")]
    problem = from_files(data, unit, tmp_path / "cache")
    assert problem.values == {"height": 66, "width": 90, "iterations": 16}
    given: cross_check.Arguments = {**problem.values, **problem.arrays(unit.codelet, 0)}
    text = program.read_text().replace("static void bp_stereo", "void bp_stereo")
    found = {"sequential": cross_check.by_gcc(text, unit.codelet, given, tmp_path)}
    found |= cuda_c_on_cpu.run(
        [cuda_c_on_cpu.Case(name, made, unit.codelet, given) for name, made in versions(unit)], tmp_path
    )
    truth = samples(pair / "truth.png")[part] / STEREO["SCALE"]
    errors = {name: STEREO["judge"](left["disparity"], truth, 18).mean() for name, left in found.items()}
    assert len(errors) == 3
    assert set(errors.values()) == {errors["sequential"]}, errors
    assert 0 < errors["sequential"] < 0.15
    assert all(np.array_equal(left["disparity"], found["sequential"]["disparity"]) for left in found.values())


def versions(unit: Unit) -> Iterator[tuple[str, Plan]]:
    """Two from the space, as CUDA kernels."""
    analysis = Analysis(unit.codelet)
    for lines in (("loop 10: unroll 4, jam", "codelet: grid blocksize 64x2"), ("loop 8: unroll 2, split",)):
        yield f"version {lines}", lower(schedule(analysis, parse_lines(lines)).codelet, blocks=True)
