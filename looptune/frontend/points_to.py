"""Into which memory the pointers of a function lead, as the text of its file shows it.

    int s, *p = &s;           *p and s are one number
    q = p = x + 1;            p, q and x lead to one array
    v.rows[0] = x;            v.rows[i] may be x
    set(&v, x);               what set does with v and x, if the file defines it; or else v leads to all of x

    t = a; a = b; b = t; a and b stay as different as they were

Each pointer has a set of objects into which it may point, whatever the order of the statements (L. Andersen, Program
analysis and specialization for the C programming language, 1994). A parameter, a variable of the file, and a pointer in
memory lead to an object of their own, unless the function sets them to something else; so does what a function returns
that the file does not define, which may also lead into what it was given and to what is held there. An array is one
object, whatever the index, a field of a struct is a part of it, and all members of a union are one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from looptune.frontend import c_ast
from looptune.frontend.normalize.struct_layout import lvalue_type
from looptune.frontend.pointer_settings import ALLOCATE, THROUGH_POINTER, Settings, has_pointer, is_union, struct_of

Objects = frozenset[str]
NO_OBJECTS: Objects = frozenset()
_UNION = ".|"
"""Ends the name of what the members of a union share."""
_LINKS = (8, 3, 1)
"""Of pointers and fields from a variable to an object at most; what is reached over more of them is one object.

The next number is taken where there are more than MOST_FACTS with one: structs that point to each other have as many
objects as there are paths among them.
"""
MOST_FACTS = 10_000
"""That a pointer may lead to an object."""


@dataclass(slots=True)
class PointsTo:
    """The objects into which the pointers of a function may lead; ``types`` are those of its variables.

    ``own`` are the variables that it declares, which lead nowhere before they are set; ``results`` are the
    variables that hold what calls of functions of the file return, by the ids of the calls; "" where it is a number.
    """

    types: Mapping[str, c_ast.Type]
    own: Collection[str]
    results: Mapping[int, str]
    permuted: list[frozenset[str]] = field(default_factory=list)
    """The pointers that exchange their values with each other."""
    most_links: int = _LINKS[0]
    led: dict[str, set[str]] = field(default_factory=dict)
    facts: int = 0
    is_solving: bool = True
    """Afterwards, a name of an exchanged pointer is given what it has without that: it is compared with the others."""

    @classmethod
    def of(
        cls, name: str, body: c_ast.Block, types: Mapping[str, c_ast.Type], file: c_ast.File, used: Collection[str],
        renamed: Mapping[str, str],
    ) -> PointsTo:  # fmt: skip
        """Return what is found in the body of the function ``name`` of a file; one name is one variable there.

        Where one of the file's variables with pointers is ``used``, the other functions may set it. ``renamed`` are the
        names that variables of the file have in the body, if not their own.
        """
        settings = Settings(file, {**file.structs, **types}, renamed)
        settings.add_function(body)
        at_file = [(renamed.get(d.name, d.name), d) for d in file.globals if has_pointer(d.type)]
        settings.found += [(c_ast.Name(name), d.init) for name, d in at_file if d.init is not None]
        if any(name in used for name, _ in at_file):
            settings.add_file(name)
        for links in _LINKS:
            found = cls(settings.types, settings.own, settings.results, settings.exchanged, most_links=links)
            if found.solve(settings.found, math.inf if links == _LINKS[-1] else MOST_FACTS):
                break
        found.is_solving = False
        return found

    def solve(self, settings: Sequence[tuple[Any, Any]], most: float) -> bool:
        """Return whether all is found that follows from the settings, False if there are more than ``most`` facts."""
        known = -1
        while known < self.facts:
            known = self.facts
            for target, value in settings:
                self.set(target, value)
                if self.facts > most:
                    return False
        return True

    def others(self, name: str) -> frozenset[str]:
        """Return the pointers with which one exchanges its value."""
        return frozenset().union(*(names for names in self.permuted if name in names)) - {name}

    def set(self, target: Any, value: Any) -> None:
        """Note that a variable, an element or a field is set; of a struct, any field may be any of a list's values."""
        kind = lvalue_type(target, self.types)
        while isinstance(kind, c_ast.ArrayOf):
            kind = kind.of
        if isinstance(value, c_ast.StructLiteral) and value.init is not None:
            value = value.init
        if isinstance(value, c_ast.InitializerList) and not isinstance(kind, c_ast.Struct):
            for part in _leaves(value):
                self.add(self.members(target, kind), self.value(part))
        elif isinstance(kind, c_ast.Struct | c_ast.Overlapping) and not is_union(kind):
            whole = isinstance(value, c_ast.InitializerList | c_ast.Call) and id(value) not in self.results
            for name, _ in kind.fields:
                self.set(c_ast.Field(target, name, False), value if whole else c_ast.Field(value, name, False))
        else:
            self.add(self.members(target, kind), self.value(value))

    def add(self, places: Objects, objects: Objects) -> None:
        for place in places:
            known = self.led.setdefault(place, set())
            self.facts += len(objects - known)
            known |= objects

    def members(self, e: Any, kind: c_ast.Type | None) -> Objects:
        """Return the objects of an lvalue of a type: of a union, what its members share."""
        places = self.places(e)
        return frozenset(map(_shared, places)) if is_union(kind) else places

    def places(self, e: Any) -> Objects:
        """Return the objects of which an lvalue may be a part."""
        match e:
            case c_ast.Name(name):
                return frozenset({name})
            case c_ast.Index(inner) | c_ast.Unary("*", inner):
                return self.value(inner)
            case c_ast.Field(inner, name, arrow):
                objects = self.value(inner) if arrow else self.places(inner)
                if is_union(struct_of(inner, arrow, self.types)):
                    return frozenset(map(_shared, objects))
                return frozenset(o if o.endswith(_UNION) else _limited(f"{o}.{name}", self.most_links) for o in objects)
            case c_ast.Cast(_, inner):
                return self.places(inner)
            case c_ast.Ternary(_, then, other):
                return self.places(then) | self.places(other)
            case c_ast.Assignment(_, target):
                return self.places(target)
            case c_ast.Comma(parts):
                return self.places(parts[-1])
            case c_ast.Call(name):
                return frozenset({self.results.get(id(e), f"{name}@{id(e)}")})
        return NO_OBJECTS

    def value(self, e: Any) -> Objects:
        """Return the objects into which a value may lead."""
        match e:
            case c_ast.Name() | c_ast.Index() | c_ast.Field() | c_ast.Unary("*"):
                return self.at_lvalue(e)
            case c_ast.Unary("&", inner):
                return self.places(inner)
            case c_ast.Unary(_, inner) | c_ast.Cast(_, inner):
                return self.value(inner)
            case c_ast.Binary(_, lhs, rhs):
                return self.value(lhs) | self.value(rhs)
            case c_ast.Ternary(_, then, other):
                return self.value(then) | self.value(other)
            case c_ast.Assignment(op, target, value):
                return self.value(target if op else value)
            case c_ast.Comma(parts):
                return self.value(parts[-1])
            case c_ast.Call():
                return self.returned(e)
            case c_ast.Unsupported(parts=parts):
                called = self.at(self.results[id(e)]) if id(e) in self.results else NO_OBJECTS
                return called.union(*(self.reached(part) for part in parts if isinstance(part, c_ast.Expr)))
        return NO_OBJECTS

    def at_lvalue(self, e: Any) -> Objects:
        """Return the objects into which a variable, an element or a field may lead."""
        kind = lvalue_type(e, self.types)
        places = self.members(e, kind)
        if isinstance(kind, c_ast.ArrayOf):
            return places
        if isinstance(e, c_ast.Name) and isinstance(kind, c_ast.Pointer) and not self.is_solving:
            return self.before_swaps(e.name)
        if isinstance(kind, c_ast.Basic) or (kind is None and isinstance(e, c_ast.Name)):
            # a number leads only to an address that it was set to
            in_union = any(place.endswith(_UNION) for place in places)
            return NO_OBJECTS.union(*(self.at(p) if in_union else self.led.get(p, ()) for p in places))
        return NO_OBJECTS.union(*map(self.at, places))

    def returned(self, call: c_ast.Call) -> Objects:
        """Return the objects into which the result of a call may lead."""
        result = self.results.get(id(call))
        if result is not None and not result.startswith(THROUGH_POINTER):
            return self.at(result) if result else NO_OBJECTS
        # calls that a macro makes have one place
        made = frozenset({f"{call.name}@{id(call)}"}) | (self.at(result) if result else NO_OBJECTS)
        return made if call.name in ALLOCATE else made.union(*map(self.reached, call.args))

    def reached(self, e: Any) -> Objects:
        """Return the objects into which a value may lead, and those into which what it leads to may lead."""
        given = self.value(e)
        parts = (o for place, o in self.led.items() if any(place.startswith(f"{g}.") for g in given))
        return given.union(*map(self.at, given), *parts)

    def at(self, place: str) -> Objects:
        """Return the objects into which a pointer at a place may lead, which may have been exchanged with others."""
        return self.before_swaps(place).union(*map(self.before_swaps, self.others(place)))

    def before_swaps(self, place: str) -> Objects:
        """Return the objects into which a pointer at a place may lead if it is exchanged with no other."""
        first = NO_OBJECTS if place in self.own else frozenset({_limited(f"*{place}", self.most_links)})
        return first | frozenset(self.led.get(place, ()))


def _shared(o: str) -> str:
    return o if o.endswith(_UNION) else f"{o}{_UNION}"


def _limited(o: str, most: int) -> str:
    """Return an object, or the one that stands for all that is reached over many links from its variable.

    >>> _limited("**p.next.next", 8), _limited("*****p.next.next.next.next", 8), _limited("**…p.next", 8)
    ('**p.next.next', '*…p', '*…p')
    """
    name = o.lstrip("*")
    pointers = len(o) - len(name)
    if pointers + o.count(".") <= most and not (name.startswith("…") and pointers > 1):
        return o
    return f"*…{name.lstrip('…').partition('.')[0]}"


def _leaves(init: c_ast.InitializerList) -> Iterator[c_ast.Expr]:
    for part in init.parts:
        if isinstance(part, c_ast.InitializerList):
            yield from _leaves(part)
        else:
            yield part
