"""A file as it is analysed where it cannot be compiled: static locals and the state of the C library at file scope.

Constant arrays of many values are arrays at file scope of which nothing is known: a codelet would have an assignment
for each value. What a call through a pointer calls is a function of which nothing is known.

int next(void) {                          static int last_of_next = 1;
  static int last = 1;           ─▶       int next(void) { return last_of_next = last_of_next * 5; }
  return last = last * 5;
}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from looptune.frontend import c_ast
from looptune.frontend.missing_declarations import with_missing_declarations
from looptune.frontend.normalize.library_effects import POINTERS, STATES

_LONGEST_LIST = 32
"""Values of a constant array that stay known."""


def analysed_file(file: c_ast.File) -> c_ast.File:
    """Return the file with static locals at file scope, and the variables of ``library_effects``.

    What missing headers would declare is declared.
    """
    file = with_missing_declarations(file)
    functions: list[c_ast.Function] = []
    found = [_without_list(d) for d in file.globals]
    for function in file.functions:
        statics = {d.name: replace(d, name=f"{d.name}_of_{function.name}") for d in _statics(function)}
        found += map(_without_list, statics.values())
        functions.append(replace(function, body=_changed(function.body, statics)))
    state = c_ast.ArrayOf(c_ast.Basic("int64"), c_ast.Number("1"))
    found += (c_ast.Declare(name, state) for name in STATES)
    found.append(c_ast.Declare(POINTERS, c_ast.Pointer(c_ast.Basic("int64"))))
    return replace(file, functions=tuple(functions), globals=tuple(found))


def _statics(function: c_ast.Function) -> Iterator[c_ast.Declare]:
    """Yield the static variables whose names mean nothing else in the function."""
    declared = [*function.params, *(n for n in c_ast.walk(function.body) if isinstance(n, c_ast.Declare))]
    times = Counter(d.name for d in declared)
    yield from (d for d in declared if d.static and (not d.const or _is_long(d)) and times[d.name] == 1)


def _is_long(d: c_ast.Declare) -> bool:
    return isinstance(d.init, c_ast.InitializerList) and sum(1 for n in c_ast.walk(d.init)) > _LONGEST_LIST


def _without_list(d: c_ast.Declare) -> c_ast.Declare:
    return replace(d, const=False, init=None) if d.const and _is_long(d) else d


def _changed(node: Any, statics: Mapping[str, c_ast.Declare]) -> Any:
    """Return a part of a function without declarations of static variables, and with calls of functions unknown."""
    match node:
        case c_ast.Name(name) if name in statics:
            return replace(node, name=statics[name].name)
        case c_ast.Block(items):
            kept = (i for i in items if not (isinstance(i, c_ast.Declare) and i.name in statics))
            return replace(node, items=tuple(_changed(i, statics) for i in kept))
        case c_ast.PointerCall():
            pointer, *args = node.expressions
            node = c_ast.Call(f"*{_last_name(pointer)}", tuple(args), span=node.span)
    return c_ast.map_children(lambda part: _changed(part, statics), node)


def _last_name(e: Any) -> str:
    """Return the field or variable that a pointer to a function is."""
    match e:
        case c_ast.Name(name) | c_ast.Field(_, name):
            return name
        case c_ast.Unary("*", inner) | c_ast.Index(inner) | c_ast.Cast(_, inner):
            return _last_name(inner)
    return ""
