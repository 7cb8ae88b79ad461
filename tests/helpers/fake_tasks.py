"""What the processes of the made-up laboratory do. Each imports this module: it needs neither pytest nor Numba."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from looptune.runtime.outcome import Crashed, Illegal, Outcome, OverLimit, Timed, WrongResult
from looptune.tune.execution.lab import NextStep, PreparedVersion
from looptune.tune.incumbent import Incumbent
from looptune.tune.space.space import Configuration


def timed(median_us: float) -> Timed:
    return Timed((median_us,), median_us, median_us, median_us, "original")


def prepare(configuration: Configuration) -> PreparedVersion | Outcome:
    if "illegal" in configuration.text:
        return Illegal("iteration (i=1) must run before (i=2)")
    # `unroll 1` changes nothing: the same source as without it.
    source = f"source {configuration.text.replace('loop k: unroll 1', '')}"
    predicted = re.search(r"predicted (\d+)", configuration.text)
    return PreparedVersion(source, configuration.text, float(predicted[1]) if predicted else None)


def write(journal: Path, text: str) -> None:
    with journal.open("a") as file:
        file.write(f"{text}\n")


def compiler(journal: Path, seconds: float) -> Callable[[str, Any], Any]:
    def work(step: str, given: Any) -> Any:
        return prepare(given) if step == "prepare" else build(given)

    def build(text: str) -> Any:
        write(journal, f"compile {text!r}")
        time.sleep(seconds)
        match text:
            case "loop k: nobuild":
                raise RuntimeError("ptxas said no")
            case "loop k: overlimit":
                return OverLimit("needs 2048 threads per block, the limit is 1024")
            case "loop k: killcompiler":
                os.kill(os.getpid(), signal.SIGSEGV)
            case "loop k: hangcompiler":
                time.sleep(60)
            case "slowly":
                time.sleep(60)
        return ("built", text)

    return work


def measurer(journal: Path, seconds: float) -> Callable[[Any, Incumbent | None], Outcome | NextStep]:
    lost = []

    def measure(built: Any, best: Incumbent | None) -> Outcome | NextStep:
        _, text = built
        write(journal, f"measure {text!r} pid={os.getpid()} best={None if best is None else best.us}")
        time.sleep(seconds)
        if lost:
            return Crashed("the device context was lost before this")
        match text:
            case "loop k: segfault":
                os.kill(os.getpid(), signal.SIGSEGV)
            case "loop k: forever":
                while True:
                    pass
            case "loop k: wrong":
                return WrongResult("C[0][0]: got 1, expected 2")
            case "loop k: lostcontext":
                lost.append(text)
                raise RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS")
        first, _, more = text.removeprefix("loop k: ").partition(" ")
        if first == "reduced":
            us, _, more = more.partition(" ")
            return NextStep(f"loop k: {more}", None, float(us))
        if first in ("again", "later"):
            return NextStep(more if more == "slowly" else f"loop k: {more}", timed(50.0) if first == "again" else None)
        found = re.search(r"unroll (\d+)", text)
        return timed(100.0 / int(found[1]) if found else 100.0)

    return measure
