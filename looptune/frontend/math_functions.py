"""The functions of math.h that a codelet may call, and GNU's built-in functions: what each is in the loop IR.

    sqrt(x), sqrtf(x), __builtin_sqrt(x)     a Call, which every target computes
    isnan(x), fdim(x, y), lround(x)          an expression of others
    remquo(x, y, &q), j0(x), sqrtl(x)        refused, because it writes through a pointer or not all targets have it

``TABLE`` is what docs/c.md shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from looptune.core.errors import UnsupportedError
from looptune.frontend import gnu_syntax
from looptune.ir.c_printer import arithmetic_type
from looptune.ir.nodes import Binary, Call, Cast, Const, Expr, Select, Unary, promoted_type
from looptune.ir.simplify import fold, is_integer

if TYPE_CHECKING:
    from looptune.core.source import Span
    from looptune.frontend import c_ast

NATIVE: Mapping[str, int] = {
    **dict.fromkeys(
        ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "ceil", "cos", "cosh", "erf", "erfc", "exp",
         "exp10", "exp2", "expm1", "fabs", "floor", "lgamma", "log", "log10", "log1p", "log2", "logb", "rint", "round",
         "sin", "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc"), 1),
    **dict.fromkeys(("atan2", "copysign", "fmax", "fmin", "fmod", "hypot", "nextafter", "pow", "remainder"), 2),
    "fma": 3,
}  # fmt: skip
"""Functions of one type that every target has, with the number of their arguments."""
_LARGEST = {"float32": float.fromhex("0x1.fffffep127"), "float64": float.fromhex("0x1.fffffffffffffp1023")}
_SMALLEST = {"float16": 2.0**-14, "bfloat16": 2.0**-126, "float32": 2.0**-126, "float64": 2.0**-1022}
ABSOLUTE: Mapping[str, str] = {"abs": "int32", "labs": "int64", "llabs": "int64"}

Args = tuple[Expr, ...]


def _cast(e: Expr, dtype: str) -> Expr:
    return e if e.dtype == dtype else fold(Cast(dtype, e, span=e.span))


def _call(fn: str, *args: Expr) -> Expr:
    return Call(fn, args, args[0].dtype)


def _const(value: float, like: Expr) -> Expr:
    return Const(value, like.dtype)


def _whole(fn: str) -> Callable[[Args], Expr]:
    return lambda args: _cast(_call(fn, *args), "int64")


def _scaled(args: Args) -> Expr:
    """Return ``ldexp(x, n)``; an exponent of 64 bits is limited to those that make a difference."""
    x, n = args
    if n.dtype == "int64":
        n = Binary("max", Binary("min", n, Const(100_000, "int64")), Const(-100_000, "int64"))
    return Call("ldexp", (x, _cast(n, "int32")), x.dtype)


def _positive_difference(args: Args) -> Expr:
    x, y = args
    return Select(Binary("<=", x, y), _const(0.0, x), Binary("-", x, y))


def _is_nan(args: Args) -> Expr:
    return Binary("!=", args[0], args[0])


def _is_inf(args: Args) -> Expr:
    """Return 1 for an infinity; of the negative one the macro of math.h makes -1 with gcc."""
    (x,) = args
    most = _LARGEST[x.dtype]
    return Binary("-", Binary(">", x, _const(most, x)), Binary("<", x, _const(-most, x)))


def _is_normal(args: Args, dtype: str = "") -> Expr:
    """Return whether the argument is normal in the type ``dtype``, in its own if none is given."""
    size = _call("fabs", *args)
    least = _SMALLEST.get(dtype, _SMALLEST[size.dtype])
    return Binary("&&", Binary(">=", size, _const(least, size)), _is_finite(args))


def _is_finite(args: Args) -> Expr:
    size = _call("fabs", *args)
    return Binary("<=", size, _const(_LARGEST[size.dtype], size))


def _sign_bit(args: Args) -> Expr:
    return Binary("<", _call("copysign", _const(1.0, args[0]), args[0]), _const(0.0, args[0]))


def _less_or_greater(args: Args) -> Expr:
    return Binary("||", Binary("<", *args), Binary(">", *args))


def _unordered(args: Args) -> Expr:
    return Binary("||", _is_nan(args[:1]), _is_nan(args[1:]))


def _compared(op: str) -> Callable[[Args], Expr]:
    return lambda args: Binary(op, *args)


_MADE: Mapping[str, tuple[tuple[str, ...], Callable[[Args], Expr]]] = {
    "fdim": (("real", "real"), _positive_difference),
    "nearbyint": (("real",), lambda args: _call("rint", *args)),
    "lrint": (("real",), _whole("rint")), "llrint": (("real",), _whole("rint")),
    "lround": (("real",), _whole("round")), "llround": (("real",), _whole("round")),
    "ldexp": (("real", "int32"), _scaled), "scalbn": (("real", "int32"), _scaled),
    "scalbln": (("real", "int64"), _scaled),
    "ilogb": (("real",), lambda args: Call("ilogb", (_cast(args[0], "float64"),), "int32")),
}  # fmt: skip
"""Functions with a form for float, by the kinds of their arguments."""
_GENERIC: Mapping[str, tuple[int, Callable[[Args], Expr]]] = {
    "isnan": (1, _is_nan), "isinf": (1, _is_inf), "isfinite": (1, _is_finite), "isnormal": (1, _is_normal),
    "signbit": (1, _sign_bit), "isgreater": (2, _compared(">")), "isgreaterequal": (2, _compared(">=")),
    "isless": (2, _compared("<")), "islessequal": (2, _compared("<=")), "islessgreater": (2, _less_or_greater),
    "isunordered": (2, _unordered),
}  # fmt: skip
"""Macros of math.h that take float and double."""
_OF_BSD: Mapping[str, tuple[str, str]] = {
    "finite": ("isfinite", "float64"), "finitef": ("isfinite", "float32"),
    "isnanf": ("isnan", "float32"), "isinff": ("isinf", "float32"),
}  # fmt: skip
_CONSTANTS: Mapping[str, Const] = {
    "nan": Const(math.nan, "float64"), "nanf": Const(math.nan, "float32"),
    "__builtin_nan": Const(math.nan, "float64"), "__builtin_nanf": Const(math.nan, "float32"),
    "__builtin_huge_val": Const(math.inf, "float64"), "__builtin_huge_valf": Const(math.inf, "float32"),
    "__builtin_inf": Const(math.inf, "float64"), "__builtin_inff": Const(math.inf, "float32"),
}  # fmt: skip
_BITS: Mapping[str, str] = {"": "uint32", "l": "uint64", "ll": "uint64"}


def _ones(x: Expr) -> Expr:
    return Call("popcount", (_cast(x, "uint64"),), "int32")


def _lowest(x: Expr) -> Expr:
    """Return the number of zeros below the lowest bit that is set."""
    return _ones(Binary("-", Binary("&", x, fold(Unary("-", x))), Const(1, x.dtype)))


def _bits(name: str, x: Expr) -> Expr:
    match name:
        case "popcount":
            return _ones(x)
        case "clz":
            zeros = Call("clz", (_cast(x, "uint64"),), "int32")
            return zeros if x.dtype == "uint64" else Binary("-", zeros, Const(32))
        case "ctz":
            return _lowest(x)
        case "ffs":
            return Select(Binary("==", x, Const(0, x.dtype)), Const(0), Binary("+", _lowest(x), Const(1)))
        case _:
            return Binary("&", _ones(x), Const(1))


_OF_BITS = ("clz", "ctz", "ffs", "parity", "popcount")
REFUSED: Mapping[str, str] = {
    **dict.fromkeys(("j0", "j1", "jn", "y0", "y1", "yn"), "which not all targets compute,"),
    "remquo": "which writes through a pointer,",
    "nexttoward": "which takes a long double,", "fpclassify": "whose constants differ between C libraries,",
}  # fmt: skip
"""The rest of math.h, with the reason."""
TABLE: Mapping[str, tuple[str, ...]] = {
    "in double, and with `f` in float": tuple(sorted((*NATIVE, *_MADE))),
    "of float and double": tuple(_GENERIC),
    "of BSD and GNU C": (*_OF_BSD, "nan", "nanf"),
    "of `stdlib.h`": tuple(ABSOLUTE),
    "of GNU C, each with `l` and `ll` too": tuple(f"__builtin_{name}" for name in _OF_BITS),
}
"""What is accepted, by kind."""


def spelled_names() -> tuple[str, ...]:
    """Return the names with a form for float."""
    return tuple(sorted((*NATIVE, *_MADE)))


def plain_name(name: str) -> str:
    """Return the name without ``__builtin_`` where it is that of a function of math.h or stdlib.h."""
    short = name.removeprefix("__builtin_")
    return short if short != name and (_is_known(short) or short in ("nan", "nanf")) else name


def is_pure(name: str) -> bool:
    """Tell whether a call of this function computes a number from its arguments, and does nothing else."""
    short = plain_name(name)
    return _is_known(short) or short in _CONSTANTS or _of_bits(short) is not None


def _is_known(name: str) -> bool:
    every = (*NATIVE, *_MADE)
    return name in every or (name[-1:] == "f" and name[:-1] in every) or name in {*_GENERIC, *_OF_BSD, *ABSOLUTE}


def _of_bits(name: str) -> tuple[str, str] | None:
    for one in _OF_BITS:
        rest = name.removeprefix(f"__builtin_{one}")
        if rest != name and rest in _BITS:
            return one, _BITS[rest]
    return None


def is_type_generic(name: str) -> bool:
    """Tell whether the result depends on the type of the argument in C, and not on its value alone."""
    return plain_name(name) in _GENERIC


def argument_count(name: str) -> int | None:
    """Return how many arguments the function takes, or None for one that is not in the table."""
    short = plain_name(name)
    if short in _CONSTANTS:
        return 1 if short.startswith("nan") else 0
    if short in ABSOLUTE or short in _OF_BSD or _of_bits(short) is not None:
        return 1
    if short in _GENERIC:
        return _GENERIC[short][0]
    plain, _ = _form(short)
    return NATIVE[plain] if plain in NATIVE else len(_MADE[plain][0]) if plain in _MADE else None


def _form(name: str) -> tuple[str, str]:
    """Return the function of double, and the type of this form of it."""
    if name not in NATIVE and name not in _MADE and name[-1:] == "f":
        return name[:-1], "float32"
    return name, "float64"


def constant(name: str) -> Const | None:
    """Return the value of a call of a function that is a constant."""
    return _CONSTANTS.get(plain_name(name))


def made(name: str, args: Args, float_literals: bool, span: Span) -> Expr:
    """Return the call of a function of the table as an expression.

    ``float_literals``: constants without a suffix are float, so that an argument of float makes the float form.
    """
    short = plain_name(name)
    if short in ABSOLUTE:
        return Call("abs", (_cast(args[0], ABSOLUTE[short]),), ABSOLUTE[short], span=span)
    bits = _of_bits(short)
    if bits is not None:
        return _bits(bits[0], _cast(args[0], bits[1]))
    if short in _OF_BSD:
        generic, dtype = _OF_BSD[short]
        return _GENERIC[generic][1]((_cast(args[0], dtype),))
    if short in _GENERIC:
        dtype = promoted_type(args[0].dtype if len(args) == 1 else arithmetic_type(args[0].dtype, args[1].dtype))
        dtype = "float64" if is_integer(dtype) else dtype
        same = tuple(_cast(a, dtype) for a in args)
        found = _is_normal(same, args[0].dtype) if short == "isnormal" else _GENERIC[short][1](same)
        # of this built-in function gcc makes 1 for both infinities
        return Binary("!=", found, Const(0)) if name == "__builtin_isinf" else found
    fn, dtype = _form(short)
    if float_literals and any(a.dtype == "float32" for a in args):
        dtype = "float64" if any(a.dtype == "float64" for a in args) else "float32"
    if fn in NATIVE:
        return Call(fn, tuple(_cast(a, dtype) for a in args), dtype, span=span)
    kinds, make = _MADE[fn]
    return make(tuple(_cast(a, dtype if kind == "real" else kind) for a, kind in zip(args, kinds, strict=True)))


def refusal(call: c_ast.Call) -> UnsupportedError | None:
    """Return the error for a function of math.h that is not in the table and for GNU C's calls, None for any other."""
    if call.name in gnu_syntax.REFUSED:
        return UnsupportedError(gnu_syntax.REFUSED[call.name], call.span)
    name = call.name.removeprefix("__builtin_")
    wide = name[:-1]
    if name[-1:] == "l" and (wide in NATIVE or wide in _MADE or wide in REFUSED):
        message = f"{call.name}, which computes in long double, is not accepted in a codelet: write {wide} instead"
        return UnsupportedError(message, call.span)
    plain = wide if name[-1:] == "f" and wide in REFUSED else name
    if plain not in REFUSED:
        return None
    known = " ".join(spelled_names())
    message = f"{call.name}, {REFUSED[plain]} is not accepted in a codelet: of math.h there are {known}"
    return UnsupportedError(message, call.span)


def docs_table() -> str:
    """Return the table of docs/c.md."""
    rows = [f"| {kind} | {' '.join(f'`{name}`' for name in names)} |" for kind, names in TABLE.items()]
    return "\n".join(["| | functions |", "|---|---|", *rows])
