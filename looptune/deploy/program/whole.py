"""Times of a whole program: as the C compiler makes it, with default kernels, with tuned ones, and with those by hand.

    gcc -O3 ─▶ program                                     run in turn, ``RUNS`` times each: the time from the start
    looptune cc, without and with a database ─▶ programs   of the process to its end, and what the runtime reports

Grauer-Gray et al. (InPar 2012) compare kernels; a user waits for programs, which also copy.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from looptune.core import cache_folder
from looptune.core.errors import UsageError
from looptune.core.floating_point import Floats
from looptune.deploy.program.build import ProgramBuild, ProgramOptions
from looptune.deploy.program.command_line import parse

RUNS = 5
LONGEST_S = 600.0
"""Of one run."""
PLAIN, DEFAULT, TUNED, BY_HAND = "gcc -O3", "default", "tuned", "by hand"


@dataclass(frozen=True, slots=True)
class ProgramTimes:
    """The times of one version of a program, in seconds.

    ``runs`` are those of the whole program, empty if the time was computed; ``whole_s`` is their median. ``kernel_s``,
    ``to_device_s`` and ``from_device_s`` are medians of what the runtime reports of all codelets, None for a program
    without the runtime; ``prints_the_same``: what it prints is what the plain program prints.
    """

    label: str
    runs: tuple[float, ...]
    whole_s: float
    kernel_s: float | None = None
    to_device_s: float | None = None
    from_device_s: float | None = None
    on_device: bool = False
    prints_the_same: bool = True

    @property
    def without_transfers_s(self) -> float:
        return self.whole_s - sum(s for s in (self.to_device_s, self.from_device_s) if s is not None)


@dataclass(frozen=True, slots=True)
class WholeProgram:
    """What is timed: a C file, its macros and folders of headers, the codelet, and the database of what was tuned."""

    path: Path
    defines: Mapping[str, str]
    include_dirs: Sequence[Path]
    kernel: str | None
    db: Path
    architectures: tuple[str, ...]
    floats: Floats


def time_program(
    what: WholeProgram, by_hand_us: float | None, warn: Callable[[str], object]
) -> tuple[ProgramTimes, ...]:
    """Return the times of the program's versions.

    ``by_hand_us`` is the time of hand-written kernels, None if there are none.
    The version by hand is computed: that with tuned kernels, with their time in place of these.
    Raises UsageError if the program cannot be compiled, or ends with an error.
    """
    with tempfile.TemporaryDirectory(prefix=cache_folder.process_prefix()) as temporary:
        folder = Path(temporary)
        programs = {label: _built(what, label, folder, warn) for label in (PLAIN, DEFAULT, TUNED)}
        runs = [{label: _run(path, folder) for label, path in programs.items()} for _ in range(RUNS)]
    printed = runs[0][PLAIN].printed
    found = [_times(label, [r[label] for r in runs], printed) for label in programs]
    tuned = found[-1]
    if by_hand_us is not None and tuned.kernel_s is not None and tuned.on_device:
        found.append(ProgramTimes(
            BY_HAND, (), tuned.whole_s - tuned.kernel_s + 1e-6 * by_hand_us, 1e-6 * by_hand_us, tuned.to_device_s,
            tuned.from_device_s, True
        ))  # fmt: skip
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Run:
    seconds: float
    printed: bytes
    reports: tuple[Mapping[str, float], ...]


def _built(what: WholeProgram, label: str, folder: Path, warn: Callable[[str], object]) -> Path:
    output = folder / label.replace(" ", "_")
    macros = [f"-D{name}={value}" for name, value in what.defines.items()]
    command = [str(what.path), "-O3", "-march=native", *macros, *(f"-I{d}" for d in what.include_dirs), "-lm"]
    kernels = (what.kernel,) if what.kernel is not None else ()
    db = what.db if label == TUNED else None
    options = ProgramOptions(kernels, what.architectures, db, predict=label == TUNED, floats=what.floats)
    build = ProgramBuild(parse([*command, "-w", "-o", str(output)]), options, warn, lambda said: None)
    if build.compile_plain() if label == PLAIN else build.run():
        raise UsageError(f"{what.path} cannot be compiled as a program: {' '.join(command)} fails")
    return output


def _run(program: Path, folder: Path) -> _Run:
    report = folder / "report"
    report.unlink(missing_ok=True)
    begin = time.perf_counter()
    try:
        done = subprocess.run(
            [str(program)], capture_output=True, timeout=LONGEST_S, env={**os.environ, "LOOPTUNE_REPORT": str(report)}
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"the program did not end within {LONGEST_S:.0f} s: choose smaller sizes with -D") from None
    seconds = time.perf_counter() - begin
    if done.returncode:
        raise UsageError(f"the program ended with the exit code {done.returncode}: {done.stderr.decode()[:200]}")
    lines = report.read_text().splitlines() if report.exists() else []
    return _Run(seconds, done.stdout, tuple(json.loads(line) for line in lines))


def _times(label: str, runs: Sequence[_Run], printed: bytes) -> ProgramTimes:
    def total(key: str) -> float | None:
        return median(sum(r[key] for r in run.reports) for run in runs) if runs[0].reports else None

    return ProgramTimes(
        label, tuple(r.seconds for r in runs), median(r.seconds for r in runs), total("kernel_s"),
        total("to_device_s"), total("from_device_s"), bool(total("device_calls")),
        all(r.printed == printed for r in runs),
    )  # fmt: skip
