"""The 30 kernels of PolyBench/C 4.2.1 as plain C: they compute what PolyBench/C does, and looptune what they compute.

``FORMULAS`` holds, for each program by the name of its file, the same computation in NumPy: called with the element
type and the codelet's sizes by their names, it gives the printed arrays in the order printed, computed in double from
initial values rounded to the element type. ``LOOPS`` has what the analysis finds.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from looptune.frontend import Unit, load
from looptune.ir.nodes import Scalar
from looptune.ir.simplify import is_integer
from looptune.poly.translation_validation import prove
from looptune.report.check.explanation import explain
from looptune.runtime.host_program import record
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check
from tests.helpers.paths import POLYBENCH_C

FOLDER = POLYBENCH_C
SOURCES = sorted(FOLDER.glob("*.c"))
STRICT = ("-O2", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas")
C_NAMES = {"float32": "float", "float64": "double"}
INTEGER = ("floyd-warshall", "nussinov")
ODD = (7, 13, 5, 11, 3)
DIGITS = 1e-8
"""The dump has nine."""

Real = type[np.floating]
Arrays = tuple[np.ndarray, ...]

programs = pytest.mark.parametrize("source", SOURCES, ids=lambda p: p.stem)
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


def rounded(real: Real, value: np.ndarray) -> np.ndarray:
    return value.astype(real).astype(np.float64)


def fraction(real: Real, shape: tuple[int, ...], top: Callable[..., np.ndarray], over: int) -> np.ndarray:
    """``(real)top(i, j, ..) / over`` for every element, rounded as C rounds it, as doubles."""
    value = np.broadcast_to(top(*np.indices(shape)), shape)
    return (value.astype(real) / real(over)).astype(np.float64)


def triangle(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """The new values on and below the diagonal, the old ones above it."""
    return np.where(np.tri(len(old), dtype=bool), new, old)


def correlation(real: Real, m: int, n: int) -> Arrays:
    data = fraction(real, (n, m), lambda i, j: i * j, m) + np.arange(n)[:, None]
    data = rounded(real, data)
    deviation = data.std(axis=0)
    deviation[deviation <= 0.1] = 1
    centred = (data - data.mean(axis=0)) / deviation
    corr = centred.T @ centred / n
    np.fill_diagonal(corr, 1)
    return (corr,)


def covariance(real: Real, m: int, n: int) -> Arrays:
    data = fraction(real, (n, m), lambda i, j: i * j, m)
    centred = data - data.mean(axis=0)
    return (centred.T @ centred / (n - 1),)


def gemm(real: Real, ni: int, nj: int, nk: int) -> Arrays:
    c = fraction(real, (ni, nj), lambda i, j: (i * j + 1) % ni, ni)
    a = fraction(real, (ni, nk), lambda i, j: i * (j + 1) % nk, nk)
    b = fraction(real, (nk, nj), lambda i, j: i * (j + 2) % nj, nj)
    return (1.5 * a @ b + 1.2 * c,)


def gemver(real: Real, n: int) -> Arrays:
    i = np.arange(n, dtype=np.float64)
    part = fraction(real, (n,), lambda i: i + 1, n)
    v1, u2, v2, y, z = part / 4, part / 2, part / 6, part / 8, part / 9
    a = fraction(real, (n, n), lambda i, j: i * j % n, n) + np.outer(i, v1) + np.outer(u2, v2)
    x = 1.2 * a.T @ y + z
    return (1.5 * a @ x,)


def gesummv(real: Real, n: int) -> Arrays:
    a = fraction(real, (n, n), lambda i, j: (i * j + 1) % n, n)
    b = fraction(real, (n, n), lambda i, j: (i * j + 2) % n, n)
    return ((1.5 * a + 1.2 * b) @ fraction(real, (n,), lambda i: i, n),)


def symm(real: Real, m: int, n: int) -> Arrays:
    c = fraction(real, (m, n), lambda i, j: (i + j) % 100, m)
    b = fraction(real, (m, n), lambda i, j: (n + i - j) % 100, m)
    a = fraction(real, (m, m), lambda i, j: (i + j) % 100, m)
    return (1.5 * a @ b + 1.2 * c,)


def syr2k(real: Real, n: int, m: int) -> Arrays:
    a = fraction(real, (n, m), lambda i, j: (i * j + 1) % n, n)
    b = fraction(real, (n, m), lambda i, j: (i * j + 2) % m, m)
    c = fraction(real, (n, n), lambda i, j: (i * j + 3) % n, m)
    return (triangle(c, 1.5 * (a @ b.T + b @ a.T) + 1.2 * c),)


def syrk(real: Real, n: int, m: int) -> Arrays:
    a = fraction(real, (n, m), lambda i, j: (i * j + 1) % n, n)
    c = fraction(real, (n, n), lambda i, j: (i * j + 2) % m, m)
    return (triangle(c, 1.5 * a @ a.T + 1.2 * c),)


def trmm(real: Real, m: int, n: int) -> Arrays:
    a = np.tril(fraction(real, (m, m), lambda i, j: (i + j) % m, m), -1) + np.eye(m)
    b = fraction(real, (m, n), lambda i, j: np.fmod(n + i - j, n), n)
    return (1.5 * a.T @ b,)


def mm2(real: Real, ni: int, nj: int, nk: int, nl: int) -> Arrays:
    a = fraction(real, (ni, nk), lambda i, j: (i * j + 1) % ni, ni)
    b = fraction(real, (nk, nj), lambda i, j: i * (j + 1) % nj, nj)
    c = fraction(real, (nj, nl), lambda i, j: (i * (j + 3) + 1) % nl, nl)
    d = fraction(real, (ni, nl), lambda i, j: i * (j + 2) % nk, nk)
    return (1.5 * a @ b @ c + 1.2 * d,)


def mm3(real: Real, ni: int, nj: int, nk: int, nl: int, nm: int) -> Arrays:
    a = fraction(real, (ni, nk), lambda i, j: (i * j + 1) % ni, 5 * ni)
    b = fraction(real, (nk, nj), lambda i, j: (i * (j + 1) + 2) % nj, 5 * nj)
    c = fraction(real, (nj, nm), lambda i, j: i * (j + 3) % nl, 5 * nl)
    d = fraction(real, (nm, nl), lambda i, j: (i * (j + 2) + 2) % nk, 5 * nk)
    return (a @ b @ (c @ d),)


def atax(real: Real, m: int, n: int) -> Arrays:
    a = fraction(real, (m, n), lambda i, j: (i + j) % n, 5 * m)
    return (a.T @ (a @ rounded(real, 1 + fraction(real, (n,), lambda i: i, n))),)


def bicg(real: Real, m: int, n: int) -> Arrays:
    a = fraction(real, (n, m), lambda i, j: i * (j + 1) % n, n)
    return a.T @ fraction(real, (n,), lambda i: i, n), a @ fraction(real, (m,), lambda i: i, m)


def doitgen(real: Real, nr: int, nq: int, np: int) -> Arrays:
    a = fraction(real, (nr, nq, np), lambda i, j, k: (i * j + k) % np, np)
    return (a @ fraction(real, (np, np), lambda i, j: i * j % np, np),)


def mvt(real: Real, n: int) -> Arrays:
    x1, x2, y1, y2 = (fraction(real, (n,), lambda i, k=k: (i + k) % n, n) for k in (0, 1, 3, 4))
    a = fraction(real, (n, n), lambda i, j: i * j % n, n)
    return x1 + a @ y1, x2 + a.T @ y2


def positive_definite(real: Real, n: int) -> np.ndarray:
    lower = rounded(real, np.tril(fraction(real, (n, n), lambda i, j: -j, n) + 1, -1)) + np.eye(n)
    return lower @ lower.T


def cholesky(real: Real, n: int) -> Arrays:
    a = positive_definite(real, n)
    return (triangle(a, np.linalg.cholesky(a)),)


def lu(real: Real, n: int) -> Arrays:
    """From Cholesky's factors: the columns of L divided by their diagonal, and the rows of its transpose multiplied."""
    factor = np.linalg.cholesky(positive_definite(real, n))
    diagonal = np.diag(factor)
    return (np.tril(factor / diagonal, -1) + np.triu((factor * diagonal).T),)


def ludcmp(real: Real, n: int) -> Arrays:
    b = rounded(real, fraction(real, (n,), lambda i: i + 1, n) / 2 + 4)
    return (np.linalg.solve(positive_definite(real, n), b),)


def durbin(real: Real, n: int) -> Arrays:
    r = n + 1.0 - np.arange(n)
    apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    return (np.linalg.solve(np.concatenate(([1.0], r))[apart], -r),)


def gramschmidt(real: Real, m: int, n: int) -> Arrays:
    """By reflections, which leave the signs of R's rows open. From a column on that depends on those before, NaN."""
    q, r = np.linalg.qr(fraction(real, (m, n), lambda i, j: i * j % m, m) * 100 + 10)
    signs = np.sign(np.diag(r))
    full_r, full_q = np.full((n, n), np.nan), np.full((m, n), np.nan)
    dependent = [*(np.abs(np.diag(r)) < 1e-6 * np.abs(r).max()), True]
    rank = dependent.index(True)
    full_r[:rank], full_q[:, :rank] = (r * signs[:, None])[:rank], (q * signs)[:, :rank]
    return full_r, full_q


def trisolv(real: Real, n: int) -> Arrays:
    lower = np.tril(fraction(real, (n, n), lambda i, j: (i + n - j + 1) * 2, n))
    return (np.linalg.solve(lower, np.arange(n, dtype=np.float64)),)


def deriche(real: Real, w: int, h: int) -> Arrays:
    alpha = 0.25
    decay = np.exp(-alpha)
    a1 = (1 - decay) ** 2 / (1 + 2 * alpha * decay - 1 / decay**2)
    a2, a3, a4 = a1 * decay * (alpha - 1), a1 * decay * (alpha + 1), -a1 * decay**2
    b1, b2 = 2.0**-alpha, -(decay**2)

    def along_rows(x: np.ndarray) -> np.ndarray:
        """Forwards from an element and the one before it, backwards from the two after it."""
        length = x.shape[1]
        x = np.pad(x, ((0, 0), (1, 2)))
        forwards, backwards = np.zeros_like(x), np.zeros_like(x)
        for j in range(1, length + 1):
            forwards[:, j] = a1 * x[:, j] + a2 * x[:, j - 1] + b1 * forwards[:, j - 1]
            forwards[:, j] += b2 * forwards[:, j - 2]  # of the first, the last: a zero
        for j in range(length, 0, -1):
            backwards[:, j] = a3 * x[:, j + 1] + a4 * x[:, j + 2] + b1 * backwards[:, j + 1] + b2 * backwards[:, j + 2]
        return (forwards + backwards)[:, 1 : length + 1]

    picture = fraction(real, (w, h), lambda i, j: (313 * i + 991 * j) % 65536, 65535)
    return (along_rows(along_rows(picture).T).T,)


def floyd_warshall(real: Real, n: int) -> Arrays:
    i, j = np.indices((n, n))
    closed = ((i + j) % 13 == 0) | ((i + j) % 7 == 0) | ((i + j) % 11 == 0)
    path = np.where(closed, 999, i * j % 7 + 1)
    for k in range(n):
        path = np.minimum(path, np.add.outer(path[:, k], path[k]))
    return (path,)


def nussinov(real: Real, n: int) -> Arrays:
    """The best of: a base that stays alone at either end, the two ends as a pair, and two parts."""
    sequence = [(i + 1) % 4 for i in range(n)]
    table = np.zeros((n, n))
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            pair = int(length > 1 and sequence[i] + sequence[j] == 3)
            parts = table[i, i + 1 : j] + table[i + 2 : j + 1, j]
            ends = (table[i, j - 1], table[i + 1, j], table[i + 1, j - 1] + pair)
            table[i, j] = max(0, *ends, *parts)
    return (table,)


def adi(real: Real, tsteps: int, n: int) -> Arrays:
    """Each sweep solves ``(1 + mul) x[j] - mul / 2 * (x[j - 1] + x[j + 1]) = what the other direction gives``."""
    u, v = fraction(real, (n, n), lambda i, j: i + n - j, n), np.zeros((n, n))
    across, down = 2.0 * n * n / tsteps, 1.0 * n * n / tsteps

    def solved(known: np.ndarray, mul: float, other: float) -> np.ndarray:
        """Of rows of equations, whose ends are 1; ``known`` has a row more at both sides."""
        given = other / 2 * (known[:-2] + known[2:]) + (1 - other) * known[1:-1]
        given = given[:, 1:-1].copy()
        given[:, 0] += mul / 2
        given[:, -1] += mul / 2
        matrix = (1 + mul) * np.eye(n - 2) - mul / 2 * (np.eye(n - 2, k=1) + np.eye(n - 2, k=-1))
        return np.pad(np.linalg.solve(matrix, given.T).T, ((0, 0), (1, 1)), constant_values=1.0)

    for _ in range(tsteps if n > 2 else 0):
        v[:, 1:-1] = solved(u.T, across, down).T
        u[1:-1] = solved(v, down, across)
    return (u,)


def fdtd_2d(real: Real, tmax: int, nx: int, ny: int) -> Arrays:
    i, j = np.indices((nx, ny))
    ex, ey, hz = (rounded(real, i * (j + k) / over) for k, over in ((1, nx), (2, ny), (3, nx)))
    for t in range(tmax):
        ey[0] = t
        ey[1:] -= 0.5 * np.diff(hz, axis=0)
        ex[:, 1:] -= 0.5 * np.diff(hz, axis=1)
        hz[:-1, :-1] -= 0.7 * (np.diff(ex, axis=1)[:-1] + np.diff(ey, axis=0)[:, :-1])
    return ex, ey, hz


def heat_3d(real: Real, tsteps: int, n: int) -> Arrays:
    a = fraction(real, (n, n, n), lambda i, j, k: (i + j + n - k) * 10, n)
    inside = (slice(1, -1),) * 3
    for _ in range(2 * tsteps):
        second = sum(np.roll(a, s, d) for d in range(3) for s in (1, -1)) - 6 * a
        a[inside] += 0.125 * second[inside]
    return (a,)


def jacobi_1d(real: Real, tsteps: int, n: int) -> Arrays:
    a, b = fraction(real, (n,), lambda i: i + 2, n), fraction(real, (n,), lambda i: i + 3, n)
    for _ in range(tsteps):
        for x, y in ((a, b), (b, a)):
            y[1:-1] = 0.33333 * (x[:-2] + x[1:-1] + x[2:])
    return (a,)


def jacobi_2d(real: Real, tsteps: int, n: int) -> Arrays:
    a, b = (fraction(real, (n, n), lambda i, j, k=k: i * (j + k) + k, n) for k in (2, 3))
    for _ in range(tsteps):
        for x, y in ((a, b), (b, a)):
            y[1:-1, 1:-1] = 0.2 * (x[1:-1, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] + x[2:, 1:-1] + x[:-2, 1:-1])
    return (a,)


def seidel_2d(real: Real, tsteps: int, n: int) -> Arrays:
    a = fraction(real, (n, n), lambda i, j: i * (j + 2) + 2, n)
    for _ in range(tsteps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                a[i, j] = a[i - 1 : i + 2, j - 1 : j + 2].mean()
    return (a,)


FORMULAS: Mapping[str, Callable[..., Arrays]] = {
    "2mm": mm2,
    "3mm": mm3,
    "adi": adi,
    "atax": atax,
    "bicg": bicg,
    "cholesky": cholesky,
    "correlation": correlation,
    "covariance": covariance,
    "deriche": deriche,
    "doitgen": doitgen,
    "durbin": durbin,
    "fdtd-2d": fdtd_2d,
    "floyd-warshall": floyd_warshall,
    "gemm": gemm,
    "gemver": gemver,
    "gesummv": gesummv,
    "gramschmidt": gramschmidt,
    "heat-3d": heat_3d,
    "jacobi-1d": jacobi_1d,
    "jacobi-2d": jacobi_2d,
    "lu": lu,
    "ludcmp": ludcmp,
    "mvt": mvt,
    "nussinov": nussinov,
    "seidel-2d": seidel_2d,
    "symm": symm,
    "syr2k": syr2k,
    "syrk": syrk,
    "trisolv": trisolv,
    "trmm": trmm,
}

LOOPS: Mapping[str, str] = {
    "2mm": "i:p .j:p ..k:r i:p .j:p ..k:r",
    "3mm": "i:p .j:p ..k:r i:p .j:p ..k:r i:p .j:p ..k:r",
    "adi": "t:s .i:p ..j:s ..j:s .i:p ..j:s ..j:s",
    "atax": "i:p i:r .j:r .j:p",
    "bicg": "i:p i:r .j:r",
    "cholesky": "i:s .j:s ..k:r .k:r",
    "correlation": "j:p .i:r j:p .i:r i:p .j:p i:p .j:p ..k:r",
    "covariance": "j:p .i:r i:p .j:p i:p .j:p ..k:r",
    "deriche": "i:p .j:s i:p .j:s i:p .j:p j:p .i:s j:p .i:s i:p .j:p",
    "doitgen": "r:s .q:s ..p:p ...s:r ..p:p",
    "durbin": "k:s .i:r .i:p .i:p",
    "fdtd-2d": "t:s .j:p .i:p ..j:p .i:p ..j:p .i:p ..j:p",
    "floyd-warshall": "k:s .i:s ..j:s",
    "gemm": "i:p .j:p .k:r ..j:p",
    "gemver": "i:p .j:p i:p .j:r i:p i:p .j:r",
    "gesummv": "i:p .j:r",
    "gramschmidt": "k:s .i:r .i:p .j:p ..i:r ..i:p",
    "heat-3d": "t:s .i:p ..j:p ...k:p .i:p ..j:p ...k:p",
    "jacobi-1d": "t:s .i:p .i:p",
    "jacobi-2d": "t:s .i:p ..j:p .i:p ..j:p",
    "lu": "i:s .j:s ..k:r .j:p ..k:r",
    "ludcmp": "i:s .j:s ..k:r .j:p ..k:r i:s .j:r i:s .j:r",
    "mvt": "i:p .j:r i:p .j:r",
    "nussinov": "i:s .j:s ..k:r",
    "seidel-2d": "t:s .i:s ..j:s",
    "symm": "i:s .j:p ..k:r",
    "syr2k": "i:p .j:p .k:r ..j:p",
    "syrk": "i:p .j:p .k:r ..j:p",
    "trisolv": "i:s .j:r",
    "trmm": "i:s .j:p ..k:r",
}
"""Every loop in the order of the text: a dot for each loop around it, its variable, and p for parallel, r for a
reduction, s for sequential."""

TOLERANCE = {"float32": 2e-5, "float64": DIGITS}
"""Relative to the largest element of an array."""
ILL_CONDITIONED = {("durbin", "float32"): 2e-3}


def run_c(source: Path, build: Path, *options: str) -> str:
    subprocess.run(["gcc", *STRICT, *options, source, "-lm", "-o", build / "a.out"], check=True, timeout=60)
    return subprocess.run([build / "a.out"], check=True, capture_output=True, text=True, timeout=60).stdout


def sizes(unit: Unit) -> dict[str, int]:
    """The integer parameters of the codelet, each with the value ``main`` passes."""
    names = [p.name for p in unit.codelet.params if isinstance(p, Scalar) and is_integer(p.dtype)]
    return {n: int(unit.values[n]) for n in names}


def numbers(text: str) -> np.ndarray:
    """Those on lines of nothing but numbers."""
    rows = (line.split() for line in text.splitlines() if "=" not in line and "corners" not in line)
    return np.array([float(word) for row in rows for word in row])


@pytest.mark.sampled(2)
@needs_gcc
@pytest.mark.sampled(8, "wide")
@programs
@pytest.mark.parametrize(("dtype", "order"), [("float32", None), ("float64", ODD)], ids=["float, MINI", "double, odd"])
def test_a_program_computes_its_formula(
    tmp_path: Path, source: Path, dtype: str, order: tuple[int, ...] | None
) -> None:
    """Every element printed is that of an independent computation in NumPy."""
    given = sizes(load(source, defines={"MINI_DATASET": None}))
    if order is not None:
        given = dict(zip(given, order, strict=False))
    options = [f"-D{n.upper()}={v}" for n, v in given.items()]
    if source.stem not in INTEGER:
        options.append(f"-DDATA_TYPE={C_NAMES[dtype]}")
    got, real = numbers(run_c(source, tmp_path, *options, "-DDUMP")), np.dtype(dtype).type
    want = [a.ravel() for a in FORMULAS[source.stem](real, **given)]
    assert got.size == sum(a.size for a in want)
    allowed = ILL_CONDITIONED.get((source.stem, dtype), TOLERANCE[dtype])
    for k, array in enumerate(want):
        part, got = got[: array.size], got[array.size :]
        off = np.where(np.isnan(array), 0, np.abs(part - array) / np.nanmax(np.abs(array)))
        assert not (off > allowed).any(), (
            f"result {k}, element {off.argmax()}: {part[off.argmax()]}, not {array[off.argmax()]}: {off.max()}"
        )


@needs_gcc
@pytest.mark.sampled(30, "wide")
@programs
def test_the_codelet_computes_what_the_program_prints(tmp_path: Path, source: Path) -> None:
    """The interpreted codelet, on the data that ``main`` calls it with, leaves what gcc's program prints."""
    mini = sizes(load(source, defines={"MINI_DATASET": None}))
    half = {n.upper(): str(v // 2) for n, v in mini.items()}
    unit = load(source, defines=half)
    start = record(unit, [])
    got = cross_check.interpreted(unit.codelet, {**start.scalars, **start.arrays})
    text = run_c(source, tmp_path, *(f"-D{n}={v}" for n, v in half.items()), "-DDUMP", "-ffp-contract=off")
    names = [line.split()[0] for line in text.splitlines() if "checksum=" in line]
    want, have = numbers(text), np.concatenate([got[name].ravel().astype(np.float64) for name in names])
    np.testing.assert_allclose(have, want, rtol=DIGITS, atol=0)


@pytest.mark.sampled(2)
@pytest.mark.sampled(10, "wide")
@programs
def test_what_the_analysis_finds_of_its_loops(source: Path) -> None:
    """Which of them are parallel, a reduction or sequential."""
    found = explain(load(source)).loops
    assert " ".join(f"{'.' * loop.depth}{loop.var}:{loop.kind[0]}" for loop in found) == LOOPS[source.stem]


@pytest.mark.sampled(9, "wide")
@pytest.mark.sampled(10)
@programs
def test_an_automatic_schedule_is_found_and_proved(source: Path) -> None:
    """``schedule`` is accepted for each outermost loop, and the loops that it makes are proved for all sizes."""
    unit = load(source)
    lines = [f"loop {loop.number}: schedule" for loop in explain(unit).loops if loop.depth == 0]
    done = schedule(Analysis(unit.codelet), parse_lines(lines))
    proof = prove(unit.codelet, done.codelet, reassociate=bool(done.sums))
    assert (proof.verdict, proof.reason) == ("proved", "")


def test_there_is_every_kernel() -> None:
    """All 30, each with a formula."""
    assert [source.stem for source in SOURCES] == sorted(FORMULAS) == sorted(LOOPS)
    assert len(SOURCES) == 30
