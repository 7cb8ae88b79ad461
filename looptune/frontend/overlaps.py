"""Which variables of a function lead to the same memory, as its text shows it.

    int s, *p = &s;           *p and s are one number
    q = p = x + 1;            p, q and x lead to one array
    v.rows[0] = x;            v.rows[i] may be x

    t = a; a = b; b = t; a and b stay as different as they were

Each pointer has a set of objects into which it may point, whatever the order of the statements (L. Andersen, Program
analysis and specialization for the C programming language, 1994). A parameter, a variable of the file, and a pointer in
memory lead to an object of their own, unless the function sets them to something else; so does what a call returns,
which may also lead into what it was given and to what is held there. An array is one object, whatever the index, and a
field of a struct is a part of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from looptune.frontend import c_ast
from looptune.frontend.name_resolution import base, root_variable
from looptune.frontend.normalize.struct_layout import leaf_type, lvalue_type
from looptune.frontend.symbol_table import refuse

if TYPE_CHECKING:
    from looptune.core.errors import UnsupportedError

Objects = frozenset[str]
_NONE: Objects = frozenset()
_ALLOCATE = ("malloc", "calloc", "realloc", "aligned_alloc", "alloca", "valloc", "memalign", "_mm_malloc")
_MOST_LINKS = 8
"""Of pointers and fields from a variable to an object; what is reached over more of them is one object."""


def overlaps(a: Objects, b: Objects) -> bool:
    """Tell whether two sets have an object in common, or one has a part of an object of the other.

    >>> overlaps(frozenset({"s.x"}), frozenset({"s"})), overlaps(frozenset({"s.x"}), frozenset({"s.y", "*p"}))
    (True, False)
    """
    return any(x == y or x.startswith(f"{y}.") or y.startswith(f"{x}.") for x in a for y in b)


def has_pointer(kind: c_ast.Type) -> bool:
    """Tell whether a variable of a type may lead to memory that has another name."""
    while isinstance(kind, c_ast.ArrayOf):
        kind = kind.of
    return not isinstance(kind, c_ast.Basic)


@dataclass(slots=True)
class PointsTo:
    """The objects into which the pointers of a function may lead; ``types`` are those of its variables.

    ``own`` are the variables that it declares, which lead nowhere before they are set.
    """

    types: Mapping[str, c_ast.Type]
    own: frozenset[str]
    permuted: list[frozenset[str]] = field(default_factory=list)
    """The pointers that exchange their values with each other."""
    led: dict[str, set[str]] = field(default_factory=dict)
    changed: bool = False

    @classmethod
    def of(
        cls, body: c_ast.Block, types: Mapping[str, c_ast.Type], file: c_ast.File, used: Collection[str]
    ) -> PointsTo:
        """Return what is found in the body of a function of a file; one name is one variable there.

        Where one of the file's pointers is ``used``, the other functions may set it to a variable of the file.
        """
        declared = [n for n in c_ast.walk(body) if isinstance(n, c_ast.Declare)]
        found = cls(types, frozenset(d.name for d in declared if not d.static))
        swaps = list(_swaps(body))
        found.permuted = [names for names, _ in swaps]
        settings = [*_settings(body, {id(item) for _, items in swaps for item in items})]
        settings += [(c_ast.Name(d.name), d.init) for d in file.globals if d.init is not None]
        if any(d.name in used and isinstance(d.type, c_ast.Pointer) for d in file.globals):
            settings += _of_file(file)
        settings = [(t, v) for t, v in settings if not isinstance(lvalue_type(t, types), c_ast.Basic)]
        found.changed = True
        while found.changed:
            found.changed = False
            for target, value in settings:
                found.set(target, value)
        return found

    def others(self, name: str) -> frozenset[str]:
        """Return the pointers with which one exchanges its value."""
        return frozenset().union(*(names for names in self.permuted if name in names)) - {name}

    def set(self, target: Any, value: Any) -> None:
        """Note that a variable, an element or a field is set; of a struct, any field may be any of a list's values."""
        kind = lvalue_type(target, self.types)
        while isinstance(kind, c_ast.ArrayOf):
            kind = kind.of
        if isinstance(kind, c_ast.Struct):
            for name, _ in kind.fields:
                of_value = value if isinstance(value, c_ast.InitializerList) else c_ast.Field(value, name, False)
                self.set(c_ast.Field(target, name, False), of_value)
        elif isinstance(value, c_ast.InitializerList):
            for part in _leaves(value):
                self.add(self.places(target), self.value(part))
        else:
            self.add(self.places(target), self.value(value))

    def add(self, places: Objects, objects: Objects) -> None:
        for place in places:
            known = self.led.setdefault(place, set())
            self.changed = self.changed or not objects <= known
            known |= objects

    def places(self, e: Any) -> Objects:
        """Return the objects of which an lvalue may be a part."""
        match e:
            case c_ast.Name(name):
                return frozenset({name})
            case c_ast.Index(inner) | c_ast.Unary("*", inner):
                return self.value(inner)
            case c_ast.Field(inner, name, arrow):
                return frozenset(_limited(f"{o}.{name}") for o in (self.value(inner) if arrow else self.places(inner)))
            case c_ast.Cast(_, inner):
                return self.places(inner)
        return _NONE

    def value(self, e: Any) -> Objects:
        """Return the objects into which a value may lead."""
        match e:
            case c_ast.Name() | c_ast.Index() | c_ast.Field() | c_ast.Unary("*"):
                places = self.places(e)
                kind = lvalue_type(e, self.types)
                if isinstance(kind, c_ast.ArrayOf):
                    return places
                if isinstance(kind, c_ast.Basic) or (kind is None and isinstance(e, c_ast.Name)):
                    return _NONE
                return frozenset(o for place in places for o in self.at(place))
            case c_ast.Unary("&", inner):
                return self.places(inner)
            case c_ast.Unary("++" | "--", inner) | c_ast.Cast(_, inner):
                return self.value(inner)
            case c_ast.Binary("+" | "-", lhs, rhs):
                return self.value(lhs) | self.value(rhs)
            case c_ast.Ternary(_, then, other):
                return self.value(then) | self.value(other)
            case c_ast.Assignment(op, target, value):
                return self.value(target if op else value)
            case c_ast.Comma(parts):
                return self.value(parts[-1])
            case c_ast.Call(name, args):
                # calls that a macro makes have one place
                result = frozenset({f"{name}@{id(e)}"})
                if name in _ALLOCATE:
                    return result
                given = _NONE.union(*map(self.value, args))
                return result.union(given, *map(self.at, given))
        return _NONE

    def at(self, place: str) -> Objects:
        """Return the objects into which a pointer at a place may lead."""
        first = _NONE if place in self.own else frozenset({_limited(f"*{place}")})
        return first | frozenset(self.led.get(place, ()))


def _limited(o: str) -> str:
    """Return an object, or the one that stands for all that is reached over many links from its variable.

    >>> _limited("**p.next.next"), _limited("*****p.next.next.next.next"), _limited("**…p.next")
    ('**p.next.next', '*…p', '*…p')
    """
    name = o.lstrip("*")
    pointers = len(o) - len(name)
    if pointers + o.count(".") <= _MOST_LINKS and not (name.startswith("…") and pointers > 1):
        return o
    return f"*…{name.lstrip('…').partition('.')[0]}"


def _of_file(file: c_ast.File) -> Iterator[tuple[Any, Any]]:
    """Yield the pointers of the file that its functions set to a place in one of its variables, with this place."""
    at_file = {d.name for d in file.globals}
    places = {d.name for d in file.globals if not isinstance(d.type, c_ast.Pointer)}
    for function in file.functions:
        own = {p.name for p in function.params}
        own |= {n.name for n in c_ast.walk(function.body) if isinstance(n, c_ast.Declare)}
        for target, value in _settings(function.body):
            known = isinstance(target, c_ast.Name) and target.name in at_file - own
            if known and root_variable(_target(value)) in places - own:
                yield target, value


def _settings(node: Any, without: Collection[int] = ()) -> Iterator[tuple[Any, Any]]:
    """Yield what a function sets, with the values; a call may set what the addresses lead to that it is given.

    Those of the statements ``without``, by their ids, are left out.
    """
    match node:
        case c_ast.Declare(name, _, init) if init is not None:
            yield c_ast.Name(name), init
        case c_ast.Assignment(_, target, value):
            yield target, value
        case c_ast.Call(_, args):
            yield from ((arg.arg, node) for arg in args if isinstance(arg, c_ast.Unary) and arg.op == "&")
    for child in c_ast.children(node):
        if id(child) not in without:
            yield from _settings(child, without)


def _swaps(node: Any) -> Iterator[tuple[frozenset[str], list[Any]]]:
    """Yield the pointers of which statements exchange the values, and the statements that set them."""
    match node:
        case c_ast.Block(items):
            yield from _exchanged(items)
            for item in items:
                yield from _swaps(item)
        case c_ast.For(body=body) | c_ast.While(_, body) | c_ast.Switch(_, body):
            yield from _swaps(body)
        case c_ast.If(_, then, other):
            yield from _swaps(then)
            yield from _swaps(other)


def _exchanged(items: Iterable[Any]) -> Iterator[tuple[frozenset[str], list[Any]]]:
    """Yield the pointers of which statements in a row exchange the values, and the statements that set them."""
    run: list[tuple[str, str, Any]] = []
    for item in (*items, None):
        match item:
            case c_ast.Declare(name, _, c_ast.Name(value)):
                run.append((name, value, item))
            case c_ast.Evaluate(c_ast.Assignment("", c_ast.Name(name), c_ast.Name(value))):
                run.append((name, value, item))
            case _:
                held: dict[str, str] = {}
                for name, value, _ in run:
                    held[name] = held.get(value, value)
                spare = run[0][0] if run else ""
                names = frozenset(held) - {spare}
                if len(names) > 1 and {held[name] for name in names} == names:
                    yield names, [made for name, _, made in run if name in names]
                run = []


def _leaves(init: c_ast.InitializerList) -> Iterator[c_ast.Expr]:
    for part in init.parts:
        if isinstance(part, c_ast.InitializerList):
            yield from _leaves(part)
        else:
            yield part


# -- what a part of a function accesses -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Access:
    """An access to memory: of what ``name`` is or leads to, by the fields and indices ``path``.

    ``passed``: a call may access all of it.
    """

    name: str
    path: str
    dtype: str
    objects: Objects
    is_write: bool
    node: Any = field(compare=False)
    passed: bool = False


@dataclass(frozen=True, slots=True)
class Overlap:
    """An access to memory that is also accessed under another name; ``names`` are equal where two rows are the same."""

    node: Any
    names: tuple[str, str]

    def refusal(self) -> UnsupportedError:
        """Return the error for a codelet, in which arrays are different memory."""
        a, b = map(base, self.names)
        if a == b:
            return refuse(f"{a}, whose rows this function sets to memory that other names may lead to,", "one array",
                          self.node.span)  # fmt: skip
        what = f"{a}, which may lead to the same memory as {b}, as this function sets them,"
        return refuse(what, "one of them and an index", self.node.span)


def overlapping(items: Iterable[Any], before: Iterable[Any], found: PointsTo) -> Iterator[Overlap]:
    """Yield what shows that statements access memory under two names, and write it.

    Pointers that the statements, or the declarations ``before`` them, set to a place in an array are places in it.
    """
    items = tuple(items)
    body = c_ast.Block((*before, *items))
    without = {id(item) for _, exchanged in _swaps(body) for item in exchanged}
    into = {t.name: root_variable(_target(v)) for t, v in _settings(body, without) if isinstance(t, c_ast.Name)}
    accesses = list(dict.fromkeys(a for item in items for a in _accesses(item, found, False)))
    for k, a in enumerate(accesses):
        if a.is_write and _set_rows(a.node, found):
            yield Overlap(a.node, (a.name, a.name))
        for b in accesses[k + 1 :]:
            if _are_compared(a, b, into) and overlaps(_objects(a, b, into, found), _objects(b, a, into, found)):
                yield Overlap(a.node, (a.name, b.name))


def _are_compared(a: _Access, b: _Access, into: Mapping[str, str | None]) -> bool:
    """Tell whether one of two accesses writes, and a codelet has different names for what they access."""
    named = (a.name, a.path) != (b.name, b.path) and not _is_one(a, b, into)
    return named and (a.is_write or b.is_write) and _may_alias(a.dtype, b.dtype)


def _is_one(a: _Access, b: _Access, into: Mapping[str, str | None]) -> bool:
    """Tell whether two accesses are to one array, so that their indices are compared."""
    set_here = a.name in into or b.name in into
    return (a.name == b.name and (a.passed or b.passed)) or (set_here and _array(a.name, into) == _array(b.name, into))


def _objects(a: _Access, other: _Access, into: Mapping[str, str | None], found: PointsTo) -> Objects:
    """Return the objects of an access, by the array into which its pointer is set and those it is exchanged with."""
    swapped = found.others(a.name)
    more = () if other.name in swapped else tuple(found.value(c_ast.Name(name)) for name in swapped)
    array = _array(a.name, into)
    kind = found.types.get(array)
    own = found.value(c_ast.Name(array)) if isinstance(kind, c_ast.Pointer) else frozenset({array})
    return a.objects.union(*more, own if array != a.name else _NONE)


def _target(value: Any) -> Any:
    return value.arg if isinstance(value, c_ast.Unary) and value.op == "&" else value


def _array(name: str, into: Mapping[str, str | None]) -> str:
    """Return the array into which a pointer leads that the statements set."""
    for _ in into:
        name = into.get(name) or name
    return name


def _may_alias(a: str, b: str) -> bool:
    return a == b or bool({a, b} & {"", "int8", "uint8"})


def _accesses(node: Any, found: PointsTo, is_write: bool) -> Iterator[_Access]:
    match node:
        case c_ast.Assignment(_, target, value):
            yield from _accesses(target, found, True)
            yield from _accesses(value, found, False)
            return
        case c_ast.Unary("++" | "--", target):
            yield from _accesses(target, found, True)
            return
        case c_ast.Unary("&", inner):
            yield from _parts(inner, found)
            return
        case c_ast.Call(_, args):
            for arg in args:
                kind = lvalue_type(arg, found.types)
                name = root_variable(_target(arg))
                if isinstance(kind, c_ast.Pointer | c_ast.ArrayOf) and name is not None:
                    leaf = leaf_type(kind)
                    dtype = leaf.dtype if isinstance(leaf, c_ast.Basic) and leaf.dtype != "void" else ""
                    yield _Access(name, _path(arg), dtype, found.value(arg), True, arg, True)
        case c_ast.Name() | c_ast.Index() | c_ast.Field() | c_ast.Unary("*"):
            kind, name = lvalue_type(node, found.types), root_variable(node)
            if name is not None and isinstance(kind, c_ast.Basic | c_ast.Pointer):
                dtype = kind.dtype if isinstance(kind, c_ast.Basic) else "pointer"
                yield _Access(name, _path(node), dtype, found.places(node), is_write, node)
            yield from _parts(node, found)
            return
    for child in c_ast.children(node):
        yield from _accesses(child, found, False)


def _parts(e: Any, found: PointsTo) -> Iterator[_Access]:
    """Yield the accesses that compute which memory an lvalue is."""
    for child in c_ast.children(e):
        yield from _accesses(child, found, False)


def _path(e: Any) -> str:
    """Return the fields and the number of indices that lead to an lvalue."""
    match e:
        case c_ast.Index(inner) | c_ast.Unary("*", inner):
            return f"{_path(inner)}[]"
        case c_ast.Field(inner, name, arrow):
            return f"{_path(inner)}{'[]' if arrow else ''}.{name}"
        case c_ast.Cast(_, inner) | c_ast.Unary("&", inner) | c_ast.Binary("+" | "-", inner):
            return _path(inner)
    return ""


def _set_rows(e: Any, found: PointsTo) -> bool:
    """Tell whether an element is in a row that the function sets to memory that was not just allocated."""
    match e:
        case c_ast.Index(inner) | c_ast.Unary("*", inner):
            if isinstance(inner, c_ast.Index) and isinstance(lvalue_type(inner, found.types), c_ast.Pointer):
                led = {o for place in found.places(inner) for o in found.led.get(place, ())}
                return any(o.partition("@")[0] not in _ALLOCATE for o in led)
    return False
