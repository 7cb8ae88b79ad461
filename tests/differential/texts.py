"""Random C files that C defines, most of which looptune accepts: nests, conditions, sums, helpers, locals, globals."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from tests.differential import types
from tests.differential.expressions import Leaf, Value, cast, constant, full
from tests.differential.names import COUNTERS
from tests.differential.openings import ROOM, TAME, Around, Cell, Counter, Opening
from tests.differential.programs import Extent, Program, Variable
from tests.differential.tree import Tree, expression, statement
from tests.differential.types import DOUBLE, INT, LONG, UINT, ULONG, Type


class Maker(Opening):
    """Makes one program."""

    def program(self) -> Program:
        r = self.rng
        name = f"f{self.number}"
        self.names.taken |= {name, "MIN", "MAX", "main"}
        for usual in ("n", "m")[: r.choice((1, 2, 2))]:
            t = r.choice((INT, INT, INT, UINT, LONG, ULONG, types.SHORT, types.UCHAR, types.USHORT))
            fresh = self.names.new((usual,)) if r.random() < 0.3 else usual
            self.names.taken.add(fresh)
            self.sizes.append(Variable(fresh, t, f"{t.spelling} {fresh}"))
        self._top()
        for _ in range(r.randint(2, 4)):
            self.arrays.append(self._array())
        for _ in range(r.choice((0, 0, 1, 2))):
            t = r.choice((*self.widths, INT))
            fresh = self.names.new()
            self.scalars.append(Variable(fresh, t, f"{t.spelling} {fresh}"))
        body = self._body()
        listed = [*self.sizes, *self.scalars, *(a for a in self.arrays if not a.apart)]
        if r.random() < 0.2:
            moved = [v for v in listed if not any(e.size for e in v.extents)]
            r.shuffle(moved)
            listed = [*self.sizes, *(v for v in moved if v not in self.sizes), *(v for v in listed if v not in moved)]
        params = ", ".join(v.declared for v in listed)
        apart = [a for a in self.arrays if a.apart]
        written = [Tree((f"{a.declared};\n",)) for a in apart]
        whole = Tree(
            (*self.top, *written, *self._helpers(), f"void {name}({params})\n{{\n", *self.opening, body, "}\n")
        )
        jumps = self.rough
        return Program(name, whole, (*listed, *apart), self._calls(), r.randrange(2**31), jumps)

    # The function's body ---------------------------------------------------------------------------

    def _body(self) -> Tree:
        r = self.rng
        for _ in range(r.choice((0, 1, 1, 2))):
            t = r.choice((*self.widths, INT, DOUBLE))
            cell = Cell(self.names.new(), t)
            self.cells.append(cell)
            self.opening.append(Tree((f"  {t.spelling} {cell.name} = {r.choice(('0', '1', '2', '3'))};\n",)))
        for name in COUNTERS[: r.choice((0, 0, 2, 3))]:
            if name not in self.names.taken:
                t = r.choice((INT, INT, UINT, LONG, ULONG))
                self.names.taken.add(name)
                self.outer.append(Counter(name, t, 0, 0))
                self.opening.append(Tree((f"  {t.spelling} {name} = 0;\n",)))
        around = Around((), tuple(self.cells))
        made: list[Tree] = []
        for _ in range(r.choice((1, 1, 1, 2, 2, 3, 4))):
            made.append(self._nest(around))
            if r.random() < 0.25:
                made.append(self._assignment(around))
        made += [self._kept(c) for c in self.cells if r.random() < 0.85]
        made += [self._kept(Cell(c.name, c.type)) for c in self.outer if r.random() < 0.5]
        return Tree(tuple(made))

    def _kept(self, cell: Cell) -> Tree:
        """A scalar's last value, stored."""
        place, element, _ = self._place(Around(), write=True)
        return statement("  ", place, " = ", self._stored(full(expression(cell.name), cell.type), element).tree, ";\n")

    def _nest(self, around: Around) -> Tree:
        depth = self.rng.choice((1, 1, 2, 2, 2, 3, 3, 4))
        chance = self.rng.random()
        if chance < 0.2:
            return self._reduction(around)
        if chance < 0.27:
            return self._local_array(around)
        return self._loop(around, depth, parallel=self.rng.random() < 0.55)

    def _loop(self, around: Around, depth: int, *, parallel: bool, indent: str = "  ") -> Tree:
        head, counter = self._header(around)
        if counter is None:
            return self._statement(around, indent)
        inner = replace(
            around, counters=(*around.counters, counter),
            trips=around.trips * max(1, min(counter.hi - counter.lo + 1, self.most + 2)),
        )  # fmt: skip
        body = self._inside(inner, depth - 1, parallel, indent + "  ")
        if self.rng.random() < 0.3 and len(body) == 1:
            return Tree((f"{indent}{head}\n", Tree(tuple(body), "body")), "loop")
        return Tree((f"{indent}{head} {{\n", Tree(tuple(body), "body"), f"{indent}}}\n"), "loop")

    def _inside(self, around: Around, depth: int, parallel: bool, indent: str) -> list[Tree]:
        r = self.rng
        made: list[Tree] = []
        for _ in range(r.choice((1, 1, 1, 1, 2, 2, 3))):
            if depth > 0 and around.trips <= self.limit:
                made.append(self._loop(around, depth, parallel=parallel, indent=indent))
            if depth == 0 or r.random() < 0.35 or not made:
                made.append(self._own(around, indent) if parallel else self._statement(around, indent))
            if depth > 0:
                depth = r.choice((depth, 0))
        return made

    def _header(self, around: Around) -> tuple[str, Counter | None]:
        """``for (...)``: up or down, by 1 or more, of a counter of its own or of the function's."""
        r = self.rng
        t = r.choice((INT, INT, INT, INT, UINT, LONG, ULONG, types.SHORT, types.UCHAR, types.LLONG, types.USHORT))
        free = [c for c in self.outer if all(c.name != a.name for a in around.counters)]
        declared = True
        taken = {c.name for c in around.counters}
        if free and r.random() < 0.5:
            own = r.choice(free)
            name, t, declared = own.name, own.type, False
        else:
            pool = [c for c in COUNTERS if c not in taken and c not in self.names.taken]
            name = r.choice(pool) if pool and r.random() < 0.8 else self.names.new(COUNTERS)
            while name in taken:  # its first value would be made of itself
                name = self.names.new(COUNTERS)
        of = f"{t.spelling} {name}" if declared else name
        simple = r.random() < 0.5
        for _ in range(20):
            lo, hi = (constant(0), self._size()) if simple else (self._bound(around), self._bound(around))
            least = -8 if t.signed else 0
            if lo.lo < least or hi.lo < least or hi.hi > ROOM - 2 or lo.hi > ROOM - 2 or hi.hi <= lo.lo:
                continue
            below = str(hi.tree) if simple else ""
            step = 1 if simple and r.random() < 0.7 else r.choice((1, 1, 1, 2, 3))
            made = self._spelled(of, name, t, lo, hi, step)
            if made is not None:
                return made, Counter(name, t, lo.lo, max(hi.hi - 1, lo.lo), below)
        return "", None

    def _spelled(self, of: str, name: str, t: Type, lo: Value, hi: Value, step: int) -> str | None:
        """The loop's header for ``lo <= name < hi``."""
        r = self.rng
        by = r.choice((f"{name}++", f"++{name}", f"{name} += 1")) if step == 1 else f"{name} += {step}"
        down = r.choice((f"{name}--", f"--{name}")) if step == 1 else f"{name} -= {step}"
        chance = r.random()
        if chance < 0.65:
            return f"for ({of} = {lo}; {name} < {hi}; {by})"
        if chance < 0.75 and hi.lo >= 1:
            return f"for ({of} = {lo}; {name} <= {hi} - 1; {by})"
        if chance < 0.78 and step == 1 and lo.hi <= hi.lo:
            return f"for ({of} = {lo}; {name} != {hi}; {by})"
        if chance < 0.82:
            return f"for ({of} = {lo}; {hi} > {name}; {by})"
        if t.signed and hi.type.signed and lo.type.signed:
            return f"for ({of} = {hi} - 1; {name} >= {lo}; {down})"
        if hi.lo >= 1 and lo.lo >= 1 and step == 1:
            return f"for ({of} = {hi} - 1; {name} >= {lo}; {down})"
        return None

    def _size(self) -> Value:
        v = self.rng.choice(self.sizes)
        return Value(expression(v.name), v.type, 0, self.most)

    def _bound(self, around: Around) -> Value:
        """A bound of a loop: sizes, counters around it, quotients, remainders, shifts, masks, minima and maxima."""
        r, n = self.rng, self._size()
        c = r.choice(around.counters).value if around.counters else n
        chance = r.random()
        if chance < 0.25:
            return constant(r.choice((0, 0, 1, 2, 4, 6)))
        if chance < 0.4:
            return n
        if chance < 0.55:
            return self.make.arithmetic(r.choice("+-"), c, constant(r.choice((0, 1, 1, 2))))
        if chance < 0.62:
            return self.make.arithmetic("-", n, c)
        if chance < 0.70:
            part = self.make.arithmetic(r.choice("+-"), r.choice((n, c)), constant(r.randint(0, 7)))
            return self.make.divide("/", part, constant(r.choice((2, 3, 2, -2))))
        if chance < 0.75:
            return self.make.arithmetic("+", self.make.divide("%", r.choice((n, c)), constant(r.choice((2, 3, 4)))),
                                        constant(r.randint(0, 3)))  # fmt: skip
        if chance < 0.80:
            return Value(expression("(", n.tree, " >> 1)"), types.promoted(n.type), 0, n.hi // 2)
        if chance < 0.84:
            return Value(expression("(", n.tree, " & 6)"), types.promoted(n.type), 0, 6)
        if chance < 0.94:
            other = r.choice((self._size(), constant(r.randint(1, 6)), c))
            t = types.common(n.type, other.type)
            if not t.signed and other.lo < 0:
                return n
            least = r.random() < 0.6
            tree = expression("MIN(" if least else "MAX(", n.tree, ", ", other.tree, ")")
            return Value(tree, t, *((min(n.lo, other.lo), min(n.hi, other.hi)) if least
                                    else (max(n.lo, other.lo), max(n.hi, other.hi))))  # fmt: skip
        return self.make.arithmetic("+", self.make.divide("/", self.make.arithmetic("-", n, constant(7)), constant(2)),
                                    constant(r.randint(1, 4)))  # fmt: skip

    # Statements -----------------------------------------------------------------------------------

    def _own(self, around: Around, indent: str) -> Tree:
        """A store to the element that the counters name, so that iterations seldom meet."""
        r = self.rng
        fits = [a for a in self.arrays if len(a.extents) <= max(1, len(around.counters))]
        if not fits:
            return self._statement(around, indent)
        a = r.choice(fits)
        counters = list(around.counters)
        if r.random() < 0.2:
            r.shuffle(counters)
        chosen = counters[-len(a.extents) :] if r.random() < 0.3 else counters[: len(a.extents)]
        at = [self._exactly(c, e) for c, e in zip(chosen, a.extents, strict=False)]
        if len(at) < len(a.extents) or any(x is None for x in at):
            return self._statement(around, indent)
        place = expression(a.name, *(p for x in at if x is not None for p in ("[", x, "]")))
        value = self._value(around, a.type)
        op = " = " if r.random() < 0.5 or not self._may_accumulate(a, value) else r.choice((" += ", " -= ", " += "))
        made = statement(indent, place, op, self._kept_small(value, a, op).tree, ";\n")
        if r.random() < 0.15:
            return statement(f"{indent}if (", self.make.condition(self._leaves(around), 2), ")\n  ", made)
        return made

    def _statement(self, around: Around, indent: str) -> Tree:
        r = self.rng
        chance = r.random()
        if chance < 0.12:
            other = [Tree((f"{indent}else\n  ", self._assignment(around, indent)))] if r.random() < 0.4 else []
            cond = self.make.condition(self._leaves(around), 2)
            return statement(f"{indent}if (", cond, ")\n  ", self._block(around, indent), *other)
        if chance < 0.18:
            return self._while(around, indent)
        if chance < 0.28:
            return self._private(around, indent)
        return self._assignment(around, indent)

    def _block(self, around: Around, indent: str) -> Tree:
        inner = [self._assignment(around, indent + "  ") for _ in range(self.rng.choice((1, 1, 2)))]
        return Tree((f"{indent}{{\n", *inner, f"{indent}}}\n"))

    def _assignment(self, around: Around, indent: str = "  ") -> Tree:
        r = self.rng
        scalars = [c for c in around.cells if not c.extent]
        if scalars and r.random() < 0.25:
            return self._accumulated(r.choice(scalars), around, indent)
        place, a, _ = self._place(around, write=True)
        value = self._value(around, a.type)
        chance = r.random()
        if chance < 0.3 and self._may_accumulate(a, value):
            op = r.choice((" += ", " += ", " -= "))
            return statement(indent, place, op, self._kept_small(value, a, op).tree, ";\n")
        if chance < 0.4 and not a.type.is_float and not value.type.is_float:
            op = r.choice((" |= ", " &= ", " ^= "))
            return statement(indent, place, op, value.tree, ";\n")
        if chance < 0.45 and not a.type.is_float:
            return statement(indent, place, f" {r.choice(('/=', '%=', '>>='))} {r.choice(('2', '3', '1', '4'))};\n")
        if chance < 0.5 and a.tame:
            return statement(indent, place, r.choice(("++", "--")), ";\n")
        return statement(indent, place, " = ", self._kept_small(value, a, " = ").tree, ";\n")

    def _into_element(self, around: Around, indent: str) -> Tree:
        """A sum or bits in an element, or another assignment where the element's type has no room for a sum."""
        r = self.rng
        place, a, _ = self._place(around, write=True)
        value = self._value(around, a.type)
        if not a.type.is_float and not value.type.is_float and r.random() < 0.4:
            return statement(indent, place, r.choice((" |= ", " &= ", " ^= ")), value.tree, ";\n")
        if not self._may_accumulate(a, value):
            return self._assignment(around, indent)
        op = r.choice((" += ", " += ", " -= "))
        return statement(indent, place, op, self._kept_small(value, a, op).tree, ";\n")

    def _accumulated(self, cell: Cell, around: Around, indent: str) -> Tree:
        """A sum, a product, a minimum, a maximum, bits or a value in a scalar."""
        r = self.rng
        value = self._value(around, cell.type)
        name = expression(cell.name)
        chance = r.random()
        t = cell.type
        if chance < 0.35:
            if t.signed and not t.is_float:
                value = self._small(value, 255)
            return statement(indent, name, r.choice((" += ", " += ", " -= ")), self._fitting(value, t).tree, ";\n")
        if chance < 0.55:
            value = self._fitting(value, t)
            op = r.choice("<>")
            if r.random() < 0.5:
                return statement(f"{indent}if (", value.tree, f" {op} ", name, ") ", name, " = ", value.tree, ";\n")
            macro = r.choice(("MIN", "MAX"))
            return statement(indent, name, f" = {macro}(", name, ", ", value.tree, ");\n")
        if chance < 0.65 and not t.is_float:
            return statement(indent, name, r.choice((" ^= ", " |= ", " &= ")), self._integral(value).tree, ";\n")
        if chance < 0.7 and not t.signed:
            return (
                statement(indent, name, " *= ", self._integral(value).tree, ";\n")
                if t.rank >= INT.rank
                else Tree((";",))
            )
        return statement(indent, name, " = ", self._fitting(value, t).tree, ";\n")

    def _while(self, around: Around, indent: str) -> Tree:
        name, t = self.names.new(("w", "step", "count")), self.rng.choice((INT, UINT, LONG))
        inner = replace(around, counters=(*around.counters, Counter(name, t, 0, 5)))
        end = self.make.masked(self.make.value(self._leaves(around), 1, "integer"), 2)
        also = Tree((" && ", self.make.condition(self._leaves(inner), 1))) if self.rng.random() < 0.3 else Tree(())
        body = self._assignment(inner, indent + "    ")
        return statement(
            f"{indent}{{\n{indent}  {t.spelling} {name} = 0;\n{indent}  while ({name} < ", end.tree, also,
            ") {\n", body, f"{indent}    {name}{self.rng.choice(('++', ' += 1'))};\n{indent}  }}\n{indent}}}\n",
        )  # fmt: skip

    def _private(self, around: Around, indent: str) -> Tree:
        """A local of a block, set and used."""
        t = self.rng.choice((*self.widths, INT, DOUBLE))
        name = self.names.new()
        self.names.taken.discard(name)
        used = {c.name for c in (*around.counters, *around.cells)} | {
            v.name for v in (*self.arrays, *self.sizes, *self.scalars)
        }
        if name in used or any(name == f[0] for f in self.helpers):
            name = f"t{self.rng.randrange(100)}"
        cell = Cell(name, t)
        first = self._fitting(self._value(around, t), t)
        inner = replace(around, cells=(*around.cells, cell, cell))
        return statement(
            f"{indent}{{\n{indent}  {t.spelling} {name} = ", first.tree, ";\n", self._assignment(inner, indent + "  "),
            self._assignment(inner, indent + "  "), f"{indent}}}\n",
        )  # fmt: skip

    def _reduction(self, around: Around) -> Tree:
        """A loop, or a nest, into a scalar, or into elements that data may decide on."""
        if self.rng.random() < 0.3:
            head, counter = self._header(around)
            if counter is not None:
                inner = replace(around, counters=(*around.counters, counter), trips=around.trips * (self.most + 1))
                return Tree((f"  {head}\n", Tree((self._into_element(inner, "    "),), "body")), "loop")
        if not around.cells:
            return self._loop(around, 1, parallel=True)
        head, counter = self._header(around)
        if counter is None:
            return self._assignment(around)
        inner = replace(around, counters=(*around.counters, counter), trips=around.trips * (self.most + 1))
        cell = self.rng.choice(around.cells)
        body = self._accumulated(cell, inner, "    ")
        if self.rng.random() < 0.4:
            head2, other = self._header(inner)
            if other is not None:
                inner = replace(inner, counters=(*inner.counters, other))
                body = Tree((f"    {head2}\n  ", Tree((self._accumulated(cell, inner, "    "),), "body")), "loop")
        return Tree((f"  {head}\n", Tree((body,), "body")), "loop")

    def _local_array(self, around: Around) -> Tree:
        """A local array that is filled and used, within each iteration of a loop or before it."""
        r = self.rng
        t, name = r.choice((*self.widths, INT)), self.names.new(("h", "local", "part"))
        cell = Cell(name, t, r.choice((4, 8)))
        var = self.names.new(("p", "q"))
        head, counter = self._header(around)
        if counter is None:
            return self._assignment(around)
        inner = replace(around, counters=(*around.counters, counter))
        at = replace(inner, counters=(*inner.counters, Counter(var, INT, 0, cell.extent - 1)))
        filled = self._fitting(self._value(at, t), t)
        fill = Tree((f"    for (int {var} = 0; {var} < {cell.extent}; {var}++) {name}[{var}] = ", filled.tree, ";\n"))
        using = replace(inner, cells=(*inner.cells, cell, cell, cell))
        used = [self._own(using, "    "), self._assignment(using, "    ")]
        return Tree((f"  {head} {{\n    {t.spelling} {name}[{cell.extent}];\n", fill, *used, "  }\n"), "statement")

    # Places and values --------------------------------------------------------------------------------

    def _place(self, around: Around, *, write: bool) -> tuple[Tree, Variable, Value]:
        """An element of an array: its text, the array, and what is known of its value."""
        a = self.rng.choice([a for a in self.arrays if all(self._there(e, around) for e in a.extents)])
        at = [self._subscript(e, around) for e in a.extents]
        place = expression(a.name, *(p for x in at for p in ("[", x, "]")))
        known = Value(place, a.type, -TAME, TAME) if a.tame and a.type.signed else full(place, a.type)
        if a.tame and not a.type.signed:
            known = Value(place, a.type, 0, min(TAME, a.type.hi))
        if known.hi > a.type.hi and not a.type.is_float:
            known = full(place, a.type)
        return place, a, known

    def _exactly(self, c: Counter, e: Extent) -> Tree | None:
        """The counter as a subscript, moved so far that it is not negative."""
        if e.size and e.plus == 0:
            return expression(c.name) if c.below == e.size else None
        if c.lo < 0:
            return expression(f"{c.name} + {-c.lo}")
        if c.hi < ROOM - 3 and self.rng.random() < 0.25:
            return expression(f"{c.name} + {self.rng.randint(0, 2)}")
        return expression(c.name)

    def _there(self, e: Extent, around: Around) -> bool:
        """Whatever the sizes are there is an element: one of no elements is not looked at, which no sanitizer sees."""
        return not e.size or e.plus > 0 or any(c.below == e.size for c in around.counters)

    def _subscript(self, e: Extent, around: Around) -> Tree:
        r = self.rng
        fits = [c for c in around.counters if self._exactly(c, e) is not None]
        if fits and r.random() < 0.75:
            c = r.choice(fits)
            if e.plus and r.random() < 0.25:
                return self._affine(around) or self._exactly(c, e) or expression("0")
            return self._exactly(c, e) or expression("0")
        if e.size and e.plus == 0:  # as long as its loops: only what is less than the size itself
            return expression(r.choice([c for c in around.counters if c.below == e.size]).name)
        if r.random() < 0.4 or not around.counters:
            return expression(str(r.randint(0, 9)))
        v = self.make.value(self._leaves(around), 1, "integer")
        if r.random() < 0.3:
            v = cast(v, r.choice((UINT, types.UCHAR, ULONG)))
            if v.lo >= 0:
                return expression("(", v.tree, f" % {r.choice(('7', '11u', '20'))})")
        return self.make.masked(v, r.choice((3, 4))).tree

    def _affine(self, around: Around) -> Tree | None:
        """A sum or a difference of counters that stays inside."""
        r = self.rng
        a, b = r.choice(around.counters).value, r.choice((*(c.value for c in around.counters), self._size()))
        made = self.make.arithmetic(r.choice("+-"), a, b)
        if r.random() < 0.3:
            made = self.make.arithmetic("*", a, constant(2))
        if made.lo < -8 or made.hi - min(made.lo, 0) >= ROOM:
            return None
        if made.lo < 0:
            made = self.make.arithmetic("+", made, constant(-made.lo))
        return made.tree if made.lo >= 0 and made.hi < ROOM else None

    def _leaves(self, around: Around) -> Sequence[Leaf]:
        r = self.rng
        made: list[Leaf] = [lambda c=c: c.value for c in around.counters]
        made += [self._size, lambda: self._place(around, write=False)[2], lambda: self._place(around, write=False)[2]]
        made += [lambda c=c: self._cell(c, around) for c in around.cells]
        made += [lambda v=v: full(expression(v.name), v.type) for v in self.scalars]
        if self.helpers:
            made.append(lambda: self._called(r.choice(self.helpers), around))
        if any(f"K{self.number} " in str(t) for t in self.top):
            made.append(lambda: Value(expression(f"K{self.number}"), INT, 2, 7))
        return made

    def _cell(self, c: Cell, around: Around) -> Value:
        if not c.extent:
            return full(expression(c.name), c.type)
        fits = [a for a in around.counters if a.lo >= 0 and a.hi < c.extent]
        at = self.rng.choice(fits).name if fits and self.rng.random() < 0.5 else str(self.rng.randrange(c.extent))
        return full(expression(f"{c.name}[{at}]"), c.type)

    def _called(self, helper: tuple[str, Type, tuple[Type, ...]], around: Around) -> Value:
        name, t, given = helper
        simple = [lambda c=c: c.value for c in around.counters] + [self._size]
        args: list[str | Tree] = []
        for k, g in enumerate(given):
            args += [*([", "] if k else []), self._fitting(self.make.value(simple, 1, "integer"), g).tree]
        return full(expression(f"{name}(", *args, ")"), t)

    def _value(self, around: Around, t: Type) -> Value:
        depth = self.rng.choice((1, 1, 2, 2, 3))
        return self.make.value(
            self._leaves(around), depth, "float" if t.is_float else self.rng.choice(("integer", "integer", "any"))
        )

    def _integral(self, v: Value) -> Value:
        return cast(v, INT) if v.type.is_float else v

    def _small(self, v: Value, most: int) -> Value:
        v = self._integral(v)
        return v if -most <= v.lo and v.hi <= most else self.make.masked(v, most.bit_length())

    def _may_accumulate(self, a: Variable, v: Value) -> bool:
        return a.type.is_float or a.tame or not a.type.signed or a.type.rank < INT.rank

    def _kept_small(self, v: Value, a: Variable, op: str) -> Value:
        """What is stored in an array whose elements stay small, or what is added to them."""
        v = self._fitting(v, a.type)
        if a.type.is_float:
            return v
        if a.tame and a.type.rank >= INT.rank and a.type.signed:
            return self._small(v, 255 if op != " = " else TAME - 1)
        return v

    def _stored(self, v: Value, a: Variable) -> Value:
        return self._kept_small(v, a, " = ")


def program(seed: int, index: int) -> Program:
    """Program ``index`` of the run with this seed."""
    rng = random.Random(f"{seed}/{index}")
    return Maker(rng, index).program()
