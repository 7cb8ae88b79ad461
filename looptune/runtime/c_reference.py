"""The codelet's own C text, compiled by the C compiler and run on given arrays in a process of its own.

    excerpt + harness ─▶ cc ─▶ program in the cache, with its checksum     once for a text, a compiler and its flags

    | numbers | scalars | guard | array | guard | array | guard | …        one file in memory, mapped by both processes

A crash or an endless loop ends the program and nothing else. What it writes between the arrays shows.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from looptune import cachefolder
from looptune.frontend.excerpt import ENTRY, Excerpt
from looptune.frontend.expr import MATH
from looptune.runtime import cc
from looptune.runtime.processor import cpu_name

Arrays = Mapping[str, np.ndarray]

CPU_S = 600
"""Seconds of CPU time that the original loops may take at one size."""
GUARD, LINE = 4096, 64
_SLOTS = 16
"""Times that one call of the program can return."""
_PATTERN = 0xA5

_STANDARD = [
    a
    for name in ("math", "stdlib", "stdint", "stddef", "stdbool", "limits", "float")
    for a in ("-include", f"{name}.h")
]
"""Headers whose names looptune knows without them."""

_MAIN = """
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#ifdef __linux__
#include <signal.h>
#include <sys/prctl.h>
#endif

void ENTRY(void *const *scalars, void *const *arrays);

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
    ENTRY(places, places + scalars);
    clock_gettime(CLOCK_MONOTONIC, &end);
    number[3 + run] = (end.tv_sec - start.tv_sec) * 1000000000LL + end.tv_nsec - start.tv_nsec;
  }
  return 0;
}
"""


class NoReference(Exception):
    """The text cannot be compiled, or cannot be run at these sizes; the message says why."""


@dataclass(frozen=True, slots=True)
class Ran:
    """``arrays``: what those that were wanted hold afterwards; ``times_us``: of each run."""

    arrays: Mapping[str, np.ndarray]
    times_us: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class CReference:
    """``contracts``: a product and a sum may round once; ``widened``: with double for float."""

    excerpt: Excerpt
    contracts: bool = False
    widened: bool = False

    @property
    def key(self) -> str:
        """Of everything that the program is made of, here."""
        facts = (_MAIN, sorted(self.excerpt.files.items()), self._flags(), self._types(), cc.version(), cpu_name())
        return hashlib.sha256(repr(facts).encode()).hexdigest()[:20]

    @property
    def says(self) -> str:
        """What it is: ``gemm.c compiled by cc 12.2.0``."""
        return f"{Path(self.excerpt.main).name} compiled by {cc.version()}"

    def wider(self) -> CReference:
        """The same text with double for float, in which its own rounding errors show."""
        scalars = tuple(replace(p, dtype=_wide(p.dtype)) for p in self.excerpt.scalars)
        return CReference(replace(self.excerpt, scalars=scalars), self.contracts, widened=True)

    def program(self, cache: Path) -> Path:
        """The compiled program, from the cache where it is whole there. NoReference where it cannot be compiled."""
        path = cache / f"reference-{self.key}"
        if not _is_whole(path):
            cache.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=cachefolder.mark()) as folder:
                _keep(self._compiled(Path(folder)), path)
        return path

    def run(self, cache: Path, arrays: Arrays, scalars: Mapping[str, int | float], wanted: Sequence[str]) -> Ran:
        """Once, on copies of ``arrays``. NoReference where the program crashes, or writes outside its arrays."""
        with _Memory.of(self.excerpt, arrays, scalars, (), 1) as memory:
            _called(self.program(cache), memory)
            outside = memory.outside()
            if outside is not None:
                raise NoReference(f"the loops write outside {outside} at these sizes")
            return Ran({name: memory.array(name).copy() for name in wanted}, memory.times_us())

    def timed(
        self, cache: Path, arrays: Arrays, scalars: Mapping[str, int | float], written: Sequence[str], runs: int
    ) -> tuple[float, ...]:
        """Microseconds of each of so many runs, each on the arrays as they are given."""
        with _Memory.of(self.excerpt, arrays, scalars, written, min(runs, _SLOTS)) as memory:
            _called(self.program(cache), memory)
            return memory.times_us()

    def _flags(self) -> tuple[str, ...]:
        e = self.excerpt
        constants = ("-fsingle-precision-constant",) if e.float_literals else ()
        macros = (f"-D{name}={value}" for name, value in e.macros.items())
        return (
            *cc.OPTIMISED,
            *cc.floating(self.contracts),
            "-w",
            "-std=gnu17",
            "-Dmain=looptune_main",
            *constants,
            *macros,
        )

    def _types(self) -> tuple[str, ...]:
        """Lines before the text, where types are replaced: what it includes of the system keeps its own."""
        dtype = "float64" if self.widened else self.excerpt.dtype
        if dtype is None:
            return ()
        old, new = ("double", "float") if dtype == "float32" else ("float", "double")
        names = [f"#define {name}f {name}" for name in sorted(MATH)] if self.widened else []
        return (*(f"#include <{name}>" for name in self.excerpt.headers), f"#define {old} {new}", *names)

    def _compiled(self, folder: Path) -> Path:
        e = self.excerpt
        for path, text in e.files.items():
            copy = self._mirrored(path, folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(_without(text, e.macros))
        flags = list(self._flags())
        if self._types():
            (folder / "types.h").write_text("\n".join(self._types()) + "\n")
            flags += ["-include", str(folder / "types.h")]
        for directory in e.folders:
            mirrored = self._mirrored(directory, folder)
            mirrored.mkdir(parents=True, exist_ok=True)
            flags += ["-I", str(mirrored), "-I", directory]
        for beside in dict.fromkeys(str(Path(path).resolve().parent) for path in e.files):
            flags += ["-iquote", beside]
        populate = "MAP_POPULATE" if sys.platform == "linux" else "0"
        (folder / "main.c").write_text(_MAIN)
        own = ["-O2", "-D_GNU_SOURCE", f"-DENTRY={ENTRY}", f"-DSLOTS={_SLOTS}", f"-DPOPULATE={populate}"]
        objects = [str(folder / "main.o"), str(folder / "text.o")]
        made = folder / "program"
        _check(cc.complaint([*own, "-c", str(folder / "main.c"), "-o", objects[0]]))
        translate = ["-x", "c", "-c", str(self._mirrored(e.main, folder)), "-o", objects[1]]
        said = cc.complaint([*flags, *translate])
        if said is not None and cc.complaint([*flags, *_STANDARD, *translate]) is not None:
            raise NoReference(said.replace(str(folder / "files"), ""))
        _check(cc.complaint([*objects, *cc.undefined_allowed(), "-lm", "-o", str(made)]))
        return made

    def _mirrored(self, path: str, folder: Path) -> Path:
        real = Path(path).resolve()
        return folder / "files" / real.relative_to(real.anchor)


def _wide(dtype: str) -> str:
    return "float64" if dtype == "float32" else dtype


def _check(said: str | None) -> None:
    if said is not None:
        raise NoReference(said)


def _without(text: str, macros: Mapping[str, str]) -> str:
    """The text without its own definitions of what is given with -D."""
    for name in macros:
        text = re.sub(
            rf"^[ \t]*#[ \t]*(?:define|undef)[ \t]+{name}\b(?!\()(?:\\\n|[^\n])*",
            lambda m: "\n" * m[0].count("\n"), text, flags=re.MULTILINE,
        )  # fmt: skip
    return text


def _is_whole(path: Path) -> bool:
    """The program is there with the contents that it was kept with."""
    try:
        return path.with_suffix(".sha256").read_text() == hashlib.sha256(path.read_bytes()).hexdigest()
    except (OSError, UnicodeDecodeError):
        return False


def _keep(made: Path, path: Path) -> None:
    """The program and its checksum, each there whole or not at all."""
    contents = made.read_bytes()
    for target, data, mode in (
        (path, contents, 0o700),
        (path.with_suffix(".sha256"), hashlib.sha256(contents).hexdigest().encode(), 0o600),
    ):
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.stem, suffix=".part", delete=False) as part:
            part.write(data)
            os.chmod(part.name, mode)
        Path(part.name).replace(target)


def _called(program: Path, memory: _Memory) -> None:
    """NoReference where it does not end by itself."""
    limits = f"ulimit -s unlimited 2>/dev/null || ulimit -s $(ulimit -H -s) 2>/dev/null; ulimit -t {CPU_S}"
    command = ["sh", "-c", f'{limits}; exec "$0" "$1"', str(program), str(memory.fd)]
    done = subprocess.run(command, pass_fds=(memory.fd,), capture_output=True, stdin=subprocess.DEVNULL)
    if done.returncode == -signal.SIGXCPU:
        raise NoReference(f"the loops take more than {CPU_S} s of CPU time at these sizes")
    if done.returncode < 0:
        raise NoReference(f"the program crashes at these sizes ({signal.Signals(-done.returncode).name})")
    if done.returncode:
        raise NoReference(f"the program ends with {done.returncode} at these sizes")


@dataclass(slots=True)
class _Memory:
    """The file that both processes map; ``places``: where each array begins, its shape and type."""

    fd: int
    view: mmap.mmap
    places: Mapping[str, tuple[int, np.ndarray]]

    @classmethod
    def of(
        cls, excerpt: Excerpt, arrays: Arrays, scalars: Mapping[str, int | float], kept: Collection[str], runs: int
    ) -> _Memory:
        """With the arrays, and the contents before a run of those to be ``kept``."""
        names = [p.name for p in excerpt.arrays]
        head = 8 * (3 + _SLOTS + len(excerpt.scalars) + 3 * len(names))
        at_scalars = [head + 16 * k for k in range(len(excerpt.scalars))]
        end = _after(head + 16 * len(excerpt.scalars))
        begins = []
        for k, name in enumerate(names):
            # not all at the same place of a page, which processors take for the same address for a while
            begins.append(end + LINE * (k % 32))
            end = _after(begins[-1] + arrays[name].nbytes)
        copies = []
        for name in names:
            copies.append(end if name in kept else 0)
            end = _after(end + arrays[name].nbytes) if name in kept else end
        fd, view = _file(end)
        made = cls(fd, view, {name: (at, arrays[name]) for name, at in zip(names, begins, strict=True)})
        bytes_ = [arrays[name].nbytes for name in names]
        numbers = [len(at_scalars), len(names), runs, *([0] * _SLOTS), *at_scalars, *begins, *bytes_, *copies]
        view[: 8 * len(numbers)] = np.array(numbers, np.uint64).tobytes()
        for p, at in zip(excerpt.scalars, at_scalars, strict=True):
            data = np.array(scalars[p.name]).astype(p.dtype).tobytes()
            view[at : at + len(data)] = data
        for name, copy, (before, after) in zip(names, copies, made._guards(), strict=True):
            view[before[0] : before[1]] = bytes([_PATTERN]) * (before[1] - before[0])
            view[after[0] : after[1]] = bytes([_PATTERN]) * (after[1] - after[0])
            made.array(name)[...] = arrays[name]
            if copy:
                np.ndarray(arrays[name].shape, arrays[name].dtype, view, copy)[...] = arrays[name]
        return made

    def __enter__(self) -> _Memory:
        return self

    def __exit__(self, *exception: object) -> None:
        self.view.close()
        os.close(self.fd)

    def array(self, name: str) -> np.ndarray:
        at, like = self.places[name]
        return np.ndarray(like.shape, like.dtype, self.view, at)

    def times_us(self) -> tuple[float, ...]:
        numbers = np.frombuffer(self.view[: 8 * (3 + _SLOTS)], np.uint64)
        return tuple(float(ns) / 1e3 for ns in numbers[3 : 3 + int(numbers[2])])

    def outside(self) -> str | None:
        """The first array beside which something was written."""
        for name, guards in zip(self.places, self._guards(), strict=True):
            if any(self.view[a:b] != bytes([_PATTERN]) * (b - a) for a, b in guards):
                return name
        return None

    def _guards(self) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """Before and after each array."""
        for at, like in self.places.values():
            end = at + like.nbytes
            yield (at - LINE, at), (end, end + GUARD)


def _after(end: int) -> int:
    """Where the next array may begin: behind a guard, and at a page of its own."""
    return -(-(end + GUARD + LINE) // GUARD) * GUARD + LINE


def _file(size: int) -> tuple[int, mmap.mmap]:
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("looptune")
    else:
        with tempfile.NamedTemporaryFile(delete=False) as held:
            fd = os.dup(held.fileno())
        os.unlink(held.name)
    os.ftruncate(fd, size)
    return fd, mmap.mmap(fd, size)
