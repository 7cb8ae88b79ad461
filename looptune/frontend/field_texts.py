"""How the text writes what the codelet has as arrays and scalars, but the text as fields of structs.

in[i][1]    in[i].g             g_data[i]   g->data[i]          g_sum[0]    g->sum
x[i][0]     __real__ x[i]       p_x[i]      p[i].x              a_im        __imag__ a
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from looptune.frontend import c_ast
from looptune.frontend.c_types import is_complex_type
from looptune.frontend.name_resolution import base
from looptune.frontend.normalize.struct_layout import BYTES, constant_value, field_of, leaf_type, size_of
from looptune.ir.c_printer import C_TYPES

if TYPE_CHECKING:
    from looptune.frontend.normalize.field_variable import FieldVariable

_MOST = 64
"""Numbers of a struct that have names of their own here."""


@dataclass(frozen=True, slots=True)
class FieldText:
    """The text of a variable of the codelet.

    ``operator`` stands before ``name`` and its indices; ``element`` follows the first ``rank`` of these, and
    the next ones stand in its brackets. A variable
    with ``is_element`` is an array of one element in the codelet alone. ``parts`` are the operator and the text after
    the indices for each value of the last index, where the codelet has a dimension more; ``number`` is the C type of
    what such an index counts, for values that are not constant. ``owner`` is the variable in the front end.
    """

    name: str
    operator: str = ""
    element: str = ""
    rank: int = 0
    is_element: bool = False
    parts: tuple[tuple[str, str], ...] = ()
    number: str = ""
    owner: str = ""
    is_scalar: bool = False

    @property
    def variable(self) -> str:
        """Return the variable of the text to which it belongs."""
        found = re.search(r"[A-Za-z_]\w*", self.name)
        assert found is not None, "a variable has a name"
        return found[0]

    @property
    def passed(self) -> str:
        """Return a scalar, or a pointer to an array, as the text writes it."""
        return f"{'&' if self.is_element else ''}{self.operator}{self.name}"

    def written(self, index: Sequence[str]) -> str:
        """Return an element, of which the indices are C text, as the text writes it."""
        if self.is_element:
            return f"{self.operator}{self.name}"
        own = list(index[:-1] if self.parts else index)
        name = self.name if len(own) >= self.rank else f"(*{self.name})"
        first, rest = (own[: self.rank], own[self.rank :]) if self.element else ([], own)
        count = self.element.count("[]")
        element = self.element.replace("[]", "[{}]").format(*rest[:count], *("0" * (count - len(rest))))
        place = "".join((name, *(f"[{i}]" for i in first), element, *(f"[{i}]" for i in rest[count:])))
        if not self.parts:
            return f"{self.operator}{place}"
        last = index[-1]
        if last.isdecimal() and int(last) < len(self.parts):
            operator, after = self.parts[int(last)]
            return f"{operator}{place}{after}"
        return f"(({self.number} *)&{place})[{last}]"


def field_texts(
    fields: Sequence[FieldVariable], before: Mapping[str, c_ast.Type], after: Mapping[str, c_ast.Type]
) -> dict[str, FieldText]:
    """Return the texts of the variables that the fields are, and of arrays of structs, by their names there.

    ``before`` and ``after`` are the types of variables with and without structs.
    """
    found = {name: replace(_array(base(name), before[name], kind), owner=name) for name, kind in after.items()
             if name in before and before[name] != kind}  # fmt: skip
    for f in fields:
        found[f.declared.name] = replace(_field(f), owner=f.owner)
    return found


def _field(f: FieldVariable) -> FieldText:
    name = f"{base(f.owner)}{f.path}"
    if f.element:
        return FieldText(name, f.part, f.element, f.rank)
    if f.of is not None and f.of != f.declared.type and not f.is_written:
        return _array(name, f.of, f.declared.type)
    name = f"(*{name})" if "*" in f.part else name
    is_scalar = isinstance(f.declared.type, c_ast.Basic)
    return FieldText(name, f.part.replace("*", ""), is_element=f.is_written, is_scalar=is_scalar)


def named_texts(
    texts: Mapping[str, FieldText], renamed: Mapping[str, str]
) -> tuple[dict[str, FieldText], dict[str, str]]:
    """Return the texts by the names of the codelet, and those of its locals that are fields of structs of the text.

    ``renamed`` are the codelet's names of its locals. What inlined functions declare is left out.
    """
    kept = {name: text for name, text in texts.items() if re.fullmatch(r"\w+(?:#\d+)?", text.owner)}
    found = {renamed.get(name, base(name)): text for name, text in kept.items()}
    scalars = {renamed[name]: text.written(()) for name, text in kept.items() if name in renamed and text.is_scalar}
    return found, scalars


def _array(name: str, before: c_ast.Type, after: c_ast.Type) -> FieldText:
    kind, number = leaf_type(before), leaf_type(after)
    assert isinstance(number, c_ast.Basic), "it is an array of numbers"
    unit = BYTES[number.dtype]
    parts: dict[int, tuple[str, str]] = {at // unit: (op, text) for at, op, text in _numbers(kind)}
    size = size_of(kind)
    count = 0 if size is None else min(size // unit, _MOST)
    listed = tuple(parts.get(k, ("", "")) for k in range(count))
    return FieldText(name, rank=_depth(before), parts=listed, number=C_TYPES[number.dtype])


def _depth(kind: c_ast.Type) -> int:
    """Return how many indices lead to a struct."""
    match kind:
        case c_ast.Pointer(inner) | c_ast.ArrayOf(inner):
            return 1 + _depth(inner)
    return 0


def _numbers(kind: c_ast.Type) -> Iterator[tuple[int, str, str]]:
    """Yield the bytes before each number in a struct, and the text before and after the struct that names it."""
    match kind:
        case c_ast.Struct(_, fields):
            for name, inner in fields:
                place = field_of(kind, name)
                at = -1 if place is None else place[1]
                if at < 0:
                    return
                if is_complex_type(kind):
                    yield at, f"__{'real' if name == 're' else 'imag'}__ ", ""
                else:
                    yield from ((at + more, op, f".{name}{text}") for more, op, text in _numbers(inner))
        case c_ast.ArrayOf(inner, extent) if extent is not None:
            size, count = size_of(inner), constant_value(extent)
            for k in range(min(count, _MOST)) if size is not None and count is not None else ():
                yield from ((k * (size or 0) + more, op, f"[{k}]{text}") for more, op, text in _numbers(inner))
        case c_ast.Basic():
            yield 0, "", ""
