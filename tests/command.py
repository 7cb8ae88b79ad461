"""The command line in a process of its own, and files to give it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

GEMM = Path(__file__).parent.parent / "polybench" / "gemm.c"
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


def looptune(*arguments: str | Path, cwd: Path) -> Ran:
    command = [sys.executable, "-m", "looptune", *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)
    return Ran(done.returncode, done.stdout, done.stderr)


def filled(folder: Path) -> Path:
    """With one file for every mistake, and ``gemm.c``."""
    for name, text in FILES.items():
        (folder / name).write_text(text)
    (folder / "binary.c").write_bytes(b"\x00\xff\xfe\x01")
    (folder / "binary.space").write_bytes(b"\xff\xfe\x00")
    (folder / "folder.c").mkdir()
    shutil.copy(GEMM, folder / "gemm.c")
    return folder
