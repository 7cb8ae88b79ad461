"""Every operator of C on every pair of types, at the extremes of each: functions of many statements, and arrays.

    void add_int_float(int n, int a[n], float b[n], ..., long r[K][n], double s[L][n])
      r[0][i] = a[i] < b[i];  s[0][i] = a[i] + b[i];  ...

What C leaves undefined is not asked: divisors are not zero, nor -1 for the least value; shifts are in range; floats
fit the integers that they become. Signed overflow wraps here, as gcc has it with -fwrapv.
"""

from __future__ import annotations

import ctypes
import random
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from looptune.frontend import load
from looptune.ir import c_printer
from looptune.ir.c_printer import C_TYPES, arithmetic_type
from looptune.ir.nodes import Codelet
from looptune.ir.simplify import is_integer
from tests.helpers.cross_check import Arguments, called

TYPES = tuple(t for t in C_TYPES if t != "bfloat16")
"""Without that which older gcc have not, see ``test_bfloat_arrays``."""
INTEGERS = tuple(t for t in TYPES if is_integer(t))
_EXTREMES = (
    0, 1, -1, 2, 7, -13, 200, 2**31 - 1, 2**31, -(2**31), 2**32, 2**53 + 1, 2**60 + 2**36 + 1, 2**63, 2**63 + 2**39 + 1,
)  # fmt: skip
_FLOATS = (0.0, 1.0, -1.0, 0.5, -2.75, 1e10, 2.0**31, -(2.0**63), 3e38, 1e-45, np.nan, np.inf, -np.inf)

_OF_TYPE = {
    "float16": (2049.0, 65504.0, 6e-8, 0.1),
    "float32": (16777216.0,),
    "float64": (16777217.0, 1e300, 1 + 2**-11 + 2**-40),
}
"""Numbers at the limits of a type, and one that must not be rounded twice on its way to another."""


def values(dtype: str) -> list[int | float]:
    """The extremes of a type."""
    if dtype == "bool":
        return [0, 1]
    if not is_integer(dtype):
        return [*_FLOATS, *_OF_TYPE[dtype]]
    limits = np.iinfo(dtype)
    found = {*_EXTREMES, limits.min, limits.min + 1, limits.max, limits.max - 1}
    return sorted(v for v in found if limits.min <= v <= limits.max)


@dataclass
class Table:
    """A function, statement by statement, and what it is called with."""

    name: str
    given: dict[str, np.ndarray]
    whole: list[str] = field(default_factory=list)
    real: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)

    def add(self, text: str, dtype: str, before: str = "") -> None:
        """A result of a type; ``before``: statements that it needs."""
        out, kind = (self.whole, "r") if is_integer(dtype) else (self.real, "s")
        self.body.append(f"{before} {kind}[{len(out)}][i] = {text};".strip())
        out.append(f"{before} {text}".strip())

    @property
    def text(self) -> str:
        arrays = [f"{C_TYPES[str(a.dtype)]} {name}[n]" for name, a in self.given.items()]
        results = [f"long r[{max(1, len(self.whole))}][n]", f"double s[{max(1, len(self.real))}][n]"]
        body = "\n".join(f"    {{ {line} }}" for line in self.body)
        params = ", ".join(["int n", *arrays, *results])
        return f"void {self.name}({params})\n{{\n  for (int i = 0; i < n; i++) {{\n{body}\n  }}\n}}\n"

    @property
    def codelet(self) -> Codelet:
        return load(self.text).codelet

    def arguments(self, most: int | None = None) -> Arguments:
        """``most``: of so many places alone, spread over all."""
        size = len(next(iter(self.given.values())))
        chosen = np.unique(np.linspace(0, size - 1, min(size, most or size)).astype(int))
        n = len(chosen)
        r, s = np.zeros((max(1, len(self.whole)), n), np.int64), np.zeros((max(1, len(self.real)), n))
        return {"n": n, **{k: np.ascontiguousarray(a[chosen]) for k, a in self.given.items()}, "r": r, "s": s}

    def differences(self, want: dict[str, np.ndarray], got: dict[str, np.ndarray]) -> list[str]:
        """Which statements give something else, with an example."""
        found = []
        for name, texts in (("r", self.whole), ("s", self.real)):
            for k, text in enumerate(texts):
                w, g = want[name][k], got[name][k]
                off = np.argwhere((w != g) & ~((w != w) & (g != g)))
                if len(off):
                    at = int(off[0, 0])
                    where = ", ".join(f"{n} = {want[n][at]!r}" for n in self.given)
                    found.append(f"{self.name}: {text} where {where}: {g[at]!r}, gcc {w[at]!r}")
        return found


def _array(dtype: str, numbers: Sequence[int | float]) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.array(list(numbers), dtype)


def pair(a: str, b: str) -> Table:
    """Binary operators of two types, and compound assignments to the first."""
    both = [(x, y) for x in values(a) for y in values(b)]
    result, whole = arithmetic_type(a, b), is_integer(a) and is_integer(b)
    least = {"int32": -(2**31), "int64": -(2**63)}.get(result)
    divisors = [3 if (y == 0 and whole) or (y == -1 and x == least) else y for x, y in both]
    divisors = [1 if b == "bool" else d for d in divisors]
    given = {
        "a": _array(a, [x for x, _ in both]), "b": _array(b, [y for _, y in both]), "d": _array(b, divisors),
        "e": _array(a, [60 + k % 40 if a != "bool" else k % 2 for k in range(len(both))]),
        "g": _array(b, [(0.5, 1.25, 2, 3.75)[k % 4] if not is_integer(b) else 1 + k % 3 for k in range(len(both))]),
    }  # fmt: skip
    table = Table(f"pair_{a}_{b}", given)
    for op in "+-*":
        table.add(f"a[i] {op} b[i]", result)
    table.add("a[i] / d[i]", result)
    for op in ("<", "<=", ">", ">=", "==", "!=", "&&", "||"):
        table.add(f"a[i] {op} b[i]", "int32")
    for text in ("a[i] ? a[i] : b[i]", "a[i] < b[i] ? a[i] : b[i]", "a[i] > b[i] ? a[i] : b[i]"):
        table.add(text, result)
    table.add("!(a[i] <= b[i]) + (a[i] != b[i]) * 2", "int32")
    if whole:
        for op in "%&|^":
            table.add(f"a[i] {op} {'d' if op == '%' else 'b'}[i]", result)
        own = arithmetic_type(a, a)
        mask = (64 if own in ("int64", "uint64") else 32) - 1
        for op in ("<<", ">>"):
            table.add(f"a[i] {op} (b[i] & {mask})", own)
        wide = arithmetic_type(result, result)
        for text in ("(a[i] + b[i]) / 13", "(a[i] - b[i]) % 31", "-(a[i] * b[i])", "~(a[i] ^ b[i]) >> 3"):
            table.add(_small(text, result), wide)
        table.add(_small("(a[i] - b[i]) < (a[i] | b[i])", result, "int32", "int64"), "int32")
    for op in ("+", "-", "*", "/", *(("%", "&", "|", "^") if whole else ())):
        # A float that an integer is assigned has to fit it.
        x, y = ("a", "b") if whole or not is_integer(a) or a == "bool" else ("e", "g")
        y = "d" if op in "/%" and y == "b" else y
        if op == "*" and x == "e" and a in ("int8", "uint8"):
            continue  # no product of these fits
        table.add("t", a, f"{C_TYPES[a]} t = {x}[i]; t {op}= {y}[i];")
    return table


def _small(text: str, result: str, *overflow: str) -> str:
    """Of small numbers where a signed type may overflow, which LLVM takes to be impossible, as C does: 64 bits, and 32
    where they are compared, which is done before they wrap."""
    return text.replace("a[i]", "e[i]").replace("b[i]", "g[i]") if result in (overflow or ("int64",)) else text


def conversions(a: str) -> Table:
    """Casts and assignments to all types, and unary operators."""
    numbers = values(a)
    given = {"a": _array(a, numbers)}
    table = Table(f"from_{a}", given)
    for to in TYPES:
        name = "a"
        if not is_integer(a) and is_integer(to) and to != "bool":
            name, limits = f"to_{to}", np.iinfo(to)
            inside = [0.0, 1.0, 0.75, 99.5, 2.0**30, 2.0**31, 2.0**32, 2.0**62, 2.0**63, -0.5, -1.0, -127.9, -(2.0**63)]
            fits = [v for v in inside if limits.min <= int(v) <= limits.max and np.isfinite(_array(a, [v])[0])]
            given[name] = _array(a, [fits[k % len(fits)] for k in range(max(len(numbers), len(inside)))])
        table.add(f"({C_TYPES[to]}){name}[i]", to)
        table.add("t", to, f"{C_TYPES[to]} t = {name}[i];")
        table.add(f"({C_TYPES[to]}){name}[i] + 1", arithmetic_type(to, "int32"))
    longest = max(map(len, given.values()))
    for name, array in given.items():
        given[name] = np.resize(array, longest)
    own = arithmetic_type(a, a)
    table.add("-a[i]", own)
    table.add("+a[i]", own)
    table.add("!a[i]", "int32")
    table.add("a[i] ? 5 : 6", "int32")
    for step in ("t++;", "t--;", "t += 1; t *= 2;"):
        table.add("t", a, f"{C_TYPES[a]} t = a[i]; {step}")
    if is_integer(a):
        table.add("~a[i]", own)
        table.add("-a[i] / 7" if a != "int64" else "-(a[i] >> 1) / 7", own)
        table.add("~a[i] % 10", own)
        table.add("t", a, f"{C_TYPES[a]} t = a[i]; t <<= 3;")
        table.add("t", a, f"{C_TYPES[a]} t = a[i]; t >>= 2;")
        if a != "int64":  # where a product overflows, which nothing is promised of
            table.add("2u * a[i] == 0", "int32")
        table.add("(a[i] & 255) == 3 || 4 * (a[i] >> 2) == 8", "int32")
        table.add("a[i] + 2147483647 + 5u", arithmetic_type(a, "uint32"))
        table.add("a[i] - 3u + 1", arithmetic_type(a, "uint32"))
        table.add("(unsigned char)(a[i] * 3) + (signed char)(a[i] - 1)", "int32")
    return table


@cache
def tables() -> tuple[Table, ...]:
    """All of them."""
    return (*map(conversions, TYPES), *(pair(a, b) for a in TYPES for b in TYPES))


def sample(step: int) -> tuple[Table, ...]:
    """All conversions, and of the pairs one in so many."""
    return (*tables()[: len(TYPES)], *tables()[len(TYPES) :: step])


GCC = ("gcc", "-O1", "-fwrapv", "-ffp-contract=off", "-w", "-shared", "-fPIC")


def by_gcc(
    found: Sequence[Table], folder: Path, most: int | None = None, printed: bool = False
) -> dict[str, dict[str, np.ndarray]]:
    """What gcc makes of the functions, or of what is printed of their trees."""
    folder.mkdir(exist_ok=True)
    codelets = {t.name: t.codelet for t in found}
    texts = [c_printer.function(codelets[t.name]) if printed else t.text for t in found]
    (folder / "all.c").write_text("\n".join(["#include <math.h>", *texts]))
    subprocess.run([*GCC, str(folder / "all.c"), "-o", str(folder / "all.so")], check=True, timeout=300)
    library = ctypes.CDLL(str(folder / "all.so"))
    return {t.name: called(library, codelets[t.name], t.arguments(most)) for t in found}


_SOURCES = {"p": "bool", "q": "int8", "t": "uint8", "u": "int16", "v": "uint16", "w": "int32", "x": "uint32",
            "y": "int64", "z": "uint64", "h": "float16", "f": "float32", "g": "float64"}  # fmt: skip


def random_table(seed: int, count: int = 40) -> Table:
    """Random expressions over all types at once; floats are compared and chosen, and become bool, but no integer."""
    rng = random.Random(seed)
    size = 48
    given = {name: _array(t, [rng.choice(values(t)) for _ in range(size)]) for name, t in _SOURCES.items()}
    table = Table(f"random_{seed}", given)

    def leaf() -> str:
        name = rng.choice("pqtuvwxyz")
        return (
            f"{name}[i]" if rng.random() < 0.8 else rng.choice(["3", "-7", "0x80000000", "5ul", "'\\377'", "2l", "1u"])
        )

    def real() -> str:
        return rng.choice(
            [
                "f[i]",
                "g[i]",
                "0.1f",
                "-2.5",
                "w[i] * 0.5",
                "(float)y[i]",
                "(double)z[i]",
                "-f[i]",
                "h[i]",
                "h[i] * h[i]",
                "w[i] + h[i]",
                "(_Float16)f[i]",
                "(_Float16)g[i] - 1.1f16",
            ]
        )

    def whole(depth: int) -> str:
        if depth == 0:
            return leaf()
        one, two = whole(depth - 1), whole(rng.randrange(depth))
        match rng.randrange(14):
            case 0:
                return f"({one} {rng.choice('/%')} ({two} & 15 | 1))"
            case 1:
                return f"({one} {rng.choice(['<<', '>>'])} ({two} & 31))"
            case 2:
                return f"{rng.choice('-~!')}({one})"
            case 3:
                return f"({C_TYPES[rng.choice(INTEGERS)]})({one})"
            case 4:
                return f"({one} ? {two} : {leaf()})"
            case 5:
                return f"({real()} {rng.choice(['<', '<=', '==', '!='])} {real()} ? {one} : {two})"
            case 6:
                return f"({one} {rng.choice(['&&', '||'])} {rng.choice([two, real()])})"
            case 7 | 8:
                return f"({one} {rng.choice(['<', '<=', '>', '>=', '==', '!='])} {two})"
        lhs, rhs = rng.choice([(one, two), (two, one)])
        # Parentheses are left to precedence where C's is what it is.
        return rng.choice(["{0} {2} {1}", "({0} {2} {1})"]).format(lhs, rhs, rng.choice("+-*&|^"))

    for _ in range(count):
        table.add(f"(long)({whole(rng.randint(2, 4))})", "int64")
    return table
