"""Terms of the sizes that are not affine, each of which stands for one more size in isl.

    int rows = (h + 2 * pad - k) / stride + 1;            0 <= i < q + 1, and A[i * m + j]
    for (i = 0; i < rows; i++) A[i * m + j]      ==>      for a size q, of which nothing else is known

Nothing is lost by that in proofs: what holds for every value of q holds for that of the term. A term has the same name
in every model, so that models of a codelet before and after a transformation can be compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from looptune.ir.def_use import names_in
from looptune.ir.nodes import Binary, Cast, Const, Expr, Unary, Var
from looptune.ir.rewrite import walk
from looptune.ir.simplify import is_integer
from looptune.poly.affine import to_isl

_TERMS = frozenset({"/", "%", ">>", "<<", "&"})


@dataclass(slots=True)
class OpaqueTerms:
    """The terms of a codelet: ``found`` has the expression of each isl name.

    ``sizes`` are the names of which terms consist. New terms are found as long as it is ``open``.
    """

    sizes: Collection[str]
    found: dict[str, Expr] = field(default_factory=dict)
    open: bool = True

    def replaced(self, e: Expr, *, products: bool = True) -> Expr:
        """Return the expression with a variable for each term; ``products`` of two sizes are terms, too."""
        if to_isl(e) is not None:
            return e
        match e:
            case Binary(op, lhs, rhs):
                made = replace(e, lhs=self.replaced(lhs, products=products), rhs=self.replaced(rhs, products=products))
                may_be_term = op in _TERMS or (op == "*" and products)
                if may_be_term and is_integer(e.dtype) and to_isl(made) is None and self._is_size(e):
                    return self._variable(e)
                return made
            case Unary(_, arg) | Cast(_, arg):
                return replace(e, arg=self.replaced(arg, products=products))
        return e

    def _is_size(self, e: Expr) -> bool:
        return all(isinstance(n, Var | Const | Binary | Unary | Cast) for n in walk(e)) and names_in(e) <= {*self.sizes}

    def _variable(self, e: Expr) -> Expr:
        # What is the same text in other types is another term.
        known = f"q{hashlib.sha256(repr(e).encode()).hexdigest()[:16]}_"
        if self.open:
            self.found[known] = e
        return Var(known, e.dtype) if known in self.found else e
