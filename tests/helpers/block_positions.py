"""Which places of a grid the blocks of a launch take, by the lines that a kernel is given for it, run as Python."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from looptune.backends.codegen.block_swizzle import emit_block_index
from looptune.backends.codegen.python import HELPERS
from looptune.backends.numba_cuda.writer import CudaWriter
from looptune.ir.nodes import Codelet
from looptune.lower.machine import Machine
from looptune.lower.pipeline import finish
from looptune.lower.plan import Kernel, Plan


def taken(kernel: Kernel, launched: tuple[int, int]) -> list[tuple[int, int]]:
    """The (x, y) of each block that does not leave, in the order of the launch: along x first."""
    plan = finish(Plan(Codelet("f", (), (), ()), (), ()), Machine(blocks=True))
    writer = CudaWriter(plan, set())
    writer.counters, writer.nonnegative = set(), set()
    lines = [line.replace("return", "return None") for line in emit_block_index(kernel, writer, "    ")]
    text = "\n".join(
        ["def place():", *lines, f"    return {writer.coordinates['block x']}, {writer.coordinates['block y']}"]
    )
    module: dict[str, Any] = {"uint32": lambda v: v % 2**32, "int64": int, "uint64": int, "cuda": SimpleNamespace()}
    for helper in HELPERS.values():
        exec(helper, module)
    exec(text, module)
    found = []
    for y in range(launched[1]):
        for x in range(launched[0]):
            module["cuda"].blockIdx = SimpleNamespace(x=x, y=y)
            found.append(module["place"]())
    return [place for place in found if place is not None]
