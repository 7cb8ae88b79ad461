"""Measure how long each loop nest of a C program takes: the program is compiled with a timer around each, and run.

    for (…) …      ─▶      { struct looptune_timer looptune_t __attribute__((cleanup(looptune_stop))) = …; for (…) … }

A nest is timed from its begin until it is left, whichever way. The time of a nest includes what it calls; where a nest
is entered again from inside of itself, only the outermost time counts.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from looptune.core.errors import UsageError
from looptune.runtime.c_compiler import compile_error, compiler_command

Extent = tuple[int, int]
"""The offsets of a nest in the text of its file."""

_DECLARED = (
    "struct looptune_timer { int nest; long long start; }; extern struct looptune_timer looptune_start(int); "
    "extern void looptune_stop(struct looptune_timer *);"
)
_TIMERS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
struct looptune_timer { int nest; long long start; };
static __thread int depth[NESTS];
static long long runs[NESTS], spent[NESTS], began;
static long long now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}
struct looptune_timer looptune_start(int nest)
{
  struct looptune_timer timer = {nest, 0};
  if (depth[nest]++ == 0) timer.start = now();
  return timer;
}
void looptune_stop(struct looptune_timer *timer)
{
  if (--depth[timer->nest] == 0) {
    __atomic_add_fetch(&spent[timer->nest], now() - timer->start, __ATOMIC_RELAXED);
    __atomic_add_fetch(&runs[timer->nest], 1, __ATOMIC_RELAXED);
  }
}
static void __attribute__((constructor)) begin(void) { began = now(); }
static void __attribute__((destructor)) end(void)
{
  const char *path = getenv("LOOPTUNE_PROFILE");
  FILE *out = path ? fopen(path, "w") : 0;
  if (!out) return;
  fprintf(out, "%lld\n", now() - began);
  for (int k = 0; k < NESTS; k++) fprintf(out, "%lld %lld\n", runs[k], spent[k]);
  fclose(out);
}
"""


@dataclass(frozen=True, slots=True)
class ProgramFile:
    """A file of the program: its text, the flags with which it is compiled, and the nests to time by their numbers."""

    path: Path
    text: str
    flags: tuple[str, ...]
    nests: Mapping[int, Extent]


@dataclass(frozen=True, slots=True)
class NestTimes:
    """The seconds of the whole program, the runs and seconds of each nest by its number, and the exit code."""

    program_s: float
    nests: Mapping[int, tuple[int, float]]
    exit_code: int


def measure(files: Sequence[ProgramFile], arguments: Sequence[str], link: Sequence[str] = ()) -> NestTimes:
    """Compile the program with timers, run it in the working directory with these arguments, and return its times.

    Its output is discarded. Raises UsageError if there is no C compiler, if the program does not compile or link, or if
    it ends before its timers can be written.
    """
    if not compiler_command():
        raise UsageError("--profile needs a C compiler: install gcc")
    count = 1 + max((k for file in files for k in file.nests), default=0)
    with tempfile.TemporaryDirectory(prefix="looptune-profile-") as folder:
        made = Path(folder)
        objects = [_compile(file, made / f"{k}.c") for k, file in enumerate(files)]
        timers = ProgramFile(Path("timers.c"), _TIMERS.replace("NESTS", str(count)), (), {})
        objects.append(_compile(timers, made / "timers.c"))
        program, times = made / "program", made / "times"
        _run([*map(str, objects), *link, "-lm", "-lpthread", "-o", str(program)], "the program does not link")
        done = subprocess.run(
            [program, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False,
            env={**os.environ, "LOOPTUNE_PROFILE": str(times)},
        )  # fmt: skip
        if not times.exists():
            raise UsageError(f"the program ended with {done.returncode} and left no times: it must end by itself")
        total, *rows = times.read_text().splitlines()
        found = {k: (int(runs), int(spent) / 1e9) for k, (runs, spent) in enumerate(map(str.split, rows))}
        return NestTimes(int(total) / 1e9, found, done.returncode)


def instrumented(text: str, nests: Mapping[int, Extent]) -> str:
    """Return the text with a timer around each nest; lines keep their numbers.

    >>> print(instrumented("void f(void)\\n{ for (;;) ; }", {3: (15, 25)}).splitlines()[-1])
    { { struct looptune_timer looptune_t __attribute__((cleanup(looptune_stop))) = looptune_start(3); for (;;) ;} }
    """
    timer = "{ struct looptune_timer looptune_t __attribute__((cleanup(looptune_stop))) = looptune_start(%d); "
    edits = [(end, 0, "}") for _, end in nests.values()]
    for k, (start, _) in nests.items():
        # a directive of the preprocessor needs a line of its own
        line = f"\n#line {text.count(chr(10), 0, start) + 1}\n" if text[start:].lstrip().startswith("#") else ""
        edits.append((start, 1, timer % k + line))
    for at, _, added in sorted(edits, reverse=True):
        text = text[:at] + added + text[at:]
    return f"{_DECLARED}\n#line 1\n{text}"


def _compile(file: ProgramFile, copy: Path) -> Path:
    copy.write_text(instrumented(file.text, file.nests) if file.nests else file.text)
    into = copy.with_suffix(".o")
    level = () if any(re.match(r"-O", flag) for flag in file.flags) else ("-O2",)
    own = ("-iquote", str(file.path.parent.resolve()))
    _run([*level, "-w", *own, *file.flags, "-c", str(copy), "-o", str(into)], f"{file.path} does not compile")
    return into


def _run(arguments: Sequence[str], what: str) -> None:
    error = compile_error(arguments)
    if error is not None:
        raise UsageError(f"{what} with timers: {error}")
