"""A libcuda that is none, and the programs of the runtime, compiled once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.helpers.host_kernels import LIBRARIES, RUNTIME, compiled, write_fake_driver, write_kernels
from tests.helpers.runtime_programs import HERE, SOURCES, Programs


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None or shutil.which("g++") is None:
        pytest.skip("needs gcc and g++")
    return write_fake_driver(tmp_path_factory.mktemp("driver"))


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    folder = tmp_path_factory.mktemp("programs")
    write_fake_driver(folder)
    write_kernels((HERE / "codelets.cu").read_text(), folder)
    compiled(["gcc", "-O1", "-Wall", "-Wextra", "-I", RUNTIME, *SOURCES, "-o", "codelets", *LIBRARIES], folder)
    return Programs(folder)
