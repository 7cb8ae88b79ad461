"""Files that are written where the user says, and files and pipes that are read from there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
import pytest

from looptune.core import cache_file
from looptune.core.cache_file import read_file, replace_by, replace_file
from looptune.core.errors import ParseError
from looptune.deploy.source_to_source import encode
from looptune.frontend import load
from looptune.runtime import numpy_files
from tests.helpers.command_line import looptune

LOOP = "void f(int n, float A[n]) {\n  for (int i = 0; i < n; i++) A[i] += 1;\n}\n"


def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    """Neither text nor arrays take the place of what is not a regular file; its reader gets them."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    replace_file(pipe, b"text")
    assert os.read(reader, 100) == b"text"
    numpy_files.write(pipe, {"A": np.ones(3)})
    assert os.read(reader, 10000).startswith(b"PK")
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_link_and_permissions_stay(tmp_path: Path) -> None:
    """The file that a link names is replaced, and only its owner may read it still."""
    private, link = tmp_path / "private", tmp_path / "link"
    private.write_text("old")
    private.chmod(0o600)
    link.symlink_to("private")
    replace_file(link, b"new")
    assert (link.is_symlink(), private.read_text()) == (True, "new")
    assert stat.S_IMODE(private.stat().st_mode) == 0o600


def test_what_cannot_be_written_whole_leaves_the_file(tmp_path: Path) -> None:
    """An error in the middle: the old text is there, and nothing besides."""
    (tmp_path / "out").write_text("old")
    with pytest.raises(OSError, match="full"):
        replace_by(tmp_path / "out", lambda file: [file.write(b"half"), (_ for _ in ()).throw(OSError("full"))])
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("out", "old")]


def test_a_file_that_may_not_be_written_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though its folder may be; who runs this as root may write everything, so the answer is given here."""
    (tmp_path / "out").write_text("old")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError):
        replace_file(tmp_path / "out", b"new")
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("out", "old")]


def test_a_pipe_without_a_writer_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a source and in an #include as well: an error, where there was no end."""
    monkeypatch.setattr(cache_file, "_SILENT_S", 0.01)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="nothing is written into"):
        read_file(tmp_path / "pipe")
    (tmp_path / "f.c").write_text('#include "pipe"\n' + LOOP)
    with pytest.raises(ParseError, match="nothing is written into"):
        load(tmp_path / "f.c")


def test_a_file_without_an_end_is_given_up() -> None:
    """A device that gives zeros for ever is more than the most."""
    with pytest.raises(OSError, match="more than 1,000 bytes"):
        read_file(Path("/dev/zero"), 1000)


def test_a_source_from_a_pipe_is_read_once() -> None:
    """transform gives what it gives of a file, though nothing can be read a second time."""
    reading, writing = os.pipe()
    os.write(writing, LOOP.encode())
    os.close(writing)
    path = Path(f"/dev/fd/{reading}")
    unit = load(path)
    os.close(reading)
    assert (unit.text, encode(path, LOOP)) == (LOOP, LOOP.encode())


@pytest.mark.parametrize(
    "arguments",
    [
        ("transform", "f.c", "-o", "f.c"),
        ("emit", "f.c", "--target", "numba-cpu", "-o", "./f.c"),
        ("build", "f.c", "--untuned", "--target", "numba-cpu", "-o", "link.c"),
        ("run", "f.c", "-D", "n=4", "--target", "numba-cpu", "--dump", "f.c"),
        ("run", "f.c", "-D", "n=4", "--target", "numba-cpu", "--data", "A=a.npy", "--dump", "A=a.npy"),
    ],
    ids=" ".join,
)
def test_no_input_is_written_over(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """Whatever name it is given; it stays as it is."""
    (tmp_path / "f.c").write_text(LOOP)
    (tmp_path / "link.c").symlink_to("f.c")
    np.save(tmp_path / "a.npy", np.ones(4, np.float32))
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    ran = looptune(*arguments, cwd=tmp_path)
    assert (ran.code, "is a file that this command reads" in ran.err) == (2, True)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()} == before
