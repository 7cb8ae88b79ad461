"""Verify that a version computed what the original loops compute.

The allowed error of an element is defined in ``tolerance``. Inputs are random with a fixed seed for each array;
canaries around an array show writes outside of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from zlib import crc32

import numpy as np

from looptune.core.errors import UsageError
from looptune.core.short_floats import is_float
from looptune.ir.nodes import Array, Call, Cast, Codelet, Const, Load, Local, Node, Scalar, Var
from looptune.ir.rewrite import rewrite, substitute
from looptune.runtime.tolerance import NOTHING, RoundingEstimate, compare, relative_error, tolerance, widening

OUTSIDE = "outside of it"
"""What the message about a write beside an array ends with."""


@dataclass(slots=True)
class ReferenceComparison:
    """The comparison of many results with one ``expected``; a correct result takes one pass over each array.

    ``doubt`` is called when a result first fails, since it costs up to three more runs of the original loops; from
    then on results are compared with the tolerance that it allows. ``first``, if given, is called before it: it has an
    estimate from fewer runs, which allows less and may suffice. ``against``: what ran the original loops, "" if that
    was nothing independent of what is judged. ``widened``: which arrays are allowed more than usual rounding errors.
    """

    expected: Mapping[str, np.ndarray]
    terms: int
    doubt: Callable[[], RoundingEstimate]
    against: str = ""
    first: Callable[[], RoundingEstimate] | None = None
    widened: str = field(default="", init=False)
    _known: RoundingEstimate | None = field(default=None, init=False)
    _left: list[Callable[[], RoundingEstimate]] = field(init=False)
    _allowed: dict[str, np.ndarray] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._left = [self.doubt] if self.first is None else [self.first, self.doubt]

    def wrong(self, got: Mapping[str, np.ndarray], relative: Mapping[str, float] = NOTHING) -> str | None:
        """Return what is wrong with a result, or None; ``relative``: errors that the user allows, by array.

        See ``tolerance``.
        """
        suspect = self._suspect(got, relative)
        while suspect and self._left:
            self._known, self._allowed = self._left.pop(0)(), {}
            self.widened = widening(self.expected, self.terms, self._known)
            suspect = self._suspect(got, relative)
        return compare(suspect, got, terms=self.terms, doubt=self._known, relative=relative) if suspect else None

    def error(self, got: Mapping[str, np.ndarray]) -> float | None:
        """Return the largest error of a result, as ``tolerance`` relates it; None without floats to compare with."""
        pairs = [(want, got[name]) for name, want in self.expected.items() if is_float(want.dtype)]
        return max((relative_error(want, have) for want, have in pairs), default=None)

    def errors(self, got: Mapping[str, np.ndarray]) -> tuple[float, float] | None:
        """Return the largest error of a result, and that of the original loops with fused multiply-adds.

        Both are relative to the loops in double: to an element and the median of its array, as in ``tolerance``. None
        if these were not run.
        """
        if self._known is None or self._left:
            self._known, self._allowed = self.doubt(), {}
            self._left.clear()
        doubles = {name: a for name, a in self._known.wider.items() if is_float(a.dtype) and name in self.expected}
        pairs = [(a, got[name], self._known.contracted.get(name, self.expected[name])) for name, a in doubles.items()]
        if not pairs:
            return None
        own, loops = zip(*((relative_error(w, a), relative_error(w, b)) for w, a, b in pairs), strict=True)
        return max(own), max(loops)

    def _suspect(self, got: Mapping[str, np.ndarray], relative: Mapping[str, float]) -> dict[str, np.ndarray]:
        return {
            name: want for name, want in self.expected.items() if not self._passes(name, want, got.get(name), relative)
        }

    def _passes(self, name: str, want: np.ndarray, have: np.ndarray | None, relative: Mapping[str, float]) -> bool:
        """Surely right; anything that is not finite is for ``compare`` to look at."""
        if have is None or have.shape != want.shape or have.dtype != want.dtype:
            return False
        if not is_float(want.dtype):
            return bool(np.array_equal(want, have))
        with np.errstate(invalid="ignore"):
            allowed = (
                tolerance(name, want, self.terms, self._known, relative) if name in relative else self.allowed(name)
            )
            return bool((np.abs(have - want) <= allowed).all())

    def allowed(self, name: str) -> np.ndarray:
        """Return the error that each element may have in any case, in the type of the array."""
        if name not in self._allowed:
            want = self.expected[name]
            self._allowed[name] = tolerance(name, want, self.terms, self._known).astype(want.dtype)
        return self._allowed[name]


def in_double(codelet: Codelet) -> Codelet:
    """Return the same loops with float64 for float32; constants keep their values."""

    def rule(n: Node) -> Node | None:
        match n:
            case Const(value, "float32"):
                return replace(n, value=float(np.float32(value)), dtype="float64")
            case Var() | Load() | Call() | Cast() | Array() | Scalar() | Local() if n.dtype == "float32":
                return replace(n, dtype="float64")
        return None

    return rewrite(rule, codelet)


@dataclass(frozen=True, slots=True)
class CanaryArray:
    """An array between canaries; ``buffer`` is one-dimensional, ``view`` is the array inside it."""

    buffer: np.ndarray
    view: np.ndarray
    pad: int

    def check(self, whole: np.ndarray | None = None) -> str | None:
        """Return None if the canaries are untouched, else a message.

        ``whole``: a copy of ``buffer`` brought back from a device.
        """
        held = self.buffer if whole is None else whole
        after = self.pad + self.view.size
        return self.check_ends(held[: self.pad], held[after : after + self.pad])

    def check_ends(self, before: np.ndarray, after: np.ndarray) -> str | None:
        """Return None if the canaries ``before`` and ``after`` the array are untouched, else a message."""
        for side, canary in (("before", before), ("after", after)):
            touched = np.flatnonzero(_bits(canary) != _bits(_canary(1, canary.dtype)))
            if touched.size:
                nearest = self.pad - int(touched[-1]) if side == "before" else int(touched[0]) + 1
                return f"{touched.size} elements written {side} the array, the nearest {nearest} {OUTSIDE}"
        return None


def with_canaries(array: np.ndarray, pad: int = 64) -> CanaryArray:
    """Return a copy of ``array`` with ``pad`` canaries on both sides; 64 preserve the alignment that vector loads need.

    A float canary is NaN, so that a version which reads outside the array cannot verify either.
    """
    whole = _canary(array.size + 2 * pad, array.dtype)
    view = whole[pad : pad + array.size].reshape(array.shape)
    view[...] = array
    return CanaryArray(whole, view, pad)


def _canary(count: int, dtype: np.dtype) -> np.ndarray:
    pattern = 0xFF if is_float(dtype) else 0xA5
    return np.full(count * dtype.itemsize, pattern, dtype=np.uint8).view(dtype)


def _bits(array: np.ndarray) -> np.ndarray:
    return array.view(f"u{array.dtype.itemsize}")


def inputs(
    codelet: Codelet,
    values: Mapping[str, int | float],
    seed: int,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> dict[str, np.ndarray]:
    """Return random contents for every array parameter; they depend only on the name, the shape and the seed.

    Floats are uniform in [0.5, 1.5): no zeros, nothing constant, sums without cancellation. Square float matrices have
    2 n added on the diagonal, so that factorisations and solvers stay stable; those of float16 have not, as their
    products would exceed its largest number. Integers are uniform in 1 .. 9.
    ``values`` are the scalar parameters; ``shapes`` gives the arrays whose extents the C text does not declare.
    """
    given = {} if shapes is None else shapes
    arrays = [p for p in codelet.params if isinstance(p, Array)]
    reached = [given[a.name] if a.name in given else extents(a, values) for a in arrays]
    with ThreadPoolExecutor(max(1, len(arrays))) as threads:  # NumPy fills arrays beside each other
        filled = threads.map(lambda a, shape: _fill(a, shape, seed), arrays, reached)
        return {a.name: contents for a, contents in zip(arrays, filled, strict=True)}


def extents(array: Array, values: Mapping[str, int | float]) -> tuple[int, ...]:
    """Return the array's shape for these sizes. Raises UsageError if an extent is not declared, unknown or negative."""
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
    """Fill the array piece by piece: numbers of 64 bits for all of it would take several times its memory."""
    rng = np.random.default_rng((seed, crc32(array.name.encode())))
    filled = np.empty(shape, np.dtype(array.dtype))
    flat, stable = filled.reshape(-1), len(shape) == 2 and shape[0] == shape[1] and array.dtype != "float16"
    for first in range(0, flat.size, PIECE):
        part = flat[first : first + PIECE]
        if not is_float(filled.dtype):
            part[...] = rng.integers(1, 10, size=part.size)
            continue
        numbers = rng.uniform(0.5, 1.5, size=part.size)
        if stable:
            numbers[-first % (shape[0] + 1) :: shape[0] + 1] += 2.0 * shape[0]
        part[...] = numbers
    return filled


PIECE = 1 << 17
"""So many elements are filled at once: their numbers stay in a core's cache."""
