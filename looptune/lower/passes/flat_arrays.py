"""Give arrays one subscript, as in the text of a GPU's kernel: the index of the element in row-major order.

A[i][j + 1] = x[i]     ==>     A[i * m + j + 1] = x[i]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from looptune.ir.nodes import Const, Expr, Load, Node
from looptune.ir.rewrite import rewrite
from looptune.ir.simplify import add, mul
from looptune.lower.thread_code import map_thread_code

if TYPE_CHECKING:
    from looptune.lower.plan import Kernel, Plan


def flatten_arrays(kernel: Kernel, plan: Plan) -> Kernel:
    """Return the kernel whose threads access arrays by one subscript."""

    def rule(n: Node) -> Node | None:
        if not isinstance(n, Load) or len(n.index) == 1:
            return None
        return Load(n.array, (flat_index(n, plan),), n.dtype, span=n.span)

    return map_thread_code(kernel, lambda body: rewrite(rule, body))


def flat_index(load: Load, plan: Plan) -> Expr:
    """Return where an element is in its array, in elements; a single subscript says that."""
    if len(load.index) == 1:
        return load.index[0]
    array = plan.array(load.array)
    flat: Expr = load.index[0] if load.index else Const(0)
    for i, n in zip(load.index[1:], array.shape[1:], strict=True):
        assert n is not None, f"{load.array}: an inner extent is always declared"
        flat = add(mul(flat, n), i)
    return flat
