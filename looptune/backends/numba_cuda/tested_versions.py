"""Functions of Numba's compiler for GPUs are replaced only in versions with which this was tested.

    compiler_patches    large kernels compile faster, to the same code
    noalias             loads of arrays that a kernel only reads wait for no store

No result depends on either. In another version Numba's functions may differ, so they are not replaced.

``looptune build`` copies this file into its modules.
"""

from __future__ import annotations

import importlib.metadata
import re
import warnings
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

TESTED: Mapping[str, tuple[str, str]] = MappingProxyType({"numba": ("0.61", "0.69"), "numba-cuda": ("0.30.4", "0.31")})
"""By package the first version, and the first that is too new. The ends were tested: numba 0.61.2 and 0.68.1, each with
numba-cuda 0.30.4."""


@cache
def is_tested() -> bool:
    """Return whether the installed versions of Numba were tested; if not, warn once about what is not used."""
    said = untested_message({name: _installed(name) for name in TESTED})
    if said:
        warnings.warn(said, stacklevel=2)
    return not said


def untested_message(installed: Mapping[str, str]) -> str:
    """Return which patches are not used with these versions, and why; "" if all are.

    >>> untested_message({"numba": "0.68.1", "numba-cuda": "0.30.4"})
    ''
    """
    others = [
        f"{name} {installed[name] or 'of an unknown version'} (tested: {first} up to, but not with, {end})"
        for name, (first, end) in TESTED.items()
        if not _numbers(first) <= _numbers(installed[name]) < _numbers(end)
    ]
    if not others:
        return ""
    return (
        f"Numba's compiler for GPUs is used as it is, because of {' and '.join(others)}: "
        "results are the same, but large kernels take longer to compile and kernels may run slower"
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", version)[:3])


def _installed(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
