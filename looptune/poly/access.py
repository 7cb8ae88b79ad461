"""The accesses of each statement: one ``Access`` per array element or scalar; a scalar is an array of no dimension.

    A[i][j] = A[i-1][j] + s   ->   write A (i, j), read A (i - 1, j), read s ()
    A[idx[i]] = ...           ->   MAY write A (anything), read idx (i)

In ``x = x op e`` the two accesses of x are marked as a reduction, which may be reordered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from looptune.core.source import Span
from looptune.ir.c_printer import expression_text
from looptune.ir.def_use import written_names
from looptune.ir.nodes import Codelet, Expr, Load, Scalar, Var
from looptune.ir.rewrite import walk
from looptune.poly.domain import IterationDomains, Statement, Unanalysable
from looptune.poly.reduction import Accumulation, accumulation


@dataclass(frozen=True, slots=True)
class Access:
    """One access of a statement.

    ``index`` is isl text for each dimension, None where it may be anything. ``must``: it accesses this element in every
    instance. ``reduces`` is the op of ``x = x op e`` for the two accesses of x in it, ``exact`` where any order of them
    gives the same value; ``subscripts`` are those of the code, with locals that stand for a value replaced by it.
    ``distinct``: another instance of the statement writes another element.
    """

    statement: str
    array: str
    index: tuple[str | None, ...]
    write: bool
    must: bool
    span: Span
    text: str
    unknown: Unanalysable | None
    reduces: str | None = None
    subscripts: tuple[Expr, ...] = ()
    exact: bool = False
    distinct: bool = False

    def commutes(self, reassociate: bool) -> bool:
        """Tell whether the access belongs to an accumulation that may be reordered."""
        return self.reduces is not None and (reassociate or self.exact)


def memory(codelet: Codelet) -> Callable[[str], bool]:
    """Return a predicate that tells which scalars are storage: the locals, and the parameters that are assigned.

    The other scalars are constant during a run.
    """
    assigned = written_names(codelet.body)
    names = {v.name for v in codelet.locals} | {
        p.name for p in codelet.params if isinstance(p, Scalar) and p.name in assigned
    }
    return names.__contains__


def accesses(statement: Statement, nest: IterationDomains, storage: Callable[[str], bool]) -> tuple[Access, ...]:
    """Return the accesses of the statement, the write first, then the reads.

    The evaluation of a condition writes nothing.
    """
    target, value, conditions = statement.assign.target, statement.assign.value, statement.conditions
    into = accumulation(statement.assign, statement.guard)
    own = [n for n in _named((value, conditions[-1:]), storage) if n == target and into is not None][:1]
    if into is not None and into.extra_conditions is not None:
        conditions = (*conditions[:-1], *into.extra_conditions)
    inside = target.index if isinstance(target, Load) else ()
    others = [n for n in _named(value, storage) if n != target or into is None]
    write = _access(target, statement, nest, write=True, into=into)
    reads = [_access(n, statement, nest, write=False, into=into) for n in own]
    reads += [_access(n, statement, nest, write=False) for n in (*others, *_named((*inside, *conditions), storage))]
    return tuple(reads) if statement.is_condition else (write, *reads)


def distinct_accesses(mine: tuple[Access, ...]) -> tuple[Access, ...]:
    """Return the accesses without repetitions, in the order in which each first occurs."""
    distinct = {(a.write, a.array, a.index, a.reduces): a for a in reversed(mine)}
    return tuple(reversed(distinct.values()))


def _named(nodes: object, storage: Callable[[str], bool]) -> Iterator[Load | Var]:
    for node in walk(nodes):
        match node:
            case Load():
                yield node
            case Var(name) if storage(name):
                yield node


def _access(
    node: Load | Var, statement: Statement, nest: IterationDomains, *, write: bool, into: Accumulation | None = None
) -> Access:
    array, subscripts = (node.array, node.index) if isinstance(node, Load) else (node.name, ())
    index = tuple(nest.affine(e, statement.dims, products=False) for e in subscripts)
    unknown = statement.unknown
    for e, affine in zip(subscripts, index, strict=True):
        if affine is None:
            unknown = Unanalysable(
                f"subscript {expression_text(e)} of {array}",
                e.span if e.span.line else node.span,
                frozenset({statement.name}),
            )
    certain = statement.exact and None not in index
    span = node.span if node.span.line else statement.assign.span
    values = tuple(map(nest.named_terms, subscripts))
    op, exact = (None, False) if into is None else (into.op, into.exact)
    return Access(statement.name, array, index, write, certain, span, source_text(node), unknown, op, values, exact)


def source_text(node: Load | Var) -> str:
    """Return the access as the user wrote it, or as C of the tree if the text has something else, such as a macro.

    >>> from dataclasses import replace
    >>> line = Span("f.c", 1, 7, 8, "  x = A[ n-1-i ];")
    >>> source_text(Load("A", (Var("i"),), "float32", span=replace(line, width=10)))
    'A[ n-1-i ]'
    >>> source_text(Load("A", (Var("i"),), "float32", span=line))
    'A[i]'
    """
    start = node.span.col - 1
    text = node.span.text[start : start + node.span.width]
    match node:
        case Load(array, index) if text.startswith(array) and _brackets(text[len(array) :]) == len(index):
            return text
    return expression_text(node)


def _brackets(text: str) -> int:
    """How many pairs of brackets side by side ``text`` is; 0 where it is anything else."""
    depth = pairs = 0
    for ch in text:
        pairs += depth == 0 and ch == "["
        depth += (ch == "[") - (ch == "]")
        if depth < 0 or (depth == 0 and ch not in "] \t"):
            return 0
    return 0 if depth else pairs
