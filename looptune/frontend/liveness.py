"""Live scalars: backward data flow over a function's statements.

    s = 0;  for (…) { region: s += …; }  return s;        s is live after the region: return and the next pass read it

A variable counts as read if it cannot be followed (``goto``, ``switch``, a variable whose address is taken).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from looptune.frontend import c_ast
from looptune.frontend.name_resolution import resolve, used_names
from looptune.frontend.statement_facts import set_names, variable_assignment

Names = frozenset[str]


def live_after(function: c_ast.Block, region: Sequence[c_ast.Item], statics: Names) -> Names:
    """Return the variables of ``function`` that may be read after ``region`` has run and before they are written.

    ``statics``, and variables at file scope, keep their values from one call to the next.
    """
    return _at_end(function, region, statics)[1]


def live_before(function: c_ast.Function) -> Names:
    """Return the names at file scope that the function may read before it writes them."""
    return _at_end(resolve(function.body, {p.name: f"{p.name}#0" for p in function.params}), (), frozenset())[0]


def address_taken(function: c_ast.Block) -> Names:
    """Return the variables whose address is taken."""
    return frozenset(
        n.arg.name for n in c_ast.walk(function)
        if isinstance(n, c_ast.Unary) and n.op == "&" and isinstance(n.arg, c_ast.Name)
    )  # fmt: skip


def file_addresses(function: c_ast.Function) -> Names:
    """Return the variables of the file whose address a function takes."""
    own = (*function.params, *(n for n in c_ast.walk(function.body) if isinstance(n, c_ast.Declare)))
    return address_taken(function.body) - {d.name for d in own}


def may_repeat(function: c_ast.Block, region: Sequence[c_ast.Item], name: str) -> bool:
    """Tell whether the region can run again without a new execution of the declaration of ``name``.

    Its value then survives.
    """
    if any(isinstance(n, c_ast.Jump) and n.word == "goto" for n in c_ast.walk(function)):
        return True
    around = _path(function, region)
    inside = False
    for node in around:
        if inside and isinstance(node, c_ast.For | c_ast.While):
            return True
        # a loop's own variable is declared before its first pass only
        if isinstance(node, c_ast.For) and any(isinstance(i, c_ast.Declare) and i.name == name for i in node.init):
            return True
        if isinstance(node, c_ast.Block) and any(isinstance(i, c_ast.Declare) and i.name == name for i in node.items):
            inside = True
    return not inside and any(isinstance(n, c_ast.For | c_ast.While) for n in around)


def preceding_items(function: c_ast.Block, region: Sequence[c_ast.Item]) -> tuple[c_ast.Item, ...]:
    """Return the statements that have run whenever the region begins: those before it in the blocks around it."""
    path = _path(function, region)
    if any(isinstance(n, c_ast.Label | c_ast.Case) for n in c_ast.walk(function)):
        return ()
    found: list[c_ast.Item] = []
    for block, inner in zip(path, (*path[1:], *region[:1]), strict=True):
        if isinstance(block, c_ast.Block):
            for item in block.items:
                if item is inner:
                    break
                found.append(item)
    return tuple(found)


def counted_around(function: c_ast.Block, region: Sequence[c_ast.Item]) -> dict[str, Counter[str]]:
    """Return how often the headers of loops set each variable around a declaration or an assignment and the region.

    Between the one and the other these variables do not change. The key is the variable that is declared or assigned.
    """
    headers: Counter[str] = Counter()
    found: dict[str, Counter[str]] = {}
    for node in _path(function, region):
        match node:
            case c_ast.For(init, _, step):
                headers.update(set_names(c_ast.Block((*init, *(() if step is None else (c_ast.Evaluate(step),))))))
            case c_ast.Block(items):
                for item in items:
                    set_here = variable_assignment(item)
                    name = item.name if isinstance(item, c_ast.Declare) else set_here and set_here.target.name
                    if name:
                        found[name] = Counter(headers)
    return found


def _path(node: Any, region: Sequence[c_ast.Item]) -> list[Any]:
    """Return the statements around the region, outermost first."""
    if isinstance(node, c_ast.Block) and any(i is region[0] for i in node.items if region):
        return [node]
    for child in c_ast.children(node):
        found = _path(child, region)
        if found:
            return [node, *found]
    return []


def _at_end(function: c_ast.Block, region: Sequence[c_ast.Item], statics: Names) -> tuple[Names, Names]:
    everything = used_names((function,))
    end: Names = frozenset()
    while True:
        flow = _Flow(everything, region[-1] if region else None)
        before = flow.block(function.items, end, _Jumps(end, end))
        if before & statics <= end:
            return before, flow.seen
        end |= before & statics


@dataclass(frozen=True, slots=True)
class _Jumps:
    """What is live where ``break`` and ``continue`` go."""

    break_live: Names
    continue_live: Names


@dataclass(slots=True)
class _Flow:
    """``seen`` is what is live after ``last``, the last item of the region."""

    everything: Names
    last: c_ast.Item | None
    seen: Names = field(default=frozenset())

    def block(self, items: Iterable[c_ast.Item], after: Names, jumps: _Jumps) -> Names:
        for item in reversed(tuple(items)):
            if item is self.last:
                self.seen |= after
            after = self.item(item, after, jumps)
        return after

    def item(self, item: c_ast.Item, after: Names, jumps: _Jumps) -> Names:
        match item:
            case c_ast.Declare(name, kind, init):
                kept = after if item.static else after - {name}
                return kept | used_names(part for part in (kind, init) if part is not None)
            case c_ast.Evaluate(expr):
                return expression(expr, after)
            case c_ast.Block(items):
                return self.block(items, after, jumps)
            case c_ast.If(cond, then, other):
                both = self.block(then.items, after, jumps) | self.block(other.items, after, jumps)
                return expression(cond, both)
            case c_ast.For():
                return self.loop(item, after)
            case c_ast.While():
                return self.while_(item, after)
            case c_ast.Return(value):
                return frozenset() if value is None else expression(value, frozenset())
            case c_ast.Jump(word):
                return (
                    jumps.break_live
                    if word == "break"
                    else jumps.continue_live
                    if word == "continue"
                    else self.everything
                )
            case c_ast.PragmaItem() | c_ast.Label():
                return after
            case c_ast.Region(_, items):
                return self.block(items, after, jumps)
            case _:
                return self.everything

    def loop(self, item: c_ast.For, after: Names) -> Names:
        test = after
        while True:
            again = test if item.next is None else expression(item.next, test)
            body = self.block(item.body.items, again, _Jumps(after, again))
            new = test | (body if item.cond is None else expression(item.cond, body | after))
            if new == test:
                return self.block(item.init, test, _Jumps(after, after))
            test = new

    def while_(self, item: c_ast.While, after: Names) -> Names:
        test = after
        while True:
            body = self.block(item.body.items, test, _Jumps(after, test))
            new = test | expression(item.cond, body | after)
            if new == test:
                return body if item.after else test
            test = new


def expression(e: Any, after: Names) -> Names:
    """Return the variables that are live before ``e`` is computed.

    Only assignments that surely happen end a live range.
    """
    match e:
        case c_ast.Comma(parts):
            for part in reversed(parts):
                after = expression(part, after)
            return after
        case c_ast.Assignment("", c_ast.Name(name), value):
            return expression(value, after - {name})
        case _:
            return after | used_names((e,))
