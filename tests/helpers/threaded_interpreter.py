"""The interpreter with threads: iterations of parallel loops in any order, each with its own copy of the scalars but
those that the loop reduces, and each with arrays of its own, full of what nobody wrote, where the loop says so."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np

from looptune.ir import interpreter
from looptune.ir.nodes import Codelet, Loop, Stmt, Var


class Threads(interpreter.Interpreter):
    """``shared`` are the scalars of which there is one for all threads; ``seed`` chooses the order."""

    def __init__(
        self,
        arrays: Mapping[str, np.ndarray],
        scalars: Mapping[str, Any],
        trace: interpreter.Trace | None = None,
        *,
        seed: int = 0,
        shared: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(arrays, scalars, trace)
        self.random = random.Random(seed)
        self.shared = shared

    def step(self, stmt: Stmt) -> None:
        match stmt:
            case Loop(var, lo, hi, body, step, mode) if mode in ("parallel", "thread"):
                trips = list(range(int(self.value(lo)), int(self.value(hi)), step))
                self.random.shuffle(trips)
                outside = dict(self.scalars)
                reduced = {r.target.name for r in stmt.reductions if isinstance(r.target, Var)}
                common = [name for name in outside if name in self.shared | reduced]
                arrays = {name: self.arrays[name] for name in stmt.private_arrays}
                for i in trips:
                    kept = {name: self.scalars[name] for name in common}
                    self.scalars = {**outside, **kept, var: i}
                    self.arrays |= {name: np.full_like(a, 77) for name, a in arrays.items()}
                    self.run(body)
                self.arrays |= arrays
                self.scalars = {**outside, **{name: self.scalars[name] for name in common}}
            case _:
                super().step(stmt)


def run(
    codelet: Codelet,
    arrays: Mapping[str, np.ndarray],
    scalars: Mapping[str, int | float],
    trace: interpreter.Trace | None = None,
    *,
    seed: int = 0,
    shared: frozenset[str] = frozenset(),
) -> None:
    """As ``interp.run``."""
    machine = Threads(arrays, scalars, trace, seed=seed, shared=shared)
    for local in codelet.locals:
        interpreter.allocate(machine, local)
    with np.errstate(all="ignore"):
        machine.run(codelet.body)
