"""Torch's versions for benchmarks/peers.py: calls of its libraries, and expressions under ``torch.compile``.

A library's call updates arrays in place, as the loops do; an expression returns them. What they return is compared by
the names of C's parameters. Single precision is single precision: TF32 is off.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from inspect import signature
from itertools import product
from statistics import median
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch
from peers_expressions import covar, gesummv, mm3
from peers_task import (
    AHEAD_US,
    BP_JUMP,
    BP_MOST,
    BP_STEP,
    COEFFICIENTS_2D,
    COEFFICIENTS_3D,
    NothingToTime,
    Task,
    Version,
    host_sampler,
    runs,
)

Tensor = torch.Tensor
Outputs = dict[str, Tensor]
Given = Mapping[str, Any]
CYCLES_PER_US = 1800.0


# ---------------------------------------------------------------- expressions


def gemm(alpha: float, beta: float, C: Tensor, A: Tensor, B: Tensor) -> Outputs:
    return {"C": torch.addmm(C, A, B, beta=beta, alpha=alpha)}


def mm2(A: Tensor, B: Tensor, C: Tensor, D: Tensor, E: Tensor) -> Outputs:
    first = torch.addmm(C, A, B)
    return {"C": first, "E": torch.addmm(E, first, D)}


def syrk(alpha: float, beta: float, C: Tensor, A: Tensor) -> Outputs:
    return {"C": torch.addmm(C, A, A.T, beta=beta, alpha=alpha)}


def syr2k(alpha: float, beta: float, C: Tensor, A: Tensor, B: Tensor) -> Outputs:
    return {"C": torch.addmm(torch.addmm(C, A, B.T, beta=beta, alpha=alpha), B, A.T, alpha=alpha)}


def atax(A: Tensor, x: Tensor) -> Outputs:
    tmp = A @ x
    return {"tmp": tmp, "y": A.T @ tmp}


def bicg(A: Tensor, p: Tensor, r: Tensor) -> Outputs:
    return {"q": A @ p, "s": A.T @ r}


def mvt(A: Tensor, x1: Tensor, x2: Tensor, y1: Tensor, y2: Tensor) -> Outputs:
    return {"x1": x1 + A @ y1, "x2": x2 + A.T @ y2}


def corr(float_n: float, eps: float, data: Tensor) -> Outputs:
    mean = data.sum(0) / float_n
    centred = data - mean
    deviation = torch.sqrt((centred * centred).sum(0) / float_n)
    deviation = deviation.masked_fill(deviation <= eps, 1.0)
    scaled = centred / (math.sqrt(float_n) * deviation)
    return {"data": scaled, "mean": mean, "stddev": deviation, "symmat": (scaled.T @ scaled).fill_diagonal_(1.0)}


def conv2d(A: Tensor, B: Tensor) -> Outputs:
    m, n = A.shape
    terms = (c * A[a : m - 2 + a, b : n - 2 + b] for a, row in enumerate(COEFFICIENTS_2D) for b, c in enumerate(row))
    B[1:-1, 1:-1] = sum(terms)
    return {"B": B}


def conv3d(A: Tensor, B: Tensor) -> Outputs:
    m, n, o = A.shape
    B[1:-1, 1:-1, 1:-1] = sum(
        c * A[1 + a : m - 1 + a, 1 + b : n - 1 + b, 1 + d : o - 1 + d] for (a, b, d), c in COEFFICIENTS_3D.items()
    )
    return {"B": B}


def fdtd_step(f: Tensor, ex: Tensor, ey: Tensor, hz: Tensor) -> None:
    ey[0] = f
    ey[1:-1] -= 0.5 * (hz[1:] - hz[:-1])
    ex[:, 1:-1] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
    hz -= 0.7 * (ex[:, 1:] - ex[:, :-1] + ey[1:] - ey[:-1])


def fdtd_loop(given: Given, step: Callable[..., None]) -> Callable[[], Outputs]:
    fields = {name: given[name] for name in ("ex", "ey", "hz")}
    sources = [f.clone() for f in given["fict"]]  # aligned, as expressions expect of their arguments

    def run() -> Outputs:
        for f in sources:
            step(f, **fields)
        return fields

    return run


def gramschm_step(k: int, A: Tensor, R: Tensor, Q: Tensor) -> None:
    norm = torch.sqrt((A[:, k] * A[:, k]).sum())
    q = A[:, k] / norm
    row = q @ A[:, k + 1 :]
    R[k, k], Q[:, k], R[k, k + 1 :] = norm, q, row
    A[:, k + 1 :] -= torch.outer(q, row)


def gramschm_loop(given: Given, step: Callable[..., None]) -> Callable[[], Outputs]:
    arrays = {name: given[name] for name in ("A", "R", "Q")}

    def run() -> Outputs:
        for k in range(given["n"]):
            step(k, **arrays)
        return arrays

    return run


def checkerboard(height: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """The rows and the columns of the pixels [c][y][k]."""
    y = torch.arange(height, device=device)[None, :, None]
    c, k = torch.arange(2, device=device)[:, None, None], torch.arange((width + 1) // 2, device=device)
    return y, 2 * k + (y + c) % 2


def bp_costs(left: Tensor, right: Tensor, disparities: int) -> Tensor:
    height, width = left.shape
    y, x = checkerboard(height, width, left.device)
    d = torch.arange(disparities, device=left.device)[:, None, None, None]
    at = (x - d).clamp(0, width - 1)
    apart = (left[y, x.clamp(max=width - 1)] - right[y, at]).abs().clamp(max=BP_MOST)
    apart = torch.where((d <= x) & (x < width), apart, BP_MOST)
    units = (64 * apart + 0.5).int()
    return ((112 * units + 50) // 100).to(left.dtype).transpose(0, 1)


def bp_messages(sent: Tensor, parity: int, odd: Tensor) -> Tensor:
    """Of the four neighbours of the inner rows' pixels, from those of the other parity."""
    up, down, left, right = sent[:, 1 - parity]
    from_left = torch.where(odd, right, right.roll(1, -1))[:, 1:-1]
    from_right = torch.where(odd, left.roll(-1, -1), left)[:, 1:-1]
    return torch.stack((down[:, :-2], up[:, 2:], from_left, from_right))


def bp_step(parity: int, width: int, cost: Tensor, sent: Tensor) -> None:
    _, x = checkerboard(cost.shape[2], width, cost.device)
    messages = bp_messages(sent, parity, x[parity] % 2 == 1)
    others = cost[parity, :, 1:-1] + messages.sum(0) - messages
    d = torch.arange(cost.shape[1], device=cost.device)
    apart = BP_STEP * (d[:, None] - d).abs()[:, :, None, None]
    spread = (others[:, None] + apart).amin(2) - others.amin(1, keepdim=True)
    inner = (x[parity, 1:-1] > 0) & (x[parity, 1:-1] < width - 1)
    sent[:, parity, :, 1:-1] = torch.where(inner, spread.clamp(max=BP_JUMP), sent[:, parity, :, 1:-1])


def bp_best(cost: Tensor, sent: Tensor, width: int) -> Tensor:
    height = cost.shape[2]
    y, x = checkerboard(height, width, cost.device)
    best = torch.zeros(x.shape, dtype=torch.int32, device=cost.device)
    for c in range(2):
        total = cost[c, :, 1:-1] + bp_messages(sent, c, x[c] % 2 == 1).sum(0)
        inner = (x[c, 1:-1] > 0) & (x[c, 1:-1] < width - 1)
        best[c, 1:-1] = torch.where(inner, total.argmin(0), 0).int()
    even = y[0] % 2 == 0
    planes = (torch.where(even, best[0], best[1]), torch.where(even, best[1], best[0]))
    return torch.stack(planes, -1).reshape(height, -1)[:, :width]


def bp_loop(given: Given, costs: Callable[..., Tensor], step: Callable[..., None], best: Callable[..., Tensor]) -> (
        Callable[[], Outputs]):  # fmt: skip
    sent, (_, width) = given["sent"], given["left"].shape

    def run() -> Outputs:
        cost = costs(given["left"], given["right"], sent.shape[2])
        sent.zero_()
        for t in range(given["iterations"]):
            step(t % 2, width, cost, sent)
        return {"cost": cost, "sent": sent, "disparity": best(cost, sent, width)}

    return run


class Loop(NamedTuple):
    """``parts`` are compiled; what ``over`` returns calls them."""

    parts: Sequence[Callable[..., Any]]
    over: Callable[..., Callable[[], Outputs]]


EXPRESSIONS: Mapping[str, Callable[..., Outputs] | Loop] = MappingProxyType({
    "gemm": gemm, "2mm": mm2, "3mm": mm3, "syrk": syrk, "syr2k": syr2k, "atax": atax, "bicg": bicg, "mvt": mvt,
    "gesummv": gesummv, "corr": corr, "covar": covar, "2dconv": conv2d, "3dconv": conv3d,
    "fdtd-2d": Loop((fdtd_step,), fdtd_loop), "gramschm": Loop((gramschm_step,), gramschm_loop),
    "bp_stereo": Loop((bp_costs, bp_step, bp_best), bp_loop),
})  # fmt: skip


# ------------------------------------------------------------------ libraries


class Library(NamedTuple):
    """``by``: the library; ``call`` updates its arguments; ``captured``: whether a CUDA graph can hold it.

    ``finished`` makes of the results what the loops would have.
    """

    by: str
    call: Callable[..., Outputs]
    captured: bool = True
    finished: Callable[[dict[str, np.ndarray], Mapping[str, np.ndarray]], dict[str, np.ndarray]] = lambda got, _: got


def _gemm(alpha: float, beta: float, C: Tensor, A: Tensor, B: Tensor) -> Outputs:
    return {"C": C.addmm_(A, B, beta=beta, alpha=alpha)}


def _mm2(A: Tensor, B: Tensor, C: Tensor, D: Tensor, E: Tensor) -> Outputs:
    return {"C": C.addmm_(A, B), "E": E.addmm_(C, D)}


def _mm3(A: Tensor, B: Tensor, C: Tensor, D: Tensor, E: Tensor, F: Tensor, G: Tensor) -> Outputs:
    return {"E": torch.mm(A, B, out=E), "F": torch.mm(C, D, out=F), "G": torch.mm(E, F, out=G)}


def _syrk(alpha: float, beta: float, C: Tensor, A: Tensor) -> Outputs:
    return {"C": C.addmm_(A, A.T, beta=beta, alpha=alpha)}


def _syr2k(alpha: float, beta: float, C: Tensor, A: Tensor, B: Tensor) -> Outputs:
    return {"C": C.addmm_(A, B.T, beta=beta, alpha=alpha).addmm_(B, A.T, alpha=alpha)}


def _atax(A: Tensor, x: Tensor, y: Tensor, tmp: Tensor) -> Outputs:
    return {"tmp": torch.mv(A, x, out=tmp), "y": torch.mv(A.T, tmp, out=y)}


def _bicg(A: Tensor, p: Tensor, q: Tensor, r: Tensor, s: Tensor) -> Outputs:
    return {"q": torch.mv(A, p, out=q), "s": torch.mv(A.T, r, out=s)}


def _mvt(A: Tensor, x1: Tensor, x2: Tensor, y1: Tensor, y2: Tensor) -> Outputs:
    return {"x1": x1.addmv_(A, y1), "x2": x2.addmv_(A.T, y2)}


def _gesummv(alpha: float, beta: float, A: Tensor, B: Tensor, x: Tensor, y: Tensor, tmp: Tensor) -> Outputs:
    torch.mv(A, x, out=tmp)
    return {"tmp": tmp, "y": torch.addmv(tmp, B, x, beta=alpha, alpha=beta, out=y)}


@cache
def _weights(dimensions: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Made once: a graph holds no copy from the host."""
    volume = [float(COEFFICIENTS_3D.get(at, 0)) for at in product((-1, 0, 1), repeat=3)]
    flat = sum(COEFFICIENTS_2D, ()) if dimensions == 2 else volume
    return torch.tensor(flat, dtype=dtype).reshape(1, 1, *[3] * dimensions).to(device)


def _conv2d(A: Tensor, B: Tensor) -> Outputs:
    B[1:-1, 1:-1] = torch.nn.functional.conv2d(A[None, None], _weights(2, A.dtype, A.device))[0, 0]
    return {"B": B}


def _conv3d(A: Tensor, B: Tensor) -> Outputs:
    B[1:-1, 1:-1, 1:-1] = torch.nn.functional.conv3d(A[None, None], _weights(3, A.dtype, A.device))[0, 0]
    return {"B": B}


def _qr(A: Tensor) -> Outputs:
    return dict(zip("QR", torch.linalg.qr(A), strict=True))


def _signed(got: dict[str, np.ndarray], given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A diagonal that is positive, and below it what was there."""
    signs = np.sign(np.diag(got["R"]))
    return {"Q": got["Q"] * signs, "R": np.triu(got["R"] * signs[:, None]) + np.tril(given["R"], -1)}


BLAS = "cuBLAS"
LIBRARIES: Mapping[str, Library] = MappingProxyType({
    "gemm": Library(BLAS, _gemm), "2mm": Library(BLAS, _mm2), "3mm": Library(BLAS, _mm3), "syrk": Library(BLAS, _syrk),
    "syr2k": Library(BLAS, _syr2k), "atax": Library(BLAS, _atax), "bicg": Library(BLAS, _bicg),
    "mvt": Library(BLAS, _mvt), "gesummv": Library(BLAS, _gesummv), "corr": Library("torch and cuBLAS", corr),
    "covar": Library("torch and cuBLAS", covar), "2dconv": Library("cuDNN", _conv2d),
    "3dconv": Library("cuDNN", _conv3d),
    "gramschm": Library("cuSOLVER's QR, another algorithm", _qr, captured=False, finished=_signed),
})  # fmt: skip


# --------------------------------------------------------------------- timing


def placed(task: Task) -> dict[str, Any]:
    device = torch.device("cuda" if task.gpu else "cpu")
    return {**task.values, **{name: torch.from_numpy(a).to(device) for name, a in task.arrays().items()}}


def bound(call: Callable[..., Outputs], given: Given) -> Callable[[], Outputs]:
    arguments = {name: given[name] for name in signature(call).parameters}
    return lambda: call(**arguments)


def compiled(form: Callable[..., Outputs] | Loop, given: Given) -> Callable[[], Outputs]:
    match form:
        case Loop(parts, over):
            return over(given, *map(torch.compile, parts))
        case _:
            arguments = {name: given[name] for name in signature(form).parameters}
            function = torch.compile(form, dynamic=False)
            return lambda: function(**arguments)


def prepare(task: Task, peer: str) -> Version:
    """Prepare a library's call or a compiled expression."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    table: Mapping[str, Any] = LIBRARIES if peer == "library" else EXPRESSIONS
    if task.kernel not in table:
        raise NothingToTime(f"{peer} has nothing for it")
    form, given = table[task.kernel], placed(task)
    package = f"torch {torch.__version__}"
    if peer == "library":
        run = bound(form.call, given)
        results = form.finished(fetched(run()), {n: a for n, a in task.arrays().items() if n in task.written})
        timed, how = sampler(run, task, form.captured)
        return Version(results, timed, (form.by if task.gpu else "torch") + how, package)
    run = compiled(form, given)
    results = fetched(run())
    timed, how = sampler(run, task)
    return Version(results, timed, how.removeprefix(", "), package)


def fetched(outputs: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
    return {name: tensor.detach().cpu().numpy().copy() for name, tensor in outputs.items()}


def sampler(run: Callable[[], object], task: Task, captured: bool = True) -> tuple[Callable[[], float], str]:
    """Time runs that are replayed from a CUDA graph, or launched ahead of the device where none can hold them.

    Also returned is what is to be said of it.
    """
    if not task.gpu:
        return host_sampler(run), ""
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    stream.synchronize()
    graph = graph_of(run, stream) if captured else None
    replay = run if graph is None else graph.replay
    how = "" if graph is not None else ", not in a graph"
    if task.flush:
        return flushed_sampler(replay, stream), how
    timed = batch_timer(replay, stream, AHEAD_US if graph is not None else 20 * AHEAD_US)
    timed(1)
    count = runs(timed(1))
    return lambda: timed(count), how


def graph_of(run: Callable[[], object], stream: Any) -> Any:
    """A CUDA graph of one run, or None where the driver refuses to record it."""
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph, stream=stream):
            run()
    except RuntimeError as error:
        print(f"not captured: {error}", file=sys.stderr)
        return None
    return graph


def batch_timer(replay: Callable[[], object], stream: Any, ahead_us: float) -> Callable[[int], float]:
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def timed(count: int) -> float:
        with torch.cuda.stream(stream):
            torch.cuda._sleep(int(CYCLES_PER_US * ahead_us))
            first.record(stream)
            for _ in range(count):
                replay()
            last.record(stream)
        last.synchronize()
        return float(first.elapsed_time(last)) * 1e3 / count

    return timed


def flushed_sampler(replay: Callable[[], object], stream: Any) -> Callable[[], float]:
    """The median of single runs, before each of which twice the L2 is overwritten."""
    other = torch.empty(2 * torch.cuda.get_device_properties(0).L2_cache_size, dtype=torch.uint8, device="cuda")

    def once() -> float:
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        with torch.cuda.stream(stream):
            other.zero_()
            first.record(stream)
            replay()
            last.record(stream)
        last.synchronize()
        return float(first.elapsed_time(last)) * 1e3

    once()
    count = runs(once())
    return lambda: median(once() for _ in range(count))
