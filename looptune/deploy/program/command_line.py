"""The command line of a C compiler, as ``looptune cc`` reads it: sources, what is linked, and what is passed on.

app.c util.c -O2 -DN=512 -Iinclude -lm -o app
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from looptune.core.errors import UsageError

_JOINED = ("-D", "-U", "-I", "-L", "-l")
_SEPARATE = frozenset((
    "-include", "-imacros", "-isystem", "-iquote", "-idirafter", "-isysroot", "-iprefix", "-Xlinker", "-Xassembler",
    "-Xpreprocessor", "-T", "-u", "-z", "-MF", "-MT", "-MQ", "-x", "--param", "-arch", "-target", "-aux-info", "-A",
))  # fmt: skip
"""Options of gcc whose value is the next argument."""
_OF_PREPROCESSOR = re.compile(
    r"-(?:D|U|I|M|W|w$|std=|ansi$|pedantic|trigraphs$|include$|imacros$|isystem|iquote|idirafter|x$|nostdinc|undef$"
    r"|P$|C$|CC$|fsyntax-only$)"
)
"""Options for the user's own text, which generated files are compiled without."""
_OF_LINKER = re.compile(
    r"-(?:L|Wl,|Xlinker$|T$|u$|z$|static|shared$|nostdlib$|nostartfiles$|nodefaultlibs$|rdynamic$|s$|pie$|no-pie$|r$)"
)


@dataclass(frozen=True, slots=True)
class CompilerCommand:
    """A command line of a C compiler.

    ``arguments`` are its words. ``sources`` are the C files, as they are spelled, also those that ``-x c`` makes C;
    ``compiling`` are the options of compilation and ``linking`` those of the linker, with ``inputs`` in their order:
    sources, objects, archives and libraries, and files of other languages with the ``-x`` around them. ``output`` is
    the file that -o names. ``dependencies`` are the options that write rules for make. ``stops`` is "-c", "-S", "-E" or
    "".
    """

    arguments: tuple[str, ...]
    sources: tuple[str, ...]
    inputs: tuple[str, ...]
    compiling: tuple[str, ...]
    linking: tuple[str, ...]
    include_dirs: tuple[Path, ...] = ()
    dependencies: tuple[str, ...] = ()
    output: str = ""
    stops: str = ""

    @property
    def first_files(self) -> Mapping[str, Path]:
        """Return the files that ``-include`` names, by what it says, that a folder of the program has.

        They are looked for as the compiler does: in the working directory, then in the folders of headers. Headers of
        the system are not among them.
        """
        named = [value for item, value in itertools.pairwise(self.compiling) if item == "-include"]
        paths = {name: [Path(name), *(folder / name for folder in self.include_dirs)] for name in named}
        found = {name: next((p for p in tried if p.is_file()), None) for name, tried in paths.items()}
        return {name: path for name, path in found.items() if path is not None and '"' not in str(path.absolute())}

    def with_first_files(self, instead: Mapping[str, str]) -> tuple[str, ...]:
        """Return the options of compilation, with other files for those that ``-include`` names; "" for none."""
        made: list[str] = []
        items = iter(self.compiling)
        for item in items:
            value = [next(items)] if item in _SEPARATE else []
            if item == "-include":
                value = [instead.get(name, name) for name in value]
            made += [item, *value] if value != [""] else []
        return tuple(made)

    @property
    def code_options(self) -> tuple[str, ...]:
        """Return the options that decide how machine code is made, for generated files."""
        kept: list[str] = []
        items = iter(self.compiling)
        for item in items:
            value = [next(items)] if item in _SEPARATE else []
            if _OF_PREPROCESSOR.match(item) is None:
                kept += [item, *value]
        return tuple(kept)


def parse(arguments: Sequence[str]) -> CompilerCommand:
    """Return the parsed command line. Raises UsageError if it has no input, or an option without its value."""
    sources: list[str] = []
    inputs: list[str] = []
    compiling: list[str] = []
    linking: list[str] = []
    dependencies: list[str] = []
    folders: list[Path] = []
    output = stops = language = ""
    items = _expanded(arguments)
    items = [part for item in items for part in _separated(item)]
    k = 0
    while k < len(items):
        item, k = items[k], k + 1
        needs = item in _SEPARATE or item in _JOINED or item == "-o"
        value = items[k] if needs and k < len(items) else ""
        if needs and k >= len(items):
            raise UsageError(f"{item} needs a value")
        k += needs
        match item:
            case "-o":
                output = value
            case "-c" | "-S" | "-E":
                stops = item
            case _ if item.startswith("-o"):
                output = item[2:]
            case "-x":
                language = "" if value == "none" else value
            case _ if not item.startswith("-") or item == "-":
                is_source = item != "-" and (language == "c" or (not language and item.endswith(".c")))
                inputs += [item] if is_source or not language else ["-x", language, item, "-x", "none"]
                sources += [item] if is_source else []
            case _:
                whole = [item + value] if item in _JOINED else [item, *([value] if needs else [])]
                if whole[0].startswith("-l"):
                    inputs += whole
                elif _OF_LINKER.match(whole[0]) is not None:
                    linking += whole
                elif re.match(r"-M(?!ap)", whole[0]):
                    dependencies += whole
                else:
                    compiling += whole
                _add_folder(whole, folders)
    if not inputs:
        raise UsageError("no input file: give the C files of a program, as for gcc")
    return CompilerCommand(
        tuple(items), tuple(sources), tuple(inputs), tuple(compiling), tuple(linking), tuple(folders),
        tuple(dependencies), output, stops,
    )  # fmt: skip


def is_question(arguments: Sequence[str]) -> bool:
    """Tell whether a command line builds nothing: it asks about the compiler, for preprocessed text or errors."""
    asks = re.compile(r"--version$|--target-help$|-dump|-print-|-###$|-E$|-MM?$|-fsyntax-only$")
    pairs = itertools.pairwise(("", *arguments))
    return any(asks.match(item) is not None and before != "-Xlinker" for before, item in pairs) or (
        "-v" in arguments and all(item.startswith("-") for item in arguments)
    )


def library_files(command: CompilerCommand) -> Iterator[Path]:
    """Yield the objects and archives that a command links, also those that ``-l`` finds in a folder of ``-L``."""
    folders = [Path(option[2:]) for option in command.linking if option.startswith("-L")]
    for item in command.inputs:
        if not item.startswith("-l"):
            yield Path(item)
            continue
        names = [f"lib{item[2:]}.so", f"lib{item[2:]}.a"]
        found = next((f / name for f in folders for name in names if (f / name).is_file()), None)
        if found is not None:
            yield found


def _expanded(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with those of files, ``@file``, in their place."""
    found: list[str] = []
    for item in arguments:
        path = Path(item[1:])
        if item.startswith("@") and path.is_file():
            found += _expanded(shlex.split(path.read_text(errors="surrogateescape")))
        else:
            found.append(item)
    return found


def _separated(item: str) -> list[str]:
    """Return ``-includeFILE`` and ``-xLANGUAGE`` as two words each, and any other argument as it is."""
    found = re.fullmatch(r"-(include|imacros|x)([^-].*)", item, re.DOTALL)
    return [item] if found is None else [f"-{found[1]}", found[2]]


def _add_folder(option: Sequence[str], folders: list[Path]) -> None:
    """Add a folder in which headers are looked up."""
    joined = re.fullmatch(r"(-I|-isystem|-iquote|-idirafter)(.*)", option[0], re.DOTALL)
    named = None if joined is None else joined[2] or "".join(option[1:])
    if named and Path(named).is_dir():
        folders.append(Path(named))
