"""A codelet's tree under other names, its directives included.

names    x -> x_2        flat    A[i][j] -> A[i * m + j]        held    a scalar -> the array element it is in
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from looptune.frontend.unit import CHOICE
from looptune.ir.nodes import Arg, Cast, Directive, Expr, Load, Loop, Node, Stmt, Var, While
from looptune.ir.rewrite import rewrite
from looptune.ir.simplify import add, mul


def rename_variables(e: Expr, rename: Mapping[str, str]) -> Expr:
    """Return the expression with its variables renamed."""

    def rule(n: Node) -> Node | None:
        return replace(n, name=rename[n.name]) if isinstance(n, Var) and n.name in rename else None

    return rewrite(rule, e)


@dataclass(frozen=True, slots=True)
class Renaming:
    """New names of variables.

    ``flat`` has, by new name, the inner extents of the arrays that get a single index; ``elements`` maps a scalar to
    the array element that replaces it.
    """

    names: Mapping[str, str]
    flat: Mapping[str, tuple[Expr, ...]]
    elements: Mapping[str, Load]

    def of(self, stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return rewrite(self.rule, stmts)

    def rule(self, n: Node) -> Node | None:
        match n:
            case Var(name, dtype) if name in self.elements:
                return as_dtype(replace(self.elements[name], span=n.span), dtype)
            case Var(name) if name in self.names:
                return replace(n, name=self.names[name])
            case Load(array, index) if array in self.names:
                extents = self.flat.get(array)
                return replace(n, array=self.names[array], index=index if extents is None else _linear(index, extents))
            case Loop() | While() if n.directives:
                return replace(n, directives=tuple(self.directive(d) for d in n.directives))
        return None

    def directive(self, d: Directive) -> Directive:
        if d.name == CHOICE:
            text = re.sub(r"[A-Za-z_]\w*", lambda word: self.names.get(word[0], word[0]), d.args[0].key)
            return replace(d, args=(Arg(text, span=d.args[0].span),))
        return replace(d, args=tuple(self.arg(a) for a in d.args))

    def arg(self, a: Arg) -> Arg:
        values = tuple(self.arg(v) if isinstance(v, Arg) else self.names.get(v, v) if isinstance(v, str) else v
                       for v in a.values)  # fmt: skip
        return replace(a, key=self.names.get(a.key, a.key), values=values)


def _linear(index: tuple[Expr, ...], extents: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """``(i * extent + j) * extent + k``, in a type that holds every part."""
    dtype = "int32" if all(e.dtype == "int32" for e in (*index, *extents)) else "int64"
    total = as_dtype(index[0], dtype)
    for i, extent in zip(index[1:], extents, strict=True):
        total = add(mul(total, as_dtype(extent, dtype)), as_dtype(i, dtype))
    return (total,)


def as_dtype(e: Expr, dtype: str) -> Expr:
    """Return the expression with a cast to the type, if it has another."""
    return e if e.dtype == dtype else Cast(dtype, e)
