"""The C and C++ files of a program: given one by one, as a folder, or as the compile commands of a build system."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from looptune.core.errors import UsageError
from looptune.frontend.other_languages import CXX_SOURCES

_SUFFIXES = CXX_SOURCES | {".c"}
Value = str | int | float | None


@dataclass(frozen=True, slots=True)
class Source:
    """A file with the macros and the include folders with which it is compiled; ``flags`` are all its flags."""

    path: Path
    defines: tuple[tuple[str, Value], ...] = ()
    include_dirs: tuple[Path, ...] = ()
    flags: tuple[str, ...] = ()


def sources(paths: Iterable[Path], defines: Mapping[str, Value], include_dirs: Sequence[Path]) -> list[Source]:
    """Return the C and C++ files of files, folders and ``compile_commands.json`` files, each file once.

    Of a folder, these are the ``.c`` and ``.cpp`` files in it and below it (also ``.cc``, ``.cxx``); the folder and the
    file's own folder are searched for headers. Raises UsageError where there is no such file, or none in the folder.
    """
    found: dict[Path, Source] = {}
    given = (tuple(defines.items()), tuple(include_dirs))
    for path in paths:
        for source in _sources(path, *given):
            found.setdefault(source.path, source)
    return list(found.values())


def _sources(path: Path, defines: tuple[tuple[str, Value], ...], folders: tuple[Path, ...]) -> Iterator[Source]:
    if path.is_dir():
        files = sorted(
            p for p in path.rglob("*")
            if p.suffix in _SUFFIXES and not any(part.startswith(".") for part in p.relative_to(path).parts[:-1])
        )  # fmt: skip
        if not files:
            raise UsageError(f"no .c or .cpp file in {path}")
        own = dict.fromkeys(p.parent for p in sorted(path.rglob("*.h")))
        # <name/header.h> of include/name/header.h
        headers = (*own, *(f.parent for f in own if f != path))
        for file in files:
            yield _with_folders(Source(file, defines), (*folders, file.parent, path, *headers))
    elif path.suffix == ".json":
        yield from (
            _compiled(entry, path, defines, folders)
            for entry in _commands(path)
            if Path(entry["file"]).suffix in _SUFFIXES
        )
    elif path.exists():
        yield _with_folders(Source(path, defines), (*folders, path.parent))
    else:
        raise UsageError(f"no such file: {path}")


def _with_folders(source: Source, folders: Iterable[Path]) -> Source:
    unique = tuple(dict.fromkeys(folders))
    flags = (*(f"-D{name}" if value is None else f"-D{name}={value}" for name, value in source.defines),
             *(f"-I{folder}" for folder in unique))  # fmt: skip
    return Source(source.path, source.defines, unique, flags)


def _commands(path: Path) -> list[dict[str, Any]]:
    """Return the entries of a compilation database. Raises UsageError for a file that is none."""
    try:
        entries = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {error}") from None
    if not isinstance(entries, list) or not all(
        isinstance(e, dict) and "file" in e and ("command" in e or "arguments" in e) for e in entries
    ):
        raise UsageError(f"{path} is no compilation database: it must be a list of objects with file and command")
    return entries


def _compiled(
    entry: Mapping[str, Any], database: Path, defines: tuple[tuple[str, Value], ...], folders: tuple[Path, ...]
) -> Source:
    """Return the file of one entry, with the macros and folders of its command."""
    base = database.parent / entry.get("directory", ".")
    words = list(entry.get("arguments") or shlex.split(entry["command"]))[1:]
    found: dict[str, list[str]] = {"-D": [], "-I": [], "-isystem": [], "-iquote": []}
    flags: list[str] = []
    while words:
        word = words.pop(0)
        if word in ("-o", "-MF", "-MT", "-MQ") and words:
            words.pop(0)
        elif word in found and words:
            found[word].append(words.pop(0))
        elif word[:2] in ("-D", "-I") and len(word) > 2:
            found[word[:2]].append(word[2:])
        elif word not in ("-c", "-MD", "-MMD", "-MP") and not (word == entry["file"] or Path(word).suffix in _SUFFIXES):
            flags.append(word)
    macros = (*(_macro(text) for text in found["-D"]), *defines)
    searched = [base / name for kind in ("-iquote", "-I", "-isystem") for name in found[kind]]
    path = base / entry["file"]
    made = _with_folders(Source(path, macros), (*(f for f in searched if f.is_dir()), *folders, path.parent))
    return Source(made.path, made.defines, made.include_dirs, (*made.flags, *flags))


def _macro(text: str) -> tuple[str, Value]:
    name, sign, value = text.partition("=")
    return name, value if sign else None
