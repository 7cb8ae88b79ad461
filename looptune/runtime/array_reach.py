"""The elements that loops surely access at the sizes of a call, so that an array that is too short is refused before.

    for i in 0..n: x[2*i + 1]          ("for", "i", 0, "n", 1, (("at", "x", ("+", "int32", ("*", ...), 1)),))

Only the first and last iterations of loops are examined, with those between which a condition changes, and their
accesses really happen. So an array that is refused is too short; one that is too short only for another iteration in
the middle, or for one that depends on data, is not found.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple


class Reach(NamedTuple):
    """The first and the last element that is accessed, counted from the beginning of the array."""

    least: int
    most: int


class UnknownExtent(Exception):
    """The sizes do not determine the value of an expression."""


LOOKED_AT = 20_000
"""Accesses: then what was found is what there is."""
ENDS = 3
"""Loops in loops to run through at two iterations of each end; more are at one."""

OPERATIONS: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "min": min, "max": max, "&": operator.and_,
    "|": operator.or_, "^": operator.xor, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


def array_reaches(loops: Sequence[Any], sizes: Mapping[str, int]) -> dict[str, Reach]:
    """Return the elements that are surely accessed, for each array that has any."""
    found: dict[str, Reach] = {}
    for k, (name, at) in enumerate(_accesses(loops, dict(sizes), 0)):
        if k >= LOOKED_AT:
            break
        least, most = found.get(name, (at, at))
        found[name] = Reach(min(least, at), max(most, at))
    return found


def too_short_message(name: str, items: int, reach: Reach | None) -> str | None:
    """Return the message for an array that is shorter than the loops need."""
    if reach is None or 0 <= reach.least <= reach.most < items:
        return None
    if reach.least < 0:
        return f"{name} starts too late: at these sizes the loops access element {reach.least}"
    return f"{name} is too short: it has {items} elements, and at these sizes the loops access element {reach.most}"


def _accesses(body: Sequence[Any], env: dict[str, int], depth: int) -> Iterator[tuple[str, int]]:
    for kind, *parts in body:
        try:
            if kind == "at":
                name, offset = parts
                yield name, evaluate(offset, env)
            elif kind == "if":
                cond, then, other = parts
                yield from _accesses(then if evaluate(cond, env) else other, env, depth)
            else:
                var, lo, hi, step, inner = parts
                ends = _ends(evaluate(lo, env), evaluate(hi, env), step, depth)
                for value in sorted({*ends, *_changes(inner, var, ends, step, env)}, reverse=True):
                    yield from _accesses(inner, {**env, var: value}, depth + 1)
        except UnknownExtent:
            continue


def _changes(body: Sequence[Any], var: str, ends: Sequence[int], step: int, env: Mapping[str, int]) -> Iterator[int]:
    """Yield the iterations before and after which a comparison in the body, true at one end, is false at the other."""
    for compared in _comparisons(body) if len(ends) > 1 else ():
        first, last = ends[-1], ends[0]
        try:
            begins = evaluate(compared, {**env, var: first})
            if begins == evaluate(compared, {**env, var: last}):
                continue
            while last - first > step:
                middle = first + (last - first) // step // 2 * step
                same = evaluate(compared, {**env, var: middle}) == begins
                first, last = (middle, last) if same else (first, middle)
        except UnknownExtent:
            continue
        yield from (first, last)


def _comparisons(body: Sequence[Any]) -> Iterator[Any]:
    """Yield the parts of the conditions in a body that ``&&``, ``||`` and ``!`` join; ``<`` for ``==`` and ``!=``."""
    for kind, *parts in body:
        if kind == "for":
            yield from _comparisons(parts[-1])
        elif kind == "if":
            yield from _joined(parts[0])
            yield from _comparisons(parts[1])
            yield from _comparisons(parts[2])


def _joined(e: Any) -> Iterator[Any]:
    op = "" if isinstance(e, int | str) else e[0]
    if op in ("&&", "||", "!"):
        for part in e[2:]:
            yield from _joined(part)
    elif op in ("==", "!="):
        yield ("<", *e[1:])
    else:
        yield e


def _ends(lo: int, hi: int, step: int, depth: int) -> Sequence[int]:
    count = max(0, -(-(hi - lo) // step))
    last = lo + (count - 1) * step
    some = (lo, lo + step, last - step, last) if depth < ENDS else (lo, last)
    return sorted({v for v in some if lo <= v <= last}, reverse=True)


def evaluate(e: Any, env: Mapping[str, int]) -> int:
    """Return the value of an expression over ``env``.

    Raises UnknownExtent if it reads anything else, or does not fit its type.
    """
    if isinstance(e, int):
        return e
    if isinstance(e, str):
        if e not in env:
            raise UnknownExtent
        return env[e]
    op, dtype, *args = e
    return _fitting(_value(op, args, env), dtype)


def _value(op: str, args: Sequence[Any], env: Mapping[str, int]) -> int:
    if op == "?:":
        return evaluate(args[1] if evaluate(args[0], env) else args[2], env)
    if op in ("&&", "||"):
        first = bool(evaluate(args[0], env))
        return int(bool(evaluate(args[1], env)) if first == (op == "&&") else first)
    values = [evaluate(a, env) for a in args]
    if len(values) == 1:
        return {"cast": values[0], "-": -values[0], "!": int(not values[0]), "~": ~values[0]}[op]
    a, b = values
    if op in OPERATIONS:
        return int(OPERATIONS[op](a, b))
    if op in ("<<", ">>") and 0 <= b < 64:
        return a << b if op == "<<" else a >> b
    if op in ("/", "%") and b:
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return quotient if op == "/" else a - b * quotient
    raise UnknownExtent


def _fitting(value: int, dtype: str) -> int:
    """Return the value; raises UnknownExtent if it does not fit its type and hence wraps."""
    if not dtype:
        return value
    bits = int(dtype.removeprefix("u").removeprefix("int"))
    least, beyond = (0, 1 << bits) if dtype.startswith("u") else (-(1 << (bits - 1)), 1 << (bits - 1))
    if not least <= value < beyond:
        raise UnknownExtent
    return value
