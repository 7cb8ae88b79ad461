"""Choose the format of a file of searches: which files an export makes, and what a file that is read holds.

    gemm float32 on two devices   ──▶   gemm-float32-nvidia-h200.t4.json   gemm-float32-nvidia-h100.t4.json

A name is that of the search, in lower case, with - for what a file name should not have: it says as much as tells the
searches of one database apart. Read are:

    results.sqlite      ours: a recording for each kernel, size, type, target and device
    *.csv               ours, as ``looptune export`` writes it
    *.json              T4 results, schema 1.0.0 and 1.1.0
    *.json              a Kernel Tuner cache file, one whose writer did not close it too
    *.json              results of KTT, in its own JSON
    *.wisdom            a Kernel Launcher wisdom file

Each may be compressed by gzip, whatever it is called. Of a foreign file the space is what it holds: the product of its
parameters less what its constraints forbade. UsageError says which file is none of these, or what
in it cannot be read, and where.
"""

from __future__ import annotations

import errno
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from looptune.core.cache_file import read_file, replace_text
from looptune.core.errors import UsageError
from looptune.tune.formats import csv, json_cursor, kernel_tuner, ktt, t1, t4, wisdom
from looptune.tune.store.searches import Recording, Search, searches
from looptune.tune.store.store import Store

_LARGEST = 2**30
"""Bytes of a recording."""
_GZIP = b"\x1f\x8b"
_UNCLOSED = ("", "}}", "}\n}")
"""A Kernel Tuner cache that is still being written lacks its last two braces."""


def select_searches(found: Sequence[Search], kernel: str | None, db: Path) -> list[Search]:
    """Return the searches of a kernel, the search of a name, or all. Raises UsageError if there are none."""
    having = ", ".join(search.name for search in found)
    if not found:
        raise UsageError(f"{db} contains no search: no version was measured")
    wanted = [s for s in found if kernel is None or kernel in (s.context.kernel, s.name)]
    if not wanted:
        raise UsageError(f"no search of {kernel} in {db}: it has {having}")
    return wanted


def export_texts(found: Sequence[Search], how: str, commands: Mapping[str, str]) -> dict[str, str]:
    """Return the text of each file that ``how`` makes of the searches, by file name."""
    if how == "kernel-launcher":
        groups: dict[str, list[Search]] = {}
        for search in found:
            groups.setdefault(wisdom.key(search), []).append(search)
        return {f"{key}.wisdom": wisdom.text(group) for key, group in groups.items()}
    names = _names(found)
    match how:
        case "t4":
            return {f"{name}.t4.json": t4.text(s) for name, s in zip(names, found, strict=True)}
        case "t1":
            return {f"{n}.t1.json": t1.text(s, _command(s, commands)) for n, s in zip(names, found, strict=True)}
        case "kernel-tuner":
            return {f"{name}.cache.json": kernel_tuner.text(s) for name, s in zip(names, found, strict=True)}
    raise AssertionError(f"no format {how}")


def write(files: Mapping[str, str], output: Path | None) -> list[Path]:
    """Write the files and return their paths.

    Raises UsageError where they cannot be written, or where there are several and no folder is named.
    """
    several = len(files) > 1
    if several and (output is None or output.is_file() or (output.suffix and not output.is_dir())):
        where = "standard output" if output is None else str(output)
        raise UsageError(
            f"{len(files)} files would be made ({', '.join(_few(files))}), and {where} takes one: choose one with "
            "--kernel, or name a folder with -o"
        )
    assert output is not None, "one file may be printed instead"
    folder = several or output.is_dir()
    try:
        (output if folder else output.parent).mkdir(parents=True, exist_ok=True)
        paths = [output / name if folder else output for name in files]
        for path, text in zip(paths, files.values(), strict=True):
            replace_text(path, text)
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror}") from error
    return paths


def _few(names: Iterable[str]) -> list[str]:
    names = list(names)
    return names if len(names) <= 3 else [*names[:2], "…"]


def _command(search: Search, commands: Mapping[str, str]) -> str:
    return next((commands[e.row.sweep] for e in search.entries if e.row.sweep in commands), "")


def _names(found: Sequence[Search]) -> list[str]:
    """Return the names of the searches; where two are equal, the hash of the context is appended."""
    plain = [re.sub(r"[^\w=]+", "-", s.name.lower(), flags=re.ASCII).strip("-") for s in found]
    return [
        name if plain.count(name) == 1 else f"{name}-{search.context.hash[:8]}"
        for name, search in zip(plain, found, strict=True)
    ]


def read(path: Path) -> list[Recording]:
    """Return the recordings of a file that hold at least two different times, by name."""
    return [r for r in all_recordings(path) if len({m.cost_us for m in r.measured if m.is_complete} - {None}) > 1]


def all_recordings(path: Path) -> list[Recording]:
    """Return all recordings of a file, including those with fewer than two different times.

    Raises UsageError if the file cannot be read.
    """
    try:
        packed = read_file(path, _LARGEST)
        data = _unpacked(packed)
        ours = data.startswith(b"SQLite format 3\0")
        text = "" if ours else data.decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", "it is neither a store nor text")
        raise UsageError(f"cannot read {path}: {reason}") from error
    except zlib.error as error:
        raise UsageError(f"cannot read {path}: it is compressed by gzip, and damaged") from error
    if ours and data is not packed:
        with TemporaryDirectory() as folder:
            unpacked = Path(folder) / "results.sqlite"
            unpacked.write_bytes(data)
            return _stored(unpacked)
    return _stored(path) if ours else _foreign(path, text)


def _unpacked(data: bytes) -> bytes:
    """Return the content of a file that gzip compressed, else ``data``.

    Raises OSError if there are more than ``_LARGEST`` bytes, and zlib.error if the file is damaged.
    """
    if not data.startswith(_GZIP):
        return data
    parts, left, rest = list[bytes](), _LARGEST + 1, data
    while rest:  # of several members, as bgzip and cat make them
        reader = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        parts.append(reader.decompress(rest, left))
        left -= len(parts[-1])
        if left <= 0:
            raise OSError(errno.EFBIG, f"it has more than {_LARGEST:,} bytes")
        if not reader.eof:
            raise zlib.error("the file ends early")
        rest = reader.unused_data.lstrip(b"\0")
    return b"".join(parts)


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
        case {"Metadata": _, "Results": _}:
            return [ktt.read(file)]
    raise UsageError(f"{path} is neither T4 results, a Kernel Tuner cache, results of KTT nor Kernel Launcher wisdom")
