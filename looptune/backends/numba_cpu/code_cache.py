"""Machine code that Numba made, stored in files: one for each function, signature and machine.

Numba's own cache files of a function share an index, which two processes that compile at the same time can corrupt:
both take the next number, and the entry of one signature is then the code of the other. Here the name of a file is a
digest of all that its code depends on; the file contains this too, and is published as a whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba import njit
from numba.core import config as numba_config
from numba.core import typeinfer
from numba.core.caching import FunctionCache
from numba.core.serialize import dumps

from looptune.core.cache_file import publish_file, read_published

DIGEST = "__digest__"
"""The attribute of a module that has a digest of its source; the time and the size of its file do not count then."""


def compiler_settings() -> tuple[str, ...]:
    """Return the versions of Numba and LLVM, and the variables of the environment that change the code they make.

    Code that another process compiled under ``NUMBA_OPT=0`` may take 20 times as long, and nobody would notice.
    """
    numba_config.reload_config()  # as the compiler does at its first use
    names = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "DISABLE_INTEL_SVML")
    settings = (f"{name}={getattr(numba_config, name, None)!r}" for name in names)
    return (numba.__version__, llvmlite.__version__, *settings)


class CodeFiles:
    """The interface of a Numba cache; ``key``: signature, machine, and what the function is compiled from."""

    def __init__(self, folder: str, base: str, stamp: object) -> None:
        self.folder, self.base, self.stamp = Path(folder), base, stamp

    def _path(self, key: tuple[Any, ...]) -> tuple[Path, str]:
        facts = repr((compiler_settings(), self.stamp, key))
        return self.folder / f"{self.base}.{hashlib.sha256(facts.encode()).hexdigest()[:32]}.code", facts

    def save(self, key: tuple[Any, ...], data: Any) -> None:
        """Store compiled code; if it cannot be written, it is compiled again next time."""
        path, facts = self._path(key)
        with contextlib.suppress(OSError):
            publish_file(path, dumps((facts, data)))

    def load(self, key: tuple[Any, ...]) -> Any:
        path, facts = self._path(key)
        found = read_published(path)
        if found is None:
            return None
        of, data = pickle.loads(found)
        return data if of == facts else None

    def flush(self) -> None:
        """Do nothing: no data wait to be written."""


class _DiskCache(FunctionCache):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]  # numba's functions have no types
        # Two processes may write the same module at once, at different times.
        stamp = function.__globals__.get(DIGEST) or self._impl.locator.get_source_stamp()
        self._cache_file: Any = CodeFiles(self._cache_path, self._impl.filename_base, stamp)

    def save_overload(self, sig: Any, data: Any) -> None:
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]  # as above


def kept(signature: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return the decorator ``njit(signature, **options)`` that loads the code from a file if it was compiled before."""

    def decorate(function: Callable[..., Any]) -> Any:
        made = njit(**options)(function)
        # Numba says that no folder can be written.
        with contextlib.suppress(RuntimeError, OSError):
            made._cache = _DiskCache(function)
        with typeinfer.register_dispatcher(made):
            made.compile(signature)
        made.disable_compile()
        return made

    return decorate
