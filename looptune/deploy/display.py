"""How a compiled kernel shows itself: one line as text, and in a notebook its directives, its speed-up and its C."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from html import escape
from typing import Any

from looptune.ir import c_printer
from looptune.ir.nodes import Array, Codelet
from looptune.ir.simplify import is_integer
from looptune.runtime.timing import ratio_text


def signature(codelet: Codelet) -> inspect.Signature:
    """Return the parameters of the C function as Python's: numbers and arrays, all by position or by name."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    found = []
    for p in codelet.params:
        annotation: Any = f"{p.dtype} array" if isinstance(p, Array) else int if is_integer(p.dtype) else float
        found.append(inspect.Parameter(p.name, kind, annotation=annotation))
    return inspect.Signature(found, return_annotation=None)


def one_line(codelet: Codelet, target: str, directives: str) -> str:
    """Return ``<kernel gemm(ni, nj, nk, alpha, beta, C, A, B) for numba-cpu, 2 directives>``."""
    lines = len(directives.splitlines())
    how = f"{lines} directive{'s' if lines > 1 else ''}" if lines else "no directives"
    return f"<kernel {codelet.name}({', '.join(p.name for p in codelet.params)}) for {target}, {how}>"


def speedup(configuration: Mapping[str, Any] | None) -> str:
    """Return what was measured of a row of the database, over the default; "" where that is not known.

    The screening alone, or finals that were disturbed, allow no speed-up.
    """
    if configuration is None or not configuration.get("default_us") or not configuration.get("time_us"):
        return ""
    own, default = configuration["time_us"], configuration["default_us"]
    over = f", {ratio_text(default / own)} over the default" if configuration.get("final") else ""
    return f"{own:.4g} us on {configuration['device']}{over}"


def html(codelet: Codelet, target: str, directives: str, configuration: Mapping[str, Any] | None) -> str:
    """Return a heading, the directives, the speed-up if it was measured, and the C that the kernel computes."""
    measured = speedup(configuration)
    parts = [
        f"<b>{escape(codelet.name)}</b> for {escape(target)}" + (f", {escape(measured)}" if measured else ""),
        f"<pre>{escape(directives) if directives else 'no directives'}</pre>",
        f"<details><summary>C</summary><pre>{escape(c_printer.function(codelet))}</pre></details>",
    ]
    return "\n".join(parts)
