"""The members of a cluster: the devices on which a worker may measure, and whether it runs the same looptune."""

from __future__ import annotations

import hashlib
import importlib
import platform
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from looptune import core
from looptune.core.version import __version__, installed_packages
from looptune.runtime.device import DEVICES, Cpu, DeviceInfo
from looptune.runtime.targets import gpu_missing

RESOURCES = {"numba-cuda": "GPU", "numba-cpu": "MEASURE"}
"""The resource that a Dask worker declares in order to measure, by device: ``--resources GPU=1``."""
PACKAGES = ("numba", "llvmlite", "numpy", "islpy", "numba-cuda", "nvidia-nvvm", "nvidia-cuda-nvrtc")


def resource(target: str) -> str:
    """Return the Dask resource that has to be declared for a target."""
    return RESOURCES[DEVICES[target]]


@dataclass(frozen=True, slots=True)
class ClusterWorker:
    """A Dask worker.

    ``devices``: by target, the devices that it measures on; ``trouble``: why one that it declares cannot be used.
    """

    address: str
    host: str
    threads: int
    devices: Mapping[str, tuple[DeviceInfo, ...]]
    versions: Mapping[str, str]
    trouble: str = ""

    def measured(self, target: str) -> tuple[DeviceInfo, ...]:
        """Return the device on which the worker measures for a target."""
        return self.devices.get(DEVICES[target], ())

    @property
    def named(self) -> str:
        return f"{self.address} on {self.host}"


def probe(dask_worker: Any) -> ClusterWorker:
    """Describe the worker that runs this. No GPU context is created: the processes that measure have their own."""
    declared = dask_worker.state.total_resources
    counts = {target: int(declared.get(resource, 0)) for target, resource in RESOURCES.items()}
    found, trouble = gpus(counts["numba-cuda"])
    devices = {"numba-cuda": found, "numba-cpu": (Cpu().facts,) if counts["numba-cpu"] else ()}
    threads = dask_worker.state.nthreads
    return ClusterWorker(dask_worker.address, socket.gethostname(), threads, devices, versions(), trouble)


def gpus(wanted: int | None) -> tuple[tuple[DeviceInfo, ...], str]:
    """Return the first ``wanted`` GPUs seen here (None: all of them), or the reason why they cannot be used."""
    if wanted == 0:
        return (), ""
    if why := gpu_missing():
        return (), f"declares GPU, but {why}"
    gpu = importlib.import_module("looptune.runtime.cuda_device")
    seen = gpu.count()
    if wanted is not None and seen < wanted:
        return (), f"declares GPU={wanted}, but sees {seen}"
    found = tuple(gpu.facts(index) for index in range(seen if wanted is None else wanted))
    if len({facts.model for facts in found}) > 1:
        return (), "declares GPUs of several models: start a worker for each, with CUDA_VISIBLE_DEVICES"
    return found, ""


def versions() -> dict[str, str]:
    """Return all versions that must be equal for a time, and a pickled task, to mean the same on two machines."""
    installed = installed_packages()
    own = {
        "looptune": f"{__version__} ({_digest()})",
        "python": ".".join(platform.python_version_tuple()[:2]),
    }
    return own | {name: installed.get(name, "missing") for name in PACKAGES}


def _digest() -> str:
    """Return a digest of looptune's own source, since two copies of one version may differ."""
    root = Path(core.__file__).parents[1]
    files = sorted(root.rglob("*.py"))
    text = b"".join(str(f.relative_to(root)).encode() + b"\0" + f.read_bytes() for f in files)
    return hashlib.sha256(text).hexdigest()[:8]


def version_mismatch(ours: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """Return the versions that differ, as ``numba 0.61.0 (here 0.68.1)``, or ""."""
    names = (*ours, *(name for name in theirs if name not in ours))
    pairs = ((name, ours.get(name, "missing"), theirs.get(name, "missing")) for name in names)
    return ", ".join(f"{name} {there} (here {here})" for name, here, there in pairs if here != there)


def models(members: Sequence[ClusterWorker], target: str) -> tuple[tuple[DeviceInfo, int], ...]:
    """Return the models of device with the greatest number that one worker has of each, ordered by name."""
    found: dict[tuple[str, str, int], DeviceInfo] = {}
    most: dict[tuple[str, str, int], int] = {}
    for member in members:
        for facts in member.measured(target):
            found.setdefault(facts.model, facts)
            most[facts.model] = max(most.get(facts.model, 0), len(member.measured(target)))
    return tuple((found[model], most[model]) for model in sorted(found))


def missing_files(paths: Sequence[Path]) -> list[str]:
    """Return which of the files are missing where this runs."""
    return [str(path) for path in paths if not path.exists()]
