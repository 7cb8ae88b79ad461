"""Pointers that a loop swaps, or passes round among more than two, become the arrays to which they point.

    for (t = 0; t < T; t++) {                for (t = 0; t < T; t++) {
      step(a, b);                              if (t % 2 == 0) { step(a, b); } else { step(b, a); }
      tmp = a; a = b; b = tmp;        ==>    }
    }                                        if (T % 2 == 0) { use(a); } else { use(b); }
    use(a);

Where the number of swaps does not follow from the counter of one loop, a variable counts them. After ``order`` swaps
every pointer is what it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from looptune.core.errors import UnsupportedError
from looptune.frontend import c_ast
from looptune.frontend.name_resolution import OFFSET, assigned_names, base, used_names, with_names

Items = tuple[c_ast.Item, ...]
_INT = c_ast.Basic("int32")
_FLAG = f"swaps{OFFSET}"
_ZERO, _ONE = c_ast.Number("0"), c_ast.Number("1")
_MOST = 4
"""The order of a permutation: the statements are copied as many times."""


def replace_swaps(items: Items, types: Mapping[str, c_ast.Type], read_after: frozenset[str]) -> Items:
    """Return the statements without swaps of pointers in loops.

    Swaps that are not the same permutation each time, or of pointers that are also set otherwise, stay. Raises
    UnsupportedError where a pointer that other code reads afterwards may be another one then.
    """
    swaps = tuple(run for run in _runs(items) if _cycles(run, types))
    if not any(_is_in_loop(items, run) for run in swaps):
        return items
    permutation = _cycles(swaps[0], types)
    copies = {id(part) for run in swaps for part in _parts(run)}
    pointers = {*permutation, *(_copied(part)[0] for run in swaps for part in _parts(run))}
    if any(_cycles(run, types) != permutation for run in swaps) or _order(permutation) > _MOST:
        return items
    if any(_is_set(item, pointers, copies) for item in items) or _uses(items, pointers - permutation.keys(), copies):
        return items
    made = _Swapper(permutation, copies, types).replaced(items)
    outside = permutation.keys() & read_after | {name for name in permutation if "#f" in name}
    if made is None or (outside and not made.is_back):
        if not outside:
            return items
        message = f"the pointer {base(min(outside))} is set here and read afterwards"
        raise UnsupportedError(f"{message}: write the array and an index instead", swaps[0].span)
    return made.items


# -- which pointers ---------------------------------------------------------------------------------


def _runs(items: Items) -> Iterator[c_ast.Block]:
    """Yield the sequences of copies of variables."""
    run: list[c_ast.Item] = []
    for item in items:
        if _is_copy(item):
            run.append(item)
            continue
        if run:
            yield c_ast.Block(tuple(run), span=run[0].span)
            run = []
        for inner in _blocks(item):
            yield from _runs(inner.items)
    if run:
        yield c_ast.Block(tuple(run), span=run[0].span)


def _blocks(item: Any) -> Iterator[c_ast.Block]:
    if isinstance(item, c_ast.Block):
        yield item
    elif isinstance(item, c_ast.For | c_ast.While | c_ast.If | c_ast.Switch):
        yield from (part for part in c_ast.children(item) if isinstance(part, c_ast.Block))


def _is_copy(item: Any) -> bool:
    match item:
        case c_ast.Declare(_, c_ast.Pointer(), c_ast.Name()):
            return True
        case c_ast.Evaluate(c_ast.Assignment("", c_ast.Name(), c_ast.Name())):
            return True
        case c_ast.Block(inner) | c_ast.While(c_ast.Number("0"), c_ast.Block(inner), True):
            return bool(inner) and all(map(_is_copy, inner))
    return False


def _parts(item: Any) -> Iterator[Any]:
    """Yield the copies in a statement that consists of them."""
    match item:
        case c_ast.Block(inner) | c_ast.While(_, c_ast.Block(inner)):
            for part in inner:
                yield from _parts(part)
        case _:
            yield item


def _copied(part: Any) -> tuple[str, str]:
    """Return the variable that a copy sets, and the one that it reads."""
    match part:
        case c_ast.Declare(name=target, init=c_ast.Name(source)):
            return target, source
        case c_ast.Evaluate(c_ast.Assignment("", c_ast.Name(target), c_ast.Name(source))):
            return target, source
    raise AssertionError("it is no copy of a variable")


def _cycles(run: c_ast.Block, types: Mapping[str, c_ast.Type]) -> dict[str, str]:
    """Return which pointer each one is after the copies, of those that are passed round; empty if there are none."""
    now: dict[str, str] = {}
    for to, of in map(_copied, _parts(run)):
        if not all(isinstance(types.get(n), c_ast.Pointer | c_ast.ArrayOf) for n in (to, of)):
            return {}
        now[to] = now.get(of, of)
    found: dict[str, str] = {}
    for name in now:
        path = [name]
        while (after := now.get(path[-1], "")) and after not in path:
            path.append(after)
        if after == name and len(path) > 1:
            found |= {p: now[p] for p in path}
    return found


def _is_in_loop(items: Items, run: c_ast.Block) -> bool:
    first = next(_parts(run))
    loops = (n for top in items for n in c_ast.walk(top) if isinstance(n, c_ast.For | c_ast.While))
    return any(n is first for loop in loops if not _is_copy(loop) for n in c_ast.walk(loop.body))


def _order(permutation: Mapping[str, str]) -> int:
    now, count = dict(permutation), 1
    while any(p != q for p, q in now.items()) and count <= _MOST:
        now, count = {p: permutation[q] for p, q in now.items()}, count + 1
    return count


def _is_set(node: Any, names: set[str], copies: set[int]) -> bool:
    """Tell whether one of the variables is set by anything but the copies, declarations with a value apart."""
    if id(node) in copies:
        return False
    match node:
        case c_ast.Assignment(_, c_ast.Name(name)) | c_ast.Unary("++" | "--" | "&", c_ast.Name(name)) if name in names:
            return True
    return any(_is_set(child, names, copies) for child in c_ast.children(node))


def _uses(node: Any, names: set[str], copies: set[int]) -> bool:
    """Tell whether one of the variables is used outside of the copies."""
    if isinstance(node, tuple):
        return any(_uses(item, names, copies) for item in node)
    if id(node) in copies:
        return False
    return (isinstance(node, c_ast.Name) and node.name in names) or any(
        _uses(child, names, copies) for child in c_ast.children(node)
    )


# -- statements -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Replaced:
    """Statements without swaps; ``is_back``: at their end the pointers are what they were."""

    items: Items
    is_back: bool


class _NoCopy(Exception):
    """Statements cannot be copied for each number of swaps."""


@dataclass(frozen=True, slots=True)
class _Swapper:
    permutation: Mapping[str, str]
    copies: set[int]
    types: Mapping[str, c_ast.Type]

    def replaced(self, items: Items) -> _Replaced | None:
        """Return the statements, None where they cannot be written without swaps."""
        try:
            made = self.by_counter(items)
            if made is not None:
                return made
            return _Replaced((c_ast.Declare(_FLAG, _INT, _ZERO), *self.by_flag(items)), is_back=False)
        except _NoCopy:
            return None

    @property
    def order(self) -> int:
        return _order(self.permutation)

    def has_swap(self, item: Any) -> bool:
        return any(id(n) in self.copies for n in c_ast.walk(item))

    def is_swap(self, item: Any) -> bool:
        return _is_copy(item) and self.has_swap(item)

    # -- one loop, whose counter says how many swaps there were --

    def by_counter(self, items: Items) -> _Replaced | None:
        """Return the statements where one loop has one swap in each iteration, None where that is not so."""
        where = [k for k, item in enumerate(items) if self.has_swap(item)]
        if len(where) != 1:
            return None
        before, item, rest = items[: where[0]], items[where[0]], items[where[0] + 1 :]
        match item:
            case c_ast.Block(inner) if not self.is_swap(item):
                made = self.by_counter(inner)
                if made is None or (not made.is_back and self.uses(rest)):
                    return None
                return replace(made, items=(*before, replace(item, items=made.items), *rest))
            case c_ast.For():
                count = _iterations(item, self.types)
                body = item.body.items
                runs = [k for k, part in enumerate(body) if self.has_swap(part)]
                if count is None or not all(self.is_swap(body[k]) for k in runs) or not _is_one_run(runs):
                    return None
                done, total = count
                first = self.chosen(body[: runs[0]], self.state(done), body[runs[0] :])
                last = self.chosen(body[runs[-1] + 1 :], self.state(c_ast.Binary("+", done, _ONE, span=item.span)))
                loop = replace(item, body=replace(item.body, items=(*first, *last)))
                after = self.state(total)
                return _Replaced((*before, loop, *self.chosen(rest, after, is_total=True)), after == _ZERO)
        return None

    def state(self, swaps: c_ast.Expr) -> c_ast.Expr:
        match swaps:
            case c_ast.Number(text) if text.isdecimal():
                return c_ast.Number(str(int(text) % self.order))
        return c_ast.Binary("%", swaps, c_ast.Number(str(self.order)), span=swaps.span)

    # -- any statements, with a variable that counts the swaps --

    def by_flag(self, items: Items) -> Items:
        made: list[c_ast.Item] = []
        flag = c_ast.Name(_FLAG)
        start = 0
        for k, item in enumerate(items):
            if not self.has_swap(item):
                continue
            made += self.chosen(items[start:k], flag, items[k:])
            start = k + 1
            if not self.is_swap(item):
                made.append(self.inside(item))
            elif k + 1 == len(items) or not self.is_swap(items[k + 1]):
                more = c_ast.Binary("+", flag, _ONE, span=item.span)
                after = c_ast.Binary("%", more, c_ast.Number(str(self.order)), span=item.span)
                made.append(c_ast.Evaluate(c_ast.Assignment("", flag, after, span=item.span), span=item.span))
        return (*made, *self.chosen(items[start:], flag))

    def inside(self, item: Any) -> Any:
        """Return a compound statement that contains swaps."""
        if any(self.uses(part) for part in c_ast.children(item) if not isinstance(part, c_ast.Block)):
            raise _NoCopy
        if isinstance(item, c_ast.Block):
            return replace(item, items=self.by_flag(item.items))
        if not isinstance(item, c_ast.For | c_ast.While | c_ast.If):
            raise _NoCopy

        def rule(part: Any) -> Any:
            return replace(part, items=self.by_flag(part.items)) if isinstance(part, c_ast.Block) else part

        return c_ast.map_children(rule, item)

    # -- copies of statements for each number of swaps --

    def uses(self, node: Any) -> bool:
        return bool(self.permutation.keys() & used_names(node if isinstance(node, tuple) else (node,)))

    def chosen(self, items: Items, state: c_ast.Expr, after: Items = (), *, is_total: bool = False) -> Items:
        """Return the statements with the pointers of a state; ``after`` are the statements that follow them.

        ``is_total``: it is that after a loop, and negative where the loop has no iteration.
        """
        if not self.uses(items) or state == _ZERO:
            return items
        if isinstance(state, c_ast.Number):
            return tuple(self.renamed(item, int(state.text), frozenset()) for item in items)
        hoisted, inner = _hoisted(items, used_names(after))
        own = frozenset(n.name for item in inner for n in c_ast.walk(item) if isinstance(n, c_ast.Declare))
        *first, last = (*range(1, self.order), 0) if is_total else range(self.order)
        span = items[0].span

        def copy(swaps: int) -> c_ast.Block:
            return c_ast.Block(tuple(self.renamed(item, swaps, own) for item in inner), span=span)

        made = copy(last)
        for swaps in reversed(first):
            cond = c_ast.Binary("==", state, c_ast.Number(str(swaps), span=span), span=span)
            made = c_ast.Block((c_ast.If(cond, copy(swaps), made, span=span),), span=span)
        return (*hoisted, *made.items)

    def renamed(self, item: Any, swaps: int, own: frozenset[str]) -> Any:
        """Return a copy with other pointers, and with variables of its own for those that it declares."""
        now = {p: p for p in self.permutation}
        for _ in range(swaps):
            now = {p: self.permutation[q] for p, q in now.items()}
        return with_names(item, now | ({name: f"{name}s{swaps}" for name in own} if swaps else {}))


def _hoisted(items: Items, after: frozenset[str]) -> tuple[Items, Items]:
    """Return declarations of the variables that are used afterwards too, and the statements without them."""
    hoisted: list[c_ast.Item] = []
    inner: list[c_ast.Item] = []
    for item in items:
        if not isinstance(item, c_ast.Declare) or item.name not in after:
            inner.append(item)
            continue
        if not isinstance(item.type, c_ast.Basic) or item.static or isinstance(item.init, c_ast.InitializerList):
            raise _NoCopy
        hoisted.append(replace(item, init=None))
        if item.init is not None:
            stored = c_ast.Assignment("", c_ast.Name(item.name, span=item.span), item.init, span=item.span)
            inner.append(c_ast.Evaluate(stored, span=item.span))
    return tuple(hoisted), tuple(inner)


def _is_one_run(places: Sequence[int]) -> bool:
    return places == list(range(places[0], places[-1] + 1))


def _iterations(loop: c_ast.For, types: Mapping[str, c_ast.Type]) -> tuple[c_ast.Expr, c_ast.Expr] | None:
    """Return the number of iterations before the present one, and of all; None where they do not follow from the head.

    Where the loop has no iteration, the second may be negative.
    """
    first: Any
    match loop.init:
        case (c_ast.Declare(name, c_ast.Basic(), first),):
            pass
        case (c_ast.Evaluate(c_ast.Assignment("", c_ast.Name(name), first)),):
            pass
        case _:
            return None
    match loop.next:
        case c_ast.Unary("++" | "--" as op, c_ast.Name(moved)):
            pass
        case c_ast.Assignment("+" | "-" as op, c_ast.Name(moved), c_ast.Number("1")):
            pass
        case _:
            return None
    match loop.cond:
        case c_ast.Binary("<" | "<=" | ">" | ">=" as compare, c_ast.Name(tested), end):
            pass
        case _:
            return None
    fixed = used_names((first, end))
    if not tested == moved == name or (op[0] == "+") != (compare[0] == "<") or loop.until:
        return None
    if ({name} | fixed) & assigned_names((loop.body,)) or name in fixed or not _is_plain((first, end)):
        return None
    integers = {n for n in (name, *fixed) if isinstance(types.get(n), c_ast.Basic)}
    signed = all(isinstance(kind := types.get(n), c_ast.Basic) and kind.dtype.startswith("int") for n in fixed)
    if integers != {name, *fixed}:
        return None
    if not signed and (op[0] == "-" or first != _ZERO):
        return None
    counter = c_ast.Name(name, span=loop.span)
    low, now, high = (first, counter, end) if op[0] == "+" else (end, counter, first)
    done = _minus(now, low) if op[0] == "+" else _minus(high, now)
    total = _minus(high, low)
    return done, (_plus_one(total) if compare.endswith("=") else total)


def _is_plain(node: Any) -> bool:
    """Tell whether expressions are made of variables and numbers."""
    if isinstance(node, tuple):
        return all(map(_is_plain, node))
    return isinstance(node, c_ast.Name | c_ast.Number | c_ast.Binary) and all(map(_is_plain, c_ast.children(node)))


def _minus(a: c_ast.Expr, b: c_ast.Expr) -> c_ast.Expr:
    match a, b:
        case _, c_ast.Number("0"):
            return a
        case c_ast.Number(x), c_ast.Number(y) if x.isdecimal() and y.isdecimal() and int(x) >= int(y):
            return c_ast.Number(str(int(x) - int(y)))
    return c_ast.Binary("-", a, b, span=a.span)


def _plus_one(a: c_ast.Expr) -> c_ast.Expr:
    match a:
        case c_ast.Number(x) if x.isdecimal():
            return c_ast.Number(str(int(x) + 1))
    return c_ast.Binary("+", a, _ONE, span=a.span)
