"""C in, C or kernel source out: what ``looptune transform`` and ``looptune emit`` print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from looptune import pretty, targets
from looptune.api import CACHE, scheduled
from looptune.frontend import Unit, load
from looptune.mapping import plan


def transform(
    file: Path,
    lines: Sequence[str] = (),
    *,
    kernel: str | None = None,
    defines: Mapping[str, str | None] | None = None,
    include_dirs: Sequence[Path] = (),
    dtype: str | None = None,
) -> str:
    """The whole C file with the codelet's body rewritten; what was given with -D stands at its top."""
    given = defines if defines is not None else {}
    unit = load(file, kernel=kernel, defines=given, include_dirs=include_dirs, dtype=dtype)
    codelet = scheduled(unit, lines).codelet
    start, end = unit.body
    body = pretty.body(codelet, pragmas=True)
    whole = f"{{\n{body}\n}}" if unit.text[start] == "{" else f"{body}\n"
    return _head(unit, lines) + unit.text[:start] + whole + unit.text[end:]


def _head(unit: Unit, lines: Sequence[str]) -> str:
    said = "".join(f"   {line}\n" for line in "\n".join(lines).splitlines())
    macros = "".join(f"#define {n} {'' if v is None else v}".rstrip() + "\n" for n, v in unit.defines.items())
    return (f"/* looptune transform\n{said}*/\n" if said else "") + macros


def emit(
    file: Path,
    lines: Sequence[str] = (),
    *,
    target: str = "numba-cuda",
    arch: str = targets.DEFAULT_ARCH,
    ptx: bool = False,
    kernel: str | None = None,
    defines: Mapping[str, str | None] | None = None,
    include_dirs: Sequence[Path] = (),
    dtype: str | None = None,
) -> str:
    """The Python module of the kernels, or their PTX. TargetError where the target cannot give it."""
    given = defines if defines is not None else {}
    unit = load(file, kernel=kernel, defines=given, include_dirs=include_dirs, dtype=dtype)
    planned = plan(scheduled(unit, lines).codelet, "\n".join(lines))
    return targets.ptx(planned, arch) if ptx else targets.backend(target, CACHE, arch).emit(planned)
