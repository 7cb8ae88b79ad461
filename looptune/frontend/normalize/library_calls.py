"""Calls of the C library that write memory and have no other effect, as statements.

memset(a, 0, n * sizeof(*a));       for (k = 0; k < n; k++) a[k] = 0;
memcpy(a + i, b, sizeof(b));        for (k = 0; k < 8; k++) a[i + k] = b[k];           double b[8];
m = frexp(x, &e);                   e = x == 0 || !isfinite(x) ? 0 : ilogb(x) + 1;  m = ldexp(x, -e);
f = modf(x, &w);                    w = trunc(x);  f = copysign(isinf(x) ? 0 : x - w, x);
sincos(x, &s, &c);                  s = sin(x);  c = cos(x);
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from looptune.frontend import c_ast
from looptune.frontend.name_resolution import root_variable
from looptune.frontend.normalize.struct_layout import size_of
from looptune.frontend.symbol_table import refuse

if TYPE_CHECKING:
    from looptune.core.source import Span

Items = tuple[c_ast.Item, ...]
_MEMORY = ("memset", "memcpy", "memmove", "bzero")
_NUMBERS = {"frexp": 2, "modf": 2, "sincos": 3}


Element = c_ast.Basic | c_ast.Struct
_ZEROS = ("0", "0x0", "'\\0'", "0x00")


def is_library_call(call: c_ast.Call) -> bool:
    """Tell whether the call is of one of the functions that are rewritten here."""
    name = call.name.removeprefix("__builtin_")
    count = {"bzero": 2}.get(name, 3) if name in _MEMORY else _NUMBERS.get(_of_double(name), -1)
    return len(call.args) == count


def is_library_function(name: str) -> bool:
    """Tell whether the function has the name of one that is rewritten here."""
    short = name.removeprefix("__builtin_")
    return short in _MEMORY or _of_double(short) in _NUMBERS


@dataclass(slots=True)
class LibraryCalls:
    """Rewrites calls; ``kind_of`` returns the type of a variable, ``types`` takes those of new ones.

    ``parameters`` are pointers also where they are declared as arrays.
    """

    kind_of: Callable[[str], c_ast.Type | None]
    types: dict[str, c_ast.Type]
    parameters: frozenset[str]
    numbers: Iterator[int]

    def statements(self, call: c_ast.Call, wants_value: bool) -> tuple[Items, c_ast.Expr | None]:
        """Return the statements of a call, and its value.

        Raises UnsupportedError for memory of unknown type or size.
        """
        name = call.name.removeprefix("__builtin_")
        if name not in _MEMORY:
            return self.numbers_of(name, call)
        if wants_value:
            raise refuse(f"the value of {call.name}", "the pointer it returns", call.span)
        if name in ("memset", "bzero"):
            value = call.args[1] if name == "memset" else c_ast.Number("0", span=call.span)
            return self.filled(call, value), None
        return self.copied(call), None

    # -- memory ---------------------------------------------------------------------------------

    def filled(self, call: c_ast.Call, value: c_ast.Expr) -> Items:
        array, size = call.args[0], call.args[-1]
        whole = self.whole(array, size)
        if whole is not None:
            kind, extents = whole
            return self.loop(call, extents, lambda at: (_at(array, at), _filled(kind, value, call)))
        place, kind = self.place(array)
        count = self.count(size, kind)
        return self.loop(call, (count,), lambda at: (_moved(place, at[0]), _filled(kind, value, call)))

    def copied(self, call: c_ast.Call) -> Items:
        to, of, size = call.args
        whole, same = self.whole(to, size), self.whole(of, size)
        if call.name.endswith("memmove") and _root(to) == _root(of):
            raise refuse("memmove within an array", "a loop", call.span)
        if whole is not None and same is not None and whole == same:
            return self.loop(call, whole[1], lambda at: (_at(to, at), _at(of, at)))
        one = self.one_number(call)
        if one is not None:
            return (_set(*one),)
        (target, kind), (source, other) = self.place(to), self.place(of)
        if kind != other:
            raise refuse(f"{call.name} between arrays of two types", "a loop", call.span)
        return self.loop(call, (self.count(size, kind),), lambda at: (_moved(target, at[0]), _moved(source, at[0])))

    def one_number(self, call: c_ast.Call) -> tuple[c_ast.Expr, c_ast.Expr] | None:
        """Return the variables or elements between which one number is copied, or None if it is no such call.

        Raises UnsupportedError if one of them takes the bits of a number of another type.
        """
        to, of, size = _plain(call.args[0]), _plain(call.args[1]), _plain(call.args[2])
        if not any(isinstance(e, c_ast.Unary) and e.op == "&" for e in (to, of)):
            return None
        target, source = _pointed(to), _pointed(of)
        match self.element(target), self.element(source):
            case c_ast.Basic() as kind, c_ast.Basic() as other if self.bytes(size) == size_of(kind) == size_of(other):
                if kind != other:
                    what = f"{call.name} of the bits of {other.dtype} to {kind.dtype}"
                    raise refuse(what, "arithmetic on one type", call.span)
                return target, source
        return None

    def bytes(self, size: c_ast.Expr) -> int | None:
        """Return a number of bytes that is one ``sizeof`` or a number."""
        match size:
            case c_ast.SizeOf():
                return self.width(size)
            case c_ast.Number(text) if text.rstrip("uUlL").isdecimal():
                return int(text.rstrip("uUlL"))
        return None

    def loop(
        self, call: c_ast.Call, extents: tuple[c_ast.Expr, ...],
        sides: Callable[[list[c_ast.Expr]], tuple[c_ast.Expr, c_ast.Expr]],
    ) -> Items:  # fmt: skip
        """Return loops over the extents around one assignment."""
        span = call.span
        counters = [self.variable("k", c_ast.Basic("int64"), span) for _ in extents]
        target, value = sides(list(counters))
        item: c_ast.Item = c_ast.Evaluate(c_ast.Assignment("", target, value, span=span), span=span)
        for k, extent in reversed(list(zip(counters, extents, strict=True))):
            start = c_ast.Declare(k.name, c_ast.Basic("int64"), c_ast.Number("0", span=span), span=span)
            below, step = c_ast.Binary("<", k, extent, span=span), c_ast.Unary("++", k, prefix=False, span=span)
            item = c_ast.For((start,), below, step, c_ast.Block((item,), span=span), span=span)
        return (item,)

    def variable(self, name: str, kind: c_ast.Type, span: Span) -> c_ast.Name:
        made = c_ast.Name(f"{name}#l{next(self.numbers)}", span=span)
        self.types[made.name] = kind
        return made

    def whole(self, array: c_ast.Expr, size: c_ast.Expr) -> tuple[Element, tuple[c_ast.Expr, ...]] | None:
        """Return the element type and the extents of an array whose whole size is given, or None."""
        array, size = _plain(array), _plain(size)
        kind = self.kind_of(array.name) if isinstance(array, c_ast.Name) else None
        if not isinstance(size, c_ast.SizeOf) or not isinstance(size.of, c_ast.Name):
            return None
        if self.kind_of(size.of.name) != kind or size.of.name in self.parameters:
            return None
        extents: list[c_ast.Expr] = []
        while isinstance(kind, c_ast.ArrayOf) and kind.extent is not None:
            extents.append(kind.extent)
            kind = kind.of
        return (kind, tuple(extents)) if extents and isinstance(kind, c_ast.Basic | c_ast.Struct) else None

    def place(self, e: c_ast.Expr) -> tuple[c_ast.Index, Element]:
        """Return the first element to which a pointer points, and its type."""
        e = _plain(e)
        pointed = _pointed(e)
        zero = c_ast.Number("0", span=e.span)
        found = pointed if isinstance(pointed, c_ast.Index) else c_ast.Index(e, zero, span=e.span)
        kind = self.element(found)
        if not isinstance(kind, c_ast.Basic | c_ast.Struct) or size_of(kind) is None:
            raise refuse("memory whose elements have no known type", "a loop over an array", e.span)
        return found, kind

    def element(self, e: c_ast.Expr) -> c_ast.Type | None:
        match e:
            case c_ast.Name(name):
                return self.kind_of(name)
            case c_ast.Index(array) | c_ast.Unary("*", array):
                match self.element(array):
                    case c_ast.Pointer(inner) | c_ast.ArrayOf(inner):
                        return inner
            case c_ast.Field(base, name, arrow):
                outer = self.element(base)
                inner_kind = outer.to if arrow and isinstance(outer, c_ast.Pointer) else outer
                return dict(inner_kind.fields).get(name) if isinstance(inner_kind, c_ast.Struct) else None
        return None

    def count(self, size: c_ast.Expr, kind: Element) -> c_ast.Expr:
        """Return how many elements of a type a number of bytes is."""
        width = size_of(kind)
        factors = list(_factors(_plain(size)))
        for k, f in enumerate(factors):
            if isinstance(f, c_ast.SizeOf) and self.width(f) == width:
                rest = factors[:k] + factors[k + 1 :]
                return _product(rest, size.span)
            if isinstance(f, c_ast.SizeOf) and isinstance(f.of, c_ast.Name) and f.of.name not in self.parameters:
                whole = self.kind_of(f.of.name)
                if isinstance(whole, c_ast.ArrayOf) and whole.of == kind and whole.extent is not None:
                    return _product([*factors[:k], whole.extent, *factors[k + 1 :]], size.span)
        if width == 1:
            return size
        raise refuse("a number of bytes that is no multiple of sizeof", f"n * sizeof of {_shown(kind)}", size.span)

    def width(self, size: c_ast.SizeOf) -> int | None:
        kind = self.element(size.of) if isinstance(size.of, c_ast.Syntax) else size.of
        return size_of(kind) if isinstance(kind, c_ast.Basic | c_ast.Struct) else None

    # -- numbers --------------------------------------------------------------------------------

    def numbers_of(self, name: str, call: c_ast.Call) -> tuple[Items, c_ast.Expr]:
        """Return the statements and the value of ``frexp``, ``modf`` or ``sincos``."""
        short = _of_double(name)
        mark, dtype = ("f", "float32") if name != short else ("", "float64")
        kind, span = c_ast.Basic(dtype), call.span
        x = self.variable("x", kind, span)
        first = c_ast.Declare(x.name, kind, call.args[0], span=span)
        targets = [_target(p) for p in call.args[1:]]

        def of(function: str, *args: c_ast.Expr) -> c_ast.Call:
            return c_ast.Call(f"{function}{mark}", args, span=span)

        zero = c_ast.Number("0", span=span)
        items: tuple[c_ast.Item, ...]
        value: c_ast.Expr
        match short:
            case "sincos":
                return (first, _set(targets[0], of("sin", x)), _set(targets[1], of("cos", x))), zero
            case "modf":
                whole = of("trunc", x)
                ends = c_ast.Call("isinf", (x,), span=span)
                part = c_ast.Ternary(ends, zero, c_ast.Binary("-", x, whole, span=span), span=span)
                items, value = (_set(targets[0], whole),), of("copysign", part, x)
            case _:
                no_zero = c_ast.Binary("!=", x, zero, span=span)
                usual = c_ast.Binary("&&", no_zero, c_ast.Call("isfinite", (x,), span=span), span=span)
                one = c_ast.Number("1", span=span)
                power = c_ast.Binary("+", of("ilogb", x), one, span=span)
                e = self.variable("e", c_ast.Basic("int32"), span)
                chosen = c_ast.Ternary(usual, power, zero, span=span)
                found = c_ast.Declare(e.name, c_ast.Basic("int32"), chosen, span=span)
                items = (found, _set(targets[0], e))
                value = of("ldexp", x, c_ast.Unary("-", e, span=span))
        result = self.variable("value", kind, span)
        return (first, *items, c_ast.Declare(result.name, kind, value, span=span)), result


def _of_double(name: str) -> str:
    """Return the function of double of which this is a form."""
    return name if name in _NUMBERS else name.removesuffix("f")


def _shown(kind: Element) -> str:
    return kind.dtype if isinstance(kind, c_ast.Basic) else "a struct"


def _filled(kind: Element, value: c_ast.Expr, call: c_ast.Call) -> c_ast.Expr:
    """Return the element whose bytes all have a value."""
    value = _plain(value)
    constant = value.text if isinstance(value, c_ast.Number) else ""
    if isinstance(kind, c_ast.Struct):
        if constant not in _ZEROS:
            raise refuse("memset of structs to anything but 0", "a loop", call.span)
        blank = c_ast.InitializerList((), span=value.span)
        return c_ast.StructLiteral("a compound literal", "a declared struct", (), kind, blank, span=value.span)
    minus = isinstance(value, c_ast.Unary) and value.op == "-" and value.arg == c_ast.Number("1")
    if np.dtype(kind.dtype).itemsize == 1 and kind.dtype != "bool":
        return value
    if constant in _ZEROS:
        return c_ast.Number("0", span=value.span)
    if (minus or constant.lower() in ("255", "0xff")) and "int" in kind.dtype:
        return c_ast.Unary("-", c_ast.Number("1", span=value.span), span=value.span)
    raise refuse(f"memset of {kind.dtype} to anything but 0", "a loop", call.span)


def _target(pointer: c_ast.Expr) -> c_ast.Expr:
    match pointer:
        case c_ast.Unary("&", target):
            return target
    return c_ast.Unary("*", pointer, span=pointer.span)


def _set(target: c_ast.Expr, value: c_ast.Expr) -> c_ast.Evaluate:
    return c_ast.Evaluate(c_ast.Assignment("", target, value, span=value.span), span=value.span)


def _pointed(e: c_ast.Expr) -> c_ast.Expr:
    """Return the variable or the element to which a pointer without casts points."""
    match e:
        case c_ast.Unary("&", target):
            return target
        case c_ast.Binary("+", array, index):
            return c_ast.Index(array, index, span=e.span)
    return c_ast.Index(e, c_ast.Number("0", span=e.span), span=e.span)


def _plain(e: c_ast.Expr) -> c_ast.Expr:
    """Return an expression without casts to ``void *`` and to integers of 64 bits."""
    while isinstance(e, c_ast.Cast) and e.type in (
        c_ast.Pointer(c_ast.Basic("void")), c_ast.Basic("uint64"), c_ast.Basic("int64"),
    ):  # fmt: skip
        e = e.arg
    return e


def _at(array: c_ast.Expr, at: list[c_ast.Expr]) -> c_ast.Expr:
    e = _plain(array)
    for k in at:
        e = c_ast.Index(e, k, span=array.span)
    return e


def _moved(place: c_ast.Index, k: c_ast.Expr) -> c_ast.Index:
    if place.index == c_ast.Number("0"):
        return c_ast.Index(place.base, k, span=place.span)
    return c_ast.Index(place.base, c_ast.Binary("+", place.index, k, span=place.span), span=place.span)


def _factors(e: c_ast.Expr) -> Iterator[c_ast.Expr]:
    match e:
        case c_ast.Binary("*", lhs, rhs):
            yield from _factors(_plain(lhs))
            yield from _factors(_plain(rhs))
        case _:
            yield e


def _product(factors: list[c_ast.Expr], span: Span) -> c_ast.Expr:
    if not factors:
        return c_ast.Number("1", span=span)
    total, *rest = factors
    for f in rest:
        total = c_ast.Binary("*", total, f, span=span)
    return total


def _root(e: c_ast.Expr) -> str | None:
    e = _plain(e)
    match e:
        case c_ast.Unary("&", inner):
            return root_variable(inner)
        case c_ast.Binary("+" | "-", lhs, _):
            return _root(lhs)
    return root_variable(e)
