"""What holds for every test: hypothesis sets no deadline, for a machine's load is no property of the code."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from zlib import crc32

import pytest
from hypothesis import settings
from numba.core import config

settings.register_profile("looptune", deadline=None)
settings.load_profile("looptune")

os.environ["LOOPTUNE_FINALS"] = "2"  # no test waits for clear verdicts
os.environ["LOOPTUNE_ACCEPT_DISTURBED"] = "1"  # tests run beside each other

# A CPU's kernels run once or twice, on small arrays: to optimise them would take longest. A GPU's are optimised.
os.environ["NUMBA_OPT"] = "0"

# Threads that wait for others sleep: tests run side by side, and OpenMP's would keep the cores from those at work.
os.environ["OMP_WAIT_POLICY"] = "passive"


# A shell's jobs in the background ignore Ctrl-C, and so would what they start; a program at a terminal does not.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


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
    """Of a ``sampled(n)`` test the first case and one in n, which their names decide, run everywhere; the others get
    the marker that the sample names, or ``long``."""
    seen: set[str] = set()
    for item in items:
        test = item.nodeid.partition("[")[0]
        for mark in list(item.iter_markers("sampled")) if test in seen else ():
            if crc32(item.name.encode()) % mark.args[0]:
                item.add_marker(mark.args[1] if len(mark.args) > 1 else "long")
        seen.add(test)


def pytest_collection_finish() -> None:
    """What is there by now stays: the garbage collector need not look at it again and again."""
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cases", type=int, default=0, help="random codelets tried; tests of every marker run then")
    parser.addoption("--update-golden", action="store_true", help="write tests/golden anew")


def pytest_configure(config: pytest.Config) -> None:
    """Who asks for a number of cases names the tests: the markers that everyday runs leave out select none of them."""
    if config.getoption("--cases"):
        config.option.markexpr = ""
