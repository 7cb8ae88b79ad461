"""The versions of looptune, of its code generators and of the compilers it uses."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

__version__ = "0.1.0"

LOWERINGS = MappingProxyType({"numba-cpu": "24"})
LOWERING = "24"
"""Of all other targets. They change whenever the same directives may give other machine code: results of another
lowering are not comparable."""


PACKAGES = ("numba", "llvmlite", "numpy", "numba-cuda", "nvidia-nvvm", "nvidia-nvjitlink",
            "nvidia-cuda-nvcc-cu12", "nvidia-nvjitlink-cu12")  # fmt: skip
"""Packages that compile for any target; those of CUDA 12 have other names."""
COMPILERS = MappingProxyType({"cuda-c": ("nvidia-cuda-nvrtc",), "opencl": ("pyopencl", "pocl-binary-distribution")})
"""Packages that compile for these targets alone."""


def lowering(target: str) -> str:
    """Return the version of looptune's code generator for a target, which is part of the key of a measurement."""
    return LOWERINGS.get(target, LOWERING)


def toolchain(target: str = "") -> dict[str, str]:
    """Return the versions of the installed packages that turn emitted source into machine code, for a target."""
    installed = installed_packages()
    names = (*PACKAGES, *COMPILERS.get(target, ()))
    return {name: installed[name] for name in names if name in installed}


@cache
def installed_packages() -> Mapping[str, str]:
    """Return the installed versions, looked up once.

    This takes tenths of a second, and one command may sweep many files. Of a package that is installed twice, the one
    that is imported counts.
    """
    found = [(d.metadata["Name"], d.version) for d in importlib.metadata.distributions()]
    return dict(reversed(found))
