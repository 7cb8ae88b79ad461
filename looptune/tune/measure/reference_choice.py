"""The choice of the reference for a codelet, made before the first version is built, and its description."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from looptune.core.floating_point import DEFAULT, Floats
from looptune.runtime import c_compiler
from looptune.runtime.c_reference import CReference, NoReference
from looptune.runtime.problem_sizes import is_interpretable, sizes_text

if TYPE_CHECKING:
    from looptune.frontend import Unit
    from looptune.tune.job import Job

NOT_INDEPENDENTLY = "not verified independently"


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
