"""Hand-written kernels: ``handwritten/<name>.py`` beside the C file, a user's file in which anything may fail."""

from __future__ import annotations

import importlib.util
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from looptune.ir.nodes import Array
from looptune.runtime.device import DEVICES, Device, Run, on_gpu

if TYPE_CHECKING:
    from looptune.tune.job import Job


def find_kernels(file: Path) -> Path | None:
    """Return ``handwritten/<name>.py`` beside the C file, or None if there is none."""
    path = file.parent.resolve() / "handwritten" / f"{file.stem.replace('-', '_')}.py"
    return path if path.exists() else None


def load_kernels(path: Path, job: Job, machine: Device, arrays: Mapping[str, Any]) -> dict[str, Run]:
    """Return the kernels that a file has for the job's target: "hand-written" and "library".

    They are called with the parameters of the C function. Raises what the file raises.
    """
    spec = importlib.util.spec_from_file_location(f"handwritten_{path.stem}", path)
    assert spec is not None, f"{path} cannot be imported"
    assert spec.loader is not None, f"{path} has no loader"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    codelet, values, name = job.codelet, job.problem.values, job.target.name
    dtype = next(p.dtype for p in codelet.params if isinstance(p, Array))
    args = [arrays[p.name] if isinstance(p, Array) else values[p.name] for p in codelet.params]
    own = "cuda" if on_gpu(name) else DEVICES.get(name, name).removeprefix("numba-")
    makers = {"hand-written": getattr(module, own, None), "library": getattr(module, f"library_{own}", None)}
    calls = {name: make(dtype) for name, make in makers.items() if make is not None}
    return {name: machine.external_kernel(call, args) for name, call in calls.items() if call is not None}


def kernel_error(path: Path, error: Exception) -> str:
    """Return the exception that a kernel of a file raised, and its position.

    ``gemm.py:12 raised NameError: name 'x' is not defined``.
    """
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == path]
    said = " ".join(traceback.format_exception_only(error)[-1].split())
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    return f"{path.name}{'' if line is None else f':{line}'} raised {said}"
