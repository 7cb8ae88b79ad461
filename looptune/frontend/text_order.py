"""Why the iterations of a loop have an order, as its text shows it: for loops of which there is no codelet.

    for (i = 0; i < n; i++) { p = next(p); … }          it calls next, of which nothing is known, in this order
    for (i = 0; i < n; i++) { if (x[i]) break; … }      a jump may end it early
    for (i = 0; i < n; i++) { x[i] = last; last = i; }  an iteration reads last, which one before may set
    while (*s++ != t) …                                 each iteration decides whether there is a next one

Nothing is said of a loop whose iterations only use memory, nor of variables that may be sums or counters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from looptune.core.source import Span
from looptune.frontend import c_ast
from looptune.frontend.liveness import address_taken
from looptune.frontend.math_functions import is_pure
from looptune.frontend.nests import SourceLoop
from looptune.frontend.normalize.library_calls import is_library_call
from looptune.frontend.normalize.library_effects import has_order

Names = frozenset[str]
_LOOPS = (c_ast.For, c_ast.While)
_SUMS = ("+", "-", "*", "&", "|", "^")


@dataclass(frozen=True, slots=True)
class TextOrder:
    """Why the iterations of a loop have an order, and the place that shows it.

    ``counter`` is the loop's variable, "while" if it has none; ``scalar`` the one that is carried.
    """

    why: Literal["next", "jump", "call", "scalar"]
    span: Span
    counter: str
    scalar: str = ""


def text_order(loop: SourceLoop, function: c_ast.Function, file: c_ast.File) -> TextOrder | None:
    """Return why the iterations of a loop of a function have an order, None where the text does not show it."""
    uses = _Uses(loop, function)
    if uses.decides():
        return TextOrder("next", loop.span, "while")
    step = loop.next if isinstance(loop, c_ast.For) else None
    counter = "while" if step is None else next((u.name for u in _updates(step, False)), "while")
    call = next(_ordered_calls(loop, file, frozenset({function.name})), None)
    if call is not None:
        return TextOrder("call", call.span, counter)
    jump = next(_exits(loop), None)
    if jump is not None:
        return TextOrder("jump", jump.span, counter)
    read = uses.carried()
    return None if read is None else TextOrder("scalar", read.span, counter, read.name)


# -- calls and jumps --------------------------------------------------------------------------------


def _ordered_calls(node: Any, file: c_ast.File, around: Names) -> Iterator[c_ast.Call]:
    """Yield the calls that have to happen in the order of the text, also those of functions that call them."""
    for call in (n for n in c_ast.walk(node) if isinstance(n, c_ast.Call)):
        called = next((f for f in file.functions if f.name == call.name), None)
        if called is None:
            if not (is_pure(call.name) or call.name in file.pure or is_library_call(call)) and has_order(call.name):
                yield call
        elif call.name not in around and any(_ordered_calls(called.body, file, around | {call.name})):
            yield call


def _exits(loop: SourceLoop) -> Iterator[c_ast.Return | c_ast.Jump]:
    """Yield the jumps that end a loop."""
    own = {n.name for n in c_ast.walk(loop.body) if isinstance(n, c_ast.Label)}
    yield from (n for n in _breaks(loop.body) if isinstance(n, c_ast.Jump))
    for node in c_ast.walk(loop.body):
        if isinstance(node, c_ast.Return) or (isinstance(node, c_ast.Jump) and node.label and node.label not in own):
            yield node


def _breaks(node: Any) -> Iterator[Any]:
    """Yield each ``break`` that ends the loop around the node."""
    for child in c_ast.children(node):
        if isinstance(child, c_ast.Jump) and child.word == "break":
            yield child
        elif not isinstance(child, (*_LOOPS, c_ast.Switch)):
            yield from _breaks(child)


# -- scalars ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Update:
    """An assignment to a variable; ``sometimes``: not each iteration makes it; ``is_used``: its value is an operand."""

    name: str
    node: Any
    sometimes: bool
    is_used: bool


@dataclass(slots=True)
class _Uses:
    """The variables that a loop sets and that live longer than one of its iterations."""

    loop: SourceLoop
    function: c_ast.Function
    updates: dict[str, list[_Update]] = field(default_factory=dict)
    unknown: Names = frozenset()

    def __post_init__(self) -> None:
        own = {n.name for n in c_ast.walk(self.loop.body) if isinstance(n, c_ast.Declare)}
        self.unknown = address_taken(self.function.body) | own
        for update in (u for part in _iteration(self.loop) for u in _updates(part, False)):
            self.updates.setdefault(update.name, []).append(update)

    def decides(self) -> bool:
        """Tell whether each iteration decides in a way that cannot be computed before whether there is a next one."""
        cond = self.loop.cond
        if cond is None:
            return True
        if isinstance(cond, c_ast.Number):
            return False
        named = {n.name for n in c_ast.walk(cond) if isinstance(n, c_ast.Name)} & self.updates.keys()
        if any(not self.is_counter(name) for name in named):
            return True
        return any(_names(n) & named for n in c_ast.walk(cond) if _is_memory(n))

    def is_counter(self, name: str) -> bool:
        """Tell whether a variable changes by the same number in each iteration."""
        return all(not u.sometimes and not self.varies(_step(u)) for u in self.updates[name])

    def varies(self, step: Any) -> bool:
        if step is None:
            return True
        return bool(_names(step) & self.updates.keys()) or any(
            isinstance(n, c_ast.Call | c_ast.Unsupported) or _is_memory(n) for n in c_ast.walk(step)
        )

    def may_be_sum(self, name: str) -> bool:
        """Tell whether a variable is used only where it is set again, and in the conditions of that."""
        updates = self.updates[name]
        nodes = [u.node for u in updates]
        nodes += [n.cond for n in c_ast.walk(self.loop) if isinstance(n, c_ast.If) and _sets(n, name)]
        inside = {id(n) for node in nodes for n in c_ast.walk(node)}
        elsewhere = any(n == c_ast.Name(name) and id(n) not in inside for n in c_ast.walk(self.loop))
        return not elsewhere and all((u.sometimes or _is_sum(u)) and not u.is_used for u in updates)

    def carried(self) -> c_ast.Name | None:
        """Return a read of a variable before the iteration sets it, where another iteration may have set it."""
        names = self.updates.keys() - self.unknown
        flow = _Flow(frozenset(n for n in names if not self.is_counter(n) and not self.may_be_sum(n)))
        try:
            flow.iteration(self.loop)
        except _Unknown:
            return None
        return flow.read[0] if flow.read else None


def _iteration(loop: SourceLoop) -> tuple[Any, ...]:
    """Return the parts of a loop that each of its iterations runs, in their order."""
    match loop:
        case c_ast.For(_, cond, step, body):
            parts: tuple[Any, ...] = (cond, body, step)
        case c_ast.While(cond, body, after):
            parts = (body, cond) if after else (cond, body)
    return tuple(p for p in parts if p is not None)


def _names(node: Any) -> Names:
    return frozenset(n.name for n in c_ast.walk(node) if isinstance(n, c_ast.Name))


def _is_memory(e: Any) -> bool:
    return isinstance(e, c_ast.Index | c_ast.Field) or (isinstance(e, c_ast.Unary) and e.op == "*")


def _sets(node: c_ast.If, name: str) -> bool:
    return any(u.name == name for part in (node.then, node.other) for u in _updates(part, True))


def _updates(node: Any, sometimes: bool, is_used: bool = False) -> Iterator[_Update]:
    """Yield the assignments to variables in a part of a loop."""
    match node:
        case c_ast.Assignment(_, c_ast.Name(name)) | c_ast.Unary("++" | "--", c_ast.Name(name)):
            yield _Update(name, node, sometimes, is_used)
    first = _always(node)
    operator = isinstance(node, c_ast.Expr) and not isinstance(node, c_ast.Comma)
    for child in c_ast.children(node):
        yield from _updates(child, sometimes or (first is not None and child is not first), operator)


def _always(node: Any) -> Any:
    """Return the part of a condition that is always computed, None for other nodes."""
    match node:
        case c_ast.If(cond) | c_ast.Switch(cond) | c_ast.Ternary(cond) | c_ast.Binary("&&" | "||", cond):
            return cond
    return None


def _step(update: _Update) -> c_ast.Expr | None:
    """Return by what an assignment changes its variable, None where it sets it to another value."""
    match update.node:
        case c_ast.Unary():
            return c_ast.Number("1")
        case c_ast.Assignment("+" | "-", _, value):
            return value
        case c_ast.Assignment("", target, c_ast.Binary("+", lhs, rhs)) if rhs == target:
            return lhs
        case c_ast.Assignment("", target, c_ast.Binary("+" | "-", lhs, rhs)) if lhs == target:
            return rhs
    return None


def _is_sum(update: _Update) -> bool:
    match update.node:
        case c_ast.Unary():
            return True
        case c_ast.Assignment(op) if op in _SUMS:
            return True
        case c_ast.Assignment("", _, value):
            return update.name in _names(value)
    return False


State = Names | None
"""The variables that the iteration has set, None where it cannot be."""


class _Unknown(Exception):
    """A statement whose order of execution is not followed, such as a ``goto``."""


def _joined(*states: State) -> State:
    known = [s for s in states if s is not None]
    return frozenset.intersection(*known) if known else None


@dataclass(slots=True)
class _Jumps:
    """What is set where jumps leave a loop or ``switch``, and where they go on with its next iteration."""

    breaks: list[State] = field(default_factory=list)
    continues: list[State] = field(default_factory=list)


@dataclass(slots=True)
class _Flow:
    """Finds reads of variables that the iteration has not set; a loop inside of it runs at least once."""

    names: Names
    read: list[c_ast.Name] = field(default_factory=list)

    def iteration(self, loop: SourceLoop) -> State:
        """Follow one iteration; return what is set after the loop where that is its last one."""
        state: State = frozenset()
        jumps = _Jumps()
        for part in _iteration(loop):
            if isinstance(part, c_ast.Block):
                state = _joined(self.block(part.items, state, jumps), *jumps.continues)
            else:
                state = self.expr(part, state)
        return _joined(state, *jumps.breaks)

    def block(self, items: Iterable[Any], state: State, jumps: _Jumps) -> State:
        for item in items:
            state = self.item(item, state, jumps)
        return state

    def item(self, item: Any, state: State, jumps: _Jumps) -> State:
        match item:
            case c_ast.Declare(_, _, init):
                return state if init is None else self.expr(init, state)
            case c_ast.Evaluate(e):
                return self.expr(e, state)
            case c_ast.Block(items):
                return self.block(items, state, jumps)
            case c_ast.If(cond, then, other):
                state = self.expr(cond, state)
                return _joined(self.block(then.items, state, jumps), self.block(other.items, state, jumps))
            case c_ast.For() | c_ast.While():
                return self.inner(item, state)
            case c_ast.Switch():
                return self.switch(item, state, jumps)
            case c_ast.Return(value):
                self.expr(value, state)
                return None
            case c_ast.Jump("break" | "continue" as word):
                (jumps.breaks if word == "break" else jumps.continues).append(state)
                return None
            case c_ast.PragmaItem():
                return state
        raise _Unknown

    def inner(self, loop: SourceLoop, state: State) -> State:
        if isinstance(loop, c_ast.For):
            state = self.block(loop.init, state, _Jumps())
        if state is None:
            return None
        inside = _Flow(self.names - state)
        after = inside.iteration(loop)
        self.read += inside.read
        return None if after is None else after | state

    def switch(self, item: c_ast.Switch, state: State, jumps: _Jumps) -> State:
        begin = self.expr(item.cond, state)
        own = _Jumps(continues=jumps.continues)
        state = None
        for part in item.body.items:
            if isinstance(part, c_ast.Case):
                state = _joined(state, begin)
            elif any(isinstance(n, c_ast.Case) for n in c_ast.walk(part)):
                raise _Unknown
            else:
                state = self.item(part, state, own)
        default = any(isinstance(n, c_ast.Case) and n.value is None for n in item.body.items)
        return _joined(state, *own.breaks, *(() if default else (begin,)))

    def expr(self, e: Any, state: State) -> State:
        """Follow an expression; what a part sets that is not always computed counts as set."""
        if state is None:
            return None
        match e:
            case c_ast.Name(name):
                if name in self.names and name not in state:
                    self.read.append(e)
                return state
            case c_ast.Assignment(op, c_ast.Name(name) as target, value):
                state = self.expr(value, state)
                state = self.expr(target, state) if op else state
                return None if state is None else state | {name}
            case c_ast.Unary("++" | "--", c_ast.Name(name) as target):
                self.expr(target, state)
                return state | {name}
            case c_ast.SizeOf():
                return state
            case c_ast.Unsupported():
                raise _Unknown
        for part in () if e is None else c_ast.children(e):
            state = self.expr(part, state)
        return state
