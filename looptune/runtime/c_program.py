"""A C text with a function that runs loops on given arrays: it is compiled, and run in a process of its own.

    text + harness ─▶ cc ─▶ program

    | numbers | scalars | guard | array | guard | array | guard | …        one file in memory, mapped by both processes

A crash or an endless loop ends only the program. Writes between the arrays are detected. Modules that looptune builds
contain a copy of this file.
"""

from __future__ import annotations

import math
import mmap
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from looptune.core.short_floats import SHORT_EPS, rounded
from looptune.runtime.c_compiler import (
    OPTIMISED,
    allow_undefined_flags,
    compile_error,
    floating_point_flags,
    half_flags,
    symbolic_flags,
)

Arrays = Mapping[str, np.ndarray]

CPU_S = 600
"""Seconds of CPU time that the original loops may take at one size."""
KILLED_S = 5
"""So much later a program is killed that ignores the signal at the end of its time."""
GUARD, LINE = 4096, 64
SLOTS = 16
"""Times that one call of the program can return."""
_PATTERN = 0xA5

REORDERING = ("-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math")
"""Flags by which a C compiler may add up in another order, as vectors do."""
_STANDARD = [
    a
    for name in ("math", "stdlib", "stdint", "stddef", "stdbool", "limits", "float")
    for a in ("-include", f"{name}.h")
]
"""Headers whose names looptune knows without them."""

MAIN = """
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#ifdef __linux__
#include <signal.h>
#include <sys/prctl.h>
#endif

void ENTRY(void *const *scalars, void *const *arrays, const unsigned long long *bytes);

/* number[0]: scalars, [1]: arrays, [2]: runs, [3..]: nanoseconds of each run; then where each scalar and array begins,
   the bytes of each array, and where its contents before a run are, 0 where it is not restored. */
int main(int argc, char **argv)
{
  struct stat file;
  struct timespec start, end;
  int fd = argc > 1 ? atoi(argv[1]) : -1;
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  if (fstat(fd, &file)) return 3;
  char *base = mmap(0, file.st_size, PROT_READ | PROT_WRITE, MAP_SHARED | POPULATE, fd, 0);
  if (base == MAP_FAILED) return 3;
  unsigned long long *number = (void *)base, *at = number + 3 + SLOTS;
  unsigned long long scalars = number[0], arrays = number[1], *bytes = at + scalars + arrays, *kept = bytes + arrays;
  void **places = calloc(scalars + arrays + 1, sizeof *places);
  if (!places) return 3;
  for (unsigned long long k = 0; k < scalars + arrays; k++) places[k] = base + at[k];
  for (unsigned long long run = 0; run < number[2]; run++) {
    for (unsigned long long k = 0; k < arrays; k++)
      if (kept[k]) memcpy(places[scalars + k], base + kept[k], bytes[k]);
    clock_gettime(CLOCK_MONOTONIC, &start);
    ENTRY(places, places + scalars, bytes);
    clock_gettime(CLOCK_MONOTONIC, &end);
    number[3 + run] = (end.tv_sec - start.tv_sec) * 1000000000LL + end.tv_nsec - start.tv_nsec;
  }
  return 0;
}
"""


class NoReference(Exception):
    """The text cannot be compiled, or cannot be run at these sizes; the message says why."""


class TooLong(NoReference):
    """The program was stopped after the time that it may take."""


class ProgramRun(NamedTuple):
    """The result of a run: the contents of the arrays that were wanted, and ``times_us``, the time of each run."""

    arrays: Mapping[str, np.ndarray]
    times_us: tuple[float, ...]


class Text(NamedTuple):
    """The C text to compile.

    ``files``: by path below a folder of their own; the first is compiled. ``entry``: the function, which takes the
    addresses of ``scalars``, each with its type, and of ``arrays``, in this order, and the bytes of each array.
    ``macros`` are given with -D, and ``types`` are lines before the text. ``folders`` of includes: below the folder of
    the files, and elsewhere or "". ``contracts``: a product and a sum may round once; ``literals``: constants without a
    suffix are float; ``openmp``: its pragmas count. ``linked``: a C text that is compiled by itself.
    ``strict_aliasing``: the compiler may assume that an object is accessed as one type only, as C says. ``reorders``:
    it may add up in another order.
    """

    files: tuple[tuple[str, str], ...]
    entry: str
    scalars: tuple[tuple[str, str], ...]
    arrays: tuple[str, ...]
    macros: tuple[tuple[str, str], ...] = ()
    folders: tuple[tuple[str, str], ...] = ()
    quoted: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    contracts: bool = False
    literals: bool = False
    openmp: bool = False
    linked: str = ""
    strict_aliasing: bool = False
    reorders: bool = False

    @property
    def flags(self) -> tuple[str, ...]:
        optimised = OPTIMISED[:1] if self.strict_aliasing else OPTIMISED
        constants = ("-fsingle-precision-constant",) if self.literals else ()
        macros = (f"-D{name}={value}" for name, value in self.macros)
        own = ("-w", "-std=gnu17", "-Dmain=looptune_main")
        halves = half_flags(*self.own_texts) or ()
        floats = (*floating_point_flags(self.contracts), *(REORDERING if self.reorders else ()))
        return (*optimised, *floats, *halves, *own, *constants, *macros, *self.threads)

    @property
    def own_texts(self) -> tuple[str, ...]:
        """Return all texts that may name a type."""
        return (*(contents for _, contents in self.files), *(value for _, value in self.macros))

    @property
    def threads(self) -> tuple[str, ...]:
        """Return the flag of OpenMP, which the linker takes as well."""
        return ("-fopenmp",) if self.openmp else ()


def compile_program(text: Text, folder: Path) -> Path:
    """Return the program, compiled in ``folder``. Raises NoReference if the compiler refuses it."""
    populate = "MAP_POPULATE" if sys.platform == "linux" else "0"
    (folder / "main.c").write_text(MAIN)
    own = ["-O2", "-D_GNU_SOURCE", f"-DENTRY={text.entry}", f"-DSLOTS={SLOTS}", f"-DPOPULATE={populate}"]
    main, made = str(folder / "main.o"), folder / "program"
    _taken(compile_error([*own, "-c", str(folder / "main.c"), "-o", main]))
    linked = [main, _translated(text, folder), *_linked(text, folder), *allow_undefined_flags(), *text.threads]
    _taken(compile_error([*linked, "-lm", "-o", str(made)]))
    return made


def compile_library(text: Text, folder: Path) -> Path:
    """Return the text compiled to a library, in ``folder``. Raises NoReference as ``compile_program`` does."""
    made = folder / "text.so"
    _taken(compile_error(["-shared", *symbolic_flags(), _translated(text, folder, "-fPIC"), "-lm", "-o", str(made)]))
    return made


def _translated(text: Text, folder: Path, *more: str) -> str:
    """Return the object file. Raises NoReference if the compiler refuses the text, or rounds otherwise than it says."""
    if half_flags(*text.own_texts) is None:
        raise NoReference("the C compiler rounds every operation on _Float16 or __bf16, which looptune computes in "
                          "float: gcc does so too, without -fexcess-precision=16")  # fmt: skip
    files = folder / "files"
    for path, contents in text.files:
        copy = files / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(without_macros(contents, dict(text.macros)))
    flags = [*text.flags, *more]
    if text.types:
        (folder / "types.h").write_text("\n".join(text.types) + "\n")
        flags += ["-include", str(folder / "types.h")]
    for below, elsewhere in text.folders:
        (files / below).mkdir(parents=True, exist_ok=True)
        flags += ["-I", str(files / below), *(["-I", elsewhere] if elsewhere else [])]
    for beside in text.quoted:
        flags += ["-iquote", beside]
    made = str(folder / "text.o")
    translate = ["-x", "c", "-c", str(files / text.files[0][0]), "-o", made]
    said = compile_error([*flags, *translate])
    if said is not None and compile_error([*flags, *_STANDARD, *translate]) is not None:
        raise NoReference(said.replace(str(files), ""))
    return made


def _linked(text: Text, folder: Path) -> list[str]:
    """Return the object file of the text that is compiled by itself, if there is one."""
    if not text.linked:
        return []
    source, made = folder / "linked.c", str(folder / "linked.o")
    source.write_text(text.linked)
    _taken(compile_error([*text._replace(macros=(), literals=False).flags, "-c", str(source), "-o", made]))
    return [made]


def _taken(said: str | None) -> None:
    if said is not None:
        raise NoReference(said)


def run_program(
    program: Path, text: Text, arrays: Arrays, scalars: Mapping[str, int | float], wanted: Iterable[str],
    cpu_s: float = CPU_S,
) -> ProgramRun:  # fmt: skip
    """Run the program once on copies of ``arrays``; return the contents of those ``wanted``, and of all it changed.

    Raises NoReference if the program crashes or writes outside its arrays, TooLong after ``cpu_s`` seconds.
    """
    with MappedArrays.of(text, arrays, scalars, (), 1) as memory:
        call(program, memory, cpu_s)
        outside = memory.outside()
        if outside is not None:
            raise NoReference(f"the loops write outside {outside} at these sizes")
        asked = frozenset(wanted)
        left = {name: memory.array(name) for name in memory.layout}
        found = {n: a.copy() for n, a in left.items() if n in asked or not _same_bytes(a, arrays[n])}
        return ProgramRun(found, memory.times_us())


def _same_bytes(a: np.ndarray, b: np.ndarray) -> bool:
    x, y = (np.ascontiguousarray(v).reshape(-1).view(np.uint8) for v in (a, b))
    return all(np.array_equal(x[k : k + PIECE], y[k : k + PIECE]) for k in range(0, x.size, PIECE))


def without_macros(text: str, macros: Mapping[str, str]) -> str:
    """Return the text without its own definitions of what is given with -D."""
    for name in macros:
        text = re.sub(
            rf"^[ \t]*#[ \t]*(?:define|undef)[ \t]+{name}\b(?!\()(?:\\\n|[^\n])*",
            lambda m: "\n" * m[0].count("\n"), text, flags=re.MULTILINE,
        )  # fmt: skip
    return text


def call(program: Path, memory: MappedArrays, cpu_s: float = CPU_S) -> None:
    """Run the program on the mapped arrays.

    Raises NoReference if it does not end by itself, TooLong after ``cpu_s`` seconds of CPU time.
    """
    seconds = math.ceil(cpu_s)
    # Where the hard limit is as low as the soft one, Linux kills the program as it kills one that crashes.
    cpu = f"ulimit -H -t {seconds + KILLED_S}; ulimit -S -t {seconds}"
    limits = f"ulimit -s unlimited 2>/dev/null || ulimit -s $(ulimit -H -s) 2>/dev/null; {cpu}"
    command = ["sh", "-c", f'{limits}; exec "$0" "$1"', str(program), str(memory.fd)]
    done = subprocess.run(command, pass_fds=(memory.fd,), capture_output=True, stdin=subprocess.DEVNULL)
    if done.returncode == -signal.SIGXCPU:
        raise TooLong(f"the loops take more than {seconds} s of CPU time at these sizes")
    if done.returncode < 0:
        raise NoReference(f"the program crashes at these sizes ({signal.Signals(-done.returncode).name})")
    if done.returncode:
        raise NoReference(f"the program ends with {done.returncode} at these sizes")


class MappedArrays(NamedTuple):
    """The file that both processes map; ``layout``: the begin, the shape and the type of each array."""

    fd: int
    view: mmap.mmap
    layout: Mapping[str, tuple[int, np.ndarray]]

    @classmethod
    def of(
        cls, text: Text, arrays: Arrays, scalars: Mapping[str, int | float], kept: Collection[str], runs: int
    ) -> MappedArrays:
        """Map a file with the arrays; those in ``kept`` have a second copy, from which every run starts."""
        names = [*text.arrays]
        head = 8 * (3 + SLOTS + len(text.scalars) + 3 * len(names))
        at_scalars = [head + 16 * k for k in range(len(text.scalars))]
        end = _next_place(head + 16 * len(text.scalars))
        begins = []
        for k, name in enumerate(names):
            # not all at the same place of a page, which processors take for the same address for a while
            begins.append(end + LINE * (k % 32))
            end = _next_place(begins[-1] + arrays[name].nbytes)
        copies = []
        for name in names:
            copies.append(end if name in kept else 0)
            end = _next_place(end + arrays[name].nbytes) if name in kept else end
        fd, view = _mapped(end)
        made = cls(fd, view, {name: (at, arrays[name]) for name, at in zip(names, begins, strict=True)})
        bytes_ = [arrays[name].nbytes for name in names]
        numbers = [len(at_scalars), len(names), runs, *([0] * SLOTS), *at_scalars, *begins, *bytes_, *copies]
        view[: 8 * len(numbers)] = np.array(numbers, np.uint64).tobytes()
        for (name, dtype), at in zip(text.scalars, at_scalars, strict=True):
            value = rounded(scalars[name], dtype) if dtype in SHORT_EPS else scalars[name]
            data = np.array(value).astype(dtype).tobytes()
            view[at : at + len(data)] = data
        for name, copy, (before, after) in zip(names, copies, made._guards(), strict=True):
            view[before[0] : before[1]] = bytes([_PATTERN]) * (before[1] - before[0])
            view[after[0] : after[1]] = bytes([_PATTERN]) * (after[1] - after[0])
            made.array(name)[...] = arrays[name]
            if copy:
                np.ndarray(arrays[name].shape, arrays[name].dtype, view, copy)[...] = arrays[name]
        return made

    def __enter__(self) -> MappedArrays:
        return self

    def __exit__(self, *exception: object) -> None:
        self.view.close()
        os.close(self.fd)

    def array(self, name: str) -> np.ndarray:
        at, like = self.layout[name]
        return np.ndarray(like.shape, like.dtype, self.view, at)

    def times_us(self) -> tuple[float, ...]:
        numbers = np.frombuffer(self.view[: 8 * (3 + SLOTS)], np.uint64)
        return tuple(float(ns) / 1e3 for ns in numbers[3 : 3 + int(numbers[2])])

    def outside(self) -> str | None:
        """Return the first array beside which something was written."""
        for name, guards in zip(self.layout, self._guards(), strict=True):
            if any(self.view[a:b] != bytes([_PATTERN]) * (b - a) for a, b in guards):
                return name
        return None

    def _guards(self) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """Before and after each array."""
        for at, like in self.layout.values():
            end = at + like.nbytes
            yield (at - LINE, at), (end, end + GUARD)


PIECE = 1 << 20
"""So many bytes of two arrays are compared at once: they stay in a core's cache."""


def _next_place(end: int) -> int:
    """Where the next array may begin: behind a guard, and at a page of its own."""
    return -(-(end + GUARD + LINE) // GUARD) * GUARD + LINE


def _mapped(size: int) -> tuple[int, mmap.mmap]:
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("looptune")
    else:
        with tempfile.NamedTemporaryFile(delete=False) as held:
            fd = os.dup(held.fileno())
        os.unlink(held.name)
    os.ftruncate(fd, size)
    return fd, mmap.mmap(fd, size)
