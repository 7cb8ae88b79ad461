"""The C declaration of the function around a codelet, so that a built function can replace it.

    void f(int n, const real *restrict x)   ─▶   typedef float real;  void f(int n, const real *restrict x)

Variables at file scope that the codelet uses are declared ``extern``, except for tables of constants and what only this
function uses of the static ones: these are declared as the file has them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from looptune.core.errors import UsageError
from looptune.frontend import c_ast
from looptune.frontend.c_types import pointer_dimensions
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
from looptune.ir.nodes import Array, Scalar

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from looptune.frontend.file_scope import FileScope
    from looptune.frontend.lowered_codelet import LoweredCodelet


@dataclass(frozen=True, slots=True)
class Head:
    """The declaration of a function; ``text`` has no semicolon.

    ``prototype`` is the same with the file's names of all parameters, some of which the codelet's arrays have in
    ``text``. ``before`` are the declarations that it and its body need, ``types`` those that ``prototype`` needs,
    ``headers`` the C headers; ``start`` and ``end`` are its first declarations and its last statement; ``static`` are
    the variables of the file that no other file can see; ``names`` are those of its parameters.
    """

    text: str
    prototype: str
    before: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    start: str = ""
    end: str = ""
    static: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def in_type(self, dtype: str | None) -> Head:
        """Return the declaration with this type in the place of ``float`` and ``double``, if it is given."""
        if dtype is None:
            return self
        text, prototype, *lines = (in_type(t, dtype) for t in (self.text, self.prototype, *self.before, *self.types))
        before = tuple(lines[: len(self.before)])
        return replace(self, text=text, prototype=prototype, before=before, types=tuple(lines[len(self.before) :]))


def in_type(text: str, dtype: str) -> str:
    """Return C text with this type in the place of ``float`` and ``double``.

    >>> in_type("double f(float x, long double y)", "float32")
    'float f(float x, long double y)'
    """
    return re.sub(r"(?<!long )\b(?:float|double)\b", C_TYPES[dtype], text)


def head(function: c_ast.Function, built: LoweredCodelet, file: c_ast.File, scope: FileScope) -> Head:
    """Return the declaration of the function that is the codelet; ``scope`` has the declarations of its file.

    Raises UsageError if the codelet cannot be a function with this declaration.
    """
    codelet, returned, fields = built.codelet, built.result, built.fields
    params = {p.name: p for p in codelet.params}
    lines: list[str] = []
    listed: list[str] = []
    for d in function.params:
        listed.append(_parameter(function, d, params, scope))
        p = params.get(d.name)
        if has_struct(d.type) and isinstance(p, Array):
            given = parameter_name(d.name, params)
            listed[-1] = re.sub(rf"\b{d.name}\b(?!.*\b{d.name}\b)", given, d.c[1], count=1)
            lines.append(array_line(p, given, d.c[1]))
    own = {d.name for d in function.params} | {base(f.declared.name) for f in fields}
    at_file = {base(f.owner) for f in fields} - {d.name for d in function.params}
    outside = [p for p in codelet.params if p.name not in own | {returned}]
    private = scope.private_variables(function.name)
    externs = {p.name: _outside(p, file) for p in outside}
    copied = at_file | (private & externs.keys())
    for p in outside:
        lines += _element_lines(p, file, params)
    hidden = tuple(d.name for d in file.globals if d.static and d.name in (externs.keys() | at_file) - private)
    result = "void" if function.result == c_ast.Basic("void") else _c(function.result)
    first = [f"{declaration(params[returned])};"] if returned else []
    lines = [*first, *lines, *field_lines(fields, params)]
    end = f"return {returned}[0];" if returned else _end(function)
    if returned and isinstance(function.result, c_ast.Struct):
        result = result_type(file, function.result)
        end = f"{result} returned; __builtin_memcpy(&returned, {returned}, sizeof returned); return returned;"
    prototype = f"{result} {function.name}({', '.join(d.c[1] for d in function.params) or 'void'})"
    text = f"{result} {function.name}({', '.join(listed) or 'void'})"
    seen = [text for name, text in externs.items() if name not in private]
    before, headers = type_lines(scope, function.name, [text, *seen], copied)
    types, _ = type_lines(scope, function.name, [text], ())
    names = tuple(d.name for d in function.params)
    return Head(text, prototype, (*before, *(f"extern {text};" for text in seen)), types, tuple(dict.fromkeys(headers)),
                "\n  ".join(lines), end, hidden, names)  # fmt: skip


def _parameter(
    function: c_ast.Function, d: c_ast.Declare, params: Mapping[str, Array | Scalar], scope: FileScope
) -> str:
    """Return the declaration of a parameter. UsageError where a built function cannot have it."""
    p = params.get(d.name)
    if not d.name:
        raise UsageError(f"{function.name} has a parameter without a name: write one")
    if not d.c[0] or scope.unknown_names(d.c[0]) - {d.name, *(q.name for q in function.params)}:
        raise UsageError(f"{function.name} takes {d.name}, whose type C that is built here cannot name")
    if isinstance(p, Array) and not has_struct(d.type) and len(p.shape) != _rank(d.type) and _rank(d.type) > 1:
        raise UsageError(f"{function.name} takes {d.name}, a pointer to a whole array: "
                         f"write double {d.name}[n][m] for double (*{d.name})[n][m]")  # fmt: skip
    return d.c[1]


def _element_lines(p: Array | Scalar, file: c_ast.File, params: Collection[str]) -> Iterator[str]:
    """Yield the pointers through which the codelet writes a scalar at file scope: for it that is an array."""
    d = next((d for d in file.globals if d.name == p.name), None)
    if d is not None and isinstance(d.type, c_ast.Basic) and isinstance(p, Array):
        kind, at = C_TYPES[p.dtype], parameter_name(p.name, params)
        yield f"{kind} *{at} = (void *)&{p.name};"
        yield f"{kind} *const {p.name} = {at};"


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
        if "volatile" in text.split():
            raise UsageError(f"the codelet writes {p.name} at file scope, which is volatile: C that is built here "
                             "writes no such variable")  # fmt: skip
        return text
    if isinstance(d.type, c_ast.Pointer) or pointer_dimensions(d.type):
        return text
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
