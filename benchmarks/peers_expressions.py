"""Expressions of kernels that are the same for arrays of torch and of JAX."""

from __future__ import annotations

from typing import Any


def mm3(A: Any, B: Any, C: Any, D: Any) -> dict[str, Any]:
    left, right = A @ B, C @ D
    return {"E": left, "F": right, "G": left @ right}


def gesummv(alpha: float, beta: float, A: Any, B: Any, x: Any) -> dict[str, Any]:
    tmp = A @ x
    return {"tmp": tmp, "y": alpha * tmp + beta * (B @ x)}


def covar(float_n: float, data: Any) -> dict[str, Any]:
    mean = data.sum(0) / float_n
    centred = data - mean
    return {"data": centred, "mean": mean, "symmat": centred.T @ centred}
