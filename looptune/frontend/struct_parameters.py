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
from looptune.frontend.c_types import HEADER_TYPES, is_complex_type
from looptune.frontend.name_resolution import base
from looptune.frontend.normalize.struct_layout import leaf_type
from looptune.ir.c_printer import C_TYPES, declaration, expression_text
from looptune.ir.nodes import Array, Scalar

if TYPE_CHECKING:
    from looptune.frontend.normalize.field_variable import FieldVariable

Params = Mapping[str, Array | Scalar]
TYPES_DECLARED = "LOOPTUNE_TYPES_DECLARED"
"""The macro with which the types of a built function come from the text around it."""


def has_struct(kind: c_ast.Type) -> bool:
    """Tell whether it is a struct or complex number, or an array of or pointer to such."""
    return isinstance(leaf_type(kind), c_ast.Struct)


def type_lines(file: c_ast.File, texts: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the file's declarations of the types that texts name and of those that these need, and types of headers.

    Raises UsageError for a type of a header that is no number.
    """
    known = {t.name: t for t in file.types}
    needed: set[str] = set()
    waiting = list(texts)
    while waiting:
        for name in _type_names(waiting.pop()) & known.keys() - needed:
            needed.add(name)
            waiting.append(known[name].text)
    lines = tuple(dict.fromkeys(f"{t.text};" for t in file.types if t.name in needed))
    others = sorted(set(re.findall(r"\w+", " ".join(lines))) & HEADER_TYPES.keys() - known.keys())
    for name in others:
        if not HEADER_TYPES[name]:
            raise UsageError(f"a struct has a field of type {name}, which C that is built here does not declare")
    return ((f"#ifndef {TYPES_DECLARED}", *lines, "#endif") if lines else ()), tuple(others)


def _type_names(text: str) -> set[str]:
    tags = {f"{word} {name}" for word, name in re.findall(r"\b(struct|enum)\s+(\w+)", text)}
    return tags | set(re.findall(r"\w+", text))


def result_type(file: c_ast.File, kind: c_ast.Struct) -> str:
    """Return the name of the type of a function that returns a struct. Raises UsageError where it has none."""
    if is_complex_type(kind):
        _, part = kind.fields[0]
        assert isinstance(part, c_ast.Basic), "the parts are numbers"
        return f"{C_TYPES[part.dtype]} _Complex"
    name = next((t.name for t in file.types if t.tag == kind.tag), None)
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
    """Yield the variables for the fields of structs, scalars first: extents may name them."""
    for f in sorted(fields, key=lambda f: isinstance(params[base(f.declared.name)], Array)):
        p = params[base(f.declared.name)]
        if isinstance(p, Scalar):
            yield f"{declaration(p)} = {f.text};"
        else:
            yield _pointer(p, f"&{f.text}" if f.is_written else f.text)


def _pointer(p: Array, value: str, qualifier: str = "") -> str:
    inner = "".join("[]" if e is None else f"[{expression_text(e)}]" for e in p.shape[1:])
    name = f"(*{qualifier}{p.name}){inner}" if inner else f"*{qualifier}{p.name}"
    return f"{C_TYPES[p.dtype]} {name} = (void *){value if value.isidentifier() else f'({value})'};"
