"""The reference at one size: its inputs, its results, and the tolerance of a version.

the text       the file's own, compiled by the C compiler: it shares no stage of looptune with a version
interpreter    the loops as the front end read them, one statement at a time: without a text, for few statements
generated      the loops compiled by looptune for the CPU, without reassociation: a version may have an error in
               common with them, so that they do not count as independent

A compiled reference is run once; the result is stored in a file.
"""

from __future__ import annotations

import fcntl
import hashlib
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from looptune.core.floating_point import DEFAULT, Floats
from looptune.ir import interpreter, operation_count
from looptune.ir.def_use import names_in
from looptune.ir.nodes import Array, Assign, Codelet, Const, If, Load, Loop, Scalar, Stmt, Var, While
from looptune.ir.rewrite import walk
from looptune.ir.simplify import is_integer
from looptune.lower.pipeline import lower
from looptune.runtime import c_compiler, numpy_files
from looptune.runtime.c_program import CPU_S, TooLong
from looptune.runtime.c_reference import CReference, NoReference, ProgramRun
from looptune.runtime.problem_sizes import Problem, is_interpretable, shapes, sizes_text
from looptune.runtime.tolerance import RoundingEstimate, compare, perturb_by_ulp
from looptune.runtime.verification import ReferenceComparison, in_double
from looptune.tune.execution.worker_loop import excluded_from_limit
from looptune.tune.job import Job
from looptune.tune.measure.reference_order import transpose_for_locality

if TYPE_CHECKING:
    from looptune.frontend import Unit

Arrays = Mapping[str, np.ndarray]

INTERPRETER = "the interpreter"
NOT_INDEPENDENTLY = "not verified independently"
NOT_COMPARED = "not compared, as the original loops take too long there"


@dataclass(frozen=True, slots=True)
class ReferenceResult:
    """The inputs and results of the reference at one problem size; ``seed`` is that of random inputs."""

    job: Job
    at: Problem
    seed: int

    def inputs(self) -> dict[str, np.ndarray]:
        """Return new arrays with the same contents at each call."""
        return self.at.arrays(self.job.codelet, self.seed)

    def judge(self, given: Arrays) -> ReferenceComparison:
        """Return the comparison with the reference's results for the inputs ``given``, which are not changed.

        The rounding errors are estimated when a version first differs, by one more run, and by all where that does not
        explain the difference; meanwhile other kernels have the device.
        """
        expected, against = self._expected(given)
        terms = reduction_terms(self.job.codelet, self.at.values)
        runs = cache(lambda: {how: cache(run) for how, run in self.estimate_runs(against, self.inputs()).items()})
        return ReferenceComparison(
            expected, terms, lambda: _estimate(runs()), against, lambda: _estimate({"moved": runs()["moved"]})
        )

    def run_text(self) -> None:
        """Run the text, so that its results are in the cache; do nothing where it cannot be run."""
        if self.job.text is not None:
            with suppress(NoReference, OSError):
                self._by_text(self.job.text, self.job.codelet, self.inputs(), "")

    def needed_estimates(self) -> int:
        """Return how many of ``estimate_runs`` versions probably need here, and at larger sizes; 0 without the text.

        The runs differ from the text as versions do: none is needed if usual rounding errors explain that, and the
        first alone if what it allows does.
        """
        text, given = self.job.text, self.inputs()
        if text is None:
            return 0
        expected, against = self._expected(given)
        if against != text.description:
            return 0
        found = {how: run() for how, run in self.estimate_runs(against, given).items()}
        terms = reduction_terms(self.job.codelet, self.at.values)

        def explained(doubt: RoundingEstimate | None) -> bool:
            return all(
                compare(want, {n: left[n].astype(a.dtype) for n, a in want.items()}, terms=terms, doubt=doubt) is None
                for left in found.values()
                if (want := {n: a for n, a in expected.items() if n in left})
            )

        if explained(None):
            return 0
        return 1 if explained(RoundingEstimate(found["moved"], {})) else len(found)

    def text_us(self) -> float | None:
        """Return the time of one run of the text, if its results are cached here; other work may have been running."""
        text = self.job.text
        if text is None:
            return None
        path = self._path((text.key, ""), shapes(self.job.codelet, self.at))
        try:
            with np.load(path) as held:
                return float(held[_TIMES][0])
        except (OSError, ValueError, KeyError, zipfile.BadZipFile, zlib.error):
            return None

    @property
    def is_too_long(self) -> bool:
        """Tell whether the text was stopped here, because it takes longer than a sweep may wait for."""
        text = self.job.text
        if text is None or self.text_us() is not None:
            return False
        return self._was_too_long(self._path((text.key, ""), shapes(self.job.codelet, self.at)))

    @property
    def _cpu_s(self) -> float:
        """Return how long the text may run: at the user's sizes less where it also runs at others."""
        here = self.at is self.job.problem and self.job.prime_problem is not None
        return self.job.reference_s if here and self.job.reference_s is not None else CPU_S

    def _was_too_long(self, path: Path) -> bool:
        try:
            return float(path.with_suffix(_SLOW).read_text()) >= self._cpu_s
        except (OSError, ValueError):
            return False

    def _expected(self, given: Arrays) -> tuple[dict[str, np.ndarray], str]:
        """Return what the loops leave, and what ran them; "" where that was nothing independent."""
        codelet, text = self.job.codelet, self.job.text
        if text is not None:
            try:
                # Arrays that only the text writes are a mistake in what is made of it: they are among these.
                left = self._by_text(text, codelet, given, "").arrays
                return {name: left[name] for name in sorted(left)}, text.description
            except TooLong:
                if self._cpu_s < CPU_S:
                    return {}, ""
            except NoReference:
                pass
        if is_interpretable(codelet, self.at):
            return self._interpreted(codelet, given), INTERPRETER
        return self._generated(codelet, given, ""), ""

    def estimate_runs(self, against: str, given: Arrays) -> dict[str, Callable[[], Arrays]]:
        """Return the further runs of ``against``, on the inputs ``given``, that show rounding errors; each is kept."""
        codelet = self.job.codelet
        wide, moved = in_double(codelet), perturb_by_ulp(given, self.job.seed)
        runs = {"moved": partial(self._again, against, codelet, moved, "moved")}
        if self.job.text is not None and against == self.job.text.description:
            runs["contracted"] = partial(self._again, against, codelet, given, "contracted")
            if wide == codelet and self.job.reassociate:
                runs["reordered"] = partial(self._again, against, codelet, given, "reordered")
        if wide != codelet:
            runs["wider"] = partial(self._again, against, wide, _cast(wide, given), "wider")
        return {**runs}

    def _again(self, against: str, codelet: Codelet, given: Arrays, how: str) -> Arrays:
        """Nothing where the text has no results in these types."""
        text = self.job.text
        if against == INTERPRETER:
            return self._interpreted(codelet, given)
        if not against or text is None:
            return self._generated(codelet, given, how)
        texts = {"moved": text, "wider": text.in_double(), "contracted": text.otherwise_contracted(),
                 "reordered": text.reordered()}  # fmt: skip
        try:
            return {**given, **self._by_text(texts[how], codelet, given, how).arrays}
        except NoReference:
            return {}

    def _interpreted(self, codelet: Codelet, given: Arrays) -> dict[str, np.ndarray]:
        whole = {name: a.copy() for name, a in given.items()}
        interpreter.run(codelet, whole, self.at.values)
        return {name: whole[name] for name in outputs(codelet)}

    def _by_text(self, text: CReference, codelet: Codelet, given: Arrays, how: str) -> ProgramRun:
        path = self._path((text.key, how), _shapes(given))
        written = {name: given[name] for name in sorted(outputs(codelet))}

        def run() -> dict[str, np.ndarray]:
            if self._was_too_long(path):
                raise TooLong("the loops took too long before")
            try:
                ran = text.run(self.job.cache, given, self.at.values, [*written], self._cpu_s)
            except TooLong:
                with suppress(OSError):
                    path.with_suffix(_SLOW).write_text(f"{self._cpu_s:g}")
                raise
            return {**ran.arrays, _TIMES: np.array(ran.times_us)}

        found = self._kept((text.key, how), given, {**written, _TIMES: np.zeros(1)}, run)
        return ProgramRun({name: a for name, a in found.items() if name != _TIMES}, tuple(map(float, found[_TIMES])))

    def _generated(self, codelet: Codelet, inputs: Arrays, how: str) -> dict[str, np.ndarray]:
        backend = self.job.target.reference(threads=self.job.threads)
        loops, turned = transpose_for_locality(codelet)
        plain = lower(loops)

        def run() -> dict[str, np.ndarray]:
            arrays = {name: (a.T if name in turned else a).copy(order="C") for name, a in inputs.items()}
            backend.load(backend.build(plain)).run(arrays, self.at.values)
            return {name: arrays[name] for name in sorted(outputs(codelet))}

        wanted = {n: inputs[n].T if n in turned else inputs[n] for n in outputs(codelet)}
        return self._kept((backend.emit(plain), how), inputs, wanted, run)

    def _path(self, made_by: tuple[str, ...], shaped: Mapping[str, tuple[int, ...]]) -> Path:
        at = self.at
        data = self.seed if at.data is None else at.data.name
        facts = (_KEPT, *made_by, sorted(at.values.items()), sorted(shaped.items()), data)
        return self.job.cache / f"reference-{hashlib.sha256(repr(facts).encode()).hexdigest()[:20]}.npz"

    def _kept(
        self, made_by: tuple[str, ...], inputs: Arrays, like: Arrays, run: Callable[[], dict[str, np.ndarray]]
    ) -> dict[str, np.ndarray]:
        """In a file: a restarted worker need not run them again.

        One that is damaged, or has not arrays ``like`` these, is made again.
        """
        wanted, path = _shapes(like), self._path(made_by, _shapes(inputs))
        with _alone(path):
            with suppress(numpy_files.Damaged):
                before = numpy_files.read(path)
                if isinstance(before, dict) and wanted.items() <= _shapes(before).items():
                    return before
            written = run()
            # Another machine may share the folder, and not the lock; where there is no room it is worked out again.
            with suppress(OSError):
                numpy_files.write(path, written)
            return written


def _estimate(runs: Mapping[str, Callable[[], Arrays]]) -> RoundingEstimate:
    """Return the results of the runs, which are made side by side; the time they take is no version's."""
    with excluded_from_limit(), ThreadPoolExecutor(len(runs)) as threads:
        found = dict(zip(runs, threads.map(lambda run: run(), runs.values()), strict=True))
    return RoundingEstimate(**found)


_KEPT = "what the loops write, or changed"
"""Of the arrays, in a file: those that they only read are not in it."""
_SLOW = ".slow"
"""The ending of a file, beside that of the results, with the seconds after which the text was stopped."""
_TIMES = "microseconds of each run"
"""Beside the arrays in a file: no array has this name."""


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Nobody else on this machine makes this file meanwhile: the processes of several devices come here at once.

    Where the file system has no locks each makes its own.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _shapes(arrays: Arrays) -> dict[str, tuple[int, ...]]:
    return {name: a.shape for name, a in arrays.items()}


def outputs(codelet: Codelet) -> set[str]:
    """Return the names of the arrays that the codelet writes."""
    return {p.name for p in codelet.params if isinstance(p, Array) and p.io != "in"}


def reduction_terms(codelet: Codelet, values: Mapping[str, int | float]) -> int:
    """Return a bound on the additions that one element or scalar goes through.

    This is at least the trip count of the longest loop, and the product of the trip counts of all loops in which one
    statement accumulates into one place. A loop in which the place is also assigned afresh ends the product.
    """
    sizes = {p.name: np.asarray(int(values[p.name])) for p in codelet.params
             if isinstance(p, Scalar) and is_integer(p.dtype)}  # fmt: skip
    constants = [int(n.hi.value) for n in walk(codelet.body) if isinstance(n, Loop) and isinstance(n.hi, Const)]
    longest = max([1, *map(int, sizes.values()), *constants])
    return max([longest, *_accumulations(codelet.body, (), sizes, longest)])


_Counted = tuple[Loop | While, int]
"""A loop and its trip count."""


def _accumulations(
    body: Iterable[Stmt], around: tuple[_Counted, ...], sizes: Mapping[str, np.ndarray], longest: int
) -> Iterator[int]:
    """Yield the number of additions into one place for each statement that accumulates."""
    for stmt in body:
        match stmt:
            case Assign(target, value) if any(n == target for n in walk(value)):
                yield _additions(target, around)
            case If(_, then, other):
                yield from _accumulations((*then, *other), around, sizes, longest)
            case Loop() | While():
                inside = (*around, (stmt, _trip_count(stmt, sizes, longest)))
                yield from _accumulations(stmt.body, inside, sizes, longest)


def _additions(target: Var | Load, around: Sequence[_Counted]) -> int:
    found = 1
    varying = names_in(target.index) if isinstance(target, Load) else set()
    for loop, count in reversed(around):
        if isinstance(loop, Loop) and loop.var in varying:
            continue
        assigned = [n for n in walk(loop.body) if isinstance(n, Assign) and n.target == target]
        if any(target not in list(walk(n.value)) for n in assigned):
            break
        found *= count
    return found


def _trip_count(loop: Loop | While, sizes: Mapping[str, np.ndarray], longest: int) -> int:
    """Return the trip count, or ``longest`` where it varies."""
    if isinstance(loop, While):
        return longest
    try:
        span = operation_count.evaluate(loop.hi, sizes) - operation_count.evaluate(loop.lo, sizes)
    except operation_count.DataDependent:
        return longest
    return max(1, -(-int(span) // loop.step))


def _cast(codelet: Codelet, arrays: Arrays) -> dict[str, np.ndarray]:
    """Return the arrays in the types that the codelet declares."""
    return {p.name: arrays[p.name].astype(p.dtype) for p in codelet.params if isinstance(p, Array)}


def text_of(unit: Unit, cache: Path, floats: Floats = DEFAULT) -> tuple[CReference | None, str]:
    """Return the unit's own text, compiled, or None and the reason why it cannot be."""
    if unit.excerpt is None:
        return None, f"{unit.codelet.name} cannot be called from outside the program"
    if not c_compiler.compiler_command():
        return None, "there is no C compiler here"
    text = CReference(unit.excerpt, floats.contracts_here)
    try:
        text.program(cache)
    except (NoReference, OSError) as error:
        return None, f"{c_compiler.version()} does not compile the text: {error}"
    return text, ""


def describe_reference(job: Job, why: str) -> str:
    """Return one line that says what versions are compared with, and ``why`` it is not the text."""
    if job.text is not None:
        return job.text.description
    if is_interpretable(job.codelet, job.problem):
        return f"the interpreter, for {why}"
    if job.prime_problem is not None and is_interpretable(job.codelet, job.prime_problem):
        return f"the interpreter at {sizes_text(job.prime_problem)}; at the sizes timed {NOT_INDEPENDENTLY}, for {why}"
    return f"none, {NOT_INDEPENDENTLY}: {why}"
