"""Is what a version computed what the original loop computes?

    |got - expected|  <=  c sqrt(K) eps (|expected| + median |expected|)      each element; K: length of the reductions

eps is that of the array's dtype, so reordering a sum of K terms passes (its error grows like sqrt(K) eps) and a missing
term does not. Integers must be equal. NaN and Inf must be where the original has them, and nowhere else. Inputs
are random with a fixed seed for each array; canaries around an array show writes outside of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from zlib import crc32

import numpy as np

from looptune.errors import UsageError
from looptune.ir import Array, Call, Cast, Codelet, Const, Load, Local, Node, Scalar, Var
from looptune.rewrite import rewrite, substitute

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
    doubt: Doubt | None = None,
) -> str | None:
    """None where every array of ``expected`` is met, else the worst element of the first array that is not.

    ``terms`` is the longest chain of additions behind an element; ``doubt`` says where the original itself is off.
    """
    for name, want in expected.items():
        if name not in got:
            return f"{name}: no result"
        have = got[name]
        if have.shape != want.shape or have.dtype != want.dtype:
            return f"{name}: got {have.dtype}{list(have.shape)}, expected {want.dtype}{list(want.shape)}"
        if want.dtype.kind == "f":
            off = _compare_float(name, want, have, tolerance(name, want, terms, doubt))
        else:
            off = _compare_exact(name, want, have)
        if off is not None:
            return off
    return None


@dataclass(frozen=True, slots=True)
class Doubt:
    """The original loops run twice more, to see how much of a difference from them means nothing.

    ``moved`` has the results for data that differ by one rounding: an ill-conditioned problem moves far, and unevenly,
    so 4 times the largest shift in an array is allowed everywhere in it. ``wider`` has the results in float64 of what
    is float32, and with them the original's own rounding errors. Allowed are 4 times an element's own, and 4 times the
    largest relative one in the larger half of the array: which element a long sum hurts depends on its order.
    """

    moved: Mapping[str, np.ndarray]
    wider: Mapping[str, np.ndarray]


def tolerance(name: str, expected: np.ndarray, terms: int, doubt: Doubt | None = None) -> np.ndarray:
    """The error allowed for each element, float64, of ``expected``'s shape."""
    finite = np.abs(np.where(np.isfinite(expected), expected, 0).astype(np.float64))
    nonzero = finite[finite > 0]
    scale = float(np.median(nonzero)) if nonzero.size else 0.0
    relative = _C * np.sqrt(max(terms, _FEWEST_TERMS)) * float(np.finfo(expected.dtype).eps)
    allowed = relative * (finite + scale)
    if doubt is not None and name in doubt.moved:
        allowed = np.maximum(allowed, _MARGIN * np.max(_error(expected, doubt.moved[name]), initial=0.0))
    if doubt is not None and name in doubt.wider:
        error = _error(expected, doubt.wider[name])
        large = (finite >= scale) & (finite > 0)
        worst = float(np.max(error[large] / finite[large])) if large.any() else 0.0
        allowed = np.maximum(allowed, _MARGIN * np.maximum(error, worst * finite))
    return allowed


def _error(expected: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The difference of two results, 0 where one is not finite."""
    with np.errstate(invalid="ignore"):
        error = np.abs(expected.astype(np.float64) - other.astype(np.float64))
    return np.where(np.isfinite(error), error, 0.0)


@dataclass(slots=True)
class Judge:
    """``compare`` with one ``expected`` for many results: where all is well, one pass over each array.

    ``doubt`` is asked for when a result first fails, for it costs two more runs of the original loops; from then on
    results are compared with what it allows.
    """

    expected: Mapping[str, np.ndarray]
    terms: int
    doubt: Callable[[], Doubt]
    _known: Doubt | None = field(default=None, init=False)
    _allowed: dict[str, np.ndarray] = field(default_factory=dict, init=False)

    def wrong(self, got: Mapping[str, np.ndarray]) -> str | None:
        suspect = self._suspect(got)
        if suspect and self._known is None:
            self._known, self._allowed = self.doubt(), {}
            suspect = self._suspect(got)
        return compare(suspect, got, terms=self.terms, doubt=self._known) if suspect else None

    def _suspect(self, got: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {name: want for name, want in self.expected.items() if not self._passes(name, want, got.get(name))}

    def _passes(self, name: str, want: np.ndarray, have: np.ndarray | None) -> bool:
        """Surely right; anything that is not finite is for ``compare`` to look at."""
        if have is None or have.shape != want.shape or have.dtype != want.dtype:
            return False
        if want.dtype.kind != "f":
            return bool(np.array_equal(want, have))
        with np.errstate(invalid="ignore"):
            return bool((np.abs(have - want) <= self.allowed(name)).all())

    def allowed(self, name: str) -> np.ndarray:
        """The error that each element may surely have, in the type of the array."""
        if name not in self._allowed:
            want = self.expected[name]
            self._allowed[name] = tolerance(name, want, self.terms, self._known).astype(want.dtype)
        return self._allowed[name]


def nudged(arrays: Mapping[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
    """Copies in which every float is the next one up or down: data that nobody could tell from the original.

    How far results move is how far they mean anything: problems may be ill conditioned, as the linearly dependent
    columns are that PolyBench has orthogonalised.
    """
    rng = np.random.default_rng(seed)
    moved = {}
    for name, array in arrays.items():
        if array.dtype.kind == "f":
            moved[name] = np.nextafter(array, rng.choice([-np.inf, np.inf], array.shape).astype(array.dtype))
        else:
            moved[name] = array.copy()
    return moved


def widened(codelet: Codelet) -> Codelet:
    """The same loops with float64 for float32; constants keep the values they had."""

    def rule(n: Node) -> Node | None:
        match n:
            case Const(value, "float32"):
                return replace(n, value=float(np.float32(value)), dtype="float64")
            case Var() | Load() | Call() | Cast() | Array() | Scalar() | Local() if n.dtype == "float32":
                return replace(n, dtype="float64")
        return None

    return rewrite(rule, codelet)


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
        f"{_element(name, at)}: got {have[at]:.9g}, expected {want[at]:.9g}, "
        f"error {error[at]:.3g}, tolerance {allowed[at]:.3g} ({_count(wrong)})"
    )


def _element(name: str, at: tuple[np.intp, ...]) -> str:
    return name + "".join(f"[{int(i)}]" for i in at)


def _count(wrong: np.ndarray) -> str:
    return f"{int(wrong.sum())} of {wrong.size} elements"


@dataclass(frozen=True, slots=True)
class Padded:
    """``whole`` is one-dimensional: canary, the array's elements, canary; ``view`` is the array inside it."""

    whole: np.ndarray
    view: np.ndarray
    pad: int

    def check(self, whole: np.ndarray | None = None) -> str | None:
        """None where the canaries of ``whole`` (a copy brought back from a device) are untouched."""
        held = self.whole if whole is None else whole
        after = self.pad + self.view.size
        return self.check_ends(held[: self.pad], held[after : after + self.pad])

    def check_ends(self, before: np.ndarray, after: np.ndarray) -> str | None:
        """As ``check``, of the canaries alone."""
        for side, canary in (("before", before), ("after", after)):
            touched = np.flatnonzero(_bits(canary) != _bits(_canary(1, canary.dtype)))
            if touched.size:
                nearest = self.pad - int(touched[-1]) if side == "before" else int(touched[0]) + 1
                return f"{touched.size} elements written {side} the array, the nearest {nearest} outside of it"
        return None


def padded(array: np.ndarray, pad: int = 64) -> Padded:
    """A copy of ``array`` with ``pad`` canaries on both sides; 64 keep the alignment that vector loads need.

    A float canary is NaN, so that a version which reads outside the array cannot verify either.
    """
    whole = _canary(array.size + 2 * pad, array.dtype)
    view = whole[pad : pad + array.size].reshape(array.shape)
    view[...] = array
    return Padded(whole, view, pad)


def _canary(count: int, dtype: np.dtype) -> np.ndarray:
    pattern = 0xFF if dtype.kind == "f" else 0xA5
    return np.full(count * dtype.itemsize, pattern, dtype=np.uint8).view(dtype)


def _bits(array: np.ndarray) -> np.ndarray:
    return array.view(f"u{array.dtype.itemsize}")


def inputs(
    codelet: Codelet,
    values: Mapping[str, int | float],
    seed: int,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> dict[str, np.ndarray]:
    """Random contents for every array parameter, those only written too; the same for a name, shape and seed always.

    Floats are uniform in [0.5, 1.5): no zeros, nothing constant, sums without cancellation. Square float matrices have
    2 n added on the diagonal, so that factorisations and solvers stay stable. Integers are uniform in 1 .. 9.
    ``values`` are the scalar parameters; ``shapes`` gives the arrays whose extents the C text does not declare.
    """
    given = {} if shapes is None else shapes
    arrays = [p for p in codelet.params if isinstance(p, Array)]
    return {a.name: _fill(a, given[a.name] if a.name in given else extents(a, values), seed) for a in arrays}


def extents(array: Array, values: Mapping[str, int | float]) -> tuple[int, ...]:
    """The array's shape for these sizes. UsageError where an extent is not declared, unknown or negative."""
    sizes = {name: Const(int(value)) for name, value in values.items() if float(value).is_integer()}
    shape = []
    for extent in array.shape:
        if extent is None:
            raise UsageError(f"the extent of {array.name} is not declared: give its shape", array.span)
        match substitute(extent, sizes):
            case Const(int(value)) if value >= 0:
                shape.append(value)
            case Const(value):
                raise UsageError(f"an extent of {array.name} is {value}", extent.span)
            case _:
                raise UsageError(f"an extent of {array.name} depends on a size that has no value", extent.span)
    return tuple(shape)


def _fill(array: Array, shape: tuple[int, ...], seed: int) -> np.ndarray:
    rng = np.random.default_rng((seed, crc32(array.name.encode())))
    dtype = np.dtype(array.dtype)
    if dtype.kind != "f":
        return rng.integers(1, 10, size=shape).astype(dtype)
    filled = rng.uniform(0.5, 1.5, size=shape)
    if len(shape) == 2 and shape[0] == shape[1]:
        filled[np.diag_indices(shape[0])] += 2.0 * shape[0]
    return filled.astype(dtype)
