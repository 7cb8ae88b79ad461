"""A libcuda that is none, compiled once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.helpers.host_kernels import write_fake_driver


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None or shutil.which("g++") is None:
        pytest.skip("needs gcc and g++")
    return write_fake_driver(tmp_path_factory.mktemp("driver"))
