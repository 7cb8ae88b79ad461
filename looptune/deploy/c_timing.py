"""Which C ``looptune build --c`` writes: no text that is slower than the function of the file.

    what was tuned  ─▶ timed ─▶ slower than the file ─▶ its loops on one core ─▶ slower, too ─▶ the function's own text

Both are compiled by the C compiler with -O3 -march=native, what is written by itself and with -fopenmp as well, and run
in turn in processes of their own, on the same arrays. The least time of each counts.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from looptune.core import cache_folder
from looptune.core.errors import UsageError
from looptune.core.si_units import time_text
from looptune.deploy.runtime.lookup import named
from looptune.frontend import Unit, load
from looptune.frontend.file_scope import FileScope, OwnText
from looptune.frontend.reference_text import ENTRY
from looptune.frontend.signature import in_type
from looptune.frontend.struct_parameters import TYPES_DECLARED
from looptune.ir import operation_count
from looptune.runtime.c_compiler import compile_error
from looptune.runtime.c_reference import CReference, NoReference
from looptune.runtime.problem_sizes import Problem, integers, problem
from looptune.runtime.timing import times_text
from looptune.runtime.verification import inputs
from looptune.tune.measure.reference import outputs, text_of

if TYPE_CHECKING:
    from looptune.core.floating_point import Floats

SLOWER = 1.05
"""So much slower, and not by the noise of a machine, a text is not written."""
RUNS, TURNS = 5, 3
"""Runs of a process, and processes of each text, where these take no longer than ENOUGH_US together."""
ENOUGH_US = 1e6
MOST_OPERATIONS = 2e10
"""Beyond these one run of the file takes ten seconds or more."""


_BUILT = "looptune_built"
"""The name of the function of a text where it is linked with the file."""
_OPENMP = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+omp\b(?:\\\n|[^\n])*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CTimer:
    """The function of the file at one size, with which texts are compared; ``file_us``: microseconds of one run.

    ``references``: the file, and with its pragmas of OpenMP if the function has any; the faster one counts.
    """

    unit: Unit
    sized: Problem
    references: tuple[CReference, ...]
    cache: Path
    file_us: float

    @classmethod
    def of(cls, unit: Unit, sizes: dict[str, int], floats: Floats, cache: Path) -> CTimer | str:
        """Return the timer at these sizes, or why nothing can be timed."""
        found, why = text_of(unit, cache, floats)
        if found is None:
            return why
        try:
            sized = problem(unit.codelet, {**unit.values, **sizes})
        except UsageError as error:
            return error.message
        work = operation_count.count(unit.codelet.body, integers(unit.codelet, sized.values))
        if work is not None and work > MOST_OPERATIONS:
            return f"one run of the file takes {times_text(work / 1e9)} thousand million operations"
        plain = replace(found, contracts=floats.contract != "off", strict_aliasing=True)
        references = (plain, replace(plain, openmp=True)) if unit.worksharing else (plain,)
        made = cls(unit, sized, references, cache, 0.0)
        try:
            return replace(made, file_us=made._of_file())
        except NoReference as error:
            return str(error)

    @property
    def where(self) -> str:
        """Return the sizes."""
        return named(integers(self.unit.codelet, self.sized.values))

    def time_us(self, text: str) -> float | str:
        """Return the microseconds of one run of a text that ``build --c`` makes, or why it cannot be timed."""
        try:
            return self._least_us(self._program(text))
        except (NoReference, UsageError) as error:
            return str(error)

    def is_slower(self, us: float) -> bool:
        """Return whether a text with this time is slower than the file; the file is timed again before it is."""
        return us > SLOWER * self.file_us and us > SLOWER * self._of_file()

    def _of_file(self) -> float:
        return min(map(self._least_us, self.references))

    def _least_us(self, program: CReference) -> float:
        codelet = self.unit.codelet
        arrays = inputs(codelet, self.sized.values, 0, self.sized.shapes)
        written = sorted(outputs(codelet))
        found = [*program.time_runs(self.cache, arrays, self.sized.values, written, 1)]
        runs = int(min(max(ENOUGH_US / TURNS / max(found[0], 0.1), 1), RUNS))
        for _ in range(TURNS if found[0] < ENOUGH_US else 1):
            found += program.time_runs(self.cache, arrays, self.sized.values, written, runs)
        return min(found)

    def _program(self, text: str) -> CReference:
        """Return the program of the file whose function is that of ``text``, or of ``text`` alone for a scop."""
        head, excerpt, plain = self.unit.head, self.unit.excerpt, self.references[0]
        assert excerpt is not None, "the file has a reference"
        if head is None or isinstance(head, str):
            with tempfile.TemporaryDirectory(prefix=cache_folder.process_prefix()) as folder:
                path = Path(folder) / "built.c"
                path.write_text(text)
                alone = load(path).excerpt
            if alone is None or {p.name for p in alone.arrays} != {p.name for p in excerpt.arrays}:
                raise NoReference("it cannot be called with the file's arrays")
            return replace(plain, excerpt=alone, openmp=True)
        name = self.unit.parts[0].function
        built, declared = (re.sub(rf"\b{name}\b", _BUILT, one) for one in (text, head.prototype))
        # What no other file can see is only there in the file's own text.
        before = f"#define {TYPES_DECLARED}\n{built}" if head.static else f"{declared};\n"
        own = excerpt.files[excerpt.main]
        at = own.rindex(f"void {ENTRY}(")
        made = f"{own[:at]}{before}#define {name}(...) {_BUILT}(__VA_ARGS__)\n{own[at:]}"
        files = {**excerpt.files, excerpt.main: made}
        linked = "" if head.static else built
        return replace(plain, excerpt=replace(excerpt, files=files), openmp=True, linked=linked)


def own_text(unit: Unit) -> OwnText | None:
    """Return the function as the file has it with all that it needs of the file, None where that does not compile."""
    excerpt = unit.excerpt
    if isinstance(unit.head, str | None) or unit.prepared is None or excerpt is None:
        return None
    own = FileScope(unit.prepared).own_text(unit.parts[0].function)
    if own is None or excerpt.float_literals:
        return None
    own = own if excerpt.dtype is None else replace(own, text=in_type(own.text, excerpt.dtype))
    if own.hidden:
        return own
    with tempfile.TemporaryDirectory(prefix=cache_folder.process_prefix()) as folder:
        path = Path(folder) / "own.c"
        path.write_text(own.text)
        # Without -w, which would also silence what is called and not declared.
        said = compile_error(["-std=gnu17", "-Werror=implicit", "-fsyntax-only", str(path)])
    return own if said is None else None


def not_slower_own_text(timer: CTimer) -> tuple[OwnText, float] | None:
    """Return the function as the file has it and its time, without its pragmas of OpenMP where they make it slower.

    None where it cannot be written.
    """
    own = own_text(timer.unit)
    if own is None:
        return None
    if own.hidden:
        return own, timer.file_us
    us = timer.time_us(own.text)
    sequential = replace(own, text=_OPENMP.sub("", own.text))
    if sequential != own and not isinstance(us, str) and timer.is_slower(us):
        own, us = sequential, timer.time_us(sequential.text)
    return None if isinstance(us, str) else (own, us)


def timed_lines(timer: CTimer, us: float, refused: Sequence[str]) -> list[str]:
    """Return what the comment of a text says of its time, and of the texts that were slower."""
    file = Path(timer.unit.path).name
    at = f" at {timer.where}" if timer.where else ""
    said = f"Timed with -O3 -march=native{at}: {time_text(us)}, and {time_text(timer.file_us)} for {file}."
    return [said, *refused, ""]
