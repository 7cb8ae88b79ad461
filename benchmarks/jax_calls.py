"""What a call of a function of ``looptune build --jax`` takes under ``jax.jit``, beside the sweep's own time.

    python benchmarks/jax_calls.py [--db FILE] [--target numba-cuda | numba-cpu] [FILE.c ...]

For each C file (default: polybench/*.c) and each of its sizes that the database has for this device: the time of a call
whose result is the next call's argument, donated, so that nothing is copied, and of one that XLA has to copy arguments
for. Each is the median of batches of calls, of which the last one is waited for, with the numbers of C as constants of
the program. The results of the first call are compared with those of ``looptune.compile(config="best")``. The sweep's
time is that of the finals, in which a GPU's cache is flushed before each run; on a CPU it is that of a kernel made by
Numba, and JAX calls C. Writes a Markdown table to standard output. It needs jax, on a GPU ``pip install "jax[cuda13]"``
or ``"jax[cuda12]"``.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import looptune
from looptune.backends.codegen.python import ident
from looptune.core.errors import LooptuneError
from looptune.core.settings import DATABASE
from looptune.core.si_units import time_text
from looptune.deploy import build
from looptune.deploy.best_versions import BestVersion, best_versions
from looptune.frontend import Unit, load
from looptune.ir.nodes import Array
from looptune.runtime import targets
from looptune.runtime.problem_sizes import problem
from looptune.runtime.targets import CACHE, Target
from looptune.runtime.tolerance import compare
from looptune.tune.store.store import Store

HEAD = "| kernel | sizes | donated | copied | the sweep's own | the same results |"
COLUMNS = HEAD.count("|") - 1
BATCH_S, BATCHES = 0.02, 20
"""Seconds that a batch of calls takes at least, and the number of batches."""


def imported(text: str, folder: Path, name: str) -> Any:
    (folder / f"{name}.py").write_text(text)
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None, "it can be imported"
    assert spec.loader is not None, "it has a loader"
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def time_us(batch: Callable[[int], None]) -> float:
    """The median over batches of the microseconds of one call; ``batch`` makes so many and waits for the last."""
    batch(1)
    count = 1
    while True:
        start = time.perf_counter()
        batch(count)
        if time.perf_counter() - start >= BATCH_S:
            break
        count *= 2
    times = []
    for _ in range(BATCHES):
        start = time.perf_counter()
        batch(count)
        times.append((time.perf_counter() - start) / count * 1e6)
    return median(times)


def row(unit: Unit, file: Path, best: BestVersion, made: Any, target: Target, db: Path) -> str:
    """One line of the table."""
    jax = importlib.import_module("jax")
    function = getattr(made, made.__all__[0])
    at = problem(unit.codelet, best.values)
    given = at.arrays(unit.codelet, 0)
    written = [p.name for p in unit.codelet.params if isinstance(p, Array) and p.io != "in"]
    asked = {p.name for p in made.PARAMETERS} - set(made.KERNEL.extents)
    numbers = {name: value for name, value in best.values.items() if name in asked}

    def called(state: Mapping[str, Any], rest: Mapping[str, Any]) -> dict[str, Any]:
        values = {ident(name): value for name, value in {**numbers, **state, **rest}.items()}
        found = function(**values)
        return dict(zip(written, found if isinstance(found, tuple) else (found,), strict=True))

    def arrays(names: Sequence[str]) -> dict[str, Any]:
        return {name: jax.numpy.asarray(given[name]) for name in names}

    rest = arrays([name for name in given if name not in written])
    copying, donating = jax.jit(called), jax.jit(called, donate_argnums=0)
    own = {name: a.copy() for name, a in given.items()}
    kernel = looptune.compile(
        file, target=target.name, config="best", db=db, defines={n: str(v) for n, v in best.sizes.items()}
    )
    kernel(*(own.get(p.name, best.values.get(p.name)) for p in unit.codelet.params))
    got = {name: np.asarray(a) for name, a in copying(arrays(written), rest).items()}
    wrong = compare({name: own[name] for name in written}, got, terms=max(1, *best.sizes.values()))

    def donated(count: int) -> None:
        state = arrays(written)
        for _ in range(count):
            state = donating(state, rest)
        jax.block_until_ready(state)

    kept = arrays(written)

    def copied(count: int) -> None:
        for _ in range(count):
            found = copying(kept, rest)
        jax.block_until_ready(found)

    cells = (
        ident(unit.codelet.name), " ".join(f"{n}={v}" for n, v in best.sizes.items()), time_text(time_us(donated)),
        time_text(time_us(copied)), time_text(best.time.median_us), "yes" if wrong is None else f"NO: {wrong}",
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def rows(files: Sequence[Path], db: Path, target: Target, folder: Path) -> Iterator[str]:
    jax, facts = importlib.import_module("jax"), target.machine().facts
    for file in files:
        unit = load(file)
        with Store.read(db) as store:
            found = best_versions(store, unit, target.name)
        here = [best for best in found if (best.context.device, best.cores) == (facts.name, facts.cores)]
        if not here:
            yield f"| {unit.codelet.name} | nothing in {db} for {facts.name} |{' |' * (COLUMNS - 2)}"
            continue
        wide = any(p.dtype in ("float64", "int64", "uint64") for p in unit.codelet.params if isinstance(p, Array))
        jax.config.update("jax_enable_x64", wide)
        try:
            text = build.as_jax(unit, db, target.name, "benchmarks/jax_calls.py", cache=CACHE)
            made = imported(text, folder, f"{ident(unit.codelet.name)}_jax")
            yield from map(partial(row, unit, file, made=made, target=target, db=db), here)
        except (LooptuneError, RuntimeError, ValueError, TypeError) as error:
            yield f"| {unit.codelet.name} | {type(error).__name__}: {error} |{' |' * (COLUMNS - 2)}"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="The cost of calls from JAX.")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--db", type=Path, default=DATABASE)
    parser.add_argument("--target", default="numba-cuda")
    given = parser.parse_args(arguments)
    files = given.files if given.files else sorted(Path(__file__).parent.parent.glob("polybench/*.c"))
    if importlib.util.find_spec("jax") is None:
        print("error: there is no jax: pip install jax", file=sys.stderr)
        return 2
    # Otherwise JAX takes three quarters of a GPU's memory.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    try:
        target = targets.resolve(given.target, CACHE)
        print(f"# Calls from JAX on {target.machine().facts.name}\n\n{HEAD}\n|{'---|' * COLUMNS}")
        with tempfile.TemporaryDirectory() as folder:
            for line in rows(files, given.db, target, Path(folder)):
                print(line, flush=True)
    except LooptuneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"\nCommand: `{' '.join(['python benchmarks/jax_calls.py', *arguments])}`")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
