"""Random sequences of calls and data directives, with random failures: right results, or an end with a message."""

from __future__ import annotations

import random
import shutil

import pytest

from tests.helpers.runtime_programs import FREED, Programs

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs gcc and g++")

FAILING = (
    "cuMemAlloc_v2=2",
    "cuLaunchKernel=701",
    "cuLaunchKernel=719",
    "cuMemcpyDtoHAsync_v2=1",
    "cuMemcpyHtoDAsync_v2=1",
    "to=719",
    "from=719",
    "kernel=719",
    "kernel=700",
    "cuStreamSynchronize=999",
    "cuEventRecord=400",
    "cuEventSynchronize=719",
    "cuModuleLoadDataEx=2",
    "cuMemsetD8Async=1",
    "cuCtxPushCurrent_v2=201",
    "cuMemFree_v2=719",
    "cuMemHostAlloc=2",
    "cuStreamCreate=2",
    "cuEventCreate=2",
)


def sequence(rng: random.Random) -> str:
    """A sequence that keeps the rules: what is kept or pending is neither loaded anew nor released."""
    parts = []
    held = pending = False
    depth = 0
    for _ in range(rng.randrange(1, 9)):
        if rng.random() < 0.2:
            parts.append("[")
            depth += 1
        flags = [letter for letter in "pxkatz" if rng.random() < 0.3]
        parts.append("".join(flags) + ".")
        held |= "k" in flags or depth > 0
        pending |= "a" in flags and "k" not in flags
        for letter in rng.sample("lswrRh", rng.randrange(3)):
            if (letter in "lR" and (held or pending)) or (letter == "h" and rng.random() < 0.5):
                continue
            parts.append(letter)
            held &= letter != "s" or depth > 0
            pending &= letter not in "ws"
        if depth and rng.random() < 0.4:
            parts.append("]")
            depth -= 1
    return "".join(parts) + "]" * depth + "ws"


def failure(rng: random.Random) -> str:
    name, _, error = rng.choice(FAILING).partition("=")
    return f"{name}:{rng.randrange(1, 6)}={error}"


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.wide) for seed in range(1, 8))])
def test_sequences(programs: Programs, seed: int) -> None:
    """The arrays are what the original loops make of them, or the program ends since a device has lost them."""
    rng = random.Random(seed)
    for _ in range(40):
        calls, fails = sequence(rng), failure(rng) if rng.random() < 0.6 else ""
        n = rng.choice([1, 64, 1000, 1000, 1000, 3000000 if rng.random() < 0.1 else 10])
        settings = {
            "FAKE_CUDA_FAIL": fails,
            "LOOPTUNE_VERBOSE": rng.randrange(2),
            "LOOPTUNE_CHECK": int(rng.random() < 0.2),
            "FAKE_CUDA_MEMORY": rng.choice([1 << 30, 1 << 30, 4 * 4096]),
        }
        ran = programs.run("sequence", str(n), calls, **settings)
        case = (n, calls, settings, ran)
        if ran.code == 70:
            assert fails, case
            assert "the program ends" in ran.said, case
        else:
            assert ran.code == 0, case
            assert "wrong" not in ran.out, case
            assert fails or ran.log[-1:] in ([FREED], []), case
