"""The command line, in this process or in one of its own, and files to give it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest

from looptune.cli.main import main
from tests.helpers.paths import POLYBENCH

GEMM = POLYBENCH / "gemm.c"
SMALL = ("-D", "NI=24", "-D", "NJ=20", "-D", "NK=17", "--target", "numba-cpu")

FILES = {
    "plain.c": "void f(int n, float x[n]) {\n  for (int i = 0; i < n; i++) x[i] += 1;\n}\n",
    "syntax.c": "void f(int n, float x[n]) {\n  for (int i = 0; i < n; i++) x[i] = 1 +;\n}\n",
    "unknown.c": "void f(int n, float x[n]) {\n#pragma hmppcg unrol 4\n  for (int i = 0; i < n; i++) x[i] = 1;\n}\n",
    "argument.c": "void f(int n, float x[n]) {\n#pragma hmppcg unroll 4, splitt\n"
    "  for (int i = 0; i < n; i++) x[i] = 1;\n}\n",
    "illegal.c": "void f(int n, float x[n]) {\n#pragma hmppcg parallel\n"
    "  for (int i = 1; i < n; i++) x[i] = x[i - 1];\n}\n",
    "empty.c": "",
    "blank.c": " \n\n",
    "noloop.c": "int main(void) { return 0; }\n",
    "open.space": "loop k: unroll {1..\n",
    "words.space": "something else\n",
    "notes.json": '{"notes": []}',
    "broken.json": "{",
    "regular": "",
}


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


def alone(*arguments: str | Path, cwd: Path) -> Ran:
    """The command in a process of its own."""
    command = [sys.executable, "-m", "looptune", *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)
    return Ran(done.returncode, done.stdout, done.stderr)


def looptune(*arguments: str | Path, cwd: Path) -> Ran:
    """The command in this process, which has loaded what it needs; an exception is the test's."""
    out, err, term = StringIO(), StringIO(), signal.getsignal(signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(cwd)
        patch.setattr(sys, "argv", ["looptune", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
    signal.signal(signal.SIGTERM, term)
    return Ran(int(end.value.code or 0), out.getvalue(), err.getvalue())


def filled(folder: Path) -> Path:
    """With one file for every mistake, and ``gemm.c``."""
    for name, text in FILES.items():
        (folder / name).write_text(text)
    (folder / "binary.c").write_bytes(b"\x00\xff\xfe\x01")
    (folder / "binary.space").write_bytes(b"\xff\xfe\x00")
    (folder / "folder.c").mkdir()
    shutil.copy(GEMM, folder / "gemm.c")
    return folder
