"""Machine code of a module for a GPU is compiled once, whichever process asks for it first; no GPU is needed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from looptune.deploy.runtime import cubin_cache
from tests.helpers.built_modules import AXPY, cuda, run_alone, written


class Compiler:
    """A compiler that counts, and a module with one kernel."""

    def __init__(self) -> None:
        self.made: list[tuple[str, ...]] = []
        self.kernel = SimpleNamespace(__name__="k")

    def make(self, kernel: Any, signature: Sequence[str], arch: str) -> bytes:
        self.made.append((*signature, arch))
        return f"code {len(self.made)}".encode()

    def code(self, *signature: str, arch: str = "sm_90") -> bytes:
        return cubin_cache.cached_cubin(self.make, self.kernel, signature, arch)


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compiler:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return Compiler()


def test_a_kernel_is_compiled_once(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    """For each code of the module, type, architecture and version of a compiler; what is damaged is made again."""
    assert [compiler.code("uint32"), compiler.code("uint32")] == [b"code 1"] * 2
    assert compiler.code("int64") == b"code 2"
    assert compiler.code("uint32", arch="sm_80") == b"code 3"
    monkeypatch.setattr(cubin_cache, "MODULE_CODE", "other kernels")
    assert compiler.code("uint32") == b"code 4"
    (newest,) = [p for p in cubin_cache.module_folder().iterdir() if p.read_bytes().endswith(b"code 4")]
    newest.write_bytes(newest.read_bytes()[:-1])
    assert [compiler.code("uint32"), compiler.code("uint32")] == [b"code 5"] * 2


def test_another_compiler_compiles_again(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    """The versions of the packages are a part of the name."""
    assert any(version.startswith("numba ") for version in cubin_cache.compiler_versions())
    assert compiler.code("uint32") == b"code 1"
    monkeypatch.setattr(cubin_cache, "compiler_versions", lambda: ("numba 99",))
    assert compiler.code("uint32") == b"code 2"


def test_without_a_folder_it_is_compiled(compiler: Compiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that cannot be written is no error."""
    (tmp_path / "taken").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "taken"))
    assert [compiler.code("uint32"), compiler.code("uint32")] == [b"code 1", b"code 2"]


def test_the_code_of_a_module_is_that_of_what_was_imported() -> None:
    """Constants and instructions count, at any depth; where the text stands, and the order of a set, do not.

    The file may have been replaced since the module was imported: its text then says nothing of the kernels.
    """
    text = "def k(a):\n    def g(x): return x in {'b', 'c', 'd'}\n    return g(a) + 1.5\n"

    def digest(text: str, file: str = "m.py") -> str:
        return cubin_cache.code_digest(compile(text, file, "exec", dont_inherit=True))

    assert digest(text) == digest(f"# a comment\n\n{text}", "other.py")
    others = (("1.5", "2.5"), ("1.5", "-1.5"), ("+", "-"), ("'d'", "'e'"), ("x in", "x not in"), ("g(a)", "g(k)"))
    assert len({digest(text), *(digest(text.replace(*one)) for one in others)}) == 1 + len(others)
    code = f"from looptune.deploy.runtime import cubin_cache as c; print(c.code_digest(compile({text!r}, 'm', 'exec')))"
    for seed in ("1", "2"):
        run = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed},
                             capture_output=True, text=True, check=True)  # fmt: skip
        assert run.stdout.strip() == digest(text)


@pytest.mark.wide
@cuda
def test_a_new_process_of_a_module_compiles_nothing(tmp_path: Path) -> None:
    """The second process has the same code, with Numba's compiler taken away."""
    written(tmp_path, AXPY, None, "numba-cuda", default=True)
    code = """
import axpy_tuned as t, hashlib, sys
if {taken}:
    t.ptx = None
for kernel, signature in t.SIGNATURES.items():
    print(hashlib.sha256(t.cached_cubin(t.cubin, kernel, signature, "sm_90")).hexdigest())
"""
    said = [run_alone(tmp_path, code.format(taken=taken), XDG_CACHE_HOME=str(tmp_path / "c")) for taken in (0, 1)]
    assert said[0] == said[1] != ""
