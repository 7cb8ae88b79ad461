"""JAX's versions for benchmarks/peers.py: expressions under ``jax.jit``.

JAX launches on streams of its own, which no CUDA graph of ours can record: runs are timed on the host's clock, as many
of them in one compiled loop as take 10 ms. Each gets what the run before returned of the arrays that both read and
write, and an optimization barrier ties its other arguments to the run before, so that no run is left out: XLA removes
the barriers of a GPU's program after it has been scheduled.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from inspect import signature
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from peers_expressions import covar, gesummv, mm3
from peers_task import (
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

Outputs = dict[str, Any]
BATCH_US, MOST = 10_000.0, 2000


def gemm(alpha: float, beta: float, C: Any, A: Any, B: Any) -> Outputs:
    return {"C": beta * C + alpha * (A @ B)}


def mm2(A: Any, B: Any, C: Any, D: Any, E: Any) -> Outputs:
    first = C + A @ B
    return {"C": first, "E": E + first @ D}


def syrk(alpha: float, beta: float, C: Any, A: Any) -> Outputs:
    return {"C": beta * C + alpha * (A @ A.T)}


def syr2k(alpha: float, beta: float, C: Any, A: Any, B: Any) -> Outputs:
    return {"C": beta * C + alpha * (A @ B.T) + alpha * (B @ A.T)}


def atax(A: Any, x: Any) -> Outputs:
    tmp = A @ x
    return {"tmp": tmp, "y": tmp @ A}


def bicg(A: Any, p: Any, r: Any) -> Outputs:
    return {"q": A @ p, "s": r @ A}


def mvt(A: Any, x1: Any, x2: Any, y1: Any, y2: Any) -> Outputs:
    return {"x1": x1 + A @ y1, "x2": x2 + y2 @ A}


def corr(float_n: float, eps: float, data: Any) -> Outputs:
    mean = data.sum(0) / float_n
    centred = data - mean
    deviation = jnp.sqrt((centred * centred).sum(0) / float_n)
    deviation = jnp.where(deviation <= eps, 1.0, deviation)
    scaled = centred / (jnp.sqrt(float_n).astype(data.dtype) * deviation)
    symmat = jnp.fill_diagonal(scaled.T @ scaled, 1.0, inplace=False)
    return {"data": scaled, "mean": mean, "stddev": deviation, "symmat": symmat}


def conv2d(A: Any, B: Any) -> Outputs:
    m, n = A.shape
    terms = (c * A[a : m - 2 + a, b : n - 2 + b] for a, row in enumerate(COEFFICIENTS_2D) for b, c in enumerate(row))
    return {"B": B.at[1:-1, 1:-1].set(sum(terms))}


def conv3d(A: Any, B: Any) -> Outputs:
    m, n, o = A.shape
    terms = (c * A[1 + a : m - 1 + a, 1 + b : n - 1 + b, 1 + d : o - 1 + d] for (a, b, d), c in COEFFICIENTS_3D.items())
    return {"B": B.at[1:-1, 1:-1, 1:-1].set(sum(terms))}


def fdtd_2d(tmax: int, fict: Any, ex: Any, ey: Any, hz: Any) -> Outputs:
    def step(t: Any, fields: Any) -> Any:
        ex, ey, hz = fields
        ey = ey.at[0].set(fict[t]).at[1:-1].add(-0.5 * (hz[1:] - hz[:-1]))
        ex = ex.at[:, 1:-1].add(-0.5 * (hz[:, 1:] - hz[:, :-1]))
        return ex, ey, hz - 0.7 * (ex[:, 1:] - ex[:, :-1] + ey[1:] - ey[:-1])

    return dict(zip(("ex", "ey", "hz"), lax.fori_loop(0, tmax, step, (ex, ey, hz)), strict=True))


def gramschm(n: int, A: Any, R: Any, Q: Any) -> Outputs:
    columns = jnp.arange(n)

    def step(k: Any, arrays: Any) -> Any:
        A, R, Q = arrays
        column = A[:, k]
        norm = jnp.sqrt((column * column).sum())
        q = column / norm
        row = jnp.where(columns > k, q @ A, 0)
        R = R.at[k].set(jnp.where(columns > k, row, R[k]).at[k].set(norm))
        return A - jnp.outer(q, row), R, Q.at[:, k].set(q)

    return dict(zip(("A", "R", "Q"), lax.fori_loop(0, n, step, (A, R, Q)), strict=True))


def checkerboard(height: int, width: int) -> tuple[Any, Any]:
    """The rows and the columns of the pixels [c][y][k]."""
    y = jnp.arange(height)[None, :, None]
    return y, 2 * jnp.arange((width + 1) // 2) + (y + jnp.arange(2)[:, None, None]) % 2


def bp_costs(left: Any, right: Any, disparities: int) -> Any:
    height, width = left.shape
    y, x = checkerboard(height, width)
    d = jnp.arange(disparities)[:, None, None, None]
    apart = jnp.minimum(jnp.abs(left[y, jnp.minimum(x, width - 1)] - right[y, jnp.clip(x - d, 0, width - 1)]), BP_MOST)
    units = (64 * jnp.where((d <= x) & (x < width), apart, BP_MOST) + 0.5).astype(int)
    return ((112 * units + 50) // 100).astype(left.dtype).swapaxes(0, 1)


def bp_messages(sent: Any, parity: int, odd: Any) -> Any:
    """Of the four neighbours of the inner rows' pixels, from those of the other parity."""
    up, down, left, right = sent[:, 1 - parity]
    from_left = jnp.where(odd, right, jnp.roll(right, 1, -1))[:, 1:-1]
    from_right = jnp.where(odd, jnp.roll(left, -1, -1), left)[:, 1:-1]
    return jnp.stack((down[:, :-2], up[:, 2:], from_left, from_right))


def bp_stereo(iterations: int, left: Any, right: Any, cost: Any, sent: Any) -> Outputs:
    (height, width), disparities = left.shape, cost.shape[1]
    y, x = checkerboard(height, width)
    odd, inner = x % 2 == 1, ((x > 0) & (x < width - 1))[:, 1:-1]
    d = jnp.arange(disparities)
    apart = (BP_STEP * jnp.abs(d[:, None] - d)).astype(cost.dtype)[:, :, None, None]
    cost = bp_costs(left, right, disparities)

    def step(parity: int, sent: Any) -> Any:
        messages = bp_messages(sent, parity, odd[parity])
        others = cost[parity, :, 1:-1] + messages.sum(0) - messages
        spread = (others[:, None] + apart).min(2) - others.min(1, keepdims=True)
        new = jnp.where(inner[parity], jnp.minimum(spread, BP_JUMP), sent[:, parity, :, 1:-1])
        return sent.at[:, parity, :, 1:-1].set(new)

    sent = lax.fori_loop(0, iterations // 2, lambda _, sent: step(1, step(0, sent)), jnp.zeros_like(sent))
    sent = step(0, sent) if iterations % 2 else sent
    total = [cost[c, :, 1:-1] + bp_messages(sent, c, odd[c]).sum(0) for c in range(2)]
    best = jnp.where(inner, jnp.stack([t.argmin(0) for t in total]), 0).astype(jnp.int32)
    best = jnp.pad(best, ((0, 0), (1, 1), (0, 0)))
    even = y[0] % 2 == 0
    planes = jnp.where(even, best[0], best[1]), jnp.where(even, best[1], best[0])
    return {"cost": cost, "sent": sent, "disparity": jnp.stack(planes, -1).reshape(height, -1)[:, :width]}


EXPRESSIONS: Mapping[str, Callable[..., Outputs]] = MappingProxyType({
    "gemm": gemm, "2mm": mm2, "3mm": mm3, "syrk": syrk, "syr2k": syr2k, "atax": atax, "bicg": bicg, "mvt": mvt,
    "gesummv": gesummv, "corr": corr, "covar": covar, "2dconv": conv2d, "3dconv": conv3d, "fdtd-2d": fdtd_2d,
    "gramschm": gramschm, "bp_stereo": bp_stereo,
})  # fmt: skip


def prepare(task: Task, _peer: str) -> Version:
    """Compile the expression, and loops of it."""
    if task.kernel not in EXPRESSIONS:
        raise NothingToTime("JAX has nothing for it")
    if task.flush:
        raise NothingToTime("JAX's runs are timed in a loop, in which no cache can be flushed")
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax.config.update("jax_platforms", "cuda" if task.gpu else "cpu")
    jax.config.update("jax_enable_x64", task.dtype == "float64")
    jax.config.update("jax_default_matmul_precision", "highest")
    expression = EXPRESSIONS[task.kernel]
    names = signature(expression).parameters
    given = task.arrays()
    arrays = {name: jnp.asarray(given[name]) for name in names if name in given}
    function = partial(expression, **{name: task.values[name] for name in names if name not in given})
    with task.alone():  # XLA times products while it compiles
        outputs = jax.block_until_ready(jax.jit(function)(**arrays))
        results = {name: np.array(a) for name, a in outputs.items()}
        sample = looped(function, outputs, arrays) if task.gpu else called(function, arrays)
    return Version(results, sample, "", f"jax {jax.__version__}")


def called(function: Callable[..., Outputs], arrays: Outputs) -> Callable[[], float]:
    """A sampler of single calls; XLA's compiler for CPUs moves what a barrier ties to a loop out of it."""
    call = jax.jit(function)
    return host_sampler(lambda: jax.block_until_ready(call(**arrays)))


def looped(function: Callable[..., Outputs], outputs: Outputs, arrays: Outputs) -> Callable[[], float]:
    """A sampler of runs in one compiled loop."""
    rest = {name: a for name, a in arrays.items() if name not in outputs}
    read = tuple(name for name in outputs if name in arrays)

    @partial(jax.jit, static_argnums=2)
    def many(state: Outputs, rest: Outputs, count: int) -> Outputs:
        def once(_: Any, state: Outputs) -> Outputs:
            before, others = lax.optimization_barrier((state, rest))
            return function(**{name: before[name] for name in read}, **others)

        return lax.fori_loop(0, count, once, state)

    def timed(count: int) -> float:
        start = time.perf_counter()
        jax.block_until_ready(many(outputs, rest, count))
        return (time.perf_counter() - start) / count * 1e6

    timed(1)
    few = runs(timed(1), BATCH_US / 4, MOST)  # with what one call costs the host, hence too few
    timed(few)
    count = runs(timed(few), BATCH_US, MOST)
    timed(count)
    return lambda: timed(count)
