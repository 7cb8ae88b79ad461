"""Targets by name, and which of them can be used here.

The CUDA target's libraries are optional: they are imported when a CUDA target is asked for, never before.
"""

from __future__ import annotations

import importlib
import importlib.util
from functools import partial
from pathlib import Path

from looptune.backends.base import Backend
from looptune.backends.numba_cpu import NumbaCpu
from looptune.errors import TargetError, UsageError
from looptune.mapping import Plan
from looptune.runtime.machine import Cpu, Facts
from looptune.tune.evaluate import Target

NAMES = ("auto", "numba-cuda", "numba-cpu")
DEFAULT_ARCH = "sm_90"
_INSTALL = "install it with: pip install 'looptune[cuda]'"


def resolve(name: str, cache: Path, *, fastmath: bool = True, device: int = 0, warm: bool = False) -> Target:
    """The target called ``name``; "auto" is the GPU where there is one, else the CPU.

    TargetError where a GPU is asked for and cannot be used, saying what to install.
    """
    if name not in NAMES:
        raise UsageError(f"unknown target '{name}': choose one of {', '.join(NAMES)}")
    missing = gpu_missing() if name != "numba-cpu" else "not asked for"
    strict = partial(NumbaCpu, cache, False)
    if name == "numba-cpu" or (name == "auto" and missing):
        return Target("numba-cpu", partial(NumbaCpu, cache, fastmath), strict, Cpu, bakes=False)
    if missing:
        raise TargetError(f"the target numba-cuda needs an NVIDIA GPU: {missing}")
    gpu, cuda = importlib.import_module("looptune.runtime.gpu"), importlib.import_module("looptune.backends.numba_cuda")
    facts = gpu.Gpu(device).facts
    machine = partial(gpu.Gpu, device, warm)
    return Target("numba-cuda", partial(cuda.NumbaCuda, facts.arch, cache=cache), strict, machine, bakes=True)


def backend(name: str, cache: Path, arch: str = DEFAULT_ARCH) -> Backend:
    """A backend to emit with: no device is needed, and "auto" is numba-cuda."""
    if name not in NAMES:
        raise UsageError(f"unknown target '{name}': choose one of {', '.join(NAMES)}")
    if name == "numba-cpu":
        return NumbaCpu(cache)
    if not cuda_installed():
        raise TargetError(f"the target numba-cuda needs the package numba-cuda; {_INSTALL}")
    _check_arch(arch)
    made: Backend = importlib.import_module("looptune.backends.numba_cuda").NumbaCuda(arch, cache=cache)
    return made


def _check_arch(arch: str) -> None:
    """UsageError for what is no architecture, or one that the compiler knows nothing of."""
    known = importlib.import_module("looptune.backends.numba_cuda").architectures()
    if arch not in known:
        raise UsageError(f"unknown GPU architecture '{arch}': choose one of {', '.join(known)}")


def cuda_installed() -> bool:
    """The libraries that CUDA code is compiled and launched with are there; a GPU may still be missing."""
    try:
        return all(importlib.util.find_spec(name) is not None for name in ("cuda.core", "cuda.bindings", "numba_cuda"))
    except ModuleNotFoundError:
        return False


def gpu_missing() -> str:
    """Why no GPU can be used here; "" where one can."""
    if not cuda_installed():
        return f"the package numba-cuda is missing; {_INSTALL}"
    return str(importlib.import_module("looptune.runtime.gpu").available())


def ptx(plan: Plan, arch: str) -> str:
    """The PTX of every kernel of a plan, without a GPU."""
    if not cuda_installed():
        raise TargetError(f"PTX needs the package numba-cuda; {_INSTALL}")
    _check_arch(arch)
    text: str = importlib.import_module("looptune.backends.numba_cuda").NumbaCuda(arch).ptx(plan)
    return "".join(f"// asserted by the user, not proved: {line}\n" for line in plan.asserted) + text


def each(cache: Path) -> tuple[Target, ...]:
    """A target for every device here, in the order of ``devices``."""
    gpus = 0 if gpu_missing() else importlib.import_module("looptune.runtime.gpu").count()
    return (*(resolve("numba-cuda", cache, device=k) for k in range(gpus)), resolve("numba-cpu", cache))


def devices() -> tuple[Facts, ...]:
    """The facts of every device kernels can run on here, GPUs first."""
    if gpu_missing():
        return (Cpu().facts,)
    gpu = importlib.import_module("looptune.runtime.gpu")
    return (*(gpu.Gpu(k).facts for k in range(gpu.count())), Cpu().facts)
