"""Local arrays that C allocates with ``malloc`` and frees at the end of their block.

    double *t = malloc(n * sizeof(double));                  double t[n];
    double (*a)[m] = malloc(sizeof(double[n][m]));    ==>    double a[n][m];
    if (a == NULL) abort();
    free(a);
    char *s = malloc(n); if (!s) goto out;            ==>    char s[n];
    double *z = calloc(n, sizeof(double));            ==>    double z[n]; memset(z, 0, sizeof(z));

``aligned_alloc`` is ``malloc`` with an argument more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import reduce
from typing import Any

from looptune.frontend import c_ast
from looptune.frontend.c_types import pointer_dimensions

ALLOCATE = ("malloc", "__builtin_malloc")
ZEROED = ("calloc", "__builtin_calloc")
_ALIGNED = ("aligned_alloc", "__builtin_aligned_alloc", "memalign")
"""They take the alignment first."""
_ALSO_ALLOCATE = ("_mm_malloc", "valloc", "alloca")
NAMES = (*ALLOCATE, *ZEROED, *_ALIGNED, "memset")
"""Functions that have to be those of the C library."""
FREE = ("free", "__builtin_free")
_BYTES = ("int8", "uint8", "bool")
"""Types of which a number of bytes is one of elements."""
_END = ("abort", "__builtin_abort", "exit", "__builtin_exit")
_BEFORE_END = (*FREE, "printf", "fprintf", "puts", "fputs", "perror")


def declare_heap_arrays(body: c_ast.Block, own: Collection[str] = ()) -> c_ast.Block:
    """Return the body of a function with the arrays that it allocates declared as local arrays.

    ``own`` are the functions that the file defines itself: a ``malloc`` among them may be anything.
    """
    if {*NAMES, *FREE, *_END} & {*own}:
        return body
    made = _block(body, frozenset())
    return _without_labels(made, _destinations(body) - _destinations(made))


def _destinations(body: c_ast.Block) -> frozenset[str]:
    """Return the labels to which a ``goto`` leads."""
    return frozenset(n.label for n in c_ast.walk(body) if isinstance(n, c_ast.Jump) and n.word == "goto")


def _without_labels(body: c_ast.Block, names: Collection[str]) -> c_ast.Block:
    """Return a body without some labels; one whose address is taken is kept."""
    taken = {a.name for n in c_ast.walk(body) if isinstance(n, c_ast.Call) for a in n.args if isinstance(a, c_ast.Name)}
    unused = {name for name in names if name not in taken}

    def rule(node: Any) -> Any:
        if isinstance(node, c_ast.Block):
            kept = (i for i in node.items if not isinstance(i, c_ast.Label) or i.name not in unused)
            return replace(node, items=tuple(map(rule, kept)))
        return c_ast.map_children(rule, node)

    return rule(body) if unused else body


def allocated_pointers(body: c_ast.Block) -> frozenset[str]:
    """Return the local pointers that are only ever set to memory that was just allocated, each with its own.

    The names are unique (``name_resolution.resolve``).
    """
    fresh: set[str] = set()
    others: set[str] = set()
    for node in c_ast.walk(body):
        match node:
            case c_ast.Unary("&" | "++" | "--", c_ast.Name(name)):
                others.add(name)
            case c_ast.Declare(name, c_ast.Pointer(), init) if init is not None:
                (fresh if _allocates(init) else others).add(name)
            case c_ast.Assignment(op, c_ast.Name(name), value):
                (fresh if not op and _allocates(value) else others).add(name)
    return frozenset(fresh - others)


def allocated_rows(body: c_ast.Block) -> frozenset[str]:
    """Return the local arrays of pointers that are only ever set to memory that was just allocated, each with its own.

    No other function gets such an array, and no other variable is set to it. The names are unique.
    """
    declared = {n.name for n in c_ast.walk(body) if isinstance(n, c_ast.Declare) and _has_rows(n)}
    fresh: set[str] = set()
    others: set[str] = set()

    def visit(node: Any) -> None:
        match node:
            case c_ast.Index(c_ast.Name(name), index) if name in declared:
                visit(index)
            case c_ast.Assignment(op, c_ast.Name(name) | c_ast.Index(c_ast.Name(name), _), value) if name in declared:
                (fresh if not op and _allocates(value) else others).add(name)
                visit(value)
            case c_ast.Call(called, (c_ast.Name(name),)) if called in FREE:
                pass
            case c_ast.SizeOf():
                pass
            case c_ast.Name(name):
                others.add(name)
            case _:
                for child in c_ast.children(node):
                    visit(child)

    visit(body)
    return frozenset((fresh & declared) - others)


def _has_rows(d: c_ast.Declare) -> bool:
    return bool(pointer_dimensions(d.type)) and not d.static and (d.init is None or _allocates(d.init))


def _allocates(value: object) -> bool:
    match _uncast(value):
        case c_ast.Call(called):
            return called in (*ALLOCATE, *ZEROED, *_ALIGNED, *_ALSO_ALLOCATE)
    return _uncast(value) in _NULL


def _block(block: c_ast.Block, arrays: frozenset[str]) -> c_ast.Block:
    """``arrays`` are those allocated in the blocks around."""
    return replace(block, items=tuple(_items(block.items, arrays)))


def _declared(node: Any, arrays: frozenset[str]) -> Any:
    if isinstance(node, c_ast.Block):
        return _block(node, arrays)
    if isinstance(node, c_ast.For | c_ast.While | c_ast.If):
        return c_ast.map_children(lambda child: _declared(child, arrays), node)
    return node


def _items(items: tuple[c_ast.Item, ...], arrays: frozenset[str]) -> Iterator[c_ast.Item]:
    for item in items:
        match item:
            case c_ast.Declare(name, c_ast.Pointer(element), init, static=False) if init is not None:
                count = allocated_count(name, element, init)
                arrays = arrays - {name} if count is None else arrays | {name}
                yield (
                    item
                    if count is None
                    else replace(item, type=c_ast.ArrayOf(element, count), init=None, on_heap=True)
                )
                if count is not None:
                    yield from zeroing(name, init)
            case c_ast.Declare(name):
                arrays -= {name}
                yield item
            case c_ast.Evaluate(c_ast.Call(called, (c_ast.Name(name),))) if called in FREE and name in arrays:
                pass
            case c_ast.Evaluate(c_ast.Assignment("", c_ast.Name(name), null)) if (
                name in arrays and _uncast(null) in _NULL
            ):
                pass
            case c_ast.If() if all(_is_named(e, arrays) for e in _tested(item.cond)) and not _has_label(item.then):
                yield from _items(item.other.items, arrays)
            case _:
                yield _declared(item, arrays)


def allocated_count(name: str, element: c_ast.Type, init: object, depth: int = 1) -> c_ast.Expr | None:
    """Return how many ``element``s are allocated for the pointer ``name``, None where ``init`` does not say so.

    With a ``depth`` of 2 they are allocated for a row to which ``name`` has a pointer.
    """
    match _uncast(init):
        case c_ast.Call(called, (size,)) if called in ALLOCATE:
            factors = tuple(_factors(size))
        case c_ast.Call(called, (_, size)) if called in _ALIGNED:
            factors = tuple(_factors(size))
        case c_ast.Call(called, (count, size)) if called in ZEROED and depth == 1 and not _has_pointers(element):
            factors = (*_factors(count), *_factors(size))
        case _:
            return None
    sizes = [f.of for f in factors if isinstance(f, c_ast.SizeOf)]
    others = [f for f in factors if not isinstance(f, c_ast.SizeOf)]
    match sizes:
        case [c_ast.ArrayOf(of, extent)] if of == element and not others:
            return extent
        case [of] if _is_element(of, name, depth) or _left(others, of, element):
            return _product(others)
        case [] if depth == 1 and isinstance(element, c_ast.Basic) and element.dtype in _BYTES:
            return _product([f for f in others if f != c_ast.Number("1")])
    return None


def _product(factors: list[c_ast.Expr]) -> c_ast.Expr:
    return reduce(lambda a, b: c_ast.Binary("*", a, b, span=a.span), factors or [c_ast.Number("1")])


def zeroing(name: str, init: object) -> Iterator[c_ast.Evaluate]:
    """Yield what sets the array of this name to zero, if ``init`` allocates it so."""
    match _uncast(init):
        case c_ast.Call(called, span=span) if called in ZEROED:
            array = c_ast.Name(name, span=span)
            size = c_ast.SizeOf("sizeof", "the number", (), array, span=span)
            yield c_ast.Evaluate(
                c_ast.Call("memset", (array, c_ast.Number("0", span=span), size), span=span), span=span
            )


def _has_pointers(kind: c_ast.Type) -> bool:
    return any(isinstance(n, c_ast.Pointer) for n in c_ast.walk(kind))


def _left(factors: list[c_ast.Expr], of: object, element: c_ast.Type) -> bool:
    """Take the extents of an ``element`` that is an array of ``of`` out of the factors; tell if they were there."""
    while of != element:
        match element:
            case c_ast.ArrayOf(inner, extent) if extent in factors:
                factors.remove(extent)
                element = inner
            case _:
                return False
    return True


def _factors(e: c_ast.Expr) -> Iterator[c_ast.Expr]:
    match e:
        case c_ast.Binary("*", lhs, rhs):
            yield from _factors(lhs)
            yield from _factors(rhs)
        case _:
            yield e


def _is_element(e: object, name: str, depth: int) -> bool:
    """Tell whether an expression is an element of ``name``, such as ``*name``; of a row of it where ``depth`` is 2."""
    match e:
        case c_ast.Unary("*", inner) | c_ast.Index(inner, _) if depth:
            return _is_element(inner, name, depth - 1)
        case c_ast.Name(pointer):
            return pointer == name and not depth
    return False


def _is_named(e: c_ast.Expr | None, names: Collection[str]) -> bool:
    return isinstance(e, c_ast.Name) and e.name in names


def null_checks(item: c_ast.If) -> tuple[c_ast.Expr | None, ...]:
    """Return what an ``if`` compares with null pointers, one of which is enough, where it only ends the program.

    The result is empty for any other ``if``, and has None for another condition.
    """
    return () if item.other.items or not _ends(item.then) else tuple(_tested(item.cond))


def _tested(cond: c_ast.Expr) -> Iterator[c_ast.Expr | None]:
    match cond:
        case c_ast.Binary("||", lhs, rhs):
            yield from (*_tested(lhs), *_tested(rhs))
        case c_ast.Unary("!", inner):
            yield inner
        case c_ast.Binary("==", inner, null) if _uncast(null) in _NULL:
            yield inner
        case c_ast.Binary("==", null, inner) if _uncast(null) in _NULL:
            yield inner
        case _:
            yield None


def _has_label(block: c_ast.Block) -> bool:
    """Tell whether a jump may lead into a block."""
    return any(isinstance(n, c_ast.Label) for n in c_ast.walk(block))


_NULL: Collection[object] = (c_ast.Number("0"), c_ast.Name("NULL"))


def _ends(then: c_ast.Block) -> bool:
    """Tell whether a block leaves the function or the program, and before that only frees memory or prints."""
    *before, last = then.items or (then,)
    if not all(isinstance(i, c_ast.Evaluate) and isinstance(i.expr, c_ast.Call) for i in before):
        return False
    calls = {n.name for i in (*before, last) for n in c_ast.walk(i) if isinstance(n, c_ast.Call)}
    return calls <= {*_END, *_BEFORE_END} and (isinstance(last, c_ast.Return) or _calls(last, _END))


def _calls(item: object, names: Collection[str]) -> bool:
    """Tell whether a statement is a call of one of the functions."""
    return isinstance(item, c_ast.Evaluate) and isinstance(item.expr, c_ast.Call) and item.expr.name in names


def _uncast(e: object) -> object:
    while isinstance(e, c_ast.Cast):
        e = e.arg
    return e
