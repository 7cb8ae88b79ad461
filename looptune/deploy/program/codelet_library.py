"""The C of one codelet for GPUs as a library has it: what ``looptune build --jax`` puts into a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from looptune.deploy.program.codelet_text import CodeletRequest, codelet_file
from looptune.deploy.program.library import header_text
from looptune.deploy.program.machine_code import KernelCompiler, architectures
from looptune.runtime.targets import CACHE

if TYPE_CHECKING:
    from looptune.deploy.python_module import ModuleRequest


def library_files(request: ModuleRequest, arch: str | None = None) -> dict[str, str]:
    """Return the files of the codelet by name: C, its machine code, the header of its functions, and CUDA C to read.

    ``arch`` is as for ``looptune cc --arch``: by default the architectures that it takes. Raises UsageError without the
    packages that compile for GPUs, UnsupportedError and ResourceError as ``codelet_file`` does.
    """
    unit, name = request.unit, request.unit.codelet.name
    known = architectures(arch)
    measured = {m.context.capability for m in request.measured if m.context.capability.startswith("sm_")}
    if arch is None:
        known = architectures(",".join({*known, *measured}))
    compiler = KernelCompiler(known, request.floats.contract, CACHE)
    place = f"{str(unit.path).rpartition('/')[2]}:{unit.codelet.span.line}"
    made = codelet_file(
        CodeletRequest(
            unit, name, place, request.measured, compiler, request.floats, openmp=False, library=True, predict=False
        )
    )
    return {
        f"{name}.h": header_text(name, [made]),
        f"{name}.c": f'#include "{name}.h"\n{made.text}',
        made.code_name: made.machine_code,
        f"{name}.cu": made.cuda,
    }
