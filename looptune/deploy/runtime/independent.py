"""The C text that a module was made of, compiled where the module runs: what a check is independent of."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from looptune.runtime.c_program import NoReference, Text, compiled, ran
from looptune.runtime.cc import compiler


def independent(
    text: Text | None, arrays: Mapping[str, np.ndarray], scalars: Mapping[str, int | float], wanted: Sequence[str]
) -> dict[str, np.ndarray]:
    """What the text leaves in ``wanted``. NoReference, with the reason, where it cannot be asked."""
    if text is None:
        raise NoReference("the C text cannot be called from outside of its program")
    if not compiler():
        raise NoReference("there is no C compiler here")
    program = _program(text)
    return dict(ran(program, text, arrays, scalars, wanted).arrays)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Removed when the process ends."""
    return tempfile.TemporaryDirectory(prefix="tuned-")


@cache
def _program(text: Text) -> Path:
    return compiled(text, Path(tempfile.mkdtemp(dir=_folder().name)))
