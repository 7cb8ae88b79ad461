"""What the functions of a file set pointers to, with the functions that they call.

    void set(struct v *s, double *x) { s->data = x; }
    set(&w, a);               the copy of ``set`` that stands for this call has  s = &w,  x = a,  s->data = x

A call of a function of the file stands for a copy of its text with other names, so that two calls stay apart (call
strings; M. Sharir, A. Pnueli, Two approaches to interprocedural data flow analysis, 1981). Calls that lie deeper than
``_MOST_DEEP`` calls, or are more than ``_MOST_COPIES``, share one copy for each function.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from looptune.frontend import c_ast
from looptune.frontend.name_resolution import base, resolve, used_names
from looptune.frontend.normalize.struct_layout import lvalue_type

ALLOCATE = ("malloc", "calloc", "realloc", "aligned_alloc", "alloca", "valloc", "memalign", "_mm_malloc")
_COPY = ("memcpy", "memmove", "__builtin_memcpy", "__builtin_memmove", "__builtin___memcpy_chk")
THROUGH_POINTER = "call@"
"""Begins the name of the result of a call through a pointer, which may also call a function of another file."""
_ADDRESS = ("int64", "uint64")
"""The integers that can hold an address."""
_MOST_DEEP = 3
_MOST_COPIES = 400

Setting = tuple[Any, Any]
"""What is set, and the value."""


def has_pointer(kind: c_ast.Type) -> bool:
    """Tell whether a variable of a type may lead to memory that has another name."""
    while isinstance(kind, c_ast.ArrayOf):
        kind = kind.of
    return not isinstance(kind, c_ast.Basic)


def aimed(value: Any) -> Any:
    """Return the lvalue whose address a value is, or the value."""
    return value.arg if isinstance(value, c_ast.Unary) and value.op == "&" else value


def is_union(kind: c_ast.Type | None) -> bool:
    """Tell whether a type is a union; a struct with bit-fields is none."""
    return isinstance(kind, c_ast.Overlapping) and kind.tag.startswith("union ")


def settings(node: Any, without: Collection[int] = (), known: Collection[str] = ()) -> Iterator[Setting]:
    """Yield what a function sets, with the values; a call may set what the addresses lead to that it is given.

    Those of the statements ``without``, by their ids, are left out, and what calls of ``known`` functions set.
    """
    match node:
        case c_ast.Declare(name, _, init) if init is not None:
            yield c_ast.Name(name), init
        case c_ast.Assignment(_, target, value):
            yield target, value
        case c_ast.Call(name, args) if name not in known:
            yield from ((arg.arg, node) for arg in args if isinstance(arg, c_ast.Unary) and arg.op == "&")
            if name in _COPY and len(args) > 1:
                yield _pointed(args[0]), _pointed(args[1])
        case c_ast.PointerCall():
            yield from ((arg.arg, node) for arg in node.expressions if isinstance(arg, c_ast.Unary) and arg.op == "&")
    for child in c_ast.children(node):
        if id(child) not in without:
            yield from settings(child, without, known)


def _pointed(e: Any) -> Any:
    """Return what a pointer leads to, by the type that it has without casts."""
    while isinstance(e, c_ast.Cast):
        e = e.arg
    return e.arg if isinstance(e, c_ast.Unary) and e.op == "&" else c_ast.Unary("*", e)


# -- pointers that are exchanged --------------------------------------------------------------------


def swaps(node: Any) -> Iterator[tuple[frozenset[str], list[Any]]]:
    """Yield the pointers of which statements exchange the values, and the statements that set them."""
    match node:
        case c_ast.Block(items):
            yield from _exchanged(items)
            for item in items:
                yield from swaps(item)
        case c_ast.For(body=body) | c_ast.While(_, body) | c_ast.Switch(_, body):
            yield from swaps(body)
        case c_ast.If(_, then, other):
            yield from swaps(then)
            yield from swaps(other)


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


# -- functions of the file --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Outline:
    """What matters of a function: what it sets, and calls of functions of the file and through pointers.

    ``result`` is a variable that it sets to what it returns, "" for a number; ``own`` are its variables but those that
    live from call to call. ``exchanged`` are pointers of which statements exchange the values. ``reaches_out``: it may
    set something that its caller knows, or return a pointer; ``names_globals``: it may set one of the file's pointers.
    """

    settings: tuple[Setting, ...]
    calls: tuple[c_ast.Call | c_ast.PointerCall, ...]
    result: str
    params: tuple[str, ...]
    own: frozenset[str]
    types: Mapping[str, c_ast.Type]
    exchanged: tuple[frozenset[str], ...]
    reaches_out: bool
    names_globals: bool


def _carries(target: Any, value: Any, types: Mapping[str, c_ast.Type], numbers: bool) -> bool:
    """Tell whether what is set may hold an address; ``numbers``: addresses are converted to integers."""
    kind = lvalue_type(target, types)
    if not isinstance(kind, c_ast.Basic):
        return True
    return (numbers and kind.dtype in _ADDRESS) or (isinstance(target, c_ast.Field) and _in_union(target, types))


def _in_union(e: c_ast.Expr, types: Mapping[str, c_ast.Type]) -> bool:
    while isinstance(e, c_ast.Field | c_ast.Index):
        e, is_pointer = (e.base, e.arrow) if isinstance(e, c_ast.Field) else (e.base, False)
        if is_union(struct_of(e, is_pointer, types)):
            return True
    return False


def struct_of(e: c_ast.Expr, arrow: bool, types: Mapping[str, c_ast.Type]) -> c_ast.Type | None:
    """Return the type of the struct or union of which ``e.field`` or, with an arrow, ``e->field`` is a part."""
    return lvalue_type(c_ast.Unary("*", e) if arrow else e, types)


def carried(body: Any, types: Mapping[str, c_ast.Type], found: Iterable[Setting]) -> tuple[Setting, ...]:
    """Return those that may set an address."""
    numbers = any(_is_number_of_address(n, types) for n in c_ast.walk(body))
    return tuple((t, v) for t, v in found if _carries(t, v, types, numbers))


def _is_number_of_address(n: Any, types: Mapping[str, c_ast.Type]) -> bool:
    match n:
        case c_ast.Cast(c_ast.Basic(dtype), inner) if dtype in _ADDRESS:
            return isinstance(lvalue_type(inner, types), c_ast.Pointer | c_ast.ArrayOf)
    return False


@dataclass(frozen=True, slots=True, eq=False)
class _FileById:
    """A file as the key of a cache: equal to itself only."""

    file: c_ast.File

    def __hash__(self) -> int:
        return id(self.file)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _FileById) and self.file is other.file


class _Outlines:
    """The outlines of the functions of a file, each made when it is first wanted.

    ``taken`` are the functions that are used as values: a call through a pointer may call them.
    """

    def __init__(self, file: c_ast.File) -> None:
        self.functions = {f.name: f for f in file.functions}
        self.types = {**file.structs, **{d.name: d.type for d in file.globals}}
        self.with_pointers = frozenset(d.name for d in file.globals if has_pointer(d.type))
        values = used_names((*(f.body for f in file.functions), *file.globals))
        self.taken = tuple(f for f in file.functions if f.name in values)
        self.known: dict[str, _Outline | None] = {}

    def of_call(self, call: c_ast.Call) -> _Outline | None:
        """Return the outline of the function that a call calls, None if the file does not define such a one."""
        function = self.functions.get(call.name)
        return None if function is None or len(function.params) != len(call.args) else self.of(function)

    def of(self, function: c_ast.Function) -> _Outline | None:
        """Return the outline of a function of the file, None while it is made."""
        if function.name not in self.known:
            self.known[function.name] = None
            self.known[function.name] = self.made(function)
        return self.known[function.name]

    def made(self, function: c_ast.Function) -> _Outline:
        mark = f"{function.name}:"
        params = {p.name: f"{p.name}#{mark}" for p in function.params}
        body = resolve(function.body, params, mark)
        declared = [n for n in c_ast.walk(body) if isinstance(n, c_ast.Declare)]
        types = {d.name: d.type for d in declared}
        types |= {params[p.name]: _as_parameter(p.type) for p in function.params}
        exchanged, found = set_in(body, {**self.types, **types}, self.functions)
        own = {d.name for d in declared if not d.static}
        result = f"{function.name}#{mark}" if has_pointer(function.result) else ""
        if result:
            types[result] = function.result
            own.add(result)
            returned = (n.value for n in c_ast.walk(body) if isinstance(n, c_ast.Return) and n.value is not None)
            found = (*found, *((c_ast.Name(result), value) for value in returned))
        calls = tuple(self.calls_in(body, {**self.types, **types}))
        # of a function that calls this one, nothing is known yet
        inner = [self.of_call(c) if isinstance(c, c_ast.Call) else None for c in calls]
        swapped = frozenset().union(*exchanged)
        mine = own.union(params.values())
        here = used_names(e for pair in found for e in pair) | used_names(calls) | swapped
        sets_more = any(not (isinstance(t, c_ast.Name) and t.name in mine) for t, _ in found) or not swapped <= mine
        return _Outline(
            found, calls, result, tuple(params[p.name] for p in function.params), frozenset(own), types, exchanged,
            reaches_out=sets_more or bool(result) or any(o is None or o.reaches_out for o in inner),
            names_globals=bool(here & self.with_pointers) or any(o is None or o.names_globals for o in inner),
        )  # fmt: skip

    def calls_in(self, body: c_ast.Block, types: Iterable[str]) -> Iterator[c_ast.Call | c_ast.PointerCall]:
        """Yield the calls of functions of the file, and those through pointers, as of variables with ``types``."""
        called = {*self.functions, *map(base, types)}
        for n in c_ast.walk(body):
            if isinstance(n, c_ast.PointerCall) or (isinstance(n, c_ast.Call) and n.name in called):
                yield n


@lru_cache(maxsize=2)
def _outlines(key: _FileById) -> _Outlines:
    return _Outlines(key.file)


def set_in(
    body: c_ast.Block, types: Mapping[str, c_ast.Type], known: Collection[str]
) -> tuple[tuple[frozenset[str], ...], tuple[Setting, ...]]:
    """Return the pointers that a body exchanges, and what else it sets to addresses but by calls of ``known``."""
    exchanged = list(swaps(body))
    without = {id(item) for _, items in exchanged for item in items}
    return tuple(pointers for pointers, _ in exchanged), carried(body, types, settings(body, without, known))


@dataclass(slots=True)
class Settings:
    """What functions of a file set, with copies of those that they call.

    ``types`` are those of all variables; ``renamed`` are the names that the analysed function has for the file's.
    ``results`` are the variables that hold what calls of functions of the file return, and of functions through
    pointers, by the ids of the calls; ``own`` are the variables that lead nowhere before they are set.
    """

    file: c_ast.File
    types: dict[str, c_ast.Type]
    renamed: Mapping[str, str]
    found: list[Setting] = field(default_factory=list)
    results: dict[int, str] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)
    shared: dict[str, _Outline] = field(default_factory=dict)
    exchanged: list[frozenset[str]] = field(default_factory=list)
    """The pointers of which statements exchange the values."""
    copies: int = 0

    @property
    def outlines(self) -> _Outlines:
        return _outlines(_FileById(self.file))

    def add_function(self, body: c_ast.Block) -> None:
        """Add what the body of the analysed function sets."""
        exchanged, found = set_in(body, self.types, self.outlines.functions)
        self.exchanged += exchanged
        self.own |= {n.name for n in c_ast.walk(body) if isinstance(n, c_ast.Declare) and not n.static}
        self.found += found
        self.add_calls(self.outlines.calls_in(body, self.types), ())

    def add_file(self, analysed: str) -> None:
        """Add what all functions of the file but the analysed one set that name one of its variables with pointers."""
        for function in self.file.functions:
            outline = None if function.name == analysed else self.outlines.of(function)
            if outline is not None and outline.names_globals:
                self.add_copy(self.copy(outline), (function.name,))

    def add_calls(self, calls: Iterable[c_ast.Call | c_ast.PointerCall], callers: tuple[str, ...]) -> None:
        """Add what calls set of functions of the file; ``callers`` are the functions in which they stand."""
        for call in calls:
            if isinstance(call, c_ast.PointerCall):
                self.add_pointer_call(call, call.expressions[1:])
                continue
            if call.name not in self.outlines.functions:
                self.add_pointer_call(call, call.args)
                continue
            outline = self.outlines.of_call(call)
            if outline is None:
                self.found += carried(call, self.types, settings(call))
            elif not outline.reaches_out:
                self.results[id(call)] = ""
            else:
                is_shared = len(callers) >= _MOST_DEEP or call.name in callers or self.copies > _MOST_COPIES
                made = self.copy_for(call.name, outline, callers, is_shared=is_shared)
                self.bind(made, call.args)
                self.results[id(call)] = made.result

    def add_pointer_call(self, call: c_ast.Call | c_ast.PointerCall, args: Sequence[c_ast.Expr]) -> None:
        """Add what a call through a pointer sets, which may call any function that the file uses as a value."""
        result = f"{THROUGH_POINTER}{id(call)}"
        self.own.add(result)
        self.results[id(call)] = result
        for function in self.outlines.taken:
            outline = self.outlines.of(function)
            if outline is not None and outline.reaches_out and len(args) == len(outline.params):
                made = self.copy_for(function.name, outline, (), is_shared=True)
                self.bind(made, args)
                if made.result:
                    self.found.append((c_ast.Name(result), c_ast.Name(made.result)))

    def copy_for(self, name: str, outline: _Outline, callers: tuple[str, ...], *, is_shared: bool) -> _Outline:
        """Return the copy of a function for a call: one of its own, or one for all calls that share it."""
        if is_shared and name in self.shared:
            return self.shared[name]
        made = self.copy(outline)
        if is_shared:
            self.shared[name] = made
        self.own.update(made.params)
        self.add_copy(made, (*callers, name))
        return made

    def bind(self, made: _Outline, args: Iterable[c_ast.Expr]) -> None:
        self.found += [(c_ast.Name(name), arg) for name, arg in zip(made.params, args, strict=True)]

    def add_copy(self, outline: _Outline, callers: tuple[str, ...]) -> None:
        """Add what a copy of a function sets; its parameters lead to memory of their own unless they are bound."""
        self.own |= outline.own
        self.found += outline.settings
        self.exchanged += outline.exchanged
        self.add_calls(outline.calls, callers)

    def copy(self, outline: _Outline) -> _Outline:
        """Return an outline with names of its own; variables of the file have those of the analysed function."""
        self.copies += 1
        new = {name: f"{name}{self.copies}" for name in (*outline.own, *outline.params)}
        names = {**self.renamed, **new}
        calls: dict[int, Any] = {}

        def copied(node: Any) -> Any:
            match node:
                case c_ast.Name(name):
                    return replace(node, name=names[name]) if name in names else node
                case c_ast.Call() | c_ast.PointerCall():
                    # two copies of a call are two calls, whether or not they have names in them
                    if id(node) not in calls:
                        calls[id(node)] = replace(c_ast.map_children(copied, node))
                    return calls[id(node)]
            return c_ast.map_children(copied, node)

        self.types |= {new.get(name, name): kind for name, kind in outline.types.items()}
        return replace(
            outline,
            settings=tuple((copied(target), copied(value)) for target, value in outline.settings),
            calls=tuple(map(copied, outline.calls)),
            result=new.get(outline.result, ""),
            params=tuple(new[name] for name in outline.params),
            own=frozenset(new[name] for name in outline.own),
            exchanged=tuple(frozenset(names.get(n, n) for n in pointers) for pointers in outline.exchanged),
        )


def _as_parameter(kind: c_ast.Type) -> c_ast.Type:
    return c_ast.Pointer(kind.of) if isinstance(kind, c_ast.ArrayOf) else kind
