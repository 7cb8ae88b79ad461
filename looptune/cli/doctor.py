"""The command ``looptune doctor``: what looptune needs, what is installed, and how to install the rest.

    requirements of the package's own metadata ─▶ one Finding each, by version
    a tool on the PATH                         ─▶ one Finding
    PROBES, each in an interpreter of its own  ─▶ one Finding each

A probe is a program of a few lines that prints what it found. It runs in a child process, so that a library that
aborts on import, or hangs in a driver, becomes a finding like any other. Nothing here raises.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from packaging.requirements import Requirement

from looptune.core import plugins

Status = Literal["ok", "missing", "warn"]
"""missing: looptune cannot do its work without it · warn: something optional is absent."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A line of ``looptune doctor``; ``mend`` is the command or sentence that solves the problem, or ""."""

    name: str
    status: Status
    found: str
    mend: str = ""


@dataclass(frozen=True, slots=True)
class Probe:
    """A test that runs in a process of its own.

    ``program`` prints one line and exits 0, or ends with a message on its last line of stderr; the status is then
    ``otherwise``. ``extra``: the option of looptune that brings the modules it imports, so that a missing module is
    mended by it, and anything else by ``mend``.
    """

    name: str
    program: str
    otherwise: Status
    mend: str
    limit_s: float = 120.0
    extra: str = ""


PYTHON = (3, 11)

_THREADS = """
import numba
@numba.njit(parallel=True)
def total(n):
    s = 0
    for i in numba.prange(n):
        s += i
    return s
assert total(1000) == 499500
print(f"{numba.get_num_threads()} threads, layer {numba.threading_layer()}")
"""

_PTX = """
import cuda.bindings, cuda.core, numba_cuda
from numba import cuda, float32
def scale(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= float32(2)
ptx, _ = cuda.compile_ptx(scale, (float32[::1],), cc=(8, 0))
print("compiles to PTX " + ptx.split(".version", 1)[1].split()[0] + " without a GPU")
"""

_GPU = """
import numpy, pynvml
pynvml.nvmlInit()
def text(x):
    return x.decode() if isinstance(x, bytes) else x
def described(n):
    device = pynvml.nvmlDeviceGetHandleByIndex(n)
    return "%s (sm_%d%d)" % (text(pynvml.nvmlDeviceGetName(device)), *pynvml.nvmlDeviceGetCudaComputeCapability(device))
names = [described(n) for n in range(pynvml.nvmlDeviceGetCount())]
assert names, "the driver sees no GPU"
from numba import cuda
@cuda.jit
def double(x):
    x[cuda.grid(1)] *= 2
x = cuda.to_device(numpy.array([21]))
double[1, 1](x)
assert x.copy_to_host()[0] == 42, "a kernel gave a wrong result"
print(", ".join(names) + ", driver " + text(pynvml.nvmlSystemGetDriverVersion()) + ", runs kernels")
"""

_OPENCL = """
import pyopencl as cl
def compiles(device):
    try:
        cl.Program(cl.Context([device]), "__kernel void k(__global float *x) { x[0] = 1.0f; }").build()
    except cl.Error as error:
        said = next((line for line in str(error).splitlines() if "error:" in line), str(error).splitlines()[0])
        return "%s: %s" % (device.name.strip(), said)
    return ""
devices = [d for p in cl.get_platforms() for d in p.get_devices()]
assert devices, "no driver has a device"
said = [compiles(d) for d in devices]
assert not all(said), "; ".join(said)
print(", ".join(d.name.strip() for d, wrong in zip(devices, said) if not wrong) + " compiles kernels")
"""
_LOOKED_UP: Mapping[plugins.Kind, str] = MappingProxyType({
    "directive": "from looptune.schedule.directives import named\nnamed({name!r})",
    "strategy": "from looptune.tune.strategies import named\nnamed({name!r})",
    "target": "from pathlib import Path\nfrom looptune.runtime.targets import plugin_target\n"
              "plugin_target({name!r}, Path())",
})  # fmt: skip
"""How the name of what a package brings is looked up."""

PROBES = (
    Probe("CPU threads", _THREADS, "missing", "pip install --force-reinstall numba"),
    Probe("CUDA compiler", _PTX, "warn", "the version of CUDA does not fit; numba-cpu needs none", extra="cuda"),
    Probe("OpenCL", _OPENCL, "warn", "install your device's own driver, or PoCL", extra="opencl"),
    Probe(
        "GPU", _GPU, "warn", "install NVIDIA's driver to run CUDA kernels; without it they are only compiled",
        extra="cuda",
    ),
)  # fmt: skip


def install_command(extra: str = "") -> str:
    """Return how looptune is installed with an option, in the way in which it was installed here."""
    named = f"[{extra}]" if extra else ""
    if _editable():
        return f"pip install -e '.{named}' in the repository's root"
    parts = Path(sys.prefix).parts
    if "pipx" in parts:
        return f"pipx install --force 'looptune{named}'"
    if parts[-2].startswith("archive-v"):  # in uv's cache
        return f"uvx --from 'looptune{named}' looptune"
    if parts[-3:-1] == ("uv", "tools"):
        return f"uv tool install 'looptune{named}'"
    return f"pip install 'looptune{named}'"


def _editable() -> bool:
    """Return whether this is a checkout that is used in place, or one that was never installed."""
    try:
        said = metadata.distribution("looptune").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return True
    return said is not None and bool(json.loads(said).get("dir_info", {}).get("editable"))


def examine(package: str = "looptune", probes: tuple[Probe, ...] = PROBES) -> tuple[Finding, ...]:
    """Return all findings, required things first; this takes as long as the slowest probe."""
    probes = (*probes, *map(plugin_probe, plugins.installed()))
    with ThreadPoolExecutor(max_workers=max(1, len(probes))) as pool:
        probed = pool.map(run_probe, probes)
        return (python_finding(), *package_findings(package), *probed, gcc_finding())


def python_finding(version: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    """Return the finding on the version of Python."""
    found = ".".join(map(str, version))
    if version >= PYTHON:
        return Finding("Python", "ok", found)
    return Finding("Python", "missing", found, f"install Python {PYTHON[0]}.{PYTHON[1]} or later")


def package_findings(package: str) -> tuple[Finding, ...]:
    """Return one finding for each requirement in the package's metadata, except those of its tests and its site."""
    try:
        lines = metadata.requires(package) or []
    except metadata.PackageNotFoundError:
        return (Finding(package, "missing", "not installed", install_command()),)
    needed: dict[str, str] = {}
    for line in lines:
        # Two options bring one package for two versions of CUDA: either is enough.
        if _extra(Requirement(line)) not in ("test", "docs"):
            needed.setdefault(Requirement(line).name, line)
    return tuple(map(requirement_finding, needed.values()))


def requirement_finding(line: str) -> Finding:
    """Return the finding on a package that looptune needs.

    ``line``: one of a package's metadata, such as ``numba-cuda[cu13]>=0.30; extra == "cuda"``.
    """
    needed = Requirement(line)
    extra = _extra(needed)
    lacking: Status = "warn" if extra else "missing"
    optional = f" (optional: {extra})" if extra else ""
    mend = install_command(extra) if extra else f"pip install '{line.partition(';')[0].strip()}'"
    mend += ", or with cuda12 for a driver of CUDA 12" if extra == "cuda" else ""
    try:
        version = metadata.version(needed.name)
    except metadata.PackageNotFoundError:
        return Finding(needed.name, lacking, "not installed" + optional, mend)
    if not needed.specifier.contains(version, prereleases=True):
        return Finding(needed.name, lacking, f"{version}, outside {needed.specifier}", mend)
    return Finding(needed.name, "ok", version)


def _extra(needed: Requirement) -> str:
    """Return the option that a requirement belongs to, empty for what is always needed."""
    extra = re.search(r"""extra\s*==\s*['"]([^'"]+)""", str(needed.marker))
    return extra[1] if extra else ""


def run_probe(probe: Probe) -> Finding:
    """Return the output of the probe or, if it failed, its last line."""
    try:
        ran = subprocess.run(
            [sys.executable, "-c", probe.program], capture_output=True, text=True, timeout=probe.limit_s, check=False
        )
    except subprocess.TimeoutExpired:
        return Finding(probe.name, probe.otherwise, f"no answer within {probe.limit_s:g} s", probe.mend)
    if ran.returncode == 0:
        return Finding(probe.name, "ok", ran.stdout.strip())
    said = ran.stderr.strip().splitlines()
    last = said[-1] if said else f"exit code {ran.returncode}"
    lacking = probe.extra and last.startswith("ModuleNotFoundError")
    return Finding(probe.name, probe.otherwise, last, install_command(probe.extra) if lacking else probe.mend)


def plugin_probe(plugin: plugins.Plugin) -> Probe:
    """Return a probe that says whether the plug-in can be loaded."""
    looked_up = _LOOKED_UP[plugin.kind].format(name=plugin.name)
    program = f"{looked_up}\nprint({f'{plugin.package} {plugin.version}'!r})"
    return Probe(f"{plugin.kind} {plugin.name}", program, "warn", f"pip uninstall {plugin.package}, or fix it")


def gcc_finding() -> Finding:
    """Return the finding on gcc, which compiles reference results, programs of ``--inputs-from-main`` and printed C."""
    path = shutil.which("gcc")
    if path is None:
        return Finding("gcc", "warn", "not found", "optional: apt install gcc, to compile what transform prints")
    return Finding("gcc", "ok", path)
