"""The arguments with which the text of a program calls a generated codelet, one for each of its parameters.

C[i][j] += alpha * A[i][k]      gemm(ni, …, C, A, B)        parameters, variables at file scope, local variables
*sum += x[i], s += x[i]         dot(n, x, sum), (n, x, &s)  scalars that the codelet leaves in an array
g->data[i]                      f(g->n, g->data)            fields of structs
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from looptune.core.errors import UnsupportedError
from looptune.frontend.other_languages import is_cxx

if TYPE_CHECKING:
    from looptune.frontend import Unit

RESULT = "looptune_result"
"""The variable of the text for what a function returns."""


def call_arguments(unit: Unit) -> Mapping[str, str]:
    """Return the C text of the argument for each parameter of the codelet, by its name.

    Raises UnsupportedError if the text has no expression for one of them.
    """
    (part,) = unit.parts
    where = unit.codelet.span
    if is_cxx(unit.path):
        raise UnsupportedError("a codelet in a file of C++ is not replaced: move it to a file of C", where)
    if part.path != unit.path:
        raise UnsupportedError(f"a codelet in a header is not replaced: move {part.function} to the source file", where)
    if part.bare:
        raise UnsupportedError("a scop outside of every function is not replaced: write a function around it", where)
    if part.has_swaps:
        raise UnsupportedError("the loops swap pointers, which the call would not: swap them after the loops", where)
    if part.rows:
        raise UnsupportedError(f"{min(part.rows)} is an array of pointers, which is not copied to a GPU: "
                               "pass one array", where)  # fmt: skip
    for p in unit.codelet.params:
        if p.name in part.row_lengths:
            raise UnsupportedError(f"the text has no variable for the length of the rows of {p.name}", where)
        text = part.texts.get(p.name)
        if text is not None and text.element:
            raise UnsupportedError(f"{text.name} is an array of structs with fields of several types, which is not "
                                   "copied to a GPU: pass one array for each field", where)  # fmt: skip
    return {p.name: _argument(unit, p.name) for p in unit.codelet.params}


def _argument(unit: Unit, name: str) -> str:
    (part,) = unit.parts
    if name == part.result:
        return f"&{RESULT}"
    if name in part.texts:
        return part.texts[name].passed
    if name in part.element_names:
        return f"&{part.element_names[name]}"
    return part.names.get(name, name)
