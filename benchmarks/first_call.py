"""What the first call of a built module takes a new process, with and without the machine code on disk.

    python benchmarks/first_call.py [--db FILE] [--target numba-cuda | numba-cpu] [--processes N] [FILE.c ...]

For each C file (default: four of polybench/), at its own sizes: ``looptune build`` writes the module, with what the
database has found or else with the default. Then processes of their own import it, copy the arrays to the device, wait,
and call it twice. The first of them finds an empty cache of compiled kernels, the others what it has left. Times are of
the clock on the wall, in milliseconds: importing the module, the first call until its results are there, and the second
one; of the processes with machine code on disk the median, and the least and the greatest.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from looptune.core.errors import LooptuneError
from looptune.frontend import Unit, load
from looptune.ir.nodes import Array
from looptune.runtime import targets
from looptune.runtime.problem_sizes import problem
from looptune.runtime.targets import CACHE

HEAD = "| kernel | import | first call, nothing on disk | first call of a new process | second call |"
FILES = ("gemm", "atax", "3mm", "2dconv")
Timed = tuple[float, float, float]
"""Milliseconds to import the module, of the first call, and of the second one."""


def measure(module: Path, given: Path, gpu: bool) -> Timed:
    """Import a module in this process and call its function twice."""
    numbers = json.loads(given.with_suffix(".json").read_text())
    with np.load(given) as held:
        arrays: dict[str, Any] = dict(held)
    wait = _on_gpu(arrays) if gpu else lambda: None
    start = time.perf_counter()
    spec = importlib.util.spec_from_file_location("deployed", module)
    assert spec is not None, f"{module} can be imported"
    assert spec.loader is not None, f"{module} has a loader"
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    taken = [time.perf_counter() - start]
    args = [arrays.get(name, numbers.get(name)) for name in numbers["parameters"]]
    for _ in range(2):
        start = time.perf_counter()
        getattr(made, made.__all__[1])(*args)
        wait()
        taken.append(time.perf_counter() - start)
    imported, first, second = (1e3 * s for s in taken)
    return imported, first, second


def _on_gpu(arrays: dict[str, Any]) -> Any:
    """Copy the arrays to the GPU, and return what waits for it."""
    cuda = importlib.import_module("numba.cuda")
    arrays.update({name: cuda.to_device(a) for name, a in arrays.items()})
    cuda.synchronize()
    return cuda.synchronize


def new_process(module: Path, given: Path, gpu: bool, cache: Path) -> Timed:
    command = [sys.executable, __file__, "--call", str(module), str(given), *(["--gpu"] if gpu else [])]
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().rpartition("\n")[2])
    imported, first, second = json.loads(done.stdout)
    return imported, first, second


def built(file: Path, target: str, db: Path | None, folder: Path) -> Path:
    module = folder / f"{file.stem}_module.py"
    found = ["--db", str(db)] if db is not None else ["--untuned"]
    command = [sys.executable, "-m", "looptune", "build", str(file), "--target", target, *found, "-o", str(module)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().partition("\n")[0])
    return module


def write_arguments(unit: Unit, at: Path) -> None:
    """Write the arrays of a call at the file's sizes, and beside them its numbers and the order of its parameters."""
    here = problem(unit.codelet, unit.values)
    np.savez(at, **here.arrays(unit.codelet, 0))
    order = [p.name for p in unit.codelet.params]
    numbers = {p.name: here.values[p.name] for p in unit.codelet.params if not isinstance(p, Array)}
    at.with_suffix(".json").write_text(json.dumps({**numbers, "parameters": order}))


def rows(files: Sequence[Path], target: str, db: Path | None, processes: int) -> Iterator[str]:
    gpu = target != "numba-cpu"
    for file in files:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            given = folder / "arguments.npz"
            try:
                write_arguments(load(file), given)
                module = built(file, target, db, folder)
                first = new_process(module, given, gpu, folder)
                others = [new_process(module, given, gpu, folder) for _ in range(processes)]
            except (LooptuneError, RuntimeError, subprocess.TimeoutExpired) as error:
                yield f"| {file.stem} | {error} | | | |"
                continue
        imported, again, second = map(_spread, zip(*others, strict=True))
        yield f"| {file.stem} | {imported} | {first[1]:,.0f} ms | {again} | {second} |"


def _spread(times: Sequence[float]) -> str:
    return f"{median(times):.3g} ms [{min(times):.3g}, {max(times):.3g}]"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="What the first call of a built module takes a new process.")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--db", type=Path, help="default: modules are built without measurements")
    parser.add_argument("--target", default="numba-cuda")
    parser.add_argument("--processes", type=int, default=7)
    parser.add_argument("--call", nargs=2, type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--gpu", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.call:
        print(json.dumps(measure(*given.call, given.gpu)))
        return 0
    own = [Path(__file__).parent.parent / "polybench" / f"{name}.c" for name in FILES]
    try:
        facts = targets.resolve(given.target, CACHE).machine().facts
        print(f"# The first call of built modules on {facts.name}\n\n{HEAD}\n|{'---|' * (HEAD.count('|') - 1)}")
        for line in rows(given.files or own, given.target, given.db, given.processes):
            print(line, flush=True)
    except LooptuneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"\nCommand: `{' '.join(['python benchmarks/first_call.py', *arguments])}`")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
