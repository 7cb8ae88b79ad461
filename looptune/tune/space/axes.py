"""The choices of a product of templates as axes, and a number of the product as one digit for each axis.

    loop k: { unroll {2..4}, {contiguous, split} | tile k:{4, 8} }           8 numbers, 4 axes

    axis        values                        active where      number 3   number 7
    loop k      "unroll …", "tile …"                            0          1
    unroll(k)   2, 3, 4                       loop k = 0        1          -1
    unroll(k).2 contiguous, split             loop k = 0        1          -1
    tile(k)     4, 8                          loop k = 1        -1         1

A digit is the position of a value in its axis, -1 if the axis is not active. Axes stand parents first. Both conversions
take time linear in the templates: nothing is enumerated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from looptune.tune.space.template import Choice, Range, Template, label

Scalar = int | float | str
Digits = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Axis:
    """A choice of a space.

    ``group`` is the loop to which the axis belongs. With ``within = (k, d)`` the axis is active only where axis number
    k has digit d.
    """

    name: str
    group: str
    values: Sequence[Scalar]
    within: tuple[int, int] | None = None

    @property
    def numeric(self) -> bool:
        """Return whether the axis is a quantity: it has at least two values, all numbers."""
        return len(self.values) > 1 and (
            isinstance(self.values, range) or all(isinstance(v, int | float) for v in self.values)
        )

    @property
    def ascending(self) -> Sequence[int]:
        """Return the digits of a quantity in the order of its values."""
        if isinstance(self.values, range):
            return range(len(self.values))
        return sorted(range(len(self.values)), key=lambda digit: self.values[digit])


def axes_of(templates: Iterable[tuple[Template, str, Callable[[str], str]]]) -> tuple[Axis, ...]:
    """Return the axes of a product: for each template its group, and how the word of a directive becomes a name."""
    made: list[Axis] = []
    counts: dict[str, int] = {}
    for template, group, name in templates:
        _Naming(group, name, made).template(template, None, counts)
    return tuple(made)


@dataclass(frozen=True, slots=True)
class _Naming:
    """Equal names are numbered: ``unroll(k)``, ``unroll(k).2``."""

    group: str
    name: Callable[[str], str]
    made: list[Axis]

    def template(self, template: Template, within: tuple[int, int] | None, counts: dict[str, int]) -> None:
        for part in template.parts:
            match part:
                case Choice():
                    self.choice(part, within, counts)

    def choice(self, choice: Choice, within: tuple[int, int] | None, counts: dict[str, int]) -> None:
        """Add the axis of the choice, then those inside its alternatives.

        Only one alternative is taken, so all of them count from here.
        """
        plain = self.name(choice.directive)
        count = counts[plain] = counts.get(plain, 0) + 1
        here = len(self.made)
        self.made.append(Axis(plain if count == 1 else f"{plain}.{count}", self.group, _values(choice), within))
        before, position = dict(counts), 0
        for alternative in choice.alternatives:
            match alternative:
                case Range():
                    position += alternative.size
                case Template():
                    inside = dict(before)
                    self.template(alternative, (here, position), inside)
                    counts |= {n: max(k, counts.get(n, 0)) for n, k in inside.items()}
                    position += 1


def _values(choice: Choice) -> Sequence[Scalar]:
    match choice.alternatives:
        case (Range(first, last, step),):
            return range(first, last + 1, step)
    values: list[Scalar] = []
    for alternative in choice.alternatives:
        match alternative:
            case Range(first, last, step):
                values += range(first, last + 1, step)
            case Template():
                values.append(label(alternative, 0))
    return tuple(values)


def unpack(template: Template, index: int | None) -> Iterator[int]:
    """Yield the digits of number ``index``; all -1 where there is none."""
    taken: list[int | None] = []
    for part in reversed(template.parts):
        if index is None:
            taken.append(None)
            continue
        index, digit = divmod(index, part.size)
        taken.append(digit)
    for part, number in zip(template.parts, reversed(taken), strict=True):
        match part:
            case Choice():
                yield from _unpack(part, number)


def _unpack(choice: Choice, index: int | None) -> Iterator[int]:
    digit, chosen, rest = -1, -1, index
    position = 0
    for k, alternative in enumerate(choice.alternatives):
        if rest is not None and chosen < 0 and rest < alternative.size:
            digit, chosen = position + (rest if isinstance(alternative, Range) else 0), k
        elif rest is not None and chosen < 0:
            rest -= alternative.size
        position += alternative.size if isinstance(alternative, Range) else 1
    yield digit
    for k, alternative in enumerate(choice.alternatives):
        match alternative:
            case Template():
                yield from unpack(alternative, rest if k == chosen else None)


def pack(template: Template, digits: Iterator[int]) -> int:
    """Return the number with these digits, which are taken from the iterator."""
    index = 0
    for part in template.parts:
        match part:
            case Choice():
                index = index * part.size + _pack(part, digits)
    return index


def _pack(choice: Choice, digits: Iterator[int]) -> int:
    digit = next(digits)
    found = start = position = 0
    for alternative in choice.alternatives:
        match alternative:
            case Range(size=size):
                found = start + digit - position if position <= digit < position + size else found
                position += size
            case Template(size=size):
                inside = pack(alternative, digits)
                found = start + inside if digit == position else found
                position += 1
        start += size
    return found


def consistent_digits(axes: Sequence[Axis], wanted: Callable[[int], int]) -> Digits:
    """Return one digit for each axis: ``wanted(k)`` where axis k is active, else -1.

    Axes stand parents first, so that the digits before decide whether an axis is active.

    >>> axes = (Axis("loop k", "k", ("", "unroll")), Axis("unroll(k)", "k", (2, 4), (0, 1)))
    >>> consistent_digits(axes, lambda k: 1), consistent_digits(axes, lambda k: 0)
    ((1, 1), (0, -1))
    """
    digits: list[int] = []
    for k, axis in enumerate(axes):
        active = axis.within is None or digits[axis.within[0]] == axis.within[1]
        digits.append(wanted(k) if active else -1)
    return tuple(digits)
