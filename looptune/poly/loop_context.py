"""Loop context: find whether an affine relation holds on every entry to a loop.

for i in 0..n:  for j in i..n: ...        on every entry to loop j, 0 <= i and i < n hold
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import islpy as isl

from looptune.ir.nodes import Codelet, Expr, Loop, Scalar, Var
from looptune.poly.affine import name
from looptune.poly.domain import IterationDomains, scan
from looptune.poly.isl_limits import QUESTION, IslLimitExceeded, isl_operation_limit


@dataclass(frozen=True, eq=False)
class LoopContext:
    """The context of a loop; ``enclosing_loops`` are the counted loops around it, outermost first."""

    codelet: Codelet
    loop: Loop
    enclosing_loops: tuple[Loop, ...]

    @cached_property
    def nest(self) -> IterationDomains:
        return scan(self.codelet)

    @cached_property
    def place(self) -> tuple[tuple[str, ...], str]:
        """Return the dimensions around the loop, and the condition on them and the sizes, as isl text."""
        dims, domain = next((dims, domain) for f, dims, domain, _ in self.nest.ranges if f is self.loop)
        return dims, " and ".join(f"({c})" for c in (*self.nest.context, domain) if c)

    @property
    def parameters(self) -> tuple[Var, ...]:
        """Return the sizes that conditions may use."""
        scalars = (p for p in self.codelet.params if isinstance(p, Scalar))
        return tuple(Var(p.name, p.dtype) for p in scalars if name(p.name) in self.nest.parameters)

    def holds(self, lhs: Expr, op: Literal["<=", ">=", "="], rhs: Expr) -> bool:
        """Tell whether ``lhs op rhs`` holds on every entry to the loop.

        False also if it cannot be proved or analysed.
        """
        if lhs == rhs:
            return True
        dims, given = self.place
        a, b = self.nest.affine(lhs, dims), self.nest.affine(rhs, dims)
        if a is None or b is None:
            return False
        prefix = f"[{', '.join(self.nest.parameters)}] -> "
        try:
            with isl_operation_limit(QUESTION):
                broken = isl.Set(f"{prefix}{{ [{', '.join(dims)}] : {given or 'true'} and not ({a} {op} {b}) }}")
                return bool(broken.is_empty())
        except IslLimitExceeded:
            return False
