"""C text to loop IR: ``load`` reads a file and gives its codelet, with everything the text says of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from looptune.errors import UsageError
from looptune.frontend import calls, select
from looptune.frontend import syntax as s
from looptune.frontend.c import parse
from looptune.frontend.codelet import build
from looptune.frontend.hmpp import size_of
from looptune.frontend.preprocess import Preprocessed, declared, decode, normalised, preprocess
from looptune.frontend.scope import Options
from looptune.frontend.select import Chosen, Region
from looptune.ir import Array, Codelet, Directive, Loop, Node, Scalar, Var, While
from looptune.rewrite import rewrite
from looptune.simplify import is_integer
from looptune.source import Span

__all__ = ["Unit", "load", "load_all"]

Value = str | int | float | None
_C_NAMES = {"float32": "float", "float64": "double"}
_POLYBENCH = {"float32": "DATA_TYPE_IS_FLOAT", "float64": "DATA_TYPE_IS_DOUBLE"}


@dataclass(frozen=True, slots=True)
class Unit:
    """A codelet and the text it comes from.

    ``values`` is what is known of scalar parameters by name. ``path`` and ``text`` are the file the codelet stands
    in ("<source>" for text), unpreprocessed; ``text[body[0]:body[1]]`` is its body with both braces, or what stands
    between the ``#pragma scop`` and ``#pragma endscop`` lines.
    """

    codelet: Codelet
    values: Mapping[str, int | float]
    path: str
    text: str
    body: tuple[int, int]
    defines: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Program:
    source: Preprocessed
    file: s.File
    path: str
    options: Options
    defines: Mapping[str, str]
    given: Mapping[str, int | float]


def load(
    source: str | Path,
    *,
    kernel: str | None = None,
    defines: Mapping[str, Value] | None = None,
    include_dirs: Sequence[str | Path] = (),
    dtype: str | None = None,
    target: str | None = None,
    float_literals: bool = False,
) -> Unit:
    """The codelet of a C file, or of C text (a string with a newline in it).

    ``kernel`` names a function or an hmpp label. ``defines`` are -D macros, or values of parameters the text declares.
    ``dtype`` ("float32", "float64") replaces both float and double in declarations; constants keep C's types, unless
    ``float_literals`` makes the unsuffixed ones float. Directives written for another ``target`` are left out.

    Raises UsageError for a file, option or codelet that is not there, ParseError and UnsupportedError for the C.
    """
    program = _program(source, kernel, defines, include_dirs, dtype, float_literals)
    return _unit(program, select.choose(program.file, kernel, program.path), target)


def load_all(
    source: str | Path,
    *,
    defines: Mapping[str, Value] | None = None,
    include_dirs: Sequence[str | Path] = (),
    dtype: str | None = None,
    target: str | None = None,
    float_literals: bool = False,
) -> tuple[Unit, ...]:
    """Every ``#pragma hmpp … codelet`` of a file in the order of their first calls, or the one that ``load`` gives."""
    program = _program(source, None, defines, include_dirs, dtype, float_literals)
    chosen = select.codelets(program.file)
    if not chosen:
        chosen = (select.choose(program.file, None, program.path),)
    called = [n.name for f in program.file.functions for n in s.every(f.body) if isinstance(n, s.Invoke)]
    ordered = sorted(chosen, key=lambda c: called.index(c.function.name) if c.function.name in called else len(called))
    return tuple(_unit(program, c, target) for c in ordered)


def _program(
    source: str | Path,
    kernel: str | None,
    defines: Mapping[str, Value] | None,
    include_dirs: Sequence[str | Path],
    dtype: str | None,
    float_literals: bool,
) -> _Program:
    text, path = _read(source)
    if not text.strip():
        raise UsageError(f"empty file: {path}")
    if dtype is not None and dtype not in _C_NAMES:
        raise UsageError(f"dtype is float32 or float64, not {dtype}")
    given = {name: _define(name, value) for name, value in (defines or {}).items()}
    values = {name: number for name, v in given.items() if (number := _number(v)) is not None and declared(text, name)}
    macros = {name: value for name, value in given.items() if name not in values}
    _check_values(text, macros)
    macros |= _data_type(text, dtype, given)
    folders = [Path(folder) for folder in include_dirs]
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"no such folder: {folder}")
    prepared = preprocess(text, path, macros, folders)
    file = parse(prepared, dtype, select.needed(prepared, kernel))
    return _Program(prepared, file, path, Options(float_literals, prepared.macros), given, values)


def _read(source: str | Path) -> tuple[str, str]:
    if isinstance(source, str) and "\n" in source:
        return normalised(source), "<source>"
    path = Path(source)
    if path.is_dir():
        raise UsageError(f"a folder, not a C file: {path}")
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise UsageError(f"no such file: {path}") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    return decode(data, str(path)), str(path)


def _define(name: str, value: Value) -> str:
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise UsageError(f"-D needs a name: {name!r} is none" if name else "-D needs a name")
    return "1" if value is None else str(value)


def _number(text: str) -> int | float | None:
    try:
        return int(text, 0)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return None


def _check_values(text: str, macros: Mapping[str, str]) -> None:
    """UsageError where what was to be a parameter's value is no number: as a macro it would rename the parameter."""
    for name, value in macros.items():
        if re.search(rf"\b(?:int|long|unsigned|size_t|float|double)\s+{name}\s*[,)]", text):
            raise UsageError(f"-D {name}={value}: the value of the parameter {name} is a number")


def _data_type(text: str, dtype: str | None, given: Mapping[str, str]) -> dict[str, str]:
    """PolyBench's own switches for the element type, unless the user has set them."""
    if dtype is None:
        return {}
    found = {}
    if not any(name.startswith("DATA_TYPE_IS_") for name in given):
        found[_POLYBENCH[dtype]] = "1"
    if "DATA_TYPE" not in given and re.search(r"\bDATA_TYPE\b", text) and not declared(text, "DATA_TYPE"):
        found["DATA_TYPE"] = _C_NAMES[dtype]
    return found


def _unit(program: _Program, chosen: Chosen, target: str | None) -> Unit:
    codelet, region = build(program.file, chosen, program.options)
    if target is not None:
        codelet = _for_target(codelet, target)
    path = chosen.function.open.file
    text = program.source.sources[path]
    scalars = {p.name: p for p in codelet.params if isinstance(p, Scalar)}
    own = {p.name for p in chosen.function.params}
    values = calls.initial(program.file, {n: p for n, p in scalars.items() if n not in own}, program.options)
    values |= _sizes(codelet, chosen)
    values |= calls.known(program.file, chosen.function, program.options, program.given)
    known = {name: _typed(scalars[name], value) for name, value in values.items() if name in scalars}
    return Unit(codelet, known, path, text, _extent(text, chosen.function, region), program.defines)


def _typed(param: Scalar, value: int | float) -> int | float:
    """A value as its parameter holds it; only -D can give an integer a value that is none."""
    if not is_integer(param.dtype):
        return float(value)
    if int(value) != value:
        raise UsageError(f"{param.name} is an integer, not {value}")
    return int(value)


def _for_target(codelet: Codelet, target: str) -> Codelet:
    """Without the directives that are written for other targets."""

    def holds(directive: Directive) -> bool:
        wanted = directive.target
        return wanted is None or target.lower() in re.split(r"[\s:,;]+", wanted.lower())

    def rule(node: Node) -> Node | None:
        match node:
            case Loop() | While():
                kept = tuple(d for d in node.directives if holds(d))
                return node if len(kept) == len(node.directives) else replace(node, directives=kept)
        return None

    kept = tuple(d for d in codelet.directives if holds(d))
    return replace(codelet, body=rewrite(rule, codelet.body), directives=kept)


def _sizes(codelet: Codelet, chosen: Chosen) -> dict[str, int]:
    """Parameters that are an array's declared extent, where an hmpp clause gives that extent as a number."""
    clauses = () if chosen.directive is None else chosen.directive.clauses
    found: dict[str, int] = {}
    for position, param in enumerate(codelet.params):
        sizes = size_of(clauses, position, param.name)
        if isinstance(param, Array) and len(sizes) == len(param.shape):
            for extent, text in zip(param.shape, sizes, strict=True):
                if isinstance(extent, Var) and text.isdigit():
                    found[extent.name] = int(text)
    return found


def _extent(text: str, function: s.Function, region: Region | None) -> tuple[int, int]:
    """The offsets of the text that the codelet's body is."""
    starts = [0, *(m.end() for m in re.finditer("\n", text)), len(text) + 1]

    def offset(span: Span) -> int:
        return starts[span.line - 1] + span.col - 1

    if region is None:
        return offset(function.open), offset(function.close) + 1
    return min(starts[region.begin.line], len(text)), starts[region.end.line - 1]
