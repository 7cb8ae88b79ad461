"""Print the IR as C that gcc compiles: the source-to-source compiler behind ``looptune transform``.

Casts that C inserts by itself are left out, ``x = x op e`` is printed ``x op= e``, and a local is declared in the
smallest block that owns it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from looptune.ir.def_use import continuing_condition, locals_declared_in, private_bytes
from looptune.ir.nodes import (
    NO_ANNOTATIONS,
    SHORT_FLOATS,
    Annotations,
    Array,
    Assign,
    Binary,
    Call,
    Cast,
    Codelet,
    Const,
    Expr,
    If,
    Load,
    Local,
    Loop,
    Scalar,
    Select,
    Stmt,
    Unary,
    Var,
    While,
    promoted_type,
)
from looptune.ir.rewrite import walk
from looptune.ir.simplify import is_integer

C_TYPES = {
    "float16": "_Float16", "bfloat16": "__bf16", "float32": "float", "float64": "double",
    "int8": "signed char", "int16": "short", "int32": "int", "int64": "long", "uint8": "unsigned char",
    "uint16": "unsigned short", "uint32": "unsigned int", "uint64": "unsigned long", "bool": "_Bool",
}  # fmt: skip

_RANK = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64")

_LEVEL = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, "<=": 7, ">": 7, ">=": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
_UNARY, _ATOM = 11, 12
_COMPARED = ("<", "<=", ">", ">=", "==", "!=")


def arithmetic_type(a: str, b: str) -> str:
    """Return the type C computes ``a op b`` in: the usual arithmetic conversions.

    ``_Float16`` and ``__bf16`` are computed in float and rounded where they are stored or converted, as C23 says for a
    ``FLT_EVAL_METHOD`` of 0, and as gcc does it on x86-64.

    >>> arithmetic_type("float32", "int32"), arithmetic_type("int8", "int8"), arithmetic_type("uint32", "int64")
    ('float32', 'int32', 'int64')
    >>> arithmetic_type("float16", "int64"), arithmetic_type("float16", "float64")
    ('float32', 'float64')
    """
    a, b = promoted_type(a), promoted_type(b)
    return _RANK[max(_RANK.index(a), _RANK.index(b), _RANK.index("int32"))]


def expression_text(e: Expr, level: int = 0) -> str:
    """Return ``e`` as C text, in parentheses if its operator binds less tightly than ``level``."""
    text, own = _expr(e)
    return f"({text})" if own < level else text


def _expr(e: Expr) -> tuple[str, int]:
    match e:
        case Const():
            return constant(e), (_UNARY if opens_with_minus(e) else _ATOM)
        case Var(name):
            return name, _ATOM
        case Load(array, index):
            return array + "".join(f"[{expression_text(i)}]" for i in index), _ATOM
        case Binary("min" | "max" as op, lhs, rhs):
            compare = f"{expression_text(lhs, 8)} {'<' if op == 'min' else '>'} {expression_text(rhs, 8)}"
            return f"({compare} ? {expression_text(lhs)} : {expression_text(rhs)})", _ATOM
        case Binary(op, lhs, rhs):
            a, b = (_promoted(lhs), _promoted(rhs)) if op in ("<<", ">>") else drop_implicit_casts(lhs, rhs)
            own = _LEVEL[op]
            # Where C's precedence is clear to a compiler and seldom to a reader.
            clear = _UNARY if op in ("<<", ">>", "&", "|", "^") else _LEVEL["<<"] if op in _COMPARED else 0
            return f"{expression_text(a, max(own, clear))} {op} {expression_text(b, max(own + 1, clear))}", own
        case Unary(op, arg):
            return f"{op}{expression_text(arg, _ATOM)}", _UNARY
        case Call(fn, args, dtype):
            return f"{_function(fn, dtype)}({', '.join(expression_text(a) for a in args)})", _ATOM
        case Select(cond, then, other):
            return f"({expression_text(cond, 1)} ? {expression_text(then, 1)} : {expression_text(other, 1)})", _ATOM
        case Cast(dtype, arg):
            return f"({C_TYPES[dtype]}){expression_text(arg, _UNARY)}", _UNARY


_OF_GNU = ("exp10", "popcount", "clz")
"""Functions that no header of the C standard declares."""


def _function(fn: str, dtype: str) -> str:
    if fn == "abs":
        return "labs" if dtype == "int64" else "abs"
    name = f"__builtin_{fn}" if fn in _OF_GNU else fn
    return name + ("l" if fn in ("popcount", "clz") else "f" if dtype == "float32" else "")


LEAST = (-(2**31), -(2**63))
"""C has no constants of these values: they are written as a difference, in parentheses."""


def opens_with_minus(c: Const) -> bool:
    """Tell whether the constant is written with a leading minus sign."""
    return math.copysign(1, c.value) < 0 and not (is_integer(c.dtype) and c.value in LEAST)


def constant(c: Const) -> str:
    """Return the constant as C text whose type is that of the constant."""
    if is_integer(c.dtype):
        if c.value in LEAST:
            return f"({int(c.value) + 1}{'L' if c.dtype == 'int64' else ''} - 1)"
        return f"{c.value}{ {'int64': 'L', 'uint32': 'u', 'uint64': 'ul'}.get(c.dtype, '') }"
    value = float(c.value)
    if math.isnan(value) or math.isinf(value):
        kind = "f" if c.dtype == "float32" else ""  # GCC's functions, for the macros stand in a header
        return f'__builtin_nan{kind}("")' if math.isnan(value) else f"{'-' * (value < 0)}__builtin_inf{kind}()"
    return decimal(c) + ("f" if c.dtype == "float32" else "")


def decimal(c: Const) -> str:
    """Return the shortest decimal that is read as the value of a float type, in one step or by way of a double.

    >>> decimal(Const(0.1, "float32")), decimal(Const(0.1, "float64"))
    ('0.1', '0.1')
    """
    value = np.dtype(c.dtype).type(c.value)
    text = str(value)
    return text if np.dtype(c.dtype).type(float(text)) == value else repr(float(value))


def drop_implicit_casts(lhs: Expr, rhs: Expr) -> tuple[Expr, Expr]:
    """Return the operands without the casts that C's usual arithmetic conversions would insert again."""
    a, b = _uncast(lhs), _uncast(rhs)
    for x, y in ((a, b), (a, rhs), (lhs, b)):
        if arithmetic_type(x.dtype, y.dtype) == lhs.dtype == rhs.dtype and not _is_half(x.dtype, y.dtype):
            return x, y
    return lhs, rhs


def _is_half(a: str, b: str) -> bool:
    """Tell whether C's type of ``a op b`` is a float of 16 bits, which some compilers do not compute in float."""
    return bool(SHORT_FLOATS & {a, b}) and all(d in SHORT_FLOATS or is_integer(d) for d in (a, b))


def _promoted(e: Expr) -> Expr:
    """Without the cast that an operand of a shift is given by C."""
    inner = _uncast(e)
    return inner if arithmetic_type(inner.dtype, inner.dtype) == e.dtype else e


def _uncast(e: Expr) -> Expr:
    return e.arg if isinstance(e, Cast) else e


def assignment(target: Var | Load, value: Expr) -> str:
    """Return the assignment as a C statement; compound operators are used where they compute the same."""
    plain = _uncast(value)
    match plain:
        case Binary("+" | "-" | "*" | "/" as op, lhs, rhs) if _uncast(lhs) == target:
            _, rest = drop_implicit_casts(lhs, rhs)
            if arithmetic_type(target.dtype, rest.dtype) == plain.dtype:
                return f"{expression_text(target)} {op}= {expression_text(rest)};"
    return f"{expression_text(target)} = {expression_text(plain)};"


Marks = Callable[[Loop, Mapping[str, Local]], str]
"""A line to stand before a loop, "" for none, given the locals that are declared inside it."""


def statements(
    block: tuple[Stmt, ...],
    locals_: dict[str, Local],
    indent: str = "  ",
    pragmas: bool = False,
    around: Annotations = NO_ANNOTATIONS,
    marks: Marks | None = None,
) -> str:
    """Return the statements of a block, one per line; each of the block's own ``locals_`` is declared where it belongs.

    ``pragmas``: loops say how they run, and their annotations but for those that they inherit from ``around``;
    ``marks``: what else stands before a loop.
    """
    here = locals_declared_in(block, set(locals_))
    own = [v for n, v in locals_.items() if n in here]
    lines = [f"{indent}{declaration(v)};" for v in own if not _is_allocated(v)]
    lines += [f"{indent}{line}" for v in own if _is_allocated(v) for line in _allocation(v)]
    inner = {n: v for n, v in locals_.items() if n not in here}
    for stmt in block:
        mine = {n: v for n, v in inner.items() if any(_names(x) == n for x in walk(stmt))}
        lines.append(_statement(stmt, mine, indent, pragmas, around, marks))
    lines += [f"{indent}__builtin_free({v.name});" for v in reversed(own) if _is_allocated(v)]
    return "\n".join(lines)


_MOST_STACK_BYTES = 1 << 16
"""Of a local that ``on_heap`` allows on the heap; a larger one is there."""


def _is_allocated(local: Local) -> bool:
    size = private_bytes(local) if local.on_heap else 0
    return size is None or size > _MOST_STACK_BYTES


def _allocation(local: Local) -> tuple[str, str]:
    """Return the lines that allocate an array.

    The names of functions are those that need no header and no variable of the text can hide.
    """
    first, *rest = (f"[{expression_text(n)}]" for n in local.shape)
    ctype, pointer = C_TYPES[local.dtype], f"(*{local.name}){''.join(rest)}" if rest else f"*{local.name}"
    size = f"sizeof({ctype}{first}{''.join(rest)})"
    return (f"{ctype} {pointer} = __builtin_malloc({size});", f"if (!{local.name}) __builtin_abort();")


def _names(node: object) -> str:
    match node:
        case Var(name) | Load(name):
            return name
    return ""


def _statement(
    stmt: Stmt, mine: dict[str, Local], indent: str, pragmas: bool, around: Annotations, marks: Marks | None
) -> str:
    said = stmt.annotations if isinstance(stmt, Loop) else NO_ANNOTATIONS
    inside = Annotations((*around, *(a for a in said if a.inherited))) if said else around

    def block(body: tuple[Stmt, ...]) -> str:
        held = {n: v for n, v in mine.items() if any(_names(x) == n for x in walk(body))}
        return statements(body, held, indent + "  ", pragmas, inside, marks)

    match stmt:
        case Assign(target, value):
            return indent + assignment(target, value)
        case Loop(var, lo, hi, body, step, mode):
            by = f"{var}++" if step == 1 else f"{var} += {step}"
            word = {"parallel": "parallel", "sequential": "noParallel", "thread": "noParallel"}.get(mode, "")
            inner = [f for f in walk(body) if isinstance(f, Loop)] if stmt.thread_axis else []
            other = next((f.var for f in inner if f.thread_axis in ("x", "y")), "")
            if mode in ("parallel", "sequential") and stmt.thread_axis == "team":
                word += ", team"
            if stmt.thread_axis == "z":
                word = f"gridify({', '.join([var, *[f.var for f in inner if f.mode == 'parallel'][:2]])})"
            elif other:
                word = f"gridify({f'{var}, {other}' if stmt.thread_axis == 'y' else f'{other}, {var}'})"
            elif stmt.reductions and mode == "parallel":
                sums = dict.fromkeys(f"{r.op}:{_names(r.target)}" for r in stmt.reductions)
                word += f", reduce({', '.join(sums)})"
            pragma = f"{indent}#pragma hmppcg {word}\n" if pragmas and word else ""
            lines = [a.pragma() for a in said if pragmas and a not in around]
            pragma += "".join(f"{indent}{line}\n" for line in lines if line)
            mark = marks(stmt, mine) if marks is not None else ""
            pragma += f"{indent}{mark}\n" if mark else ""
            start = f"{C_TYPES[stmt.dtype]} {var} = {expression_text(lo)}"
            head = f"{indent}for ({start}; {var} < {expression_text(hi, 8)}; {by}) {{"
            return f"{pragma}{head}\n{_exit(stmt, indent)}{block(body)}\n{indent}}}"
        case While(cond, body):
            return f"{indent}while ({expression_text(cond)}) {{\n{block(body)}\n{indent}}}"
        case If(cond, then, other):
            text = f"{indent}if ({expression_text(cond)}) {{\n{block(then)}\n{indent}}}"
            return text + (f" else {{\n{block(other)}\n{indent}}}" if other else "")


def _exit(loop: Loop, indent: str) -> str:
    """Return the line that ends a loop whose further iterations do nothing, or "" for any other loop."""
    on = continuing_condition(loop)
    return "" if on is None else f"{indent}  if (!{expression_text(on, _ATOM)}) break;\n"


def declaration(variable: Array | Scalar | Local) -> str:
    """Return the C declaration of a parameter or local, such as ``float A[n][m]``."""
    ctype = C_TYPES[variable.dtype]
    match variable:
        case Scalar(name):
            return f"{ctype} {name}"
        case Array(name, _, shape) | Local(name, _, shape):
            return f"{ctype} {name}" + "".join("[]" if n is None else f"[{expression_text(n)}]" for n in shape)


def body(codelet: Codelet, indent: str = "  ", pragmas: bool = False, marks: Marks | None = None) -> str:
    """Return the codelet's statements with its locals declared, without the braces around them."""
    return statements(codelet.body, {v.name: v for v in codelet.locals}, indent, pragmas, marks=marks)


def function(codelet: Codelet, pragmas: bool = False, marks: Marks | None = None) -> str:
    """Return the codelet as one C function."""
    params = ", ".join(declaration(p) for p in codelet.params)
    return f"void {codelet.name}({params})\n{{\n{body(codelet, pragmas=pragmas, marks=marks)}\n}}\n"
