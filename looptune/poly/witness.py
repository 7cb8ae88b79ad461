"""The smallest example of a reversed dependence: least sizes first, then the earlier iteration, then the later one.

{ S0[i, j] -> S0[i + 1, j - 1] : 1 <= i < n - 1 and 0 < j < n }   ->   n=3, (1, 1), (2, 0)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Literal

import islpy as isl

from looptune.core.source import Span, location
from looptune.ir.def_use import names_in
from looptune.ir.nodes import Loop
from looptune.poly.affine import name
from looptune.poly.dependence import conflict
from looptune.poly.domain import Statement, Unanalysable, constant_value
from looptune.poly.isl_limits import QUESTION, IslLimitExceeded

if TYPE_CHECKING:
    from looptune.poly.access import Access
    from looptune.poly.isl_objects import Space

Kind = Literal["flow", "anti", "output"]
_EXAMPLES = 8
"""So many pairs of statements are asked for their smallest example: each takes about a millisecond."""

DOES = {"flow": ("writes", "reads"), "anti": ("reads", "writes"), "output": ("writes", "writes")}
_DONE = {"flow": ("written", "read"), "anti": ("read", "written"), "output": ("written", "written")}


@dataclass(frozen=True, slots=True)
class Violation:
    """Two iterations that must stay in order, at the smallest ``sizes`` that show it.

    ``because``: the code that cannot be analysed, if the dependence is only assumed. ``element`` is the index of the
    element that both access, () for a scalar, None if it depends on data.
    """

    array: str
    kind: Kind
    source: Span
    sink: Span
    source_text: str
    sink_text: str
    source_iteration: Mapping[str, int]
    sink_iteration: Mapping[str, int]
    sizes: Mapping[str, int]
    first_statement: str
    then_statement: str
    because: Unanalysable | None = None
    element: tuple[int, ...] | None = None

    def __str__(self) -> str:
        """Return the message for the user.

        >>> here = Span("f.c", 7, 5)
        >>> str(Violation("A", "flow", here, here, "A[i]", "A[i - 1]", {"i": 1}, {"i": 2}, {"n": 3}, "S0", "S0"))
        'iteration (i=1) must run before (i=2) when n=3'
        """
        return self.message(lines=False)

    def message(self, *, lines: bool) -> str:
        """Return a sentence that names the two iterations and the sizes.

        With ``lines`` it also names their lines; without, only if nothing else tells them apart.
        """
        first, then = _at(self.source_iteration), _at(self.sink_iteration)
        if (lines or first == then) and self.source.line != self.sink.line:
            first, then = (f"{at} of line {s.line}".strip() for at, s in ((first, self.source), (then, self.sink)))
        subject = f"iteration {first}" if self.source_iteration else f"line {self.source.line}"
        given = f" when {assignments_text(self.sizes)}" if self.sizes else ""
        return f"{subject} must run before {then if self.sink_iteration else f'line {self.sink.line}'}{given}"

    def reason(self, *, lines: bool) -> str:
        """Return the message, or why there is none: what cannot be analysed."""
        if self.because is not None:
            return f"{self.because.what} cannot be analysed, so iterations may depend on each other"
        return self.message(lines=lines)

    def ends(self, near: Span) -> str:
        """Return both accesses with their places, as ``line:col`` if they are in the file of ``near``.

        >>> a, b = Span("f.c", 7, 5), Span("f.c", 7, 15)
        >>> Violation("A", "flow", a, b, "A[i]", "A[i - 1]", {"i": 1}, {"i": 2}, {"n": 3}, "S0", "S0").ends(a)
        'flow on A: (i=1) writes A[i] 7:5, (i=2) reads A[i - 1] 7:15'
        """
        ends = (
            (self.source_iteration, self.source_text, self.source),
            (self.sink_iteration, self.sink_text, self.sink),
        )
        said = (
            f"{_at(at)} {does} {text} {location(span, near)}".strip()
            for does, (at, text, span) in zip(DOES[self.kind], ends, strict=True)
        )
        assumed = (
            "" if self.because is None else f"; assumed, for {self.because.what} {location(self.because.span, near)}"
        )
        return f"{self.kind} on {self.array}: {', '.join(said)}{assumed}"

    def detail(self) -> str:
        """Return the two accesses of the dependence with their positions.

        >>> a, b = Span("f.c", 7, 5), Span("f.c", 7, 15)
        >>> Violation("A", "flow", a, b, "A[i]", "A[i - 1]", {"i": 1}, {"i": 2}, {"n": 3}, "S0", "S0").detail()
        'flow dependence on A: A[i] written at f.c:7:5, A[i - 1] read at f.c:7:15'
        """
        done, again = _DONE[self.kind]
        ends = f"{self.source_text} {done} at {self.source}, {self.sink_text} {again} at {self.sink}"
        assumed = f" (assumed: {self.because})" if self.because is not None else ""
        return f"{self.kind} dependence on {self.array}: {ends}{assumed}"


@dataclass(frozen=True, slots=True, eq=False)
class ViolatedDependence:
    """A dependence that an order violates; ``map``: { first[iteration] -> then[iteration] : the pairs reversed }.

    ``array`` "" stands for any array but those in ``without``, ``kind`` None for any kind; ``reductions``:
    accumulations count too.
    """

    first: str
    then: str
    map: isl.Map
    array: str = ""
    kind: Kind | None = None
    reductions: bool = True
    mentions: str = ""
    without: frozenset[str] = frozenset()


def find_witness(space: Space, names: Mapping[str, str], broken: list[ViolatedDependence]) -> Violation:
    """Return a small example of a violation; one that is certain is preferred to one that is assumed.

    ``names`` gives the user's name of each parameter.
    """
    certain = sorted(broken, key=lambda b: any(a.unknown for n in (b.first, b.then) for a in space.accesses[n]))
    return min((_example(space, names, b) for b in certain[:_EXAMPLES]), key=_rank)


def _rank(r: Violation) -> tuple[object, ...]:
    sizes, first, then = (tuple(d.values()) for d in (r.sizes, r.source_iteration, r.sink_iteration))
    return r.because is not None, sum(sizes), sizes, first, then, r.first_statement, r.then_statement


def _example(space: Space, names: Mapping[str, str], b: ViolatedDependence) -> Violation:
    """Return the least pair that is in the map and touches one element.

    Isl at times makes a map larger, where it projects strides and remainders out.
    """
    point = Point.of(space, b.first, b.then, b.map)
    ends = list(_ends(space, b, point))
    if not ends:
        met = reduce(isl.Map.union, (conflict(space, a, c) for a, c, _ in _pairs(space, b)))
        found = b.map.intersect(met)
        if found.is_empty():
            raise IslLimitExceeded(QUESTION)
        point = Point.of(space, b.first, b.then, found)
        ends = list(_ends(space, b, point))
    return iteration_text(space, names, point, min(ends, key=_end_rank), b.mentions)


@dataclass(frozen=True, slots=True)
class Point:
    """One pair of a map: the sizes by isl's names, and the iterations of both statements."""

    sizes: Mapping[str, int]
    first: tuple[int, ...]
    then: tuple[int, ...]

    @staticmethod
    def of(space: Space, first: str, then: str, found: isl.Map) -> Point:
        """Return the smallest pair of { first[iteration] -> then[iteration] }."""
        point, n, dims = lexmin_pair(found), len(space.nest.parameters), len(space.nest.statements[first].dims)
        return Point(dict(zip(space.nest.parameters, point[:n], strict=True)), point[n : n + dims], point[n + dims :])

    @property
    def rank(self) -> tuple[object, ...]:
        return sum(self.sizes.values()), tuple(self.sizes.values()), self.first, self.then


def iteration_text(
    space: Space, names: Mapping[str, str], point: Point, end: tuple[Access, Access, Kind], mentions: str = ""
) -> Violation:
    """Return the example at ``point`` in terms of the user.

    Variables in the user's values, and the sizes that matter.
    """
    a, c, kind = end
    s, t = space.nest.statements[a.statement], space.nest.statements[c.statement]
    mentioned = _mentioned(s, a) | _mentioned(t, c) | _words(mentions)
    sizes = {names[p]: v for p, v in point.sizes.items()}
    few = {names[p]: v for p, v in point.sizes.items() if p in mentioned}
    at = [constant_value(e, {**sizes, **s.counters(point.first)}) for e in a.subscripts]
    because = a.unknown if a.unknown is not None else c.unknown
    return Violation(a.array, kind, a.span, c.span, a.text, c.text, s.iteration_text(point.first, sizes),
                   t.iteration_text(point.then, sizes), few, a.statement, c.statement, because,
                   None if None in at else tuple(v for v in at if v is not None))  # fmt: skip


def lexmin_pair(found: isl.Map) -> tuple[int, ...]:
    """Return the parameters and both iterations of the smallest pair.

    Least sum of sizes, then sizes, then iterations, preferably none negative.
    """
    counts = [found.dim(side) for side in (isl.dim_type.param, isl.dim_type.in_, isl.dim_type.out)]
    flat = found.move_dims(isl.dim_type.in_, 0, isl.dim_type.param, 0, counts[0]).wrap().flatten()
    dims = [f"x{k}" for k in range(sum(counts))]
    total = " + ".join(dims[: counts[0]]) or "0"
    ranked = flat.apply(isl.Map(f"{{ [{', '.join(dims)}] -> [{', '.join([total, *dims])}] }}"))
    natural = " and ".join(f"{d} >= 0" for d in dims) or "true"
    small = ranked.intersect(isl.Set(f"{{ [{', '.join(['total', *dims])}] : {natural} }}"))
    chosen = ranked if small.is_empty() else small
    return min(_least(part) for part in chosen.get_basic_sets() if not part.is_empty())[1:]


def _least(part: isl.BasicSet) -> tuple[int, ...]:
    """Return the lexicographic minimum, any value where a dimension has none.

    (isl_set_lexmin gives void points at times.)
    """
    left, point = isl.Set.from_basic_set(part), []
    for k in range(left.dim(isl.dim_type.set)):
        least = left.dim_min_val(k)
        if not least.is_int():
            least = left.sample_point().get_coordinate_val(isl.dim_type.set, k)
        left = left.fix_val(isl.dim_type.set, k, least)
        point.append(least.to_python())
    return tuple(point)


def _ends(space: Space, b: ViolatedDependence, point: Point) -> Iterator[tuple[Access, Access, Kind]]:
    """Yield the pairs of accesses that make these two iterations depend on each other."""
    given = " and ".join(f"{p} = {v}" for p, v in point.sizes.items()) or "true"
    pair = f"{b.first}[{_commas(point.first)}] -> {b.then}[{_commas(point.then)}]"
    here = isl.Map(f"{space.prefix}{{ {pair} : {given} }}")
    return (end for end in _pairs(space, b) if not conflict(space, *end[:2]).intersect(here).is_empty())


def _pairs(space: Space, b: ViolatedDependence) -> Iterator[tuple[Access, Access, Kind]]:
    """Yield the pairs of accesses that may make iterations of the two statements depend on each other."""
    for a in space.accesses[b.first]:
        for c in space.accesses[b.then]:
            kind = kind_of(a, c)
            meant = a.array == b.array if b.array else a.array not in b.without
            if kind is None or b.kind not in (None, kind) or not meant:
                continue
            if b.reductions or a.reduces is None or a.reduces != c.reduces:
                yield a, c, kind


def _end_rank(end: tuple[Access, Access, Kind]) -> tuple[object, ...]:
    a, c, kind = end
    return (a.unknown or c.unknown) is not None, tuple(_DONE).index(kind)


def kind_of(a: Access, b: Access) -> Kind | None:
    """Return the kind of the dependence of ``b`` on an earlier ``a``, or None if both read or their arrays differ."""
    if a.array != b.array or not (a.write or b.write):
        return None
    return "output" if a.write and b.write else "flow" if a.write else "anti"


def _mentioned(s: Statement, a: Access) -> set[str]:
    counted = [f.source_value for f in s.loops if isinstance(f, Loop) and f.source_value is not None]
    used = {name(v) for v in names_in((*a.subscripts, *counted))}
    return _words(" ".join([s.domain, *(e for e in a.index if e is not None)])) | used


def _words(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", text))


def _at(point: Mapping[str, int]) -> str:
    return f"({assignments_text(point)})" if point else ""


def assignments_text(values: Mapping[str, int]) -> str:
    """Return the values by name, as in ``n=4, i=0``."""
    return ", ".join(f"{k}={v}" for k, v in values.items())


def _commas(values: tuple[int, ...]) -> str:
    return ", ".join(map(str, values))
