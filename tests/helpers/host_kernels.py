"""What runs programs of the C runtime without a GPU: a libcuda that is none, and kernels compiled for the host.

The kernels are CUDA C as looptune emits it. ``environment`` is that of a program which finds both.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.helpers.cuda_c_on_cpu import portable
from tests.helpers.paths import ROOT, TESTS

FAKE = TESTS / "deploy" / "program" / "fake_cuda"
RUNTIME = ROOT / "looptune" / "deploy" / "program" / "runtime"
LIBRARIES = ("-ldl", "-lpthread", "-lm")
"""What a program that contains the runtime is linked with."""
_FUNCTION = re.compile(r'^(?:extern "C" )?__(?:global|device|host)__', re.MULTILINE)
_ATTRIBUTES = re.compile(r"__(?:launch_bounds|maxnreg)__\([^)]*\)")
_NAME = re.compile(r"(\w+)\s*\(")


def compiled(command: Sequence[str | Path], folder: Path) -> None:
    """Run a compiler, which must have nothing to say."""
    done = subprocess.run(list(command), cwd=folder, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[:4000]
    assert not done.stderr, done.stderr[:4000]


def write_fake_driver(folder: Path, *options: str) -> Path:
    """Write libcuda.so.1 into a folder, which is returned."""
    command = ["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", *options]
    compiled([*command, "-o", "libcuda.so.1", FAKE / "fake_cuda.c", "-ldl", "-lpthread"], folder)
    return folder


def write_kernels(text: str, folder: Path, *options: str) -> Path:
    """Write kernels.so for CUDA C, in which each kernel of the text is found by its symbol; return its path."""
    parts = ['#include "host_cuda.h"', portable(text)]
    parts.extend(f"HOST_KERNEL({symbol}, {how})" for symbol, how in _kernels(text).items())
    (folder / "kernels.cpp").write_text("\n".join(parts) + "\n")
    command = ["g++", "-O1", "-w", "-ffp-contract=off", "-shared", "-fPIC", *options]
    compiled([*command, "-I", FAKE, "-I", TESTS / "helpers", "kernels.cpp", "-o", "kernels.so"], folder)
    return folder / "kernels.so"


def _kernels(text: str) -> dict[str, str]:
    """How each kernel of a text is run: whether its threads, or all blocks, wait for each other."""
    starts = [found.start() for found in _FUNCTION.finditer(text)]
    bodies = [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]
    functions = {_NAME.findall(_ATTRIBUTES.sub("", body))[0]: body for body in bodies}
    how = dict.fromkeys(functions, "plain")
    for pattern, kind in ((r"__syncthreads|__shared__|_sync\(|cp\.async", "barriers"), (r"ld\.acquire", "together")):
        waiting = {name for name, body in functions.items() if re.search(pattern, body)}
        for _ in functions:  # what calls such a function waits as well
            called = re.compile("|".join(rf"\b{name}\(" for name in waiting) or "$.")
            waiting |= {name for name, body in functions.items() if called.search(body)}
        how.update(dict.fromkeys(waiting, kind))
    return {name: kind for name, kind in how.items() if "__global__" in functions[name].partition("{")[0]}


def environment(driver: Path | None, kernels: Path | None, **settings: object) -> Mapping[str, str]:
    """The environment of a program; ``settings`` are further variables. Without ``driver`` there is no libcuda."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("LOOPTUNE_", "FAKE_CUDA_"))}
    if driver is not None:
        own["LD_LIBRARY_PATH"] = str(driver)
    if kernels is not None:
        own["FAKE_CUDA_KERNELS"] = str(kernels)
    return {**own, **{name: str(value) for name, value in settings.items()}}


def compilers() -> list[str]:
    """Those of gcc and clang that are here."""
    return [name for name in ("gcc", "clang") if shutil.which(name)]
