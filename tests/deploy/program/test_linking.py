"""Objects and shared libraries that have the runtime with them, in one program."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.helpers.host_kernels import LIBRARIES, RUNTIME, compiled, write_fake_driver, write_kernels
from tests.helpers.runtime_programs import FREED, HERE, Programs

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs gcc and g++")
WARNINGS = ("-Wall", "-Wextra")


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    """The runtime and the two parts as objects; each part with a copy of the runtime as one object, and as library."""
    folder = tmp_path_factory.mktemp("parts")
    write_fake_driver(folder)
    write_kernels((HERE / "codelets.cu").read_text(), folder)
    include = [f"-I{RUNTIME}", "-fPIC", *WARNINGS]
    compiled(["gcc", *include, "-c", RUNTIME / "looptune_runtime.c", "-o", "runtime.o"], folder)
    for part in ("one", "two"):
        compiled(["gcc", *include, f"-DPART={part}", "-c", HERE / "part.c", "-o", f"{part}.o"], folder)
        compiled(["ld", "-r", f"{part}.o", "runtime.o", "-o", f"{part}_whole.o"], folder)
        compiled(["gcc", "-shared", f"{part}.o", "runtime.o", "-o", f"lib{part}.so", *LIBRARIES], folder)
    return Programs(folder)


def test_objects_share_a_runtime(parts: Programs) -> None:
    """Of the copies in the objects of a program one serves all of them."""
    compiled(
        ["gcc", *WARNINGS, "-DLINKED", HERE / "parts.c", "one_whole.o", "two_whole.o", "-o", "linked", *LIBRARIES],
        parts.folder,
    )
    ran = parts.run(program="linked", LOOPTUNE_VERBOSE=1)
    assert ran.out == "right, child 0\n", ran
    assert ran.count("allocate 256$") == 1
    assert ran.said.count("calls on NVIDIA H200: 1") == 2
    assert ran.log[-1] == FREED


def test_libraries_have_their_own(parts: Programs) -> None:
    """Shared libraries have a runtime each, export nothing of it, and can be unloaded."""
    compiled(["gcc", *WARNINGS, HERE / "parts.c", "-o", "opening", "-ldl"], parts.folder)
    libraries = [str(parts.folder / f"lib{part}.so") for part in ("one", "two")]
    ran = parts.run(*libraries, program="opening", LOOPTUNE_VERBOSE=1)
    assert ran.out == "right, child 0\n", ran
    assert ran.count("allocate 256$") == 2
    assert "left: 0 bytes" in ran.log[-1]
    shown = subprocess.run(["nm", "-D", libraries[0]], capture_output=True, text=True, check=True).stdout
    assert "call_one" in shown
    assert "looptune" not in shown


COMPILERS = (
    ("gcc", "-std=c99", "-pedantic"),
    ("gcc", "-std=gnu17", "-O2", "-Wshadow", "-Wconversion", "-Wstrict-prototypes"),
    ("g++", "-x", "c++", "-std=c++11", "-pedantic"),
    ("clang", "-std=c99", "-pedantic", "-Wshadow"),
    ("clang++", "-x", "c++", "-std=c++17", "-pedantic"),
)


@pytest.mark.parametrize(
    "command", [pytest.param(c, marks=[] if k == 0 else pytest.mark.wide) for k, c in enumerate(COMPILERS)]
)
def test_compilers_have_nothing_to_say(command: tuple[str, ...], tmp_path: Path) -> None:
    """The runtime, and what uses it, is C99 and C++ without a warning."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"needs {command[0]}")
    for source, options in ((RUNTIME / "looptune_runtime.c", []), (HERE / "part.c", ["-DPART=one"])):
        compiled([*command, *WARNINGS, "-I", RUNTIME, *options, "-c", source, "-o", "object.o"], tmp_path)
