"""The tuned nest as plain C with OpenMP: ``looptune build --c``.

One text is for all sizes: that of the version that a module's look-up finds for this device and the file's sizes.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from looptune.backends import openmp
from looptune.core.errors import DirectiveError, IllegalTransform, UsageError
from looptune.core.escape import comment_lines
from looptune.core.version import __version__
from looptune.deploy import plans
from looptune.deploy.asserted import MACRO, call_checks
from looptune.deploy.python_module import ModuleRequest, measurement_lines
from looptune.deploy.runtime.lookup import LEVELS, Device, Match, look_up
from looptune.lower.passes.openmp_scalars import accumulate_in_scalars
from looptune.poly.out_of_bounds import out_of_bounds_accesses, undecided_accesses
from looptune.runtime.timing import times_text
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.assumptions import find_assumptions
from looptune.schedule.directive_lines import parse_lines

if TYPE_CHECKING:
    from looptune.deploy.best_versions import BestVersion
    from looptune.frontend import Unit
    from looptune.frontend.signature import Head


def text(
    request: ModuleRequest, device: Device, sizes: Mapping[str, int], *, one_core: bool = False, body: str = "",
    notes_of_time: Sequence[str] = (),
) -> str:  # fmt: skip
    """Return C for ``gcc -fopenmp``: the best version on ``device`` at ``sizes``, or on the nearest ones.

    ``one_core``: the loops of the file without threads; ``body``: this text in place of a function made here;
    ``notes_of_time``: what the comment says of the time of this text.
    """
    unit = request.unit
    match, best = best_on(request.measured, device, sizes)
    directives = "" if best is None else plans.size_independent(best.directives)
    analysis = Analysis(unit.codelet, request.floats.reorder)
    said: list[str] = []
    try:
        done = schedule(analysis, parse_lines(directives.splitlines(), "configuration"))
    except (DirectiveError, IllegalTransform) as error:
        said = [f"The best is for its own sizes only ({error.message}): this is the default."]
        best, done = None, schedule(analysis)
    codelet = plans.sequential(unit.codelet) if one_core else done.codelet
    if best is not None and _beaten(best) is not None and not (one_core or body):
        codelet = plans.sequential(unit.codelet)
        said = [f"What was tuned is slower than the sequential loops on one core, {best.sequential_us:.4g} us: "
                f"{_beaten(best)} times.", "These are the sequential loops.", ""]  # fmt: skip
    head, notes = _declared(unit)
    checks, model = call_checks(unit), analysis.model
    assumes = find_assumptions(
        unit, out_of_bounds_accesses(model), undecided_accesses(model), model.assumed, done.assumed
    ).sentences()
    lines = [f"{unit.codelet.name}, tuned: made by looptune {__version__} from {Path(unit.path).name}.", ""]
    lines += ["    gcc -O3 -march=native -fopenmp", ""]
    lines += [*notes, "It assumes:", "", *_wrapped(assumes), ""]
    lines += [f"With -D{MACRO} it looks at a call, and aborts where that does not hold.", ""] if checks.body else []
    lines += [*notes_of_time, *said, *_measured(best, match, analysis), "", f"Made by: {request.command}"]
    comment = "\n".join(f"   {line}".rstrip() for line in comment_lines(lines)).lstrip()
    if body:
        return f"/* {comment}\n*/\n{body}"
    return (
        f"/* {comment}\n*/\n{openmp.text(accumulate_in_scalars(codelet), head, checks.before, checks.body, unit.rows)}"
    )


def header(unit: Unit) -> str:
    """Return a header with the declaration of the function, and with what the declaration needs."""
    head, _ = _declared(unit)
    name = unit.codelet.name
    guard = f"{re.sub(r'[^A-Z0-9]', '_', name.upper())}_TUNED_H"
    declared = openmp.signature(unit.codelet, unit.rows) if head is None else head.text
    headers = () if head is None else head.headers
    needed = [f"#include <{one}>" for one in headers] + ([] if head is None else list(head.before))
    return "\n".join((f"#ifndef {guard}", f"#define {guard}", "", *needed, f"{declared};", "", "#endif", ""))


def _beaten(best: BestVersion) -> str | None:
    """Return by which factor one core was faster than this version on a CPU, None where it was not."""
    return times_text(best.slower) if best.slower is not None and best.context.target == "numba-cpu" else None


def _wrapped(assumes: Sequence[str]) -> Iterator[str]:
    for what in assumes:
        yield from textwrap.wrap(
            what, 110, initial_indent="    ", subsequent_indent=" " * 8, break_long_words=False, break_on_hyphens=False
        )


def _declared(unit: Unit) -> tuple[Head | None, list[str]]:
    """Return how the file declares the function, and what callers must know about its parameters.

    UsageError where what is built cannot be declared so.
    """
    if isinstance(unit.head, str):
        raise UsageError(unit.head)
    name = Path(unit.path).name
    if unit.head is None:
        deep = next((name for name, dimensions in unit.rows.items() if dimensions != (1,)), None)
        if deep is not None:
            raise UsageError(f"the rows of {deep} consist of pointers, which C that is built here does not check")
        what = f"a part of {unit.parts[0].function}" if len(unit.parts) == 1 else "several functions"
        return None, [
            f"A function of its own with parameters of its own: in {name} it is {what}.",
            "Its arrays do not overlap.",
        ]
    hidden = [f"{v} is static in {name}: include this file there, in the function's place." for v in unit.head.static]
    return unit.head, [f"It takes the place of the function of {name}.", *hidden]


def best_on(
    measured: Sequence[BestVersion], device: Device, sizes: Mapping[str, int]
) -> tuple[Match, BestVersion | None]:
    """Return the best version on this device at these sizes, or on any device if none is nearer.

    None if nothing was measured.
    """
    table = [
        {
            "device": m.context.device, "cores": m.cores, "capability": m.context.capability, "sizes": dict(m.sizes),
            "plan": str(k), "elsewhere": str(k),
        }
        for k, m in enumerate(measured)
    ]  # fmt: skip
    match = look_up(table, "", device, sizes)
    if match.plan:
        return match, measured[int(match.plan)]
    return match, measured[0] if measured else None


def _measured(best: BestVersion | None, match: Match, analysis: Analysis) -> Iterator[str]:
    if best is None:
        yield "Nothing was measured: this is the default."
        return
    level = "another device" if match.level == LEVELS[-1] else match.level
    yield f"Measured, as a kernel made by Numba and not as this text (match: {level}):"
    yield ""
    yield from measurement_lines(best, plans.proof(analysis, best))
    if re.search(r"\bnoremainder\b", best.directives):
        yield "    noremainder, which is true of those sizes, is remainder here."
