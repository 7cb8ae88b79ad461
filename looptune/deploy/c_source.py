"""The tuned nest as plain C with OpenMP: ``looptune build --c``.

One text is for all sizes: that of the version that a module's look-up finds for this device and the file's sizes.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
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
from looptune.frontend.predefined_macros import COMPLEX_HEADERS
from looptune.frontend.struct_parameters import TYPES_DECLARED
from looptune.ir.c_printer import expression_text
from looptune.ir.nodes import Load, Var
from looptune.ir.rewrite import rewrite
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
    from looptune.frontend.file_scope import OwnText
    from looptune.frontend.signature import Head
    from looptune.ir.nodes import Codelet, Node


def text(
    request: ModuleRequest, device: Device, sizes: Mapping[str, int], *, one_core: bool = False,
    notes_of_time: Sequence[str] = (),
) -> str:  # fmt: skip
    """Return C for ``gcc -fopenmp``: the best version on ``device`` at ``sizes``, or on the nearest ones.

    ``one_core``: the loops of the file without threads; ``notes_of_time``: what the comment says of the time of this
    text.
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
    if best is not None and _beaten(best) is not None and not one_core:
        codelet = plans.sequential(unit.codelet)
        said = [f"What was tuned is slower than the sequential loops on one core, {best.sequential_us:.4g} us: "
                f"{_beaten(best)} times.", "These are the sequential loops.", ""]  # fmt: skip
    head, notes = _declared(unit)
    checks, model = call_checks(unit), analysis.model
    assumes = find_assumptions(
        unit, out_of_bounds_accesses(model), undecided_accesses(model), model.assumed, done.assumed
    ).sentences()
    lines = [*notes, "It assumes:", "", *_wrapped(assumes), ""]
    lines += [f"With -D{MACRO} it looks at a call, and aborts where that does not hold.", ""] if checks.body else []
    lines += [*notes_of_time, *said, *_measured(best, match, analysis)]
    made = openmp.text(_with_fields(accumulate_in_scalars(codelet), unit), head, checks.before, checks.body, unit.rows)
    return f"{_comment(request, 'tuned', lines)}{made}"


def _with_fields(codelet: Codelet, unit: Unit) -> Codelet:
    """Return the codelet with the text's names for the fields of arrays of structs, for which it has arrays."""
    own = {p.name for p in codelet.params}
    texts = {name: text for part in unit.parts for name, text in part.texts.items() if text.element and name in own}

    def rule(n: Node) -> Node | None:
        match n:
            case Load(array, index) if array in texts:
                return Var(texts[array].written([expression_text(e) for e in index]), n.dtype, span=n.span)
        return None

    return rewrite(rule, codelet) if texts and unit.head is not None else codelet


def linkable(unit: Unit) -> Unit:
    """Return the unit under a name with which it links beside its function, where it is a part of one, or several."""
    name = unit.codelet.name
    if unit.head is not None or name not in {part.function for part in unit.parts}:
        return unit
    new = f"{name}_{'scop' if unit.parts[0].region else 'codelets'}"
    return replace(unit, codelet=replace(unit.codelet, name=new))


def own_text(request: ModuleRequest, own: OwnText, notes_of_time: Sequence[str]) -> str:
    """Return the function as the file has it under a comment; ``notes_of_time`` says why."""
    name = Path(request.unit.path).name
    lines = [f"It is the function of {name} as it is there, and what it needs of {name}."]
    lines += [f"{v} is static in {name}: include this file there, in the function's place." for v in own.hidden]
    return f"{_comment(request, 'not tuned', [*lines, '', *notes_of_time[:-1]])}{own.text}"


def _comment(request: ModuleRequest, how: str, lines: Sequence[str]) -> str:
    unit = request.unit
    first = [f"{unit.codelet.name}, {how}: made by looptune {__version__} from {Path(unit.path).name}.", ""]
    first += ["    gcc -O3 -march=native -fopenmp", ""]
    whole = comment_lines([*first, *lines, "", f"Made by: {request.command}"])
    comment = "\n".join(f"   {line}".rstrip() for line in whole).lstrip()
    return f"/* {comment}\n*/\n"


def header(unit: Unit) -> str:
    """Return a header for C and C++ with the declaration of the function, and with the types that this needs."""
    unit = linkable(unit)
    head, _ = _declared(unit)
    guard = f"{re.sub(r'[^A-Z0-9]', '_', unit.codelet.name.upper())}_TUNED_H"
    declared = openmp.signature(unit.codelet, unit.rows) if head is None else head.prototype
    names = {p.name for p in unit.codelet.params} if head is None else head.names
    headers = () if head is None else (name for name in head.headers if name not in COMPLEX_HEADERS)
    needed = [f"#include <{one}>" for one in headers] + ([] if head is None else [*map(_in_both, head.types)])
    inner = _in_both(declared)
    outer = _in_cxx(inner, names)
    if outer == inner:
        lines = ["#ifdef __cplusplus", 'extern "C" {', "#endif", f"{inner};", "#ifdef __cplusplus", "}", "#endif"]
    else:
        lines = ["#ifdef __cplusplus", f'extern "C" {outer};', "#else", f"{inner};", "#endif"]
    return "\n".join((f"#ifndef {guard}", f"#define {guard}", "", *needed, *lines, "", "#endif", ""))


def _in_both(text: str) -> str:
    """Return a declaration in words that C and C++ have.

    >>> _in_both("void f(double complex *restrict z)")
    'void f(double _Complex *__restrict z)'
    """
    return re.sub(r"\brestrict\b", "__restrict", re.sub(r"\bcomplex\b", "_Complex", text))


def _in_cxx(text: str, names: Collection[str]) -> str:
    """Return a declaration as C++ has it, where an array whose extents are parameters is a pointer to its elements.

    >>> _in_cxx("void f(int n, double a[__restrict n][n][3], double b[static 4][3])", ["n", "a", "b"])
    'void f(int n, double *__restrict a, double (*b)[3])'
    >>> _in_cxx("void f(int n, float (*a)[n], float c[3], float *new)", ["n", "a", "c", "new"])
    'void f(int n, float *a, float c[3], float *new_)'
    """

    def pointer(m: re.Match[str]) -> str:
        extents = re.findall(r"\[[^\]]*\]", m[3])
        if not set(re.findall(r"\w+", m[3])).intersection((*names, *_IN_EXTENT)):
            return m[0]
        first = extents.pop(0) if m[2] else ""
        name = " ".join([*(word for word in _IN_EXTENT[1:] if word in first), m[1] or m[2]])
        rest = "".join(extents)
        return f"*{name}" if not rest or set(re.findall(r"\w+", rest)).intersection(names) else f"(*{name}){rest}"

    made = re.sub(r"(?:\(\*\s*([\w\s]+)\)|(\b\w+))((?:\[[^\]]*\])+)", pointer, text)
    return re.sub(r"\b(\w+)\b(?=\s*[,)\[])", lambda m: m[1] + "_" * (m[1] in _OF_CXX and m[1] in names), made)


_IN_EXTENT = ("static", "const", "volatile", "__restrict")
"""What the first brackets of a parameter contain besides its extent, in C alone."""
_OF_CXX = frozenset(
    ("and", "bool", "catch", "class", "delete", "explicit", "export", "false", "friend", "mutable", "namespace", "new",
     "not", "operator", "or", "private", "protected", "public", "template", "this", "throw", "true", "try", "typename",
     "using", "virtual", "xor")
)  # fmt: skip
"""Words of C++ that are names in C."""


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
    nonnull = [name for part in unit.parts for name in part.nonnull]
    if nonnull:
        raise UsageError(
            f"{unit.codelet.name} tests {', '.join(nonnull)} for being null, which C that is built here does not: "
            "`looptune cc` runs the loops of the text for a null pointer"
        )
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
    guarded = any(TYPES_DECLARED in line for line in unit.head.before)
    how = f" with {TYPES_DECLARED} defined" if guarded else ""
    hidden = [
        f"{v} is static in {name}: include this file there, in the function's place{how}." for v in unit.head.static
    ]
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
