"""The command line of the differential test."""

from __future__ import annotations

import argparse
import functools
import random
import signal
import sys
import time
from collections.abc import Sequence

from tests.differential import planted, running
from tests.differential.batch import EVERY, ON_GPU


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential")
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--only", default="", help="numbers of cases, separated by commas")
    parser.add_argument("--seed", type=int, default=None, help="a run with the same seed makes the same cases")
    parser.add_argument("--targets", default=",".join(EVERY))
    parser.add_argument("--every", action="store_true", help="each case on each target, not on some of them in turn")
    parser.add_argument("--processes", type=int, default=0)
    parser.add_argument("--shrink", type=int, default=10, help="so many kinds of failures are made small")
    parser.add_argument("--seconds", type=float, default=60, help="for each of them")
    parser.add_argument("--plant", choices=tuple(planted.BUGS), help="a known mistake, to see whether it is found")
    parser.add_argument("--device", choices=("gpu",), help="run on the GPU that there is, not in Numba's simulator")
    given = parser.parse_args(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
    if given.plant:
        planted.BUGS[given.plant].plant()
    seed = random.SystemRandom().randrange(10**9) if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    numbers = [int(k) for k in given.only.split(",") if k] or list(range(given.first, given.first + given.cases))
    start = time.monotonic()
    targets = [t for t in given.targets.split(",") if t]
    if given.device:
        targets = ["front", *ON_GPU]
    say = functools.partial(print, flush=True)
    report = running.run(seed, numbers, targets, every=given.every, processes=given.processes, say=say)
    print(running.summary(report))
    print(f"{len(report.failures)} failures in {time.monotonic() - start:.0f} s", flush=True)
    running.minimised(seed, report.failures, say, given.shrink, given.seconds)
    if given.device and not any(report.counts[f"compared: {t}"] for t in ON_GPU):
        print("nothing ran on a GPU")
        return 2
    return 1 if report.failures else 0
