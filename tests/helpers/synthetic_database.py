"""Databases with times that nobody measured: what a sweep would have left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from looptune.core.version import LOWERING
from looptune.frontend import Unit
from looptune.ir.nodes import Array
from looptune.runtime.device import Cpu
from looptune.tune.session.finals import outcome_of_rounds
from looptune.tune.store.source_hash import source_hash
from looptune.tune.store.store import Context, Role, Row, Store, canonical_json

H200 = ("NVIDIA H200", 132, "sm_90")
H100 = ("NVIDIA H100", 114, "sm_90")
A100 = ("NVIDIA A100", 108, "sm_80")


def context(unit: Unit, sizes: Mapping[str, int | float], device: tuple[str, int, str] = H200, **more: str) -> Context:
    name, cores, arch = device
    dtype = next(p.dtype for p in unit.codelet.params if isinstance(p, Array))
    made = Context(
        unit.codelet.name, source_hash(unit), LOWERING, "{}", arch, name, "numba-cuda", canonical_json(sizes), dtype,
        canonical_json({"cores": cores, "reassociate": True, "seed": 0}),
    )  # fmt: skip
    return replace(made, **more)


def this_cpu(unit: Unit, sizes: Mapping[str, int]) -> Context:
    facts = Cpu().facts
    return context(unit, sizes, (facts.name, facts.cores, facts.arch), target="numba-cpu")


def keep(path: Path, at: Context, times_us: Mapping[str, float], role: Role = "final", sweep: str = "s") -> Path:
    """``times_us`` by directives; five runs of each, that differ by a thousandth."""
    with Store.open(path) as store:
        store.register_command(sweep, "looptune run f.c")
        for text, us in times_us.items():
            runs = tuple(us * (1 + k / 1000) for k in range(5))
            store.record(Row(at, text, role, sweep), outcome_of_rounds(runs, len(runs)))
    return path
