"""One Python module with a tuned function for JAX: ``looptune build --jax``.

    from gemm_jax import gemm
    C = jax.jit(gemm)(alpha, beta, C, A, B)        the arrays that C writes are results; sizes follow from shapes

The module holds C: on a CPU the text of ``build --c``, on a GPU the file of ``looptune cc --shared`` with its machine
code and the C runtime, and a handler that XLA calls. It is compiled by the user's C compiler when the function is first
called, with the header of the user's jaxlib, and kept in the user's cache.
"""

from __future__ import annotations

import base64
import json
import textwrap
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from looptune.backends.codegen.c import list_lines
from looptune.backends.codegen.python import ident
from looptune.core.errors import UsageError
from looptune.core.escape import docstring, quote
from looptune.core.version import __version__
from looptune.deploy import inline_runtime, plans
from looptune.deploy.assembly import python_literal
from looptune.deploy.python_module import measurement_lines
from looptune.deploy.shape_text import accesses_text, extents_text
from looptune.frontend.signature import Head
from looptune.ir.c_printer import C_TYPES
from looptune.ir.def_use import integer_parameters
from looptune.ir.nodes import Array, Codelet, Scalar, Var, promoted_type
from looptune.ir.simplify import is_integer
from looptune.schedule.analysis import Analysis

if TYPE_CHECKING:
    from looptune.deploy.python_module import ModuleRequest
    from looptune.frontend import Unit

HANDLER, HEADER, CUDA_HEADER = "handler.c", "looptune_xla.h", "looptune_xla_cuda.h"
MOST = 64
"""Arrays, and numbers: what the header has room for."""
OWN_NAMES = frozenset({"ACCESSES", "CALL", "KERNEL", "PARAMETERS", "extents", "sources"})


@dataclass(frozen=True, slots=True)
class CFunction:
    """The C of a module: its files by name, and the call of its function, in which ``{}`` stand for the arguments.

    ``names`` are the parameters of the codelet in the order of the C function; ``prelude``: what the handler includes.
    """

    sources: Mapping[str, str]
    names: tuple[str, ...]
    prelude: str
    gpu: bool = False


def text(request: ModuleRequest, function: CFunction) -> str:
    """Return the text of the module. Raises UsageError where the function has more parameters than a handler takes."""
    codelet = request.unit.codelet
    _check_count(codelet)
    runtime = inline_runtime.inline_modules(inline_runtime.JAX)
    taken = OWN_NAMES | runtime.names | inline_runtime.imported_names(runtime.imports)
    name = ident(codelet.name)
    name = f"{name}_" if name in taken else name
    sources = {**function.sources, HEADER: _header(HEADER), HANDLER: handler(codelet, function)}
    packed = {"base64", "json", "zlib"} if function.gpu else set()
    imports = inline_runtime.import_block(runtime.imports | {("", module) for module in packed})
    parts = [
        _docstring(request, name, gpu=function.gpu),
        f"from __future__ import annotations\n\n{imports}\n",
        f'__all__ = ["{name}"]\n',
        runtime.text,
        f"# -- the function {'-' * 96}\n",
        extents_text(codelet),
        accesses_text(codelet),
        _packed(sources) if function.gpu else _sources(sources),
        _function(request, name, gpu=function.gpu),
    ]
    return "\n\n".join(part.strip("\n") + "\n" for part in parts)


def is_plain(unit: Unit) -> bool:
    """Tell whether the C function of the file has the codelet's parameters and no others, each as a plain pointer."""
    names = {p.name for p in unit.codelet.params}
    return isinstance(unit.head, Head) and {*unit.head.names} == names and not unit.rows and not unit.head.static


def _check_count(codelet: Codelet) -> None:
    for kind, what in ((Array, "arrays"), (Scalar, "numbers")):
        count = sum(isinstance(p, kind) for p in codelet.params)
        if count > MOST:
            raise UsageError(f"{codelet.name} has {count} {what}, and a call from XLA takes {MOST}", codelet.span)
    if not any(isinstance(p, Array) and p.io != "in" for p in codelet.params):
        raise UsageError(f"{codelet.name} writes no array: a function of JAX returns what is written", codelet.span)


# -- C -----------------------------------------------------------------------------------------------------------------


def handler(codelet: Codelet, function: CFunction) -> str:
    """Return the C file of the handler that XLA calls."""
    arrays = [p for p in codelet.params if isinstance(p, Array)]
    scalars = [p for p in codelet.params if isinstance(p, Scalar)]
    whole = [p.name for p in scalars if is_integer(p.dtype)]
    real = [p.name for p in scalars if not is_integer(p.dtype)]
    values = {p.name: f"looptune_call.arrays[{k}]" for k, p in enumerate(arrays)}
    kinds = {p.name: C_TYPES[promoted_type(p.dtype)] for p in scalars}
    values |= {name: f"({kinds[name]})looptune_call.integers[{k}]" for k, name in enumerate(whole)}
    values |= {name: f"({kinds[name]})looptune_call.numbers[{k}]" for k, name in enumerate(real)}
    given = [values[name] for name in function.names]
    names = ", ".join(quote(p.name) for p in arrays)
    written = ", ".join(str(int(p.io != "in")) for p in arrays)
    driver = "&looptune_xla_cuda" if function.gpu else "0"
    return f'''#include <stdbool.h>
#include "{HEADER}"
{function.prelude}
static const char *const looptune_names[] = {{{names}}};
static const unsigned char looptune_written[] = {{{written}}};

__attribute__((visibility("default"))) XLA_FFI_Error *looptune_xla_handler(XLA_FFI_CallFrame *looptune_frame)
{{
    static const struct looptune_xla_signature looptune_signature = {{
        {len(arrays)}, {len(whole)}, {len(real)}, looptune_names, looptune_written, {driver}
    }};
    struct looptune_xla_call looptune_call;
    XLA_FFI_Error *looptune_error;
    int looptune_done;

    looptune_error = looptune_xla_open(looptune_frame, &looptune_signature, &looptune_call, &looptune_done);
    if (looptune_done)
        return looptune_error;
{_call_on_gpu(codelet, given) if function.gpu else _call(codelet, given)}}}
'''


def _call(codelet: Codelet, given: Sequence[str]) -> str:
    call = textwrap.indent(list_lines(f"{codelet.name}(", given), "    ")
    return f"{call};\n    looptune_xla_close(&looptune_signature, &looptune_call);\n    return NULL;\n"


def _call_on_gpu(codelet: Codelet, given: Sequence[str]) -> str:
    call = list_lines(f"{codelet.name}_on_device(", [*given, "looptune_call.stream"])
    return f"""    {{
        const int looptune_status = {call};
        looptune_xla_close(&looptune_signature, &looptune_call);
        if (looptune_status == 0)
            return NULL;
        return looptune_xla_error(looptune_frame, XLA_FFI_Error_Code_INTERNAL, {codelet.name}_message(looptune_status));
    }}
"""


def _header(name: str) -> str:
    return files("looptune.deploy.runtime").joinpath(name).read_text()


def on_cpu(unit: Unit, c_text: str) -> CFunction:
    """Return the C of a module for a CPU: the function that ``build --c`` writes, which the handler includes."""
    names = unit.head.names if isinstance(unit.head, Head) else tuple(p.name for p in unit.codelet.params)
    name = f"{unit.codelet.name}.h"
    return CFunction({name: c_text}, names, f'#include "{name}"\n')


def on_gpu(codelet: Codelet, generated: Mapping[str, str]) -> CFunction:
    """Return the C of a module for a GPU: the files of a library of the codelet, and the runtime."""
    runtime = {
        file.name: file.read_text()
        for file in files("looptune.deploy.program").joinpath("runtime").iterdir()
        if file.name.endswith((".c", ".h"))
    }
    sources = {**runtime, **generated, CUDA_HEADER: _header(CUDA_HEADER)}
    prelude = f'#include "{codelet.name}.h"\n#include "{CUDA_HEADER}"\n'
    return CFunction(sources, tuple(p.name for p in codelet.params), prelude, gpu=True)


# -- Python ------------------------------------------------------------------------------------------------------------


def _sources(sources: Mapping[str, str]) -> str:
    """Return the function that returns the C files, as text to read."""
    entries = "".join(
        f"        {python_literal(name)}: (\n"
        + "".join(f"            {python_literal(line)}\n" for line in content.splitlines(keepends=True))
        + "        ),\n"
        for name, content in sources.items()
    )
    return f'''def sources():
    """The C that is compiled when the function is first called."""
    return {{
{entries}    }}
'''


def _packed(sources: Mapping[str, str]) -> str:
    """Return the same where the files have machine code, which is long."""
    packed = base64.b85encode(zlib.compress(json.dumps(dict(sources)).encode(), 9)).decode()
    lines = "".join(f"        {python_literal(line)}\n" for line in textwrap.wrap(packed, 100))
    return f'''def sources():
    """The C that is compiled when the function is first called, with the machine code of the kernels."""
    packed = (
{lines}    )
    return json.loads(zlib.decompress(base64.b85decode(packed)))
'''


def _given_extents(codelet: Codelet) -> dict[str, tuple[str, int, int]]:
    """Return the integers that are the extent of an array, each with the array, its dimensions, and which one it is."""
    found: dict[str, tuple[str, int, int]] = {}
    whole = {*integer_parameters(codelet)}
    for p in (p for p in codelet.params if isinstance(p, Array)):
        for k, extent in enumerate(p.shape):
            match extent:
                case Var(name) if name in whole:
                    found.setdefault(name, (p.name, len(p.shape), k))
    return found


def _parameters(codelet: Codelet) -> dict[str, str]:
    """Return the parameters that a call gives, by name, as the Python function names them."""
    found = _given_extents(codelet)
    names = [p.name for p in codelet.params if p.name not in found]
    return {name: f"{ident(name)}_" if ident(name) in ("CALL",) else ident(name) for name in names}


def _function(request: ModuleRequest, name: str, *, gpu: bool) -> str:
    codelet = request.unit.codelet
    found, own = _given_extents(codelet), _parameters(codelet)
    declared = []
    for p in codelet.params:
        more = f", array=True, written={p.io != 'in'}" if isinstance(p, Array) else ""
        declared.append(f"    Parameter({python_literal(p.name)}, {python_literal(p.dtype)}{more}),\n")
    given = ", ".join(f"{python_literal(c)}: {python}" for c, python in own.items())
    where = '"CUDA"' if gpu else '"cpu"'
    contracts = request.floats.contracts_here
    options = '("-O2",)' if gpu else f"(*OPTIMISED, OPENMP, *floating_point_flags({contracts}))"
    written = [p.name for p in codelet.params if isinstance(p, Array) and p.io != "in"]
    returned = f"the new {written[0]}" if len(written) == 1 else f"the new {', '.join(written)}, a tuple"
    return f'''PARAMETERS = (
{"".join(declared)})


KERNEL = JaxKernel(
    {python_literal(codelet.name)}, PARAMETERS, {python_literal(found)}, extents, ACCESSES, {where}, sources,
    {options},
)
CALL = JaxFunction(KERNEL)


def {name}({", ".join(own.values())}):
    """Return {returned}. TypeError and ValueError name the parameter that does not fit."""
    return CALL(**{{{given}}})
'''


def _docstring(request: ModuleRequest, name: str, *, gpu: bool) -> str:
    unit, codelet = request.unit, request.unit.codelet
    found, own = _given_extents(codelet), _parameters(codelet)
    written = [p.name for p in codelet.params if isinstance(p, Array) and p.io != "in"]
    analysis = Analysis(codelet, request.floats.reorder)
    measured = "\n".join(
        line for m in request.measured for line in (*measurement_lines(m, plans.proof(analysis, m)), "")
    )
    heading = "Measured" if gpu or not measured else "Measured, as kernels made by Numba and not as the C below"
    where = "an NVIDIA GPU" if gpu else "a CPU"
    said = f"""{name} for JAX on {where}: made by looptune {__version__} from {Path(unit.path).name}.

    {", ".join(written)} = {name}({", ".join(own.values())})

{_wrapped(_needs(found, gpu=gpu))}

{heading}:

{measured if measured else "Nothing: this is the default." + chr(10)}
Made by: {request.command}
"""
    return f'"""{docstring(said)}"""\n'


def _needs(found: Mapping[str, tuple[str, int, int]], *, gpu: bool) -> Iterator[str]:
    yield "Nothing is changed: the arrays that the C function writes are results, for which XLA copies the arguments"
    yield "unless they are donated or not needed any more. It works under jax.jit, and under jax.vmap one after the"
    yield "other; it has no derivative."
    if found:
        yield f"The shapes of the arrays say what {', '.join(found)} {'is' if len(found) == 1 else 'are'}."
    yield "Other integers are integers of Python, under jax.jit those of static_argnames."
    if gpu:
        yield "Numbers of Python, and those that jax.jit closes over, are parts of the compiled program; for one that"
        yield "is traced or an array of JAX each call waits until the GPU has it."
    yield "It needs jax, and a C compiler (CC, cc, gcc or clang), which compiles the text below when the function is"
    yield "first called; the result is kept in the user's folder for caches."


def _wrapped(sentences: Iterator[str]) -> str:
    return "\n".join(textwrap.wrap(" ".join(sentences), 110))
