"""Assignments, ``++``, ``--``, commas and calls inside expressions as statements, in C's order of evaluation.

    a[i++] = b[j++];                  a[i] = b[j];  i += 1;  j += 1;
    if ((t = a[i]) > m) S             t = a[i];  if (t > m) S
    if (p && (x = g(p))) S            t = p != 0;  if (t) { x = g(p); t = x != 0; }  if (t) S
    while (n-- > 0) S                 n -= 1;  for (; n + 1 > 0; n -= 1) S
    while ((x = x->next)) S           while (1) { x = x->next;  if (!x) break;  S }

An effect after the value (``i++``) becomes a statement after the one in which it stands, or at the next sequence point.
Expressions whose order C leaves open are refused. Expressions without effects are not changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any

from looptune.core.errors import UnsupportedError
from looptune.frontend import c_ast
from looptune.frontend.name_resolution import assigned_names, base, used_names
from looptune.frontend.normalize.calls import Calls, calls_of
from looptune.frontend.normalize.library_effects import row_allocation
from looptune.frontend.normalize.struct_layout import lvalue_type
from looptune.frontend.normalize.structured_jumps import leave_loop_body
from looptune.frontend.symbol_table import refuse

if TYPE_CHECKING:
    from looptune.core.source import Span

Items = tuple[c_ast.Item, ...]
TEMPORARY = "value#v"
"""What the names of the variables begin with that hold the value of a part of an expression."""
_SIGNED = ("int32", "int64")


def separate_effects(items: Items, calls: Calls) -> Items:
    """Return the statements with the side effects of their expressions as statements, and calls inlined.

    Raises UnsupportedError where C leaves the order of evaluation open.
    """
    return _Effects(calls).block(items)


@dataclass(slots=True)
class _Effects:
    calls: Calls
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    # -- statements -----------------------------------------------------------------------------

    def block(self, items: Items) -> Items:
        return tuple(made for item in items for made in self.item(item))

    def inside(self, block: c_ast.Block) -> c_ast.Block:
        calls = calls_of(block)
        effects = self if calls is None else replace(self, calls=calls)
        return c_ast.Block(effects.block(block.items), span=block.span)

    def item(self, item: Any) -> Items:
        match item:
            case c_ast.Evaluate(expr):
                allocated = row_allocation(expr, self.calls.kind) if self.calls.analysed_only else None
                if allocated is not None:
                    return allocated
                return self.statement(expr) if self.has_effects(expr) else (item,)
            case c_ast.Declare(_, _, init) if isinstance(init, c_ast.Expr) and self.has_effects(init):
                run = self.run(init)
                return (*run.before, replace(item, init=run.value), *run.after)
            case c_ast.Block():
                return (self.inside(item),)
            case c_ast.If(cond, then, other):
                before, cond = self.condition(cond)
                return (*before, replace(item, cond=cond, then=self.inside(then), other=self.inside(other)))
            case c_ast.Switch(cond, body):
                before, cond = self.settled(cond)
                return (*before, replace(item, cond=cond, body=self.inside(body)))
            case c_ast.Region(_, inner):
                return (replace(item, items=self.block(inner)),)
            case c_ast.While():
                return self.while_(item)
            case c_ast.For():
                return self.for_(item)
            case _:
                return (item,)

    def statement(self, e: c_ast.Expr) -> Items:
        match e:
            case c_ast.Comma(parts):
                return tuple(made for part in parts for made in self.statement(part))
            case c_ast.Ternary(cond, then, other) if self.has_effects(then) or self.has_effects(other):
                before, cond = self.condition(cond)
                yes, no = c_ast.Block(self.statement(then)), c_ast.Block(self.statement(other))
                return (*before, c_ast.If(cond, yes, no, span=e.span))
            case c_ast.Binary("&&" | "||" as op, lhs, rhs) if self.has_effects(rhs):
                before, cond = self.condition(lhs)
                cond = cond if op == "&&" else c_ast.Unary("!", cond, span=cond.span)
                return (*before, c_ast.If(cond, c_ast.Block(self.statement(rhs)), c_ast.Block(()), span=e.span))
            case c_ast.Cast(c_ast.Basic("void"), arg):
                return self.statement(arg)
            case c_ast.StatementExpression(body=c_ast.Block((*items, c_ast.Evaluate(last)))):
                return (*self.block(tuple(items)), *self.statement(last))
            case c_ast.Call() if self.calls.is_inlined(e):
                _Order(self.calls).check(e)
                run = _Run(self)
                run.call(e, wants_value=False)
                return (*run.before, *run.after)
            case _:
                _Order(self.calls).check(e)
                run = _Run(self)
                kept = run.top(e)
                return (*run.before, *((c_ast.Evaluate(kept, span=e.span),) if kept is not None else ()), *run.after)

    def while_(self, item: c_ast.While) -> Items:
        if not self.has_effects(item.cond):
            return (replace(item, body=self.inside(item.body)),)
        counted = None if item.after else self.counting(item.cond)
        if counted is not None:
            step, cond = counted
            loop = c_ast.For((), cond, step, self.inside(item.body), span=item.span)
            return (c_ast.Evaluate(step, span=step.span), loop)
        leave = self.leave(item.cond)
        body = self.inside(item.body).items
        if item.after:
            body = (*leave_loop_body(body, f"next{next(self.numbers)}"), *leave)
        else:
            body = (*leave, *body)
        always = c_ast.Number("1", span=item.cond.span)
        return (c_ast.While(always, replace(item.body, items=body), span=item.span),)

    def for_(self, item: c_ast.For) -> Items:
        init = self.block(item.init)
        body = self.inside(item.body).items
        step, cond = item.next, item.cond
        if cond is not None and self.has_effects(cond):
            counted = self.counting(cond) if step is None else None
            if counted is not None:
                begins, cond = counted
                first = self.stepped(init, begins)
                if first is None:
                    loop = c_ast.For((), cond, begins, replace(item.body, items=body), span=item.span)
                    return (*init, c_ast.Evaluate(begins, span=begins.span), loop)
                init, step = first, begins
            else:
                body, cond = (*self.leave(cond), *body), None
        if step is not None and not self.is_plain(step):
            body = (*leave_loop_body(body, f"next{next(self.numbers)}"), *self.statement(step))
            step = None
        if cond is None and self.calls.analysed_only:
            cond = c_ast.Number("1", span=item.span)
        loop = replace(item, init=(), cond=cond, next=step, body=replace(item.body, items=body))
        if all(isinstance(i, c_ast.Declare) or _is_plain_start(i) for i in init):
            return (replace(loop, init=init),)
        return (*init, loop)

    def stepped(self, init: Items, step: c_ast.Assignment) -> Items | None:
        """Return the start of a loop with its value after the step, or None if there is no such start."""
        match init:
            case (c_ast.Declare(name, _, value) as start,) if isinstance(value, c_ast.Expr) and self.is_whole(value):
                new = c_ast.Binary(step.op, value, step.value, span=value.span)
                return (replace(start, init=new),) if c_ast.Name(name) == step.target else None
            case (c_ast.Evaluate(c_ast.Assignment("", target, value) as start),) if self.is_whole(value):
                new = c_ast.Binary(step.op, value, step.value, span=value.span)
                return (c_ast.Evaluate(replace(start, value=new), span=start.span),) if target == step.target else None
        return None

    def is_whole(self, e: c_ast.Expr) -> bool:
        """Tell whether an expression is made of constants and variables that are int or long."""
        match e:
            case c_ast.Number(text):
                return text.isdecimal()
            case c_ast.Name(name):
                return self.is_signed(name)
            case c_ast.Binary("+" | "-" | "*", lhs, rhs):
                return self.is_whole(lhs) and self.is_whole(rhs)
        return False

    def is_plain(self, step: c_ast.Expr) -> bool:
        """Tell whether the step is assignments without effects inside."""
        parts = step.parts if isinstance(step, c_ast.Comma) else (step,)
        for part in parts:
            match part:
                case c_ast.Assignment(_, target, value):
                    inner: tuple[c_ast.Expr, ...] = (target, value)
                case c_ast.Unary("++" | "--", target):
                    inner = (target,)
                case _:
                    inner = (part,)
            if any(self.has_effects(e) for e in inner):
                return False
        return True

    def counting(self, cond: c_ast.Expr) -> tuple[c_ast.Assignment, c_ast.Expr] | None:
        """Return the step that a condition makes and the condition after it: ``n-- > 0`` is ``n + 1 > 0`` after it."""
        steps = [n for n in c_ast.walk(cond) if isinstance(n, c_ast.Unary) and n.op in ("++", "--")]
        others = [n for n in c_ast.walk(cond) if isinstance(n, c_ast.Assignment | c_ast.Comma | c_ast.Ternary)]
        if len(steps) != 1 or others or self.calls.among(cond):
            return None
        (step,) = steps
        if not isinstance(step.arg, c_ast.Name):
            return None
        name = step.arg.name
        logical = any(isinstance(n, c_ast.Binary) and n.op in ("&&", "||") for n in c_ast.walk(cond))
        mentioned = sum(isinstance(n, c_ast.Name) and n.name == name for n in c_ast.walk(cond))
        if logical or mentioned > 1 or not self.is_signed(name):
            return None
        one = c_ast.Number("1", span=step.span)
        back = c_ast.Binary("+" if step.op == "--" else "-", step.arg, one, span=step.span)
        value = step.arg if step.prefix else back

        def rule(node: Any) -> Any:
            return value if node is step else c_ast.map_children(rule, node)

        new = rule(cond)
        if new is value:
            new = c_ast.Binary("!=", value, c_ast.Number("0", span=cond.span), span=cond.span)
        return c_ast.Assignment(step.op[0], step.arg, one, span=step.span), new

    def is_signed(self, name: str) -> bool:
        kind = self.calls.kind(name)
        return isinstance(kind, c_ast.Basic) and kind.dtype in _SIGNED

    def leave(self, cond: c_ast.Expr) -> Items:
        """Return the statements that leave the loop where the condition does not hold."""
        before, value = self.condition(cond)
        stop = c_ast.Block((c_ast.Jump("break", span=cond.span),))
        return (*before, c_ast.If(c_ast.Unary("!", value, span=cond.span), stop, c_ast.Block(()), span=cond.span))

    # -- expressions ----------------------------------------------------------------------------

    def has_effects(self, e: Any) -> bool:
        return any(
            isinstance(n, c_ast.Assignment | c_ast.Comma | c_ast.StructLiteral | c_ast.StatementExpression)
            or (isinstance(n, c_ast.Unary) and n.op in ("++", "--"))
            or (isinstance(n, c_ast.Call) and self.calls.is_inlined(n))
            for n in c_ast.walk(e)
        )

    def run(self, e: c_ast.Expr) -> _Run:
        _Order(self.calls).check(e)
        run = _Run(self)
        run.value = run.of(e)
        return run

    def condition(self, e: c_ast.Expr) -> tuple[Items, c_ast.Expr]:
        """Return the statements before a condition, and the condition."""
        if not self.has_effects(e):
            return (), e
        run = self.run(e)
        if not run.after:
            return tuple(run.before), run.value
        return self.held(run, _truth(run.value))

    def settled(self, e: c_ast.Expr) -> tuple[Items, c_ast.Expr]:
        """Return the statements before an expression that is used several times, and its value."""
        if not self.has_effects(e):
            return (), e
        run = self.run(e)
        return self.held(run, run.value)

    def held(self, run: _Run, value: c_ast.Expr) -> tuple[Items, c_ast.Expr]:
        name = self.fresh(value.span)
        declared = self.variable(name, value)
        return (*run.before, declared, *run.after), name

    def variable(self, name: c_ast.Name, value: c_ast.Expr) -> c_ast.Declare:
        """Return the declaration of a variable with a value."""
        return c_ast.Declare(name.name, self.type_of(name, value), value, span=value.span)

    def type_of(self, name: c_ast.Name, value: c_ast.Expr) -> c_ast.Type:
        """Return the type of a value, which the variable of this name has."""
        found = lvalue_type(value, self.calls.types)
        if not isinstance(found, c_ast.Struct):
            return c_ast.TypeOf(value)
        self.calls.types[name.name] = found
        return found

    def fresh(self, span: Span) -> c_ast.Name:
        return c_ast.Name(f"{TEMPORARY}{next(self.numbers)}", span=span)


@dataclass(slots=True)
class _Run:
    """One full expression: the statements before and after its value."""

    effects: _Effects
    before: list[c_ast.Item] = field(default_factory=list)
    after: list[c_ast.Item] = field(default_factory=list)
    value: c_ast.Expr = field(default_factory=lambda: c_ast.Number("0"))

    def top(self, e: c_ast.Expr) -> c_ast.Expr | None:
        """Return a statement's expression, whose own effect stays in it."""
        match e:
            case c_ast.Assignment(_, target, value):
                new = self.of(value)
                return replace(e, target=self.of(target), value=new)
            case c_ast.Unary("++" | "--", target):
                return replace(e, arg=self.of(target))
            case _:
                new = self.of(e)
                return new if any(isinstance(n, c_ast.Call | c_ast.Unsupported) for n in c_ast.walk(new)) else None

    def of(self, e: Any) -> Any:
        """Return the value of an expression after the statements ``before``."""
        if not self.effects.has_effects(e):
            return e
        match e:
            case c_ast.Assignment(_, target, value):
                new = self.of(value)
                target = self.of(target)
                self.before.append(c_ast.Evaluate(replace(e, target=target, value=new), span=e.span))
                return target
            case c_ast.Unary("++" | "--" as op, arg):
                target = self.of(arg)
                step = c_ast.Assignment(op[0], target, c_ast.Number("1", span=e.span), span=e.span)
                (self.before if e.prefix else self.after).append(c_ast.Evaluate(step, span=e.span))
                return target
            case c_ast.StructLiteral(_, _, _, c_ast.Struct() as kind, init):
                name = self.effects.fresh(e.span)
                self.effects.calls.types[name.name] = kind
                self.before.append(c_ast.Declare(name.name, kind, self.of(init), span=e.span))
                return name
            case c_ast.Comma(parts):
                for part in parts[:-1]:
                    self.before += self.effects.statement(part)
                return self.of(parts[-1])
            case c_ast.StatementExpression(body=c_ast.Block((*items, c_ast.Evaluate(last)))):
                self.before += self.effects.block(tuple(items))
                return self.settled(last)
            case c_ast.Binary("&&" | "||"):
                return self.logical(e)
            case c_ast.Ternary():
                return self.choice(e)
            case c_ast.Call() if self.effects.calls.is_inlined(e):
                result = self.call(e, wants_value=True)
                assert result is not None, "a value was asked for"
                return result
            case _:
                return c_ast.map_children(self.of, e)

    def call(self, e: c_ast.Call, wants_value: bool) -> c_ast.Expr | None:
        args = tuple(self.of(a) for a in e.args)
        made, value = self.effects.calls.inlined(replace(e, args=args), wants_value)
        self.before += self.effects.block(made)
        return value

    def settled(self, e: c_ast.Expr) -> c_ast.Expr:
        """Return the value of an expression whose effects are all done before the rest of the full expression."""
        run = self.effects.run(e)
        self.before += run.before
        if not run.after:
            return run.value
        name = self.effects.fresh(e.span)
        self.before += (self.effects.variable(name, run.value), *run.after)
        return name

    def point(self, e: c_ast.Expr) -> c_ast.Expr:
        """Return the truth of an operand before a sequence point, at which its effects are done."""
        first = self.effects.run(e)
        self.before += first.before
        if not first.after:
            return first.value
        name = self.variable(_truth(first.value), e.span)
        self.before += first.after
        return name

    def variable(self, value: c_ast.Expr, span: Span) -> c_ast.Name:
        name = self.effects.fresh(span)
        self.before.append(c_ast.Declare(name.name, c_ast.TypeOf(value), value, span=span))
        return name

    def logical(self, e: c_ast.Binary) -> c_ast.Expr:
        lhs = self.point(e.lhs)
        if not self.effects.has_effects(e.rhs):
            return replace(e, lhs=lhs)
        name = self.variable(_truth(lhs), e.span)
        rest = self.effects.run(e.rhs)
        stored = c_ast.Evaluate(c_ast.Assignment("", name, _truth(rest.value), span=e.span), span=e.span)
        cond = name if e.op == "&&" else c_ast.Unary("!", name, span=e.span)
        then = c_ast.Block((*rest.before, stored, *rest.after))
        self.before.append(c_ast.If(cond, then, c_ast.Block(()), span=e.span))
        return name

    def choice(self, e: c_ast.Ternary) -> c_ast.Expr:
        cond = self.point(e.cond)
        if not self.effects.has_effects(e.then) and not self.effects.has_effects(e.other):
            return replace(e, cond=cond)
        then, other = self.effects.run(e.then), self.effects.run(e.other)
        name = self.effects.fresh(e.span)
        kind = self.effects.type_of(name, c_ast.Ternary(c_ast.Number("1"), then.value, other.value, span=e.span))

        def branch(run: _Run) -> c_ast.Block:
            stored = c_ast.Evaluate(c_ast.Assignment("", name, run.value, span=e.span), span=e.span)
            return c_ast.Block((*run.before, stored, *run.after))

        declared = [n for run in (then, other) for n in run.before if isinstance(n, c_ast.Declare)]
        self.before += [replace(d, init=None) for d in declared]
        self.before.append(c_ast.Declare(name.name, kind, span=e.span))
        self.before.append(c_ast.If(cond, branch(then), branch(other), span=e.span))
        return name


def _is_plain_start(item: c_ast.Item) -> bool:
    match item:
        case c_ast.Evaluate(c_ast.Assignment(_, _, value)):
            return not isinstance(value, c_ast.Assignment)
        case c_ast.Evaluate():
            return True
        case _:
            return False


def _truth(e: c_ast.Expr) -> c_ast.Expr:
    """Return 1 where the expression is not zero, and else 0."""
    match e:
        case c_ast.Binary("<" | "<=" | ">" | ">=" | "==" | "!=" | "&&" | "||") | c_ast.Unary("!"):
            return e
    return c_ast.Binary("!=", e, c_ast.Number("0", span=e.span), span=e.span)


# -- the order of evaluation ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Touched:
    """The variables that an expression reads and writes, and those that functions it calls write."""

    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    by_calls: frozenset[str] = frozenset()

    def joined(self, other: _Touched) -> _Touched:
        return _Touched(self.reads | other.reads, self.writes | other.writes, self.by_calls | other.by_calls)

    def clash(self, other: _Touched) -> frozenset[str]:
        """Return what one of two unordered operands changes and the other one uses."""
        mine, theirs = self.writes | self.by_calls, other.writes | other.by_calls
        return (mine & (other.reads | theirs)) | (theirs & (self.reads | mine))


@dataclass(frozen=True, slots=True)
class _Order:
    """Finds operands of which one changes what the other one uses; ``calls`` says what functions change."""

    calls: Calls

    def check(self, e: Any) -> _Touched:
        match e:
            case c_ast.Name(name):
                return _Touched(frozenset({name}))
            case c_ast.Assignment(op, c_ast.Name(name), value):
                found = self.check(value)
                if name in found.writes:
                    raise _open(name, e.span)
                return found.joined(_Touched(frozenset({name} if op else ()), frozenset({name})))
            case c_ast.Assignment(op, target, value) if (root := self.fixed_root(target, value, bool(op))) is not None:
                # a call changes what the pointer leads to, and not where the field is
                found = self.check(value)
                indices = [n.index for n in _bases(target) if isinstance(n, c_ast.Index)]
                place = self.unordered(indices, e.span)
                clash = found.clash(place) | (found.writes & {root})
                if clash:
                    raise _open(min(clash), e.span)
                return found.joined(place).joined(_Touched(frozenset({root})))
            case c_ast.Unary("++" | "--", c_ast.Name(name)):
                return _Touched(frozenset({name}), frozenset({name}))
            case c_ast.Binary("&&" | "||") | c_ast.Comma() | c_ast.Ternary():
                found = _Touched()
                for part in c_ast.children(e):
                    found = found.joined(self.check(part))
                return found
            case c_ast.Call() if self.calls.is_inlined(e):
                return self.unordered(e.args, e.span).joined(self.called(e))
            case c_ast.StatementExpression(body=c_ast.Block() as body):
                return self.inside(body)
            case c_ast.StatementExpression(what, instead, parts):
                if not self.calls.analysed_only:
                    raise refuse(what, instead, e.span)
                return self.inside(
                    c_ast.Block(tuple(c_ast.Evaluate(part) for part in parts if isinstance(part, c_ast.Expr)))
                )
            case _:
                return self.unordered(c_ast.children(e), e.span)

    def fixed_root(self, target: c_ast.Expr, value: c_ast.Expr, is_read: bool) -> str | None:
        """Return the variable in which a field is, or that leads to it, if the calls of ``value`` cannot change that.

        None for other targets. The calls may not set fields on the way that are pointers, nor, where the field
        ``is_read``, the field.
        """
        parts = list(_bases(target))
        root = parts[-1]
        fields = [n for n in parts if isinstance(n, c_ast.Field)]
        if not fields or not isinstance(root, c_ast.Name):
            return None
        if any(d.name == base(root.name) for d in self.calls.file.globals):
            return None
        types = self.calls.types
        names = {n.name for n in fields if is_read or isinstance(lvalue_type(n, types), c_ast.Pointer)}
        loads = any(isinstance(lvalue_type(n, types), c_ast.Pointer) for n in parts[1:-1])
        called = [n for n in c_ast.walk(value) if isinstance(n, c_ast.Call) and self.calls.is_inlined(n)]
        written = [self.calls.fields_written(n) for n in called] if loads or is_read else []
        return root.name if all(of is not None and of.isdisjoint(names) for of in written) else None

    def called(self, call: c_ast.Call) -> _Touched:
        function = self.calls.function(call.name)
        reads = frozenset[str]() if function is None else self.calls.read(function)
        written = self.calls.written(call)
        if self.calls.analysed_only and self.calls.fields_written(call) is None:
            # What it writes behind a pointer is not known, and is rarely what the expression uses: of the orders that
            # C leaves open, the analysis takes one.
            written = frozenset(n for n in written if isinstance(self.calls.kind(n), c_ast.Basic))
        return _Touched(reads, by_calls=written)

    def inside(self, body: c_ast.Block) -> _Touched:
        """Return what the statements of an expression change and read, of what is declared around them."""
        nodes = list(c_ast.walk(body))
        own = frozenset(n.name for n in nodes if isinstance(n, c_ast.Declare))
        calls = frozenset().union(*(self.calls.written(n) for n in nodes if isinstance(n, c_ast.Call)))
        return _Touched(used_names((body,)) - own, assigned_names((body,)) - own, calls - own)

    def unordered(self, parts: Iterable[Any], span: Span) -> _Touched:
        found = _Touched()
        for part in parts:
            if not isinstance(part, c_ast.Syntax):
                continue
            new = self.check(part)
            clash = found.clash(new)
            if clash:
                raise _open(min(clash), span)
            found = found.joined(new)
        return found


def _bases(e: Any) -> Iterator[c_ast.Expr]:
    """Yield a target and what it is a part of, down to the variable."""
    yield e
    while isinstance(e, c_ast.Field | c_ast.Index):
        e = e.base
        yield e


def _open(name: str, span: Span) -> UnsupportedError:
    changed = f"{base(name)} is changed and used in one expression, in an order that C leaves open"
    return UnsupportedError(f"{changed}: write two statements", span)
