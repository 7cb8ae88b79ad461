"""The example that gives Kernel Tuner looptune's strategies: by its interface, and in Kernel Tuner if installed."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import sys
from itertools import product
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.helpers.paths import ROOT

EXAMPLE = ROOT / "examples" / "kernel_tuner" / "looptune_search.py"
PARAMETERS = {"block_size_x": [16, 32, 48, 64], "method": ["a", "b"], "tile": [1, 2, 3, 4]}
POINTS = [point for point in product(*PARAMETERS.values()) if point[0] * point[2] <= 128]
FAILED = sys.float_info.max


def cost(point: tuple[Any, ...]) -> float:
    """Milliseconds; what Kernel Tuner says of a configuration that failed."""
    x, method, tile = point
    return FAILED if tile == 4 else 1.0 + abs(x - 48) / 16 + abs(tile - 2) + (method == "a")


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module, with the base class alone of Kernel Tuner where that is missing."""
    if importlib.util.find_spec("kernel_tuner") is None:
        wrapper = ModuleType("kernel_tuner.strategies.wrapper")
        wrapper.OptAlg = object  # type: ignore[attr-defined]
        for name in ("kernel_tuner", "kernel_tuner.strategies"):
            monkeypatch.setitem(sys.modules, name, ModuleType(name))
        monkeypatch.setitem(sys.modules, wrapper.__name__, wrapper)
    spec = importlib.util.spec_from_file_location("looptune_search", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["model", "jiang-snir", "random"])
@pytest.mark.parametrize("more_is_better", [False, True])
def test_it_asks_members_once_and_returns_the_best(name: str, more_is_better: bool, example: ModuleType) -> None:
    """Costs are the less the better: negative ones where more is better. What failed is passed over."""
    asked: list[tuple[Any, ...]] = []

    def func(point: tuple[Any, ...]) -> float:
        asked.append(point)
        value = cost(point)
        return value if value == FAILED or not more_is_better else -1 / value

    space = SimpleNamespace(tune_params=PARAMETERS, list=POINTS)
    best, least = example.Looptune(name, seed=3)(func, space)
    assert best == (48, "b", 2)
    assert least == (-1.0 if more_is_better else 1.0)
    assert len(set(asked)) == len(asked)
    assert set(asked) <= set(POINTS)


def test_the_budget_ends_it(example: ModuleType) -> None:
    """The exception by which Kernel Tuner ends a search goes through."""

    def func(point: tuple[Any, ...]) -> float:
        raise StopIteration("budget")

    with pytest.raises(StopIteration):
        example.Looptune()(func, SimpleNamespace(tune_params=PARAMETERS, list=POINTS))


@pytest.mark.skipif(importlib.util.find_spec("kernel_tuner") is None, reason="kernel_tuner is missing")
def test_kernel_tuner_searches_with_it(example: ModuleType, tmp_path: Path) -> None:
    """In its simulation mode on a cache file: the best within 20 evaluations."""
    import kernel_tuner
    from kernel_tuner.strategies.wrapper import OptAlgWrapper

    times = {"compile_time": 1.0, "verification_time": 0.0, "benchmark_time": 1.0, "strategy_time": 0.0}
    times |= {"framework_time": 0.0}
    entries = {
        ",".join(map(str, p)): dict(zip(PARAMETERS, p, strict=True))
        | {"time": "RuntimeFailedConfig" if cost(p) == FAILED else cost(p), "times": [], **times}
        for p in POINTS
    }
    cache = tmp_path / "cache.json"
    cache.write_text(json.dumps({
        "device_name": "d", "kernel_name": "kernel", "problem_size": 1, "tune_params_keys": list(PARAMETERS),
        "tune_params": PARAMETERS, "objective": "time", "cache": entries,
    }))  # fmt: skip
    with contextlib.redirect_stdout(io.StringIO()):
        found, _ = kernel_tuner.tune_kernel(
            "kernel", "__global__ void kernel() {}", 1, [], PARAMETERS, lang="CUDA", simulation_mode=True, quiet=True,
            restrictions=["block_size_x * tile <= 128"], cache=str(cache), strategy_options={"max_fevals": 20},
            strategy=OptAlgWrapper(example.Looptune("model", seed=1)),
        )  # fmt: skip
    assert len(found) == 20
    assert min(r["time"] for r in found if isinstance(r["time"], float)) == 1.0
