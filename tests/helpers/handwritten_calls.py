"""Call hand-written kernels in a process of their own: ``python -m tests.helpers.handwritten_calls CALLS RESULTS``.

CALLS is a pickle of (file, its function that makes the callable, element type, arguments in C's order) tuples; RESULTS
one of the arrays after each call, or the end of its traceback. With ``NUMBA_ENABLE_CUDASIM=1`` "cuda" is simulated.
"""

from __future__ import annotations

import importlib.util
import pickle
import sys
import traceback
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numba import config, cuda

if config.ENABLE_CUDASIM:
    from tests.helpers import block_simulator  # noqa: F401

Call = tuple[Path, str, str, list[Any]]
Result = "list[np.ndarray] | str"


@cache
def module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"handwritten_{path.stem}", path)
    assert spec is not None, f"{path} is a Python file"
    assert spec.loader is not None, f"{path} is loaded from a file"
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@cache
def kernel(path: Path, target: str, dtype: str) -> Any:
    return getattr(module(path), target)(dtype)


def called(path: Path, target: str, dtype: str, args: list[Any]) -> list[np.ndarray]:
    """The arrays among ``args`` after the call, which works on copies: one pickle holds an array of two calls once."""
    args = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    if target.endswith("cpu"):
        kernel(path, target, dtype)(*args)
        return [a for a in args if isinstance(a, np.ndarray)]
    placed = [cuda.to_device(a) if isinstance(a, np.ndarray) else a for a in args]
    kernel(path, target, dtype)(*placed, stream=0)
    return [p.copy_to_host() for p, a in zip(placed, args, strict=True) if isinstance(a, np.ndarray)]


def main(calls: Path, results: Path) -> None:
    found: list[list[np.ndarray] | str] = []
    for call in pickle.loads(calls.read_bytes()):
        try:
            found.append(called(*call))
        except Exception:
            found.append(traceback.format_exc(limit=-3))
    results.write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
