"""Ctrl-C is raised where the program says, at once the second time, and never lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from looptune.tune.execution.interrupts import SIGNALS, defer_interrupts


@pytest.fixture(autouse=True)
def _as_in_the_program() -> Iterator[None]:
    former = signal.signal(signal.SIGTERM, signal.default_int_handler)
    yield
    signal.signal(signal.SIGTERM, former)


@pytest.mark.parametrize("number", SIGNALS)
def test_it_waits_for_the_gate(number: signal.Signals) -> None:
    """What runs before the gate is opened runs to its end."""
    done = []

    def program() -> None:
        with defer_interrupts() as gate:
            os.kill(os.getpid(), number)
            done.append("whole")
            with gate.open():
                done.append("never")

    with pytest.raises(KeyboardInterrupt):
        program()
    assert done == ["whole"]


def test_a_gate_that_is_open_lets_it_through() -> None:
    """A blocking call between is cut short."""
    code = (
        "import time\nfrom looptune.tune.execution.interrupts import defer_interrupts\n"
        "with defer_interrupts() as gate:\n"
        "  with gate.open():\n    print('open', flush=True)\n    time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert time.monotonic() - start < 20
    assert err.endswith("KeyboardInterrupt\n")


def test_a_second_one_does_not_wait() -> None:
    """Whoever asks twice means it."""
    done = []

    def program() -> None:
        with defer_interrupts():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("after the first")
            os.kill(os.getpid(), signal.SIGINT)
            done.append("after the second")

    with pytest.raises(KeyboardInterrupt):
        program()
    assert done == ["after the first"]


def test_one_that_was_never_raised_is_raised_at_the_end() -> None:
    """And the handlers are what they were."""
    with pytest.raises(KeyboardInterrupt), defer_interrupts():
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_program_with_handlers_of_its_own_keeps_them() -> None:
    """Nothing is deferred there."""
    heard = []
    former = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        with defer_interrupts():
            os.kill(os.getpid(), signal.SIGINT)
            assert heard == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, former)
