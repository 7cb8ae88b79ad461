"""The files beside a library of codelets: its C header, and what pkg-config and CMake read.

libgemm.so      gemm.h      gemm.pc      gemmConfig.cmake         in one directory, which can be moved
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from looptune.core.errors import UsageError
from looptune.core.version import __version__

if TYPE_CHECKING:
    from looptune.deploy.program.codelet_text import CodeletFile

_SYSTEM_LIBRARIES = ("-lpthread", "-ldl", "-lm")


def library_name(output: Path, kind: str) -> str:
    """Return NAME of libNAME.so or libNAME.a. Raises UsageError if the output is called otherwise."""
    suffix = ".so" if kind == "shared" else ".a"
    found = re.fullmatch(rf"lib([A-Za-z_]\w*){re.escape(suffix)}", output.name)
    if found is None:
        raise UsageError(f"--{kind} writes libNAME{suffix}, and -o is {output}: NAME is letters, digits and _")
    return found[1]


def header_text(name: str, codelets: Sequence[CodeletFile]) -> str:
    """Return the header of a library."""
    guard = f"LOOPTUNE_LIBRARY_{name.upper()}_H"
    declared = "\n".join(c.prototypes for c in codelets)
    boolean = "#ifndef __cplusplus\n#include <stdbool.h>\n#endif\n" if re.search(r"\bbool\b", declared) else ""
    return (
        f"/* lib{name}: made by looptune {__version__}. The functions may be called from several threads. */\n"
        f"#ifndef {guard}\n#define {guard}\n\n{boolean}"
        '#ifdef __cplusplus\nextern "C" {\n#endif\n'
        "#if defined(__GNUC__)\n#pragma GCC visibility push(default)\n#endif\n\n"
        f"{declared}\n#if defined(__GNUC__)\n#pragma GCC visibility pop\n#endif\n"
        "#ifdef __cplusplus\n}\n#endif\n#endif\n"
    )


def pkg_config_text(name: str, kind: str, *, openmp: bool) -> str:
    """Return ``NAME.pc``, which finds the library in its own directory."""
    system = " ".join([*_SYSTEM_LIBRARIES, *(["-fopenmp"] if openmp else [])])
    own, private = (f"-l{name} {system}", "") if kind == "static" else (f"-l{name}", f"Libs.private: {system}\n")
    return (
        "prefix=${pcfiledir}\n\n"
        f"Name: {name}\nDescription: codelets tuned by looptune\nVersion: {__version__}\n"
        f"Cflags: -I${{prefix}}\nLibs: -L${{prefix}} {own}\n{private}"
    )


def cmake_text(name: str, file: str, kind: str, *, openmp: bool) -> str:
    """Return ``NAMEConfig.cmake``, which defines the imported target ``NAME::NAME``."""
    needed = ["Threads::Threads", "${CMAKE_DL_LIBS}", "m", *(["OpenMP::OpenMP_C"] if openmp else [])]
    packages = "find_dependency(Threads)\n" + ("find_dependency(OpenMP COMPONENTS C)\n" if openmp else "")
    linked = "" if kind == "shared" else f'\n    INTERFACE_LINK_LIBRARIES "{";".join(needed)}"'
    return (
        f"include(CMakeFindDependencyMacro)\n{packages if kind == 'static' else ''}"
        f"if(NOT TARGET {name}::{name})\n"
        f"  add_library({name}::{name} {kind.upper()} IMPORTED)\n"
        f"  set_target_properties({name}::{name} PROPERTIES\n"
        f'    IMPORTED_LOCATION "${{CMAKE_CURRENT_LIST_DIR}}/{file}"\n'
        f'    INTERFACE_INCLUDE_DIRECTORIES "${{CMAKE_CURRENT_LIST_DIR}}"{linked})\nendif()\n'
    )
