"""Which GPUs --devices means, and how they are grouped by model."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from looptune.core.errors import LooptuneError, UsageError
from looptune.runtime import targets
from looptune.runtime.device import Cpu, DeviceInfo

GPUS = [
    DeviceInfo("NVIDIA H100 80GB HBM3", "numba-cuda", "sm_90", 132, 85 << 30, 50 << 20, "13000"),
    DeviceInfo("NVIDIA A100-SXM4-40GB", "numba-cuda", "sm_80", 108, 40 << 30, 40 << 20, "13000"),
    DeviceInfo("NVIDIA H100 80GB HBM3", "numba-cuda", "sm_90", 132, 85 << 30, 50 << 20, "13000"),
    DeviceInfo("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "numba-cuda", "sm_90", 16, 10 << 30, 50 << 20, "13000"),
]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("all", (0, 1, 2, 3)),
        ("0", (0,)),
        ("2,0", (2, 0)),
        (" 1 , 3 ", (1, 3)),
        ("a100", (1,)),
        ("NVIDIA A100", (1,)),
        ("h100", (0, 2, 3)),
        ("A100-SXM4,0", (1, 0)),
    ],
)
def test_what_devices_names(text: str, numbers: tuple[int, ...]) -> None:
    """Numbers, models by how their names begin, all; in the order given."""
    assert targets.numbered(text, GPUS) == numbers


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("4", "--devices 4: no GPU matches '4'; choose from 0 (NVIDIA H100 80GB HBM3), 1 (NVIDIA A100-SXM4-40GB)"),
        ("0,,1", "no GPU matches ''"),
        ("", "no GPU matches ''"),
        ("-1", "no GPU matches '-1'"),
        ("0-2", "no GPU matches '0-2'"),
        ("0 1", "no GPU matches '0 1'"),
        ("v100", "no GPU matches 'v100'"),
        ("0,0", "GPU 0 is named twice"),
        ("h100,2", "GPU 2 is named twice"),
        ("all,1", "GPU 1 is named twice"),
        ("²", "no GPU matches '²'"),
    ],
)
def test_what_devices_refuses(text: str, message: str) -> None:
    """What names no GPU, or one twice, is the user's mistake and says what there is."""
    with pytest.raises(UsageError) as found:
        targets.numbered(text, GPUS)
    assert message in found.value.message


@pytest.mark.skipif(not targets.cuda_installed(), reason="needs the package numba-cuda")
def test_gpus_are_taken_together_by_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A model is a name, an architecture and a number of cores; each of its GPUs measures, and code is for its own
    architecture. Without --devices it is the first GPU alone."""
    made = SimpleNamespace(count=lambda: len(GPUS), facts=GPUS.__getitem__, Gpu=Cpu)
    monkeypatch.setattr(targets, "_gpu", lambda: made)
    monkeypatch.setattr(targets, "gpu_missing", lambda: "")
    models = targets.models("auto", tmp_path, "all", warm=True)
    assert [(m.facts, m.numbers) for m in models] == [(GPUS[0], (0, 2)), (GPUS[1], (1,)), (GPUS[3], (3,))]
    machines = [(m.target.machine, *m.target.others) for m in models]
    assert [[machine.args for machine in own] for own in machines] == [[(0, True), (2, True)], [(1, True)], [(3, True)]]
    assert [m.target.backend.args[0] for m in models] == ["sm_90", "sm_80", "sm_90"]
    assert [m.numbers for m in targets.models("numba-cuda", tmp_path)] == [(0,)]
    assert [m.numbers for m in targets.models("numba-cuda", tmp_path, "a100,h100")] == [(1,), (0, 2), (3,)]


@pytest.mark.parametrize("target", ["auto", "numba-cpu", "numba-cuda"])
def test_devices_are_gpus(target: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """--devices on the CPU, or where there is no GPU, is refused with the reason."""
    monkeypatch.setattr(targets, "gpu_missing", lambda: "the driver finds no GPU")
    with pytest.raises(LooptuneError) as found:
        targets.models(target, tmp_path, "all")
    said = {
        "auto": "--devices all selects GPUs, but none can be used here: the driver finds no GPU",
        "numba-cpu": "--devices all selects GPUs, but the target is numba-cpu",
        "numba-cuda": "the target numba-cuda needs an NVIDIA GPU: the driver finds no GPU",
    }
    assert found.value.message == said[target]
