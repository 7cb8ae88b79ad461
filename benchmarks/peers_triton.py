"""Triton's versions for benchmarks/peers.py: a product, sums along rows and columns, and stencils.

They are of the kind that Triton's tutorials show. Each launch is timed with a few configurations on this GPU, and keeps
the fastest. Under
``TRITON_INTERPRET=1`` the first of them runs on a CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from types import MappingProxyType
from typing import Any

import torch
import triton
import triton.language as tl
from peers_task import NothingToTime, Task, Version
from peers_torch import fetched, placed, sampler
from triton.compiler.errors import CompilationError
from triton.runtime.errors import OutOfResources, PTXASError

Tensor = torch.Tensor
Launch = Callable[..., object]
Configuration = Mapping[str, int]


@triton.jit
def product(a, b, c, M, N, K, ai, ak, bk, bj, ci, cj, alpha, beta, SCALED: tl.constexpr,
            BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):  # fmt: skip
    """``c = alpha a b + beta c``, or ``a b`` where not SCALED; blocks in groups of rows, for the sake of the L2."""
    number, along_m, along_n = tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = number // (GROUP * along_n) * GROUP
    group = min(along_m - first, GROUP)
    inside = number % (GROUP * along_n)
    rows = (first + inside % group) * BM + tl.arange(0, BM)
    columns = inside // group * BN + tl.arange(0, BN)
    terms = tl.arange(0, BK)
    left = a + (rows % M)[:, None] * ai + terms[None, :] * ak
    right = b + terms[:, None] * bk + (columns % N)[None, :] * bj
    total = tl.zeros((BM, BN), dtype=c.dtype.element_ty)
    for done in range(0, K, BK):
        x = tl.load(left, mask=terms[None, :] < K - done, other=0.0)
        y = tl.load(right, mask=terms[:, None] < K - done, other=0.0)
        total = tl.dot(x, y, total, input_precision="ieee", out_dtype=c.dtype.element_ty)
        left += BK * ak
        right += BK * bk
    place = c + rows[:, None] * ci + columns[None, :] * cj
    kept = (rows[:, None] < M) & (columns[None, :] < N)
    if SCALED:
        total = alpha * total + beta * tl.load(place, mask=kept, other=0.0)
    tl.store(place, total, mask=kept)


@triton.jit
def row_sums(a, x, z, y, M, N, alpha, beta, ADDED: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """``y = alpha a x``, with ``beta z`` added where ADDED."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=y.dtype.element_ty)
    for done in range(0, N, BN):
        inside = columns + done < N
        block = tl.load(a + rows[:, None] * N + (columns + done)[None, :],
                        mask=(rows[:, None] < M) & inside[None, :], other=0.0)  # fmt: skip
        total += block * tl.load(x + columns + done, mask=inside, other=0.0)[None, :]
    found = alpha * tl.sum(total, 1)
    if ADDED:
        found += beta * tl.load(z + rows, mask=rows < M, other=0.0)
    tl.store(y + rows, found, mask=rows < M)


@triton.jit
def column_sums(a, x, y, M, N, BM: tl.constexpr, BN: tl.constexpr, STEPS: tl.constexpr):
    """``x a`` added to ``y``: a program has STEPS blocks of rows, and adds its sums atomically."""
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    first = tl.program_id(1) * BM * STEPS + tl.arange(0, BM)
    total = tl.zeros((BM, BN), dtype=y.dtype.element_ty)
    for step in range(STEPS):
        rows = first + step * BM
        block = tl.load(a + rows[:, None] * N + columns[None, :],
                        mask=(rows[:, None] < M) & (columns[None, :] < N), other=0.0)  # fmt: skip
        total += block * tl.load(x + rows, mask=rows < M, other=0.0)[:, None]
    tl.atomic_add(y + columns, tl.sum(total, 0), mask=columns < N)


@triton.jit
def convolution_2d(a, b, M, N, BM: tl.constexpr, BN: tl.constexpr):
    i = (tl.program_id(1) * BM + tl.arange(0, BM))[:, None] + 1
    j = (tl.program_id(0) * BN + tl.arange(0, BN))[None, :] + 1
    inside = (i < M - 1) & (j < N - 1)
    at = a + i * N + j
    total = 0.2 * tl.load(at - N - 1, mask=inside) + 0.5 * tl.load(at - N, mask=inside)
    total += -0.8 * tl.load(at - N + 1, mask=inside) - 0.3 * tl.load(at - 1, mask=inside)
    total += 0.6 * tl.load(at, mask=inside) - 0.9 * tl.load(at + 1, mask=inside)
    total += 0.4 * tl.load(at + N - 1, mask=inside) + 0.7 * tl.load(at + N, mask=inside)
    total += 0.1 * tl.load(at + N + 1, mask=inside)
    tl.store(b + i * N + j, total, mask=inside)


@triton.jit
def convolution_3d(a, b, M, N, K, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(2) + 1
    j = (tl.program_id(1) * BN + tl.arange(0, BN))[:, None] + 1
    k = (tl.program_id(0) * BK + tl.arange(0, BK))[None, :] + 1
    inside = (i < M - 1) & (j < N - 1) & (k < K - 1)
    plane, place = N * K, (i * N + j) * K + k
    at = a + place
    total = 21.0 * tl.load(at + plane - K - 1, mask=inside) - tl.load(at - plane - K - 1, mask=inside)
    total += 6.0 * tl.load(at, mask=inside) - 3.0 * tl.load(at - K, mask=inside)
    total += 2.0 * tl.load(at - plane - K + 1, mask=inside) - 9.0 * tl.load(at + K, mask=inside)
    total += 4.0 * tl.load(at + plane - K + 1, mask=inside) + 5.0 * tl.load(at - plane + 1, mask=inside)
    total += 7.0 * tl.load(at + plane + 1, mask=inside) - 8.0 * tl.load(at - plane + K + 1, mask=inside)
    total += 10.0 * tl.load(at + plane + K + 1, mask=inside)
    tl.store(b + place, total, mask=inside)


@triton.jit
def electric_fields(source, ex, ey, hz, M, N, BM: tl.constexpr, BN: tl.constexpr):
    i = (tl.program_id(1) * BM + tl.arange(0, BM))[:, None]
    j = (tl.program_id(0) * BN + tl.arange(0, BN))[None, :]
    inside = (i < M) & (j < N)
    here = tl.load(hz + i * N + j, mask=inside)
    above = tl.load(hz + (i - 1) * N + j, mask=inside & (i > 0))
    before = tl.load(hz + i * N + j - 1, mask=inside & (j > 0))
    vertical = tl.load(ey + i * N + j, mask=inside) - 0.5 * (here - above)
    tl.store(ey + i * N + j, tl.where(i > 0, vertical, tl.load(source)), mask=inside)
    along = ex + i * (N + 1) + j
    tl.store(along, tl.load(along, mask=inside) - 0.5 * (here - before), mask=inside & (j > 0))


@triton.jit
def magnetic_field(ex, ey, hz, M, N, BM: tl.constexpr, BN: tl.constexpr):
    i = (tl.program_id(1) * BM + tl.arange(0, BM))[:, None]
    j = (tl.program_id(0) * BN + tl.arange(0, BN))[None, :]
    inside = (i < M) & (j < N)
    along, down, at = ex + i * (N + 1) + j, ey + i * N + j, hz + i * N + j
    turned = tl.load(along + 1, mask=inside) - tl.load(along, mask=inside)
    turned += tl.load(down + N, mask=inside) - tl.load(down, mask=inside)
    tl.store(at, tl.load(at, mask=inside) - 0.7 * turned, mask=inside)


def _configurations(names: str, *rows: Sequence[int]) -> tuple[Configuration, ...]:
    return tuple(dict(zip((*names.split(), "num_warps", "num_stages"), row, strict=True)) for row in rows)


PRODUCTS = _configurations(
    "BM BN BK GROUP", (64, 64, 16, 8, 4, 3), (128, 64, 16, 8, 4, 3), (64, 128, 16, 8, 8, 3), (128, 128, 16, 8, 8, 3),
    (128, 128, 32, 8, 8, 3), (32, 64, 32, 8, 4, 3), (64, 64, 32, 8, 8, 3), (128, 64, 32, 8, 8, 4),
)  # fmt: skip
ROWS = _configurations(
    "BM BN", (1, 1024, 4, 3), (1, 2048, 8, 3), (2, 1024, 8, 3), (4, 512, 4, 3), (4, 1024, 8, 2), (8, 256, 4, 3),
)  # fmt: skip
COLUMNS = _configurations(
    "BM BN STEPS", (8, 128, 8, 4, 3), (16, 128, 8, 4, 3), (32, 128, 4, 8, 3), (8, 256, 8, 4, 3), (16, 64, 16, 4, 3),
    (4, 512, 16, 4, 3),
)  # fmt: skip
PLANES = _configurations(
    "BM BN", (1, 512, 4, 1), (1, 1024, 4, 1), (4, 128, 4, 1), (8, 128, 4, 1), (4, 256, 8, 1), (16, 64, 4, 1)
)
VOLUMES = _configurations("BN BK", (1, 256, 4, 1), (4, 64, 4, 1), (8, 64, 4, 1), (4, 128, 4, 1), (8, 32, 4, 1))


@dataclass(frozen=True)
class Chooser:
    """Chooses a configuration for each launch, and of equal ones once."""

    task: Task

    def launch(self, kernel: Any, grid: Callable[[Configuration], tuple[int, ...]], arguments: Sequence[Any],
               configurations: Sequence[Configuration], **constants: Any) -> Launch:  # fmt: skip
        """A launch with the fastest configuration; arrays are updated while it is being found.

        What it is called with takes the place of the first arguments.
        """

        def made(configuration: Configuration) -> Launch:
            def run(*first: Any) -> None:
                kernel[grid(configuration)](*first, *arguments[len(first) :], **configuration, **constants)

            return run

        if not self.task.gpu:
            return made({n: v for n, v in configurations[0].items() if not n.startswith("num_")})
        usable = [made(configuration) for configuration in configurations]
        usable = [launch for launch in usable if compiles(launch)]
        with self.task.alone():
            return min(
                usable, key=lambda launch: triton.testing.do_bench(launch, warmup=5, rep=20, return_mode="median")
            )

    def product(self, A: Tensor, B: Tensor, C: Tensor, alpha: float | None = None, beta: float = 1.0) -> Launch:
        """``C = alpha A B + beta C``, or ``A B`` without ``alpha``."""
        (M, K), N = A.shape, B.shape[1]
        sizes = (M, N, K, *A.stride(), *B.stride(), *C.stride())
        return self.launch(
            product, lambda c: (triton.cdiv(M, c["BM"]) * triton.cdiv(N, c["BN"]),),
            (A, B, C, *sizes, 1.0 if alpha is None else alpha, beta), PRODUCTS, SCALED=alpha is not None,
        )  # fmt: skip

    def rows(self, A: Tensor, x: Tensor, y: Tensor, alpha: float = 1.0, z: Tensor | None = None,
             beta: float = 1.0) -> Launch:  # fmt: skip
        """``y = alpha A x + beta z``."""
        M, N = A.shape
        arguments = (A, x, y if z is None else z, y, M, N, alpha, beta)
        return self.launch(row_sums, lambda c: (triton.cdiv(M, c["BM"]),), arguments, ROWS, ADDED=z is not None)

    def columns(self, A: Tensor, x: Tensor, y: Tensor, zeroed: bool = True) -> Launch:
        """``y = x A``, or added to what ``y`` was."""
        M, N = A.shape
        added = self.launch(
            column_sums, lambda c: (triton.cdiv(N, c["BN"]), triton.cdiv(M, c["BM"] * c["STEPS"])), (A, x, y, M, N),
            COLUMNS,
        )  # fmt: skip
        return all_of(y.zero_, added) if zeroed else added

    def plane(self, kernel: Any, arguments: Sequence[Any], M: int, N: int) -> Launch:
        """A kernel of blocks of M x N elements."""
        return self.launch(
            kernel, lambda c: (triton.cdiv(N, c["BN"]), triton.cdiv(M, c["BM"])), arguments, PLANES
        )  # fmt: skip


def compiles(launch: Launch) -> bool:
    """Whether the configuration can be compiled, and fits on the device."""
    try:
        launch()
    except (CompilationError, OutOfResources, PTXASError):
        return False
    return True


def all_of(*launches: Launch) -> Launch:
    def run() -> None:
        for launch in launches:
            launch()

    return run


def gemm(at: Chooser, alpha: float, beta: float, C: Tensor, A: Tensor, B: Tensor) -> Launch:
    return at.product(A, B, C, alpha, beta)


def mm2(at: Chooser, A: Tensor, B: Tensor, C: Tensor, D: Tensor, E: Tensor) -> Launch:
    return all_of(at.product(A, B, C, 1.0), at.product(C, D, E, 1.0))


def mm3(at: Chooser, A: Tensor, B: Tensor, C: Tensor, D: Tensor, E: Tensor, F: Tensor, G: Tensor) -> Launch:
    return all_of(at.product(A, B, E), at.product(C, D, F), at.product(E, F, G))


def syrk(at: Chooser, alpha: float, beta: float, C: Tensor, A: Tensor) -> Launch:
    return at.product(A, A.T, C, alpha, beta)


def syr2k(at: Chooser, alpha: float, beta: float, C: Tensor, A: Tensor, B: Tensor) -> Launch:
    return all_of(at.product(A, B.T, C, alpha, beta), at.product(B, A.T, C, alpha))


def atax(at: Chooser, A: Tensor, x: Tensor, y: Tensor, tmp: Tensor) -> Launch:
    return all_of(at.rows(A, x, tmp), at.columns(A, tmp, y))


def bicg(at: Chooser, A: Tensor, p: Tensor, q: Tensor, r: Tensor, s: Tensor) -> Launch:
    return all_of(at.rows(A, p, q), at.columns(A, r, s))


def mvt(at: Chooser, A: Tensor, x1: Tensor, x2: Tensor, y1: Tensor, y2: Tensor) -> Launch:
    return all_of(at.rows(A, y1, x1, z=x1), at.columns(A, y2, x2, zeroed=False))


def gesummv(at: Chooser, alpha: float, beta: float, A: Tensor, B: Tensor, x: Tensor, y: Tensor, tmp: Tensor) -> Launch:
    return all_of(at.rows(A, x, tmp), at.rows(B, x, y, beta, tmp, alpha))


def conv2d(at: Chooser, A: Tensor, B: Tensor) -> Launch:
    M, N = A.shape
    return at.plane(convolution_2d, (A, B, M, N), M - 2, N - 2)


def conv3d(at: Chooser, A: Tensor, B: Tensor) -> Launch:
    M, N, K = A.shape
    return at.launch(
        convolution_3d, lambda c: (triton.cdiv(K - 2, c["BK"]), triton.cdiv(N - 2, c["BN"]), M - 2), (A, B, M, N, K),
        VOLUMES,
    )  # fmt: skip


def fdtd_2d(at: Chooser, fict: Tensor, ex: Tensor, ey: Tensor, hz: Tensor) -> Launch:
    M, N = hz.shape
    electric = at.plane(electric_fields, (fict, ex, ey, hz, M, N), M, N)
    magnetic = at.plane(magnetic_field, (ex, ey, hz, M, N), M, N)

    def run() -> None:
        for t in range(len(fict)):
            electric(fict[t:])
            magnetic()

    return run


KERNELS: Mapping[str, Callable[..., Launch]] = MappingProxyType({
    "gemm": gemm, "2mm": mm2, "3mm": mm3, "syrk": syrk, "syr2k": syr2k, "atax": atax, "bicg": bicg, "mvt": mvt,
    "gesummv": gesummv, "2dconv": conv2d, "3dconv": conv3d, "fdtd-2d": fdtd_2d,
})  # fmt: skip


def prepare(task: Task, _peer: str) -> Version:
    if task.kernel not in KERNELS:
        raise NothingToTime("no Triton kernel is written for it")
    making, given = KERNELS[task.kernel], placed(task)
    asked = [name for name in signature(making).parameters if name != "at"]
    run = making(Chooser(task), **{name: given[name] for name in asked})
    for name, array in placed(task).items():  # finding configurations has changed them
        if isinstance(array, Tensor):
            given[name].copy_(array)
    run()
    results = fetched({name: given[name] for name in task.written})
    timed, how = sampler(run, task)
    return Version(results, timed, how.removeprefix(", "), f"triton {triton.__version__}")
