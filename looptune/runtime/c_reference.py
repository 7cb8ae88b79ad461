"""The codelet's own C text, compiled by the C compiler and run on given arrays in a process of its own.

excerpt + harness ─▶ cc ─▶ program in the cache, with its checksum     once for a text, a compiler and its flags
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from looptune.core import cache_folder
from looptune.frontend.math_functions import spelled_names
from looptune.frontend.reference_text import ENTRY, Excerpt
from looptune.runtime import c_compiler
from looptune.runtime.c_program import (
    CPU_S,
    MAIN,
    SLOTS,
    Arrays,
    MappedArrays,
    NoReference,
    ProgramRun,
    Text,
    call,
    compile_program,
    run_program,
)
from looptune.runtime.cpu_name import cpu_name

__all__ = ["CReference", "NoReference", "ProgramRun"]


@dataclass(frozen=True, slots=True)
class CReference:
    """The C text of a codelet as a program.

    ``contracts``: a product and a sum may round once; ``widened``: double replaces float; ``openmp``: the pragmas of
    OpenMP count. ``linked``, ``strict_aliasing`` and ``reorders`` are those of ``Text``.
    """

    excerpt: Excerpt
    contracts: bool = False
    widened: bool = False
    openmp: bool = False
    linked: str = ""
    strict_aliasing: bool = False
    reorders: bool = False

    @property
    def key(self) -> str:
        """Return a hash of everything that determines the program and its results on this machine."""
        facts = (
            MAIN,
            sorted(self.excerpt.files.items()),
            self.text.flags,
            self.linked,
            self._types(),
            c_compiler.version(),
            cpu_name(),
        )
        return hashlib.sha256(repr(facts).encode()).hexdigest()[:20]

    @property
    def description(self) -> str:
        """Return the file and the compiler: ``gemm.c compiled by cc 12.2.0``."""
        return f"{Path(self.excerpt.main).name} compiled by {c_compiler.version()}"

    def in_double(self) -> CReference:
        """Return the same reference with double for float, which shows its rounding errors."""
        scalars = tuple(replace(p, dtype=_wide(p.dtype)) for p in self.excerpt.scalars)
        return CReference(replace(self.excerpt, scalars=scalars), self.contracts, widened=True)

    def otherwise_contracted(self) -> CReference:
        """Return the same reference with products contracted where they are not, or the reverse."""
        return replace(self, contracts=not self.contracts)

    def reordered(self) -> CReference:
        """Return the same reference with sums in another order, which shows what that changes."""
        return replace(self, reorders=True)

    def program(self, cache: Path) -> Path:
        """Return the compiled program, from the cache if it is intact there.

        Raises NoReference if it cannot be compiled.
        """
        path = cache / f"reference-{self.key}"
        if not _is_whole(path):
            cache.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=cache_folder.process_prefix()) as folder:
                _keep(compile_program(self.text, Path(folder)), path)
        return path

    def run(
        self, cache: Path, arrays: Arrays, scalars: Mapping[str, int | float], wanted: Sequence[str],
        cpu_s: float = CPU_S,
    ) -> ProgramRun:  # fmt: skip
        """Run the program once on copies of ``arrays``; return the contents of those ``wanted``, and of all it changed.

        Raises NoReference if the program cannot be compiled, crashes, or writes outside its arrays, TooLong if it takes
        more than ``cpu_s`` seconds of CPU time.
        """
        return run_program(self.program(cache), self.text, arrays, scalars, wanted, cpu_s)

    def time_runs(
        self, cache: Path, arrays: Arrays, scalars: Mapping[str, int | float], written: Sequence[str], runs: int
    ) -> tuple[float, ...]:
        """Return the microseconds of each of ``runs`` runs, at most SLOTS, each on the given contents of the arrays."""
        with MappedArrays.of(self.text, arrays, scalars, written, min(runs, SLOTS)) as memory:
            call(self.program(cache), memory)
            return memory.times_us()

    @property
    def text(self) -> Text:
        """Return the text to compile; the files have the same folders relative to each other as in the excerpt."""
        e = self.excerpt
        beside = dict.fromkeys(str(Path(path).resolve().parent) for path in e.files)
        return Text(
            tuple((_mirrored(path), contents) for path, contents in e.files.items()), ENTRY,
            tuple((p.name, p.dtype) for p in e.scalars), tuple(p.name for p in e.arrays), tuple(e.macros.items()),
            tuple((_mirrored(folder), folder) for folder in e.folders), tuple(beside), self._types(),
            self.contracts, e.float_literals, self.openmp, self.linked, self.strict_aliasing, self.reorders,
        )  # fmt: skip

    def portable(self) -> Text:
        """Return the reference without paths of this machine: only the files that were read can be found."""
        text = self.text
        places = [*(path for path, _ in text.files), *(below for below, _ in text.folders)]
        root = os.path.commonpath([str(Path(path).parent) for path, _ in text.files] + [b for b, _ in text.folders])
        short = {path: os.path.relpath(path, root) for path in places}
        files = tuple((short[path], contents) for path, contents in text.files)
        return text._replace(files=files, folders=tuple((short[b], "") for b, _ in text.folders), quoted=())

    def _types(self) -> tuple[str, ...]:
        """Lines before the text, where types are replaced: what it includes of the system keeps its own."""
        dtype = "float64" if self.widened else self.excerpt.dtype
        if dtype is None:
            return ()
        old, new = ("double", "float") if dtype == "float32" else ("float", "double")
        names = [f"#define {name}f {name}" for name in spelled_names()] if self.widened else []
        return (*(f"#include <{name}>" for name in self.excerpt.headers), f"#define {old} {new}", *names)


def _mirrored(path: str) -> str:
    real = Path(path).resolve()
    return str(real.relative_to(real.anchor))


def _wide(dtype: str) -> str:
    return "float64" if dtype == "float32" else dtype


def _is_whole(path: Path) -> bool:
    """Tell whether the program is there with the contents that it was kept with."""
    try:
        return path.with_suffix(".sha256").read_text() == hashlib.sha256(path.read_bytes()).hexdigest()
    except (OSError, UnicodeDecodeError):
        return False


def _keep(made: Path, path: Path) -> None:
    """Store the program and its checksum, each completely or not at all."""
    contents = made.read_bytes()
    for target, data, mode in (
        (path, contents, 0o700),
        (path.with_suffix(".sha256"), hashlib.sha256(contents).hexdigest().encode(), 0o600),
    ):
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.stem, suffix=".part", delete=False) as part:
            part.write(data)
            os.chmod(part.name, mode)
        Path(part.name).replace(target)
