"""What holds for every test: hypothesis sets no deadline, for a machine's load is no property of the code."""

from __future__ import annotations

import os
from collections.abc import Iterator
from zlib import crc32

import pytest
from hypothesis import settings
from numba.core import config

settings.register_profile("looptune", deadline=None)
settings.load_profile("looptune")

os.environ["LOOPTUNE_FINALS"] = "2"  # no test waits for clear verdicts

# A CPU's kernels run once or twice, on small arrays: to optimise them would take longest. A GPU's are optimised.
os.environ["NUMBA_OPT"] = "0"

# Threads that wait for others sleep: tests run side by side, and OpenMP's would keep the cores from those at work.
os.environ["OMP_WAIT_POLICY"] = "passive"


@pytest.fixture
def optimising(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Numba optimises what it compiles for a CPU."""
    with monkeypatch.context() as patch:
        patch.delenv("NUMBA_OPT")
        config.reload_config()
        yield
    config.reload_config()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of the cases of a ``sampled(n)`` test the first and one in n are no long ones, which their names decide."""
    seen: set[str] = set()
    for item in items:
        mark, test = item.get_closest_marker("sampled"), item.nodeid.partition("[")[0]
        if mark is not None and test in seen and crc32(item.name.encode()) % mark.args[0]:
            item.add_marker(pytest.mark.long)
        seen.add(test)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cases", type=int, default=0, help="random codelets and programs tried")
    parser.addoption("--seed", type=int, default=None, help="makes the same programs in tests/test_differential.py")
    parser.addoption("--update-golden", action="store_true", help="write tests/golden anew")
