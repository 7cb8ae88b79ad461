"""What holds whenever a loop of a tree is reached: a question about sizes and the loops around it.

for i in 0..n:  for j in i..n: ...        where loop j is reached, 0 <= i and i < n hold
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import islpy as isl

from looptune.ir import Codelet, Expr, Loop
from looptune.poly.domain import Nest, scan


@dataclass(frozen=True, eq=False)
class Reach:
    codelet: Codelet
    loop: Loop

    @cached_property
    def _nest(self) -> Nest:
        return scan(self.codelet)

    def holds(self, lhs: Expr, op: Literal["<=", ">=", "="], rhs: Expr) -> bool:
        """False also where an expression cannot be analysed."""
        if lhs == rhs:
            return True
        dims, domain = next((dims, domain) for f, dims, domain, _ in self._nest.ranges if f is self.loop)
        a, b = self._nest.affine(lhs, dims), self._nest.affine(rhs, dims)
        if a is None or b is None:
            return False
        prefix = f"[{', '.join(self._nest.parameters)}] -> "
        given = " and ".join(f"({c})" for c in (*self._nest.context, domain) if c) or "true"
        broken = isl.Set(f"{prefix}{{ [{', '.join(dims)}] : {given} and not ({a} {op} {b}) }}")
        return bool(broken.is_empty())
