"""Complex numbers as structs of two parts, and their arithmetic as real arithmetic.

    double complex s = 0, *a, *b;               struct { double re, im; } s = {0, 0}, *a, *b;
    s += a[i] * conj(b[i]);             ==>     s.re += a[i].re * b[i].re + a[i].im * b[i].im;
                                                s.im += a[i].im * b[i].re - a[i].re * b[i].im;

``struct_fields`` then makes arrays with a dimension more and variables of the parts, as of any struct: the memory is
that of the ABI. What is used several times and is more than a variable or an element is computed once, in a variable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from looptune.core.errors import ParseError, UnsupportedError
from looptune.frontend import c_ast
from looptune.frontend.c_types import complex_type, is_complex_type
from looptune.frontend.name_resolution import root_variable
from looptune.frontend.normalize import complex_arithmetic
from looptune.frontend.normalize.complex_arithmetic import Arithmetic, Part, Parts
from looptune.frontend.normalize.struct_layout import StructById, leaf_type, lvalue_type
from looptune.frontend.normalize.structured_jumps import leave_loop_body
from looptune.frontend.symbol_table import refuse

Items = tuple[c_ast.Item, ...]
UNIT = "_Complex_I"
"""What the macro ``I`` of complex.h stands for."""
_LARGEST_REPEATED = 300
"""Nodes of an expression that is written several times, where no statement can precede it."""


def mentions_complex(node: Any, types: Mapping[str, c_ast.Type]) -> bool:
    """Tell whether complex numbers occur in statements or an expression."""
    return any(_is_mention(n, types) for n in c_ast.walk(node))


def _is_mention(node: Any, types: Mapping[str, c_ast.Type]) -> bool:
    match node:
        case c_ast.Number(text):
            return text.endswith("i")
        case c_ast.Name(name):
            return (name == UNIT and name not in types) or _leads_to_complex(types.get(name))
        case c_ast.Declare(_, kind) | c_ast.Cast(kind):
            return _leads_to_complex(kind)
        case c_ast.Call(name):
            return complex_arithmetic.plain(name)[0] != ""
    return False


def _leads_to_complex(kind: c_ast.Type | None) -> bool:
    leaf = None if kind is None else leaf_type(kind)
    return isinstance(leaf, c_ast.Struct) and _has_complex(StructById(leaf))


@lru_cache(maxsize=4096)
def _has_complex(struct: StructById) -> bool:
    return is_complex_type(struct.kind) or any(_leads_to_complex(inner) for _, inner in struct.kind.fields)


def separate_parts(items: Items, types: Mapping[str, c_ast.Type], functions: frozenset[str]) -> Items:
    """Return the statements with real arithmetic alone; ``functions`` are those of the file.

    Raises UnsupportedError at what complex numbers have no formula for.
    """
    if not mentions_complex(c_ast.Block(items), types):
        return items
    local = {n.name for top in items for n in c_ast.walk(top) if isinstance(n, c_ast.Declare)}
    pointers = frozenset(n for n in local if isinstance(types.get(n), c_ast.Pointer))
    return _Rewriter(dict(types), functions, pointers).block(items)


def with_parts(d: c_ast.Declare, functions: frozenset[str]) -> c_ast.Declare:
    """Return a table of complex numbers with its values as lists of parts."""
    if not isinstance(d.init, c_ast.InitializerList) or not _leads_to_complex(d.type):
        return d
    return replace(d, init=_Rewriter({}, functions, frozenset()).initial(d.type, d.init))


@dataclass(slots=True)
class _Rewriter:
    """``before`` are the statements before the one that is rewritten, None where none can stand."""

    types: dict[str, c_ast.Type]
    functions: frozenset[str]
    local_pointers: frozenset[str]
    before: list[c_ast.Item] | None = None
    count: int = 0

    # -- types ----------------------------------------------------------------------------------

    def kind(self, e: Any) -> c_ast.Type | None:
        return lvalue_type(e, self.types)

    def is_complex(self, e: Any) -> bool:
        match e:
            case c_ast.Number(text):
                return text.endswith("i")
            case c_ast.Name(name) if name == UNIT and name not in self.types:
                return True
            case c_ast.Binary("+" | "-" | "*" | "/", lhs, rhs) | c_ast.Ternary(_, lhs, rhs):
                return self.is_complex(lhs) or self.is_complex(rhs)
            case c_ast.Unary("+" | "-" | "~", inner):
                return self.is_complex(inner)
            case c_ast.Call(name):
                return name not in self.functions and complex_arithmetic.returns_complex(name)
        return is_complex_type(self.kind(e))

    def dtype(self, e: Any) -> str:
        """Return the type of a real expression, or of the parts of a complex one; "" for integers."""
        match e:
            case c_ast.Number(text):
                if text.endswith("i"):
                    return self.dtype(_imaginary_part(e))
                if text.lower().startswith("0x") or not any(c in text for c in ".eE"):
                    return ""
                return "float32" if text[-1] in "fF" else "float64"
            case c_ast.Binary("+" | "-" | "*" | "/", lhs, rhs) | c_ast.Ternary(_, lhs, rhs):
                return max(self.dtype(lhs), self.dtype(rhs))
            case c_ast.Unary("+" | "-" | "~", inner):
                return self.dtype(inner)
            case c_ast.Name(name) if name == UNIT and name not in self.types:
                return "float32"
            case c_ast.Call(name, args):
                if complex_arithmetic.plain(name)[0]:
                    return "float32" if complex_arithmetic.plain(name)[1] == "f" else "float64"
                return "float32" if name.endswith("f") and all(self.dtype(a) != "float64" for a in args) else "float64"
        match self.kind(e):
            case c_ast.Basic(dtype):
                return dtype if dtype.startswith("float") else ""
            case c_ast.Struct() as kind if is_complex_type(kind):
                return self.dtype_of(kind)
            case c_ast.TypeOf(of):
                return self.dtype(of)
            case None:
                return "float64" if isinstance(e, c_ast.Name) else ""
        return ""

    def dtype_of(self, kind: c_ast.Struct) -> str:
        _, part = kind.fields[0]
        assert isinstance(part, c_ast.Basic), "the parts are numbers"
        return part.dtype

    # -- statements -----------------------------------------------------------------------------

    def block(self, items: Items) -> Items:
        """Return statements; those that must precede a loop stand before its pragmas."""
        found: list[c_ast.Item] = []
        marks: list[c_ast.Item] = []
        for item in items:
            if isinstance(item, c_ast.PragmaItem):
                marks.append(item)
                continue
            made = self.statement(item)
            found += [*made[:-1], *marks, *made[-1:]]
            marks = []
        return (*found, *marks)

    def inside(self, block: c_ast.Block) -> c_ast.Block:
        return replace(block, items=self.block(block.items))

    def statement(self, item: Any) -> Items:
        outer, self.before = self.before, []
        made = tuple(self.rewritten(item))
        made = (*self.before, *made)
        self.before = outer
        return made

    def rewritten(self, item: Any) -> Iterator[c_ast.Item]:
        match item:
            case c_ast.Evaluate(c_ast.Assignment() as e):
                yield from self.assigned(e)
            case c_ast.Evaluate(c_ast.Unary("++" | "--" as op, target)) if self.is_complex(target):
                one = c_ast.Number("1", span=item.span)
                yield from self.assigned(c_ast.Assignment(op[0], target, one, span=item.span))
            case c_ast.Declare():
                yield self.declared(item)
            case c_ast.Block():
                yield self.inside(item)
            case c_ast.Region(_, inner):
                yield replace(item, items=self.block(inner))
            case c_ast.If(cond, then, other):
                yield replace(item, cond=self.truth(cond), then=self.inside(then), other=self.inside(other))
            case c_ast.Switch(cond, body):
                yield replace(item, cond=self.real(cond), body=self.inside(body))
            case c_ast.While(cond, body):
                yield replace(item, cond=self.alone(self.truth, cond), body=self.inside(body))
            case c_ast.For():
                yield from self.loop(item)
            case _:
                yield c_ast.map_children(self.real, item)

    def loop(self, item: c_ast.For) -> Iterator[c_ast.Item]:
        """Yield a loop; complex numbers that its header sets are set before it, and at the end of its body."""
        begins, first = _split(item.init, self.sets_complex)
        steps = () if item.next is None else item.next.parts if isinstance(item.next, c_ast.Comma) else (item.next,)
        step, last = _split(tuple(c_ast.Evaluate(e, span=e.span) for e in steps), self.sets_complex)
        for start in first:
            yield from self.statement(start)
        cond = None if item.cond is None else self.alone(self.truth, item.cond)
        body = self.inside(item.body)
        after = item.next
        if last:
            self.count += 1
            body = replace(body, items=(*leave_loop_body(body.items, f"nextc{self.count}"), *self.block(last)))
            kept = tuple(s.expr for s in step if isinstance(s, c_ast.Evaluate))
            after = None if not kept else kept[0] if len(kept) == 1 else c_ast.Comma(kept, span=kept[0].span)
        after = None if after is None else self.alone(self.real, after)
        init = tuple(made for part in begins for made in self.statement(part))
        yield replace(item, init=init, cond=cond, next=after, body=body)

    def sets_complex(self, item: c_ast.Item) -> bool:
        match item:
            case c_ast.Evaluate(c_ast.Unary("++" | "--", target)):
                return self.is_complex(target)
            case c_ast.Evaluate(c_ast.Assignment(_, target, value)):
                return self.is_complex(target) or mentions_complex(value, self.types)
            case c_ast.Declare(_, kind):
                return _leads_to_complex(kind)
        return False

    def declared(self, item: Any) -> Any:
        kind = item.type
        if isinstance(kind, c_ast.TypeOf) and self.is_complex(kind.of):
            kind = complex_type(self.dtype(kind.of))
            item = replace(item, type=kind)
        self.types[item.name] = kind
        if item.init is None:
            return c_ast.map_children(self.real, item)
        if _leads_to_complex(kind) and not isinstance(kind, c_ast.Pointer) and _is_value(kind, item.init):
            return replace(item, init=self.initial(kind, item.init))
        if isinstance(kind, c_ast.Basic) and isinstance(item.init, c_ast.Expr):
            return replace(item, init=self.converted(kind, item.init))
        return c_ast.map_children(self.real, item)

    def initial(self, kind: c_ast.Type, init: Any) -> Any:
        """Return the initial value of a complex number, or of an array or struct with such, as lists of parts."""
        if isinstance(init, c_ast.InitializerList):
            match kind:
                case c_ast.ArrayOf(of):
                    return replace(init, parts=tuple(self.initial(of, part) for part in init.parts))
                case c_ast.Struct(_, fields) if not is_complex_type(kind):
                    listed = zip(fields, init.parts, strict=False)
                    return replace(init, parts=tuple(self.initial(of, part) for (_, of), part in listed))
            if len(init.parts) > 1:
                raise refuse("this initialiser of a complex number", "one value", init.span)
            init = init.parts[0] if init.parts else c_ast.Number("0", span=init.span)
        if not is_complex_type(kind):
            return self.converted(kind, init)
        z = self.pair(init)
        on = self.arithmetic(init)
        return c_ast.InitializerList((on.zero(z.re), on.zero(z.im)), span=init.span)

    def assigned(self, e: c_ast.Assignment) -> Iterator[c_ast.Item]:
        if not self.is_complex(e.target):
            yield c_ast.Evaluate(self.real_assigned(e), span=e.span)
            return
        target = self.lvalue(e.target)
        re, im = _part(target, "re"), _part(target, "im")
        on, op, value = self.arithmetic(e), e.op, self.pair(e.value)
        if op in ("*", "/") and value.im is None:
            by = self.keep(on.zero(value.re), "by")
            value = Parts(by, by)
        elif op in ("*", "/"):
            value = on.product(Parts(re, im), value) if op == "*" else on.quotient(Parts(re, im), value)
            op = ""
        if op == "":
            value = Parts(on.zero(value.re), on.zero(value.im))
        sets = [replace(e, op=op, target=t, value=v) for t, v in ((re, value.re), (im, value.im)) if v is not None]
        for one in self.ordered(sets, target):
            yield c_ast.Evaluate(one, span=e.span)

    def real_assigned(self, e: c_ast.Assignment) -> c_ast.Assignment:
        """Return an assignment to a real variable, which takes the real part."""
        target = self.real(e.target)
        if e.op == "/" and self.is_complex(e.value):
            quotient = self.arithmetic(e).quotient(Parts(target), self.pair(e.value))
            return replace(e, op="", target=target, value=self.zero_of(quotient.re, e))
        kind = self.kind(e.target) if e.op == "" else None
        return replace(e, target=target, value=self.converted(kind, e.value))

    def ordered(self, sets: list[Any], target: c_ast.Expr) -> list[Any]:
        """Return the settings of the parts in an order in which none reads what another one has changed."""
        if len(sets) < 2 or not self.reads(sets[1].value, target, "re"):
            return sets
        if not self.reads(sets[0].value, target, "im"):
            return sets[::-1]
        return [sets[1], replace(sets[0], value=self.held(sets[0].value, "re"))]

    def reads(self, e: c_ast.Expr, target: c_ast.Expr, part: str) -> bool:
        """Tell whether an expression may read a part of the complex number that the target is."""
        mine = root_variable(target)
        for n in c_ast.walk(e):
            if not isinstance(n, c_ast.Field) or n.name != part or not is_complex_type(self.kind(n.base)):
                continue
            other = root_variable(n.base)
            if mine == other or mine is None or other is None or {mine, other} & self.local_pointers:
                return True
        return False

    # -- expressions ----------------------------------------------------------------------------

    def arithmetic(self, e: Any) -> Arithmetic:
        parts = (e.target, e.value) if isinstance(e, c_ast.Assignment) else (e,)
        single = "float64" not in map(self.dtype, parts)
        return Arithmetic(e.span, self.keep, "f" if single else "")

    def keep(self, e: c_ast.Expr, name: str) -> c_ast.Expr:
        """Return the expression, or a variable of this name that holds its value where it is worth one."""
        if _is_cheap(e):
            return e
        if self.before is not None:
            return self.held(e, name)
        if sum(1 for _ in c_ast.walk(e)) > _LARGEST_REPEATED:
            raise refuse("a complex expression of this size in a condition", "a variable for its parts", e.span)
        return e

    def held(self, e: c_ast.Expr, name: str) -> c_ast.Expr:
        assert self.before is not None, "statements can stand before this one"
        self.count += 1
        variable = c_ast.Name(f"{name}#p{self.count}", span=e.span)
        dtype = self.dtype(e)
        self.types[variable.name] = c_ast.TypeOf(e) if not dtype else c_ast.Basic(dtype)
        self.before.append(c_ast.Declare(variable.name, c_ast.TypeOf(e), e, span=e.span))
        return variable

    def alone(self, rule: Any, e: c_ast.Expr) -> c_ast.Expr:
        """Apply a rule to an expression before which no statement can stand."""
        outer, self.before = self.before, None
        found: c_ast.Expr = rule(e)
        self.before = outer
        return found

    def lvalue(self, e: Any) -> Any:
        return c_ast.map_children(self.real, e)

    def pair(self, e: Any) -> Parts:
        """Return the parts of an expression; those of a real one are itself and none."""
        if not self.is_complex(e):
            return Parts(self.real(e))
        on = self.arithmetic(e)
        match e:
            case c_ast.Name(name) if name == UNIT and name not in self.types:
                return Parts(None, c_ast.Number("1.0f", span=e.span))
            case c_ast.Number():
                return Parts(None, _imaginary_part(e))
            case c_ast.Binary(op, lhs, rhs) if _is_arithmetic(op):
                return self.operation(on, op, lhs, rhs)
            case c_ast.Unary("+", inner):
                return self.pair(inner)
            case c_ast.Unary("-", inner):
                return on.opposite(self.pair(inner))
            case c_ast.Unary("~", inner):
                z = self.pair(inner)
                return Parts(z.re, on.negated(z.im))
            case c_ast.Ternary(cond, then, other):
                return self.choice(on, cond, then, other)
            case c_ast.Cast(c_ast.Struct() as to, inner):
                z = self.pair(inner)
                return Parts(self.cast(to, z.re), self.cast(to, z.im))
            case c_ast.Call():
                made = self.invoked(e)
                assert isinstance(made, Parts), "it returns a complex number"
                return made
        target = self.lvalue(e)
        return Parts(_part(target, "re"), _part(target, "im"))

    def operation(self, on: Arithmetic, op: str, lhs: c_ast.Expr, rhs: c_ast.Expr) -> Parts:
        a, b = self.pair(lhs), self.pair(rhs)
        match op:
            case "+":
                return on.sum(a, b)
            case "-":
                return on.difference(a, b)
            case "/":
                return on.quotient(a, b)
        for unit, of in ((a, b), (b, a)):
            if unit.re is None and unit.im == c_ast.Number("1.0f"):
                return self.times_unit(on, of)
        return on.product(a, b)

    def times_unit(self, on: Arithmetic, z: Parts) -> Parts:
        """Return z times I, where an integer becomes a floating-point number."""
        if z.im is None and z.re is not None and not self.dtype(z.re):
            return Parts(None, on.op("*", z.re, c_ast.Number("1.0f", span=on.span)))
        return on.times_i(z)

    def choice(self, on: Arithmetic, cond: c_ast.Expr, then: c_ast.Expr, other: c_ast.Expr) -> Parts:
        test = self.keep(self.truth(cond), "holds")
        outer, self.before = self.before, None
        a, b = self.pair(then), self.pair(other)
        self.before = outer
        re = on.choice(test, on.zero(a.re), on.zero(b.re))
        return Parts(re, on.choice(test, on.zero(a.im), on.zero(b.im)))

    def cast(self, to: c_ast.Struct, e: Part) -> Part:
        return e if e is None or self.dtype(e) == self.dtype_of(to) else c_ast.Cast(to.fields[0][1], e, span=e.span)

    def invoked(self, e: c_ast.Call) -> Parts | c_ast.Expr:
        """Return what a function of ``complex.h`` returns."""
        _, suffix = complex_arithmetic.plain(e.name)
        args = tuple(self.typed(self.pair(a), suffix) for a in e.args)
        return complex_arithmetic.library_value(Arithmetic(e.span, self.keep, suffix), e, args)

    def typed(self, z: Parts, suffix: str) -> Parts:
        """Return an argument as one of float where the function's name says so, and of double otherwise."""
        return Parts(self.part_typed(z.re, suffix), self.part_typed(z.im, suffix))

    def part_typed(self, e: Part, suffix: str) -> Part:
        if e is None or self.dtype(e) == ("float32" if suffix else "float64"):
            return e
        if suffix:
            return c_ast.Cast(c_ast.Basic("float32"), e, span=e.span)
        return c_ast.Binary("*", e, c_ast.Number("1.0", span=e.span), span=e.span)

    def converted(self, kind: c_ast.Type | None, e: c_ast.Expr) -> c_ast.Expr:
        """Return a value as a variable of a real type takes it: bool its truth, others its real part."""
        if not self.is_complex(e):
            found: c_ast.Expr = self.real(e)
            return found
        if kind == c_ast.Basic("bool"):
            return self.truth(e)
        return self.zero_of(self.pair(e).re, e)

    def zero_of(self, part: Part, e: c_ast.Expr) -> c_ast.Expr:
        return Arithmetic(e.span, self.keep).zero(part)

    def truth(self, e: c_ast.Expr) -> c_ast.Expr:
        """Return an expression as a condition."""
        return self.arithmetic(e).truth(self.pair(e)) if self.is_complex(e) else self.converted(None, e)

    def real_call(self, e: c_ast.Call) -> c_ast.Expr:
        """Return a call whose value is real; a function of real numbers takes the real part of its argument."""
        if e.name not in self.functions and complex_arithmetic.plain(e.name)[0]:
            made = self.invoked(e)
            assert not isinstance(made, Parts), "it returns a real number"
            return made
        real = e.name not in self.functions and complex_arithmetic.has_complex_form(e.name)
        if real and any(map(self.is_complex, e.args)):
            own = e.name.replace("fabs", "cabs") if "fabs" in e.name else f"c{e.name}"
            raise refuse(f"{e.name} of a complex number", f"{own}, or creal of its argument,", e.span)
        return replace(e, args=tuple(self.converted(None, a) for a in e.args))

    def real(self, e: Any) -> Any:
        """Return an expression whose value is no complex number, without complex operands."""
        match e:
            case c_ast.Binary("&&" | "||", lhs, rhs):
                return replace(e, lhs=self.truth(lhs), rhs=self.alone(self.truth, rhs))
            case c_ast.Unary("!", inner):
                return replace(e, arg=self.truth(inner))
            case c_ast.Binary("==" | "!=" as op, lhs, rhs) if self.is_complex(lhs) or self.is_complex(rhs):
                equal = self.arithmetic(e).equal(self.pair(lhs), self.pair(rhs))
                return equal if op == "==" else c_ast.Unary("!", equal, span=e.span)
            case c_ast.Binary("<" | ">" | "<=" | ">=" | "%" | "&" | "|" | "^" | "<<" | ">>" as op, lhs, rhs) if (
                self.is_complex(lhs) or self.is_complex(rhs)
            ):
                raise ParseError(f"{op} takes no complex numbers", e.span)
            case c_ast.Ternary(cond, then, other):
                yes, no = self.alone(self.real, then), self.alone(self.real, other)
                return replace(e, cond=self.truth(cond), then=yes, other=no)
            case c_ast.Cast(c_ast.Basic() as to, inner) if self.is_complex(inner):
                return replace(e, arg=self.converted(to, inner))
            case c_ast.Field(inner, "re" | "im" as part, False) if self.is_complex(inner):
                z = self.pair(inner)
                return self.zero_of(z.re if part == "re" else z.im, e)
            case c_ast.Field(inner, "re" | "im" as part, False) if not isinstance(self.kind(inner), c_ast.Struct):
                return self.real(inner) if part == "re" else c_ast.Number("0", span=e.span)
            case c_ast.Call():
                return self.real_call(e)
            case c_ast.SizeOf():
                return e
        return c_ast.map_children(self.real, e)


def _part(target: Any, name: str) -> c_ast.Field:
    return c_ast.Field(target, name, False, span=target.span)


def _imaginary_part(e: c_ast.Number) -> c_ast.Number:
    """Return the part of a constant such as ``2.0i``. Raises UnsupportedError for a complex integer."""
    text = e.text[:-1]
    if text.rstrip("fF").isdecimal():
        raise UnsupportedError(f"{e.text} is an integer, which divides as one: write {text.rstrip('fF')}.0i", e.span)
    return replace(e, text=text)


def _is_arithmetic(op: str) -> bool:
    return op in ("+", "-", "*", "/")


def _is_cheap(e: Any) -> bool:
    """Tell whether an expression is a constant, a variable, an element, or one of these with a sign."""
    match e:
        case c_ast.Number() | c_ast.Name():
            return True
        case c_ast.Unary("-", inner) | c_ast.Cast(c_ast.Basic(), inner) | c_ast.Field(inner):
            return _is_cheap(inner)
        case c_ast.Index() | c_ast.Unary("*"):
            return not any(isinstance(n, c_ast.Call) for n in c_ast.walk(e))
    return False


def _is_value(kind: c_ast.Type, init: Any) -> bool:
    """Tell whether a variable is initialised with a complex number or a list, and not with a copy of a struct."""
    return is_complex_type(kind) or isinstance(init, c_ast.InitializerList)


def _split(items: Items, wanted: Any) -> tuple[Items, Items]:
    """Return the items that are not wanted, and those that are; all count as wanted where one needs another's value."""
    rest, found = tuple(i for i in items if not wanted(i)), tuple(i for i in items if wanted(i))
    set_here = {n.target.name for i in rest for n in c_ast.walk(i)
                if isinstance(n, c_ast.Assignment) and isinstance(n.target, c_ast.Name)}  # fmt: skip
    set_here |= {n.name for i in rest for n in c_ast.walk(i) if isinstance(n, c_ast.Declare)}
    set_here |= {n.arg.name for i in rest for n in c_ast.walk(i)
                 if isinstance(n, c_ast.Unary) and n.op in ("++", "--") and isinstance(n.arg, c_ast.Name)}  # fmt: skip
    used = {n.name for i in found for n in c_ast.walk(i) if isinstance(n, c_ast.Name)}
    return ((), items) if set_here & used else (rest, found)
