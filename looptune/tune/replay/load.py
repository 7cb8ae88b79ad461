"""Read finished searches: the cost of each configuration, and the time that measuring it took.

    results.sqlite      ours: a recording for each kernel, size, type, target and device
    *.csv               ours, as ``looptune export`` writes it
    *.json              T4 results, schema 1.0.0 and 1.1.0
    *.json              a Kernel Tuner cache file, also one that its writer did not close
    *.wisdom            a Kernel Launcher wisdom file

The space of a foreign file is what it contains: the product of its parameters less what its constraints exclude.
UsageError says which file is none of these, or what in it cannot be read, and where.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from looptune.core.cache_file import read_file
from looptune.core.errors import UsageError
from looptune.tune.formats import csv, json_cursor, kernel_tuner, t4, wisdom
from looptune.tune.store.searches import Recording, searches
from looptune.tune.store.store import Store

_LARGEST = 2**30
"""Bytes of a recording."""
_UNCLOSED = ("", "}}", "}\n}")
"""A Kernel Tuner cache that is still being written lacks its last two braces."""


def read(path: Path) -> list[Recording]:
    """Return the recordings of a file that hold at least two different times, by name."""
    return [r for r in all_recordings(path) if len({m.cost_us for m in r.measured if m.is_complete} - {None}) > 1]


def all_recordings(path: Path) -> list[Recording]:
    """Return all recordings of a file, including those with fewer than two different times.

    Raises UsageError if the file cannot be read.
    """
    try:
        data = read_file(path, _LARGEST)
        ours = data.startswith(b"SQLite format 3\0")
        text = "" if ours else data.decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", "it is neither a store nor text")
        raise UsageError(f"cannot read {path}: {reason}") from error
    return _stored(path) if ours else _foreign(path, text)


def select(paths: Sequence[Path], kernels: Sequence[str] = ()) -> list[Recording]:
    """Return the recordings of several files, those of ``kernels`` where names are given.

    Raises UsageError where there are none.
    """
    found = [recording for path in paths for recording in read(path)]
    having = ", ".join(dict.fromkeys(r.kernel for r in found))
    unknown = [k for k in kernels if all(k not in (r.kernel, r.name) for r in found)]
    if unknown:
        raise UsageError(f"no search of {unknown[0]} was recorded; there are {having if having else 'none'}")
    if not found:
        raise UsageError(f"{', '.join(map(str, paths))}: no search that timed two versions is recorded there")
    return [r for r in found if not kernels or r.kernel in kernels or r.name in kernels]


def _stored(path: Path) -> list[Recording]:
    with Store.read(path) as store:
        return [search.recording for search in searches(store.rows())]


def _foreign(path: Path, text: str) -> list[Recording]:
    first = text.partition("\n")[0]
    if csv.is_header(first):
        return csv.read(path, text)
    if path.suffix == ".wisdom" or '"tunable_parameters"' in first:
        header = json_cursor.parse(path, first)
        if wisdom.is_header(header):
            return wisdom.read(header, text)
    file = json_cursor.parse(path, text, _UNCLOSED)
    match file.value:
        case {"cache": _, "tune_params_keys": _}:
            return [kernel_tuner.read(file)]
        case {"results": _}:
            return [t4.read(file)]
    raise UsageError(f"{path} is neither T4 results, a Kernel Tuner cache nor Kernel Launcher wisdom")
