"""Lower C statements to the loop IR: counted loops are half open, other ``for`` loops become ``while`` loops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from math import prod
from typing import TYPE_CHECKING, assert_never

from looptune.core.errors import ParseError, UnsupportedError
from looptune.frontend import c_ast
from looptune.frontend.directive_parser import is_cut, parse_pragma
from looptune.frontend.finalize import FINAL
from looptune.frontend.loop_headers import CanonicalLoop, Header, Limit, canonicalize, loop_header
from looptune.frontend.loop_limits import ExitTest, counter_range, nonnegative
from looptune.frontend.lower_expressions import Expressions, cast, is_constant, undefined_function
from looptune.frontend.name_resolution import OFFSET, assigned_names, base
from looptune.frontend.pragma import LOOP_FAMILIES
from looptune.frontend.symbol_table import Scope, Storage, layout, refuse, refuse_field
from looptune.ir.c_printer import arithmetic_type
from looptune.ir.nodes import (
    Assign,
    Binary,
    Const,
    Directive,
    Expr,
    If,
    Load,
    Local,
    Loop,
    Select,
    SourceCounter,
    Stmt,
    Var,
    While,
)
from looptune.ir.rewrite import walk
from looptune.ir.simplify import is_integer

if TYPE_CHECKING:
    from looptune.core.source import Span

_LARGEST_TABLE = 399
"""Elements an initialiser list may spell out: each is a statement, and an analysis compares all pairs of up to 400."""


class Statements:
    """Lowers the statements of one codelet; ``once`` names the variables that are replaced by their single value.

    ``counters`` are the loop variables known not to be negative, ``positive`` the values of the user's loop variables
    of which the same is known.
    """

    def __init__(self, scope: Scope, once: frozenset[str]) -> None:
        self.scope = scope
        self.once = once
        self.exprs = Expressions(scope)
        self.pending: list[Directive] = []
        self.serial = 0
        self.counters: set[str] = set()
        self.positive: set[Expr] = set()

    def block(self, items: Iterable[c_ast.Item]) -> tuple[Stmt, ...]:
        """Return the statements of a block.

        Raises ParseError if no loop follows a directive, or no statement follows a cut, in its block.
        """
        before = len(self.pending)
        out: list[Stmt] = []
        cuts: tuple[Directive, ...] = ()
        for item in items:
            match item:
                case c_ast.PragmaItem(pragma) if pragma.family in LOOP_FAMILIES and is_cut(pragma):
                    cuts = (*cuts, parse_pragma(pragma))
                    continue
            made = self.item(item)
            if made:
                made = (replace(made[0], directives=(*cuts, *made[0].directives)), *made[1:]) if cuts else made
                cuts = ()
            out += made
        if cuts:
            raise ParseError("cut must be followed by a statement", cuts[-1].span)
        if len(self.pending) > before:
            last = self.pending[-1]
            raise ParseError(f"{last.name} must be followed by a loop", last.span)
        return tuple(out)

    def item(self, item: c_ast.Item) -> tuple[Stmt, ...]:
        match item:
            case c_ast.Declare():
                return self.declare(item)
            case c_ast.Evaluate(expr):
                return self.evaluate(expr)
            case c_ast.Block(items):
                return self.block(items)
            case c_ast.For():
                return self.loop(item)
            case c_ast.While():
                return self.while_(item)
            case c_ast.If(cond, then, other):
                value = self.exprs.value(cond)
                return (If(value, self.block(then.items), self.block(other.items), span=item.span),)
            case c_ast.PragmaItem(pragma):
                if pragma.family in LOOP_FAMILIES:
                    self.pending.append(parse_pragma(pragma))
                return ()
            case c_ast.Unsupported(what, instead_of):
                raise refuse(what, instead_of, item.span)
            case c_ast.Case():
                raise ParseError("a case stands outside of a switch", item.span)
            case c_ast.Switch() | c_ast.Return() | c_ast.Jump() | c_ast.Label() | c_ast.Region() | c_ast.Leave():
                raise AssertionError(f"normalize leaves no {type(item).__name__}")
            case _:
                assert_never(item)

    # -- declarations and assignments -----------------------------------------------------------

    def declare(self, item: c_ast.Declare) -> tuple[Stmt, ...]:
        if item.static and not item.const:
            raise refuse(f"{base(item.name)}, which is static,", "a parameter", item.span)
        if isinstance(item.type, c_ast.TypeOf):
            self.enter(item.name, self.exprs.value(item.type.of).dtype, item.span)
            return () if item.init is None else self.assign_scalar(item.name, self.initial(item), item.span)
        dtype, extents = layout(item.type, base(item.name), item.span)
        if extents:
            return self.declare_array(item, dtype, extents)
        self.enter(item.name, dtype, item.span)
        if item.init is None:
            return ()
        return self.assign_scalar(item.name, self.initial(item), item.span)

    def initial(self, item: c_ast.Declare) -> Expr:
        if not isinstance(item.init, c_ast.Expr):
            raise refuse("a scalar's value in braces", "the value", item.span if item.init is None else item.init.span)
        return self.exprs.value(item.init)

    def enter(self, name: str, dtype: str, span: Span) -> None:
        self.scope.scalars[name] = dtype
        self.scope.locals[name] = Local(name, dtype, span=span)

    def declare_array(
        self, item: c_ast.Declare, dtype: str, extents: tuple[c_ast.Expr | None, ...]
    ) -> tuple[Stmt, ...]:
        name = base(item.name)
        if isinstance(item.type, c_ast.Pointer):
            raise refuse(f"the pointer {name}", "the array it points to and an index", item.span)
        init = item.init
        if extents[0] is None and isinstance(init, c_ast.InitializerList):
            if len(extents) > 1 and not all(isinstance(part, c_ast.InitializerList) for part in init.parts):
                raise refuse("a list without inner braces for rows that are not counted", "their number", init.span)
            extents = (c_ast.Number(str(len(init.parts))), *extents[1:])
        if extents[0] is None and init is not None:
            raise refuse(f"this initialiser of {name}", "a list in braces", init.span)
        if extents[0] is None:
            raise ParseError(f"{name} has no extent: write one, such as {name}[8]", item.span)
        shape = tuple(self.extent(e, item) for e in extents if e is not None)
        self.scope.arrays[item.name] = Storage(item.name, dtype, len(shape))
        self.scope.locals[item.name] = Local(item.name, dtype, shape, item.on_heap, span=item.span)
        if init is None:
            return ()
        if not isinstance(init, c_ast.InitializerList):
            raise refuse(f"this initialiser of {name}", "a list in braces", init.span)
        return self.table(item, shape, init)

    def extent(self, e: c_ast.Expr, item: c_ast.Declare) -> Expr:
        value = self.exprs.index(e)
        if not is_constant(value, self.scope.fixed):
            message = (
                f"the size of {base(item.name)} depends on what the codelet computes: write a parameter or a constant"
            )
            raise UnsupportedError(message, e.span if e.span.line else item.span)
        return value

    def table(self, item: c_ast.Declare, shape: tuple[Expr, ...], init: c_ast.InitializerList) -> tuple[Stmt, ...]:
        """Return one assignment for each element of an initialised array, zeros included.

        Raises UnsupportedError if there are more than _LARGEST_TABLE elements.
        """
        sizes = [int(e.value) if isinstance(e, Const) else None for e in shape]
        count = 1
        for size in sizes:
            count *= size if size is not None else _LARGEST_TABLE + 1
        if count > _LARGEST_TABLE:
            message = f"a list for {base(item.name)} of more than {_LARGEST_TABLE} elements"
            raise refuse(message, "a loop that fills it", item.span)
        storage = self.scope.arrays[item.name]
        out: list[Stmt] = []
        values = self.flat(init, [n for n in sizes if n is not None])
        for k, value in enumerate(values):
            at: list[Expr] = []
            rest = k
            for size in reversed([n for n in sizes if n is not None]):
                at.insert(0, Const(rest % size))
                rest //= size
            element = Load(storage.name, tuple(at), storage.dtype, span=item.span)
            out.append(Assign(element, cast(Const(0) if value is None else value, storage.dtype), span=item.span))
        return tuple(out)

    def flat(self, init: c_ast.Expr | c_ast.InitializerList, sizes: Sequence[int]) -> list[Expr | None]:
        """Return the values of an initialiser list in storage order, with None for elements it leaves out."""
        if not sizes:
            if isinstance(init, c_ast.InitializerList):
                raise refuse("a list for one element", "one value", init.span)
            return [self.exprs.value(init)]
        assert isinstance(init, c_ast.InitializerList), "what has no braces is among the parts of a list"
        found, used = self.rows(init.parts, 0, sizes)
        if used < len(init.parts):
            if len(sizes) == 1 or all(isinstance(part, c_ast.InitializerList) for part in init.parts):
                raise ParseError(f"the list has {len(init.parts)} values for {sizes[0]} elements", init.span)
            surplus = len(init.parts) - used
            raise ParseError(f"the list fills all {len(found)} elements and has {surplus} more", init.span)
        return found

    def rows(
        self, parts: Sequence[c_ast.Expr | c_ast.InitializerList], at: int, sizes: Sequence[int]
    ) -> tuple[list[Expr | None], int]:
        """Return the values of an array, which are the parts from ``at`` on, and where those after it begin.

        As in C, a row without braces of its own takes as many parts as it has elements.
        """
        found: list[Expr | None] = []
        count = prod(sizes)
        while at < len(parts) and len(found) < count:
            if len(sizes) == 1 or isinstance(parts[at], c_ast.InitializerList):
                found += self.flat(parts[at], sizes[1:])
                at += 1
            else:
                inner, at = self.rows(parts, at, sizes[1:])
                found += inner
        return found + [None] * (count - len(found)), at

    def evaluate(self, e: c_ast.Expr) -> tuple[Stmt, ...]:
        match e:
            case c_ast.Comma(parts):
                return tuple(stmt for part in parts for stmt in self.evaluate(part))
            case c_ast.Assignment("", target, c_ast.Assignment(_, inner, _) as chained):
                # a = b = c: b takes c, then a takes what b holds
                return (*self.evaluate(chained), *self.store("", target, inner, e.span))
            case c_ast.Assignment(op, target, value):
                return self.store(op, target, value, e.span)
            case c_ast.Unary("++" | "--" as op, target):
                return self.store(op[0], target, c_ast.Number("1", span=e.span), e.span)
            case c_ast.Cast(c_ast.Basic("void"), c_ast.Name() | c_ast.Number()) | c_ast.Name() | c_ast.Number():
                return ()
            case c_ast.Call(name) if self.scope.function(name) is None:
                raise undefined_function(e)
            case _:
                self.exprs.value(e)
                return ()

    def store(self, op: str, target: c_ast.Expr, value: c_ast.Expr, span: Span) -> tuple[Stmt, ...]:
        match target:
            case c_ast.Name(name) if name in self.scope.scalars:
                old: Expr = Var(name, self.scope.scalars[name], span=target.span)
                new = self.exprs.value(value)
                return self.assign_scalar(name, self.combined(op, old, new, span), span)
            case c_ast.Name(name) if self.exprs.storage(target) is None:
                message = f"a write to {base(name)}, which is not a variable of the codelet,"
                raise refuse(message, f"*{base(name)}, a pointer parameter,", target.span)
            case c_ast.Name(name) if not op:
                shown = base(name)
                raise refuse(f"setting {shown}, which is a pointer or an array,", f"its elements, {shown}[…],", span)
            case c_ast.Name() | c_ast.Index() | c_ast.Unary("*"):
                element = self.exprs.load(target)
                new = cast(self.combined(op, element, self.exprs.value(value), span), element.dtype)
                return (Assign(element, new, span=span),)
            case c_ast.Unsupported(what, instead):
                raise refuse(what, instead, target.span)
            case c_ast.Field():
                raise refuse_field(target.span)
            case _:
                raise refuse("this assignment", "a variable or an array element on its left", span)

    def combined(self, op: str, old: Expr, new: Expr, span: Span) -> Expr:
        return self.exprs.binary(op, old, new, span) if op else new

    def assign_scalar(self, name: str, value: Expr, span: Span) -> tuple[Stmt, ...]:
        """Return the assignment, or nothing for a variable that is written once with a constant value.

        The value replaces it, so that bounds and indices stay affine.

        A float stands for it only where nothing is computed again wherever it is used: coefficients in the text do.
        """
        dtype = self.scope.scalars[name]
        value = cast(value, dtype)
        free = is_integer(dtype) or not any(isinstance(n, Binary | Select) for n in walk(value))
        if free and name in self.once and is_constant(value, self.scope.fixed):
            self.scope.bound[name] = value
            return ()
        return (Assign(Var(name, dtype, span=span), value, span=span),)

    # -- loops ----------------------------------------------------------------------------------

    def while_(self, item: c_ast.While) -> tuple[Stmt, ...]:
        directives = self.take_directives()
        if not item.after:
            cond = self.exprs.value(item.cond)
            body = self.block(item.body.items)
            return (While(cond, body, directives=directives, span=item.span),)
        go = self.temporary("go", Const(1), item.span)
        again = self.block(item.body.items)
        cond = self.exprs.binary("!=", self.exprs.value(item.cond), Const(0), item.cond.span)
        step = Assign(go, cond, span=item.cond.span)
        loop = While(go, (*again, step), directives=directives, span=item.span)
        return (Assign(go, Const(1), span=item.span), loop)

    def take_directives(self) -> tuple[Directive, ...]:
        """Return the directives that precede the loop, and forget them."""
        found = tuple(self.pending)
        self.pending.clear()
        return found

    def temporary(self, wanted: str, like: Expr, span: Span) -> Var:
        self.serial += 1
        name = f"{wanted}#t{self.serial}"
        self.enter(name, like.dtype, span)
        return Var(name, like.dtype, span=span)

    def loop(self, item: c_ast.For) -> tuple[Stmt, ...]:
        """Return a counted loop if the header is one, or else the ``while`` that is equivalent to the ``for``."""
        if item.cond is None and not item.until:
            raise refuse("a for without a condition or a break", "the condition that ends it", item.span)
        directives = self.take_directives()
        head = loop_header(item)
        if head is not None:
            before = self.block(head.before)
            self.declared(head)
            found = self.counted(item, head, directives)
            if found is not None:
                return (*before, *found)
            start = (
                ()
                if head.start is None
                else self.store("", c_ast.Name(head.var, span=item.span), head.start, item.span)
            )
            return (*before, *start, self.as_while(item, directives))
        return (*self.block(item.init), self.as_while(item, directives))

    def declared(self, head: Header) -> None:
        if head.declared is not None:
            dtype, extents = layout(head.declared.type, base(head.var), head.declared.span)
            assert not extents, "only scalars count"
            self.enter(head.var, dtype, head.declared.span)

    def as_while(self, item: c_ast.For, directives: tuple[Directive, ...]) -> Stmt:
        on = _conjunction(item.until, item.span)
        parts = [e for e in (on, item.cond) if e is not None]
        cond = self.exprs.value(reduce(lambda a, b: c_ast.Binary("&&", a, b, span=b.span), parts))
        step: tuple[c_ast.Item, ...] = ()
        if item.next is not None:
            step = (c_ast.Evaluate(item.next, span=item.next.span),)
        if on is not None and step:
            step = (c_ast.If(on, c_ast.Block(step), c_ast.Block(()), span=item.span),)
        body = self.block((*item.body.items, *step))
        return While(cond, body, directives=directives, span=item.span)

    def counted(self, item: c_ast.For, head: Header, directives: tuple[Directive, ...]) -> tuple[Stmt, ...] | None:
        """Return a counted loop, or None if its types or the directions of its limits do not permit one."""
        if item.until and any(limit.op == "!=" for limit in head.limits):
            return None  # a jump may end it before it comes to its limit, past which it may begin
        own = self.scope.scalars.get(head.var)
        if own is None or not is_integer(own) or own == "bool":
            return None
        shown = arithmetic_type(own, own)
        step = self.exprs.value(head.step)
        if not is_integer(step.dtype):
            return None
        raw = Var(head.var, own) if head.start is None else cast(self.exprs.value(head.start), own)
        asked = [self.comparison(base(head.var), limit, shown) for limit in head.limits]
        if any(not is_integer(a.bound.dtype) for a in asked):
            return None
        written = assigned_names((item.body, *head.after))
        start, setup = self.unchanged(cast(raw, shown), written, head.var, item.span)
        found = counter_range(own, start, asked, head.down, step, self.nonnegative)
        if found is None:
            return None
        self.serial += 1
        counter = Var(f"{base(head.var)}#{self.serial}@", found.dtype, span=item.span)
        form = canonicalize(counter, found.start, found.limits, head.down, cast(step, found.dtype))
        if form is None:
            return None
        if found.dtype != shown:
            self.scope.counters.add(form.value)
            form = replace(form, value=cast(form.value, shown))
        loop = self.run(item, head, counter, form, directives)
        if head.declared is not None:
            return (*setup, loop)
        last = cast(form.last, own)
        final = Assign(Var(head.var, last.dtype), last, name=FINAL, span=item.span)
        return (*setup, loop, final)

    def comparison(self, var: str, limit: Limit, shown: str) -> ExitTest:
        """Return the operands of the condition and the type in which they are compared."""
        bound = moved = self.exprs.value(limit.bound)
        side = shown
        added: int | None = 0
        for op, e in limit.subtracted:
            value = self.exprs.value(e)
            moved = self.exprs.binary("-" if op == "+" else "+", moved, value, e.span)
            side = arithmetic_type(side, value.dtype)
            match value:
                case Const(int(number)) if added is not None:
                    added += number if op == "+" else -number
                case _:
                    added = None
        return ExitTest(var, limit.op, bound, side, added, moved, limit.span)

    def nonnegative(self, e: Expr) -> bool:
        return e in self.positive or nonnegative(e, self.counters)

    def unchanged(self, start: Expr, written: frozenset[str], var: str, span: Span) -> tuple[Expr, tuple[Stmt, ...]]:
        """Return ``start``, or a new variable with its value if the loop writes an operand, and the assignment."""
        names = {n.name if isinstance(n, Var) else n.array for n in walk(start) if isinstance(n, Var | Load)}
        if not names & written:
            return start, ()
        first = self.temporary(f"{base(var)}_first", start, span)
        return first, (Assign(first, start, span=span),)

    def run(
        self, item: c_ast.For, head: Header, counter: Var, form: CanonicalLoop, directives: tuple[Directive, ...]
    ) -> Loop:
        """Return the loop with its body lowered.

        The user's variable is replaced by its value in terms of the counter.
        """
        scope = self.scope
        scope.bound[head.var] = form.value
        if self.nonnegative(form.lo):
            self.counters.add(counter.name)
        if form.never_negative:
            self.positive.add(form.value)
        fixed = {n.name for n in walk(form.value) if isinstance(n, Var)}
        added = (fixed - scope.fixed) if is_constant(form.value, fixed) else {counter.name}
        scope.fixed |= added
        outside = frozenset(scope.locals)
        items = (*item.body.items, *head.after)
        on = _conjunction(item.until, item.span)
        if on is not None:
            items = (c_ast.If(on, c_ast.Block(items), c_ast.Block(()), span=item.span),)
        body = self.block(items)
        own = tuple(name for name, v in scope.locals.items() if v.shape and name not in outside)
        scope.fixed -= added
        del scope.bound[head.var]
        shown = None if form.value == counter else form.value
        own_counter = None if OFFSET in head.var else SourceCounter(base(head.var), scope.scalars[head.var], shown)
        return Loop(
            counter.name, form.lo, form.hi, body, form.step,
            dtype=counter.dtype, directives=directives, private_arrays=own, span=item.span,
            counter=own_counter,
        )  # fmt: skip


def _conjunction(flags: Sequence[str], span: Span) -> c_ast.Expr | None:
    """Return the condition that no flag is zero, or None if there is none."""
    names: list[c_ast.Expr] = [c_ast.Name(name, span=span) for name in flags]
    return reduce(lambda a, b: c_ast.Binary("&&", a, b, span=span), names) if names else None
