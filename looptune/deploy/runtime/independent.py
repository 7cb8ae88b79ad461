"""The C text from which a module was made, compiled where the module runs.

A check compares with it, and a call runs it if one core was faster than all tuned versions.
"""

from __future__ import annotations

import atexit
import ctypes
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from looptune.runtime.c_compiler import compiler_command
from looptune.runtime.c_program import NoReference, Text, compile_library, compile_program, run_program


def independent(
    text: Text | None, arrays: Mapping[str, np.ndarray], scalars: Mapping[str, int | float], wanted: Sequence[str]
) -> dict[str, np.ndarray]:
    """Return the results of the text for ``wanted``. Raises NoReference, with the reason, if it cannot run."""
    if text is None:
        raise NoReference("the C text cannot be called from outside of its program")
    if not compiler_command():
        raise NoReference("there is no C compiler here")
    program = _program(text)
    left = run_program(program, text, arrays, scalars, wanted).arrays
    return {name: left[name] for name in wanted}


def in_c(text: Text, names: Sequence[str], otherwise: Callable[[], Callable[..., None]]) -> Callable[..., None]:
    """Return the text as a function of the parameters ``names`` and a number of threads, of which it uses one.

    If it cannot be compiled, the result of ``otherwise``.
    """
    if not compiler_command():
        return otherwise()
    try:
        entry = getattr(ctypes.CDLL(str(compile_library(text, _new()))), text.entry)
    except (NoReference, OSError):
        return otherwise()
    entry.restype = None

    def call(*given: Any) -> None:
        held = dict(zip(names, given[:-1], strict=True))
        values = [np.array(held[name], dtype) for name, dtype in text.scalars]
        scalars = (ctypes.c_void_p * (len(values) + 1))(*(v.ctypes.data for v in values))
        arrays = (ctypes.c_void_p * (len(text.arrays) + 1))(*(held[name].ctypes.data for name in text.arrays))
        bytes_ = (ctypes.c_ulonglong * (len(text.arrays) + 1))(*(held[name].nbytes for name in text.arrays))
        entry(scalars, arrays, bytes_)

    return call


@cache
def _folder() -> str:
    """Return a folder that is removed when the process ends."""
    folder = tempfile.mkdtemp(prefix="tuned-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _program(text: Text) -> Path:
    return compile_program(text, _new())


def _new() -> Path:
    return Path(tempfile.mkdtemp(dir=_folder()))
