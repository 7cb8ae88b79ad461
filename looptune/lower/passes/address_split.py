"""Split an address in global memory into a varying part, counters of loops in the thread, and a constant.

    A[i - 1][4 * k + j + 1]  ==>  uint32(m * i + j)  +  k * 4  -  m  +  1      the first in 32 bits, the others in 64

In 32 bits each sum could wrap, so that a compiler has to compute every address separately. In 64 it cannot, and the
added parts become a part of the load or store instruction, or of the next one's in an unrolled loop. The first sum is
not negative, and stays below 2^32 because no array has more than 2^31 elements, and the constant is not larger; where
an array has more, the first sum is in 64 bits too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from looptune.ir.intervals import affine_terms, may_wrap, never_negative
from looptune.ir.nodes import Binary, Const, Expr, Load, Node, Var
from looptune.ir.rewrite import rewrite
from looptune.ir.simplify import add, mul, sub
from looptune.lower.addresses import MOST_ELEMENTS, make_address
from looptune.lower.known_values import upper_bound
from looptune.lower.thread_code import ThreadWalk
from looptune.lower.tiles import Tile, TileCopy, copy_place

if TYPE_CHECKING:
    from looptune.lower.plan import Kernel, Plan


def split_addresses(kernel: Kernel, plan: Plan) -> Kernel:
    """Return the kernel with the subscripts of arrays taken apart where that saves additions."""
    return _Splitting(kernel, plan).run()


class _Splitting(ThreadWalk):
    def expression(self, e: Expr) -> Expr:
        made: Expr = rewrite(self._element, e)
        return made

    def _element(self, n: Node) -> Node | None:
        if not isinstance(n, Load):
            return None
        (place,) = n.index
        split = self._split(place)
        return None if split is place else replace(n, index=(split,))

    def _split(self, place: Expr) -> Expr:
        made = split_address(place, self.known.counted, self.known.nonnegative, self.known.most)
        return place if made is None or made.is_single else make_address(made.base, made.counted, made.constant)

    def filled(self, tile: Tile, buffers: tuple[Expr, ...]) -> Tile:
        places = [copy_place(d).name for d in range(len(tile.shape))]
        for name in places:
            self.known.bind(name, True)
        copies = tuple(tuple(map(self._copy, of_buffer)) for of_buffer in tile.copies)
        for name in places:
            self.known.unbind(name)
        return replace(tile, copies=copies)

    def _copy(self, copy: TileCopy) -> TileCopy:
        source = self.expression(copy.source)
        assert isinstance(source, Load), "an element stays one"
        return replace(copy, target=self._split(copy.target), source=source)


@dataclass(frozen=True, slots=True)
class Address:
    """The address ``base + sum of variable * factor over counted + constant``, in elements."""

    base: Expr
    counted: tuple[tuple[Var, int], ...]
    constant: int

    @property
    def is_single(self) -> bool:
        """Return whether the address is a single variable or the base, so that nothing is added."""
        factors = [1] * (self.base != Const(0)) + [factor for _, factor in self.counted]
        return not factors or (factors == [1] and self.constant == 0)


def split_address(
    e: Expr, counted: Collection[str], nonnegative: Collection[str], most: Mapping[str, int]
) -> Address | None:
    """Return ``e`` as an address, or None if its base may be negative or 2^32, or the sum may wrap by C's rules.

    ``counted``, ``nonnegative``: names of variables; ``most``: upper bounds of some of these.
    """
    if may_wrap(e, nonnegative):
        return None
    terms, constant = affine_terms(e)
    base: Expr = Const(0)
    found = []
    for term, factor in terms.items():
        if factor < 0:
            bound = upper_bound(term, nonnegative, most)
            if bound is None:
                return None
            # Not negative, with as much of the constant as that takes.
            base, constant = add(base, mul(Const(-factor), sub(Const(bound), term))), constant + factor * bound
        elif not never_negative(term, nonnegative):
            return None
        elif isinstance(term, Var) and term.name in counted:
            found.append((term, factor))
        else:
            base = add(base, mul(Const(factor), term))
    if (base == Const(0) and constant < 0) or abs(constant) > MOST_ELEMENTS:
        return None
    return Address(base, tuple(found), constant)


def lower_bound(e: Expr, nonnegative: Collection[str], least: Mapping[str, int]) -> int | None:
    """Return a lower bound of ``e`` that is visible from its form.

    ``least``: lower bounds of some variables; the others are not negative.

    >>> i, n = Var("i"), Var("n")
    >>> e = mul(sub(i, Const(1)), n)
    >>> lower_bound(e, {"i", "n"}, {"i": 1}), lower_bound(e, {"i", "n"}, {})
    (0, None)
    """
    match e:
        case Var(name) if name in least:
            return least[name]
        case Binary("-", lhs, Const(int(n))) if e.dtype in ("int32", "int64"):
            first = lower_bound(lhs, nonnegative, least)
            return None if first is None else first - n
        case Binary("+" | "*" as op, lhs, rhs) if e.dtype in ("int32", "int64"):
            a, b = lower_bound(lhs, nonnegative, least), lower_bound(rhs, nonnegative, least)
            if a is None or b is None or (op == "*" and (a < 0 or b < 0)):
                return None
            return a + b if op == "+" else a * b
        case Const(int(n)):
            return n
    return 0 if never_negative(e, nonnegative) else None
