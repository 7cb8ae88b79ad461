"""Which files an export makes, and what they are called.

    gemm float32 on two devices   ──▶   gemm-float32-nvidia-h200.t4.json   gemm-float32-nvidia-h100.t4.json

A name is that of the search, in lower case, with - for what a file name should not have: it says as much as tells the
searches of one database apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from looptune.core.cache_file import replace_text
from looptune.core.errors import UsageError
from looptune.tune.formats import kernel_tuner, t1, t4, wisdom

if TYPE_CHECKING:
    from looptune.tune.store.searches import Search


def select_searches(found: Sequence[Search], kernel: str | None, db: Path) -> list[Search]:
    """Return the searches of a kernel, the search of a name, or all. Raises UsageError if there are none."""
    having = ", ".join(search.name for search in found)
    if not found:
        raise UsageError(f"{db} contains no search: no version was measured")
    wanted = [s for s in found if kernel is None or kernel in (s.context.kernel, s.name)]
    if not wanted:
        raise UsageError(f"no search of {kernel} in {db}: it has {having}")
    return wanted


def export_texts(searches: Sequence[Search], how: str, commands: Mapping[str, str]) -> dict[str, str]:
    """Return the text of each file that ``how`` makes of the searches, by file name."""
    if how == "kernel-launcher":
        groups: dict[str, list[Search]] = {}
        for search in searches:
            groups.setdefault(wisdom.key(search), []).append(search)
        return {f"{key}.wisdom": wisdom.text(group) for key, group in groups.items()}
    names = _names(searches)
    match how:
        case "t4":
            return {f"{name}.t4.json": t4.text(s) for name, s in zip(names, searches, strict=True)}
        case "t1":
            return {f"{n}.t1.json": t1.text(s, _command(s, commands)) for n, s in zip(names, searches, strict=True)}
        case "kernel-tuner":
            return {f"{name}.cache.json": kernel_tuner.text(s) for name, s in zip(names, searches, strict=True)}
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


def _names(searches: Sequence[Search]) -> list[str]:
    """Return the names of the searches; where two are equal, the hash of the context is appended."""
    plain = [re.sub(r"[^\w=]+", "-", s.name.lower(), flags=re.ASCII).strip("-") for s in searches]
    return [
        name if plain.count(name) == 1 else f"{name}-{search.context.hash[:8]}"
        for name, search in zip(plain, searches, strict=True)
    ]
