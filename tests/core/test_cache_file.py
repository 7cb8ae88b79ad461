"""What is kept on disk to be quick: whole or made again, by one process or by several at a time."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from looptune.backends.numba_cpu.backend import NumbaCpu
from looptune.backends.numba_cpu.code_cache import CodeFiles
from looptune.core.cache_file import publish_file, read_published, replace_file
from looptune.frontend import load
from looptune.lower.pipeline import lower
from looptune.runtime import numpy_files
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule

TEXT = "void kept(int n, float x[n]) { for (int i = 0; i < n; i++) x[i] += 1; }\n"


def test_what_is_cut_short_or_changed_is_not_there(tmp_path: Path) -> None:
    """At any byte; nothing else is left of writing."""
    path = tmp_path / "a" / "file"
    assert read_published(path) is None
    publish_file(path, b"some data")
    assert read_published(path) == b"some data"
    whole = path.read_bytes()
    for n in range(len(whole)):
        path.write_bytes(whole[:n])
        assert read_published(path) is None
        path.write_bytes(whole[:n] + bytes([whole[n] ^ 1]) + whole[n + 1 :])
        assert read_published(path) is None
    path.unlink()
    path.mkdir()
    assert read_published(path) is None
    assert os.listdir(tmp_path / "a") == ["file"]


def test_what_cannot_be_written_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old contents stay, and no part of the new ones."""
    path = tmp_path / "file"
    replace_file(path, b"old")

    def full(part: str, to: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        replace_file(path, b"new")
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"old", ["file"])


def test_no_entry_of_compiled_code_is_anothers(tmp_path: Path) -> None:
    """Two that are saved at a time have files of their own, and a file says what it is of."""
    one, other = (CodeFiles(str(tmp_path), "f", "stamp") for _ in range(2))
    one.save(("float",), "of float")
    other.save(("double",), "of double")
    assert [one.load(("float",)), one.load(("double",)), one.load(("int",))] == ["of float", "of double", None]
    assert CodeFiles(str(tmp_path), "f", "newer").load(("float",)) is None
    first, second = sorted(tmp_path.iterdir())
    first.write_bytes(second.read_bytes())
    assert sorted(filter(None, (one.load(("float",)), one.load(("double",))))) in (["of double"], ["of float"])


def test_compiled_code_is_of_the_settings_of_the_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that was not optimised, or that checks bounds, is not what another process would have compiled."""
    files = CodeFiles(str(tmp_path), "f", "stamp")
    files.save(("float",), "as the tests compile")
    for name, value in (("NUMBA_OPT", "3"), ("NUMBA_BOUNDSCHECK", "1"), ("NUMBA_LOOP_VECTORIZE", "0")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            assert files.load(("float",)) is None, name
    assert files.load(("float",)) == "as the tests compile"


def run(cache: Path, text: str = TEXT) -> None:
    """Build it in another process, from what the cache holds, and look at what it computes."""
    code = (
        "import sys, numpy as np; from pathlib import Path; from looptune.deploy.compile import scheduled\n"
        "from looptune.backends.numba_cpu.backend import NumbaCpu; from looptune.frontend import load\n"
        "from looptune.lower.pipeline import lower\n"
        "b = NumbaCpu(Path(sys.argv[1])); planned = lower(scheduled(load(sys.argv[2]), None).codelet)\n"
        "p = b.load(b.build(planned))\n"
        "x = np.zeros(5, np.float32); p.run({'x': x}, {'n': 5}); assert (x == 1).all(), x\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(cache), text], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr


@pytest.mark.wide
def test_a_damaged_cache_of_compiled_modules_heals(tmp_path: Path) -> None:
    """Whatever is cut short in it, the next process builds again, and the one after it finds all whole."""
    run(tmp_path)
    rng = random.Random(0)
    files = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert {".py", ".code"} <= {p.suffix for p in files}
    for path in files:
        path.write_bytes(path.read_bytes()[: rng.choice((0, 50))])
    run(tmp_path)
    for path in files:
        assert path.stat().st_size > 50


def test_a_module_of_the_cache_is_what_was_emitted(tmp_path: Path) -> None:
    """One that something else has written there is not run."""
    backend = NumbaCpu(tmp_path)
    planned = lower(schedule(Analysis(load(TEXT.replace("kept", "changed")).codelet)).codelet)
    backend.build(planned)
    texts = {path: path.read_text() for path in tmp_path.glob("looptune_*.py")}
    assert len(texts) == 2, "a kernel and a driver"
    for path in texts:
        path.write_text("raise SystemExit('it ran')\n")
        del sys.modules[path.stem]
    backend.load(backend.build(planned))
    assert {path: path.read_text() for path in texts} == texts


NUMPY = b"\x93NUMPY\x01\x00"


def header(text: str) -> bytes:
    return NUMPY + len(text).to_bytes(2, "little") + text.encode()


BAD = {
    "empty": b"", "magic": NUMPY, "token": header("{'descr': '<f4', 'shape': (4,"),
    "memory": header("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999,), }"),
    "shape": header("{'descr': '<f4', 'fortran_order': False, 'shape': (-4,), }"),
    "word": header("{'descr': 'f' * 9, 'fortran_order': False, 'shape': (4,), }"),
    "deep": header("(" * 9000), "object": header("{'descr': '|O', 'fortran_order': False, 'shape': (4,), }"),
    "version": b"\x93NUMPY\x09\x00" + bytes(20), "text": b"hello", "pickle": b"\x80\x04N.",
    "zip": b"PK\x03\x04" + bytes(40), "end": b"PK\x05\x06" + bytes(18),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_arrays_that_cannot_be_read_are_one_exception(tmp_path: Path, name: str) -> None:
    """Whatever NumPy, zipfile or zlib raise."""
    (tmp_path / "a.npz").write_bytes(BAD[name])
    if name == "end":
        assert numpy_files.read(tmp_path / "a.npz") == {}
        return
    with pytest.raises(numpy_files.Damaged):
        numpy_files.read(tmp_path / "a.npz")


def test_a_damaged_archive_is_found_out(tmp_path: Path) -> None:
    """Cut anywhere or with any bit changed: Damaged, or other names, or the arrays as they were."""
    given = {"x": np.arange(6.0), "n": np.array(3)}
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "a.npz", **given)
        whole, rng = (tmp_path / "a.npz").read_bytes(), random.Random(1)
        for _ in range(150):
            at = rng.randrange(len(whole))
            changed = bytearray(whole)
            changed[at] ^= 1 << rng.randrange(8)
            for data in (whole[:at], bytes(changed)):
                (tmp_path / "b.npz").write_bytes(data)
                try:
                    found = numpy_files.read(tmp_path / "b.npz")
                except numpy_files.Damaged:
                    continue
                assert isinstance(found, dict)
                assert all(np.array_equal(given[name], found[name]) for name in given.keys() & found.keys())
