"""One importable Python module with all tuned configurations of a source: ``looptune build``.

docstring       the measurements
CONFIGURATIONS  the same as data, for the look-up
kernels, plans  as Numba source, each kernel once
the original    the original loops, for check=True
the runtime     the files of deploy/runtime, unchanged
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from looptune.backends.codegen.python import ident
from looptune.backends.numba_cpu.backend import noalias_type, options_of
from looptune.core.escape import docstring
from looptune.core.floating_point import DEFAULT, Floats
from looptune.core.short_floats import BFLOAT
from looptune.core.si_units import energy_text
from looptune.core.version import __version__, lowering
from looptune.deploy import inline_runtime, plans, torch_operator
from looptune.deploy.assembly import Assembly, Cpu, Cuda, python_literal, tuple_text
from looptune.deploy.best_versions import BestVersion
from looptune.deploy.shape_text import accesses_text, extents_text
from looptune.frontend import Unit
from looptune.frontend.signature import Head
from looptune.ir.nodes import Array, Codelet
from looptune.ir.simplify import is_integer
from looptune.lower.plan import needs_wide_indices, uncounted_arrays
from looptune.runtime.c_reference import CReference
from looptune.runtime.objective import QUANTITIES
from looptune.runtime.timing import times_text
from looptune.schedule.analysis import Analysis


@dataclass(frozen=True, slots=True)
class ModuleRequest:
    """What a module is made from; ``command`` is the command line, ``target`` numba-cuda or numba-cpu.

    ``torch``: its function is an operator of torch as well.
    """

    unit: Unit
    target: str
    measured: tuple[BestVersion, ...]
    command: str
    floats: Floats = DEFAULT
    torch: bool = False


OWN_NAMES = frozenset({
    "ACCESSES", "CALL", "CONFIGURATIONS", "CURRENT_STREAM", "OPTIONS", "PARAMETERS", "PLANS", "SIGNATURES", "STRICT",
    "TEXT", "TUNED", "annotations", "extents", "match", "original",
})  # fmt: skip
"""What a module defines besides its function, its kernels and the runtime."""


@dataclass(frozen=True, slots=True)
class _Row:
    measured: BestVersion
    plan: str
    other_sizes: str | None
    proof: str
    in_c: bool = False


def text(request: ModuleRequest) -> str:
    """Return the text of the module. Raises ResourceError if even the default needs more than a GPU has."""
    unit, codelet = request.unit, request.unit.codelet
    gpu = request.target == "numba-cuda"
    runtime = inline_runtime.inline_modules(inline_runtime.CUDA if gpu else inline_runtime.CPU)
    compiled = inline_runtime.inline_modules(inline_runtime.ORIGINAL if gpu else inline_runtime.COMPILED)
    assembly: Assembly = (
        Cuda(runtime.names, contract=request.floats.contract)
        if gpu
        else Cpu(runtime.names | compiled.names, reorders=request.floats.reorder)
    )
    analysis = Analysis(codelet, request.floats.reorder)
    without = plans.default(analysis, blocks=gpu)
    default = assembly.add(without, "no directives, any sizes")
    rows = [_row(request, analysis, best, assembly) for best in request.measured]
    large = ""
    if gpu and not needs_wide_indices(without) and uncounted_arrays(without):
        wide = replace(without, wide_indices=True)
        large = assembly.add(wide, "no directives, any sizes, arrays of more than 2^31 elements")
    loops = Cpu(
        runtime.names | compiled.names | {k.name for k in assembly.found.values()}, "original", options="STRICT"
    )
    original = loops.add(plans.original(codelet), "the loops as they were written")
    contracts = request.floats.contracts_here
    options = f'STRICT = {options_of(contracts)}\n"""Options of Numba for the original loops."""\n'
    options += f"\n\n{compiled.text}\n"
    options += "" if gpu else f"\n\nOPTIONS = {noalias_type(contracts)}\n"
    own = {("numba", "config")} if gpu else set()
    own |= {("", "torch")} if request.torch else set()
    own |= {("", "ml_dtypes")} if has_bfloat(codelet) else set()
    imported = runtime.imports | compiled.imports | assembly.imports | loops.imports | own
    taken = OWN_NAMES | runtime.names | compiled.names | inline_runtime.imported_names(imported)
    name = ident(codelet.name)
    name = f"{name}_" if name in taken else name
    operator = f'"{name}_op", ' if request.torch else ""
    imports = inline_runtime.import_block(imported)
    parts = [
        _docstring(request, name, rows),
        f"from __future__ import annotations\n\n{imports}\n",
        f'__all__ = ["CONFIGURATIONS", "{name}", {operator}"match"]\n',
        _table(rows),
        options,
        f"# -- kernels, each with the plans that launch it {'-' * 65}\n\n{assembly.kernels()}",
        f"# -- plans {'-' * 103}\n\n{assembly.functions()}",
        f"# -- the original {'-' * 96}\n\n{loops.kernels()}\n\n{loops.functions()}",
        runtime.text,
        f"# -- the function {'-' * 96}\n\n{assembly.signatures()}\n{assembly.table()}",
        extents_text(codelet),
        accesses_text(codelet),
        _text(unit, contracts),
        _function(unit, name, (default, large), original, assembly.relative, gpu=gpu),
        *([torch_operator.text(codelet, name, _params(codelet), gpu=gpu)] if request.torch else []),
    ]
    return "\n\n".join(part.strip("\n") + "\n" for part in parts)


def runs_in_c(unit: Unit, best: BestVersion) -> bool:
    """Return whether one core was faster and the C text is a function that a module can call.

    Nothing of it is at file scope, and no array of its own is on the stack.
    """
    codelet, head = unit.codelet, unit.head
    if best.slower is None or best.context.target != "numba-cpu" or unit.excerpt is None or len(unit.parts) > 1:
        return False
    whole = isinstance(head, Head) and {p.name for p in codelet.params} <= {*head.names}
    return whole and not any(v.shape for v in codelet.locals)


def _row(request: ModuleRequest, analysis: Analysis, best: BestVersion, assembly: Assembly) -> _Row:
    where = f"{best.context.device}, {_sizes(best)}"
    constants = " as constants" if best.context.target == "numba-cuda" else ""
    here = assembly.add(plans.exact(analysis, best), f"{where}: these sizes{constants}")
    anywhere = plans.for_other_sizes(analysis, best)
    elsewhere = None if anywhere is None else assembly.add(anywhere, f"{where}: other sizes")
    proof = plans.proof(analysis, best)
    if not runs_in_c(request.unit, best) or not isinstance(assembly, Cpu):
        return _Row(best, here, elsewhere, proof)
    names = python_literal(tuple(p.name for p in request.unit.codelet.params))
    alone = assembly.named(f"    return in_c(TEXT, {names}, {here})", (), f"{where}: the C text, on one core", {})
    return _Row(best, alone, elsewhere, proof, in_c=True)


def has_bfloat(codelet: Codelet) -> bool:
    """Tell whether a parameter is a bfloat16, which NumPy has only where ml_dtypes is."""
    return any(p.dtype == BFLOAT for p in codelet.params)


def _sizes(best: BestVersion) -> str:
    return " ".join(f"{name}={value}" for name, value in best.sizes.items())


def _docstring(request: ModuleRequest, name: str, rows: Sequence[_Row]) -> str:
    unit = request.unit
    params = ", ".join(_params(unit.codelet))
    gpu = request.target == "numba-cuda"
    arrays = "Arrays are NumPy arrays, updated in place."
    if gpu:
        arrays = "CuPy arrays and torch CUDA tensors stay where they are, NumPy arrays are\ncopied there and back."
    measured = (
        "\n".join(line for row in rows for line in (*measurement_lines(row.measured, row.proof), *_one_core(row), ""))
        if rows
        else "Nothing: this is the default.\n"
    )
    needs = "numba-cuda and numpy" if gpu else "numba and numpy"
    needs += ", ml_dtypes" if has_bfloat(unit.codelet) else ""
    needs += ", and torch" if request.torch else ""
    said = f"""{name}, tuned: made by looptune {__version__} from {Path(unit.path).name}; needs {needs}.

    {name}({params}{", stream=None" if gpu else ""}, check=False)

C's parameters in C's order. {arrays}
``match`` says what a call would run; where that was not tuned for the device and the sizes, the first call warns.
``check=True`` compiles the original C text, runs it besides, and raises Mismatch where the results differ.

Measured:

{measured}
Made by: {request.command}
"""
    return f'"""{docstring(said)}"""\n'


def _one_core(row: _Row) -> Iterator[str]:
    m = row.measured
    if m.slower is not None:
        factor = times_text(m.slower)
        yield f"        slower than the sequential loops on one core, {m.sequential_us:.4g} us: {factor} times"
    if row.in_c:
        yield "        so that a call runs the C text, where there is a C compiler"


def measurement_lines(m: BestVersion, proof: str) -> Iterator[str]:
    """Yield what was measured on which device, as lines for the user."""
    t = m.time
    date = time.strftime("%Y-%m-%d", time.gmtime(m.finished))
    over = "the default was not timed"
    if m.default_us is not None:
        over = f"{times_text(m.default_us / t.median_us)} times as fast as the default ({m.default_us:.4g} us)"
    without = "for the finals were disturbed" if m.disturbed else "without finals"
    how = "in the finals" if m.final else f"while screening, {without}"
    yield f"    {m.context.device} ({m.context.capability}, {m.cores} cores), {_sizes(m)}, {m.context.dtype}, {date}"
    yield f"        {t.median_us:.4g} us [{t.q1_us:.4g}, {t.q3_us:.4g}] n={t.n} {how}, {over}"
    if m.joules is not None:
        least = "" if m.objective == "time" else f", chosen for the least {QUANTITIES[m.objective]}"
        more = "" if m.default_joules is None else f", the default {energy_text(m.default_joules)}"
        yield f"        {energy_text(m.joules)} a run{more}{least}"
    yield from (f"        {line}" for line in (m.directives.splitlines() if m.directives else ["no directives"]))
    yield from textwrap.wrap(f"legality: {proof}", 120, initial_indent=" " * 8, subsequent_indent=" " * 12)
    own = lowering(m.context.target)
    if m.context.lowering != own:
        yield f"        measured with lowering {m.context.lowering}, and made with {own}: its speed may differ"
    if m.command:
        more = "" if m.objective == "time" else f" --objective {m.objective}"
        yield f"        again: {m.command} --sweep{more}"


def _table(rows: Sequence[_Row]) -> str:
    texts = []
    for row in rows:
        m, t = row.measured, row.measured.time
        facts = {
            "device": m.context.device, "cores": m.cores, "capability": m.context.capability, "sizes": dict(m.sizes),
            "directives": m.directives, "time_us": round(t.median_us, 3),
            "quartiles_us": (round(t.q1_us, 3), round(t.q3_us, 3)), "runs": t.n,
            "default_us": None if m.default_us is None else round(m.default_us, 3),
            "plan": row.plan, "elsewhere": row.other_sizes,
        }  # fmt: skip
        texts.append(
            "    {\n"
            + "".join(f"        {python_literal(key)}: {python_literal(value)},\n" for key, value in facts.items())
            + "    },\n"
        )
    if not texts:
        return "CONFIGURATIONS = ()\n"
    return f"CONFIGURATIONS = (\n{''.join(texts)})\n"


def _text(unit: Unit, contracts: bool) -> str:
    """Return the C text as a module keeps it, without a path of this machine."""
    if unit.excerpt is None:
        return "TEXT = None\n"
    text = CReference(unit.excerpt, contracts).portable()
    files = ""
    for path, contents in text.files:
        lines = [python_literal(line) for line in contents.splitlines(keepends=True)]
        files += (
            f"        ({python_literal(path)},\n" + "".join(f"         {line}\n" for line in lines) + '         ""),\n'
        )
    facts = {name: value for name, value in text._asdict().items() if name != "files"}
    given = "".join(f"    {name}={python_literal(value)},\n" for name, value in facts.items())
    said = "The C text of the original loops, which check=True compiles."
    return f'TEXT = Text(\n    files=(\n{files}    ),\n{given})\n"""{said}"""\n'


def _params(codelet: Codelet) -> list[str]:
    """Return the parameters of the C function, as the Python function names them."""
    return [f"{ident(p.name)}_" if ident(p.name) in ("check", "CALL") else ident(p.name) for p in codelet.params]


def _function(
    unit: Unit, name: str, defaults: tuple[str, str], original: str, relative: Mapping[str, float], *, gpu: bool
) -> str:
    codelet = unit.codelet
    own = dict(zip((p.name for p in codelet.params), _params(codelet), strict=True))
    kinds: dict[str, list[str]] = {"whole": [], "real": [], "array": []}
    declared, sizes = [], plans.size_names(codelet)
    for p in codelet.params:
        array, written = isinstance(p, Array), isinstance(p, Array) and p.io != "in"
        kinds["array" if array else "whole" if is_integer(p.dtype) else "real"].append(own[p.name])
        more = f", array=True, written={written}" if array else ""
        more += ", rows=True" if p.name in unit.rows else ""
        more += ", size=False" if gpu and is_integer(p.dtype) and not array and p.name not in sizes else ""
        declared.append(f"    Parameter({python_literal(p.name)}, {python_literal(p.dtype)}{more}),\n")
    given = ", ".join(tuple_text(names) for names in kinds.values())
    stream = ", stream" if gpu else ""
    made = "(Simulated if config.ENABLE_CUDASIM else Gpu)(TUNED)" if gpu else "Host(TUNED)"
    last = ", stream=None, check=False" if gpu else ", check=False"
    whole, quoted = ", ".join(kinds["whole"]), [python_literal(text) for text in (name, *defaults)]
    large = f", large={quoted[2]}" if defaults[1] else ""
    large += f", relative={relative!r}" if relative else ""
    called = f"""    if check:
        CALL.checked({given}{stream})
    else:
        CALL({given}{stream})"""
    if unit.rows:
        called = f"    CALL.by_rows({given}{stream}, check=check)"
    return f'''
PARAMETERS = (
{"".join(declared)})


def original(*given):
    {original}()(*given, 1)


TUNED = Tuned(
    {quoted[0]}, PARAMETERS, extents, CONFIGURATIONS, {quoted[1]}, PLANS, SIGNATURES, original, ACCESSES,
    TEXT{large},
)
CALL = {made}


def {name}({", ".join(own.values())}, *{last}):
    """See the module; arrays are updated in place. TypeError and ValueError name the parameter that does not fit."""
{called}


def match({whole}):
    """What a call at these sizes runs on this device: the level of the look-up, the row, the plan."""
    return CALL.match({tuple_text(kinds["whole"])})
'''
