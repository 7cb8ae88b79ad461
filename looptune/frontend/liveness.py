"""Which scalars hold a value that is still read: backward data flow over a function's statements.

    s = 0;  for (…) { region: s += …; }  return s;        s is live after the region: return and the next pass read it

What cannot be followed (``goto``, what a ``switch`` does, a variable whose address is taken) counts as read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from looptune.frontend import syntax as s
from looptune.frontend.names import resolve, used

Names = frozenset[str]


def live_after(function: s.Block, region: Sequence[s.Item], statics: Names) -> Names:
    """The variables of ``function`` that may be read after the items of ``region`` have run and before they are
    written. ``statics`` keep their values from one call to the next, and so does what stands at file scope."""
    return _at_end(function, region, statics)[1]


def live_before(function: s.Function) -> Names:
    """The names at file scope that the function may read before it writes them."""
    return _at_end(resolve(function.body, {p.name: f"{p.name}#0" for p in function.params}), (), frozenset())[0]


def pointed(function: s.Block) -> Names:
    """The variables whose address is taken."""
    return frozenset(
        n.arg.name for n in s.every(function)
        if isinstance(n, s.Unary) and n.op == "&" and isinstance(n.arg, s.Name)
    )  # fmt: skip


def repeats(function: s.Block, region: Sequence[s.Item], name: str) -> bool:
    """The region can run again without the declaration of ``name`` having run again, so that a value stays in it."""
    if any(isinstance(n, s.Jump) and n.word == "goto" for n in s.every(function)):
        return True
    around = _path(function, region)
    inside = False
    for node in around:
        if inside and isinstance(node, s.For | s.While):
            return True
        # a loop's own variable is declared before its first pass only
        if isinstance(node, s.For) and any(isinstance(i, s.Declare) and i.name == name for i in node.init):
            return True
        if isinstance(node, s.Block) and any(isinstance(i, s.Declare) and i.name == name for i in node.items):
            inside = True
    return not inside and any(isinstance(n, s.For | s.While) for n in around)


def _path(node: Any, region: Sequence[s.Item]) -> list[Any]:
    """The statements around the region, outermost first."""
    if isinstance(node, s.Block) and any(i is region[0] for i in node.items if region):
        return [node]
    for child in s.children(node):
        found = _path(child, region)
        if found:
            return [node, *found]
    return []


def _at_end(function: s.Block, region: Sequence[s.Item], statics: Names) -> tuple[Names, Names]:
    everything = used((function,))
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

    out: Names
    again: Names


@dataclass(slots=True)
class _Flow:
    """``seen`` is what is live after ``last``, the last item of the region."""

    everything: Names
    last: s.Item | None
    seen: Names = field(default=frozenset())

    def block(self, items: Iterable[s.Item], after: Names, jumps: _Jumps) -> Names:
        for item in reversed(tuple(items)):
            if item is self.last:
                self.seen |= after
            after = self.item(item, after, jumps)
        return after

    def item(self, item: s.Item, after: Names, jumps: _Jumps) -> Names:
        match item:
            case s.Declare(name, kind, init):
                kept = after if item.static else after - {name}
                return kept | used(part for part in (kind, init) if part is not None)
            case s.Evaluate(expr):
                return expression(expr, after)
            case s.Block(items):
                return self.block(items, after, jumps)
            case s.If(cond, then, other):
                both = self.block(then.items, after, jumps) | self.block(other.items, after, jumps)
                return expression(cond, both)
            case s.For():
                return self.loop(item, after)
            case s.While():
                return self.while_(item, after)
            case s.Return(value):
                return frozenset() if value is None else expression(value, frozenset())
            case s.Jump(word):
                return jumps.out if word == "break" else jumps.again if word == "continue" else self.everything
            case s.Mark():
                return after
            case _:
                return self.everything

    def loop(self, item: s.For, after: Names) -> Names:
        test = after
        while True:
            again = test if item.next is None else expression(item.next, test)
            body = self.block(item.body.items, again, _Jumps(after, again))
            new = test | (body if item.cond is None else expression(item.cond, body | after))
            if new == test:
                return self.block(item.init, test, _Jumps(after, after))
            test = new

    def while_(self, item: s.While, after: Names) -> Names:
        test = after
        while True:
            body = self.block(item.body.items, test, _Jumps(after, test))
            new = test | expression(item.cond, body | after)
            if new == test:
                return body if item.after else test
            test = new


def expression(e: Any, after: Names) -> Names:
    """What is live before ``e`` is computed. Only assignments that are sure to happen end a life."""
    match e:
        case s.Comma(parts):
            for part in reversed(parts):
                after = expression(part, after)
            return after
        case s.Store("", s.Name(name), value):
            return expression(value, after - {name})
        case _:
            return after | used((e,))
