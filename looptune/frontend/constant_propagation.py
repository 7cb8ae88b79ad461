"""The values of a codelet's scalars in the program: those that its callers pass, followed through their variables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from looptune.core.errors import LooptuneError
from looptune.frontend import c_ast
from looptune.frontend.lower_expressions import Expressions
from looptune.frontend.name_resolution import assigned_names, resolve, singly_assigned
from looptune.frontend.symbol_table import Options, Scope
from looptune.ir.nodes import Binary, Cast, Const, Expr, Scalar, Unary
from looptune.ir.simplify import is_integer, wrap

_DEEPEST = 4
"""Callers of callers that are followed."""

Number = int | float


def parameter_values(
    file: c_ast.File, function: c_ast.Function, options: Options, given: Mapping[str, Number]
) -> dict[str, Number]:
    """Return the value of each scalar parameter for which every call passes the same constant.

    ``given`` values take precedence.
    """
    found = argument_values(file, function, options, dict(given))
    return {**found, **given}


def initial_values(file: c_ast.File, borrowed: Mapping[str, Scalar], options: Options) -> dict[str, Number]:
    """Return the initial values of scalars at file scope."""
    found: dict[str, Number] = {}
    scope = Scope(file, options)
    for name in borrowed:
        declared = scope.variable(name)
        if declared is not None and declared.init is not None and not isinstance(declared.init, c_ast.InitializerList):
            value = convert_constant(Expressions(Scope(file, options)), declared.type, declared.init)
            if value is not None:
                found[name] = value
    return found


def argument_values(
    file: c_ast.File, function: c_ast.Function, options: Options, given: Mapping[str, Number], depth: int = 0
) -> dict[str, Number]:
    """Return the value of each scalar parameter for which every call passes the same constant."""
    agreed: dict[str, Number | None] = {}
    for caller in file.functions:
        if caller.name == function.name or depth > _DEEPEST:
            continue
        body = resolve(caller.body, {})
        calls = [n for n in c_ast.walk(body) if isinstance(n, c_ast.Call) and n.name == function.name]
        if not calls:
            continue
        around = argument_values(file, caller, options, given, depth + 1)
        exprs = constant_variables(file, caller, body, options, {**around, **given})
        for call in calls:
            for param, arg in zip(function.params, call.args, strict=False):
                value = convert_constant(exprs, param.type, arg)
                same = param.name not in agreed or agreed[param.name] == value
                agreed[param.name] = value if same else None
    return {name: value for name, value in agreed.items() if value is not None}


def constant_variables(
    file: c_ast.File, caller: c_ast.Function, body: c_ast.Block, options: Options, values: Mapping[str, Number]
) -> Expressions:
    """Return the variables of the caller that have one constant value.

    Its parameters, those assigned once, and those that a function sets through a pointer.
    """
    scope = Scope(file, options)
    exprs = Expressions(scope)
    for param in caller.params:
        if param.name in values:
            scope.bound[param.name] = _const(values[param.name])
    once = singly_assigned(body)
    own = (n for n in c_ast.walk(body) if isinstance(n, c_ast.Declare))
    types = {d.name: d.type for d in (*file.globals, *caller.params, *own)}
    for node in c_ast.walk(body):
        match node:
            case c_ast.Declare(name, c_ast.Basic(dtype), init) if init is None or name in once:
                given = values.get(name.partition("#")[0])
                value = given if given is not None else None if init is None else value_of(exprs, init)
                if value is not None:
                    scope.bound[name] = _const(value, dtype)
            case c_ast.Assignment("", c_ast.Name(name), right) if name in once:
                value = convert_constant(exprs, types[name], right) if name in types else value_of(exprs, right)
                if value is not None:
                    scope.bound[name] = _const(value)
            case c_ast.Call(name, args):
                _filled_in(exprs, file, name, args)
    return exprs


def _filled_in(exprs: Expressions, file: c_ast.File, name: str, args: tuple[c_ast.Expr, ...]) -> None:
    """``init(n, &alpha)`` where ``init`` says ``*alpha = 1.5`` or ``*alpha = n``, and nothing else of it."""
    callee = exprs.scope.function(name)
    if callee is None:
        return
    inner = exprs.scope.inner(name)
    changed = assigned_names((callee.body,))
    for param, arg in zip(callee.params, args, strict=False):
        passed = convert_constant(exprs, param.type, arg) if param.name not in changed else None
        if passed is not None and isinstance(param.type, c_ast.Basic):
            inner.bound[param.name] = _const(passed, param.type.dtype)
    for param, arg in zip(callee.params, args, strict=False):
        match param.type, arg:
            case c_ast.Pointer(c_ast.Basic(dtype)), c_ast.Unary("&", c_ast.Name(target)):
                writes = [n for n in c_ast.walk(callee.body) if _is_write(n, param.name)]
                value = value_of(Expressions(inner), writes[0].value) if len(writes) == 1 else None
                if value is not None:
                    exprs.scope.bound[target] = _const(value, dtype)


def _is_write(node: Any, pointer: str) -> bool:
    match node:
        case c_ast.Assignment("", c_ast.Unary("*", c_ast.Name(name))):
            return name == pointer
        case _:
            return False


def _const(value: Number, dtype: str | None = None) -> Const:
    if dtype is None:
        dtype = "float64" if isinstance(value, float) else "int32" if -(2**31) <= value < 2**31 else "int64"
    return Const(wrap(int(value), dtype) if is_integer(dtype) else float(value), dtype)


def convert_constant(exprs: Expressions, kind: c_ast.Type, e: c_ast.Expr | c_ast.InitializerList) -> Number | None:
    """Return the constant converted to the type of the scalar, or None if it has no such value.

    Floats are not rounded.
    """
    if not isinstance(kind, c_ast.Basic) or isinstance(e, c_ast.InitializerList):
        return None
    return value_of(exprs, c_ast.Cast(kind, e, span=e.span) if is_integer(kind.dtype) else e)


def value_of(exprs: Expressions, e: c_ast.Expr | c_ast.InitializerList) -> Number | None:
    """Return the constant value of an expression, or None if it has none."""
    if isinstance(e, c_ast.InitializerList):
        return None
    try:
        return constant(exprs.value(e))
    except LooptuneError:
        # what a caller computes with is no part of the codelet: it may be any C
        return None


def constant(e: Expr) -> Number | None:
    """Return the value of a tree of constants.

    Floats round as double: the value is a size or a coefficient, not a result.
    """
    match e:
        case Const(value):
            return value
        case Cast(dtype, arg):
            inner = constant(arg)
            if inner is None or not math.isfinite(inner):
                return None
            if dtype == "bool":
                return int(inner != 0)
            return wrap(int(inner), dtype) if is_integer(dtype) else float(inner)
        case Unary("-", arg):
            inner = constant(arg)
            return None if inner is None else -inner
        case Binary("+" | "-" | "*" | "/" as op, lhs, rhs) if not is_integer(lhs.dtype):
            a, b = constant(lhs), constant(rhs)
            if a is None or b is None or (op == "/" and b == 0):
                return None
            return a + b if op == "+" else a - b if op == "-" else a * b if op == "*" else a / b
        case _:
            return None
