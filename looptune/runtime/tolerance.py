"""The tolerance of an element, and the first element that exceeds it.

    |got - expected|  <=  c sqrt(K) eps (|expected| + median |expected|)      each element; K: length of the reductions

eps is that of the array's dtype, so that a reordered sum of K terms passes (its error grows like sqrt(K) eps) and a
missing term does not. A float of 16 bits is a float that was rounded when it was stored: eps is that of float32, and 4
eps of its own type are added; sums that round to 16 bits after each term are never reordered. Integers must be equal.
NaN and Inf must be where the reference has them, and nowhere else.

``looptune build`` writes a copy of this module into the modules that it makes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from looptune.core.short_floats import SHORT_EPS, is_float

NOTHING: Mapping[str, float] = MappingProxyType({})
PIECE = 1 << 17
"""So many elements are worked on at once: they stay in a core's cache."""
# Two float sums of K random terms differ by about 0.5 sqrt(K) eps (one sigma); over 10^7 elements the largest is near
# 3 sqrt(K) eps. A single missing term, 1/K of the value, stays visible up to K of about 6000 in float32.
_C = 4.0
# The handful of operations of a statement without a reduction: fused multiply-add and a few ulp of division or sqrt.
_FEWEST_TERMS = 16
# Another order of operations has rounding errors of its own, of the size of the original's.
_MARGIN = 4.0


def compare(
    expected: Mapping[str, np.ndarray],
    got: Mapping[str, np.ndarray],
    *,
    terms: int,
    doubt: RoundingEstimate | None = None,
    relative: Mapping[str, float] = NOTHING,
) -> str | None:
    """Return None if ``got`` is within the tolerance, else a message about the worst element of the first bad array.

    ``terms`` is the longest chain of additions behind an element; ``doubt`` is the rounding error of the reference
    itself; ``relative``: see ``tolerance``.
    """
    for name, want in expected.items():
        if name not in got:
            return f"{name}: no result"
        have = got[name]
        if have.shape != want.shape or have.dtype != want.dtype:
            return f"{name}: got {have.dtype}{list(have.shape)}, expected {want.dtype}{list(want.shape)}"
        if is_float(want.dtype):
            off = _compare_float(name, want, have, tolerance(name, want, terms, doubt, relative))
        else:
            off = _compare_exact(name, want, have)
        if off is not None:
            return off
    return None


class RoundingEstimate(NamedTuple):
    """An estimate of the rounding errors of the original loops, from more runs of them.

    ``moved`` has the results for data that differ by one rounding: an ill-conditioned problem moves far, and unevenly,
    so 4 times the largest shift in an array is allowed everywhere in it. ``contracted`` has those of the same loops
    with products contracted with sums, or each rounded if they are contracted usually, which rounds otherwise in every
    step: a recurrence gathers more errors than its data have. ``reordered`` has those of the same loops with sums in
    another order, as versions have. Both are treated as ``moved``. ``wider`` has the results in float64 of what is
    float32, and hence the original's own rounding errors. Allowed are 4 times an element's own error, and 4 times the
    largest relative error in the larger half of the array: which element a long sum affects depends on its order.
    """

    moved: Mapping[str, np.ndarray]
    wider: Mapping[str, np.ndarray] = MappingProxyType({})
    contracted: Mapping[str, np.ndarray] = MappingProxyType({})
    reordered: Mapping[str, np.ndarray] = MappingProxyType({})


def tolerance(
    name: str,
    expected: np.ndarray,
    terms: int,
    doubt: RoundingEstimate | None = None,
    relative: Mapping[str, float] = NOTHING,
) -> np.ndarray:
    """Return the allowed error of each element, as float64 of the shape of ``expected``.

    ``relative``: the errors that the user allows in arrays, relative to an element and the median of its array, since
    factors of products are rounded to fewer bits.
    """
    scale = _median(expected)
    short = SHORT_EPS.get(expected.dtype.name, 0.0)
    computed = np.dtype(np.float32) if short else expected.dtype
    usual = _C * np.sqrt(max(terms, _FEWEST_TERMS)) * float(np.finfo(computed).eps) + _C * short
    least = 0.0
    for other in () if doubt is None else (doubt.moved, doubt.contracted, doubt.reordered):
        if name in other:
            least = max(least, _MARGIN * _largest(_pieces(expected, other[name]), _error))
    allowed = np.empty(expected.shape)
    factor = max(usual, relative.get(name, 0.0))
    for part, want in _pieces(allowed, expected):
        np.maximum(factor * (_magnitude(want) + scale), least, out=part)
    if doubt is not None and name in doubt.wider:
        wider = doubt.wider[name]
        worst = _largest(_pieces(expected, wider), lambda want, exact: _share(want, exact, scale))
        for part, want, exact in _pieces(allowed, expected, wider):
            np.maximum(part, _MARGIN * np.maximum(_error(want, exact), worst * _magnitude(want)), out=part)
    return allowed


def _magnitude(values: np.ndarray) -> np.ndarray:
    """Return the absolute values as float64, 0 where one is not finite."""
    found: np.ndarray = np.abs(np.where(np.isfinite(values), values, 0).astype(np.float64))
    return found


def _median(values: np.ndarray) -> float:
    """Return the median of the magnitudes that are not 0, 0 without any."""
    found = np.concatenate([np.zeros(0), *(m[m > 0] for (part,) in _pieces(values) for m in (_magnitude(part),))])
    return float(np.median(found, overwrite_input=True)) if found.size else 0.0


def _share(expected: np.ndarray, exact: np.ndarray, scale: float) -> np.ndarray:
    """Return the relative errors of the elements that are not small."""
    size = _magnitude(expected)
    large = (size >= scale) & (size > 0)
    found: np.ndarray = _error(expected, exact)[large] / size[large]
    return found


def _largest(parts: Iterable[Sequence[np.ndarray]], values: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> float:
    return max((float(np.max(values(a, b), initial=0.0)) for a, b in parts), default=0.0)


def _pieces(*arrays: np.ndarray) -> Iterator[list[np.ndarray]]:
    """Yield pieces of arrays of the same size, as views where the arrays are contiguous."""
    flat = [a.reshape(-1) for a in arrays]
    for start in range(0, flat[0].size, PIECE):
        yield [a[start : start + PIECE] for a in flat]


def widening(expected: Mapping[str, np.ndarray], terms: int, doubt: RoundingEstimate | None) -> str:
    """Return which arrays are allowed more than rounding usually takes, with the largest error allowed, or ""."""
    found = []
    for name, want in expected.items():
        if doubt is not None and is_float(want.dtype) and want.size:
            usual, allowed = tolerance(name, want, terms), tolerance(name, want, terms, doubt)
            if (allowed > usual).any():
                found.append(f"{name} {float(allowed.max()):.2g}")
    return ", ".join(found)


def relative_error(exact: np.ndarray, got: np.ndarray) -> float:
    """Return the largest error of an element, relative to it and the median of the array; 0 where one is not finite."""
    scale = _median(exact) or 1.0
    return _largest(_pieces(exact, got), lambda want, have: _error(want, have) / (_magnitude(want) + scale))


def _error(expected: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the difference of two results, 0 where one is not finite."""
    with np.errstate(invalid="ignore"):
        error = np.abs(expected.astype(np.float64) - other.astype(np.float64))
    return np.where(np.isfinite(error), error, 0.0)


def perturb_by_ulp(arrays: Mapping[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
    """Return copies in which every float is the next one up or down: data within rounding of the original.

    A float of 16 bits keeps its value: the next one is farther away than the rounding errors of what is computed.
    How far results move is how far they mean anything: problems may be ill conditioned, as the linearly dependent
    columns are that PolyBench has orthogonalised.
    """
    rng = np.random.default_rng(seed)
    moved = {}
    for name, array in arrays.items():
        moved[name] = array.copy()
        if is_float(array.dtype) and array.dtype.name not in SHORT_EPS:
            flat = moved[name].reshape(-1)
            for part in (flat[k : k + PIECE] for k in range(0, flat.size, PIECE)):
                end = np.where(rng.integers(0, 2, part.size, np.int8), np.inf, -np.inf).astype(array.dtype)
                np.nextafter(part, end, out=part)
    return moved


def _compare_exact(name: str, want: np.ndarray, have: np.ndarray) -> str | None:
    wrong = want != have
    if not wrong.any():
        return None
    at = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    return f"{_element(name, at)}: got {have[at]}, expected {want[at]} ({_count(wrong)})"


def _compare_float(name: str, want: np.ndarray, have: np.ndarray, allowed: np.ndarray) -> str | None:
    finite = np.isfinite(want)
    with np.errstate(invalid="ignore"):
        odd = np.where(finite, ~np.isfinite(have), ~((have == want) | (np.isnan(have) & np.isnan(want))))
    if odd.any():
        at = np.unravel_index(int(np.argmax(odd)), odd.shape)
        return f"{_element(name, at)}: got {have[at]}, expected {want[at]} ({_count(odd)})"
    error = np.abs(np.where(finite, have, 0).astype(np.float64) - np.where(finite, want, 0).astype(np.float64))
    wrong = error > allowed
    if not wrong.any():
        return None
    at = np.unravel_index(int(np.argmax(np.where(wrong, error - allowed, -1))), wrong.shape)
    return (
        f"{_element(name, at)}: got {float(have[at]):.9g}, expected {float(want[at]):.9g}, "
        f"error {error[at]:.3g}, tolerance {allowed[at]:.3g} ({_count(wrong)})"
    )


def _element(name: str, at: tuple[np.intp, ...]) -> str:
    return name + "".join(f"[{int(i)}]" for i in at)


def _count(wrong: np.ndarray) -> str:
    return f"{int(wrong.sum())} of {wrong.size} elements"
