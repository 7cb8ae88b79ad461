"""A tuned function, on any kind of device: its parameters, its table, and the check against the original loops."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from looptune.core.short_floats import SHORT_EPS
from looptune.deploy.runtime.arguments import Parameter, Shape, integer
from looptune.deploy.runtime.independent import independent
from looptune.deploy.runtime.lookup import Device, Match, look_up, warned
from looptune.deploy.runtime.row_arguments import Rows, check_overlaps
from looptune.runtime.array_reach import Reach, array_reaches, too_short_message
from looptune.runtime.c_program import NoReference, Text
from looptune.runtime.tolerance import NOTHING, RoundingEstimate, compare, perturb_by_ulp


class Mismatch(ArithmeticError):
    """A call left something else than the original loops do: the worst element, its error and the tolerance."""


class Plan(NamedTuple):
    """The launches of a version; on a GPU see ``BoundPlan``, on a CPU a function that makes the compiled function.

    ``wide``: arrays that are read 16 bytes at a time; ``wide_indices``: arrays may have more elements than 32 bits
    count.
    """

    launches: Callable[..., Any]
    wide: tuple[str, ...] = ()
    wide_indices: bool = False


class Tuned(NamedTuple):
    """What a module knows about its function.

    ``shapes``: a function from the integer parameters to the shapes of the arrays; ``signatures``: the types of each
    kernel's parameters; ``original``: the original loops, on NumPy arrays; ``accesses``: the elements that these
    access, see ``array_reach``; ``text``: the original C text, None if it cannot be called; ``large``: the plan for
    arrays with more elements than 32 bits count, "" where the default is one, or on a CPU; ``relative``: the errors
    that arrays of versions with rounded factors may have, see ``tolerance``.
    """

    name: str
    params: tuple[Parameter, ...]
    shapes: Callable[..., tuple[Shape, ...]]
    table: Sequence[Mapping[str, Any]]
    default: str
    plans: Mapping[str, Plan]
    signatures: Mapping[Any, tuple[str, ...]]
    original: Callable[..., None]
    accesses: Sequence[Any] = ()
    text: Text | None = None
    large: str = ""
    relative: Mapping[str, float] = NOTHING


class Function(ABC):
    """A tuned function; a call takes the integers, the floats and the arrays, each in C's order."""

    def __init__(self, tuned: Tuned) -> None:
        self.tuned = tuned
        self.arrays = tuple(p for p in tuned.params if p.array)
        self.integers = tuple(p for p in tuned.params if not p.array and "float" not in p.dtype)
        self.floats = tuple(p for p in tuned.params if not p.array and "float" in p.dtype)
        self.warned: set[str] = set()

    @abstractmethod
    def __call__(
        self, ints: tuple[Any, ...], floats: tuple[Any, ...], arrays: tuple[Any, ...], stream: Any = None
    ) -> None: ...

    @abstractmethod
    def device(self) -> Device:
        """Return the device on which a call runs."""

    @abstractmethod
    def copied(self, p: Parameter, array: Any, shape: Shape, stream: Any) -> np.ndarray:
        """Return the content of the array after all work has ended, on the host and in the declared shape."""

    def match(self, ints: tuple[Any, ...]) -> Match:
        """Return the version that a call with these sizes runs."""
        return self.look_up(self.device(), self.values(ints))

    def checked(
        self, ints: tuple[Any, ...], floats: tuple[Any, ...], arrays: tuple[Any, ...], stream: Any = None
    ) -> None:
        """Call the function, and the original loops on copies of its arrays. Raises Mismatch if they differ."""
        values = self.values(ints)
        shapes = self.shapes(values)
        before = [self.copied(p, a, s, stream) for p, a, s in zip(self.arrays, arrays, shapes, strict=True)]
        self(ints, floats, arrays, stream)
        after = [self.copied(p, a, s, stream) for p, a, s in zip(self.arrays, arrays, shapes, strict=True)]
        verify(self.tuned, values, tuple(map(float, floats)), before, after)

    def by_rows(
        self, ints: tuple[Any, ...], floats: tuple[Any, ...], arrays: tuple[Any, ...], stream: Any = None,
        *, check: bool = False,
    ) -> None:  # fmt: skip
        """Call the function with arrays or lists of rows for what is an array of pointers in C."""
        shapes = self.shapes(self.values(ints))
        given = dict(zip((p.name for p in self.arrays), arrays, strict=True))
        held = {
            p.name: Rows(p.name, given[p.name], p.dtype, shape, written=p.written)
            for p, shape in zip(self.arrays, shapes, strict=True)
            if p.rows and isinstance(given[p.name], np.ndarray | list | tuple)
        }
        check_overlaps(held, given, [p.name for p in self.arrays if p.written])
        given |= {name: rows.array for name, rows in held.items()}
        (self.checked if check else self)(ints, floats, tuple(given.values()), stream)
        for p in self.arrays:
            if p.written and p.name in held:
                held[p.name].write_back()

    def values(self, ints: tuple[Any, ...]) -> tuple[int, ...]:
        return tuple(integer(p, given) for p, given in zip(self.integers, ints, strict=True))

    def shapes(self, values: tuple[int, ...]) -> tuple[Shape, ...]:
        """Return the declared shapes. Raises ValueError for a negative extent."""
        shapes = self.tuned.shapes(*values)
        for p, shape in zip(self.arrays, shapes, strict=True):
            if any(n is not None and n < 0 for n in shape):
                raise ValueError(f"{p.name} cannot have the shape {list(shape)}: no extent is negative")
        return shapes

    def reach(self, values: tuple[int, ...]) -> tuple[Reach | None, ...]:
        """Return the accessed range of each array at these sizes."""
        found = array_reaches(self.tuned.accesses, self.named(values))
        return tuple(found.get(p.name) for p in self.arrays)

    def check_memory(self, reach: Sequence[Reach | None], places: Sequence[tuple[int, int]]) -> None:
        """Check extents and overlaps; ``places`` are the address and the number of items of each array.

        ValueError where one is too short for the loops, and where one that is written overlaps another.
        """
        ends = []
        for p, mine, (start, items) in zip(self.arrays, reach, places, strict=True):
            wrong = too_short_message(p.name, items, mine)
            if wrong is not None:
                raise ValueError(wrong)
            ends.append((start, start + items * np.dtype(p.dtype).itemsize, p))
        for k, (start, end, p) in enumerate(ends):
            for first, last, q in ends[:k]:
                if (p.written or q.written) and max(start, first) < min(end, last):
                    one, other = (p, q) if p.written else (q, p)
                    raise ValueError(f"{one.name}, which is written, overlaps {other.name}: pass a copy of one of them")

    def look_up(self, device: Device, values: tuple[int, ...]) -> Match:
        return look_up(self.tuned.table, self.tuned.default, device, self.named(values))

    def named(self, values: tuple[int, ...]) -> dict[str, int]:
        return dict(zip((p.name for p in self.integers), values, strict=True))

    def warn(self, match: Match, device: Device, values: tuple[int, ...], depth: int) -> None:
        """Warn if the match is not exact; ``depth`` is the number of calls from the user's call to this one."""
        warned(self.tuned.name, match, device, self.named(values), self.warned, depth + 1)

    def warn_of_failure(self, error: BaseException, values: tuple[int, ...], depth: int) -> None:
        """Warn, once for each error, that kernels for these sizes could not be compiled; ``depth`` as for ``warn``."""
        said = f"{type(error).__name__}: {error}".splitlines()[0]
        if said not in self.warned:
            self.warned.add(said)
            sizes = ", ".join(f"{name}={value}" for name, value in self.named(values).items())
            warnings.warn(f"{self.tuned.name} runs kernels for any sizes, because those for {sizes} could not be "
                          f"compiled: {said}", stacklevel=depth + 1)  # fmt: skip


def in_order(
    params: Iterable[Parameter], ints: Iterable[Any], floats: Iterable[Any], arrays: Iterable[Any]
) -> list[Any]:
    """Put the arguments of a call into C's order."""
    whole, real, held = iter(ints), iter(floats), iter(arrays)
    return [next(held if p.array else real if "float" in p.dtype else whole) for p in params]


def as_compiled(arrays: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """Yield the arrays as code takes them that Numba compiles for a CPU: a float of 16 bits is these."""
    return (a.view(np.uint16) if a.dtype.name in SHORT_EPS else a for a in arrays)


def verify(
    tuned: Tuned,
    sizes: Sequence[int],
    floats: Sequence[float],
    before: Sequence[np.ndarray],
    after: Sequence[np.ndarray],
) -> None:
    """Run the original text on ``before``; Mismatch where ``after`` is farther from that than rounding explains.

    A warning says so where there is no compiler for it, and looptune's own loops are run in its place.
    """
    names = [p.name for p in tuned.params if p.array]
    written = {p.name for p in tuned.params if p.written}
    scalars = [p for p in tuned.params if not p.array]
    whole_names = [p.name for p in scalars if "float" not in p.dtype]
    real_names = [p.name for p in scalars if "float" in p.dtype]

    def left(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        try:
            values = {**dict(zip(whole_names, sizes, strict=True)), **dict(zip(real_names, floats, strict=True))}
            return independent(tuned.text, arrays, values, [name for name in names if name in written])
        except (NoReference, OSError) as why:
            warnings.warn(f"{tuned.name} is not verified independently: {why}; it is compared with loops that "
                          "looptune made", stacklevel=5)  # fmt: skip
        own = {name: a.copy() for name, a in arrays.items()}
        tuned.original(*in_order(tuned.params, sizes, floats, as_compiled(own.values())))
        return {name: own[name] for name in names if name in written}

    given = dict(zip(names, before, strict=True))
    expected = left(given)
    got = {name: a for name, a in zip(names, after, strict=True) if name in written}
    terms = max((1, *sizes))
    if compare(expected, got, terms=terms, relative=tuned.relative) is None:
        return
    doubt = RoundingEstimate(left(perturb_by_ulp(given, 0)), {})
    wrong = compare(expected, got, terms=terms, doubt=doubt, relative=tuned.relative)
    if wrong is not None:
        raise Mismatch(f"{tuned.name} differs from what the original loops compute: {wrong}")
