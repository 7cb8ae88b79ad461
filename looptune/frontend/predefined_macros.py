"""The macros that every translation unit begins with: those of the machine's C compiler, and a few of our own.

``cc -dM -E`` lists the compiler's. If there is no cc, or it fails, a fixed set describes gcc on 64-bit Linux.
Extensions of GNU C in front of declarations, which pycparser does not read, are replaced by standard C or removed;
``typeof(x)`` is replaced by a struct that names x.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

TYPEOF = "looptune_typeof"
"""The only field of the struct that stands for ``typeof(x)``, an array of ``sizeof(x)`` elements."""
_TYPEOF = f"struct {{ char {TYPEOF}[sizeof(x)]; }}"
GNU = {
    "__restrict__": "restrict", "__restrict": "restrict", "__inline__": "inline", "__inline": "inline",
    "__const": "const", "__const__": "const", "__volatile__": "volatile", "__volatile": "volatile",
    "__signed__": "signed", "__signed": "signed", "__extension__": "", "__declspec(x)": "", "__forceinline": "inline",
    "__complex__": "_Complex", "__complex": "_Complex", "__real__": "~(__real__)", "__real": "~(__real__)",
    "__imag__": "~(__imag__)", "__imag": "~(__imag__)",
    "__thread": "", "__builtin_expect(x,y)": "(x)", "__builtin_assume_aligned(x,...)": "(x)",
    "__builtin_unreachable()": "((void)0)",
    "typeof(x)": _TYPEOF, "__typeof__(x)": _TYPEOF, "__typeof(x)": _TYPEOF,
}  # fmt: skip
"""Spellings of GNU C, as macros; ``__real__ z`` becomes a unary expression that pycparser reads."""
COMPLEX = {"complex": "_Complex", "I": "_Complex_I"}
"""The macros of ``complex.h``."""
COMPLEX_HEADERS = ("complex.h", "tgmath.h")

_SECONDS = 20

_FIXED = {
    "__STDC__": "1", "__STDC_VERSION__": "201710L", "__STDC_HOSTED__": "1", "__STDC_IEC_559__": "1",
    "__GNUC__": "12", "__GNUC_MINOR__": "2", "__GNUC_PATCHLEVEL__": "0", "__GNUC_STDC_INLINE__": "1",
    "__CHAR_BIT__": "8", "__SIZEOF_SHORT__": "2", "__SIZEOF_INT__": "4", "__SIZEOF_LONG__": "8",
    "__SIZEOF_LONG_LONG__": "8", "__SIZEOF_POINTER__": "8", "__SIZEOF_SIZE_T__": "8", "__SIZEOF_PTRDIFF_T__": "8",
    "__SIZEOF_FLOAT__": "4", "__SIZEOF_DOUBLE__": "8", "__LP64__": "1", "_LP64": "1",
    "__SCHAR_MAX__": "0x7f", "__SHRT_MAX__": "0x7fff", "__INT_MAX__": "0x7fffffff",
    "__LONG_MAX__": "0x7fffffffffffffffL", "__LONG_LONG_MAX__": "0x7fffffffffffffffL",
    "__SIZE_MAX__": "0xffffffffffffffffUL", "__SIZE_TYPE__": "long unsigned int", "__PTRDIFF_TYPE__": "long int",
    "__ORDER_LITTLE_ENDIAN__": "1234", "__ORDER_BIG_ENDIAN__": "4321", "__BYTE_ORDER__": "__ORDER_LITTLE_ENDIAN__",
    "__FLT_MAX__": "3.40282346638528859811704183484516925e+38F", "__FLT_EPSILON__": "1.1920928955078125e-7F",
    "__FLT_MIN__": "1.17549435082228750796873653722224568e-38F",
    "__DBL_MAX__": "1.79769313486231570814527423731704357e+308", "__DBL_EPSILON__": "2.220446049250313081e-16",
    "__DBL_MIN__": "2.22507385850720138309023271733240406e-308",
    "__FLT_EVAL_METHOD__": "0", "__FINITE_MATH_ONLY__": "0",
}  # fmt: skip
_SYSTEMS = {
    "linux": ("__linux__", "__linux", "linux", "__gnu_linux__", "__unix__", "__unix", "unix", "__ELF__"),
    "darwin": ("__APPLE__", "__MACH__"),
}
_MACHINES = {
    "x86_64": ("__x86_64__", "__x86_64", "__amd64__", "__amd64", "__SSE2__"), "aarch64": ("__aarch64__",),
    "arm64": ("__aarch64__",),
}  # fmt: skip


def predefined() -> Mapping[str, str]:
    """Return the macros of the machine's C compiler with their texts; see ``macros_of``."""
    compiler = shutil.which("cc")
    if compiler is not None:
        found = macros_of((compiler,), Path(compiler).stat().st_mtime_ns)
        if found:
            return found
    return fixed()


def fixed() -> dict[str, str]:
    """Return the macros that are used if there is no compiler: those of gcc on this system and processor."""
    names = (*_SYSTEMS.get(sys.platform, ()), *_MACHINES.get(platform.machine(), ()))
    return {**_FIXED, **dict.fromkeys(names, "1")}


@lru_cache(maxsize=8)
def macros_of(compiler: Sequence[str], changed: int = 0) -> Mapping[str, str]:
    """Return the macros with which a compiler begins, with their texts; empty where it says nothing.

    ``compiler`` is its command with options, such as -D, -include, -std, -fopenmp, which define macros as well.
    ``changed`` makes a new compiler another key. Parameters of function-like macros are in their names.
    """
    command = [*compiler, "-dM", "-E", "-x", "c", "-"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    lines = done.stdout.decode("utf-8", errors="replace").splitlines() if done.returncode == 0 else []
    found = (re.match(r"#define (\w+(?:\([^)]*\))?) ?(.*)", line) for line in lines)
    return {m[1]: m[2] for m in found if m is not None}
