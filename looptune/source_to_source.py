"""C in, C or kernel source out: what ``looptune transform`` and ``looptune emit`` print."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from looptune import targets
from looptune.api import CACHE, scheduled
from looptune.escape import comment_lines
from looptune.floats import USUAL, Floats
from looptune.frontend import Unit, load
from looptune.mapping import plan
from looptune.parts import written_back
from looptune.schedule import Scheduled

Warn = Callable[[str], object]


def _silent(message: str) -> None:
    """Leave the warning unsaid."""


def transform(
    file: Path,
    lines: Sequence[str] = (),
    *,
    kernel: str | None = None,
    defines: Mapping[str, str | None] | None = None,
    include_dirs: Sequence[Path] = (),
    dtype: str | None = None,
    floats: Floats = USUAL,
    warn: Warn = _silent,
    note: Warn = _silent,
) -> str:
    """The whole C file with each codelet's body rewritten; what was given with -D stands at its top. ``note`` is told
    which sums of floats the directives add up in another order."""
    unit = _loaded(file, kernel, defines, include_dirs, dtype, warn)
    done = scheduled(unit, lines, floats)
    for turned in done.sums:
        note(f"{turned.span}: the directives add up {turned.called} in another order, so that it rounds otherwise; "
             "--strict-float refuses them")  # fmt: skip
    bodies = written_back(unit, done.codelet)
    macros = [name for name in unit.defines if name not in unit.given]
    text, at = _head(unit, lines, done), 0
    for part, body in sorted(bodies, key=lambda item: item[0].body):
        start, end = part.body
        # a scop's own block too: what its statements need is declared in it, whatever the function around it declares
        whole = f"{{\n{body}\n}}" + ("" if unit.text[start] == "{" else "\n")
        text += _undefined(unit.text[at:start], macros) + whole
        at = end
    return text + _undefined(unit.text[at:], macros)


def _undefined(text: str, macros: Sequence[str]) -> str:
    """Without the text's own definitions of ``macros``, which -D replaces."""
    for name in macros:
        text = re.sub(rf"^[ \t]*#[ \t]*define[ \t]+{name}\b(?!\()(?:\\\n|[^\n])*\n", "", text, flags=re.MULTILINE)
    return text


def _loaded(
    file: Path,
    kernel: str | None,
    defines: Mapping[str, str | None] | None,
    include_dirs: Sequence[Path],
    dtype: str | None,
    warn: Warn,
) -> Unit:
    given = defines if defines is not None else {}
    unit = load(file, kernel=kernel, defines=given, include_dirs=include_dirs, dtype=dtype)
    for message in unit.warnings:
        warn(message)
    return unit


def _head(unit: Unit, lines: Sequence[str], done: Scheduled) -> str:
    whole = [
        *"\n".join(lines).splitlines(),
        *(f"asserted by the user, not proved: {line}" for line in done.asserted),
        *(f"added up in another order than in the original: {sum_}" for sum_ in done.sums),
    ]
    said = "".join(f"   {line}\n" for line in comment_lines(whole))
    macros = "".join(f"#define {n} {v}\n" for n, v in unit.defines.items() if n not in unit.given)
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
    floats: Floats = USUAL,
    warn: Warn = _silent,
) -> str:
    """The Python module of the kernels, their file of C, or their PTX. TargetError where the target cannot give it."""
    unit = _loaded(file, kernel, defines, include_dirs, dtype, warn)
    done = scheduled(unit, lines, floats)
    planned = plan(done.codelet, "\n".join(lines), done.asserted, blocks=targets.bakes(target, CACHE))
    if ptx:
        return targets.ptx(target, planned, arch, floats)
    return targets.emit(target, planned, CACHE, arch, floats)
