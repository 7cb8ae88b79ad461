"""The emitted conversions of floats of 16 bits, compiled by gcc and by Numba, and run on all values and on doubles."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numba import njit

from looptune.backends.codegen import half

Converted = tuple[np.ndarray, np.ndarray, np.ndarray]
"""The float of each pattern of 16 bits; the bits of the doubles rounded to floats, and of the doubles themselves."""


def by_gcc(folder: Path, prefix: str, names: Sequence[str], wide: np.ndarray) -> Converted:
    """Convert with the functions ``PREFIX_to_float``, ``PREFIX_from_float`` and ``PREFIX_from_wide`` of CUDA C."""
    text = "#define __host__\n#define __device__\n#define __forceinline__ static inline\n"
    text += "\n".join(map(half.for_cuda, names))
    text += f"""
void all(int n, const double *wide, float *values, unsigned short *a, unsigned short *b)
{{
    for (int i = 0; i < 65536; i++) values[i] = {prefix}_to_float(i);
    for (int i = 0; i < n; i++) {{ a[i] = {prefix}_from_float((float)wide[i]); b[i] = {prefix}_from_wide(wide[i]); }}
}}
"""
    (folder / "all.c").write_text(text)
    command = ["gcc", "-O1", "-w", "-shared", "-fPIC", "all.c", "-o", "all.so"]
    subprocess.run(command, cwd=folder, check=True, timeout=60)
    made = _room(wide)
    pointers = (x.ctypes.data_as(ctypes.c_void_p) for x in (wide, *made))
    ctypes.CDLL(str(folder / "all.so")).all(len(wide), *pointers)
    return made


def by_numba(prefix: str, names: Sequence[str], wide: np.ndarray) -> Converted:
    """Convert with the same functions of the CPU's modules."""
    known: dict[str, object] = {}
    exec("import numpy as np\nfrom numba import float32, float64, uint16, uint32", known)
    for name in names:
        exec(half.PYTHON[name], known)
        known[name] = njit(known[name])
    exec(f"""
def run(wide, values, a, b):
    for i in range(65536):
        values[i] = {prefix}_to_float(np.uint16(i))
    for i in range(wide.size):
        a[i] = {prefix}_from_float(np.float32(wide[i]))
        b[i] = {prefix}_from_wide(wide[i])
""", known)  # fmt: skip
    made = _room(wide)
    njit(known["run"])(wide, *made)
    return made


def _room(wide: np.ndarray) -> Converted:
    return np.zeros(65536, np.float32), np.zeros(len(wide), np.uint16), np.zeros(len(wide), np.uint16)
