"""``break``, ``continue``, ``goto`` and ``return`` as conditions and flags.

    for (…) { A; if (c) break; B; }      int on = 1;  for (…) if (on) { A; if (c) on = 0; else B; }
    if (c) return; S                     if (!c) S
    for (…) if (c) goto done; S; done:   int on = 1;  for (…) if (on) if (c) on = 0;  if (on) S;

Each jump leaves a region of statements: ``continue`` the body of its loop, ``break`` its loop, ``return`` the function,
``goto`` the statements before its label. What follows the jump in the region becomes the other branch of the condition
around the jump; where that is not possible, and around the iterations of a loop, a flag says whether it still runs. No
statement is copied. A loop keeps its form, so that its subscripts can be analysed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any

from looptune.core.errors import UnsupportedError
from looptune.frontend import c_ast
from looptune.frontend.liveness import live_after
from looptune.frontend.loop_headers import loop_header
from looptune.frontend.name_resolution import base

if TYPE_CHECKING:
    from looptune.core.source import Span

Items = tuple[c_ast.Item, ...]
FLAG = "on#f"
"""What the names of flags begin with."""
_LAST = "#last"


def eliminate_jumps(
    items: Items, is_body: bool, numbers: Iterator[int] | None = None, *, may_leave: bool = False
) -> Items:
    """Return the statements without jumps. ``is_body``: they are a whole function, so that ``return`` ends them.

    ``may_leave``: so does every jump out of them.

    Raises UnsupportedError for a ``return`` from a part of a function and a ``goto`` that leads into a block.
    """
    jumps = c_ast.Jump | c_ast.Return | c_ast.Label | c_ast.Region
    if not any(isinstance(n, jumps) for n in c_ast.walk(c_ast.Block(items))):
        return items
    whole = c_ast.Block(items) if is_body else None
    marker = _Marker(count(1) if numbers is None else numbers, whole, is_body or may_leave)
    marked = marker.block(items)
    if may_leave:
        marked = _outward(marked)
    if is_body or may_leave:
        marked = (c_ast.Region("return", marked),)
    return _finished(_eliminated(marked))


def _finished(items: Items) -> Items:
    """Return the statements without what the elimination noted at loops."""

    def rule(node: Any) -> Any:
        node = c_ast.map_children(rule, node)
        if isinstance(node, c_ast.For) and _LAST in node.until:
            return replace(node, until=tuple(u for u in node.until if u != _LAST))
        return node

    return tuple(rule(item) for item in items)


# -- regions ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Marker:
    """Replaces jumps by ``Leave``, and puts what they leave into regions.

    ``whole`` is the function, None where the statements are a part of one. ``returns``: a ``return`` ends them.
    """

    numbers: Iterator[int]
    whole: c_ast.Block | None
    returns: bool

    def block(self, items: Items) -> Items:
        return self.labels(tuple(self.item(item) for item in items))

    def item(self, item: Any) -> Any:
        match item:
            case c_ast.For() | c_ast.While():
                return self.loop(item)
            case c_ast.Return():
                if not self.returns:
                    message = "a return from a part of a function is not accepted: make the part a function of its own"
                    raise UnsupportedError(message, item.span)
                return c_ast.Leave("return", "return", span=item.span)
            case c_ast.Block(items):
                return replace(item, items=self.block(items))
            case c_ast.Region(_, items):
                return replace(item, items=self.block(items))
            case c_ast.If(_, then, other):
                return replace(item, then=self.item(then), other=self.item(other))
            case _:
                return item

    def loop(self, item: c_ast.For | c_ast.While) -> c_ast.Item:
        number = next(self.numbers)
        body = item.body.items
        kept = self.counter_is_read(item)
        if _jumps(body, "continue"):
            body = (c_ast.Region(f"continue{number}", leaving(body, "continue", f"continue{number}")),)
        breaks = _jumps(body, "break")
        if breaks:
            body = leaving(body, "break", f"break{number}")
        loop = replace(item, body=replace(item.body, items=self.block(body)))
        if kept and isinstance(loop, c_ast.For):
            loop = replace(loop, until=(_LAST,))
        return c_ast.Region(f"break{number}", (loop,), span=item.span) if breaks else loop

    def counter_is_read(self, item: c_ast.For | c_ast.While) -> bool:
        """Tell whether the variable that the loop counts with may be read after the loop."""
        head = loop_header(item) if isinstance(item, c_ast.For) else None
        if head is None or head.declared is not None or not _may_leave(item):
            return False
        if self.whole is None or any(isinstance(n, c_ast.Jump) and n.word == "goto" for n in c_ast.walk(item)):
            return True
        return head.var in live_after(self.whole, (item,), frozenset())

    def labels(self, items: Items) -> Items:
        """Put what a ``goto`` to one of the labels among the statements leaves into a region."""
        while True:
            place = next((k for k, item in enumerate(items) if isinstance(item, c_ast.Label)), None)
            if place is None:
                return items
            label = items[place]
            assert isinstance(label, c_ast.Label), "found as one"
            items = self.labelled(items, place, label)

    def labelled(self, items: Items, place: int, label: c_ast.Label) -> Items:
        before, after = items[:place], items[place + 1 :]
        word = f"goto {label.name}"
        backward = [k for k, item in enumerate(after) if _goes(item, label.name)]
        if backward:
            number = next(self.numbers)
            again, out = f"again{number}", f"break{number}"
            body = self.labels(_to(after[: backward[-1] + 1], label.name, again))
            inner: Items = (c_ast.Region(again, (*body, c_ast.Leave(out, word, span=label.span))),)
            loop = c_ast.While(c_ast.Number("1", span=label.span), c_ast.Block(inner), span=label.span)
            after = (c_ast.Region(out, (loop,)), *after[backward[-1] + 1 :])
        forward = [k for k, item in enumerate(before) if _goes(item, label.name)]
        if not forward and not backward:
            message = f"a goto leads to {base(label.name)} from outside of this block: write a loop or an if instead"
            raise UnsupportedError(message, label.span)
        if not forward:
            return (*before, *after)
        name = f"goto{next(self.numbers)}"
        skipped = c_ast.Region(name, _to(before[forward[0] :], label.name, name))
        return (*before[: forward[0]], skipped, *after)


def _may_leave(item: c_ast.For | c_ast.While) -> bool:
    words = ("break", "goto")
    return any(isinstance(n, c_ast.Return) or (isinstance(n, c_ast.Jump) and n.word in words) for n in c_ast.walk(item))


def _own(items: Items, word: str) -> Iterator[c_ast.Jump]:
    """Yield the jumps that belong to the loop whose body these are."""
    for item in items:
        match item:
            case c_ast.Jump() if item.word == word:
                yield item
            case c_ast.Block(inner) | c_ast.Region(_, inner):
                yield from _own(inner, word)
            case c_ast.If(_, then, other):
                yield from _own((*then.items, *other.items), word)


def _jumps(items: Items, word: str) -> bool:
    return any(True for _ in _own(items, word))


def leaving(items: Items, word: str, name: str) -> Items:
    """Return the body of a loop with its own jumps as ``Leave``."""
    return tuple(_left(item, word, name) for item in items)


def leave_loop_body(body: Items, name: str) -> Items:
    """Return the body of a loop as a region that its ``continue`` leaves, if it has one."""
    return (c_ast.Region(name, leaving(body, "continue", name)),) if _jumps(body, "continue") else body


def ends_in_jump(items: Items) -> bool:
    """Tell whether the statements end in a jump, so that none of those after them follows."""
    if not items:
        return False
    match items[-1]:
        case c_ast.If(_, then, other):
            return ends_in_jump(then.items) and ends_in_jump(other.items)
        case c_ast.Block(inner):
            return ends_in_jump(inner)
        case last:
            return isinstance(last, c_ast.Jump | c_ast.Return | c_ast.Leave)


def _left(item: Any, word: str, name: str) -> Any:
    match item:
        case c_ast.Jump() if item.word == word:
            return c_ast.Leave(name, word, span=item.span)
        case c_ast.Block(inner) | c_ast.Region(_, inner):
            return replace(item, items=leaving(inner, word, name))
        case c_ast.If(_, then, other):
            return replace(item, then=_left(then, word, name), other=_left(other, word, name))
        case _:
            return item


def _goes(node: Any, label: str) -> bool:
    return any(isinstance(n, c_ast.Jump) and n.word == "goto" and n.label == label for n in c_ast.walk(node))


def _outward(items: Items) -> Items:
    """Return the statements with every ``goto`` to a label that is not among them as ``Leave``."""
    nodes = list(c_ast.walk(c_ast.Block(items)))
    own = {n.name for n in nodes if isinstance(n, c_ast.Label)}
    for label in {n.label for n in nodes if isinstance(n, c_ast.Jump) and n.word == "goto"} - own:
        items = _to(items, label, "return")
    return items


def _to(items: Items, label: str, name: str) -> Items:
    """Return the statements with every ``goto`` to the label as ``Leave``."""

    def rule(node: Any) -> Any:
        if isinstance(node, c_ast.Jump) and node.word == "goto" and node.label == label:
            return c_ast.Leave(name, "goto", span=node.span)
        return c_ast.map_children(rule, node)

    return tuple(rule(item) for item in items)


# -- elimination ------------------------------------------------------------------------------------


def _eliminated(items: Items) -> Items:
    """Return the statements without regions, the inner ones first."""
    done: list[c_ast.Item] = []
    for item in items:
        match item:
            case c_ast.Region(name, inner):
                done += _Elimination(name).region(_eliminated(inner), item.span)
            case c_ast.Jump("goto", label):
                where = "into a block, out of what is compiled, or to no label"
                message = f"goto {base(label)} leads {where}: write a loop or an if instead"
                raise UnsupportedError(message, item.span)
            case c_ast.Jump(word):
                raise UnsupportedError(f"this {word} leaves the part of the function that is compiled", item.span)
            case c_ast.Block(inner):
                done.append(replace(item, items=_eliminated(inner)))
            case c_ast.If(_, then, other):
                then, other = (replace(b, items=_eliminated(b.items)) for b in (then, other))
                done.append(replace(item, then=then, other=other))
            case c_ast.For() | c_ast.While():
                done.append(replace(item, body=replace(item.body, items=_eliminated(item.body.items))))
            case _:
                done.append(item)
    return tuple(done)


@dataclass(slots=True)
class _Elimination:
    """Rewrites one region. ``asked``: something reads its flag."""

    name: str
    asked: bool = False
    clears: list[c_ast.Item] = field(default_factory=list)

    @property
    def flag(self) -> str:
        return f"{FLAG}{self.name}"

    def region(self, items: Items, span: Span) -> Items:
        if not _leaves_somewhere(items, self.name):
            return items
        done = self.rest(items)
        if not self.asked:
            return _without(done, self.clears)
        first = next((i.span for i in items if i.span.line), span)
        kind = c_ast.Basic("int32")
        return (c_ast.Declare(self.flag, kind, c_ast.Number("1", span=first), span=first), *done)

    def rest(self, items: Items) -> Items:
        for k, item in enumerate(items):
            if isinstance(item, c_ast.Leave):
                return (*items[:k], self.clear(item) if item.name == self.name else item)
            if _leaves_somewhere((item,), self.name):
                return (*items[:k], *self.split(item, items[k + 1 :]))
        return items

    def clear(self, item: c_ast.Leave) -> c_ast.Item:
        zero = c_ast.Number("0", span=item.span)
        made = c_ast.Evaluate(c_ast.Assignment("", c_ast.Name(self.flag, span=item.span), zero, span=item.span))
        self.clears.append(made)
        return made

    def test(self, span: Span) -> c_ast.Name:
        self.asked = True
        return c_ast.Name(self.flag, span=span)

    def guarded(self, items: Items, span: Span) -> Items:
        """Return what runs where the region has not been left."""
        if not items:
            return ()
        return (c_ast.If(self.test(span), c_ast.Block(self.rest(items)), c_ast.Block(()), span=span),)

    def split(self, item: c_ast.Item, after: Items) -> Items:
        """Return ``item``, which may leave the region, and what follows it."""
        match item:
            case c_ast.Block(items):
                return self.rest((*items, *after))
            case c_ast.If():
                return self.branches(item, after)
            case c_ast.For() | c_ast.While():
                return (*self.loop(item), *self.guarded(after, item.span))
        raise AssertionError(f"{item} does not jump")

    def branches(self, item: c_ast.If, after: Items) -> Items:
        then, other = item.then.items, item.other.items
        ends_then, ends_other = ends_in_jump(then), ends_in_jump(other)
        following: Items = ()
        if ends_then and not ends_other:
            other = (*other, *after)
        elif ends_other and not ends_then:
            then = (*then, *after)
        elif not ends_then:
            following = self.guarded(after, item.span)
        new_then, new_other = c_ast.Block(self.rest(then)), c_ast.Block(self.rest(other))
        return (replace(item, then=new_then, other=new_other), *following)

    def loop(self, item: c_ast.For | c_ast.While) -> Items:
        """Return a loop that ends where the region is left inside of it."""
        before = len(self.clears)
        body = self.rest(item.body.items)
        flag = self.test(item.span)
        if isinstance(item, c_ast.While):
            always = isinstance(item.cond, c_ast.Number) and item.cond.text == "1"
            cond = flag if always else c_ast.Binary("&&", flag, item.cond, span=item.cond.span)
            return (replace(item, cond=cond, body=replace(item.body, items=body)),)
        head = loop_header(item)
        if _LAST not in item.until or head is None:
            return (replace(item, body=replace(item.body, items=body), until=(*item.until, self.flag)),)
        return self.counted(item, head.var, body, before)

    def counted(self, item: c_ast.For, var: str, body: Items, before: int) -> Items:
        """Return a loop whose variable has the value of the last iteration after it, if it was left."""
        last, span = f"{var}{self.name}", item.span
        kept = c_ast.Evaluate(_set(last, var, span), span=span)
        body = _preceded(body, self.clears[before:], kept)
        back = c_ast.Block((c_ast.Evaluate(_set(var, last, span), span=span),))
        # Its first value is never read, which shows that iterations of a loop around do not share it.
        first = c_ast.Number("0", span=span)
        declared = c_ast.Declare(last, c_ast.TypeOf(c_ast.Name(var, span=span)), first, span=span)
        loop = replace(item, body=replace(item.body, items=body), until=(*item.until, self.flag))
        not_on = c_ast.Unary("!", self.test(span), span=span)
        return (declared, loop, c_ast.If(not_on, back, c_ast.Block(()), span=span))


def _set(target: str, value: str, span: Span) -> c_ast.Assignment:
    return c_ast.Assignment("", c_ast.Name(target, span=span), c_ast.Name(value, span=span), span=span)


def _leaves_somewhere(items: Items, name: str) -> bool:
    return any(isinstance(n, c_ast.Leave) and n.name == name for n in c_ast.walk(c_ast.Block(items)))


def _without(items: Items, gone: list[c_ast.Item]) -> Items:
    """Return the statements without those that are ``gone``; a condition with an empty first branch is turned."""
    ids = {id(item) for item in gone}

    def block(items: Items) -> Items:
        return tuple(rule(item) for item in items if id(item) not in ids)

    def rule(item: Any) -> Any:
        match item:
            case c_ast.If(cond, then, other):
                then, other = replace(then, items=block(then.items)), replace(other, items=block(other.items))
                if then.items or not other.items:
                    return replace(item, then=then, other=other)
                return c_ast.If(c_ast.Unary("!", cond, span=cond.span), other, then, span=item.span)
            case c_ast.Block(inner):
                return replace(item, items=block(inner))
            case _:
                return item

    return block(items)


def _preceded(items: Items, places: list[c_ast.Item], by: c_ast.Item) -> Items:
    """Return the statements with ``by`` before each of those at the ``places``."""
    ids = {id(item) for item in places}

    def block(items: Items) -> Items:
        return tuple(new for item in items for new in ((by, item) if id(item) in ids else (rule(item),)))

    def rule(item: Any) -> Any:
        match item:
            case c_ast.If(_, then, other):
                return replace(item, then=replace(then, items=block(then.items)),
                               other=replace(other, items=block(other.items)))  # fmt: skip
            case c_ast.Block(inner):
                return replace(item, items=block(inner))
            case c_ast.For() | c_ast.While():
                return replace(item, body=replace(item.body, items=block(item.body.items)))
            case _:
                return item

    return block(items)
