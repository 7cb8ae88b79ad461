"""The library: ``looptune.compile`` turns a C loop nest into a callable.

kernel = looptune.compile("gemm.c", directives=["loop k: unroll 4, split, guarded"])
kernel(ni, nj, nk, alpha, beta, C, A, B)          # C's parameters in C's order; arrays updated in place
"""

from __future__ import annotations

import inspect
import math
import operator
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from looptune.backends.base import Program
from looptune.core.errors import UsageError
from looptune.core.floating_point import DEFAULT, Floats, floats_of_options
from looptune.core.renamed import renamed_argument
from looptune.core.settings import DATABASE, Objective
from looptune.core.short_floats import type_of
from looptune.deploy import any_size_program, display
from looptune.deploy.any_size_program import shape_of
from looptune.deploy.best_kernel import BestKernel, SelectedPlan, Specialize
from looptune.deploy.best_versions import best_versions
from looptune.deploy.host_arrays import as_numpy, as_scalar, is_on_device
from looptune.deploy.runtime.arguments import elements_overlap, is_contiguous
from looptune.deploy.runtime.lookup import Device, Match
from looptune.deploy.runtime.row_arguments import Rows, check_overlaps
from looptune.frontend import Unit, load
from looptune.ir.nodes import Array, Codelet, Scalar
from looptune.ir.simplify import is_integer, wrap
from looptune.lower.passes.cpu_reassociation import vectorised_sums
from looptune.lower.pipeline import lower
from looptune.lower.plan import Plan, evaluate_size
from looptune.poly.reach_data import access_records
from looptune.runtime import targets
from looptune.runtime.array_reach import Reach, array_reaches, too_short_message
from looptune.runtime.device import Device as Machine
from looptune.runtime.device import on_gpu
from looptune.runtime.objective import objective_of
from looptune.runtime.problem_sizes import integers
from looptune.runtime.size_relations import check_relations
from looptune.runtime.targets import CACHE, Target
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import current_text, parse_lines, renamed_words
from looptune.schedule.suggest import schedule_with_suggestions
from looptune.tune.space.pragma_choices import check_choices_decided
from looptune.tune.store.store import Store

if TYPE_CHECKING:
    from looptune.schedule.apply import ScheduleResult


@dataclass(slots=True, repr=False)
class CompiledKernel:
    """A compiled codelet, called with the C function's parameters, in the C function's order or by name.

    ``source`` is the emitted module, ``directives`` what was applied as text, ``plan`` host steps and kernels, and
    ``asserted`` the directives that rest on the user's word (``assume``) and are not proved. Arrays
    are NumPy arrays, anything else with the buffer protocol or DLPack in the host's memory (torch tensors), or on a GPU
    anything with the CUDA Array Interface; they have the declared types and extents, none that is written overlaps
    another, and they are updated in place. Arrays of the host are copied to a GPU and back; a device array is never
    copied.

    ``reordered`` names the sums of floats that are added up in another order than C's, by a directive or in the vectors
    of a CPU. With ``config="best"`` it stays empty, and the database decides at each call's sizes what runs, and
    ``match`` says how well that fits: at first for the sizes known when it was compiled, then for those of the last
    call. None: it was not asked. ``rows`` are the parameters that are arrays of pointers in C: for these an array may
    be larger than the loops need, or a list of its rows.
    """

    codelet: Codelet
    source: str
    directives: str
    plan: Plan
    target: str
    _program: Program = field(repr=False)
    _machine: Machine = field(repr=False)
    match: Match | None = None
    reordered: tuple[str, ...] = ()
    _best: BestKernel | None = field(default=None, repr=False)
    rows: frozenset[str] = frozenset()
    _reached: dict[tuple[int, ...], dict[str, Reach]] = field(default_factory=dict, repr=False)

    @property
    def asserted(self) -> tuple[str, ...]:
        return self.plan.asserted

    @property
    def __signature__(self) -> inspect.Signature:
        return display.signature(self.codelet)

    def __repr__(self) -> str:
        return display.one_line(self.codelet, self.target, self.directives)

    def _repr_html_(self) -> str:
        """Return what a notebook shows of the kernel."""
        codelet, row = self.codelet, None if self.match is None else self.match.configuration
        if self._best is not None:
            codelet = scheduled_codelet(self._best.analysis, self.directives)
        return display.html(codelet, self.target, self.directives, row)

    def __call__(self, *args: Any, **named: Any) -> None:
        """Run the kernel. Raises UsageError if an argument does not fit its parameter."""
        params = self.codelet.params
        args = tuple(_given(p, a) for p, a in zip(params, self._bound(args, named), strict=True))
        scalars = {p.name: scalar(p, a) for p, a in zip(params, args, strict=True) if isinstance(p, Scalar)}
        given = {p.name: (p, a) for p, a in zip(params, args, strict=True) if isinstance(p, Array)}
        held_rows = self._rows(given, scalars)
        given |= {name: (given[name][0], rows.array) for name, rows in held_rows.items()}
        placed = {name: self._placed(p, a, scalars) for name, (p, a) in given.items()}
        _check_apart(tuple(given.values()))
        check_relations(self.codelet, scalars)
        self._check_reach(given, integers(self.codelet, scalars))
        if self._best is not None:
            self._take(self._best.at(integers(self.codelet, scalars)))
        self._program.run({name: held for name, (held, _) in placed.items()}, scalars)
        for name, (p, array) in given.items():
            held, copied = placed[name]
            if copied and p.io != "in":
                array[...] = self._machine.fetch(held).reshape(array.shape)
        for name, rows in held_rows.items():
            if given[name][0].io != "in":
                rows.write_back()

    def _bound(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the arguments in the order of the parameters."""
        names = [p.name for p in self.codelet.params]
        expected = f"{self.codelet.name} takes {len(names)} arguments ({', '.join(names)})"
        if len(args) > len(names):
            raise UsageError(f"{expected}, got {len(args) + len(named)}")
        found = dict(zip(names, args, strict=False))
        for name, value in named.items():
            if name in found or name not in names:
                raise UsageError(f"{expected}: {name} {'was given twice' if name in found else 'is none of them'}")
            found[name] = value
        missing = [name for name in names if name not in found]
        if missing:
            raise UsageError(f"{expected}, got {len(found)}: {', '.join(missing)} missing")
        return tuple(found[name] for name in names)

    def _rows(self, given: Mapping[str, tuple[Array, Any]], scalars: Mapping[str, int | float]) -> dict[str, Rows]:
        """Return the rows of what is an array of pointers in C. Raises UsageError if they do not fit or overlap."""
        try:
            held = {
                name: Rows(name, array, p.dtype, extents_of(p, scalars), written=p.io != "in")
                for name, (p, array) in given.items()
                if name in self.rows and isinstance(array, np.ndarray | list | tuple)
            }
            arrays = {name: array for name, (_, array) in given.items()}
            check_overlaps(held, arrays, [p.name for p, _ in given.values() if p.io != "in"])
        except (TypeError, ValueError) as error:
            raise UsageError(str(error)) from None
        return held

    def _check_reach(self, given: Mapping[str, tuple[Array, Any]], sizes: Mapping[str, int]) -> None:
        """Raise UsageError if an array lacks elements that the loops certainly access at these sizes."""
        key = tuple(sizes.values())
        if key not in self._reached:
            self._reached.clear()
            self._reached[key] = array_reaches(access_records(self.codelet), sizes)
        for name, (_, array) in given.items():
            wrong = too_short_message(name, math.prod(shape_of(array)), self._reached[key].get(name))
            if wrong is not None:
                raise UsageError(wrong)

    def _take(self, chosen: SelectedPlan) -> None:
        """Run this from now on."""
        self.match, self.plan, self._program = chosen.match, chosen.plan, chosen.program
        self.directives, self.source = chosen.plan.schedule_text, chosen.source

    def _placed(self, p: Array, array: Any, scalars: Mapping[str, int | float]) -> tuple[Any, bool]:
        """Return the array where the kernel can use it, and whether that is a copy."""
        device = getattr(array, "__cuda_array_interface__", None)
        if device is not None and on_gpu(self.target):
            own = type_of(device["typestr"])
            _check(p, tuple(device["shape"]), own, scalars)
            strides, item = device.get("strides"), own.itemsize
            if strides is not None and not is_contiguous(tuple(device["shape"]), tuple(strides), item):
                raise UsageError(f"{p.name} is a device array with gaps: pass a contiguous one")
            if p.io != "in" and device["data"][1]:
                raise UsageError(f"{p.name} is written, but the array given is read-only")
            return array, False
        if not isinstance(array, np.ndarray):
            where = ": it is not in the host's memory, copy it there" if is_on_device(array) else ""
            raise UsageError(f"{p.name} must be an array, got {type(array).__name__}{where}")
        if p.dtype == "bool" and array.dtype == np.uint8:
            if array.size and array.max() > 1:
                raise UsageError(f"{p.name} is an array of bool: its elements are 0 and 1, not {array.max()}")
            array = array.view(np.bool_)
        _check(p, array.shape, array.dtype, scalars)
        if p.io != "in" and not array.flags.writeable:
            raise UsageError(f"{p.name} is written, but the array given is read-only")
        if p.io != "in" and elements_overlap(array):
            raise UsageError(f"{p.name} is written, but elements of the array given share memory: pass a copy")
        shaped = array.reshape(-1) if len(p.shape) == 1 else array
        if self.target != "numba-cpu":
            return self._machine.place(shaped), True
        direct = shaped.flags.c_contiguous and shaped.flags.writeable and np.shares_memory(shaped, array)
        return (shaped, False) if direct else (np.array(shaped, order="C"), True)


def _given(p: Array | Scalar, given: Any) -> Any:
    """Return an argument as a number, an array of NumPy or of a device, or a list of rows."""
    if isinstance(p, Scalar):
        return as_scalar(given)
    return _without_fields(p, as_numpy(p.name, given))


def _without_fields(p: Array | Scalar, given: Any) -> Any:
    """Return a structured or complex array as one of the parameter's type with a dimension more, in the same memory."""
    if not isinstance(given, np.ndarray) or not isinstance(p, Array):
        return given
    if given.dtype.names is None and given.dtype.kind != "c":
        return given
    size, item = given.dtype.itemsize, np.dtype(p.dtype).itemsize
    if size % item or not given.flags.c_contiguous:
        raise UsageError(f"{p.name} must be a contiguous array whose elements have a multiple of {item} bytes")
    return given.view(p.dtype).reshape(*given.shape, size // item)


def _check_apart(given: Sequence[tuple[Array, Any]]) -> None:
    """Raise UsageError if an array that is written shares memory with another array."""
    for p, a in given:
        other = next((q for q, b in given if p.io != "in" and q is not p and _overlap(a, b)), None)
        if other is not None:
            raise UsageError(f"{p.name}, which is written, overlaps {other.name}: pass a copy of one of them")


def _overlap(a: Any, b: Any) -> bool:
    """Return whether the two arrays have an element in common."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.shares_memory(a, b)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return False
    (start, end), (first, last) = _ends(a), _ends(b)
    return max(start, first) < min(end, last)


def _ends(array: Any) -> tuple[int, int]:
    """Return the addresses that a device array without gaps lies between."""
    facts = array.__cuda_array_interface__
    start = int(facts["data"][0])
    return start, start + math.prod(facts["shape"]) * type_of(facts["typestr"]).itemsize


@renamed_argument("strict_float", "reassociate", operator.not_)
def compile(
    path_or_source: str | Path,
    *,
    kernel: str | None = None,
    target: str = "auto",
    defines: Mapping[str, str | int | float | None] | None = None,
    include_dirs: Sequence[str | Path] = (),
    dtype: str | None = None,
    directives: str | Sequence[str] | None = None,
    config: str | None = None,
    db: str | Path = DATABASE,
    reassociate: bool = True,
    fp_contract: str | None = None,
    objective: str = "time",
    specialize: Specialize = True,
) -> CompiledKernel:
    """Return the codelet of a C file (or of C text: a string with a newline or a brace) as a callable.

    A group of codelets is one callable.

    ``kernel``: a function, an hmpp label or a group, where the file has several; ``defines``: macros, as with -D;
    ``dtype``: "float32" or "float64", in place of the floating-point type of the file; ``directives``: lines such as
    ``loop k: unroll 4, jam``, besides the pragmas in the text. ``config="best"``: what the database ``db`` has as the
    best for the sizes of each call on this device, or on what comes nearest to them; see ``Kernel.match``. The best has
    the least time, or the least "energy" or "edp" (``objective``), if a sweep had this objective. On a GPU kernels have
    the sizes of the call (extents, bounds, strides) as constants: they are built at the first call with new sizes, in a
    thread while calls run a program for any sizes (``specialize="background"``), or not at all (False).
    ``reassociate=False``: every operation of floats is rounded on its own and in C's order; ``fp_contract``: "cc",
    "fast" or "off", as for ``--fp-contract``. What the text has wrong and is read all the same is a warning. Raises a
    LooptuneError for every mistake.
    """
    if config not in (None, "best"):
        raise UsageError(f'config is "best" or None, not {config!r}')
    if config is not None and directives:
        raise UsageError('config="best" has its own directives: leave out directives=')
    decides = objective_of(objective)
    if specialize not in (True, False, "background"):
        raise UsageError(f'specialize is True, False or "background", not {specialize!r}')
    if config is None and decides != "time":
        raise UsageError(f'objective={objective!r} chooses among what was measured: it needs config="best"')
    floats = floats_of_options(strict=not reassociate, contract=fp_contract)
    unit = load(
        path_or_source,
        kernel=kernel,
        defines=defines if defines is not None else {},
        include_dirs=include_dirs,
        dtype=dtype,
    )
    for message in unit.warnings:
        warnings.warn(message, stacklevel=3)  # past renamed_argument
    for message in renamed_words(unit.codelet, _given_lines(directives)):
        warnings.warn(message, DeprecationWarning, stacklevel=3)
    made_for = targets.resolve(target, CACHE, floats=floats)
    if config is not None:
        return _best_kernel(unit, made_for, Path(db), floats, decides, specialize)
    done = scheduled(unit, directives, floats)
    backend, note = made_for.backend(), directive_lines(directives)
    planned = lower(done.codelet, note, done.asserted, blocks=made_for.specializes_sizes)
    machine = made_for.machine()
    binary = backend.build(planned)
    return CompiledKernel(
        done.codelet, binary.source, note, planned, made_for.name,
        any_size_program.load(backend, planned, binary, blocks=made_for.specializes_sizes), machine,
        reordered=_reordered(unit.codelet, done, planned, made_for, floats), rows=frozenset(unit.rows),
    )  # fmt: skip


def _reordered(
    codelet: Codelet, done: ScheduleResult, planned: Plan, target: Target, floats: Floats
) -> tuple[str, ...]:
    vectors = vectorised_sums(codelet, planned) if floats.reorder and target.name == "numba-cpu" else ()
    return tuple(dict.fromkeys(map(str, (*done.sums, *vectors))))


def _best_kernel(
    unit: Unit, target: Target, db: Path, floats: Floats, objective: Objective, specialize: Specialize
) -> CompiledKernel:
    with Store.read(db) as store:
        rows = best_versions(store, unit, target.name, floats, objective)
    if not rows and objective != "time":
        raise UsageError(f"{db} has no finals of {unit.codelet.name} by {objective}: `looptune run FILE --sweep "
                         f"--target {target.name} --objective {objective}` makes them")  # fmt: skip
    machine = target.machine()
    facts = machine.facts
    analysis = Analysis(unit.codelet, floats.reorder)
    best = BestKernel(analysis, target.backend(), Device(facts.name, facts.cores, facts.arch), rows, specialize)
    known = integers(unit.codelet, unit.values)
    whole = all(p.name in known for p in unit.codelet.params if isinstance(p, Scalar) and is_integer(p.dtype))
    chosen = best.at(known) if whole else best.default()
    kernel = CompiledKernel(
        unit.codelet,
        chosen.source,
        chosen.plan.schedule_text,
        chosen.plan,
        target.name,
        chosen.program,
        machine,
        None,
        (),
        best,
        rows=frozenset(unit.rows),
    )
    kernel.match = chosen.match if whole else None
    return kernel


def scheduled(
    unit: Unit, directives: str | Sequence[str] | None, floats: Floats = DEFAULT, given_as: str = "directives"
) -> ScheduleResult:
    """Schedule the unit, and find the sums that the directives reorder.

    ``given_as`` names the place of the directives in messages.
    """
    placed = parse_lines(directive_lines(directives).splitlines(), given_as)
    check_choices_decided(unit, placed)
    return schedule_with_suggestions(Analysis(unit.codelet, floats.reorder), placed, unit.values, sums=floats.reorder)


def scheduled_codelet(analysis: Analysis, directives: str) -> Codelet:
    """Return the codelet under directives that were found legal before."""
    return schedule(analysis, parse_lines(directives.splitlines(), "configuration")).codelet


def directive_lines(directives: str | Sequence[str] | None) -> str:
    """Return the directives as text in present words, one per line."""
    return current_text("\n".join(_given_lines(directives)))


def _given_lines(directives: str | Sequence[str] | None) -> Sequence[str]:
    if directives is None:
        return ()
    return (directives,) if isinstance(directives, str) else directives


def scalar(p: Scalar, given: Any) -> int | float:
    """Return the value of an argument. Raises UsageError if the parameter cannot hold it."""
    if isinstance(given, np.ndarray) and given.ndim:
        raise UsageError(f"{p.name} is a scalar, got an array")
    number = given.item() if isinstance(given, np.ndarray | np.generic) else given
    if not isinstance(number, int | float):
        raise UsageError(f"{p.name} is a number, got {type(number).__name__}")
    if not is_integer(p.dtype):
        return float(number)
    if not math.isfinite(number) or number != int(number):
        raise UsageError(f"{p.name} is an integer, got {number}")
    if wrap(int(number), p.dtype) != number:
        raise UsageError(f"{p.name} has the type {p.dtype}, which {number} does not fit")
    return int(number)


def _check(p: Array, shape: tuple[int, ...], dtype: np.dtype[Any], scalars: Mapping[str, int | float]) -> None:
    if dtype != np.dtype(p.dtype):
        raise UsageError(f"{p.name} must be an array of {p.dtype}, got {dtype}")
    want = extents_of(p, scalars)
    flat = len(want) == 1 and (want[0] is None or math.prod(shape) == want[0])
    fits = len(want) == len(shape) and all(w is None or w == n for w, n in zip(want, shape, strict=True))
    if not (flat or fits):
        declared = "".join(f"[{'' if w is None else w}]" for w in want)
        raise UsageError(f"{p.name} must have the shape {declared}, got {list(shape)}")


def extents_of(p: Array, scalars: Mapping[str, int | float]) -> list[int | None]:
    """Return the extents of an array for these scalars, None where an extent is open."""
    from_sizes = {n: int(v) for n, v in scalars.items() if float(v).is_integer()}
    return [None if e is None else evaluate_size(e, from_sizes) for e in p.shape]
