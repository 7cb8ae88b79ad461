"""The target gcc: C with OpenMP, compiled by gcc and called in this process.

Plan ── emit ──▶ C ── build: gcc -shared ──▶ the bytes of a library ── load: ctypes ──▶ a function of C's parameters
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from looptune.backends import openmp
from looptune.backends.base import Backend, Binary, PartialRun, Program, TimeLimit
from looptune.backends.numba_cpu.backend import NumbaCpu
from looptune.core.errors import TargetError
from looptune.core.floating_point import STRICT
from looptune.ir.nodes import Scalar
from looptune.lower.plan import Plan, count
from looptune.runtime.device import Cpu
from looptune.runtime.targets import Target

FLAGS = ("-O3", "-march=native", "-ffp-contract=off", "-fopenmp", "-shared", "-fPIC", "-std=gnu11", "-w")
SCALARS = {
    "float32": ctypes.c_float, "float64": ctypes.c_double, "int8": ctypes.c_int8, "int16": ctypes.c_int16,
    "int32": ctypes.c_int32, "int64": ctypes.c_int64, "uint8": ctypes.c_uint8, "uint16": ctypes.c_uint16,
    "uint32": ctypes.c_uint32, "uint64": ctypes.c_uint64,
}  # fmt: skip


class Gcc(Backend):
    name = "gcc"

    def emit(self, plan: Plan) -> str:
        schedule = "".join(f"   {line}\n" for line in plan.schedule_text.splitlines())
        return f"/* gcc {' '.join(FLAGS)}\n{schedule}*/\n{openmp.text(plan.codelet)}"

    def build(self, plan: Plan) -> Binary:
        source, start = self.emit(plan), time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "kernel.c").write_text(source)
            command = ["gcc", *FLAGS, "kernel.c", "-o", "kernel.so", "-lm"]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode:
                raise TargetError(f"gcc refuses {plan.codelet.name}: {done.stderr.strip()}")
            library = (Path(folder) / "kernel.so").read_bytes()
        return Binary(self.name, plan, source, {plan.codelet.name: library}, (), time.perf_counter() - start)

    def load(self, binary: Binary) -> Program:
        return Loaded(binary)


class Loaded(Program):
    def __init__(self, binary: Binary) -> None:
        self.plan = binary.plan
        name = binary.plan.codelet.name
        with tempfile.NamedTemporaryFile(suffix=".so") as file:
            file.write(binary.objects[name])
            file.flush()
            self.function = getattr(ctypes.CDLL(file.name), name)
        self.function.restype = None

    def run(self, arrays: Mapping[str, Any], scalars: Mapping[str, int | float], stream: Any = None) -> None:
        given: list[Any] = []
        for p in self.plan.codelet.params:
            match p:
                case Scalar(name, dtype):
                    given.append(SCALARS[dtype](scalars[name]))
                case _:
                    given.append(ctypes.c_void_p(arrays[p.name].ctypes.data))
        self.function(*given)

    def run_within(
        self, limit: TimeLimit, arrays: Mapping[str, Any], scalars: Mapping[str, int | float], stream: Any = None
    ) -> PartialRun:
        """Run the one call, which cannot be stopped before its end."""
        start = time.perf_counter_ns()
        self.run(arrays, scalars)
        launches = count(self.plan.steps, {n: int(v) for n, v in scalars.items() if float(v).is_integer()})
        return PartialRun((time.perf_counter_ns() - start) / 1e3, launches, launches)


class Machine(Cpu):
    """The processor, under the name of the target."""

    def __init__(self) -> None:
        super().__init__()
        self.facts = replace(self.facts, target="gcc")


def target(cache: Path, *, fastmath: bool) -> Target:
    """Return the target; ``specializes_sizes``: whether a kernel is built for one size and in blocks, as on a GPU."""
    return Target("gcc", Gcc, partial(NumbaCpu, cache, STRICT), Machine, specializes_sizes=False)
