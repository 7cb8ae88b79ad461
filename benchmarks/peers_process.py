"""One version of one kernel in a process of its own: benchmarks/peers.py starts it, and ends it.

    python benchmarks/peers_process.py PEER TASK

It prepares the version and says so, then answers requests; both are JSON, one object a line:

    {"ready": seconds, "by": .., "package": ..}      first, without a request
    {"save": FOLDER}      -> {}                       the results, for the others to compare with
    {"compare": FOLDER}   -> {"error": .., "wrong": ..}
    {"sample": true}      -> {"us": ..}

An exception ends the process: its type and first line are the last answer, as {"failed": ..}, or {"missing": ..} where
a package is not installed. What libraries print goes to the standard error.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

import numpy as np
from peers_task import NothingToTime, Results, Task, Version

from looptune.runtime.tolerance import compare, relative_error

MODULES = {
    "looptune": "peers_looptune", "library": "peers_torch", "torch.compile": "peers_torch", "JAX": "peers_jax",
    "Triton": "peers_triton",
}  # fmt: skip
MOST = 2**24
MARGIN = 16
"""Sums are compared as if they had so many times their terms: both results have rounding errors."""


def saved(results: Results, folder: Path) -> dict[str, Any]:
    for name, array in results.items():
        np.save(folder / f"{name}.npy", compared_part(array))
    return {}


def compared_part(array: np.ndarray) -> np.ndarray:
    """All of an array; of a very large one every seventh element, which takes a second instead of ten."""
    return array if array.size <= MOST else array.reshape(-1)[::7]


def compared(results: Results, folder: Path, size: int) -> dict[str, Any]:
    """The largest relative error of a result, and what is wrong, if anything is."""
    expected = {name: np.load(folder / f"{name}.npy") for name in results}
    got = {name: compared_part(array) for name, array in results.items()}
    worst = max(relative_error(expected[name], got[name]) for name in results)
    return {"error": worst, "wrong": compare(expected, got, terms=MARGIN * size)}


def answers(request: Mapping[str, Any], version: Version, task: Task) -> dict[str, Any]:
    match request:
        case {"save": folder}:
            return saved(version.results, Path(folder))
        case {"compare": folder}:
            return compared(version.results, Path(folder), max(task.sizes.values()))
        case _:
            return {"us": version.sample()}


def said(output: TextIO, answer: Mapping[str, Any]) -> None:
    output.write(json.dumps(answer) + "\n")
    output.flush()


def main(arguments: list[str]) -> None:
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def failed(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        lines = str(error).strip().splitlines()
        name = [] if issubclass(kind, NothingToTime) else [f"{kind.__name__}:"]
        text = " ".join([*name, *lines[:1]])[:300]
        said(output, {"missing" if issubclass(kind, ImportError) else "failed": text})
        sys.__excepthook__(kind, error, trace)

    sys.excepthook = failed
    peer, text = arguments
    start = time.perf_counter()
    task = Task.parsed(text)
    version = importlib.import_module(MODULES[peer]).prepare(task, peer)
    said(output, {"ready": time.perf_counter() - start, "by": version.by, "package": version.package})
    for line in sys.stdin:
        said(output, answers(json.loads(line), version, task))


if __name__ == "__main__":
    main(sys.argv[1:])
