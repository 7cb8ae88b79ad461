"""A space as the list of its configurations, with axes derived from the differences between them.

    loop i: unroll 4, jam                loop i            unroll(i)   tile(i)   codelet
    codelet: grid blocksize 32x8    ──▶  "unroll #, jam"   4           -         "grid blocksize # x #"   …
    loop i: tile i:4                ──▶  "tile i:#"        -           4         ""                       …

The directives of one place without their numbers are the value of a categorical axis; each number is a numeric one. So
configurations of different sections of a space file are comparable, and a space can be made again from the rows of a
database whose space file is lost. A configuration that does not consist of directives has its ``slots`` instead.
"""

from __future__ import annotations

import random
import re
from collections.abc import Container, Hashable, Iterable, Iterator, Sequence
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

import numpy as np

from looptune.tune.space.axes import Axis, Digits, Scalar
from looptune.tune.space.view import SpaceView

if TYPE_CHECKING:
    from looptune.tune.space.space import Configuration

Coordinates = dict[str, Scalar]
"""Axis to value; an axis that is missing has no value there."""

_PLACE = re.compile(r"(?:(loop|nest)\s+([\w.]+)|codelet)\s*:\s*", re.IGNORECASE)
_EXTENTS = re.compile(r"(?<=\d)\s*[xX]\s*(?=\d)")
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
_OWN_WORD = re.compile(r",\s*([A-Za-z_]\w*)\s+$")
"""What stands before a number that a word inside of a directive has: ``vector`` of ``unroll 8, split, vector 4``."""


def coordinates(configuration: Configuration) -> tuple[Coordinates, dict[str, str]]:
    """Return the coordinates of a configuration, and the group of each of their axes.

    The group is a loop, or ``codelet``; for a configuration that does not consist of directives, each axis is its own
    group.

    >>> from looptune.tune.space.space import Configuration
    >>> coordinates(Configuration(("loop i: unroll 4, jam", "codelet: grid blocksize 32x8")))[0]
    {'loop i': 'unroll #, jam', 'unroll(i)': 4, 'codelet': 'grid blocksize # x #', 'blocksize': 32, 'blocksize.2': 8}
    """
    if configuration.slots and not all(_PLACE.match(line) for line in configuration.lines):
        return dict(configuration.slots), {name: name for name, _ in configuration.slots}
    found: Coordinates = {}
    groups: dict[str, str] = {}
    named: Coordinates
    for line in configuration.lines:
        place = _PLACE.match(line)
        where = line.partition(":")[0].strip() if place is None else place[0].rstrip(" :")
        group = "codelet" if place is None or place[2] is None else place[2]
        text = _EXTENTS.sub(" x ", line if place is None else line[place.end() :])
        shape = _NUMBER.sub("#", text)
        named = {where: f"{found[where]}; {shape}" if where in found else shape}
        for match in _NUMBER.finditer(text):
            number, own = match[0], _OWN_WORD.search(text[: match.start()])
            plain = _quantity(text if own is None else own[1], group)
            count = 1 + sum(n == plain or n.startswith(f"{plain}.") for n in (*found, *named))
            named[plain if count == 1 else f"{plain}.{count}"] = int(number)
        found |= named
        groups |= dict.fromkeys(named, group)
    return found, groups


def _quantity(text: str, group: str) -> str:
    """Return what a number of a directive is called: ``unroll(i)``, ``blocksize``."""
    words = re.findall(r"[A-Za-z_]\w*", text)
    word = "blocksize" if "blocksize" in words else words[0] if words else "number"
    return word if group == "codelet" else f"{word}({group})"


class Table(SpaceView):
    """View of a space that is a list of configurations; ``rows`` are numbered in their order.

    Two rows with the same coordinates remain two points; a move finds the first of them.
    """

    def __init__(self, rows: Iterable[Configuration]) -> None:
        self.rows = tuple(rows)
        known = [coordinates(row) for row in self.rows]
        self._groups = {name: group for _, groups in known for name, group in groups.items()}
        self._axes = tuple(_axis(name, group, [c for c, _ in known]) for name, group in self._groups.items())
        places = [{value: k for k, value in enumerate(axis.values)} for axis in self._axes]
        self._digits = np.array(
            [[at.get(c.get(a.name, ""), -1) for a, at in zip(self._axes, places, strict=True)] for c, _ in known], int
        ).reshape(len(self.rows), len(self._axes))
        self._number: dict[Digits, int] = {}
        for k, digits in enumerate(self._digits.tolist()):
            self._number.setdefault(tuple(digits), k)
        self.columns = tuple(_columns(axis) for axis in self._axes)
        """For each axis what its digits contribute to ``features``, the last row for no value."""
        parts = [c[self._digits[:, k]] for k, c in enumerate(self.columns)]
        self.features = np.concatenate([np.zeros((len(self.rows), 0)), *parts], axis=1)
        """One row for each configuration; what ``_columns`` makes of each axis."""

    @property
    def size(self) -> int:
        return len(self.rows)

    @property
    def versions(self) -> int:
        return len(self.rows)

    @property
    def digit_rows(self) -> np.ndarray:
        """Return the digits of every row, one column for each axis."""
        return self._digits

    def __getitem__(self, index: int) -> Configuration:
        return self.rows[index]

    def parts(self) -> Sequence[int]:
        """Return the first of the rows with the fewest directives; an empty list if there is no row."""
        return [min(range(self.size), key=self._plainness)] if self.rows else []

    def starts(self) -> Sequence[int]:
        """Return the plainest row of each structure and of each component, in turn, those with the most rows first.

        The plainest of all precedes them.

        structure     the rows with the same axes: blocks with tiles, blocks without
        component     the rows that changes of one loop at a time connect
        """
        plainest = self.parts()
        structures = self._plainest([row.tobytes() for row in self._digits >= 0])
        pairs = zip_longest(structures, self._plainest(self._components()))
        return [*dict.fromkeys(k for k in chain(plainest, *pairs) if k is not None)]

    def _plainest(self, labels: Iterable[Hashable]) -> list[int]:
        """Of the rows with the same label, the label of the most rows first."""
        members: dict[Hashable, list[int]] = {}
        for k, label in enumerate(labels):
            members.setdefault(label, []).append(k)
        firsts = {min(rows, key=self._plainness): len(rows) for rows in members.values()}
        return sorted(firsts, key=lambda k: (-firsts[k], k))

    def _components(self) -> list[int]:
        """For each row one of those that changes of one loop at a time connect it with, the same for all of them."""
        leader = list(range(self.size))

        def find(k: int) -> int:
            while leader[k] != k:
                leader[k] = k = leader[leader[k]]
            return k

        for group in self.groups(0) if self.rows else []:
            others = [k for k in range(len(self._axes)) if k not in group]
            first: dict[bytes, int] = {}
            for k, row in enumerate(np.ascontiguousarray(self._digits[:, others])):
                leader[find(k)] = find(first.setdefault(row.tobytes(), k))
        return [find(k) for k in range(self.size)]

    def _plainness(self, row: int) -> tuple[int, int]:
        return len(self.rows[row].lines), row

    def axes(self, index: int) -> tuple[Axis, ...]:
        return self._axes

    def digits(self, index: int) -> Digits:
        return tuple(self._digits[index].tolist())

    def moved(self, index: int, axis: int, digit: int) -> int | None:
        """Return the row with one digit changed, or None if there is none.

        For a categorical axis the nearest row with that value is taken, since other values come with other numbers.
        """
        there = self._digits[index].copy()
        there[axis] = digit
        exact = self._number.get(tuple(there.tolist()))
        return exact if exact is not None or self._axes[axis].numeric else self._nearest(index, axis, digit)

    def _nearest(self, index: int, axis: int, digit: int) -> int | None:
        """Return the row with this digit that is as ``index`` in all other groups, and nearest within the group."""
        group = self._axes[axis].group
        outside = [k for k, a in enumerate(self._axes) if a.group != group]
        same = (self._digits[:, outside] == self._digits[index, outside]).all(axis=1)
        candidates = np.flatnonzero(same & (self._digits[:, axis] == digit))
        if not len(candidates):
            return None
        return int(candidates[np.argmin(self.distances(index)[candidates])])

    def varying(self, index: int, axes: Iterable[int]) -> Iterator[int]:
        others = [k for k in range(len(self._axes)) if k not in set(axes)]
        same = (self._digits[:, others] == self._digits[index, others]).all(axis=1)
        yield from np.flatnonzero(same).tolist()

    def near(self, index: int, rng: random.Random) -> Iterator[int]:
        distances = self.distances(index)
        order = sorted(range(self.size), key=lambda k: (distances[k], rng.random()))
        yield from (k for k in order if k != index)

    def distances(self, index: int) -> np.ndarray:
        """Return the distance of each row from row ``index``: the sum of absolute differences of ``features``."""
        step = self.features - self.features[index]
        distances: np.ndarray = np.round(np.abs(step).sum(axis=1), 9)
        return distances

    def nearest(self, index: int, digits: Sequence[int], taken: Container[int], rng: random.Random) -> int | None:
        distances = np.abs(self.features - self._located(digits)).sum(axis=1)
        order = np.argsort(distances, kind="stable").tolist()
        return next((k for k in order if k not in taken), None)

    def towards(self, index: int, other: int) -> int:
        return index

    def _located(self, digits: Sequence[int]) -> np.ndarray:
        return np.concatenate([np.zeros(0), *(c[d] for c, d in zip(self.columns, digits, strict=True))])


def _columns(axis: Axis) -> np.ndarray:
    """Of each digit the features, the last row for no value: a quantity's logarithm, or the items of a text it holds.

    The greatest is 1; linear where a value is below 1; no value is as the least that can be.
    """
    if axis.numeric:
        values = np.asarray(axis.values, float)
        scale = np.log2(values) if (values >= 1).all() else values - values.min()
        return np.append(scale / scale.max(), 0.0)[:, None]
    said = [_words(str(value)) for value in axis.values]
    words = [w for w in dict.fromkeys(w for ws in said for w in ws) if not all(w in ws for ws in said)]
    return np.array([*([0.5 * (w in ws) for w in words] for ws in said), [0.0] * len(words)])


def _words(text: str) -> tuple[str, ...]:
    """Return the whole and its items: two texts are as near as they have items in common."""
    return tuple(dict.fromkeys((text, *(item.strip() for item in text.split(",")))))


def _axis(name: str, group: str, known: Sequence[Coordinates]) -> Axis:
    """Its values: numbers ascending, else texts in the order met, none at all as the empty text."""
    values = list(dict.fromkeys(c.get(name, "") for c in known))
    numbers = sorted(v for v in values if not isinstance(v, str))
    texts = [v for v in values if isinstance(v, str)]
    if numbers and set(texts) <= {""}:
        return Axis(name, group, tuple(numbers))
    return Axis(name, group, (*texts, *numbers))
