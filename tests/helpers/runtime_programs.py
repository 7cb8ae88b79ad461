"""The C runtime of whole programs with codelets that are written by hand, on a libcuda that is none."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.helpers.host_kernels import RUNTIME, environment
from tests.helpers.paths import TESTS

HERE = TESTS / "deploy" / "program"
SOURCES = (HERE / "codelets.c", RUNTIME / "looptune_runtime.c")
FREED = "left: 0 bytes, 0 pinned, 0 modules, 0 streams, 0 events, 0 contexts"


@dataclass(frozen=True)
class Ran:
    """What a program printed, and what the driver was asked for."""

    code: int
    out: str
    said: str
    log: list[str]

    def count(self, pattern: str) -> int:
        return sum(re.match(pattern, line) is not None for line in self.log)


@dataclass(frozen=True)
class Programs:
    folder: Path

    def run(self, *arguments: str, driver: object = True, program: object = "codelets", **settings: object) -> Ran:
        log = self.folder / "log"
        log.unlink(missing_ok=True)
        own = environment(self.folder if driver else None, self.folder / "kernels.so", FAKE_CUDA_LOG=log, **settings)
        command = [f"{self.folder}/{program}", *arguments]
        done = subprocess.run(command, env=dict(own), capture_output=True, text=True, timeout=100)
        lines = log.read_text().splitlines() if log.exists() else []
        return Ran(done.returncode, done.stdout, done.stderr, lines)

    def right(self, *arguments: str, **settings: object) -> Ran:
        """Run a program whose result must be right and which must free everything."""
        ran = self.run(*arguments, **settings)
        assert ran.code == 0, ran
        assert "right" in ran.out, ran
        return ran
