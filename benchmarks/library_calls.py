"""Call the function of a library of ``looptune cc`` so many times: benchmarks/whole_programs.py starts it.

    python benchmarks/library_calls.py CALLS FILE.c LIBRARY [NAME ...]

NAME is a macro. The arrays are those of a sweep. The exit code is 1 if a call fails; LOOPTUNE_REPORT has the times.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

from looptune.backends.cuda.launch import C_TYPES
from looptune.frontend import load
from looptune.ir.nodes import Array, promoted_type
from looptune.runtime.problem_sizes import problem


def main(calls: str, source: str, library: str, *macros: str) -> int:
    unit = load(source, defines=dict.fromkeys(macros, "1"))
    arrays = problem(unit.codelet, unit.values).arrays(unit.codelet, 0)
    function = getattr(ctypes.CDLL(str(Path(library).resolve())), unit.codelet.name)
    given = [
        ctypes.c_void_p(arrays[p.name].ctypes.data)
        if isinstance(p, Array)
        else C_TYPES[promoted_type(p.dtype)](unit.values[p.name])
        for p in unit.codelet.params
    ]
    return int(any(function(*given) for _ in range(int(calls))))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
