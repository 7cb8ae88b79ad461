"""Arrays that a function allocates after it has declared them, and those that it allocates row by row.

    double **a = malloc(n * sizeof *a);
    for (int i = 0; i < n; i++)              ==>    double a[n][m];
      a[i] = malloc(m * sizeof **a);

What is a single call of ``malloc`` in a declaration is an array already (``heap_arrays``). Rows are only
rewritten where one loop allocates all of them, each with the same size.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from looptune.frontend import c_ast
from looptune.frontend.heap_arrays import FREE, NAMES, allocated_count, null_checks, zeroing

Items = tuple[c_ast.Item, ...]


def declare_allocated(items: Items, own: Collection[str]) -> Items:
    """Return the statements of a function with the arrays that it allocates declared where it does so.

    ``own`` are the functions that the file defines itself: a ``malloc`` among them may be anything.
    """
    if {*NAMES, *FREE} & {*own}:
        return items
    found = _Allocations()
    found.search(items)
    types = {name: kind for name, kind in found.types().items() if found.is_array(items, name)}
    return _Rewriter(types).block(items) if types else items


@dataclass(slots=True)
class _Allocations:
    """The local pointers that are declared without a value or as tables, and what they are set to.

    ``rows``: the sizes of the rows that a loop allocates, with the number of its iterations.
    """

    declared: dict[str, c_ast.Declare] = field(default_factory=dict)
    elements: dict[str, c_ast.Type] = field(default_factory=dict)
    sizes: dict[str, list[c_ast.Expr | None]] = field(default_factory=dict)
    rows: dict[str, list[tuple[c_ast.Expr, c_ast.Expr | None]]] = field(default_factory=dict)

    def search(self, items: Items) -> None:
        for item in items:
            match item:
                case c_ast.Declare(name, c_ast.Pointer(of), init, static=False):
                    self.declared[name], self.elements[name] = item, of
                    if init is not None:
                        self.sizes.setdefault(name, []).append(allocated_count(name, of, init))
                case c_ast.Declare(name, c_ast.ArrayOf(c_ast.Pointer() as of, size), None, on_heap=True):
                    self.declared[name], self.elements[name] = item, of
                    self.sizes.setdefault(name, []).append(size)
                case c_ast.Evaluate(c_ast.Assignment("", c_ast.Name(name), value)) if name in self.declared:
                    self.sizes.setdefault(name, []).append(allocated_count(name, self.elements[name], value))
                case c_ast.For(_, _, _, body):
                    self.search_rows(item)
                    self.search(body.items)
                case c_ast.Block(inner):
                    self.search(inner)

    def search_rows(self, loop: c_ast.For) -> None:
        counted = _counted(loop)
        if counted is None:
            return
        counter, count = counted
        for item in loop.body.items:
            for name, value in _row_set(item, counter):
                match self.elements.get(name):
                    case c_ast.Pointer(of) if not _depends(value, counter):
                        self.rows.setdefault(name, []).append((count, allocated_count(name, of, value, 2)))

    def types(self) -> dict[str, c_ast.Type]:
        """Return the types of the arrays."""
        made: dict[str, c_ast.Type] = {}
        for name, element in self.elements.items():
            match element, self.sizes.get(name), self.rows.get(name):
                case c_ast.Pointer(of), [c_ast.Syntax() as size], [(count, c_ast.Syntax() as row)]:
                    if size == count:
                        made[name] = c_ast.ArrayOf(c_ast.ArrayOf(of, row), size)
                case c_ast.Basic() as of, [c_ast.Syntax() as size], None:
                    made[name] = c_ast.ArrayOf(of, size)
        return made

    def is_array(self, items: Items, name: str) -> bool:
        """Tell whether nothing else is done with the pointer, or with a pointer to a row, than to allocate it."""
        d, found = self.declared[name], 0
        for n in (n for top in items for n in c_ast.walk(top)):
            match n:
                case c_ast.Assignment(_, c_ast.Name(own)) if own == name:
                    found += 1
                case c_ast.Assignment(_, c_ast.Index(c_ast.Name(own), _)) if own == name:
                    found += isinstance(self.elements[name], c_ast.Pointer)
                case c_ast.Unary("++" | "--" | "&", c_ast.Name(own)) if own == name:
                    return False
        return found == (d.init is None and not d.on_heap) + len(self.rows.get(name, ()))


def _counted(loop: c_ast.For) -> tuple[str, c_ast.Expr] | None:
    """Return the counter of a loop from 0 and the number of its iterations, None for any other loop."""
    match loop.init:
        case (c_ast.Declare(name, _, c_ast.Number("0")),):
            pass
        case (c_ast.Evaluate(c_ast.Assignment("", c_ast.Name(name), c_ast.Number("0"))),):
            pass
        case _:
            return None
    match loop.cond, loop.next:
        case (
            c_ast.Binary("<", c_ast.Name(own), count),
            c_ast.Unary("++", c_ast.Name(moved)) | c_ast.Assignment("+", c_ast.Name(moved), c_ast.Number("1")),
        ) if own == moved == name:
            return name, count
    return None


def _depends(value: c_ast.Expr, counter: str) -> bool:
    """Tell whether a size depends on a counter; that of a type does not."""
    if isinstance(value, c_ast.SizeOf):
        return False
    return value == c_ast.Name(counter) or any(_depends(part, counter) for part in c_ast.children(value))


def _row_set(item: c_ast.Item, counter: str) -> Iterator[tuple[str, c_ast.Expr]]:
    """Yield the table and the value where a statement sets the pointer to the row ``counter``."""
    match item:
        case c_ast.Evaluate(c_ast.Assignment("", c_ast.Index(c_ast.Name(name), c_ast.Name(own)), value)):
            if own == counter:
                yield name, value


def _last(loop: c_ast.For, counter: str, count: c_ast.Expr) -> c_ast.Evaluate:
    """Return the assignment of the value that the counter has after the loop."""
    zero = c_ast.Number("0", span=loop.span)
    value = c_ast.Ternary(c_ast.Binary(">", count, zero, span=loop.span), count, zero, span=loop.span)
    name = c_ast.Name(counter, span=loop.span)
    return c_ast.Evaluate(c_ast.Assignment("", name, value, span=loop.span), span=loop.span)


@dataclass(slots=True)
class _Rewriter:
    types: Mapping[str, c_ast.Type]

    def block(self, items: Items) -> Items:
        return tuple(made for item in items for made in self.item(item))

    def item(self, item: Any) -> Iterator[Any]:
        match item:
            case c_ast.Declare(name, _, init) if name in self.types:
                if init is not None or item.on_heap:
                    yield self.declared(name, item)
                    yield from self.zeroed(name, init)
            case c_ast.Evaluate(c_ast.Assignment("", c_ast.Name(name), value)) if name in self.types:
                yield self.declared(name, item)
                yield from self.zeroed(name, value)
            case c_ast.Evaluate(c_ast.Assignment("", c_ast.Index(c_ast.Name(name), _))) if self.has_rows(name):
                pass
            case c_ast.Evaluate(c_ast.Call(called, (c_ast.Name(name) | c_ast.Index(c_ast.Name(name), _),))) if (
                called in FREE and name in self.types
            ):
                pass
            case c_ast.If() if self.is_null_check(item):
                pass
            case c_ast.For(_, _, _, body):
                inner = self.block(body.items)
                if inner or not body.items or (counted := _counted(item)) is None:
                    yield replace(item, body=replace(body, items=inner))
                elif not isinstance(item.init[0], c_ast.Declare):
                    yield _last(item, *counted)
            case c_ast.Block():
                yield replace(item, items=self.block(item.items))
            case _:
                yield item

    def zeroed(self, name: str, init: object) -> Iterator[c_ast.Evaluate]:
        """Yield what sets the array to zero, if it is allocated so."""
        match self.types[name]:
            case c_ast.ArrayOf(of) if not isinstance(of, c_ast.ArrayOf):
                yield from zeroing(name, init)

    def is_null_check(self, item: c_ast.If) -> bool:
        tested = null_checks(item)
        return bool(tested) and all(map(self.is_allocated, tested))

    def is_allocated(self, e: c_ast.Expr | None) -> bool:
        """Tell whether an expression is one of the arrays, or a row of one."""
        match e:
            case c_ast.Name(name):
                return name in self.types
            case c_ast.Index(c_ast.Name(name), _):
                return self.has_rows(name)
        return False

    def has_rows(self, name: str) -> bool:
        kind = self.types.get(name)
        return isinstance(kind, c_ast.ArrayOf) and isinstance(kind.of, c_ast.ArrayOf)

    def declared(self, name: str, item: Any) -> c_ast.Declare:
        return c_ast.Declare(name, self.types[name], on_heap=True, span=item.span)
