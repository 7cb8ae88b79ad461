"""Read a C file into a parsed program: macros and parameter values from the command line, headers, declarations."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from looptune.core.errors import LooptuneError, ParseError, UsageError
from looptune.frontend import bare_scops
from looptune.frontend import c_ast as s
from looptune.frontend.c_parser import parse
from looptune.frontend.file_scope import FileScope
from looptune.frontend.other_languages import check_language
from looptune.frontend.preprocess import Preprocessed, preprocess
from looptune.frontend.pure_functions import pure_functions
from looptune.frontend.source_text import decode, is_declared, normalise_line_ends, read_source
from looptune.frontend.symbol_table import Options

Value = str | int | float | None
_C_NAMES = {"float32": "float", "float64": "double"}
_POLYBENCH = {"float32": "DATA_TYPE_IS_FLOAT", "float64": "DATA_TYPE_IS_DOUBLE"}


@dataclass(frozen=True, slots=True)
class Program:
    """A parsed program text with the options under which it was read; ``known_values`` are those of parameters.

    ``numbers`` are all numbers that ``defines`` gives: some are the values of parameters that the text does not name,
    such as those that fields of structs become.
    ``bare`` are the functions that were written around scops outside of functions. ``scope`` has the declarations of
    the file as text.
    """

    source: Preprocessed
    scope: FileScope
    file: s.File
    path: str
    options: Options
    defines: Mapping[str, str]
    known_values: Mapping[str, int | float]
    numbers: Mapping[str, int | float]
    target: str | None
    macros: Mapping[str, str]
    folders: tuple[Path, ...]
    dtype: str | None
    bare: frozenset[str] = frozenset()


def read_program(
    source: str | Path,
    needed: Callable[[Preprocessed], Callable[[str, str], bool]],
    *,
    defines: Mapping[str, Value] | None = None,
    include_dirs: Sequence[str | Path] = (),
    dtype: str | None = None,
    float_literals: bool = False,
    target: str | None = None,
    begin: Mapping[str, str] | None = None,
    tolerant: bool = False,
    first: Sequence[Path] = (),
) -> Program:
    """Return the program of a C file, or of C text; see ``load``, and ``preprocess`` for the last three.

    ``needed(source)`` returns what says of a function that cannot be parsed, by its name and text, whether that is an
    error; other functions are skipped.
    """
    text, path = _read(source)
    if not text.strip():
        raise UsageError(f"empty file: {path}")
    if dtype is not None and dtype not in _C_NAMES:
        raise UsageError(f"invalid dtype {dtype}: choose float32 or float64")
    given = {name: _define(name, value) for name, value in (defines or {}).items()}
    numbers = {name: number for name, v in given.items() if (number := _number(v)) is not None}
    values = {name: number for name, number in numbers.items() if is_declared(text, name) or _is_parameter(text, name)}
    macros = {name: value for name, value in given.items() if name not in values}
    _check_values(text, macros)
    macros |= _data_type(text, dtype, given)
    folders = [Path(folder) for folder in include_dirs]
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"no such folder: {folder}")
    whole = bare_scops.wrapped(text, {})
    try:
        prepared, file = _parsed(whole, path, macros, folders, dtype, needed, begin, tolerant, first)
    except ParseError:
        included = preprocess(whole, path, macros, folders, begin, True, first).sources
        declared = {name for name in macros.keys() & numbers.keys() if _is_in_header(name, path, included)}
        if not declared:
            raise
        values |= {name: numbers[name] for name in declared}
        macros = {name: value for name, value in macros.items() if name not in declared}
        prepared, file = _parsed(whole, path, macros, folders, dtype, needed, begin, tolerant, first)
    bare = bare_scops.bare_scops(text)
    if bare:
        lacking = bare_scops.wrapped(text, bare_scops.undeclared(file, bare))
        prepared, file = _parsed(lacking, path, macros, folders, dtype, needed, begin, tolerant, first)
    return Program(
        prepared, FileScope(prepared), file, path, Options(float_literals, prepared.macros), given, values, numbers,
        target, macros, tuple(folders), dtype, frozenset(map(bare_scops.function_name, bare)),
    )  # fmt: skip


def _parsed(
    text: str, path: str, macros: Mapping[str, str], folders: Sequence[Path], dtype: str | None,
    needed: Callable[[Preprocessed], Callable[[str, str], bool]], begin: Mapping[str, str] | None, tolerant: bool,
    first: Sequence[Path],
) -> tuple[Preprocessed, s.File]:  # fmt: skip
    prepared = preprocess(text, path, macros, folders, begin, tolerant, first)
    try:
        file = parse(prepared, dtype, needed(prepared))
        return prepared, replace(file, pure=pure_functions(prepared.sources.values()))
    except ParseError as error:
        raise hinted(error, prepared) from None


def _read(source: str | Path) -> tuple[str, str]:
    if isinstance(source, str) and any(mark in source for mark in "\n{"):
        return normalise_line_ends(source), "<source>"
    if isinstance(source, str) and not source.strip():
        raise UsageError("the source is empty: give C text with a function, or the path of a C file")
    path = Path(source)
    if path.is_dir():
        raise UsageError(f"a folder, not a C file: {path}")
    check_language(path)
    try:
        data = read_source(path)
    except ParseError as error:
        raise UsageError(error.message) from None
    except FileNotFoundError:
        raise UsageError(f"no such file: {path}") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    return decode(data, str(path)), str(path)


def _define(name: str, value: Value) -> str:
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise UsageError(f"-D needs a name: {name!r} is not an identifier" if name else "-D needs a name")
    return "1" if value is None else str(value)


def _number(text: str) -> int | float | None:
    try:
        return int(text, 0)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return None


def _is_parameter(text: str, name: str) -> bool:
    """Tell whether a function has this parameter, also one that a macro defines."""
    return re.search(rf"\b(?:int|long|unsigned|size_t|float|double)\s+{name}\s*[,)]", text) is not None


def _is_in_header(name: str, main: str, sources: Mapping[str, str]) -> bool:
    """Tell whether a file that the main one includes declares a parameter or a variable of this name."""
    return any(is_declared(text, name) for path, text in sources.items() if path != main)


def _check_values(text: str, macros: Mapping[str, str]) -> None:
    """UsageError where what was to be a parameter's value is no number: as a macro it would rename the parameter."""
    for name, value in macros.items():
        if _is_parameter(text, name):
            raise UsageError(f"-D {name}={value}: the value of the parameter {name} must be a number")


def _data_type(text: str, dtype: str | None, given: Mapping[str, str]) -> dict[str, str]:
    """PolyBench's own switches for the element type, unless the user has set them."""
    if dtype is None:
        return {}
    found = {}
    if not any(name.startswith("DATA_TYPE_IS_") for name in given):
        found[_POLYBENCH[dtype]] = "1"
    if "DATA_TYPE" not in given and re.search(r"\bDATA_TYPE\b", text) and not is_declared(text, "DATA_TYPE"):
        found["DATA_TYPE"] = _C_NAMES[dtype]
    return found


def hinted(error: LooptuneError, source: Preprocessed) -> LooptuneError:
    """Return the error, with the header whose absence may be its cause."""
    if not source.missing or "was not found" in error.message:
        return error
    message = f"{error.message} ({source.missing[0][0]} was not found: add its folder with -I)"
    return type(error)(message, error.span, error.notes)
