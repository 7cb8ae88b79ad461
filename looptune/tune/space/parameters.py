"""Configurations in the form of other tools: one value for each of several named parameters, and conditions on these.

    "loop i: unroll 4, jam"    ──▶    loop_i              unroll_i   codelet   …
    "codelet: maxregs 64"             "unroll #, jam"     4          ""
                                      ""                  0          "maxregs #"

The parameters are the axes of ``table_view``: the directives of a place without their numbers, and the numbers. A
parameter that a configuration lacks is "" or 0. A space is not the product of all these, so conditions state which
combinations exist:

    loop_i == "unroll #, jam" and unroll_i in (2, 4) or loop_i == "" and unroll_i == 0

Where the product has more than MOST_POINTS combinations, almost all of which the conditions exclude, other tools do not
finish enumerating them. There is one parameter then, the number of the version, and no condition.
"""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from looptune.tune.space.axes import Scalar
from looptune.tune.space.table_view import coordinates

if TYPE_CHECKING:
    from looptune.tune.space.space import Configuration

Values = tuple[Scalar, ...]

MOST_POINTS = 1e18
"""Kernel Tuner 1.5 takes 6 s for the 5.4e19 points of BICG's space, and more than 25 s for the 1.8e22 of 2MM's."""
RESERVED = frozenset(
    (
        "time", "times", "timestamp", "directives", "outcome", "source", "seconds", "cost_us", "runs_us", "device_name",
        "params", "compile_time", "benchmark_time", "verification_time", "framework_time", "strategy_time",
        "grid_size_x", "grid_size_y", "grid_size_z", "r",
    )
)  # fmt: skip
"""What entries of a Kernel Tuner cache, or the functions made of its conditions, call other things."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter: ``name`` is an identifier, ``axis`` its name in looptune; ``values`` are all numbers or texts."""

    name: str
    axis: str
    values: Values

    @property
    def numeric(self) -> bool:
        return all(isinstance(value, int | float) for value in self.values)


@dataclass(frozen=True, slots=True)
class Condition:
    """A Python expression that reads the parameters ``names``."""

    names: tuple[str, ...]
    expression: str


@dataclass(frozen=True, slots=True)
class ParameterTable:
    """Configurations as rows of parameter values.

    ``rows[k]`` has the values of configuration number k; no two rows are equal, nor are their texts joined by commas.
    """

    parameters: tuple[Parameter, ...]
    rows: tuple[Values, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(parameter.name for parameter in self.parameters)

    def conditions(self) -> list[Condition]:
        """Return the conditions that together hold for the rows and for no other combination of the values.

        Each condition reads one parameter and as few as possible of those before it. There is none for a parameter
        whose values all occur with every combination of those before it.
        """
        found = []
        for k, parameter in enumerate(self.parameters):
            before = list(dict.fromkeys(row[:k] for row in self.rows))
            allowed = list(dict.fromkeys(row[: k + 1] for row in self.rows))
            if len(allowed) == len(before) * len(parameter.values):
                continue
            kept = list(range(k))
            for j in range(k):
                fewer = [i for i in kept if i != j]
                kept = fewer if _same(before, allowed, fewer) else kept
            names = tuple(self.names[i] for i in kept)
            choices = _choices(allowed, kept)
            found.append(Condition((*names, parameter.name), _expression(names, parameter, choices)))
        return found


def parameter_table(configurations: Sequence[Configuration]) -> ParameterTable:
    """Return the parameters of these configurations, in the order in which they first occur."""
    known = [coordinates(configuration)[0] for configuration in configurations]
    axes = list(dict.fromkeys(name for each in known for name in each))
    columns = {axis: [each.get(axis) for each in known] for axis in axes}
    filled = {axis: _filled(values) for axis, values in columns.items()}
    rows = [tuple(filled[axis][k] for axis in axes) for k in range(len(known))]
    texts = [",".join(map(str, row)) for row in rows]
    if len(set(texts)) < len(texts) or not axes:
        axes.append("variant")
        seen: Counter[str] = Counter()
        for k, text in enumerate(texts):
            rows[k] = (*rows[k], seen[text])
            seen[text] += 1
    if prod(len({row[k] for row in rows}) for k in range(len(axes))) > MOST_POINTS:
        numbers = tuple(range(len(rows)))
        return ParameterTable((Parameter("version", "version", numbers),), tuple((k,) for k in numbers))
    words = {w for row in rows for v in row if isinstance(v, str) for w in re.findall(r"\w+", v)}
    names = _names(axes, words | RESERVED)
    parameters = tuple(
        Parameter(name, axis, _ordered([row[k] for row in rows]))
        for k, (name, axis) in enumerate(zip(names, axes, strict=True))
    )
    return ParameterTable(parameters, tuple(rows))


def _filled(values: Sequence[Scalar | None]) -> list[Scalar]:
    if any(isinstance(value, str) for value in values):
        return ["" if value is None else str(value) for value in values]
    return [0 if value is None else value for value in values]


def _ordered(values: Sequence[Scalar]) -> Values:
    """Each once: numbers ascending, texts as met, none at all first."""
    numbers = sorted({v for v in values if not isinstance(v, str)})
    texts = dict.fromkeys(v for v in values if isinstance(v, str))
    return tuple(numbers) if numbers else tuple(sorted(texts, key=lambda text: text != ""))


def _names(axes: Sequence[str], taken: set[str] | frozenset[str]) -> list[str]:
    """Return identifiers that are no word of a value.

    Kernel Tuner replaces names in a condition wherever they stand.
    """
    names: list[str] = []
    for axis in axes:
        plain = re.sub(r"\W+", "_", axis, flags=re.ASCII).strip("_")
        plain = plain if plain.isidentifier() and not keyword.iskeyword(plain) else f"p_{plain}"
        tried = (f"{plain}_{n}" if n else plain for n in range(len(axes) + len(taken) + 1))
        names.append(next(name for name in tried if name not in taken and name not in names))
    return names


def _projected(row: Values, kept: Sequence[int]) -> Values:
    return tuple(row[i] for i in kept)


def _choices(allowed: Sequence[Values], kept: Sequence[int]) -> dict[Values, dict[Scalar, None]]:
    """Of each combination of the kept parameters the values that go with it."""
    found: dict[Values, dict[Scalar, None]] = {}
    for row in allowed:
        found.setdefault(_projected(row, kept), {})[row[-1]] = None
    return found


def _same(before: Sequence[Values], allowed: Sequence[Values], kept: Sequence[int]) -> bool:
    """Whether knowing the kept ones alone allows no more."""
    choices = _choices(allowed, kept)
    return sum(len(choices[_projected(row, kept)]) for row in before) == len(allowed)


def _expression(names: Sequence[str], parameter: Parameter, choices: dict[Values, dict[Scalar, None]]) -> str:
    by_values: dict[frozenset[Scalar], list[Values]] = {}
    for combination, values in choices.items():
        by_values.setdefault(frozenset(values), []).append(combination)
    parts = []
    for among, combinations in by_values.items():
        mine = [v for v in parameter.values if v in among]
        own = [] if len(mine) == len(parameter.values) else [_among(parameter.name, mine)]
        if len(names) > 1:
            own.insert(0, f"({', '.join(names)}) in {_listed(combinations)}")
        elif names:
            own.insert(0, _among(names[0], [c[0] for c in combinations]))
        parts.append(" and ".join(own))
    return " or ".join(f"({part})" for part in parts) if len(parts) > 1 else parts[0]


def _among(name: str, values: Sequence[Scalar]) -> str:
    return f"{name} == {values[0]!r}" if len(values) == 1 else f"{name} in {_listed(values)}"


def _listed(values: Sequence[object]) -> str:
    return f"({', '.join(map(repr, values))}{',' if len(values) == 1 else ''})"
