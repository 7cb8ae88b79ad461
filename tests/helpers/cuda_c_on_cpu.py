"""Emitted CUDA C compiled by g++ and run on the processor, block after block: see ``cuda_c_on_cpu.h``."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from looptune.backends.cuda.cuda_c_writer import file_text
from looptune.ir.nodes import Array, Codelet, promoted_type
from looptune.lower.machine import Machine
from looptune.lower.pipeline import finish
from looptune.lower.plan import Plan
from tests.helpers.cross_check import C_SCALARS, Arguments, arrays, copied

GXX = shutil.which("g++")
_LAUNCH = re.compile(r"(\w+)<<<(dim3\(.*?\)), (dim3\([\d, ]*\)), \d+, stream>>>\((.*)\);")
_MMA = re.compile(r'asm volatile\("mma\.sync\.aligned\.m(\d+)n(\d+)k(\d+)\.row\.col\.f[^;]*;".*?\);', re.DOTALL)
_MMA_OF_PAIRS = re.compile(
    r'asm volatile\("mma\.sync\.aligned\.m(\d+)n(\d+)k(\d+)\.row\.col\.f32\.bf16[^;]*;".*?\);', re.DOTALL
)
_ROUND = re.compile(r'asm\("cvt\.r..?\.(\w+)\.f32 [^;]*;" : "=r"\((\w+)\) : (.*?)\);')
_MATRICES = re.compile(r'asm volatile\("ldmatrix\.[^;]*;".*?from \+ (.*?)\)\) : "memory"\);', re.DOTALL)
_DYNAMIC = re.compile(r"extern __shared__ (.*)\[\];")
_HELD = re.compile(r"__shared__ ([\w ]+) (\w+_held__kept)\[(\d+)\];")
"""What a block keeps in shared memory while it waits for others."""
_TOGETHER = re.compile(r"launch_together\((\d+), (\d+), \d+, stream, (\w+), (.*)\);")
_COPY = re.compile(r'asm volatile\("cp\.async\.c.\.shared\.global .*?, (\d+), %2;"\s*: : [^;]*;')


@dataclass(frozen=True)
class Case:
    name: str
    plan: Plan
    codelet: Codelet
    arguments: Arguments


def run(cases: Sequence[Case], folder: Path) -> dict[str, dict[str, np.ndarray]]:
    """What each case leaves in its arrays. One translation unit: a compiler takes a second to begin."""
    parts = ['#include "cuda_c_on_cpu.h"']
    for number, case in enumerate(cases):
        text = file_text(finish(case.plan, Machine(blocks=True, host_reads=True)))
        parts.append(f"namespace n{number} {{\n{portable(text, number)}\n}}")
    (folder / "whole.cpp").write_text("\n".join(parts))
    command = ["g++", "-O0", "-w", "-ffp-contract=off", "-shared", "-fPIC", "-I", str(Path(__file__).parent)]
    done = subprocess.run(
        [*command, "whole.cpp", "-o", "whole.so"], cwd=folder, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr[:4000]
    library = ctypes.CDLL(str(folder / "whole.so"))
    return {case.name: _called(getattr(library, f"run_{k}"), case) for k, case in enumerate(cases)}


def portable(text: str, number: int = 0) -> str:
    """As C++: launches are calls, and what is PTX is a function; the host function is called run_NUMBER."""
    text = text.replace("#include <cuda_runtime.h>", "").replace('extern "C" __global__', "__global__")
    text = re.sub(r'extern "C" cudaError_t \w+\(', f'extern "C" cudaError_t run_{number}(', text)
    text = _LAUNCH.sub(r"launch(\2, \3, [&] { \1(\4); });", text)
    text = re.sub(r"/\* All blocks run at one time: .*?^}\n", "", text, flags=re.DOTALL | re.MULTILINE)
    text = _TOGETHER.sub(r"launch_at_once(\1, \2, [&] { \3(\4); });", text)
    text = re.sub(r'asm volatile\("red\.release[^;]*;".*?;', "*arrived += 1;", text)
    text = re.sub(r'asm volatile\("ld\.acquire[^;]*;".*?;', "look_again(); seen = *arrived;", text)
    text = _ROUND.sub(lambda m: f"{m[2]} = {m[1]}_bits({re.sub(chr(34) + 'f' + chr(34), '', m[3])});", text)
    text = _MMA_OF_PAIRS.sub(r"multiply_pairs_of_warp<\1, \2, \3>(sums, left, right);", text)
    text = _HELD.sub(r"static \1 \2__of_all[256][\3]; \1 *\2 = \2__of_all[blockIdx.x];", text)
    text = _MMA.sub(r"multiply_of_warp<\1, \2, \3>(sums, left, right);", text)
    text = _MATRICES.sub(r"matrices_of_warp(to, from + \1);", text)
    text = _DYNAMIC.sub(r"static \1[1 << 15];", text)
    text = re.sub(r"cudaFuncSetAttribute\(.*?\); ", "", text)
    text = _COPY.sub(r"copy_later(to, from, \1, there);", text)
    text = re.sub(r'asm volatile\("cp\.async\.commit_group;".*', "commit_copies();", text)
    return re.sub(r'asm volatile\("cp\.async\.wait_group (\d);".*', r"await_copies(\1);", text)


def _called(function: ctypes._CFuncPtr, case: Case) -> dict[str, np.ndarray]:
    out = copied(case.arguments)
    call: list[object] = []
    for p in case.codelet.params:
        match p, out[p.name]:
            case Array(), np.ndarray() as array:
                call.append(array.ctypes.data_as(ctypes.c_void_p))
            case _, number:
                call.append(C_SCALARS[promoted_type(p.dtype)](number))
    answer = function(*call, None)
    assert answer == 0, f"{case.name} returned {answer}"
    return arrays(out)
