"""The work of ``looptune transform`` and ``looptune emit``: from C to C or to kernel source."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from looptune.core.escape import comment_lines
from looptune.core.floating_point import DEFAULT, Floats
from looptune.core.source import caret
from looptune.deploy.compile import scheduled
from looptune.deploy.text_edits import loop_annotations
from looptune.deploy.text_replacement import Edit, apply_edits
from looptune.deploy.write_back import write_back
from looptune.frontend import Unit, load
from looptune.frontend.source_text import encoding, exact_text, read_source
from looptune.ir.rewrite import walk
from looptune.lower.listing import print_plan
from looptune.lower.pipeline import lower, plan_after
from looptune.runtime import targets
from looptune.runtime.targets import CACHE
from looptune.schedule.assumptions import may_overlap, rows_may_overlap
from looptune.schedule.directive_lines import current_text, renamed_words

if TYPE_CHECKING:
    from looptune.schedule.apply import ScheduleResult

Warn = Callable[[str], object]


def _silent(message: str) -> None:
    """Leave the warning unsaid."""


def transform(
    file: Path,
    lines: Sequence[str] = (),
    *,
    kernel: str | None = None,
    defines: Mapping[str, str | None] | None = None,
    include_dirs: Sequence[Path] = (),
    dtype: str | None = None,
    floats: Floats = DEFAULT,
    warn: Warn = _silent,
    note: Warn = _silent,
) -> str:
    """Return the C file with the loops rewritten that the directives change, and all other bytes unchanged.

    Definitions by -D are at its top.

    ``note`` is called with the sums of floats that the directives reorder.
    """
    unit = _loaded(file, kernel, defines, include_dirs, dtype, warn, lines)
    lines = tuple(map(current_text, lines))
    done = scheduled(unit, lines, floats, "--directive")
    for turned in done.sums:
        note(f"{turned.span}: the directives add up {turned.clause} in another order, which rounds differently; "
             "--no-reassociate refuses them")  # fmt: skip
    if not lines and not any(getattr(n, "directives", ()) for n in (unit.codelet, *walk(unit.codelet.body))):
        done = replace(done, codelet=unit.codelet)
    apart = _apart(unit, done)
    if apart:
        note(f"{file}: the directives assume what C does not guarantee: {apart}")
    usual = loop_annotations(scheduled(unit, (), floats).codelet.body) if lines and not unit.choices else {}
    edits = write_back(unit, done.codelet, usual, lambda span, said: warn(caret(span, said)))
    macros = [name for name in unit.defines if name not in unit.known_values]
    gone = [e for e in _undefined(unit.text, macros) if not any(x.start <= e.start < x.end for x in edits)]
    return _applied(unit, [*edits, *gone], _head(unit, lines, done) if edits or macros else "")


def encode(file: Path, text: str) -> bytes:
    """Return the output of ``transform`` in the encoding of its input file."""
    return text.encode(encoding(read_source(file)) if file.is_file() else "utf-8", errors="backslashreplace")


def _applied(unit: Unit, edits: Sequence[Edit], head: str) -> str:
    """Return the file with the edits made: what they leave alone is as it was, line ends included."""
    file = Path(unit.path)
    raw = exact_text(read_source(file)) if file.is_file() else unit.text  # a pipe can be read once
    return apply_edits(raw, edits, head)


def _undefined(text: str, macros: Sequence[str]) -> list[Edit]:
    """Return the text's own lines about ``macros``, whose values -D gives, left out."""
    return [
        Edit(m.start(), m.end(), "")
        for name in macros
        for m in re.finditer(
            rf"^[ \t]*#[ \t]*(?:define|undef)[ \t]+{name}\b(?!\()(?:\\\n|[^\n])*(?:\n|$)", text, flags=re.MULTILINE
        )
    ]


def _loaded(
    file: Path,
    kernel: str | None,
    defines: Mapping[str, str | None] | None,
    include_dirs: Sequence[Path],
    dtype: str | None,
    warn: Warn,
    lines: Sequence[str],
) -> Unit:
    given = defines if defines is not None else {}
    unit = load(file, kernel=kernel, defines=given, include_dirs=include_dirs, dtype=dtype)
    for message in (*unit.warnings, *renamed_words(unit.codelet, lines)):
        warn(message)
    return unit


def _apart(unit: Unit, done: ScheduleResult) -> str:
    """Return which arrays must not overlap for the directives to be correct, or "" if none or if C says so already."""
    moved = any(s.proof == "proved" for s in done.steps)
    apart = [f"{p} and {q}" for p, q in may_overlap(unit)] + [f"the rows of {a}" for a in rows_may_overlap(unit)]
    return f"these do not overlap: {', '.join(apart)}" if moved and apart else ""


def _head(unit: Unit, lines: Sequence[str], done: ScheduleResult) -> str:
    whole = [
        *"\n".join(lines).splitlines(),
        *(f"asserted by the user, not proved: {line}" for line in done.asserted),
        *(f"added up in another order than in the original: {sum_}" for sum_ in done.sums),
    ]
    said = "".join(f"   {line}\n" for line in comment_lines(whole))
    apart = _apart(unit, done)
    said += f"   assumed: {apart}\n" if apart and said else ""
    macros = "".join(f"#define {n} {v}\n" for n, v in unit.defines.items() if n not in unit.known_values)
    return (f"/* looptune transform\n{said}*/\n" if said else "") + macros


def emit(
    file: Path,
    lines: Sequence[str] = (),
    *,
    target: str = "numba-cuda",
    arch: str = targets.DEFAULT_ARCH,
    ptx: bool = False,
    kernel: str | None = None,
    defines: Mapping[str, str | None] | None = None,
    include_dirs: Sequence[Path] = (),
    dtype: str | None = None,
    floats: Floats = DEFAULT,
    after: str | None = None,
    warn: Warn = _silent,
) -> str:
    """Return the Python module of the kernels, their C file, or their PTX; or the plan ``after`` a pass, as C.

    Raises TargetError if the target has none.
    """
    unit = _loaded(file, kernel, defines, include_dirs, dtype, warn, lines)
    lines = tuple(map(current_text, lines))
    done = scheduled(unit, lines, floats, "--directive")
    if after is not None:
        machine = targets.machine(target, CACHE, floats)
        return print_plan(plan_after(done.codelet, machine, after, "\n".join(lines), done.asserted))
    planned = lower(done.codelet, "\n".join(lines), done.asserted, blocks=targets.specializes_sizes(target, CACHE))
    if ptx:
        return targets.ptx(target, planned, arch, floats)
    return targets.emit(target, planned, CACHE, arch, floats)
