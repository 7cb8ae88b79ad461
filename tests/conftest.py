"""What holds for every test: hypothesis sets no deadline, for a machine's load is no property of the code."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

settings.register_profile("looptune", deadline=None)
settings.load_profile("looptune")

os.environ["LOOPTUNE_FINALS"] = "2"  # no test waits for clear verdicts


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cases", type=int, default=0, help="random codelets tried by tests/test_random_codelets.py")
