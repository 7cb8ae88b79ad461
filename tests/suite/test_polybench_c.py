"""The benchmark programs as plain C: they compile without warnings, and compute what their headers say.

A program prints, with -DDUMP, every element of its results, and then a line ``name ni=.. nj=.. checksum=..``.
``FORMULAS`` holds, for each program by the name of its file, the same computation in NumPy: called with the element
type and the codelet's sizes by their names, it gives the printed arrays in the order printed, computed in double from
initial values rounded to the element type.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from looptune.frontend import Unit, load
from looptune.ir.nodes import Scalar
from looptune.ir.simplify import is_integer
from looptune.runtime.tolerance import tolerance
from tests.helpers import cross_check
from tests.helpers.paths import POLYBENCH

SOURCES = sorted(POLYBENCH.glob("*.c"))
STRICT = ("-O2", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas")
C_NAMES = {"float32": "float", "float64": "double"}
ODD = (7, 13, 5, 11, 3)
DIGITS = 1e-8
"""The dump has nine."""

Real = type[np.floating]
Arrays = tuple[np.ndarray, ...]

programs = pytest.mark.parametrize("source", SOURCES, ids=lambda p: p.stem)
pytestmark = [
    pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed"),
    pytest.mark.sampled(2),
]


def grid(real: Real, rows: int, cols: int, plus: int, over: int) -> np.ndarray:
    """``((real)i * j + plus) / over`` for every i and j, rounded as C rounds it, as doubles."""
    i, j = np.indices((rows, cols))
    return ((i * j + plus).astype(real) / real(over)).astype(np.float64)


def gemm(real: Real, ni: int, nj: int, nk: int) -> Arrays:
    return (32412 * grid(real, ni, nk, 0, ni) @ grid(real, nk, nj, 1, nj) + 2123 * grid(real, ni, nj, 2, nj),)


def conv2d(real: Real, ni: int, nj: int) -> Arrays:
    i, j = np.indices((ni, nj))
    a = (((7 * i + 13 * j + i * (j % 5)) % 101).astype(real) / real(101)).astype(np.float64)
    weights = {
        (-1, -1): 0.2, (-1, 0): 0.5, (-1, 1): -0.8, (0, -1): -0.3, (0, 0): 0.6, (0, 1): -0.9, (1, -1): 0.4, (1, 0): 0.7,
        (1, 1): 0.1,
    }  # fmt: skip
    return (correlated(a, real, weights),)


def conv3d(real: Real, ni: int, nj: int, nk: int) -> Arrays:
    i, j, k = np.indices((ni, nj, nk))
    weights = {
        (-1, -1, -1): -1, (1, -1, -1): 21, (0, -1, 0): -3, (0, 0, 0): 6, (0, 1, 0): -9, (-1, -1, 1): 2, (1, -1, 1): 4,
        (-1, 0, 1): 5, (1, 0, 1): 7, (-1, 1, 1): -8, (1, 1, 1): 10,
    }  # fmt: skip
    return (correlated((i % 12 + 2 * (j % 7) + 3 * (k % 13)).astype(np.float64), real, weights),)


def correlated(a: np.ndarray, real: Real, weights: Mapping[tuple[int, ...], float]) -> np.ndarray:
    """Inside the border, the sum of ``a`` moved by each offset times its weight; 0 on the border."""
    b = np.zeros_like(a)
    inside = tuple(slice(1, n - 1) for n in a.shape)
    if min(a.shape) > 2:
        for offset, weight in weights.items():
            moved = tuple(slice(1 + x, n - 1 + x) for x, n in zip(offset, a.shape, strict=True))
            b[inside] += float(real(weight)) * a[moved]
    return b


def fdtd_2d(real: Real, tmax: int, nx: int, ny: int) -> Arrays:
    def field(rows: int, cols: int, left: int, right: int, plus: int) -> np.ndarray:
        i, j = np.indices((rows, cols))
        return (((i + left) * (j + right) + plus).astype(real) / real(nx)).astype(np.float64)

    ex, ey, hz = field(nx, ny + 1, 0, 1, 1), field(nx + 1, ny, -1, 2, 2), field(nx, ny, -9, 4, 3)
    for t in range(tmax):
        ey[0] = t
        ey[1:nx] -= 0.5 * np.diff(hz, axis=0)
        ex[:, 1:ny] -= 0.5 * np.diff(hz, axis=1)
        hz -= float(real(0.7)) * (np.diff(ex, axis=1) + np.diff(ey, axis=0))
    return ex, ey, hz


def observations(real: Real, m: int, n: int) -> np.ndarray:
    i, j = np.indices((n, m))
    return (((3 * i + 5 * j + i * j % 11) % 23).astype(real) / real(23)).astype(np.float64)


def corr(real: Real, m: int, n: int) -> Arrays:
    data = observations(real, m, n)
    mean, stddev = data.mean(axis=0), data.std(axis=0)
    stddev[stddev <= 0.005] = 1
    symmat = (data - mean).T @ (data - mean) / (n * np.outer(stddev, stddev))
    np.fill_diagonal(symmat, 1)
    return mean, stddev, symmat


def covar(real: Real, m: int, n: int) -> Arrays:
    data = observations(real, m, n)
    mean = data.mean(axis=0)
    return mean, (data - mean).T @ (data - mean)


def ratio(real: Real, n: int, plus: int) -> np.ndarray:
    """``((real)i + plus) / n`` for every i, as doubles."""
    return ((np.arange(n) + plus).astype(real) / real(n)).astype(np.float64)


def multiples_of_pi(real: Real, n: int) -> np.ndarray:
    return (np.arange(n) * 3.14159265358979).astype(real).astype(np.float64)


def mvt(real: Real, n: int) -> Arrays:
    a = grid(real, n, n, 0, n)
    return ratio(real, n, 0) + a @ ratio(real, n, 3), ratio(real, n, 1) + a.T @ ratio(real, n, 4)


def gesummv(real: Real, n: int) -> Arrays:
    x = ratio(real, n, 0)
    tmp = grid(real, n, n, 0, n) @ x
    return 43532 * tmp + 12313 * grid(real, n, n, 1, n) @ x, tmp


def atax(real: Real, nx: int, ny: int) -> Arrays:
    a = grid(real, nx, ny, 0, nx)
    tmp = a @ multiples_of_pi(real, ny)
    return a.T @ tmp, tmp


def bicg(real: Real, nx: int, ny: int) -> Arrays:
    a = grid(real, nx, ny, 0, nx)
    return a.T @ multiples_of_pi(real, nx), a @ multiples_of_pi(real, ny)


def shifted(real: Real, rows: int, cols: int, plus: int, over: int) -> np.ndarray:
    """``((real)i * (j + plus)) / over`` for every i and j, as doubles."""
    i, j = np.indices((rows, cols))
    return ((i * (j + plus)).astype(real) / real(over)).astype(np.float64)


def mm2(real: Real, ni: int, nj: int, nk: int, nl: int) -> Arrays:
    c = grid(real, ni, nj, 2, nj) + grid(real, ni, nk, 0, ni) @ grid(real, nk, nj, 1, nj)
    return c, grid(real, ni, nl, 2, nj) + c @ grid(real, nj, nl, 2, nj)


def mm3(real: Real, ni: int, nj: int, nk: int, nl: int, nm: int) -> Arrays:
    e = grid(real, ni, nk, 0, ni) @ shifted(real, nk, nj, 1, nj)
    f = shifted(real, nj, nm, 3, nl) @ shifted(real, nm, nl, 2, nk)
    return e, f, e @ f


def syrk(real: Real, n: int, m: int) -> Arrays:
    a = grid(real, n, m, 0, n)
    return (4546 * grid(real, n, n, 2, n) + 12435 * a @ a.T,)


def syr2k(real: Real, n: int, m: int) -> Arrays:
    product = grid(real, n, m, 0, n) @ grid(real, n, m, 1, n).T
    return (4546 * grid(real, n, n, 2, n) + 12435 * (product + product.T),)


def gramschm(real: Real, n: int, m: int) -> Arrays:
    """By reflections, which leave the signs of R's rows open; what is left of A is Q times R's diagonal."""
    i, j = np.indices((m, n))
    a = (((3 * i + 5 * j) % 7).astype(real) / real(7) + (n * (i == j)).astype(real)).astype(np.float64)
    q, r = np.linalg.qr(a)
    signs = np.sign(np.diag(r))
    q, r = q * signs, r * signs[:, None]
    return q * np.diag(r), r, q


def bp_stereo(real: Real, height: int, width: int, iterations: int) -> Arrays:
    """On whole images: what a pixel sends lies at the pixel, and half of them send anew in each iteration."""
    y, x = np.indices((height, width))
    left = (x * x % 101 * 37 + y * y % 97 * 59 + x * y % 89 * 83 + 29 * x + 71 * y) % 256
    right = (x * 53 + y * 19) % 256
    inside = (4 * y > height) & (4 * y < 3 * height) & (4 * x > width) & (4 * x < 3 * width)
    shift = np.where(inside, 6 + 5 * x // (width + 1), 1 + 3 * y // (height + 1)) % 15
    for i, j in zip(*np.nonzero(x >= shift), strict=True):
        right[i, j - shift[i, j]] = left[i, j]
    cost = np.full((15, height, width), 1075.0)
    for d in range(min(15, width)):
        apart = np.minimum(np.abs(left[:, d:] - right[:, : width - d]), 15)
        cost[d, :, d:] = (112 * 64 * apart + 50) // 100
    sent = np.zeros((4, 15, height, width))  # up, down, left, right
    core = np.zeros((height, width), bool)
    core[1:-1, 1:-1] = True

    def received() -> np.ndarray:
        """From above, from below, from the left and from the right; wrapped around where nobody looks."""
        moves = ((1, 1, 1), (0, -1, 1), (3, 1, 2), (2, -1, 2))
        return np.array([np.roll(sent[n], by, axis) for n, by, axis in moves])

    jumps = np.minimum(1024 * np.abs(np.subtract.outer(np.arange(15), np.arange(15))), 1741)
    for t in range(iterations):
        now = core & ((x + y) % 2 == t % 2)
        came = received()
        for n in range(4):
            told = cost + came.sum(axis=0) - came[n]
            told = np.min(told[None] + jumps[:, :, None, None], axis=1)
            sent[n][:, now] = (told - told.min(axis=0))[:, now]
    return (np.where(core, np.argmin(cost + received().sum(axis=0), axis=0), 0),)


FORMULAS: Mapping[str, Callable[..., Arrays]] = {
    "2dconv": conv2d,
    "3dconv": conv3d,
    "atax": atax,
    "bicg": bicg,
    "bp_stereo": bp_stereo,
    "corr": corr,
    "covar": covar,
    "fdtd-2d": fdtd_2d,
    "gemm": gemm,
    "gesummv": gesummv,
    "mvt": mvt,
    "2mm": mm2,
    "3mm": mm3,
    "gramschm": gramschm,
    "syr2k": syr2k,
    "syrk": syrk,
}

PAPER: Mapping[str, int | Mapping[str, int]] = {
    "2dconv": 4096, "2mm": 2048, "3dconv": 256, "3mm": 512, "atax": 4096, "bicg": 4096,
    "bp_stereo": {"height": 288, "width": 384, "iterations": 250}, "corr": 2048, "covar": 2048,
    "fdtd-2d": {"tmax": 500, "nx": 2048, "ny": 2048}, "gemm": 512, "gesummv": 4096, "gramschm": 2048, "mvt": 4096,
    "syr2k": 2048, "syrk": 1024,
}  # fmt: skip
"""The sizes of the paper's experiments; one number where all are equal."""


def run_c(source: Path, build: Path, *options: str) -> str:
    subprocess.run(["gcc", *STRICT, *options, source, "-lm", "-o", build / "a.out"], check=True, timeout=60)
    return subprocess.run([build / "a.out"], check=True, capture_output=True, text=True, timeout=60).stdout


def sizes(unit: Unit) -> dict[str, int]:
    """The integer parameters of the codelet, each with the value ``main`` passes."""
    names = [p.name for p in unit.codelet.params if isinstance(p, Scalar) and is_integer(p.dtype)]
    return {n: int(unit.values[n]) for n in names}


def numbers(text: str) -> np.ndarray:
    """Those on lines of nothing but numbers."""
    found: list[float] = []
    for line in text.splitlines():
        try:
            found += [float(word) for word in line.split()]
        except ValueError:
            continue
    return np.array(found)


@pytest.mark.sampled(13, "wide")
@programs
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", [ODD, ODD[::-1], (1, 1, 1, 1, 1)], ids=["odd", "reversed", "one"])
def test_a_program_computes_its_formula(tmp_path: Path, source: Path, dtype: str, order: tuple[int, ...]) -> None:
    """Every element printed is that of an independent computation in NumPy, for sizes that differ."""
    assert source.stem in FORMULAS, f"{source.stem} needs its formula in FORMULAS"
    given = dict(zip(sizes(load(source)), order, strict=False))
    options = [f"-D{n.upper()}={v}" for n, v in given.items()]
    text = run_c(source, tmp_path, *options, f"-DDATA_TYPE={C_NAMES[dtype]}", "-DDUMP")
    got, real = numbers(text), np.dtype(dtype).type
    want = [a.ravel() for a in FORMULAS[source.stem](real, **given)]
    assert got.size == sum(a.size for a in want)
    for k, array in enumerate(want):
        part, got = got[: array.size], got[array.size :]
        allowed = tolerance("", array.astype(real), max(order)) + DIGITS * np.abs(array)
        off = np.abs(part - array) - allowed
        assert not (off > 0).any(), (
            f"result {k}, element {off.argmax()}: {part[off.argmax()]}, not {array[off.argmax()]}"
        )


@pytest.mark.sampled(5, "wide")
@programs
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_looptune_reads_what_gcc_reads(tmp_path: Path, source: Path, dtype: str) -> None:
    """The interpreted codelet gives the bits that gcc's gives, on random data."""
    unit = load(source, dtype=dtype)
    given = cross_check.arguments(unit.codelet, {**unit.values, **dict(zip(sizes(unit), ODD, strict=False))})
    text = source.read_text().replace(f"static void {unit.codelet.name}(", f"void {unit.codelet.name}(")
    text = f"#define DATA_TYPE {C_NAMES[dtype]}\n{text}"
    off = cross_check.off(
        cross_check.interpreted(unit.codelet, given), cross_check.by_gcc(text, unit.codelet, given, tmp_path)
    )
    assert off is None, off


@pytest.mark.sampled(7, "wide")
@programs
def test_data_sets_grow(source: Path) -> None:
    """The sizes of the paper are the default; the other sets go from small to large, in every size."""
    chosen = ("MINI", "SMALL", "MEDIUM", "STANDARD", "LARGE", "EXTRALARGE")
    every = [sizes(load(source, defines={f"{name}_DATASET": None})) for name in chosen]
    for small, large in pairwise(every):
        assert all(small[n] <= large[n] for n in small), f"{small} before {large}"
    assert all(every[0][n] < every[1][n] and every[3][n] < every[4][n] < every[5][n] for n in every[0])
    default, paper = sizes(load(source)), PAPER[source.stem]
    assert default == sizes(load(source, defines={"PAPER_DATASET": None}))
    assert default == (dict.fromkeys(default, paper) if isinstance(paper, int) else dict(paper))


@pytest.mark.sampled(5, "wide")
@programs
def test_a_program_prints_a_checksum_that_repeats(tmp_path: Path, source: Path) -> None:
    """Two runs print the same line, which names the sizes."""
    first, again = (run_c(source, tmp_path, "-DMINI_DATASET") for _ in range(2))
    assert first == again
    mini = sizes(load(source, defines={"MINI_DATASET": None}))
    named = " ".join(f"{n}={v}" for n, v in mini.items())
    assert f" {named} checksum=" in first
    assert "nan" not in first
    assert "inf" not in first
