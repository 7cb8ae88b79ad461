"""Calls that are stopped when their time is over."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from looptune.core.time_limit import OutOfTime, call_within, time_limit

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that can be copied")


def test_a_result_comes_back() -> None:
    assert call_within(60, lambda: {"a": [1, 2]}) == {"a": [1, 2]}


def test_a_large_result_comes_back() -> None:
    assert call_within(60, lambda: b"x" * 10**6) == b"x" * 10**6


def test_what_takes_longer_is_ended(tmp_path: Path) -> None:
    def late() -> int:
        time.sleep(60)
        (tmp_path / "late").touch()
        return 1

    assert call_within(0.1, late) is None
    assert not (tmp_path / "late").exists()


def test_what_crashes_has_no_result() -> None:
    assert call_within(60, lambda: os.kill(os.getpid(), signal.SIGKILL)) is None


def test_what_it_raises_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        call_within(60, lambda: 1 // 0)


def test_what_it_changes_stays_there() -> None:
    found: list[int] = []
    assert call_within(60, lambda: found.append(1) or len(found)) == 1
    assert not found


def test_python_is_interrupted() -> None:
    def endless() -> None:
        while True:
            pass

    with pytest.raises(OutOfTime), time_limit(0.01):
        endless()
