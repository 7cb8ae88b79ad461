"""Let the annotations that kernels inherit from their loops change them, see ``ir.nodes.Annotation.on_kernel``."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from looptune.lower.plan import Kernel, Plan


def apply_annotations(kernel: Kernel, plan: Plan) -> Kernel:
    """Return the kernel as its annotations make it, one after the other."""
    return reduce(lambda made, said: said.on_kernel(made), kernel.annotations, kernel)
