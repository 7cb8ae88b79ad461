"""The arithmetic of complex numbers on their parts, and the functions of ``complex.h``.

A value is a pair of real expressions. A part that is None is zero and takes no part in arithmetic: a real operand
multiplies both parts, and ``b * I`` has no real part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from looptune.core.errors import UnsupportedError
from looptune.core.source import Span
from looptune.frontend import c_ast

Part = c_ast.Expr | None


@dataclass(frozen=True, slots=True)
class Parts:
    """The real and the imaginary part of a value."""

    re: Part
    im: Part = None


Keep = Callable[[c_ast.Expr, str], c_ast.Expr]
"""Returns an expression that may be used several times; the string is the name of a variable that would hold it."""


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Operations on pairs at one place of the text; ``keep`` makes a value one that may be used several times.

    ``suffix`` is "f" where functions of float are called.
    """

    span: Span
    keep: Keep
    suffix: str = ""

    # -- real parts -----------------------------------------------------------------------------

    def number(self, text: str) -> c_ast.Expr:
        return c_ast.Number(text, span=self.span)

    def zero(self, e: Part) -> c_ast.Expr:
        return self.number("0.0f") if e is None else e

    def op(self, op: str, a: c_ast.Expr, b: c_ast.Expr) -> c_ast.Expr:
        return c_ast.Binary(op, a, b, span=self.span)

    def negated(self, a: Part) -> Part:
        match a:
            case None:
                return None
            case c_ast.Unary("-", inner):
                return inner
        return c_ast.Unary("-", a, span=self.span)

    def plus(self, a: Part, b: Part) -> Part:
        match b:
            case None:
                return a
            case c_ast.Unary("-", inner) if a is not None:
                return self.op("-", a, inner)
        return b if a is None else self.op("+", a, b)

    def minus(self, a: Part, b: Part) -> Part:
        return self.plus(a, self.negated(b))

    def times(self, a: Part, b: Part) -> Part:
        return None if a is None or b is None else self.op("*", a, b)

    def over(self, a: Part, b: c_ast.Expr) -> Part:
        return None if a is None else self.op("/", a, b)

    def call(self, name: str, *args: c_ast.Expr) -> c_ast.Expr:
        return c_ast.Call(name + self.suffix, args, span=self.span)

    def choice(self, cond: c_ast.Expr, a: c_ast.Expr, b: c_ast.Expr) -> c_ast.Expr:
        return c_ast.Ternary(cond, a, b, span=self.span)

    def in_scalars(self, z: Parts) -> Parts:
        re = None if z.re is None else self.keep(z.re, "re")
        return Parts(re, None if z.im is None else self.keep(z.im, "im"))

    # -- operators ------------------------------------------------------------------------------

    def sum(self, a: Parts, b: Parts) -> Parts:
        return Parts(self.plus(a.re, b.re), self.plus(a.im, b.im))

    def difference(self, a: Parts, b: Parts) -> Parts:
        return Parts(self.minus(a.re, b.re), self.minus(a.im, b.im))

    def opposite(self, a: Parts) -> Parts:
        return Parts(self.negated(a.re), self.negated(a.im))

    def product(self, a: Parts, b: Parts) -> Parts:
        """Return (a.re b.re - a.im b.im) + i (a.re b.im + a.im b.re)."""
        both = None not in (a.re, a.im), None not in (b.re, b.im)
        a, b = self.in_scalars(a) if both[1] else a, self.in_scalars(b) if both[0] else b
        re = self.minus(self.times(a.re, b.re), self.times(a.im, b.im))
        return Parts(re, self.plus(self.times(a.re, b.im), self.times(a.im, b.re)))

    def quotient(self, a: Parts, b: Parts) -> Parts:
        """Return a / b by the method of Smith (1962), which scales by the larger part of the divisor."""
        if b.im is None or b.re is None:
            by = self.zero(b.re if b.im is None else b.im)
            by = self.keep(by, "divisor") if None not in (a.re, a.im) else by
            re, im = self.over(a.re, by), self.over(a.im, by)
            return Parts(re, im) if b.im is None else Parts(im, self.negated(re))
        b, a = self.in_scalars(b), self.in_scalars(a)
        c, d = self.zero(b.re), self.zero(b.im)
        first = self.keep(self.op(">=", self.call("fabs", c), self.call("fabs", d)), "larger")
        ratio = self.keep(self.choice(first, self.op("/", d, c), self.op("/", c, d)), "ratio")
        scaled = self.choice(first, self.op("+", c, self.op("*", d, ratio)), self.op("+", self.op("*", c, ratio), d))
        divisor = self.keep(scaled, "divisor")

        def part(x: Part, y: Part) -> Part:
            one = self.plus(x, self.times(y, ratio))
            other = self.plus(self.times(x, ratio), y)
            if one is None or other is None:
                return None
            return self.op("/", self.choice(first, one, other), divisor)

        return Parts(part(a.re, a.im), part(a.im, self.negated(a.re)))

    def equal(self, a: Parts, b: Parts) -> c_ast.Expr:
        re = self.op("==", self.zero(a.re), self.zero(b.re))
        return re if a.im is b.im is None else self.op("&&", re, self.op("==", self.zero(a.im), self.zero(b.im)))

    def truth(self, a: Parts) -> c_ast.Expr:
        return c_ast.Unary("!", self.equal(a, Parts(None)), span=self.span)

    # -- functions ------------------------------------------------------------------------------

    def size(self, z: Parts) -> c_ast.Expr:
        if z.im is None or z.re is None:
            return self.call("fabs", self.zero(z.re if z.im is None else z.im))
        return self.call("hypot", z.re, z.im)

    def angle(self, z: Parts) -> c_ast.Expr:
        return self.call("atan2", self.zero(z.im), self.zero(z.re))

    def exponential(self, z: Parts) -> Parts:
        size = None if z.re is None else self.call("exp", z.re)
        if z.im is None:
            return Parts(size)
        im = self.keep(z.im, "im")
        turned = Parts(self.call("cos", im), self.call("sin", im))
        return turned if size is None else self.product(Parts(self.keep(size, "size")), turned)

    def logarithm(self, z: Parts) -> Parts:
        """Return log |z| + i arg z; near |z| = 1, log1p((m - 1)(m + 1) + k k) / 2 of the larger and smaller part."""
        z = self.in_scalars(Parts(self.zero(z.re), self.zero(z.im)))
        size = self.keep(self.size(z), "size")
        x, y = self.call("fabs", self.zero(z.re)), self.call("fabs", self.zero(z.im))
        most, least = self.keep(self.call("fmax", x, y), "most"), self.keep(self.call("fmin", x, y), "least")
        one, half, two = map(self.number, ("1.0f", "0.5f", "2.0f"))
        square = self.op(
            "+", self.op("*", self.op("-", most, one), self.op("+", most, one)), self.op("*", least, least)
        )
        near = self.op("&&", self.op(">", size, half), self.op("<", size, two))
        re = self.choice(near, self.op("*", half, self.call("log1p", square)), self.call("log", size))
        return Parts(re, self.angle(z))

    def root(self, z: Parts) -> Parts:
        """Return the square root in the right half plane."""
        z = self.in_scalars(Parts(self.zero(z.re), self.zero(z.im)))
        re, im = self.zero(z.re), self.zero(z.im)
        half, zero = self.number("0.5f"), self.number("0.0f")
        total = self.op("+", self.size(z), self.call("fabs", re))
        large = self.keep(self.call("sqrt", self.op("*", half, total)), "large")
        ratio = self.op("/", self.op("*", half, im), large)
        small = self.keep(self.choice(self.op("==", large, zero), im, ratio), "small")
        right = self.keep(self.op(">=", re, zero), "right")
        turned = self.call("copysign", large, im)
        return Parts(self.choice(right, large, self.call("fabs", small)), self.choice(right, small, turned))

    def power(self, a: Parts, b: Parts) -> Parts:
        """Return exp(b log a), and zero where a is zero."""
        a, zero = self.in_scalars(a), self.number("0.0f")
        nothing = self.keep(self.equal(a, Parts(None)), "nothing")
        z = self.exponential(self.product(b, self.logarithm(a)))
        return Parts(self.choice(nothing, zero, self.zero(z.re)), self.choice(nothing, zero, self.zero(z.im)))

    def sine(self, z: Parts) -> Parts:
        re, im = self.keep(self.zero(z.re), "re"), self.keep(self.zero(z.im), "im")
        return Parts(
            self.times(self.call("sin", re), self.call("cosh", im)),
            self.times(self.call("cos", re), self.call("sinh", im)),
        )

    def cosine(self, z: Parts) -> Parts:
        re, im = self.keep(self.zero(z.re), "re"), self.keep(self.zero(z.im), "im")
        product = self.times(self.call("sin", re), self.call("sinh", im))
        return Parts(self.times(self.call("cos", re), self.call("cosh", im)), self.negated(product))

    def hyperbolic_tangent(self, z: Parts) -> Parts:
        """Return t / q + i (sin y cos y / cosh x cosh x) / q with t = tanh x and q = cos y cos y + t t sin y sin y."""
        x, y = self.keep(self.zero(z.re), "re"), self.keep(self.zero(z.im), "im")
        t, c = self.keep(self.call("tanh", x), "t"), self.keep(self.call("cosh", x), "c")
        sin, cos = self.keep(self.call("sin", y), "s"), self.keep(self.call("cos", y), "k")
        ts = self.keep(self.op("*", t, sin), "ts")
        divisor = self.keep(self.op("+", self.op("*", cos, cos), self.op("*", ts, ts)), "divisor")
        im = self.op("/", self.op("/", self.op("*", sin, cos), c), c)
        return Parts(self.op("/", t, divisor), self.op("/", im, divisor))

    def times_i(self, z: Parts) -> Parts:
        """Return i z."""
        return Parts(self.negated(z.im), z.re)

    def divided_by_i(self, z: Parts) -> Parts:
        """Return -i z."""
        return Parts(z.im, self.negated(z.re))


_Of1 = Callable[[Arithmetic, Parts], Parts]
_RESULTS: Mapping[str, _Of1] = {
    "cexp": Arithmetic.exponential,
    "clog": Arithmetic.logarithm,
    "csqrt": Arithmetic.root,
    "csin": Arithmetic.sine,
    "ccos": Arithmetic.cosine,
    "csinh": lambda on, z: on.divided_by_i(on.sine(on.times_i(z))),
    "ccosh": lambda on, z: on.cosine(on.times_i(z)),
    "ctanh": Arithmetic.hyperbolic_tangent,
    "ctan": lambda on, z: on.divided_by_i(on.hyperbolic_tangent(on.times_i(z))),
    "conj": lambda on, z: Parts(z.re, on.negated(z.im)),
}
_REAL: Mapping[str, Callable[[Arithmetic, Parts], c_ast.Expr]] = {
    "creal": lambda on, z: on.zero(z.re),
    "cimag": lambda on, z: on.zero(z.im),
    "cabs": Arithmetic.size,
    "carg": Arithmetic.angle,
}
SUPPORTED = (*_RESULTS, *_REAL, "cpow", "CMPLX", "CMPLXF")
"""The functions of ``complex.h`` that have formulas here, each but the last two with a form for float too."""
_REFUSED = frozenset(f"ca{name}{h}" for name in ("sin", "cos", "tan") for h in ("", "h")) | {"cproj"}


def plain(name: str) -> tuple[str, str]:
    """Return a function of ``complex.h`` without the prefix and suffix of its name, and the suffix; "" for others.

    >>> plain("__builtin_cexpf"), plain("CMPLX"), plain("cosf")
    (('cexp', 'f'), ('CMPLX', ''), ('', ''))
    """
    short = name.removeprefix("__builtin_")
    if short in ("CMPLX", "CMPLXF", "complex"):
        return "CMPLX", "f" if short == "CMPLXF" else ""
    for suffix in ("", "f", "l"):
        stem = short.removesuffix(suffix)
        if stem + suffix == short and (stem in _RESULTS or stem in _REAL or stem == "cpow" or stem in _REFUSED):
            return stem, suffix
    return "", ""


def returns_complex(name: str) -> bool:
    """Tell whether it is a function of ``complex.h`` whose result is a complex number."""
    stem, _ = plain(name)
    return stem != "" and stem not in _REAL


def has_complex_form(name: str) -> bool:
    """Tell whether ``tgmath.h`` gives a function of real numbers a form for complex ones.

    >>> has_complex_form("expf"), has_complex_form("floor")
    (True, False)
    """
    return plain(f"c{name.removeprefix('__builtin_')}")[0] != "" or name in ("fabs", "fabsf")


def library_value(on: Arithmetic, e: c_ast.Call, args: tuple[Parts, ...]) -> Parts | c_ast.Expr:
    """Return what a function of ``complex.h`` returns: a pair, or a real expression.

    Raises UnsupportedError for functions of ``long double`` and those for which there is no formula here.
    """
    stem, suffix = plain(e.name)
    if suffix == "l" or stem in _REFUSED:
        raise UnsupportedError(f"{e.name} is not supported: write its formula", e.span)
    if len(args) != (2 if stem in ("CMPLX", "cpow") else 1):
        raise UnsupportedError(f"{e.name} does not take {len(args)} arguments", e.span)
    if stem == "CMPLX":
        return Parts(args[0].re, args[1].re)
    if stem == "cpow":
        return on.power(*args)
    return _REAL[stem](on, args[0]) if stem in _REAL else _RESULTS[stem](on, args[0])
