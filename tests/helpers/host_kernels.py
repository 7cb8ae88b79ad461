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
_KERNEL = re.compile(r"__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*|__maxnreg__\([^)]*\)\s*)*(\w+)\s*\(")


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
    """How each kernel of a text is run: its threads wait for each other if one of the text may do so."""
    how = "plain"
    if re.search(r"__syncthreads|__shared__|_sync\(|cp\.async", text):
        how = "barriers"
    if "ld.acquire" in text or "launch_together" in text:
        how = "together"
    return dict.fromkeys(_KERNEL.findall(text), how)


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
