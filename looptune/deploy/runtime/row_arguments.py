"""The argument for an array of pointers, ``float **a``: an array of that rank, or a list of its rows.

Rows may be longer than the loops need. Where they do not follow each other already, kernels work on a copy in which
they do, and after the call the elements of the copy of an array that is written go back to the rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from looptune.deploy.runtime.arguments import elements_overlap


class Rows:
    """The rows of one argument; ``array`` is the array that a kernel can use.

    ``shape`` are the extents that the loops need, None for the first one. Raises TypeError and ValueError for rows that
    do not fit, and for two that overlap if the array is ``written``.
    """

    def __init__(self, name: str, given: Any, dtype: str, shape: Sequence[int | None], *, written: bool) -> None:
        parts = tuple(_row_parts(name, given, len(shape)))
        for _, part in parts:
            _check_row_part(name, part, dtype, shape[-part.ndim :], written=written)
        if written:
            _check_rows_apart(name, [row for _, part in parts for row in _rows_of(part)])
        self.parts = [(at, part[tuple(slice(n) for n in shape[-part.ndim :])]) for at, part in parts]
        if [at for at, _ in self.parts] == [()]:
            self.array = self.parts[0][1]
            return
        counts = [max((at[k] + 1 for at, _ in parts), default=0) for k in range(len(parts[0][0]) if parts else 1)]
        inner = [0 if n is None else n for n in shape[len(counts) :]]
        if len(parts) != np.prod(counts):
            raise ValueError(f"{name} must have as many rows in each part")
        self.array = np.empty((*counts, *inner), dtype)
        for at, part in self.parts:
            self.array[at] = part

    def write_back(self) -> None:
        """Copy the elements of ``array`` to the rows that were given."""
        for at, part in self.parts:
            if at:
                part[...] = self.array[at]


def check_overlaps(rows: Mapping[str, Rows], given: Mapping[str, Any], written: Collection[str]) -> None:
    """Raise ValueError if a row shares memory with another argument, and one of the two is written."""
    parts = {name: [array] if isinstance(array, np.ndarray) else [] for name, array in given.items()}
    parts |= {name: [part for _, part in held.parts] for name, held in rows.items()}
    for name in rows:
        for other in parts:
            matters = other != name and {name, other} & {*written}
            if matters and any(np.shares_memory(a, b) for a in parts[name] for b in parts[other]):
                raise ValueError(f"{name} overlaps {other}, and one of them is written: pass a copy of one")


def _row_parts(
    name: str, given: Any, rank: int, at: tuple[int, ...] = ()
) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    """Yield the arrays of which the argument consists."""
    if isinstance(given, np.ndarray) and given.ndim == rank:
        yield at, given
        return
    if not isinstance(given, list | tuple) or rank < 2:
        what = f"an array of rank {given.ndim}" if isinstance(given, np.ndarray) else type(given).__name__
        raise TypeError(f"{name} must be an array or a list of its rows, got {what}{' as a row' if at else ''}")
    for k, row in enumerate(given):
        yield from _row_parts(name, row, rank - 1, (*at, k))


def _check_row_part(name: str, part: np.ndarray, dtype: str, shape: Sequence[int | None], *, written: bool) -> None:
    if part.dtype != np.dtype(dtype):
        raise TypeError(f"{name} must have rows of {dtype}, got {part.dtype}")
    if any(want is not None and have < want for want, have in zip(shape, part.shape, strict=True)):
        declared = "".join(f"[{'' if n is None else n}]" for n in shape)
        raise ValueError(f"{name} must have the shape {declared} or more, got {list(part.shape)}")
    if written and not part.flags.writeable:
        raise ValueError(f"{name} is written, but the array given is read-only: pass a copy")


def _rows_of(array: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the rows of an array, or the array where none of them can overlap."""
    if array.ndim < 2 or array.flags.c_contiguous:
        yield array
        return
    for row in array:
        yield from _rows_of(row)


def _check_rows_apart(name: str, rows: Sequence[np.ndarray]) -> None:
    if any(map(elements_overlap, rows)):
        raise ValueError(f"{name} is written, but elements of a row share memory: pass a copy")
    before: list[tuple[int, np.ndarray]] = []
    ends = sorted(((*_memory_of(row), k) for k, row in enumerate(rows) if row.size))
    for start, end, k in ends:
        before = [(last, other) for last, other in before if last > start]
        if any(np.shares_memory(rows[k], other) for _, other in before):
            raise ValueError(f"two rows of {name} overlap: pass rows that do not share memory")
        before.append((end, rows[k]))


def _memory_of(row: np.ndarray) -> tuple[int, int]:
    """Return the addresses between which the elements are."""
    moves = [(n - 1) * stride for n, stride in zip(row.shape, row.strides, strict=True)]
    start = row.ctypes.data + sum(m for m in moves if m < 0)
    return start, start + sum(map(abs, moves)) + row.itemsize
