"""C files compiled by gcc and run, each call in a process of its own, on arrays that lie between canaries.

    arrays ─▶ one file, mapped into memory ─▶ fork for each call: crashes and endless loops stop nothing else
                canary │ array │ canary          status, and whether a float was rounded

Sanitized, each array is a block of its own that the address sanitizer watches.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from tests.differential.programs import Program, Variable

PAD = 256
"""Bytes of canary on each side of an array."""
CANARY = 0xA5
SECONDS = 2
"""Of processor time for one call."""
SANITIZED = (
    "-O1", "-DSANITIZED", "-fsanitize=undefined,address,float-cast-overflow", "-fno-sanitize=vla-bound",
    "-fno-sanitize-recover=all",
)  # fmt: skip
PLAIN = ("-O1",)
COMMON = ("-std=gnu11", "-ffp-contract=off", "-w")

_MAIN = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef SANITIZED
#define TAKE(at, bytes) ((bytes) ? memcpy(malloc(bytes), base + (at), bytes) : (char *)malloc(16) + 16)
#define GIVE(to, from, bytes) memcpy(base + (to), from, bytes)
#else
#define TAKE(at, bytes) (base + (at))
#define GIVE(to, from, bytes) (void)0
#endif

typedef void (*call)(char *base);
struct one { call run; };
static const struct one calls[];
static const int count;

int main(int argc, char **argv)
{
    int file = open(argv[1], O_RDWR);
    struct stat facts;
    fstat(file, &facts);
    char *base = mmap(0, facts.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    for (int k = 0; k < count; k++) {
        int *status = (int *)base + 2 * k;
        pid_t child = fork();
        if (child == 0) {
            struct rlimit most = { SECONDS, SECONDS + 1 };
            setrlimit(RLIMIT_CPU, &most);
            feclearexcept(FE_ALL_EXCEPT);
            calls[k].run(base);
            status[1] = fetestexcept(FE_INEXACT) != 0;
            _exit(0);
        }
        waitpid(child, &status[0], 0);
    }
    return 0;
}
"""


@dataclass(frozen=True, slots=True)
class Ran:
    """What one call left: arrays by name, or why there is nothing; ``touched``: elements beside an array."""

    arrays: dict[str, np.ndarray]
    failed: str = ""
    rounded: bool = False
    touched: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """A C file whose function is ``program.name``, called as the program is, at all of its sizes or some."""

    program: Program
    text: str
    numbers: tuple[int, ...]


def run(texts: Sequence[Text], folder: Path, flags: Sequence[str]) -> list[str | dict[int, Ran]]:
    """For each text what its calls left by number, or what the compiler said of it."""
    folder.mkdir(parents=True, exist_ok=True)
    for k, t in enumerate(texts):
        (folder / f"t{k}.c").write_text(t.text)
    said = _objects(texts, folder, flags)
    fine = [k for k in range(len(texts)) if not said[k]]
    image = _Image()
    for k in fine:
        for number in texts[k].numbers:
            image.add(k, texts[k].program, number)
    (folder / "main.c").write_text(_main(image))
    objects = [f"t{k}.o" for k in fine]
    _checked(["gcc", *COMMON, *flags, f"-DSECONDS={SECONDS}", "main.c", *objects, "-o", "main", "-lm"], folder)
    (folder / "image").write_bytes(image.contents())
    subprocess.run(
        ["./main", "image"], cwd=folder, stdout=subprocess.DEVNULL, stderr=(folder / "said").open("w"),
        env={"ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0"}, check=False,
    )  # fmt: skip
    left = np.fromfile(folder / "image", np.uint8)
    found: list[str | dict[int, Ran]] = [what if what else {} for what in said]
    for at, (k, _, number, _) in enumerate(image.calls):
        results = found[k]
        assert isinstance(results, dict)
        results[number] = _read(left, image, at)
    return found


@cache
def usable() -> bool:
    """There is a gcc with its sanitizers."""
    if shutil.which("gcc") is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        command = ["gcc", *SANITIZED, "-x", "c", "-", "-o", "a"]
        done = subprocess.run(
            command, cwd=folder, input=b"int main(void) { return 0; }", capture_output=True, check=False
        )
        return done.returncode == 0


def _objects(texts: Sequence[Text], folder: Path, flags: Sequence[str]) -> list[str]:
    """Compile each file; what the compiler said of each that is none."""
    files = [f"t{k}.c" for k in range(len(texts))]
    done = subprocess.run(
        ["gcc", *COMMON, *flags, "-c", *files], cwd=folder, capture_output=True, text=True, check=False
    )
    said = ["" if (folder / f"t{k}.o").exists() else "does not compile" for k in range(len(texts))]
    lines = [line for line in done.stderr.splitlines() if "error" in line]
    return [
        what and "\n".join([what, *(x for x in lines if x.startswith(f"t{k}.c:"))][:3]) for k, what in enumerate(said)
    ]


def _checked(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]


class _Image:
    """The memory of all calls, one after the other, behind a status and a flag for each."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, Program, int, dict[str, tuple[int, np.ndarray | int | float]]]] = []
        self.size = 0

    def add(self, k: int, program: Program, number: int) -> None:
        places: dict[str, tuple[int, np.ndarray | int | float]] = {}
        for v in program.variables:
            given = program.arguments(number)[v.name]
            bytes_ = given.nbytes if isinstance(given, np.ndarray) else 8
            places[v.name] = self.size + PAD, given
            self.size += 2 * PAD + (bytes_ + 63) // 64 * 64
        self.calls.append((k, program, number, places))

    @property
    def head(self) -> int:
        return (8 * len(self.calls) + 63) // 64 * 64

    def contents(self) -> bytes:
        whole = np.full(self.head + self.size, CANARY, np.uint8)
        whole[: self.head] = 0
        for _, program, _, places in self.calls:
            for v in program.variables:
                at, given = places[v.name]
                raw = given.tobytes() if isinstance(given, np.ndarray) else np.array([given], v.type.dtype).tobytes()
                whole[self.head + at : self.head + at + len(raw)] = np.frombuffer(raw, np.uint8)
        return whole.tobytes()


def _main(image: _Image) -> str:
    parts = [_MAIN]
    declared: set[int] = set()
    for at, (k, program, _, places) in enumerate(image.calls):
        params = [v for v in program.variables if not v.apart]
        apart = [v for v in program.variables if v.apart]
        if k not in declared:
            declared.add(k)
            listed = ", ".join("void *" if v.extents else basic(v) for v in params)
            parts.append(f"void {program.name}({listed});\n")
            parts += [f"extern char {v.name}[];\n" for v in apart]
        parts.append(f"static void call_{at}(char *base)\n{{\n")
        for v in program.variables:
            place, given = places[v.name]
            place += image.head
            if v.apart:
                parts.append(f"    memcpy({v.name}, base + {place}, {given.nbytes});\n")  # type: ignore[union-attr]
            elif isinstance(given, np.ndarray):
                parts.append(f"    void *{v.name}__ = TAKE({place}, {given.nbytes});\n")
        given_ = ", ".join(
            f"{v.name}__" if v.extents else f"*({basic(v)} *)(base + {places[v.name][0] + image.head})" for v in params
        )
        parts.append(f"    {program.name}({given_});\n")
        for v in program.variables:
            place, given = places[v.name]
            place += image.head
            if v.apart:
                parts.append(f"    memcpy(base + {place}, {v.name}, {given.nbytes});\n")  # type: ignore[union-attr]
            elif isinstance(given, np.ndarray):
                parts.append(f"    GIVE({place}, {v.name}__, {given.nbytes});\n")
        parts.append("}\n")
    listed = ", ".join(f"{{call_{at}}}" for at in range(len(image.calls)))
    parts.append(f"static const struct one calls[] = {{ {listed}{', ' if listed else ''}{{0}} }};\n")
    parts.append(f"static const int count = {len(image.calls)};\n")
    return "".join(parts)


def basic(v: Variable) -> str:
    """The type without its typedef."""
    return {
        "bool": "_Bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short", "uint16": "unsigned short",
        "int32": "int",
        "uint32": "unsigned", "int64": "long", "uint64": "unsigned long", "float32": "float", "float64": "double",
        "float16": "_Float16",
    }[v.type.dtype]  # fmt: skip


def _read(left: np.ndarray, image: _Image, at: int) -> Ran:
    _, program, _, places = image.calls[at]
    status, rounded = struct.unpack_from("ii", left.data, 8 * at)
    if status:
        return Ran({}, f"exit status {status >> 8}" if status & 0x7F == 0 else f"signal {status & 0x7F}")
    arrays: dict[str, np.ndarray] = {}
    touched = ""
    for v in program.variables:
        place, given = places[v.name]
        if not isinstance(given, np.ndarray):
            continue
        first = image.head + place
        arrays[v.name] = left[first : first + given.nbytes].view(given.dtype).reshape(given.shape).copy()
        end = first + (given.nbytes + 63) // 64 * 64
        around = (left[first - PAD : first], left[first + given.nbytes : end + PAD])
        if any((side != CANARY).any() for side in around):
            touched = f"elements beside {v.name} are written"
    return Ran(arrays, "", bool(rounded), touched)
