"""Rows of a results database, and a process that dies between beginning and finishing one."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from looptune.runtime.outcome import Timed
from looptune.tune.store.store import Context, Row, canonical_json
from tests.helpers.paths import ROOT

CONTEXT = Context("gemm", "c0ffee", "1", "numba 0.68", "9.0", "H100", "cuda", canonical_json({"n": 512}), "float32")


def timed(median_us: float) -> Timed:
    return Timed((median_us,) * 3, median_us, median_us, median_us, "original")


def row(text: str, **changes: object) -> Row:
    return replace(Row(CONTEXT, text, sweep="s1"), **changes)  # type: ignore[arg-type]


RUNS = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
from looptune.tune.store.store import Store
from tests.helpers.store_rows import row
store = Store.open(sys.argv[1])
store.begin(row("culprit"))
print("begun", flush=True)
sys.stdin.read() if sys.argv[3] == "wait" else os.kill(os.getpid(), signal.SIGKILL)
"""


def runner(path: Path, how: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", RUNS, str(path), str(ROOT), how]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
