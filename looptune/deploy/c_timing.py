"""Which C ``looptune build --c`` writes: no text that is slower than the function of the file.

    what was tuned  ─▶ timed ─▶ slower than the file ─▶ its loops on one core ─▶ slower, too ─▶ the function's own text

Both are compiled by the C compiler with -O3 -march=native, what is written with -fopenmp as well, and run in turn in
processes of their own, on the same arrays. The least time of each counts.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from looptune.backends import openmp
from looptune.core import cache_folder
from looptune.core.errors import UsageError
from looptune.core.si_units import time_text
from looptune.deploy.runtime.lookup import named
from looptune.frontend import Unit, load
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


@dataclass(frozen=True, slots=True)
class CTimer:
    """The function of the file at one size, with which texts are compared; ``file_us``: microseconds of one run."""

    unit: Unit
    sized: Problem
    reference: CReference
    cache: Path
    file_us: float

    @classmethod
    def of(cls, unit: Unit, sizes: dict[str, int], floats: Floats, cache: Path) -> CTimer | str:
        """Return the timer at these sizes, or why nothing can be timed."""
        reference, why = text_of(unit, cache, floats)
        if reference is None:
            return why
        try:
            sized = problem(unit.codelet, {**unit.values, **sizes})
        except UsageError as error:
            return error.message
        work = operation_count.count(unit.codelet.body, integers(unit.codelet, sized.values))
        if work is not None and work > MOST_OPERATIONS:
            return f"one run of the file takes {times_text(work / 1e9)} thousand million operations"
        made = cls(unit, sized, reference, cache, 0.0)
        try:
            return replace(made, file_us=made._least_us(reference))
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
        return us > SLOWER * self.file_us and us > SLOWER * self._least_us(self.reference)

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
        """Return the program of the file with the body of ``text`` in the function, or of ``text`` alone."""
        head, excerpt = self.unit.head, self.unit.excerpt
        assert excerpt is not None, "the file has a reference"
        if head is None or isinstance(head, str):
            with tempfile.TemporaryDirectory(prefix=cache_folder.process_prefix()) as folder:
                path = Path(folder) / "built.c"
                path.write_text(text)
                alone = load(path, kernel=self.unit.codelet.name).excerpt
            if alone is None or {p.name for p in alone.arrays} != {p.name for p in excerpt.arrays}:
                raise NoReference("it cannot be called with the file's arrays")
            return replace(self.reference, excerpt=alone, openmp=True)
        (part,) = self.unit.parts
        own, (start, end) = excerpt.files[part.path], part.body
        body = text[text.index(f"{head.text}\n{{") + len(head.text) + 1 :]
        included = "".join(line for line in text.splitlines(keepends=True) if line.startswith("#include "))
        files = {**excerpt.files, part.path: f"{included}{own[:start]}{body}{own[end:]}"}
        return replace(self.reference, excerpt=replace(excerpt, files=files), openmp=True)


def own_text(unit: Unit) -> str | None:
    """Return the function as the file has it, where it compiles by itself under the declarations of a built one.

    If it needs macros of the file, these are expanded.
    """
    head = unit.head
    if head is None or isinstance(head, str) or len(unit.parts) != 1 or unit.parts[0].path != unit.path:
        return None
    for body in (unit.text[slice(*unit.parts[0].body)], _expanded(unit)):
        text = "\n".join((openmp.includes(unit.codelet, head), *head.before, head.text, body, ""))
        with tempfile.TemporaryDirectory(prefix=cache_folder.process_prefix()) as folder:
            path = Path(folder) / "own.c"
            path.write_text(text)
            # Without -w, which would also silence what is called and not declared.
            if compile_error(["-std=gnu17", "-Werror=implicit", "-fsyntax-only", str(path)]) is None:
                return text
    return None


def _expanded(unit: Unit) -> str:
    """Return the body of the function with its macros expanded, indented anew, without pragmas and empty lines."""
    prepared, opening = unit.prepared, unit.parts[0].open
    if prepared is None:
        return ""
    first = next(k for k, token in enumerate(prepared.tokens) if token.span == opening)
    body = prepared.text[prepared.tokens[first].offset : prepared.closing_token(first).offset + 1]
    lines, depth = [], 0
    for line in (line.strip() for line in body.splitlines()):
        if line and not line.startswith("#"):
            lines.append(f"{'    ' * (depth - line.startswith('}'))}{line}")
            braces = re.sub(r"'.'|\"(?:\\.|[^\"])*\"", "", line)
            depth += braces.count("{") - braces.count("}")
    return "\n".join(lines)


def timed_lines(timer: CTimer, us: float, refused: Sequence[str]) -> list[str]:
    """Return what the comment of a text says of its time, and of the texts that were slower."""
    file = Path(timer.unit.path).name
    at = f" at {timer.where}" if timer.where else ""
    said = f"Timed with -O3 -march=native{at}: {time_text(us)}, and {time_text(timer.file_us)} for {file}."
    return [said, *refused, ""]
