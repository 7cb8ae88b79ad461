"""Lower C expressions to IR expressions: types, explicit conversions, math.h, inlined one-line functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, assert_never

from looptune.core.errors import ParseError, UnsupportedError
from looptune.frontend import c_ast, math_functions
from looptune.frontend.c_constants import number
from looptune.frontend.c_types import pointer_dimensions
from looptune.frontend.loop_limits import COUNTING, convert_index
from looptune.frontend.name_resolution import TABLE, base, resolve, singly_assigned
from looptune.frontend.symbol_table import Scope, Storage, layout, refuse, refuse_field
from looptune.ir.c_printer import arithmetic_type
from looptune.ir.nodes import (
    HALF,
    SHORT_FLOATS,
    Array,
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Load,
    Node,
    Scalar,
    Select,
    Unary,
    Var,
)
from looptune.ir.rewrite import walk
from looptune.ir.simplify import fold, is_integer

if TYPE_CHECKING:
    from looptune.core.source import Span

MOST_NODES = 20_000
"""Of one expression."""

HEADER_CONSTANTS: dict[str, Const] = {
    "M_PI": Const(math.pi, "float64"), "M_PI_2": Const(math.pi / 2, "float64"),
    "M_PI_4": Const(math.pi / 4, "float64"), "M_E": Const(math.e, "float64"),
    "M_SQRT2": Const(math.sqrt(2), "float64"), "M_LN2": Const(math.log(2), "float64"),
    "INFINITY": Const(math.inf, "float32"), "HUGE_VAL": Const(math.inf, "float64"), "NAN": Const(math.nan, "float32"),
    "INT_MAX": Const(2**31 - 1), "INT_MIN": Const(-(2**31)), "UINT_MAX": Const(2**32 - 1, "uint32"),
    "LONG_MAX": Const(2**63 - 1, "int64"), "LONG_MIN": Const(-(2**63), "int64"),
    "ULONG_MAX": Const(2**64 - 1, "uint64"), "SCHAR_MAX": Const(127), "SCHAR_MIN": Const(-128),
    "UCHAR_MAX": Const(255), "CHAR_MAX": Const(127), "CHAR_MIN": Const(-128), "SHRT_MAX": Const(2**15 - 1),
    "SHRT_MIN": Const(-(2**15)), "USHRT_MAX": Const(2**16 - 1), "INT8_MAX": Const(127), "INT8_MIN": Const(-128),
    "UINT8_MAX": Const(255), "INT16_MAX": Const(2**15 - 1), "INT16_MIN": Const(-(2**15)),
    "UINT16_MAX": Const(2**16 - 1), "INT32_MAX": Const(2**31 - 1), "INT32_MIN": Const(-(2**31)),
    "UINT32_MAX": Const(2**32 - 1, "uint32"), "INT64_MAX": Const(2**63 - 1, "int64"),
    "INT64_MIN": Const(-(2**63), "int64"), "UINT64_MAX": Const(2**64 - 1, "uint64"),
    "SIZE_MAX": Const(2**64 - 1, "uint64"), "LLONG_MAX": Const(2**63 - 1, "int64"),
    "LLONG_MIN": Const(-(2**63), "int64"), "ULLONG_MAX": Const(2**64 - 1, "uint64"), "CHAR_BIT": Const(8),
    "true": Const(1), "false": Const(0), "NULL": Const(0), "EOF": Const(-1), "RAND_MAX": Const(2**31 - 1),
    "EXIT_SUCCESS": Const(0), "EXIT_FAILURE": Const(1), "CLOCKS_PER_SEC": Const(1_000_000, "int64"),
    "M_1_PI": Const(1 / math.pi, "float64"), "M_2_PI": Const(2 / math.pi, "float64"),
    "M_LN10": Const(math.log(10), "float64"), "M_SQRT1_2": Const(math.sqrt(0.5), "float64"),
    "FLT_MAX": Const(float.fromhex("0x1.fffffep127"), "float32"), "FLT_MIN": Const(2.0**-126, "float32"),
    "FLT_EPSILON": Const(2.0**-23, "float32"), "DBL_MAX": Const(float.fromhex("0x1.fffffffffffffp1023"), "float64"),
    "DBL_MIN": Const(2.0**-1022, "float64"), "DBL_EPSILON": Const(2.0**-52, "float64"),
}  # fmt: skip


def cast(e: Expr, dtype: str) -> Expr:
    """Return the expression converted to the type, simplified."""
    return e if e.dtype == dtype else fold(Cast(dtype, e, span=e.span))


def is_constant(e: Expr, fixed: set[str]) -> bool:
    """Tell whether the expression has the same value everywhere.

    It contains only constants and scalars that never change.
    """
    return all(
        isinstance(n, Const | Binary | Unary | Select | Cast) or (isinstance(n, Var) and n.name in fixed)
        for n in walk(e)
    )


class Expressions:
    """Lowers expressions in one scope."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def value(self, e: c_ast.Expr) -> Expr:
        """Return the IR of ``e``. Raises UnsupportedError if it is not plain arithmetic."""
        match e:
            case c_ast.Number(text):
                return number(text, e.span, self.scope.options.float_literals)
            case c_ast.Name():
                return self.name(e)
            case c_ast.Index() | c_ast.Unary("*"):
                return self.load(e)
            case c_ast.Unary():
                return self.unary(e)
            case c_ast.Binary():
                return self.binary(e.op, self.value(e.lhs), self.value(e.rhs), e.span)
            case c_ast.Ternary():
                return self.ternary(e)
            case c_ast.Cast():
                return self.convert(e)
            case c_ast.Call():
                return self.invoke(e)
            case c_ast.Assignment():
                raise refuse("an assignment inside an expression", "it as a statement of its own", e.span)
            case c_ast.Comma():
                raise refuse("a comma expression", "its parts as statements", e.span)
            case c_ast.Field():
                raise refuse_field(e.span)
            case c_ast.Unsupported(what, instead):
                raise refuse(what, instead, e.span)
            case _:
                assert_never(e)

    # -- names and elements ---------------------------------------------------------------------

    def name(self, e: c_ast.Name) -> Expr:
        scope = self.scope
        if e.name in scope.bound:
            return scope.bound[e.name]
        if e.name in scope.scalars:
            return Var(e.name, scope.scalars[e.name], span=e.span)
        if e.name not in scope.arrays and (declared := scope.variable(e.name)) is not None:
            found = self.global_value(e, declared)
            if found is not None:
                return found
        if e.name in scope.arrays:
            storage = scope.arrays[e.name]
            raise refuse(f"the array {base(e.name)} without an index", f"{base(e.name)}{'[…]' * storage.rank}", e.span)
        if e.name in HEADER_CONSTANTS:
            return HEADER_CONSTANTS[e.name]
        raise scope.undeclared(e)

    def global_value(self, e: c_ast.Name, declared: c_ast.Declare) -> Expr | None:
        """Return a scalar at file scope: its value if it is const, or else a new parameter. Arrays enter the scope."""
        scope = self.scope
        dtype, extents = layout(declared.type, e.name, e.span, rows=True)
        if extents:
            self.borrow_array(declared, dtype, extents)
            return None
        if declared.const and declared.init is not None and not isinstance(declared.init, c_ast.InitializerList):
            return cast(Expressions(scope.inner(e.name)).value(declared.init), dtype)
        scope.globals_used.setdefault(e.name, Scalar(e.name, dtype, span=declared.span))
        scope.fixed.add(e.name)
        return Var(e.name, dtype, span=e.span)

    def borrow_array(self, declared: c_ast.Declare, dtype: str, extents: tuple[c_ast.Expr | None, ...]) -> None:
        """Add an array at file scope: a new parameter, or a local table if it is const and has its values."""
        scope = self.scope
        name = declared.name
        if declared.const and isinstance(declared.init, c_ast.InitializerList):
            own = name + TABLE
            scope.arrays[name] = Storage(own, dtype, len(extents))
            scope.tables[own] = replace(declared, name=own)
            return
        scope.arrays[name] = Storage(name, dtype, len(extents), rows=bool(pointer_dimensions(declared.type)))
        if name in scope.globals_used:
            return
        inner = Expressions(scope.inner(name))
        shape = tuple(None if x is None else inner.index(x) for x in extents)
        scope.globals_used[name] = Array(name, dtype, shape, span=declared.span)

    def storage(self, name: c_ast.Name) -> Storage | None:
        """Return the array of a name, after it has been added to the scope if it is at file scope."""
        scope = self.scope
        if name.name in scope.arrays or name.name in scope.bound or name.name in scope.scalars:
            return scope.arrays.get(name.name)
        declared = scope.variable(name.name)
        if declared is None:
            raise scope.undeclared(name)
        dtype, extents = layout(declared.type, name.name, name.span, rows=True)
        if extents:
            self.borrow_array(declared, dtype, extents)
        return scope.arrays.get(name.name)

    def access(self, e: c_ast.Expr) -> tuple[Storage, tuple[Expr, ...], Expr | None]:
        """Return the array of an lvalue, its indices, and the offset that pointer arithmetic adds to the next index."""
        match e:
            case c_ast.Name():
                storage = self.storage(e)
                if storage is None:
                    raise refuse(f"{base(e.name)}, a scalar, with an index", "an array parameter", e.span)
                return storage, (), None
            case c_ast.Index(inner, index):
                storage, indices, offset = self.access(inner)
                at = self.index(index)
                return storage, (*indices, at if offset is None else self.binary("+", offset, at, e.span)), None
            case c_ast.Unary("*", inner):
                storage, indices, offset = self.access(inner)
                if storage.starred and offset is None and not indices and storage.rank > 0:
                    return storage, indices, None
                return storage, (*indices, Const(0) if offset is None else offset), None
            case c_ast.Binary("+" | "-" as op, lhs, rhs):
                return self.moved(op, lhs, rhs, e.span)
            case c_ast.Unsupported(what, instead):
                raise refuse(what, instead, e.span)
            case c_ast.Field():
                raise refuse_field(e.span)
            case c_ast.Unary("&"):
                raise refuse("taking an address", "the array's name and its indices", e.span)
            case c_ast.Unary("++" | "--") | c_ast.Assignment():
                raise refuse("moving a pointer", "an index", e.span)
            case _:
                raise refuse("this pointer expression", "an array and its indices", e.span)

    def moved(self, op: str, lhs: c_ast.Expr, rhs: c_ast.Expr, span: Span) -> tuple[Storage, tuple[Expr, ...], Expr]:
        """Lower ``p + e``, ``e + p`` or ``p - e`` of a pointer ``p`` and an integer ``e``.

        Returns the array, the indices before the one that the offset changes, and the offset in elements.
        """
        if op == "+" and not self.is_pointer(lhs):
            lhs, rhs = rhs, lhs
        storage, indices, offset = self.access(lhs)
        step = self.index(rhs)
        if op == "-":
            # an unsigned number would wrap in its own type
            step = self.negated(convert_index(step, COUNTING) if step.dtype in ("uint32", "uint64") else step)
        return storage, indices, step if offset is None else self.binary("+", offset, step, span)

    def is_pointer(self, e: c_ast.Expr) -> bool:
        match e:
            case c_ast.Name():
                return self.storage(e) is not None
            case c_ast.Index(inner, _) | c_ast.Unary("*", inner):
                return self.is_pointer(inner)
            case c_ast.Binary("+" | "-", lhs, rhs):
                return self.is_pointer(lhs) or self.is_pointer(rhs)
            case _:
                return False

    def index(self, e: c_ast.Expr) -> Expr:
        index = self.value(e)
        if not is_integer(index.dtype):
            raise ParseError("an array index is not an integer", e.span)
        if index.dtype in ("uint32", "uint64") and any(self.counts(n) for n in walk(index)):
            if index.dtype == "uint64":
                return convert_index(index, COUNTING)
            if isinstance(index, Cast) and self.counts(index):
                return index.arg
        return cast(index, arithmetic_type(index.dtype, "int32"))

    def counts(self, e: Node) -> bool:
        """Tell whether the expression stands for a loop variable that is unsigned in C."""
        return isinstance(e, Cast) and e.arg in self.scope.counters

    def load(self, e: c_ast.Expr) -> Load:
        """Return the element that an lvalue denotes."""
        storage, indices, offset = self.access(e)
        if storage.starred and not indices and storage.rank == 1:
            indices = (Const(0),)
        if offset is not None or len(indices) != storage.rank:
            shown, want = base(storage.name), storage.rank
            if storage.rows and len(indices) < want:
                pointer = f"{shown}{'[…]' * len(indices)}, a pointer to a row of {shown},"
                raise refuse(f"{pointer} as a value or a target", "its elements", e.span)
            plural = "index" if want == 1 else "indices"
            raise ParseError(f"{shown} has {want} {plural}, not {len(indices)}", e.span)
        return Load(storage.name, indices, storage.dtype, span=e.span)

    # -- operators ------------------------------------------------------------------------------

    def unary(self, e: c_ast.Unary) -> Expr:
        if e.op in ("++", "--"):
            raise refuse(f"{e.op} inside an expression", "it as a statement of its own", e.span)
        if e.op == "&":
            raise refuse("taking an address", "the array's name and an index", e.span)
        arg = self.value(e.arg)
        match e.op:
            case "+":
                return cast(arg, arithmetic_type(arg.dtype, arg.dtype))
            case "-":
                return self.negated(cast(arg, arithmetic_type(arg.dtype, arg.dtype)))
            case "!":
                return Unary("!", arg, span=e.span)
            case _:
                arg = cast(arg, arithmetic_type(arg.dtype, arg.dtype))
                if not is_integer(arg.dtype):
                    raise ParseError(f"{e.op} needs an integer", e.span)
                return Unary("~", arg, span=e.span)

    def negated(self, arg: Expr) -> Expr:
        return fold(Unary("-", arg, span=arg.span))

    def binary(self, op: str, lhs: Expr, rhs: Expr, span: Span) -> Expr:
        """Return ``lhs op rhs`` in the type in which C computes it; raises ParseError if ``op`` needs integers."""
        if op in ("&&", "||"):
            return Binary(op, lhs, rhs, span=span)
        if op in ("<<", ">>", "%", "&", "|", "^") and not (is_integer(lhs.dtype) and is_integer(rhs.dtype)):
            raise ParseError(f"{op} needs integers", span)
        if op in ("<<", ">>"):
            own = arithmetic_type(lhs.dtype, lhs.dtype)
            return fold(Binary(op, cast(lhs, own), cast(rhs, arithmetic_type(rhs.dtype, rhs.dtype)), span=span))
        if {lhs.dtype, rhs.dtype} == SHORT_FLOATS:
            raise refuse(f"{op} of _Float16 and __bf16, which have no common type,", "a cast of one to float", span)
        dtype = arithmetic_type(lhs.dtype, rhs.dtype)
        return fold(Binary(op, cast(lhs, dtype), cast(rhs, dtype), span=span))

    def ternary(self, e: c_ast.Ternary) -> Expr:
        return self.select(self.value(e.cond), self.value(e.then), self.value(e.other), e.span)

    def select(self, cond: Expr, then: Expr, other: Expr, span: Span) -> Expr:
        """Return ``cond ? then : other``, or for integers the minimum or maximum that it computes."""
        dtype = arithmetic_type(then.dtype, other.dtype)
        then, other = cast(then, dtype), cast(other, dtype)
        match cond:
            case Const(known) if is_integer(cond.dtype):
                return then if known else other
            case Binary("<" | "<=" | ">" | ">=" as op, a, b) if is_integer(dtype) and a.dtype == dtype:
                if (a, b) == (then, other):
                    return fold(Binary("min" if op[0] == "<" else "max", a, b, span=span))
                if (b, a) == (then, other):
                    return fold(Binary("max" if op[0] == "<" else "min", a, b, span=span))
        return Select(cond, then, other, span=span)

    def convert(self, e: c_ast.Cast) -> Expr:
        match e.type:
            case c_ast.Basic(dtype) if dtype != "void":
                return cast(self.value(e.arg), dtype)
            case c_ast.TypeOf(of):
                return cast(self.value(e.arg), self.value(of).dtype)
            case c_ast.UnsupportedType("long double" as wide):
                raise refuse(wide, "double", e.span)
            case _:
                raise refuse("this cast", "a cast to a number type", e.span)

    # -- calls ----------------------------------------------------------------------------------

    def invoke(self, e: c_ast.Call) -> Expr:
        own = self.scope.function(e.name)
        if own is not None:
            return self.inline(own, e)
        return self.math(e)

    def count(self, e: c_ast.Call, want: int) -> None:
        if len(e.args) != want:
            raise ParseError(f"{e.name} takes {want} argument{'s' * (want > 1)}, not {len(e.args)}", e.span)

    def math(self, e: c_ast.Call) -> Expr:
        """Return the call of a function of math.h or stdlib.h, or of a built-in function of GNU C."""
        want = math_functions.argument_count(e.name)
        if want is None:
            raise undefined_function(e)
        self.count(e, want)
        constant = math_functions.constant(e.name)
        if constant is not None:
            return constant
        args = tuple(self.value(a) for a in e.args)
        if math_functions.is_type_generic(e.name):
            kinds = map(self.short_float, e.args)
            args = tuple(cast(v, kind) if kind else v for kind, v in zip(kinds, args, strict=True))
        return math_functions.made(e.name, args, self.scope.options.float_literals, e.span)

    def short_float(self, e: c_ast.Expr) -> str:
        """Return the float of 16 bits that C gives the expression as its type, though its value is a float, or ""."""
        match e:
            case c_ast.Number(text):
                return HALF if text[-3:].lower() == "f16" else ""
            case c_ast.Unary("-" | "+", arg):
                return self.short_float(arg)
            case c_ast.Binary("+" | "-" | "*" | "/", a, b) | c_ast.Ternary(_, a, b):
                kinds = [self.short_float(x) for x in (a, b)]
                fits = all(kind or is_integer(self.value(x).dtype) for kind, x in zip(kinds, (a, b), strict=True))
                return max(kinds) if fits else ""
            case _:
                dtype = self.value(e).dtype
                return dtype if dtype in SHORT_FLOATS else ""

    def inline(self, function: c_ast.Function, e: c_ast.Call) -> Expr:
        """Return the value of a call of a function that only declares variables, tests and returns."""
        if function.name in self.scope.inlining:
            raise refuse(f"{e.name}, which calls itself,", "a loop", e.span)
        self.count(e, len(function.params))
        match function.result:
            case c_ast.Basic(result) if result != "void":
                inner = Expressions(self.scope.inner(function.name))
            case c_ast.UnsupportedType("long double" as wide):
                raise refuse(wide, "double", function.span)
            case _:
                raise refuse(f"a call of {e.name}, which returns no number,", "its statements", e.span)
        for param, arg in zip(function.params, e.args, strict=True):
            self.bind(inner.scope, param, arg)
        body = resolve(function.body, {})
        value = inner.returned(body.items, singly_assigned(body), e)
        written = node_count(value, self.scope.sizes)
        if written > MOST_NODES:
            raise UnsupportedError(
                f"{e.name} is an expression of {written:,} operations when the functions it calls are inlined: "
                f"the limit is {MOST_NODES:,}", e.span,
            )  # fmt: skip
        return cast(value, result)

    def bind(self, scope: Scope, param: c_ast.Declare, arg: c_ast.Expr) -> None:
        dtype, extents = layout(param.type, param.name, param.span)
        if not extents:
            scope.bound[param.name] = cast(self.value(arg), dtype)
            return
        storage, indices, offset = self.access(arg)
        if indices or offset is not None or storage.rank != len(extents):
            raise refuse("a part of an array as an argument", "the array and the index", arg.span)
        scope.arrays[param.name] = storage

    def returned(self, items: Sequence[Any], once: frozenset[str], e: c_ast.Call) -> Expr:
        for k, item in enumerate(items):
            match item:
                case c_ast.Return(value) if value is not None:
                    return self.value(value)
                case c_ast.Declare(name, c_ast.Basic(dtype), init) if name in once and isinstance(init, c_ast.Expr):
                    self.scope.bound[name] = cast(self.value(init), dtype)
                case c_ast.If(cond, then, other):
                    yes = self.returned((*then.items, *items[k + 1 :]), once, e)
                    no = self.returned((*other.items, *items[k + 1 :]), once, e)
                    return self.select(self.value(cond), yes, no, e.span)
                case c_ast.Block(inner):
                    return self.returned((*inner, *items[k + 1 :]), once, e)
                case c_ast.PragmaItem():
                    continue
                case _:
                    break
        message = f"{e.name} cannot be inlined: write it as one return of an expression, or its statements here"
        raise UnsupportedError(message, e.span)


def undefined_function(call: c_ast.Call) -> UnsupportedError:
    """Return the error for a call of a function that no target can compute, as its definition is not there."""
    message = f"{call.name}, which is not defined in this program, cannot be called in a codelet"
    instead = "define it in this file or in a header of it, or leave the call out"
    return math_functions.refusal(call) or UnsupportedError(f"{message}: {instead}", call.span)


def node_count(e: Expr, known: dict[int, tuple[Expr, int]]) -> int:
    """Return the size of an expression when it is printed: a shared object counts each time it is used.

        g0(x) = x * x;  g1(x) = g0(g0(x));  ...      g30 would have a thousand million operations

    ``known`` stores counts by id, and keeps the expressions alive so that ids stay unique.
    """
    if id(e) not in known:
        known[id(e)] = (e, 1 + sum(node_count(part, known) for part in _parts(e)))
    return known[id(e)][1]


def _parts(e: Expr) -> tuple[Expr, ...]:
    match e:
        case Binary(_, lhs, rhs):
            return lhs, rhs
        case Unary(_, arg) | Cast(_, arg):
            return (arg,)
        case Select(cond, then, other):
            return cond, then, other
        case Call(_, args):
            return args
        case Load(_, index):
            return index
    return ()
