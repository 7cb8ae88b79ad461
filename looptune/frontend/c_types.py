"""The meaning of type names: C's own types, and those of headers that are not read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from looptune.frontend import c_ast

if TYPE_CHECKING:
    from looptune.frontend.preprocess import Preprocessed

HEADER_TYPES = {
    "size_t": "uint64", "ssize_t": "int64", "ptrdiff_t": "int64", "intptr_t": "int64", "uintptr_t": "uint64",
    "int8_t": "int8", "int16_t": "int16", "int32_t": "int32", "int64_t": "int64", "uint8_t": "uint8",
    "uint16_t": "uint16", "uint32_t": "uint32", "uint64_t": "uint64", "bool": "bool", "float_t": "float32",
    "double_t": "float64", "uint": "uint32", "ulong": "uint64", "ushort": "uint16",
    "__real__": "", "__imag__": "",
    "_Float16": "float16", "__bf16": "bfloat16",
    "FILE": "", "va_list": "", "time_t": "int64", "clock_t": "int64", "off_t": "int64", "wchar_t": "int32",
}  # fmt: skip

HEADERS_OF_TYPES = {
    **{n: "stdint.h" for n, known in HEADER_TYPES.items() if known.removeprefix("u").startswith("int")},
    "size_t": "stddef.h", "ptrdiff_t": "stddef.h", "wchar_t": "stddef.h", "bool": "stdbool.h", "_Bool": "stdbool.h",
    "ssize_t": "sys/types.h", "time_t": "time.h", "clock_t": "time.h", "off_t": "sys/types.h", "uint": "sys/types.h",
    "ulong": "sys/types.h", "ushort": "sys/types.h", "float_t": "math.h", "double_t": "math.h", "FILE": "stdio.h",
    "va_list": "stdarg.h",
}  # fmt: skip
"""The headers that declare the types of headers."""

_WORDS = {
    "char": "int8", "signed char": "int8", "unsigned char": "uint8", "_Bool": "bool",
    "short": "int16", "unsigned short": "uint16", "int": "int32", "unsigned": "uint32", "signed": "int32",
    "long": "int64", "unsigned long": "uint64", "long long": "int64", "unsigned long long": "uint64",
    "float": "float32", "double": "float64", "void": "void",
}  # fmt: skip


def named_type(names: Sequence[str], types: Mapping[str, c_ast.Type], dtype: str | None) -> c_ast.Type:
    """Return the type that the words denote with these typedefs.

    Floating-point types become ``dtype`` if it is given.
    """
    if len(names) == 1 and names[0] in types:
        return types[names[0]]
    words = [w for w in names if w not in ("signed", "int")]
    if "_Complex" in names:
        return _complex_type(names, dtype)
    if "char" in names and "signed" in names:
        words = ["signed", "char"]
    order = {"unsigned": 0, "signed": 1, "long": 2, "short": 3}
    key = " ".join(sorted(words, key=lambda w: order.get(w, 9)))
    known = _WORDS.get(key if key else "int")
    if known is None:
        return c_ast.UnsupportedType(" ".join(names))
    return c_ast.Basic(dtype if dtype is not None and known.startswith("float") else known)


_INTEGER_OF_WIDTH = re.compile(r"(?:\w+_)?(u?)int(8|16|32|64)(?:_t)?|\w+_(u?)int", re.IGNORECASE)
_SHORT_OF_WIDTH = re.compile(r"([us])(8|16|32|64)")
_FLOAT_OF_WIDTH = re.compile(r"(?:\w+_)?float(32|64)(?:_t)?|\w+_(float|double)", re.IGNORECASE)


def type_of_width(name: str) -> str:
    """Return the type that the name of a type of a missing header says it is, "" where it says nothing.

    >>> [type_of_width(name) for name in ("spx_int16_t", "u32", "my_Float64", "cl_uint", "cl_float", "REAL")]
    ['int16', 'uint32', 'float64', 'uint32', 'float32', '']
    """
    if found := _INTEGER_OF_WIDTH.fullmatch(name):
        unsigned, width, of_int = found.groups()
        return f"{unsigned.lower()}int{width}" if width else f"{of_int.lower()}int32"
    if found := _SHORT_OF_WIDTH.fullmatch(name):
        return f"{'u' if found[1] == 'u' else ''}int{found[2]}"
    found = _FLOAT_OF_WIDTH.fullmatch(name)
    if found is None:
        return ""
    return f"float{found[1]}" if found[1] else {"float": "float32", "double": "float64"}[found[2].lower()]


_COMPLEX = "_Complex "


def complex_type(dtype: str) -> c_ast.Struct:
    """Return the type of complex numbers whose parts have this type: they lie in memory as a struct of the two."""
    return c_ast.Struct(f"{_COMPLEX}{dtype}", (("re", c_ast.Basic(dtype)), ("im", c_ast.Basic(dtype))))


def is_complex_type(kind: c_ast.Type | None) -> bool:
    """Tell whether the type is one of complex numbers."""
    return isinstance(kind, c_ast.Struct) and kind.tag.startswith(_COMPLEX)


def _complex_type(names: Sequence[str], dtype: str | None) -> c_ast.Type:
    of = " ".join(w for w in names if w != "_Complex")
    known = {"": "float64", "double": "float64", "float": "float32"}.get(of)
    return (
        c_ast.UnsupportedType(" ".join(names)) if known is None else complex_type(dtype if dtype is not None else known)
    )


def pointer_dimensions(kind: c_ast.Type) -> tuple[int, ...]:
    """Return the dimensions of an array, but for the first, whose elements a table of pointers leads to.

    >>> pointer_dimensions(c_ast.Pointer(c_ast.Pointer(c_ast.Basic("float32"))))
    (1,)
    """
    found: list[int] = []
    depth = 0
    while isinstance(kind, c_ast.Pointer | c_ast.ArrayOf):
        if depth and isinstance(kind, c_ast.Pointer):
            found.append(depth)
        kind = kind.to if isinstance(kind, c_ast.Pointer) else kind.of
        depth += 1
    return tuple(found)


def enumerated_type(values: Sequence[int]) -> str:
    """Return the type that gcc gives an enumeration.

    An int, unsigned where no value is negative, or a long of the kind.

    >>> enumerated_type([0, 3]), enumerated_type([-1, 2]), enumerated_type([2**31, -1])
    ('uint32', 'int32', 'int64')
    """
    least, most = min((0, *values)), max((0, *values))
    if least >= 0:
        return "uint32" if most < 2**32 else "uint64"
    return "int32" if least >= -(2**31) and most < 2**31 else "int64"


_MODES = {"QI": 8, "byte": 8, "HI": 16, "SI": 32, "DI": 64, "word": 64, "pointer": 64, "SF": 32, "DF": 64}


def as_attributed(kind: c_ast.Type, name: str, source: Preprocessed, at: int) -> c_ast.Type:
    """Return the type that a ``typedef`` names, of which ``at`` is a token: another one if it has such an attribute."""
    first = next((k for k in range(at, -1, -1) if source.tokens[k].text == "typedef"), -1)
    said = source.attributes.get(first)
    if said is None:
        return kind
    end = next((k for k in range(at, len(source.tokens)) if source.tokens[k].text == ";"), at)
    several = any(t.text == "," for t in source.tokens[first:end])
    return with_attribute(kind, name, "" if several else said)


def with_attribute(kind: c_ast.Type, name: str, attribute: str) -> c_ast.Type:
    """Return the type that a ``typedef`` names with an attribute that makes it another.

    >>> with_attribute(c_ast.Basic("uint32"), "u8", "((__mode__(__QI__)))")
    Basic(dtype='uint8')
    >>> with_attribute(c_ast.Basic("float32"), "v4", "((vector_size(16)))")
    UnsupportedType(what='v4')
    """
    mode = re.fullmatch(r"\(\(_*mode_*\(_*([A-Za-z]+?)_*\)\)\)", attribute)
    family = re.fullmatch(r"(u?int|float)\d+", kind.dtype) if isinstance(kind, c_ast.Basic) else None
    bits = None if mode is None else _MODES.get(mode[1])
    if family is None or bits is None or mode is None or mode[1].endswith("F") != (family[1] == "float"):
        return c_ast.UnsupportedType(name)
    return c_ast.Basic(f"{family[1]}{bits}")
