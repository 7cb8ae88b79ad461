"""The files that ``--data`` names.

    FILE.npz         arrays and scalars by parameter name, of the parameters' types
    NAME=FILE.npy    one array, of the parameter's type
    NAME=PICTURE     one array: grey levels, row by row from the top, converted to the parameter's type

The first bytes of a file determine its kind.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from looptune.core.errors import UsageError
from looptune.ir.nodes import Array, Binary, Codelet, Const, Expr, Scalar, Var
from looptune.ir.simplify import is_integer, wrap
from looptune.runtime import images, numpy_files

Number = int | float
USED = 0.75
"""Of a picture, the least that the loops have to reach: less means that their sizes are not the picture's."""
NUMPY, ZIP = b"\x93NUMPY", b"PK"


@dataclass(frozen=True, slots=True)
class InputFile:
    """The contents of a file for one parameter: numbers, or grey levels, which are converted to any type."""

    path: Path
    content: np.ndarray
    levels: bool = False

    def number(self, p: Scalar) -> Number:
        """Return the value of a scalar. Raises UsageError if it has no value of its type."""
        if self.content.size != 1:
            what = "is a picture" if self.levels else f"contains an array of {list(self.content.shape)}"
            raise UsageError(f"{p.name} is a number, but {self.path} {what}")
        number = self.content.item()
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise UsageError(f"{p.name} is a number, but {self.path} contains {self.content.dtype}")
        if not is_integer(p.dtype):
            return float(number)
        if not math.isfinite(number) or wrap(int(number), p.dtype) != number:
            raise UsageError(f"{p.name} has the type {p.dtype}, but {self.path} contains {number}")
        return int(number)

    def sizes(self, p: Array) -> Iterator[tuple[str, int]]:
        """Yield the parameters that are extents of ``p``, or differ from an extent by a constant.

        This file is the input for ``p``.
        """
        content = self._shaped(p)
        if content.ndim == len(p.shape):
            yield from (found for e, n in zip(p.shape, content.shape, strict=True) if (found := _solved(e, n)))

    def fill(self, p: Array, reached: tuple[int, ...]) -> np.ndarray:
        """Return the content as the array ``p``; ``reached`` is its shape, or the least extent of an open dimension."""
        shaped = self._shaped(p)
        open_ = p.shape[0] is None
        fits = shaped.ndim == len(reached) and shaped.shape[1:] == reached[1:]
        if not fits or (shaped.shape[0] < reached[0] if open_ else shaped.shape[0] != reached[0]):
            want = f"at least {list(reached)}" if open_ else f"{list(reached)}"
            raise UsageError(
                f"{p.name} must have the shape {want}, but has {list(self.content.shape)} in {self.path}", p.span
            )
        if self.levels and open_ and reached[0] < USED * shaped.shape[0]:
            size = f"{self.path} has {self.content.size} pixels for {p.name}"
            raise UsageError(f"{size}, the loops reach {math.prod(reached)}: give its sizes with -D", p.span)
        return self._leveled(shaped, p) if self.levels else self._native(shaped, p)

    def _shaped(self, p: Array) -> np.ndarray:
        return self.content.reshape(-1) if len(p.shape) == 1 else self.content

    def _native(self, shaped: np.ndarray, p: Array) -> np.ndarray:
        native = shaped.dtype.newbyteorder("=")
        if p.dtype == "bool" and native == np.uint8:
            return np.ascontiguousarray(shaped != 0)
        if native != np.dtype(p.dtype):
            raise UsageError(f"{p.name} is {p.dtype}, but {shaped.dtype} in {self.path}")
        return np.ascontiguousarray(shaped, native)

    def _leveled(self, shaped: np.ndarray, p: Array) -> np.ndarray:
        if not is_integer(p.dtype):
            return np.ascontiguousarray(shaped, p.dtype)
        whole = np.rint(shaped).astype(np.int64)
        if wrap(int(whole.max()), p.dtype) != whole.max():
            raise UsageError(f"{p.name} is {p.dtype}, but {self.path} has grey levels up to {whole.max()}")
        leveled: np.ndarray = whole.astype(p.dtype)
        return leveled


def read(texts: Sequence[str], codelet: Codelet) -> dict[str, InputFile]:
    """Return the content of the files of ``--data`` by parameter name.

    Raises UsageError if one cannot be read or does not fit.
    """
    names = [p.name for p in codelet.params]
    held: dict[str, InputFile] = {}
    for text in texts:
        found = _read(text)
        unknown = sorted(found.keys() - set(names))
        if unknown:
            whose = "--data " + text if text.startswith(f"{unknown[0]}=") else f"{text} holds {', '.join(unknown)}"
            raise UsageError(f"{whose}: the parameters of {codelet.name} are {', '.join(names)}")
        for name in sorted(found.keys() & held.keys()):
            raise UsageError(f"{name} is in {held[name].path} and in {found[name].path}: give it once")
        held |= found
    return held


def _read(text: str) -> Mapping[str, InputFile]:
    """``FILE`` or ``NAME=FILE``; a file whose own name begins like that is ``./NAME=FILE``."""
    name, equals, rest = text.partition("=")
    if not (equals and name.isidentifier()):
        return _named(Path(text))
    path = Path(rest)
    start = _start(path)
    if images.is_picture(start):
        return {name: InputFile(path, images.read(path), levels=True)}
    if start.startswith(ZIP):
        raise UsageError(f"--data {text}: a .npz file has its names inside: --data {path}")
    if not start.startswith(NUMPY):
        raise UsageError(f"{path} is neither a {images.KINDS} picture nor a .npy file")
    return {name: InputFile(path, _numpy(path, ".npy"))}


def _named(path: Path) -> dict[str, InputFile]:
    start = _start(path)
    if images.is_picture(start) or start.startswith(NUMPY):
        what = "one array without a name" if start.startswith(NUMPY) else "a picture"
        raise UsageError(f"{path} holds {what}: name its parameter, --data NAME={path}")
    return {name: InputFile(path, content) for name, content in _numpy(path, ".npz").items()}


def _start(path: Path) -> bytes:
    if path.exists() and not path.is_file() and not path.is_dir():
        raise UsageError(f"{path} is not a regular file: inputs are read more than once")
    try:
        with path.open("rb") as stream:
            return stream.read(8)
    except FileNotFoundError:
        raise UsageError(f"no such file: {path}") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error


def _numpy(path: Path, kind: str) -> Any:
    """Return the array of a .npy file, or the arrays of a .npz file by name."""
    try:
        return numpy_files.read(path)
    except numpy_files.Damaged as error:
        raise UsageError(f"{path} is not a {kind} file of numbers: {error}") from error


def _solved(extent: Expr | None, size: int) -> tuple[str, int] | None:
    """Return the parameter that an extent is, but for a constant, and its value where the extent is ``size``."""
    match extent:
        case Var(name):
            return name, size
        case Binary("+", Var(name), Const(more)) | Binary("+", Const(more), Var(name)):
            return name, size - int(more)
        case Binary("-", Var(name), Const(less)):
            return name, size + int(less)
    return None
