"""Structs and complex numbers in the declaration of a built function, and the codelet's variables that they hold.

void f(const px *in, struct grid *g)     void f(const px *in_given, struct grid *g)
                                         {
                                           float (*in)[3] = (void *)in_given;
                                           int g_n = g->n;
                                           double *g_data = (void *)g->data;
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from looptune.core.errors import UsageError
from looptune.frontend import c_ast
from looptune.frontend.c_types import HEADERS_OF_TYPES, is_complex_type
from looptune.frontend.name_resolution import base
from looptune.frontend.normalize.struct_layout import leaf_type
from looptune.ir.c_printer import C_TYPES, declaration, expression_text
from looptune.ir.nodes import Array, Scalar

if TYPE_CHECKING:
    from looptune.frontend.file_scope import FileScope
    from looptune.frontend.normalize.field_variable import FieldVariable

Params = Mapping[str, Array | Scalar]
TYPES_DECLARED = "LOOPTUNE_TYPES_DECLARED"
"""The macro with which the types of a built function come from the text around it."""


def has_struct(kind: c_ast.Type) -> bool:
    """Tell whether it is a struct or complex number, or an array of or pointer to such."""
    return isinstance(leaf_type(kind), c_ast.Struct)


def type_lines(
    scope: FileScope, function: str, texts: Iterable[str], variables: Iterable[str]
) -> tuple[tuple[str, ...], list[str]]:
    """Return the file's declarations of the types that texts name, and of these variables; and headers with others.

    Where they cannot stand twice in a text, they are left out for a text around that has them.
    """
    words = {n for text in texts for n in _type_names(text)}
    lines, others = scope.declarations({*(words & scope.types), *variables}, function)
    known = (words - scope.types) | others
    headers = [header for name, header in HEADERS_OF_TYPES.items() if name in known]
    if others - HEADERS_OF_TYPES.keys():
        headers += scope.headers
    once = any("{" in line or "=" in line for line in lines)
    return ((f"#ifndef {TYPES_DECLARED}", *lines, "#endif") if once else lines), headers


def _type_names(text: str) -> set[str]:
    tags = {f"{word} {name}" for word, name in re.findall(r"\b(struct|union|enum)\s+(\w+)", text)}
    return tags | set(re.findall(r"\w+", text))


def result_type(file: c_ast.File, kind: c_ast.Struct) -> str:
    """Return the name of the type of a function that returns a struct. Raises UsageError where it has none."""
    if is_complex_type(kind):
        _, part = kind.fields[0]
        assert isinstance(part, c_ast.Basic), "the parts are numbers"
        return f"{C_TYPES[part.dtype]} _Complex"
    name = file.struct_names.get(kind.tag)
    if name is None:
        raise UsageError("a struct without a name is returned, which C that is built here cannot declare")
    return name


def parameter_name(name: str, taken: Iterable[str]) -> str:
    """Return the name of a parameter whose own name the codelet's array has."""
    found = f"{name}_given"
    while found in taken:
        found += "_"
    return found


def array_line(p: Array, given: str, declared: str) -> str:
    """Return the array of a parameter that is an array of structs or of complex numbers, which is declared so."""
    return _pointer(p, given, "restrict " if re.search(r"\brestrict\b", declared) else "")


def field_lines(fields: Sequence[FieldVariable], params: Params) -> Iterator[str]:
    """Yield the variables for the fields of structs, scalars first: extents may name them.

    Fields of each struct of an array have none: C that is built names them as the text does.
    """
    for f in sorted(
        (f for f in fields if not f.element), key=lambda f: isinstance(params[base(f.declared.name)], Array)
    ):
        p = params[base(f.declared.name)]
        if isinstance(p, Scalar):
            yield f"{declaration(p)} = {f.text};"
        else:
            yield _pointer(p, f"&{f.text}" if f.is_written else f.text)


def _pointer(p: Array, value: str, qualifier: str = "") -> str:
    inner = "".join("[]" if e is None else f"[{expression_text(e)}]" for e in p.shape[1:])
    name = f"(*{qualifier}{p.name}){inner}" if inner else f"*{qualifier}{p.name}"
    return f"{C_TYPES[p.dtype]} {name} = (void *){value if value.isidentifier() else f'({value})'};"
