"""The C runtime under gcc's sanitizers: every mode of the test program, with and without failures."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.helpers.host_kernels import LIBRARIES, RUNTIME, write_fake_driver, write_kernels
from tests.helpers.runtime_programs import HERE, SOURCES, Programs

pytestmark = [pytest.mark.wide, pytest.mark.skipif(shutil.which("g++") is None, reason="needs gcc and g++")]
CALLS = (
    ("call", "1000"),
    ("call", "3000000", "steps"),
    ("call", "1000", "steps", "4"),
    ("call", "1000", "beyond"),
    ("call", "1000", "saved"),
    ("call", "1000", "turned"),
    ("aliased",),
    ("twice", "1000"),
    ("threads",),
    ("fork", "1000", "after"),
    ("sequence", "1000", "lk.a.wpk.sr..R."),
)
CHECKED = ("call", "1000", "moving")
"""A call whose kernel loses digits: its result is right only where the check leaves that of the original loops."""
ON_DEVICE = ("device", "1000", "steps")
"""Uses the driver itself, whose failures it does not look at."""
FAILURES = ("", "kernel:1=719", "to:2=719", "from:1=719", "cuMemAlloc_v2:2=2", "cuModuleLoadDataEx:1=200", "cuInit:1=3")


def sanitized(folder: Path, sanitizer: str) -> Programs:
    """The test program with a sanitizer; skips where gcc has not got it, or it cannot run here."""
    write_fake_driver(folder)
    write_kernels((HERE / "codelets.cu").read_text(), folder)
    options = [f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all", "-g", "-O1", f"-I{RUNTIME}"]
    (folder / "empty.c").write_text("int main(void) { return 0; }\n")
    for source in ("empty.c", None):
        sources = [source] if source else [str(path) for path in SOURCES]
        done = subprocess.run(
            ["gcc", *options, *sources, "-o", "codelets", *LIBRARIES], cwd=folder, capture_output=True, text=True
        )
        if source and (done.returncode or subprocess.run([folder / "codelets"], capture_output=True).returncode):
            pytest.skip(f"no {sanitizer} sanitizer")
        assert done.returncode == 0, done.stderr
    return Programs(folder)


@pytest.mark.parametrize("check", [0, 1])
@pytest.mark.parametrize("failure", FAILURES)
def test_memory(tmp_path_factory: pytest.TempPathFactory, failure: str, check: int) -> None:
    """No access outside of an object, no undefined behaviour and no leak, whatever fails."""
    programs = _programs(tmp_path_factory, "address,undefined")
    for call in (*CALLS, *((CHECKED,) if check else ()), *(() if failure else (ON_DEVICE,))):
        ran = programs.run(
            *call, FAKE_CUDA_FAIL=failure, LOOPTUNE_VERBOSE=1, LOOPTUNE_CHECK=check, LSAN_OPTIONS="exitcode=98"
        )
        assert "Sanitizer" not in ran.said, (call, ran)
        assert "runtime error" not in ran.said, (call, ran)
        assert ran.code in (0, 70), (call, ran)
        assert "wrong" not in ran.out.replace("wrong ones 0", ""), (call, ran)


def test_races(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Threads that call at the same time access nothing of the runtime without its lock."""
    programs = _programs(tmp_path_factory, "thread")
    for failure in FAILURES:
        ran = programs.run("threads", FAKE_CUDA_FAIL=failure, LOOPTUNE_VERBOSE=1)
        assert "wrong ones 0" in ran.out, ran
        assert "ThreadSanitizer" not in ran.said, ran


_made: dict[str, Programs] = {}


def _programs(factory: pytest.TempPathFactory, sanitizer: str) -> Programs:
    if sanitizer not in _made:
        _made[sanitizer] = sanitized(factory.mktemp(sanitizer.replace(",", "_")), sanitizer)
    return _made[sanitizer]
