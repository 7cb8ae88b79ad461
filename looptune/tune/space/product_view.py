"""The view of a space too large to list: every move is arithmetic on digits, and sections are parts.

A section is the product of its lines, so its axes are those of its templates, one after the other. A move between
sections preserves the values of axes that have the same name in both.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from looptune.tune.space.axes import Axis, Digits, Scalar, axes_of, consistent_digits, pack, unpack
from looptune.tune.space.space import Configuration, Line, Section, Space, slot
from looptune.tune.space.table_view import Table
from looptune.tune.space.view import SpaceView

LISTED = 20_000
"""A space of up to so many numbers is listed: half a second, and 20 MB."""
NEAR = 200
"""Points two moves away that are offered as near."""


def view_of(space: Space | SpaceView) -> SpaceView:
    """Return the space as a table if it is small, or else as a product."""
    match space:
        case SpaceView():
            return space
        case Space(size=size) if size <= LISTED:
            return Table({configuration.text: configuration for configuration in space}.values())
        case _:
            return Product(space)


@dataclass(frozen=True, slots=True)
class _Part:
    """A section and its first index."""

    section: Section
    first: int
    axes: tuple[Axis, ...]

    def digits(self, index: int) -> Digits:
        index -= self.first
        taken = []
        for line in reversed(self.section.lines):
            index, digit = divmod(index, line.template.size)
            taken.append(list(unpack(line.template, digit)))
        return tuple(digit for digits in reversed(taken) for digit in digits)

    def index(self, digits: Digits) -> int:
        index, rest = 0, iter(digits)
        for line in self.section.lines:
            index = index * line.template.size + pack(line.template, rest)
        return self.first + index

    def moved(self, digits: Digits, axis: int, digit: int) -> int:
        """Return the point with another digit.

        Axes that become active keep what their name had, else take their first.
        """
        kept = {a.name: a.values[d] for a, d in zip(self.axes, digits, strict=True) if d >= 0}

        def wanted(k: int) -> int:
            if k == axis:
                return digit
            return digits[k] if digits[k] >= 0 else _position(self.axes[k], kept)

        return self.index(consistent_digits(self.axes, wanted))

    def map_point(self, other: _Part, digits: Digits) -> int:
        """Return the point of this part that has what ``digits`` of the other part name."""
        kept = {a.name: a.values[d] for a, d in zip(other.axes, digits, strict=True) if d >= 0}
        return self.index(consistent_digits(self.axes, lambda k: _position(self.axes[k], kept)))


class Product(SpaceView):
    """View of a space that is too large to list: points are numbers, and moves are arithmetic on their digits."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._parts: list[_Part] = []
        first = 0
        for section in space.sections:
            self._parts.append(_Part(section, first, _axes(section)))
            first += section.size

    @property
    def size(self) -> int:
        return self._space.size

    @property
    def versions(self) -> int:
        return self._space.versions

    def __getitem__(self, index: int) -> Configuration | None:
        return self._space[index]

    def parts(self) -> Sequence[int]:
        return [part.first for part in self._parts]

    def axes(self, index: int) -> tuple[Axis, ...]:
        return self._part(index).axes

    def digits(self, index: int) -> Digits:
        return self._part(index).digits(index)

    def moved(self, index: int, axis: int, digit: int) -> int | None:
        part = self._part(index)
        digits = part.digits(index)
        return part.moved(digits, axis, digit) if digits[axis] >= 0 else None

    def varying(self, index: int, axes: Iterable[int]) -> Iterator[int]:
        part = self._part(index)
        for digits in _assignments(part.axes, part.digits(index), frozenset(axes)):
            yield part.index(digits)

    def near(self, index: int, rng: random.Random) -> Iterator[int]:
        part, given = self._part(index), {index}
        digits = part.digits(index)
        once = list(self._moves(index, rng))
        rng.shuffle(once)
        elsewhere = (other.map_point(part, digits) for other in self._parts if other != part)
        for point in chain(once, elsewhere, self._twice(once, rng)):
            if point not in given:
                given.add(point)
                yield point

    def nearest(self, index: int, digits: Sequence[int], taken: Container[int], rng: random.Random) -> int | None:
        part = self._part(index)
        point = part.index(consistent_digits(part.axes, lambda k: max(digits[k], 0)))
        if self._free(point, taken):
            return point
        return next((p for p in self.near(point, rng) if self._free(p, taken)), None)

    def towards(self, index: int, other: int) -> int:
        here, there = self._part(index), self._part(other)
        return index if here == there else there.map_point(here, here.digits(index))

    def _free(self, point: int, taken: Container[int]) -> bool:
        return point not in taken and self[point] is not None

    def _twice(self, once: Sequence[int], rng: random.Random) -> Iterator[int]:
        for _ in range(NEAR if once else 0):
            moves = list(self._moves(rng.choice(once), rng))
            if moves:
                yield rng.choice(moves)

    def _moves(self, index: int, rng: random.Random) -> Iterator[int]:
        """One axis changed: a quantity by powers of two of positions, words to each other or, if many, to some."""
        part = self._part(index)
        digits = part.digits(index)
        for k, axis in enumerate(part.axes):
            count = len(axis.values)
            if digits[k] < 0 or count < 2:
                continue
            if axis.numeric:
                order = axis.ascending
                at = order.index(digits[k])
                steps = [sign << power for power in range((count - 1).bit_length()) for sign in (1, -1)]
                there = [order[at + step] for step in steps if 0 <= at + step < count]
            else:
                there = [d for d in rng.sample(range(count), min(count, 32)) if d != digits[k]]
            yield from (part.moved(digits, k, d) for d in there)

    def _part(self, index: int) -> _Part:
        return next(part for part in reversed(self._parts) if part.first <= index)


def _axes(section: Section) -> tuple[Axis, ...]:
    """Return the axes of all lines, named as the slots of a configuration are."""

    def naming(line: Line) -> Callable[[str], str]:
        return lambda directive: slot(line, directive)

    return axes_of((line.template, _group(line), naming(line)) for line in section.lines)


def _group(line: Line) -> str:
    return ", ".join(address.loop for address in line.addresses) or "codelet"


def _position(axis: Axis, kept: dict[str, Scalar]) -> int:
    """Where the value is that the axis' name had, or 0."""
    value = kept.get(axis.name)
    return axis.values.index(value) if value is not None and value in axis.values else 0


def _assignments(axes: Sequence[Axis], digits: Digits, free: frozenset[int], given: Digits = ()) -> Iterator[Digits]:
    """All digits that begin with ``given``, are any value on the free axes, and the present one elsewhere."""
    k = len(given)
    if k == len(axes):
        yield given
        return
    within = axes[k].within
    active = within is None or given[within[0]] == within[1]
    choices = range(len(axes[k].values)) if k in free else (max(digits[k], 0),)
    for digit in choices if active else (-1,):
        yield from _assignments(axes, digits, free, (*given, digit))
