"""A C program read by the front end and run by the interpreter, against the same text compiled by gcc."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from looptune.deploy.source_to_source import transform
from looptune.frontend import load
from looptune.ir import interpreter
from looptune.ir.nodes import Array, Codelet, Loop, Node
from looptune.ir.rewrite import rewrite, walk_stmts
from looptune.runtime.c_reference import CReference
from looptune.runtime.problem_sizes import Problem, problem
from looptune.schedule.analysis import Analysis, ScheduledTree
from looptune.schedule.parallel_loops import unprivatizable_locals
from tests.helpers import threaded_interpreter
from tests.helpers.cross_check import off
from tests.helpers.gcc_programs import Program

Values = Mapping[str, int | float]
Shapes = Mapping[str, tuple[int, ...]]


def difference(
    text: str | Path, sizes: Values, folder: Path, shapes: Shapes | None = None, kernel: str | None = None
) -> str | None:
    """Return where the interpreter and gcc differ, None where they agree.

    ``shapes`` are those of arrays whose extents the loops do not tell. Loops that the analysis calls parallel run in
    any order, with their own copies of what is private.
    """
    unit = load(text, kernel=kernel)
    at = _problem(unit.codelet, {**unit.values, **sizes}, {} if shapes is None else shapes)
    arrays = at.arrays(unit.codelet, 1)
    written = sorted(p.name for p in unit.codelet.params if isinstance(p, Array) and p.io != "in")
    assert unit.excerpt is not None, "the text can be run"
    theirs = CReference(unit.excerpt).run(folder, arrays, at.values, written).arrays
    for run, codelet in ((interpreter.run, unit.codelet), (threaded_interpreter.run, in_parallel(unit.codelet))):
        mine = {name: array.copy() for name, array in arrays.items()}
        run(codelet, mine, dict(at.values))
        found = off({name: theirs[name] for name in written}, mine, 1e-6)
        if found is not None:
            return found
    return None


def difference_after(program: Program, lines: Sequence[str], folder: Path) -> str | None:
    """Return where gcc's results of a program and of the text that ``transform`` makes of it differ, else None."""
    file = folder / "f.c"
    file.write_text(program.text)
    unit = load(file)
    at = _problem(unit.codelet, {**unit.values, **program.sizes}, program.shapes)
    arrays = at.arrays(unit.codelet, 1)
    written = sorted(p.name for p in unit.codelet.params if isinstance(p, Array) and p.io != "in")
    made = folder / "made.c"
    made.write_text(transform(file, lines))
    results = []
    for excerpt in (unit.excerpt, load(made, kernel=unit.codelet.name).excerpt):
        assert excerpt is not None, "the text can be run"
        results.append(CReference(excerpt).run(folder, arrays, at.values, written).arrays)
    first, second = ({name: found[name] for name in written} for found in results)
    return off(first, second, 1e-6)


def verdicts(codelet: Codelet) -> dict[int, str]:
    """Return the verdict on each loop by its number: parallel, reduction or sequential."""
    analysis = Analysis(codelet)
    tree = ScheduledTree(analysis, codelet.body, analysis.model.order())
    return {f.number: tree.verdict(f).kind for f in walk_stmts(codelet.body) if isinstance(f, Loop)}


def _problem(codelet: Codelet, values: Values, shapes: Shapes) -> Problem:
    if not shapes:
        return problem(codelet, values)
    at = problem(replace(codelet, body=()), values)
    return replace(at, shapes={**at.shapes, **shapes})


def in_parallel(codelet: Codelet) -> Codelet:
    """Return the codelet with the loops parallel that threads may run with their own copies of what is private."""
    analysis = Analysis(codelet)
    tree = ScheduledTree(analysis, codelet.body, analysis.model.order())
    parallel: set[int] = set()
    for loop in (f for f in walk_stmts(codelet.body) if isinstance(f, Loop)):
        verdict = tree.verdict(loop)
        if verdict.kind == "parallel" and not unprivatizable_locals(loop, analysis, verdict.private, set()):
            parallel.add(loop.number)

    def rule(n: Node) -> Node | None:
        return replace(n, mode="parallel") if isinstance(n, Loop) and n.number in parallel else None

    return rewrite(rule, codelet)
