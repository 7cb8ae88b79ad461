"""Machine code of a module for a GPU is compiled once, whichever process asks for it first; no GPU is needed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from looptune.deploy.runtime import cubin_cache
from tests.helpers.built_modules import AXPY, cuda, run_alone, written


class Compiler:
    """A compiler that counts, and a module with one kernel in a file."""

    def __init__(self, path: Path) -> None:
        self.made: list[tuple[str, ...]] = []
        self.path = path
        path.write_text("kernels")
        module = ModuleType("module_of_kernels")
        module.__file__ = str(path)
        sys.modules["module_of_kernels"] = module
        self.kernel = SimpleNamespace(__name__="k", py_func=SimpleNamespace(__module__="module_of_kernels"))

    def make(self, kernel: Any, signature: Sequence[str], arch: str) -> bytes:
        self.made.append((*signature, arch))
        return f"code {len(self.made)}".encode()

    def code(self, *signature: str, arch: str = "sm_90") -> bytes:
        # Another process has looked at nothing.
        cubin_cache.module_stamp.cache_clear()
        return cubin_cache.cached_cubin(self.make, self.kernel, signature, arch)


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compiler:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return Compiler(tmp_path / "m.py")


def test_a_kernel_is_compiled_once(compiler: Compiler) -> None:
    """For each text of the module, type, architecture and version of a compiler; what is damaged is made again."""
    assert [compiler.code("uint32"), compiler.code("uint32")] == [b"code 1"] * 2
    assert compiler.code("int64") == b"code 2"
    assert compiler.code("uint32", arch="sm_80") == b"code 3"
    compiler.path.write_text("other kernels")
    assert compiler.code("uint32") == b"code 4"
    (newest,) = [p for p in cubin_cache.cubin_folder().iterdir() if p.read_bytes().endswith(b"code 4")]
    newest.write_bytes(newest.read_bytes()[:-1])
    assert [compiler.code("uint32"), compiler.code("uint32")] == [b"code 5"] * 2


def test_another_compiler_compiles_again(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    """The versions of the packages are a part of the name."""
    assert any(version.startswith("numba ") for version in cubin_cache.compiler_versions())
    assert compiler.code("uint32") == b"code 1"
    monkeypatch.setattr(cubin_cache, "compiler_versions", lambda: ("numba 99",))
    assert compiler.code("uint32") == b"code 2"


def test_without_a_file_or_a_folder_it_is_compiled(
    compiler: Compiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module that was typed in has no file; a cache that cannot be written is no error."""
    (tmp_path / "taken").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "taken"))
    assert [compiler.code("uint32"), compiler.code("uint32")] == [b"code 1", b"code 2"]
    monkeypatch.delattr(sys.modules["module_of_kernels"], "__file__")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert [compiler.code("uint32"), compiler.code("uint32")] == [b"code 3", b"code 4"]


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
