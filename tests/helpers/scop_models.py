"""Models of nests that are written in Python's notation, and what the tests ask of them."""

from __future__ import annotations

from looptune.poly.legality import parallel
from looptune.poly.scop import SchedulePiece, Scop, build
from tests.helpers.python_nests import nest

WAVE = "for i in range(1, n):\n    for j in range(0, n - 1):\n        A[i, j] = A[i - 1, j + 1]"


def model_of(code: str, arrays: str = "", locals_: str = "", **dtypes: str) -> Scop:
    """``arrays``: "A n m, B n"."""
    shapes = {words[0]: tuple(words[1:]) for words in (a.split() for a in arrays.split(",")) if words}
    return build(nest(code, shapes, dict.fromkeys(locals_.split(), ()), dtypes))


def order(**times: str) -> dict[str, tuple[SchedulePiece, ...]]:
    return {s: (SchedulePiece(tuple(t.split(", "))),) for s, t in times.items()}


def verdict(model: Scop, depth: int, *statements: str) -> str:
    return parallel(model, statements if statements else list(model.statements), depth).kind
