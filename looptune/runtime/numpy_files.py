"""NumPy files of arrays, which may be truncated, changed or untrusted: read completely, or refused."""

from __future__ import annotations

import stat
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from looptune.core.cache_file import replace_by
from looptune.core.short_floats import BFLOAT

_RAISED = (
    OSError, ValueError, TypeError, KeyError, EOFError, IndexError, AttributeError, SyntaxError, RecursionError,
    MemoryError, OverflowError, NotImplementedError, RuntimeError, struct.error, zipfile.BadZipFile, zlib.error,
    tokenize.TokenError,
)  # fmt: skip
"""What NumPy, zipfile and zlib are known to raise of a damaged file."""


class Damaged(Exception):
    """The file holds no arrays that can be read; the message says why."""


def read(path: Path) -> np.ndarray | dict[str, np.ndarray]:
    """Return the array of a .npy file, or the arrays of a .npz file by name. Raises Damaged if there are none."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise Damaged("it is not a regular file")
        found = np.load(path, allow_pickle=False)
        if isinstance(found, np.ndarray):
            return _typed(found)
        with found:
            return {name: _array(name, found[name]) for name in found.files}
    except _RAISED as error:
        said = " ".join(str(error).split())
        raise Damaged(said[:200] if said else type(error).__name__) from error


def _array(name: str, found: Any) -> np.ndarray:
    if not isinstance(found, np.ndarray):
        raise Damaged(f"its part {name!a} is not an array")
    return _typed(found)


def _typed(found: np.ndarray) -> np.ndarray:
    """Return the array with the type bfloat16 where NumPy stored it as two bytes of no type."""
    return found.view(BFLOAT) if found.dtype == np.dtype("V2") else found


def write(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write a .npz file, completely or not at all. Raises OSError if it cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_by(path, lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]
