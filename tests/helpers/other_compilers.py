"""Compilers for the CPU beside the usual one: what a search is compiled with, and one that makes a mistake."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar

from looptune.backends.base import Binary, PartialRun, Program, TimeLimit
from looptune.backends.numba_cpu.backend import NumbaCpu
from looptune.core.errors import ResourceError
from looptune.lower.plan import Plan

ROWS = 40
"""Of the problem at which ``WrongElsewhere`` is right."""


class OtherCpu(NumbaCpu):
    """The compiler of searches."""

    name: ClassVar[str] = "other-cpu"


class WrongElsewhere(NumbaCpu):
    """A compiler whose code is wrong except for arrays ``y`` of so many ROWS."""

    def load(self, binary: Binary) -> Program:
        return _WrongProgram(super().load(binary))


class TooLarge(NumbaCpu):
    """A compiler whose code of the kernel ``f`` needs more than the device has, which only that knows."""

    def load(self, binary: Binary) -> Program:
        if binary.plan.codelet.name == "f":
            raise ResourceError("f needs more blocks at once than the device holds")
        return super().load(binary)


class Fatal(NumbaCpu):
    """A compiler whose code ends the process where the kernel ``f`` has an unrolled loop."""

    def load(self, binary: Binary) -> Program:
        if binary.plan.codelet.name == "f" and "unroll" in binary.plan.schedule_text:
            os._exit(3)
        return super().load(binary)


class Unable(NumbaCpu):
    """A compiler that fails with the kernel ``f``."""

    def build(self, plan: Plan) -> Binary:
        if plan.codelet.name == "f":
            raise RuntimeError("no code can be made of it")
        return super().build(plan)


class _WrongProgram(Program):
    def __init__(self, program: Program) -> None:
        self.program = program

    def run(self, arrays: Mapping[str, Any], scalars: Mapping[str, int | float], stream: Any = None) -> None:
        self.program.run(arrays, scalars, stream)
        if len(arrays.get("y", ())) not in (0, ROWS):
            arrays["y"][-1] += 1

    def run_within(
        self, limit: TimeLimit, arrays: Mapping[str, Any], scalars: Mapping[str, int | float], stream: Any = None
    ) -> PartialRun:
        return self.program.run_within(limit, arrays, scalars, stream)
