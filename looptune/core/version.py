"""The version, in one place, and those of what compiles."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

__version__ = "0.1.0"

LOWERINGS = MappingProxyType({"numba-cpu": "18"})
LOWERING = "18"
"""Of all other targets. They change whenever the same directives may give other machine code: results of another
lowering are not comparable."""


COMPILERS = MappingProxyType({"cuda-c": ("nvidia-cuda-nvrtc",), "opencl": ("pyopencl", "pocl-binary-distribution")})
"""Packages that compile for these targets alone."""


def lowering(target: str) -> str:
    return LOWERINGS.get(target, LOWERING)


def toolchain(target: str = "") -> dict[str, str]:
    """The versions installed of all that turns emitted source into machine code, for a target."""
    installed = _installed()
    names = ("numba", "llvmlite", "numpy", "numba-cuda", "nvidia-nvvm", "nvidia-nvjitlink", *COMPILERS.get(target, ()))
    return {name: installed[name] for name in names if name in installed}


@cache
def _installed() -> Mapping[str, str]:
    """Looked up once: it takes tenths of a second, and many files may be swept by one command. Of a package that is
    there twice the first is imported."""
    found = [(d.metadata["Name"], d.version) for d in importlib.metadata.distributions()]
    return dict(reversed(found))
