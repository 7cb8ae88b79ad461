"""The time that a user waited counts from the command, not from the end of the imports."""

from __future__ import annotations

import subprocess
import sys


def test_what_a_process_did_before_the_question_counts() -> None:
    """A process that slept before it imported the module has been running for at least that time."""
    code = "import time; time.sleep(0.2); from looptune.core.process_clock import seconds_running as s; print(s())"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert 0.2 <= float(said.stdout) < 60
