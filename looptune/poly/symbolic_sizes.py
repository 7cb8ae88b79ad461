"""Large constants in the bounds of relations become parameters, as isl's scheduler likes them.

    { S[i] -> T[i + 1] : 0 <= i <= 318 }       [P] -> { S[i] -> T[i + 1] : 0 <= i <= P - 2 },  P = 320

isl looks for coefficients by integer programming, in which a bound of 320 takes ten times as long as one of N, and
leads to times such as 320 t + i. A schedule that is right for every P is right for the one that the program has, so
that nothing is assumed; one that needs the exact constant is not found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce

import islpy as isl

LARGE = 32
"""Constants from here on become parameters: the exact sizes of shorter loops, such as tiles, may matter."""
APART = 16
"""Constants that differ by less are the same size: a bound, and it without the points at the edges."""
_NAME = "size__"


def sizes_in(relations: Iterable[isl.UnionMap]) -> dict[str, int]:
    """Return a parameter's name and value for each size that is a constant in an inequality of the relations.

    >>> sizes_in([isl.UnionMap("{ S[i] -> T[j] : 0 <= i < 320 and 4 <= j <= 315; S[i] -> S[i + 1] : i <= 2000 }")])
    {'size__0': 315, 'size__1': 2000}
    """
    pieces = (basic for relation in relations for basic in _pieces(relation))
    found = {size for basic in pieces for c in basic.get_constraints() if (size := _size(c))}
    values: list[int] = []
    for value in sorted(found):
        if not values or value - values[-1] >= APART:
            values.append(value)
    return {f"{_NAME}{n}": value for n, value in enumerate(values)}


def with_parameters(relation: isl.UnionMap, sizes: Mapping[str, int]) -> isl.UnionMap:
    """Return the relation with the sizes as parameters.

    >>> print(with_parameters(isl.UnionMap("{ S[i] -> T[1 + i] : 0 <= i < 320 }"), {"size__0": 315}))
    [size__0] -> { S[i] -> T[1 + i] : 0 <= i <= 4 + size__0 }
    """
    if not sizes:
        return relation
    made = (isl.UnionMap.from_map(_parametric(basic, sizes)) for basic in _pieces(relation))
    return reduce(isl.UnionMap.union, made, isl.UnionMap("{ }"))


def with_values(relation: isl.Map, sizes: Mapping[str, int]) -> isl.Map:
    """Return the relation with the values of the sizes in place of the parameters.

    >>> print(with_values(isl.Map("[size__0] -> { S[i] -> [i + size__0] }"), {"size__0": 320}))
    { S[i] -> [320 + i] }
    """
    kind = isl.dim_type.param
    for name, value in sizes.items():
        place = relation.find_dim_by_name(kind, name)
        if place >= 0:
            relation = relation.fix_val(kind, place, isl.Val(str(value))).project_out(kind, place, 1)
    return relation


def _size(constraint: isl.Constraint) -> int:
    """Return the size that is the constant of an inequality, 0 where there is none."""
    constant = 0 if constraint.is_equality() else abs(constraint.get_constant_val().to_python())
    return constant if constant >= LARGE else 0


def _pieces(relation: isl.UnionMap) -> list[isl.BasicMap]:
    """Return the pieces; isl prints what is raised while it calls back, so that nothing else is done there."""
    maps: list[isl.Map] = []
    pieces: list[isl.BasicMap] = []
    relation.foreach_map(maps.append)
    for m in maps:
        m.foreach_basic_map(pieces.append)
    return pieces


def _parametric(basic: isl.BasicMap, sizes: Mapping[str, int]) -> isl.Map:
    """One with existentially quantified variables stays as it is: their constraints are about remainders."""
    whole, kind = isl.Map.from_basic_map(basic), isl.dim_type.param
    if basic.dim(isl.dim_type.div):
        return whole
    first = whole.dim(kind)
    whole = whole.insert_dims(kind, first, len(sizes))
    for n, name in enumerate(sizes):
        whole = whole.set_dim_name(kind, first + n, name)
    (wide,) = whole.get_basic_maps()
    out = isl.BasicMap.universe(wide.get_space())
    for c in wide.get_constraints():
        if size := _size(c):
            n, base = max((n, v) for n, v in enumerate(sizes.values()) if v <= size)
            constant = c.get_constant_val().to_python()
            sign = 1 if constant > 0 else -1
            c = c.set_constant_val(isl.Val(str(constant - sign * base)))
            c = c.set_coefficient_val(kind, first + n, isl.Val(sign))
        out = out.add_constraint(c)
    return isl.Map.from_basic_map(out)
