"""What stands before a random function's body: macros, typedefs, helpers, globals, parameters, and its calls."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tests.differential import types
from tests.differential.expressions import Expressions, Value, cast, full
from tests.differential.names import Names
from tests.differential.programs import Extent, Sizes, Variable
from tests.differential.tree import Tree, expression
from tests.differential.types import DOUBLE, FLOAT, HALF, INT, LONG, UINT, Type

TAME = 2**12
ROOM = 24
"""Every extent is at least so large, and every subscript less."""


@dataclass(frozen=True, slots=True)
class Counter:
    """A loop's variable between two bounds; ``below``: less than this size parameter, and not negative."""

    name: str
    type: Type
    lo: int
    hi: int
    below: str = ""

    @property
    def value(self) -> Value:
        return Value(expression(self.name), self.type, self.lo, self.hi)


@dataclass(frozen=True, slots=True)
class Cell:
    """A local scalar of the function, or a local array of so many elements."""

    name: str
    type: Type
    extent: int = 0


@dataclass(frozen=True, slots=True)
class Around:
    """What can be named at a place: the counters of the loops around it, and locals."""

    counters: tuple[Counter, ...] = ()
    cells: tuple[Cell, ...] = ()
    trips: int = 1


class Opening:
    """What a program is made with."""

    def __init__(self, rng: random.Random, number: int) -> None:
        self.rng = rng
        self.number = number
        self.names = Names(rng, rng.choice((0.0, 0.15, 0.5)))
        self.rough = rng.random() < 0.2
        self.make = Expressions(rng, rough=self.rough)
        self.most = rng.choice((5, 7, 9))
        self.limit = rng.choice((200, 1500))
        self.helpers: list[tuple[str, Type, tuple[Type, ...]]] = []
        self.sizes: list[Variable] = []
        self.arrays: list[Variable] = []
        self.scalars: list[Variable] = []
        self.cells: list[Cell] = []
        self.outer: list[Counter] = []
        self.top: list[Tree] = []
        self.opening: list[Tree] = []
        self.widths = self._widths()

    def _widths(self) -> tuple[Type, ...]:
        """The types of elements; a program has a few."""
        r = self.rng
        return (*r.sample(types.INTEGERS, 2), r.choice((INT, INT, UINT, LONG)), r.choice((HALF, FLOAT, DOUBLE)), DOUBLE)

    def _calls(self) -> tuple[Sizes, ...]:
        """Sizes: none, one, odd ones, the largest."""
        r, most = self.rng, self.most
        picks = [most, r.randint(2, most), r.choice((0, 1))]
        made: list[Sizes] = []
        for k in range(3):
            sizes = {v.name: picks[k] if number == 0 or r.random() < 0.4 else r.randint(0, most)
                     for number, v in enumerate(self.sizes)}  # fmt: skip
            made.append({**sizes, **{v.name: self._argument(v) for v in self.scalars}})
        return tuple(made)

    def _argument(self, v: Variable) -> int | float:
        r = self.rng
        if v.type.is_float:
            return r.choice((1.5, 2.0, -1.0, 0.5, 3.0))
        return (
            r.choice((0, 1))
            if v.type is types.BOOL
            else r.choice((0, 1, 2, 5, 9) if not v.type.signed else (-3, 0, 2, 7))
        )

    # What stands before the function ------------------------------------------------------------------

    def _top(self) -> None:
        r = self.rng
        if r.random() < 0.25:
            self.top.append(Tree(("#include <stdint.h>\n",)))
        self.top.append(Tree(("#include <math.h>\n",)))
        self.top.append(
            Tree(("#define MIN(a, b) ((a) < (b) ? (a) : (b))\n#define MAX(a, b) ((a) > (b) ? (a) : (b))\n",))
        )
        if r.random() < 0.4:
            self.top.append(Tree((f"#define K{self.number} {r.choice(('3', '(2 + 1)', '0x5', '7u', '2l'))}\n",)))
        if r.random() < 0.3:
            t = r.choice((HALF, FLOAT, DOUBLE, INT, UINT, types.UCHAR))
            alias = f"{self.names.new(('real', 'word', 'elem'))}_{self.number}"
            self.top.append(Tree((f"typedef {t.spelling} {alias};\n",)))
            self.widths = (*self.widths, replace(t, spelling=alias), replace(t, spelling=alias))
        for _ in range(r.choice((0, 0, 1, 2))):
            t = r.choice((INT, INT, LONG, UINT, DOUBLE, types.UCHAR))
            given = tuple(r.choice((INT, t, t)) for _ in range(r.randint(1, 2)))
            self.helpers.append((f"h{self.number}_{len(self.helpers)}", t, given))

    def _helpers(self) -> Iterator[Tree]:
        for name, t, given in self.helpers:
            params = [Cell(f"{'abxy'[k]}", g) for k, g in enumerate(given)]
            leaves = [lambda p=p: full(expression(p.name), p.type) for p in params]
            value = self._fitting(self.make.value(leaves, 2, "float" if t.is_float else "integer"), t)
            listed = ", ".join(f"{p.type.spelling} {p.name}" for p in params)
            local = self.rng.random() < 0.3
            first = (
                Tree((f"const {t.spelling} r = ", value.tree, "; return r; "))
                if local
                else Tree(("return ", value.tree, "; "))
            )
            yield Tree((f"static {self.rng.choice(('', 'inline '))}{t.spelling} {name}({listed}) {{ ", first, "}\n"))

    def _array(self) -> Variable:
        r = self.rng
        t = r.choice(self.widths)
        name = self.names.new()
        rank = r.choice((1, 1, 2, 2, 3))
        sizes = [v.name for v in self.sizes]
        plus = r.choice((ROOM, ROOM + 1, ROOM + 8))
        extents = tuple(
            Extent(r.choice(sizes), plus) if r.random() < 0.5 else Extent("", r.choice((ROOM, ROOM + 3, 32)))
            for _ in range(rank)
        )
        tame = t.is_float or r.random() < 0.7
        if r.random() < 0.12:
            extents = tuple(Extent("", r.choice((ROOM, 32))) for _ in range(rank))
            name = f"{name}_{self.number}"
            declared = f"{t.spelling} {name}{''.join(f'[{e}]' for e in extents)}"
            return Variable(name, t, declared, extents, tame, apart=True)
        if rank == 1 and r.random() < 0.3:
            extents = (Extent(sizes[0], 0),) if r.random() < 0.6 and self.arrays else extents  # as long as its loops
        inner = "".join(f"[{e}]" for e in extents[1:])
        chance = r.random()
        if chance < 0.15:
            declared = (
                f"{t.spelling} {r.choice(('', 'restrict '))}*{name}" if rank == 1 else f"{t.spelling} (*{name}){inner}"
            )
            declared = declared.replace("restrict *", "*restrict ")
        else:
            declared = f"{t.spelling} {name}[{extents[0]}]{inner}"
        return Variable(name, t, declared, extents, tame)

    def _fitting(self, v: Value, t: Type) -> Value:
        """``v`` as C may assign it to a ``t``: what is a float is converted where that is defined."""
        return cast(v, t) if v.type.is_float and not t.is_float else v
