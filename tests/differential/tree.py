"""The trees that random programs are: text in pieces that can be left out, so that a failing one shrinks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

Path = tuple[int, ...]
"""The position of a node: which part at each level."""


@dataclass(frozen=True, slots=True)
class Tree:
    """Text and subtrees in order. ``kind``: "statement", "loop", "expression", or "" for what stays."""

    parts: tuple[str | Tree, ...]
    kind: str = ""

    def __str__(self) -> str:
        return "".join(map(str, self.parts))


def expression(*parts: str | Tree) -> Tree:
    return Tree(parts, "expression")


def statement(*parts: str | Tree) -> Tree:
    return Tree(parts, "statement")


def nodes(tree: Tree, at: Path = ()) -> Iterator[tuple[Path, Tree]]:
    """Every node with its position, outer ones first."""
    yield at, tree
    for k, part in enumerate(tree.parts):
        if isinstance(part, Tree):
            yield from nodes(part, (*at, k))


def replaced(tree: Tree, at: Path, new: Tree) -> Tree:
    """The tree with ``new`` in the place of the node at ``at``."""
    if not at:
        return new
    k, *rest = at
    part = tree.parts[k]
    assert isinstance(part, Tree), "a position leads to a node"
    return replace(tree, parts=(*tree.parts[:k], replaced(part, tuple(rest), new), *tree.parts[k + 1 :]))


def simpler(tree: Tree) -> Iterator[Tree]:
    """The tree with one statement less, or with one expression replaced by a part of it or by a constant."""
    found = list(nodes(tree))
    for at, node in found:
        if node.kind in ("statement", "loop"):
            yield replaced(tree, at, Tree((";",)))
    for at, node in found:
        if node.kind == "loop":
            for part in node.parts:
                if isinstance(part, Tree) and part.kind == "body":
                    yield replaced(tree, at, part)
        elif node.kind == "expression":
            for part in node.parts:
                if isinstance(part, Tree) and part.kind == "expression":
                    yield replaced(tree, at, part)
            yield from (
                replaced(tree, at, Tree((c,))) for c in ("1", "0", "3") if str(node) != c and len(str(node)) > 1
            )
