"""Quotients and products of sizes: in bounds, in subscripts, and under directives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from looptune.frontend import load
from looptune.ir import interpreter
from looptune.ir.nodes import Codelet
from looptune.poly.footprint import elements
from looptune.poly.scop import build
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers.against_gcc import difference, verdicts

WINDOWS = """
void windows(int height, int width, int pad, int k, int stride, int channels, const float *image, float *out)
{
    int rows = (height + 2 * pad - k) / stride + 1;
    int columns = (width + 2 * pad - k) / stride + 1;
    for (int c = 0; c < channels * k * k; c++) {
        int down = (c / k) % k;
        for (int h = 0; h < rows; h++)
            for (int w = 0; w < columns; w++) {
                int y = down + h * stride - pad, x = c % k + w * stride - pad;
                float value = 0;
                if (y >= 0 && x >= 0 && y < height && x < width)
                    value = image[x + width * (y + height * (c / k / k))];
                out[(c * rows + h) * columns + w] = value;
            }
    }
}
"""
SIZES = {"height": 7, "width": 6, "pad": 1, "k": 3, "stride": 2, "channels": 2}
SHAPES = {"image": (84,), "out": (18 * 12,)}
HALVES = """
void halves(int n, int s, float a[n], float b[n])
{
    float t[n];
    for (int r = 0; r < n / s; r++) {
        for (int j = 0; j < r; j++)
            t[j] = a[j] * r;
        for (int j = 0; j < r; j++)
            b[r] += t[j];
    }
}
"""
LEVELS = """
void levels(int n, int s, const float *a, float *b)
{
    for (int c = 0; c < 5; c++)
        for (int h = 0; h < n / s + 1; h++)
            b[c * (n / s + 1) + h] = a[c] * h;
}
"""
STRIDES = """
void axpy(int n, float a, const float *x, int incx, float *y, int incy)
{
    for (int i = 0; i < n; i++)
        y[i * incy] += a * x[i * incx];
}
"""


def kinds(text: str) -> list[str]:
    return list(verdicts(load(text).codelet).values())


def test_extents_that_are_computed_are_sizes(tmp_path: Path) -> None:
    assert kinds(WINDOWS) == ["parallel"] * 3
    assert difference(WINDOWS, SIZES, tmp_path, SHAPES) is None


def test_a_stride_is_assumed_to_be_one_or_more(tmp_path: Path) -> None:
    """For what is only read, nothing is assumed."""
    codelet = load(STRIDES).codelet
    assert kinds(STRIDES) == ["parallel"]
    (relation,) = build(codelet).assumed
    assert str(relation) == "1 <= incy"
    assert [relation.holds({"incy": n}) for n in (0, 1, 2)] == [False, True, True]
    assert difference(STRIDES, {"n": 7, "incx": 2, "incy": 3}, tmp_path) is None


def test_elements_that_are_only_read_are_counted_if_their_rows_are_assumed_to_be_apart() -> None:
    model = Analysis(load(STRIDES).codelet).model
    sizes = {"n": 4, "incx": 2, "incy": 3}
    assert elements(model, sizes) == {"x": 0, "y": 4}
    assert elements(model, sizes, assume=True) == {"x": 4, "y": 4}


def test_a_dependence_within_a_quotient_is_found() -> None:
    """The witness names the quotient."""
    text = "void f(int n, int s, float a[n])\n{ for (int k = 1; k < n / s; k++) a[k] = a[k - 1] + 1; }"
    analysis = Analysis(load(text).codelet)
    assert kinds(text) == ["sequential"]
    assert "n / s" in analysis.model.parameters
    product = text.replace("n / s", "n * s").replace("float a[n]", "float *a")
    assert kinds(product) == ["sequential"]
    assert kinds(product.replace("a[k - 1]", "s")) == ["parallel"]


def test_elements_are_counted_with_the_value_of_a_quotient() -> None:
    model = Analysis(load(LEVELS.replace("float *b", "float b[5 * n]").replace("float *a", "float a[5]")).codelet).model
    assert elements(model, {"n": 9, "s": 2}) == {"a": 5, "b": 25}
    assert elements(model, {"n": 9, "s": 0}) == {"a": 0, "b": 0}


@pytest.mark.sampled(3, "wide")
@pytest.mark.parametrize(
    ("text", "line"),
    [
        *((WINDOWS, line) for line in ("loop h: tile h:2, w:3", "nest h: permute w, h", "loop w: unroll 3, split")),
        *((LEVELS, line) for line in ("loop h: reverse", "loop c: skew h by c", "loop c: schedule",
                                      "loop c: wavefront c, h", "loop h: splitat 2")),
        *((HALVES, line) for line in ("loop r: expand t", "loop 2: expand t", "loop r: tile r:4", "loop r: schedule")),
    ],
)  # fmt: skip
def test_directives_keep_what_is_computed(text: str, line: str) -> None:
    codelet = load(text).codelet
    done = schedule(Analysis(codelet), parse_lines([line]), {}).codelet
    for sizes in (SIZES, {**SIZES, "height": 3, "width": 4}) if text == WINDOWS else ({"n": 25, "s": 3},):
        before, after = (_run(c, sizes) for c in (codelet, done))
        assert all(np.array_equal(before[name], after[name]) for name in before)
    assert done.body != codelet.body


def _run(codelet: Codelet, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    shapes = SHAPES if codelet.name == "windows" else {"a": (25,), "b": (45,) if codelet.name == "levels" else (25,)}
    arrays = {name: rng.random(shape, dtype=np.float32) for name, shape in shapes.items()}
    interpreter.run(codelet, arrays, sizes)
    return arrays
