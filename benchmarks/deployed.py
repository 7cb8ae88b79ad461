"""What a module of ``looptune build`` costs beside the sweep's own: time on the device, and of the host a call.

    python benchmarks/deployed.py [--db FILE] [--target numba-cuda | numba-cpu] [--finals-timeout S] [FILE.c ...]

For each C file (default: polybench/*.c) and each of its sizes that the database has for this device: the module's
function and the configuration as the sweep builds it, timed in turn on the same arrays (``finals``; the function gets
them as CuPy arrays, on CuPy's current stream, where there is CuPy), and the host's microseconds for a call that waits
for nothing: all of it, the driver's launches in it made again with the same parameters, and what the module adds to
them. Writes a Markdown table to standard output. A kernel that the database does not have, or that does not run, is a
line that says so.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

import numpy as np

from looptune.backends.codegen.python import ident
from looptune.core.errors import LooptuneError
from looptune.core.settings import DATABASE, FINALS_S
from looptune.deploy import plans, python_module
from looptune.deploy.best_versions import BestVersion, best_versions
from looptune.frontend import Unit, load
from looptune.ir.nodes import Array
from looptune.runtime import targets
from looptune.runtime.device import Device
from looptune.runtime.problem_sizes import problem
from looptune.runtime.targets import CACHE, Target
from looptune.runtime.timing import finals, speedup, summary
from looptune.schedule.analysis import Analysis
from looptune.tune.store.store import Store

HEAD = (
    "| kernel | sizes | module | the sweep's own | over it | in the database | host, a call | its launches | added "
    "| match |"
)
COLUMNS = HEAD.count("|") - 1
CUPY = importlib.import_module("cupy") if importlib.util.find_spec("cupy") is not None else None
BATCH, BATCHES = 50, 20
"""Calls that are queued at once, so few that the host does not wait for room in the queue, and how often."""


def imported(text: str, folder: Path, name: str) -> ModuleType:
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None, f"{path} can be imported"
    assert spec.loader is not None, f"{path} has a loader"
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def host_us(call: Callable[[], Any], wait: Callable[[], Any]) -> float:
    """The median over batches of what one call takes the host."""
    times = []
    for _ in range(BATCHES):
        wait()
        start = time.perf_counter()
        for _ in range(BATCH):
            call()
        times.append((time.perf_counter() - start) / BATCH * 1e6)
    wait()
    return median(times)


class Noting:
    """A driver that notes what launches."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self.launches: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.driver, name)
        if name not in ("cuLaunchKernel", "cuGraphLaunch"):
            return found

        def launch(*args: Any) -> Any:
            self.launches.append((found, args))
            return found(*args)

        return launch


def launches_us(made: ModuleType, call: Callable[[], Any], wait: Callable[[], Any]) -> float | None:
    """What the driver's launches of one call take the host, made without the module; None where there are none."""
    driver = getattr(made, "driver", None)
    if driver is None:
        return None
    noting = Noting(driver)
    vars(made)["driver"] = noting
    try:
        call()
    finally:
        vars(made)["driver"] = driver

    def again() -> None:
        for launch, args in noting.launches:
            launch(*args)

    return host_us(again, wait)


def as_users_pass(array: Any) -> Any:
    """As a CuPy array, which shares its memory, where there is CuPy and it is on a GPU."""
    if CUPY is None or isinstance(array, np.ndarray):
        return array
    return CUPY.asarray(array)


def current(stream: Any) -> AbstractContextManager[Any]:
    """In it the stream is CuPy's current one, where there is CuPy."""
    return nullcontext() if CUPY is None or stream is None else CUPY.cuda.ExternalStream(int(stream))


def row(unit: Unit, best: BestVersion, made: ModuleType, target: Target, machine: Device, limit_s: float) -> str:
    """One line of the table."""
    at = problem(unit.codelet, best.values)
    given = at.arrays(unit.codelet, 0)
    arrays = {name: machine.place(a) for name, a in given.items()}
    written = [p.name for p in unit.codelet.params if isinstance(p, Array) and p.io != "in"]
    restore = {name: (arrays[name], machine.place(given[name])) for name in written}
    backend = target.backend()
    program = backend.load(backend.build(plans.exact(Analysis(unit.codelet), best)))
    passed = {name: as_users_pass(a) for name, a in arrays.items()}
    args = [passed[p.name] if p.name in passed else best.values[p.name] for p in unit.codelet.params]
    function = getattr(made, made.__all__[1])

    def on(stream: Any) -> dict[str, int]:
        return {"stream": int(stream)} if machine.asynchronous else {}

    def call(stream: Any) -> None:
        with current(stream):
            function(*args, **on(stream))

    def wait() -> None:
        machine.fetch(arrays[written[0]])

    call(machine.stream)
    samplers = {
        "module": machine.sampler(call, restore),
        "sweep": machine.sampler(lambda stream: program.run(arrays, best.values, stream), restore),
    }
    times = finals(samplers, 0, limit_s=limit_s, patience_s=2 * limit_s)
    ours, theirs = summary(times["module"]), summary(times["sweep"])
    ratio = speedup(times["sweep"], times["module"], 0)
    match = made.match(*best.sizes.values()).level
    with current(machine.stream):
        keywords = on(machine.stream)
        host = host_us(lambda: function(*args, **keywords), wait)
        bare = launches_us(made, lambda: function(*args, **keywords), wait)
    launching = ("-", "-") if bare is None else (f"{bare:.2f} us", f"{host - bare:.2f} us")
    cells = (
        ident(unit.codelet.name), " ".join(f"{n}={v}" for n, v in best.sizes.items()), str(ours), str(theirs),
        f"{ratio.ratio:.3f} [{ratio.low:.3f}, {ratio.high:.3f}] {ratio.verdict}", f"{best.time.median_us:.4g} us",
        f"{host:.2f} us", *launching, match,
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def rows(files: Sequence[Path], db: Path, target: Target, folder: Path, limit_s: float) -> Iterator[str]:
    machine = target.machine()
    place = (machine.facts.name, machine.facts.cores)
    for file in files:
        unit = load(file)
        with Store.read(db) as store:
            found = best_versions(store, unit, target.name)
        here = [best for best in found if (best.context.device, best.cores) == place]
        if not here:
            yield f"| {unit.codelet.name} | nothing in {db} for {place[0]} |{' |' * (COLUMNS - 2)}"
            continue
        try:
            text = python_module.text(python_module.ModuleRequest(unit, target.name, found, "benchmarks/deployed.py"))
            made = imported(text, folder, f"{ident(unit.codelet.name)}_deployed")
            for best in here:
                yield row(unit, best, made, target, machine, limit_s)
        except (LooptuneError, RuntimeError, ValueError, MemoryError) as error:
            yield f"| {unit.codelet.name} | {type(error).__name__}: {error} |{' |' * (COLUMNS - 2)}"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="The cost of deployed modules.")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--db", type=Path, default=DATABASE)
    parser.add_argument("--target", default="numba-cuda")
    parser.add_argument("--finals-timeout", type=float, default=FINALS_S, help="seconds to wait for a clear verdict")
    given = parser.parse_args(arguments)
    files = given.files if given.files else sorted(Path(__file__).parent.parent.glob("polybench/*.c"))
    # A match that is not exact stands in the table.
    warnings.simplefilter("ignore", UserWarning)
    # CuPy would have other streams in their place.
    warnings.simplefilter("ignore", DeprecationWarning)
    try:
        target = targets.resolve(given.target, CACHE)
        print(f"# Deployed modules on {target.machine().facts.name}\n\n{HEAD}\n|{'---|' * COLUMNS}")
        with tempfile.TemporaryDirectory() as folder:
            for line in rows(files, given.db, target, Path(folder), given.finals_timeout):
                print(line, flush=True)
    except LooptuneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"\nCommand: `{' '.join(['python benchmarks/deployed.py', *arguments])}`")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
