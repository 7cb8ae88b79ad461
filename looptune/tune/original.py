"""The original loops at one size: what they are given, what they leave, and how far from that a version may be.

few statements    run by the interpreter, which is the meaning of the loops
many              the same loops compiled without reassociation, on the CPU, see rowwise; the result is kept in a file
"""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from looptune import flops, interp
from looptune.ir import Array, Codelet, Loop, Scalar
from looptune.mapping import plan
from looptune.rewrite import walk
from looptune.runtime import archives
from looptune.runtime.check import Judge, widened
from looptune.runtime.sizes import Problem, integers
from looptune.runtime.tolerance import Doubt, nudged
from looptune.simplify import is_integer
from looptune.tune.job import Job
from looptune.tune.rowwise import laid_out
from looptune.tune.serving import own_work

Arrays = Mapping[str, np.ndarray]

LONG_FLOPS = 3e10
"""Loops of which three more runs take a core longer than it takes to start a kernel's processes: whether they are in
doubt is looked at when a version differs, which few do."""


@dataclass(frozen=True, slots=True)
class Original:
    """``seed``: of the inputs, where they are random; ``interpreted``: the loops are run by the interpreter."""

    job: Job
    at: Problem
    seed: int
    interpreted: bool = False

    def inputs(self) -> dict[str, np.ndarray]:
        """New arrays, the same at each call."""
        return self.at.arrays(self.job.codelet, self.seed)

    def judge(self, given: Arrays) -> Judge:
        """``given``: the inputs, which stay as they are. Where other kernels wait for the device its doubt is worked
        out beforehand, while they have it, unless that takes long."""
        expected, doubt = self._left(self.job.codelet, given), cache(self._doubt)
        if self.job.threads is not None and not self._is_long():
            doubt()
        return Judge(expected, reduction_terms(self.job.codelet, self.at.values), doubt)

    def _is_long(self) -> bool:
        work = flops.count(self.job.codelet.body, integers(self.job.codelet, self.at.values))
        return work is None or work > LONG_FLOPS

    def _doubt(self) -> Doubt:
        """The time it takes is no version's."""
        codelet, given = self.job.codelet, self.inputs()
        wide = widened(codelet)
        with own_work():
            wider = {} if wide == codelet else self._left(wide, _cast(wide, given), "wider")
            return Doubt(self._left(codelet, nudged(given, self.job.seed), "moved"), wider)

    def _left(self, codelet: Codelet, inputs: Arrays, how: str = "") -> dict[str, np.ndarray]:
        """What the original loops, or ``codelet`` made of them, leave of ``inputs``; ``how`` tells these apart."""
        if not self.interpreted:
            return self._compiled(codelet, inputs, how)
        whole = {name: a.copy() for name, a in inputs.items()}
        interp.run(codelet, whole, self.at.values)
        return {name: whole[name] for name in outputs(codelet)}

    def _compiled(self, codelet: Codelet, inputs: Arrays, how: str) -> dict[str, np.ndarray]:
        """Kept in a file: a restarted worker need not run them again."""
        folder, at = self.job.cache, self.at
        backend = self.job.target.reference(threads=self.job.threads)
        loops, turned = laid_out(codelet)
        plain = plan(loops)
        facts = (
            backend.emit(plain),
            sorted(at.values.items()),
            sorted((n, a.shape) for n, a in inputs.items()),
            (self.seed if at.data is None else at.data.name, how),
        )
        path = folder / f"reference-{hashlib.sha256(repr(facts).encode()).hexdigest()[:20]}.npz"
        wanted = {n: inputs[n].T if n in turned else inputs[n] for n in outputs(codelet)}
        with _alone(path):
            with suppress(archives.Damaged):
                before = archives.read(path)
                if isinstance(before, dict) and _shapes(before) == _shapes(wanted):
                    return before
            arrays = {name: (a.T if name in turned else a).copy(order="C") for name, a in inputs.items()}
            backend.load(backend.build(plain)).run(arrays, at.values)
            written = {name: arrays[name] for name in sorted(outputs(codelet))}
            # Another machine may share the folder, and not the lock; where there is no room it is worked out again.
            with suppress(OSError):
                archives.write(path, written)
            return written


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Nobody else on this machine makes this file meanwhile: the processes of several devices come here at once. Where
    the file system has no locks each makes its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _shapes(arrays: Arrays) -> dict[str, tuple[int, ...]]:
    return {name: a.shape for name, a in arrays.items()}


def outputs(codelet: Codelet) -> set[str]:
    return {p.name for p in codelet.params if isinstance(p, Array) and p.io != "in"}


def reduction_terms(codelet: Codelet, values: Mapping[str, int | float]) -> int:
    """The longest loop: a bound on the additions behind one element, per loop that reduces."""
    from_sizes = [
        int(v) for p in codelet.params if isinstance(p, Scalar) and is_integer(p.dtype) for v in [values[p.name]]
    ]
    constants = [int(n.hi.value) for n in walk(codelet.body) if isinstance(n, Loop) and hasattr(n.hi, "value")]
    return max([1, *from_sizes, *constants])


def _cast(codelet: Codelet, arrays: Arrays) -> dict[str, np.ndarray]:
    """The arrays in the types that the codelet declares."""
    return {p.name: arrays[p.name].astype(p.dtype) for p in codelet.params if isinstance(p, Array)}
