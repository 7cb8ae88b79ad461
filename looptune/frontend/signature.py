"""The C declaration of the function around a codelet, so that a built function can replace it.

    void f(int n, const real *restrict x)   ─▶   typedef float real;  void f(int n, const real *restrict x)

Variables at file scope that the codelet uses are declared ``extern``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from looptune.core.errors import UsageError
from looptune.frontend import c_ast
from looptune.frontend.c_types import HEADER_TYPES, pointer_dimensions
from looptune.frontend.name_resolution import base
from looptune.frontend.struct_parameters import (
    array_line,
    field_lines,
    has_struct,
    parameter_name,
    result_type,
    type_lines,
)
from looptune.ir.c_printer import C_TYPES, declaration
from looptune.ir.nodes import Array, Codelet, Scalar

if TYPE_CHECKING:
    from looptune.frontend.normalize.field_variable import FieldVariable

_WORDS = (
    "signed",
    "unsigned",
    "char",
    "short",
    "int",
    "long",
    "float",
    "double",
    "_Float16",
    "__bf16",
    "void",
    "enum",
    "struct",
    "union",
    "_Bool",
)
_HEADERS = {"size_t": "stddef.h", "ptrdiff_t": "stddef.h", "wchar_t": "stddef.h", "bool": "stdbool.h",
            "ssize_t": "sys/types.h", "time_t": "time.h", "clock_t": "time.h", "off_t": "sys/types.h"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Head:
    """The declaration of a function; ``text`` has no semicolon.

    ``before`` are the declarations that it needs, ``headers`` the C headers; ``start`` and ``end`` are its first
    declaration and its last statement; ``static`` are the variables of the file that no other file can see; ``names``
    are those of its parameters.
    """

    text: str
    before: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    start: str = ""
    end: str = ""
    static: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


def head(
    function: c_ast.Function, codelet: Codelet, file: c_ast.File, returned: str, fields: tuple[FieldVariable, ...] = ()
) -> Head:
    """Return the declaration of the function.

    ``returned`` is the array that holds what it returns, "" if there is none; ``fields`` are those of structs that are
    parameters of the codelet. Raises UsageError if the codelet cannot be a function with this declaration.
    """
    params = {p.name: p for p in codelet.params}
    before: dict[str, None] = {}
    headers: dict[str, None] = {}
    structs: list[str] = []
    lines: list[str] = []
    listed: list[str] = []
    for d in function.params:
        p = params.get(d.name)
        listed.append(d.c[0])
        if not d.name:
            raise UsageError(f"{function.name} has a parameter without a name: write one")
        if not d.c[0] or isinstance(_leaf(d.type), c_ast.UnsupportedType):
            raise UsageError(f"{function.name} takes {d.name}, whose type C that is built here cannot name")
        if has_struct(d.type):
            structs.append(d.c[0])
            if isinstance(p, Array):
                given = parameter_name(d.name, params)
                listed[-1] = re.sub(rf"\b{d.name}\b(?!.*\b{d.name}\b)", given, d.c[0], count=1)
                lines.append(array_line(p, given, d.c[0]))
            continue
        if isinstance(p, Array) and len(p.shape) != _rank(d.type) and _rank(d.type) > 1:
            raise UsageError(f"{function.name} takes {d.name}, a pointer to a whole array: "
                             f"write double {d.name}[n][m] for double (*{d.name})[n][m]")  # fmt: skip
        name = _typedef(d.c[0])
        if name in HEADER_TYPES:
            headers[_HEADERS.get(name, "stdint.h")] = None
        elif name:
            before[f"typedef {_c(d.type)} {name};"] = None
    own = {d.name for d in function.params} | {base(f.declared.name) for f in fields}
    at_file = {base(f.owner) for f in fields} - {d.name for d in function.params}
    outside = [p for p in codelet.params if p.name not in own | {returned}]
    externs = [f"extern {_outside(p, file)};" for p in outside]
    objects = [d for d in file.globals if d.name in at_file]
    externs += [f"extern {d.c[1].partition(' = ')[0]};" for d in objects]
    structs += [d.c[1] for d in objects]
    hidden = tuple(d.name for d in file.globals if d.static and d.name in at_file | {p.name for p in outside})
    result = "void" if function.result == c_ast.Basic("void") else _c(function.result)
    first = [f"{declaration(params[returned])};"] if returned else []
    lines = [*first, *lines, *field_lines(fields, params)]
    end = f"return {returned}[0];" if returned else _end(function)
    if returned and isinstance(function.result, c_ast.Struct):
        result = result_type(file, function.result)
        structs.append(result)
        end = f"{result} returned; __builtin_memcpy(&returned, {returned}, sizeof returned); return returned;"
    text = f"{result} {function.name}({', '.join(listed) if listed else 'void'})"
    declared, of_headers = type_lines(file, structs)
    before |= dict.fromkeys(declared)
    headers |= {_HEADERS.get(name, "stdint.h"): None for name in of_headers}
    start = "\n  ".join(lines)
    names = tuple(d.name for d in function.params)
    return Head(text, (*before, *externs), tuple(headers), start, end, hidden, names)


def _outside(p: Array | Scalar, file: c_ast.File) -> str:
    """Return the declaration of what the codelet takes from the file, with its qualifiers.

    Pointers are none of arrays.
    """
    d = next((d for d in file.globals if d.name == p.name), None)
    if d is not None and has_struct(d.type):
        raise UsageError(f"{p.name} at file scope consists of structs, for which C that is built here has no array: "
                         "pass it as a parameter")  # fmt: skip
    if d is None:  # the last value of a counter at file scope
        name = p.name.removesuffix("_last")
        raise UsageError(f"other functions read {name} at file scope, which C that is built here does not count with: "
                         "declare the counter in the for statement")  # fmt: skip
    text = d.c[1].partition(" = ")[0]
    if isinstance(d.type, c_ast.Basic) and isinstance(p, Array):
        raise UsageError(f"the codelet writes {p.name} at file scope, which C that is built here does not: "
                         f"write it through a pointer parameter, `*{p.name} = …;`")  # fmt: skip
    if isinstance(d.type, c_ast.Pointer) or pointer_dimensions(d.type):
        named = _typedef(text)
        return re.sub(rf"\b{named}\b", _c(d.type), text, count=1) if named else text
    kept = [word for word in re.split(rf"\b{p.name}\b", text)[0].split() if word in ("const", "volatile")]
    return " ".join([*kept, declaration(p)])


def _end(function: c_ast.Function) -> str:
    """Return the ``return`` of a function that gives one constant."""
    returns = (n for n in c_ast.walk(function.body) if isinstance(n, c_ast.Return))
    value = next((n.value.text for n in returns if isinstance(n.value, c_ast.Number)), "")
    return f"return {value};" if value else ""


def _leaf(kind: c_ast.Type) -> c_ast.Type:
    match kind:
        case c_ast.Pointer(inner) | c_ast.ArrayOf(inner):
            return _leaf(inner)
    return kind


def _rank(kind: c_ast.Type) -> int:
    match kind:
        case c_ast.Pointer(inner) | c_ast.ArrayOf(inner):
            return 1 + _rank(inner)
    return 0


def _c(kind: c_ast.Type) -> str:
    leaf = _leaf(kind)
    return C_TYPES[leaf.dtype] if isinstance(leaf, c_ast.Basic) and leaf.dtype != "void" else "void"


def _typedef(text: str) -> str:
    """Return the name that a parameter's text has for its type, "" where that is C's own."""
    words = re.findall(r"[A-Za-z_]\w*", text)
    first = next((w for w in words if w not in ("const", "volatile", "restrict", "register")), "")
    return "" if first in _WORDS else first
