"""Targets by name, and which of them can be used here. Packages may add others, see ``core/plugins``.

The CUDA target's libraries are optional: they are imported when a CUDA target is asked for, never before.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from looptune.backends.base import Backend, Resources
from looptune.backends.codegen.kernel import check_limits
from looptune.backends.cuda import cuda_c_writer
from looptune.backends.hip import writer as hip
from looptune.backends.numba_cpu.backend import NumbaCpu
from looptune.backends.opencl import writer
from looptune.core import cache_folder, plugins
from looptune.core.errors import TargetError, UsageError
from looptune.core.floating_point import DEFAULT, Floats
from looptune.lower.machine import Machine
from looptune.lower.pipeline import finish
from looptune.runtime.device import Cpu, Device, DeviceInfo, on_gpu

if TYPE_CHECKING:
    from looptune.lower.plan import Plan

EMITTED = ("hip",)
"""Targets whose text can be printed, and which cannot be measured here."""
NAMES = ("auto", "numba-cuda", "cuda-c", "numba-cpu", "opencl")
DEFAULT_ARCH = "sm_90"
_INSTALL = "install it with: pip install 'looptune[cuda]'"


CACHE = cache_folder.choose_folder()[0]
"""Where compiled code and reference results are kept."""


@dataclass(frozen=True, slots=True)
class Target:
    """A target; it makes its backend and its device in whichever process needs them.

    ``others`` are further devices of the same model, which share the measuring. ``search_backend``: what compiles the
    versions of a search, on the same device, if another compiler is faster than the target's own; None: its own does.
    """

    name: str
    backend: Callable[[], Backend]
    reference: Callable[..., Backend]
    machine: Callable[[], Device]
    specializes_sizes: bool
    others: tuple[Callable[[], Device], ...] = ()
    search_backend: Callable[[], Backend] | None = None


@dataclass(frozen=True, slots=True)
class Model:
    """Devices that are alike, on which a version takes the same time; ``numbers``: those of this machine's GPUs."""

    target: Target
    facts: DeviceInfo
    numbers: tuple[int, ...] = ()

    @property
    def devices(self) -> tuple[str, ...]:
        """Return a name for each device that is unique on this machine."""
        own = tuple(f"{self.target.name} {number}" for number in self.numbers)
        return own if own else (self.target.name,)


def resolve(name: str, cache: Path, *, floats: Floats = DEFAULT, device: int = 0, warm: bool = False) -> Target:
    """Return the target called ``name``; "auto" is the GPU if there is one, else the CPU.

    TargetError where a GPU is asked for and cannot be used, saying what to install.
    """
    other = plugin_target(name, cache, floats=floats)
    if other is not None:
        return other
    chosen = _available(name)
    facts = _gpu().facts(device) if on_gpu(chosen) else _facts(chosen)
    return target(chosen, facts, (device,), cache, floats=floats, warm=warm)


def target(
    name: str, facts: DeviceInfo, numbers: Sequence[int], cache: Path, *, floats: Floats = DEFAULT, warm: bool = False
) -> Target:
    """Return the target called ``name`` on a device, here or elsewhere.

    ``numbers``: the numbers of the GPUs of its model.

    TargetError where it is a GPU and nothing here can compile for it.
    """
    here = replace(floats, contract="fast" if floats.contracts_here else "off")
    strict = partial(NumbaCpu, cache, replace(here, reorder=False))
    if name == "numba-cpu":
        return Target(name, partial(NumbaCpu, cache, here), strict, Cpu, specializes_sizes=False)
    if name == "opencl":
        return Target(
            name,
            partial(_opencl().OpenCl, floats.contract),
            strict,
            _opencl_device().OpenClDevice,
            specializes_sizes=True,
        )
    made = partial(_cuda(name), facts.arch, floats.contract, cache=cache)
    search = None if name == "cuda-c" else partial(_cuda("cuda-c"), facts.arch, floats.contract, cache=cache)
    first, *others = (partial(_gpu().Gpu, number, warm) for number in numbers)
    return Target(name, made, strict, first, specializes_sizes=True, others=tuple(others), search_backend=search)


def _cuda(name: str) -> Any:
    """Return the class of a backend that compiles for a GPU."""
    if not cuda_installed():
        raise TargetError(f"the target {name} needs the package numba-cuda; {_INSTALL}")
    module, kind = ("cuda.cuda_c", "CudaC") if name == "cuda-c" else ("numba_cuda.backend", "NumbaCuda")
    return getattr(importlib.import_module(f"looptune.backends.{module}"), kind)


def _facts(name: str) -> DeviceInfo:
    """Of the one device that a target has which is no GPU's."""
    return Cpu().facts if name == "numba-cpu" else _opencl_device().facts()


def models(
    name: str, cache: Path, devices: str | None = None, *, floats: Floats = DEFAULT, warm: bool = False
) -> tuple[Model, ...]:
    """Return the models to measure on, in the order of their first devices.

    ``devices`` names GPUs; None is the first one.

    UsageError where ``devices`` names none, or the target is the CPU, of which there is one.
    """
    other = plugin_target(name, cache, floats=floats)
    if other is not None:
        if devices is not None:
            raise UsageError(f"--devices {devices} selects GPUs, but the target is {name}")
        return (Model(other, other.machine().facts),)
    target_name = _available(name)
    if not on_gpu(target_name):
        if devices is not None:
            why = f"the target is {name}" if name == target_name else f"none can be used here: {gpu_missing()}"
            raise UsageError(f"--devices {devices} selects GPUs, but {why}")
        facts = _facts(target_name)
        return (Model(target(target_name, facts, (), cache, floats=floats, warm=warm), facts),)
    found = [_gpu().facts(number) for number in range(_gpu().count())]
    numbers = (0,) if devices is None else numbered(devices, found)
    kinds = dict.fromkeys(found[n].model for n in numbers)
    alike = [tuple(n for n in numbers if found[n].model == kind) for kind in kinds]
    return tuple(
        Model(target(target_name, found[own[0]], own, cache, floats=floats, warm=warm), found[own[0]], own)
        for own in alike
    )


def numbered(devices: str, found: Sequence[DeviceInfo]) -> tuple[int, ...]:
    """Return the GPU numbers that ``all``, or numbers and names of models separated by commas, denote.

    A name is how a model's begins, without the vendor, in any case: ``h100`` means every H100.
    """
    chosen: list[int] = []
    for part in (text.strip() for text in devices.split(",")):
        meant = [n for n, facts in enumerate(found) if part == "all" or _means(part, n, facts)]
        if not meant:
            there = ", ".join(f"{n} ({facts.name})" for n, facts in enumerate(found))
            raise UsageError(f"--devices {devices}: no GPU matches '{part}'; choose from {there}, or all")
        twice = [n for n in meant if n in chosen]
        if twice:
            raise UsageError(f"--devices {devices}: GPU {twice[0]} is named twice")
        chosen += meant
    return tuple(chosen)


def _means(part: str, number: int, facts: DeviceInfo) -> bool:
    if part.isdecimal() and part.isascii():
        return int(part) == number
    asked = replace(facts, name=part).slug
    return asked != "" and any(own.startswith(asked) for own in (facts.slug, facts.slug.removeprefix("nvidia-")))


def _available(name: str) -> str:
    """Return what the target is on this machine: itself, or what "auto" means."""
    check_name(name)
    if name == "opencl":
        _opencl().device()
    if name in ("numba-cpu", "opencl"):
        return name
    missing = gpu_missing()
    if name == "auto":
        return "numba-cpu" if missing else "numba-cuda"
    if missing:
        raise TargetError(f"the target {name} needs an NVIDIA GPU: {missing}")
    return name


def names(own: Sequence[str] = NAMES) -> tuple[str, ...]:
    """Return the names of targets: ``own``, then those of plug-ins."""
    return (*own, *(n for n in plugins.names("target") if n not in own))


def check_name(name: str, also: Sequence[str] = ()) -> None:
    """Check the name of a target, one of ``names()`` or of ``also``. Raises UsageError if it is unknown."""
    if name in EMITTED and name not in names():
        raise UsageError(f"the target {name} can only be printed: looptune emit FILE --target {name}")
    if name not in names():
        raise UsageError(f"unknown target '{name}': choose one of {', '.join((*names(), *also))}")


def check_own(name: str, what: str) -> None:
    """Raise UsageError for a target of a plug-in; ``what`` begins the message: it is done for looptune's own only."""
    check_name(name)
    if name not in NAMES:
        raise UsageError(f"{what} looptune's own targets, and not for {name}")


def plugin_target(name: str, cache: Path, *, floats: Floats = DEFAULT) -> Target | None:
    """Return the target of this name from another package, or None. Raises PluginError if it cannot be used."""
    plugin = plugins.find_plugin("target", name, built_in=name in NAMES)
    if plugin is None:
        return None
    make = plugin.load()
    made = make(cache, fastmath=floats.reorder) if callable(make) else make
    if not isinstance(made, Target) or made.name != name:
        raise plugin.error(f"{plugin.point.value} makes no looptune.runtime.targets.Target called {name}")
    return made


def _gpu() -> Any:
    return importlib.import_module("looptune.runtime.cuda_device")


def _opencl() -> Any:
    """Return the backend's module. Raises TargetError where its library is not there."""
    if importlib.util.find_spec("pyopencl") is None:
        raise TargetError("the target opencl needs pyopencl; install it with: pip install 'looptune[opencl]'")
    return importlib.import_module("looptune.backends.opencl.backend")


def _opencl_device() -> Any:
    _opencl()
    return importlib.import_module("looptune.runtime.opencl_device")


def specializes_sizes(name: str, cache: Path) -> bool:
    """Return whether kernels of a target have the sizes as constants and run in blocks, as on a GPU."""
    other = plugin_target(name, cache)
    return name != "numba-cpu" if other is None else other.specializes_sizes


def emit(name: str, plan: Plan, cache: Path, arch: str = DEFAULT_ARCH, floats: Floats = DEFAULT) -> str:
    """Return the source for a target, without a device or, for C, a library.

    Raises ResourceError if no GPU can run it.
    """
    if name not in EMITTED:
        check_name(name, EMITTED)
    written = {"cuda-c": cuda_c_writer.file_text, "opencl": writer.file_text, "hip": hip.file_text}
    if name not in written:
        return backend(name, cache, arch, floats).emit(plan)
    finished = finish(plan, machine(name, cache, floats))
    check_limits(finished)
    return written[name](finished)


def machine(name: str, cache: Path, floats: Floats = DEFAULT) -> Machine:
    """Return the capabilities of a target, by which its passes are chosen."""
    if name == "opencl":
        return writer.machine(floats.contract)
    if name == "hip":
        return hip.machine(floats.contract)
    return Machine(specializes_sizes(name, cache), contract=floats.contract, reorder=floats.reorder, host_reads=True)


def backend(name: str, cache: Path, arch: str = DEFAULT_ARCH, floats: Floats = DEFAULT) -> Backend:
    """Return a backend for emitting, which needs no device; "auto" is numba-cuda."""
    check_name(name)
    other = plugin_target(name, cache)
    if other is not None:
        return other.backend()
    if name == "numba-cpu":
        return NumbaCpu(cache, floats)
    if name == "opencl":
        own: Backend = _opencl().OpenCl(floats.contract)
        return own
    kind = _cuda(name)
    _check_arch(arch)
    made: Backend = kind(arch, floats.contract, cache=cache)
    return made


def _check_arch(arch: str) -> None:
    """UsageError for what is no architecture, or one that the compiler knows nothing of.

    Raises TargetError if the compiler's library cannot be loaded.
    """
    try:
        known = importlib.import_module("looptune.backends.numba_cuda.backend").architectures()
    except (ImportError, OSError, RuntimeError) as error:
        why = str(error).partition("\n")[0]
        raise TargetError(
            f"the CUDA compiler cannot be loaded: {why}; `looptune doctor` says what is missing"
        ) from None
    if arch not in known:
        raise UsageError(f"unknown GPU architecture '{arch}': choose one of {', '.join(known)}")


def cuda_installed() -> bool:
    """Tell whether the libraries for compiling and launching CUDA code are installed; a GPU may still be missing."""
    try:
        return all(importlib.util.find_spec(name) is not None for name in ("cuda.core", "cuda.bindings", "numba_cuda"))
    except ModuleNotFoundError:
        return False


def gpu_missing() -> str:
    """Return why no GPU can be used here, or "" if one can."""
    if not cuda_installed():
        return f"the package numba-cuda is missing; {_INSTALL}"
    return str(importlib.import_module("looptune.runtime.cuda_device").available())


def ptx(name: str, plan: Plan, arch: str, floats: Floats = DEFAULT) -> str:
    """Return the PTX of every kernel of a plan, without a GPU; "auto" is numba-cuda.

    Raises UsageError for a target without PTX.
    """
    if name not in EMITTED:
        check_name(name)
    if name not in ("auto", "numba-cuda", "cuda-c"):
        raise UsageError(f"--ptx is for NVIDIA GPUs, and the target is {name}: choose numba-cuda or cuda-c")
    kind = _cuda(name)
    _check_arch(arch)
    text: str = kind(arch, floats.contract).ptx(plan)
    return "".join(f"// asserted by the user, not proved: {line}\n" for line in plan.asserted) + text


def resources(plan: Plan, arch: str, cache: Path) -> tuple[Resources, ...]:
    """Return the resources of each kernel on this architecture, as the compiler reports them.

    Empty if it is not installed or does not know the architecture.
    """
    if (
        not cuda_installed()
        or arch not in importlib.import_module("looptune.backends.numba_cuda.backend").architectures()
    ):
        return ()
    return backend("numba-cuda", cache, arch).build(plan).resources


def all_targets(cache: Path) -> tuple[Target, ...]:
    """Return a target for every device here, in the order of ``devices``."""
    opencl = [resolve("opencl", cache)] if opencl_facts() else []
    others = (name for name in names() if name not in NAMES)
    return (
        *(resolve("numba-cuda", cache, device=k) for k in _gpus()),
        *opencl,
        *(resolve(name, cache) for name in ("numba-cpu", *others)),
    )


def devices() -> tuple[DeviceInfo, ...]:
    """Return the facts of every device of this machine on which kernels can run, GPUs first.

    The current GPU of the process does not change.
    """
    others = (target for target in all_targets(Path()) if not on_gpu(target.name))
    return (*(_gpu().facts(k) for k in _gpus()), *(target.machine().facts for target in others))


def _gpus() -> range:
    return range(0 if gpu_missing() else _gpu().count())


def opencl_facts() -> tuple[DeviceInfo, ...]:
    """Return the facts of OpenCL's device, or () if there is none."""
    try:
        return (_facts("opencl"),)
    except TargetError:
        return ()
