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
from looptune.ir.nodes import Array

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
    if part.bare:
        raise UnsupportedError("a scop outside of every function is not replaced: write a function around it", where)
    if part.has_swaps:
        raise UnsupportedError("the loops swap pointers, which the call would not: swap them after the loops", where)
    for name, dimensions in part.rows.items():
        if dimensions != (1,):
            raise UnsupportedError(f"{name} has pointers to pointers to rows, which are not copied to a GPU: "
                                   "pass one array", where)  # fmt: skip
    for p in unit.codelet.params:
        if p.name in part.row_lengths:
            raise UnsupportedError(f"the text has no variable for the length of the rows of {p.name}", where)
        text = part.texts.get(p.name)
        if text is not None and text.element and (text.rank != 1 or text.operator):
            raise UnsupportedError(f"{text.name} is an array of structs that is not copied to a GPU: pass one array "
                                   "for each field", where)  # fmt: skip
    return {p.name: _argument(unit, p.name) for p in unit.codelet.params}


def _argument(unit: Unit, name: str) -> str:
    (part,) = unit.parts
    if name == part.result:
        return f"&{RESULT}"
    if name in part.texts:
        text = part.texts[name]
        # Of an array of structs also the size of one, and where the first one is.
        first = f"{text.name}[0]"
        return f"&{first}{text.element}, sizeof {first}, {text.name}" if text.element else text.passed
    if name in part.element_names:
        return f"&{part.element_names[name]}"
    return part.names.get(name, name)


def strides(unit: Unit) -> Mapping[str, str]:
    """Return the C text of the bytes between two elements, for the arrays that are fields of an array of structs."""
    texts = unit.parts[0].texts
    arrays = [p.name for p in unit.codelet.params if isinstance(p, Array)]
    return {name: f"sizeof {texts[name].name}[0]" for name in arrays if name in texts and texts[name].element}
