"""The chart of GATLAS: each case of the product over sizes, tuned, as tab-separated lines.

    python benchmarks/gatlas.py [--case nn ...] [--plain] [--sizes 256,512,...] [--devices all] [--budget N]
                                [--finals-timeout S] [--strategy NAME] [--db FILE] [-o FILE]

    what the database lacks, tuned at once ─▶ versions built, side by side ─▶ line after line, alone on one device

For each case (nn nt tn tt: A, B transposed or not) and size N (or MxNxK) ``gatlas/product.c`` is tuned, unless the
database has finals of it, and its best version timed as ``gatlas_line`` says.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, TextIO

from gatlas_line import Bench, Case, Versions, say, warn

from looptune.backends.base import Binary
from looptune.cli.progress import ProgressLine
from looptune.core.errors import LooptuneError, TargetError, UsageError
from looptune.core.floating_point import DEFAULT
from looptune.core.settings import DATABASE
from looptune.deploy.best_versions import BestVersion, best_versions
from looptune.deploy.precompile import Sizes, builder
from looptune.frontend import Unit, load
from looptune.ir.nodes import Codelet
from looptune.runtime.device import cores
from looptune.runtime.targets import CACHE, Model
from looptune.tune.execution.executor import Executor, compile_all
from looptune.tune.execution.lab import PlainLab
from looptune.tune.execution.local_executor import open_executor
from looptune.tune.execution.pool import default_jobs
from looptune.tune.execution.worker_loop import TaskResult
from looptune.tune.session.experiment import concurrent_groups, run_all
from looptune.tune.session.prepare import TuningRequest, prepare_all
from looptune.tune.store.store import Store

ROOT = Path(__file__).parent.parent
FILE = ROOT / "gatlas" / "product.c"
CASES: Mapping[str, tuple[str, ...]] = {
    "nn": (), "nt": ("TRANS_B",), "tn": ("TRANS_A",), "tt": ("TRANS_A", "TRANS_B"),
}  # fmt: skip
SIZES = "256,512,1024,2048,4096,8192"
BUDGET, FINALS_S = "40", 3.0
"""Of each sweep: what a search finds later is worth little, and every case and size has finals of its own."""
BUILD_S = 120.0
STOPPED = 130
RESUMES = "stopped; the measurements are saved: run the same command again to continue"
HEAD = ("case", "M", "N", "K", "kernel us", "q1", "q3", "n", "GFLOP/s", "% of FMA peak", "arguments us", "GFLOP/s",
        "library us", "GFLOP/s", "transfers us", "n", "GFLOP/s", "error", "directives")  # fmt: skip


def cases(names: Sequence[str], plain: bool, sizes: str) -> Iterator[Case]:
    for name in names:
        for size in sizes.split(","):
            numbers = [int(x) for x in size.split("x")]
            m, n, k = numbers * 3 if len(numbers) == 1 else numbers
            yield Case(name, (*CASES[name], *(["NO_ALPHA_BETA"] if plain else [])), m, n, k)


# What is tuned.


def tuned(units: Mapping[Case, Unit], model: Model, executor: Executor, given: Any) -> bool:
    """Sweep what the database has no finals of, all of it at once; False where that was interrupted."""
    known = bests(units, model, given.db)
    missing = [case for case in units if case not in known]
    if not missing:
        return True
    say(f"tuning {len(missing)} of {len(units)} cases and sizes on {model.facts.name}")
    ready = [prepare_all(request(case, given), executor) for case in missing]
    live = ProgressLine(sys.stderr, [prepared.context for (prepared,) in ready])
    for group in concurrent_groups(ready, executor):
        every = [one for prepared in group for one in prepared]
        with Store.open(given.db) as store:
            for warning in store.warnings:
                warn(warning)
            if any(result.interrupted for result in run_all(every, store, live, executor)):
                return False
    return True


def request(case: Case, given: Any) -> TuningRequest:
    return TuningRequest(
        FILE, defines=case.defines, dtype=given.dtype, target=given.target, sweep=True, strategy=given.strategy,
        budget=given.budget, jobs=given.jobs, finals_s=given.finals_timeout, seed=given.seed, db=given.db,
        devices=given.devices,
    )  # fmt: skip


def bests(units: Mapping[Case, Unit], model: Model, db: Path) -> dict[Case, BestVersion]:
    """What finals have been won on this device: those of a sweep that was broken off are still to come."""
    if not db.exists():
        return {}
    with Store.read(db) as store:
        every = {case: best_versions(store, unit, model.target.name) for case, unit in units.items()}
    own = {case: [b for b in of if b.final and b.context.device == model.facts.name] for case, of in every.items()}
    sizes = {case: {"ni": case.m, "nj": case.n, "nk": case.k} for case in units}
    return {case: best for case, of in own.items() for best in of if {**best.sizes} == sizes[case]}


# What is built.


def built(
    of: Mapping[Case, tuple[Codelet, BestVersion]], model: Model, executor: Executor, jobs: int | None
) -> dict[Case, Versions]:
    """Side by side, before anything is timed; a target that inlines no sizes has one version."""
    target = model.target
    kinds: tuple[Sizes, ...] = ("exact", "elsewhere") if target.specializes_sizes else ("exact",)
    tasks = [*product(range(len(of)), kinds)]
    at_once = jobs if jobs is not None else default_jobs() if target.specializes_sizes else cores()
    build = partial(builder, tuple(of.values()), target)
    lab = PlainLab(build, (build,) * len(model.devices))
    with executor.open([lab], [model], at_once, BUILD_S, exclusive=True) as workers:
        replies = compile_all(workers, [(0, kind, number) for number, kind in tasks])
    found: dict[tuple[int, Sizes], Binary | None] = {}
    for task, reply in zip(tasks, replies, strict=True):
        if not isinstance(reply, TaskResult):
            raise TargetError(f"{[*of][task[0]]} is not built: {reply.message}")
        found[task] = None if reply.value is None else reply.value.load()
    made: dict[Case, Versions] = {}
    for number, case in enumerate(of):
        exact = found[number, "exact"]
        assert exact is not None, "what was measured can be built"
        made[case] = Versions(exact, found[number, "elsewhere"] if target.specializes_sizes else exact)
    return made


# What is written.


def chart(given: Any) -> int:
    """0; 1 where a case could not be tuned or is wrong."""
    every = [*cases(given.case if given.case else list(CASES), given.plain, given.sizes)]
    units = {case: load(FILE, defines=case.defines, dtype=given.dtype) for case in every}
    with open_executor(None, given.devices, warn) as executor:
        models = executor.models(given.target, CACHE, floats=DEFAULT, warm=False)
        if len(models) > 1:
            raise UsageError(f"a chart is of one model of device: choose one of {', '.join(given.devices.split(','))}")
        (model,) = models
        if not tuned(units, model, executor, given):
            say(RESUMES)
            return STOPPED
        found = bests(units, model, given.db)
        of = {case: (units[case].codelet, best) for case, best in found.items()}
        made = built(of, model, executor, given.jobs)
    # The processes that measured are gone, and with them what they held on the devices.
    failed = [f"nothing was timed of {case}" for case in every if case not in found]
    bench = Bench.on(model.target, given.seed + 1)
    with ExitStack() as stack:
        out = [sys.stdout, *([] if given.output is None else [stack.enter_context(given.output.open("w"))])]
        write(HEAD, out)
        for case, (codelet, best) in of.items():
            try:
                write(bench.line(case, best, codelet, made[case]), out)
            except (LooptuneError, RuntimeError) as error:  # a RuntimeError is the library's
                failed.append(str(error))
    for message in failed:
        say(f"error: {message}")
    return 1 if failed else 0


def write(cells: Sequence[str], out: Sequence[TextIO]) -> None:
    for stream in out:
        print("\t".join(cells), file=stream, flush=True)


def main(arguments: Sequence[str]) -> int:
    options = argparse.ArgumentParser(description="GATLAS's chart: products over sizes, as tab-separated lines")
    options.add_argument("--case", action="append", choices=list(CASES))
    options.add_argument("--plain", action="store_true", help="without alpha and beta")
    options.add_argument("--sizes", default=SIZES, help="N or MxNxK, separated by commas")
    options.add_argument("--strategy", default="gatlas-nested", help="of the sweeps: looptune run --strategy")
    options.add_argument("--budget", default=BUDGET, help="versions of a sweep; with a time they run one by one")
    options.add_argument("--finals-timeout", type=float, default=FINALS_S, metavar="S", help="of each sweep's finals")
    options.add_argument(
        "--jobs", type=int, metavar="N", help="compile in this number of processes; default: all cores but one"
    )
    options.add_argument("--seed", type=int, default=0, metavar="N", help="of searches and inputs")
    options.add_argument("--devices", metavar="LIST", help="GPUs that sweep: looptune run --devices")
    options.add_argument("--db", type=Path, default=DATABASE)
    options.add_argument("--target", default="auto", choices=["auto", "numba-cuda", "numba-cpu"])
    options.add_argument("--dtype", default="float32", choices=["float32", "float64"])
    options.add_argument("-o", "--output", type=Path, metavar="FILE", help="the lines as a file too, as they come")
    given = options.parse_args(arguments)
    try:
        if given.output is not None:
            given.output.touch()
        return chart(given)
    except (LooptuneError, OSError) as error:
        say(f"error: {error}")
        return 2
    except KeyboardInterrupt:
        say(RESUMES)
        return STOPPED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
