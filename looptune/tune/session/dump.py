"""The arrays that one version leaves after a run on the whole input: what ``--dump`` writes.

    FILE.npz                    every array that the codelet gives back, by name
    NAME=FILE.npy               one array
    NAME=FILE.png, .pgm         one array of two dimensions as a picture: its values as grey levels, 0 black, 255 white

It runs in a process of its own, as every measurement does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from looptune.core.cache_file import replace_by
from looptune.core.errors import UsageError
from looptune.ir.nodes import Array, Codelet
from looptune.runtime import images
from looptune.runtime.inputs import save
from looptune.tune.execution.worker import Worker, returned_value, run_one
from looptune.tune.measure.build_steps import Plans, plans_of
from looptune.tune.measure.measuring_device import MeasuringDevice
from looptune.tune.measure.reference import outputs
from looptune.tune.space.space import Configuration

if TYPE_CHECKING:
    from looptune.tune.job import Job
    from looptune.tune.measure.evaluate import KernelBuilder

LIMIT_S = 600.0


@dataclass(frozen=True, slots=True)
class DumpRequest:
    """One ``--dump``: a file, and the array that is written to it; None: all arrays."""

    path: Path
    array: str | None

    @property
    def is_picture(self) -> bool:
        return self.path.suffix in images.WRITTEN


def parse_dump_options(texts: Sequence[str], codelet: Codelet) -> tuple[DumpRequest, ...]:
    """Return the requests of ``--dump``.

    Raises UsageError, before anything is measured, if the files could not be written.
    """
    found = []
    for text in texts:
        name, equals, rest = text.partition("=")
        one = DumpRequest(Path(rest), name) if equals and name.isidentifier() else DumpRequest(Path(text), None)
        if one.path.is_dir():
            raise UsageError(f"--dump {text} is a folder: give the name of a file")
        if not one.path.parent.is_dir():
            raise UsageError(f"--dump {text}: no such folder: {one.path.parent}")
        if one.array is None and one.is_picture:
            raise UsageError(f"--dump {text}: name the array, --dump NAME={text}")
        if one.array is not None:
            _check(text, one, codelet)
        found.append(one)
    return tuple(found)


def _check(text: str, one: DumpRequest, codelet: Codelet) -> None:
    """Of an array by name: that there is such a one, and a file for it."""
    written = [p for p in codelet.params if isinstance(p, Array) and p.name in outputs(codelet)]
    array = next((p for p in written if p.name == one.array), None)
    if array is None:
        raise UsageError(f"--dump {text}: {codelet.name} gives back {', '.join(p.name for p in written)}")
    if not one.is_picture and one.path.suffix != ".npy":
        raise UsageError(f"--dump {text}: one array goes to a file in {', '.join(images.WRITTEN)} or .npy")
    if one.is_picture and len(array.shape) != 2:
        raise UsageError(
            f"--dump {text}: a picture has two dimensions, {array.name} has {len(array.shape)}", array.span
        )


def write(lab: KernelBuilder, directives: str, files: Sequence[DumpRequest]) -> list[str]:
    """Run the version once and write what is wanted; returns what there is to say of it."""
    plans = plans_of(lab.job, lab.scheduled(Configuration(tuple(directives.splitlines()))).codelet, directives)
    with Worker(partial(_runner, lab.job), limit_s=LIMIT_S) as worker:
        arrays = returned_value(run_one(worker, plans), "the run for --dump")
    return [said for one in files if (said := _write(one, arrays))]


def _write(one: DumpRequest, arrays: Mapping[str, np.ndarray]) -> str:
    """To its file; what there is to say of it."""
    if one.array is None:
        save(arrays, one.path)
        return ""
    array = arrays[one.array]
    if one.is_picture:
        levels = np.rint(np.nan_to_num(array, posinf=255, neginf=0)).clip(0, 255).astype(np.uint8)
        images.write(one.path, levels)
        cut = np.count_nonzero(~((array > -1) & (array < 256)))
        return f"{one.path}: {cut} of {array.size} values of {one.array} are beyond the levels 0 to 255" if cut else ""
    try:
        replace_by(one.path, lambda file: np.save(file, array))
    except OSError as error:
        raise UsageError(f"cannot write {one.path}: {error.strerror}") from error
    return ""


def _runner(job: Job) -> Callable[[Plans], dict[str, np.ndarray]]:
    """Return the set-up of the worker."""
    bench = MeasuringDevice(job)

    def run(plans: Plans) -> dict[str, np.ndarray]:
        version = bench.run_of(bench.backend.build(plans.timed))
        bench.restore()
        bench.machine.time_once(version)
        return {name: bench.machine.fetch(bench.arrays[name]) for name in bench.comparison.judge.expected}

    return run
