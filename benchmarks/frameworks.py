"""What a call of a tuned kernel takes from torch and from JAX, beside the sweep's own of the same configuration.

    python benchmarks/frameworks.py [--db FILE] [--target numba-cuda | numba-cpu] [--dtype float64] [FILE.c ...]

For each C file (default: polybench/*.c) and each of its sizes in the database that this device was tuned for, or
another device where this one was not: the kernel as the sweep runs it, which on a GPU is one CUDA graph; the operator
of ``looptune build --torch``, called as it is, in a function under ``torch.compile``, and replayed from a CUDA graph
that torch captured; and the function of ``looptune build --jax`` under ``jax.jit``, with donated arguments and with
arguments that XLA has to copy. The configuration is the same for all; on a CPU, JAX calls the C of ``build --c``,
which is another program than the sweep's. All take turns: a time is the median, with its quartiles, over rounds of
batches of calls, of which the last one is waited for. The results of the first calls are compared. The column
"finals" is the time in the database, for which a GPU's cache was flushed before each run.

Writes a Markdown table to standard output. It needs torch or jax, or both (``pip install torch "jax[cuda13]"``).
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from looptune.backends.codegen.python import ident
from looptune.core.errors import LooptuneError
from looptune.core.settings import DATABASE
from looptune.core.short_floats import BFLOAT
from looptune.core.si_units import time_text
from looptune.deploy import build, plans
from looptune.deploy.best_versions import BestVersion, best_versions
from looptune.deploy.runtime.arguments import tensor_memory
from looptune.frontend import Unit, load
from looptune.ir.nodes import Array
from looptune.runtime import targets
from looptune.runtime.device import Device
from looptune.runtime.problem_sizes import problem
from looptune.runtime.targets import CACHE, Target
from looptune.runtime.timing import summary
from looptune.runtime.tolerance import compare
from looptune.schedule.analysis import Analysis
from looptune.tune.store.store import Store

WAYS = ("the sweep's own", "torch", "torch.compile", "CUDA graph", "JAX, donated", "JAX, copied")
HEAD = f"| kernel | type | sizes | {' | '.join(WAYS)} | finals | the same results |"
COLUMNS = HEAD.count("|") - 1
BATCH_S, ROUNDS = 0.01, 20
"""Seconds that a batch of calls takes at least, and the batches of each way to call."""

Batch = Callable[[int], None]
"""Makes so many calls and waits for the last."""
Results = Mapping[str, np.ndarray]


def imported(text: str, folder: Path, name: str) -> Any:
    (folder / f"{name}.py").write_text(text)
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None, "it can be imported"
    assert spec.loader is not None, "it has a loader"
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def batch_size(batch: Batch) -> int:
    """So many calls that a batch of them takes BATCH_S."""
    batch(1)
    count = 1
    while True:
        start = time.perf_counter()
        batch(count)
        if time.perf_counter() - start >= BATCH_S:
            return count
        count *= 2


def times_us(batches: Mapping[str, Batch]) -> dict[str, list[float]]:
    """The microseconds of one call in each round, of each way; the order of a round is a shuffled one."""
    counts = {name: batch_size(batch) for name, batch in batches.items()}
    times: dict[str, list[float]] = {name: [] for name in batches}
    order, shuffler = list(batches), random.Random(0)
    for _ in range(ROUNDS):
        shuffler.shuffle(order)
        for name in order:
            start = time.perf_counter()
            batches[name](counts[name])
            times[name].append((time.perf_counter() - start) / counts[name] * 1e6)
    return times


def sweeps_own(
    unit: Unit, best: BestVersion, target: Target, machine: Device, given: Results, written: Sequence[str]
) -> tuple[Batch, Results]:
    """Calls of the configuration as the sweep makes them, and what one leaves."""
    arrays = {name: machine.place(a) for name, a in given.items()}
    backend = target.backend()
    program = backend.load(backend.build(plans.exact(Analysis(unit.codelet), best)))
    repeat = machine.repeater(lambda stream: program.run(arrays, best.values, stream), {})
    repeat(1)
    return repeat, {name: machine.fetch(arrays[name]) for name in written}


def as_tensor(torch: Any, array: np.ndarray) -> Any:
    """A copy as a tensor; torch does not know NumPy's bfloat16."""
    if array.dtype.name != BFLOAT:
        return torch.from_numpy(array.copy())
    return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)


def torch_calls(
    unit: Unit, best: BestVersion, made: Any, gpu: bool, given: Results, written: Sequence[str]
) -> tuple[dict[str, Batch], Results]:
    """Calls of the operator, and what one leaves."""
    torch = importlib.import_module("torch")
    operator = getattr(made, next(name for name in made.__all__ if name.endswith("_op")))
    where = "cuda" if gpu else "cpu"
    tensors = {name: as_tensor(torch, a).to(where) for name, a in given.items()}
    args = [tensors[p.name] if p.name in tensors else best.values[p.name] for p in unit.codelet.params]
    operator(*args)
    results = {name: tensor_memory(tensors[name].cpu()) for name in written}
    wait = torch.cuda.synchronize if gpu else lambda: None
    compiled = torch.compile(lambda given: operator(*given), fullgraph=True)

    def calls(call: Callable[[], Any]) -> Batch:
        def batch(count: int) -> None:
            for _ in range(count):
                call()
            wait()

        return batch

    ways = {"torch": calls(lambda: operator(*args)), "torch.compile": calls(lambda: compiled(args))}
    if gpu:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            operator(*args)
        ways["CUDA graph"] = calls(graph.replay)
    return ways, results


def jax_calls(best: BestVersion, made: Any, given: Results, written: Sequence[str]) -> tuple[dict[str, Batch], Results]:
    """Calls of the function of JAX, and what one returns; the numbers of C are constants of the program."""
    jax = importlib.import_module("jax")
    function = getattr(made, made.__all__[0])
    asked = {p.name for p in made.PARAMETERS} - set(made.KERNEL.extents)
    numbers = {name: value for name, value in best.values.items() if name in asked}

    def called(state: Mapping[str, Any], rest: Mapping[str, Any]) -> dict[str, Any]:
        values = {ident(name): value for name, value in {**numbers, **state, **rest}.items()}
        found = function(**values)
        return dict(zip(written, found if isinstance(found, tuple) else (found,), strict=True))

    def arrays(names: Sequence[str]) -> dict[str, Any]:
        return {name: jax.numpy.asarray(given[name]) for name in names}

    rest, kept = arrays([name for name in given if name not in written]), arrays(written)
    copying, donating = jax.jit(called), jax.jit(called, donate_argnums=0)
    results = {name: np.asarray(a) for name, a in copying(kept, rest).items()}
    # Arrays of its own, which each call takes and returns.
    state = [jax.block_until_ready(arrays(written))]

    def donated(count: int) -> None:
        for _ in range(count):
            state[0] = donating(state[0], rest)
        jax.block_until_ready(state[0])

    def copied(count: int) -> None:
        for _ in range(count):
            found = copying(kept, rest)
        jax.block_until_ready(found)

    return {"JAX, donated": donated, "JAX, copied": copied}, results


def row(unit: Unit, best: BestVersion, made: Mapping[str, Any], target: Target, machine: Device) -> str:
    """One line of the table."""
    given = problem(unit.codelet, best.values).arrays(unit.codelet, 0)
    written = [p.name for p in unit.codelet.params if isinstance(p, Array) and p.io != "in"]
    repeat, expected = sweeps_own(unit, best, target, machine, given, written)
    batches, results = {WAYS[0]: repeat}, {}
    if "torch" in made:
        ways, results["torch"] = torch_calls(unit, best, made["torch"], machine.asynchronous, given, written)
        batches |= ways
    if "JAX" in made:
        ways, results["JAX"] = jax_calls(best, made["JAX"], given, written)
        batches |= ways
    terms = max(1, *best.sizes.values())
    found = {name: compare(expected, got, terms=terms) for name, got in results.items()}
    wrong = [f"{name}: {what}" for name, what in found.items() if what is not None]
    times = {name: summary(each) for name, each in times_us(batches).items()}
    shown = [
        f"{time_text(times[way].median_us)} [{times[way].q1_us:.4g}, {times[way].q3_us:.4g}]" if way in times else "-"
        for way in WAYS
    ]
    sizes = " ".join(f"{n}={v}" for n, v in best.sizes.items())
    ending = (time_text(best.time.median_us), f"NO: {'; '.join(wrong)}" if wrong else "yes")
    return f"| {' | '.join((ident(unit.codelet.name), best.context.dtype, sizes, *shown, *ending))} |"


def rows(files: Sequence[Path], given: argparse.Namespace, target: Target, folder: Path) -> Iterator[str]:
    machine = target.machine()
    place = (machine.facts.name, machine.facts.cores)
    for file in files:
        unit = load(file, dtype=given.dtype, defines=dict(d.partition("=")[::2] for d in given.define))
        name = ident(unit.codelet.name)
        with Store.read(given.db) as store:
            found = best_versions(store, unit, target.name)
        here = [best for best in found if (best.context.device, best.cores) == place]
        if not found:
            yield f"| {name} | nothing in {given.db} |{' |' * (COLUMNS - 2)}"
            continue
        try:
            made = modules(unit, given.db, target.name, folder)
            for best in here if here else found:
                yield row(unit, best, made, target, machine)
        except (LooptuneError, RuntimeError, ValueError, TypeError) as error:
            said = f"{type(error).__name__}: {error}".splitlines()[0]
            yield f"| {name} | {said} |{' |' * (COLUMNS - 2)}"


def modules(unit: Unit, db: Path, target: str, folder: Path) -> dict[str, Any]:
    """The module of each framework that is installed."""
    command, made = "benchmarks/frameworks.py", {}
    stem = f"{ident(unit.codelet.name)}_{len(list(folder.iterdir()))}"
    if importlib.util.find_spec("torch") is not None:
        text = build.as_python(unit, db, target, command, torch=True)
        made["torch"] = imported(text, folder, f"{stem}_torch")
    if importlib.util.find_spec("jax") is not None:
        wide = any(p.dtype in ("float64", "int64", "uint64") for p in unit.codelet.params if isinstance(p, Array))
        importlib.import_module("jax").config.update("jax_enable_x64", wide)
        made["JAX"] = imported(build.as_jax(unit, db, target, command, cache=CACHE), folder, f"{stem}_jax")
    return made


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="The cost of calls from torch and JAX.")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--db", type=Path, default=DATABASE)
    parser.add_argument("--target", default="numba-cuda")
    parser.add_argument("--dtype", help="replace the floating-point type of the files")
    parser.add_argument("-D", dest="define", action="append", default=[], metavar="NAME=VALUE")
    given = parser.parse_args(arguments)
    files = given.files if given.files else sorted(Path(__file__).parent.parent.glob("polybench/*.c"))
    if all(importlib.util.find_spec(name) is None for name in ("torch", "jax")):
        print("error: there is neither torch nor jax: pip install torch jax", file=sys.stderr)
        return 2
    # Otherwise JAX takes three quarters of a GPU's memory.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    # A match that is not exact stands in the table: the finals are those of another device.
    warnings.simplefilter("ignore", UserWarning)
    try:
        target = targets.resolve(given.target, CACHE)
        print(f"# Calls from torch and JAX on {target.machine().facts.name}\n\n{HEAD}\n|{'---|' * COLUMNS}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            for line in rows(files, given, target, Path(folder)):
                print(line, flush=True)
    except LooptuneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"\nCommand: `{' '.join(['python benchmarks/frameworks.py', *arguments])}`")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
