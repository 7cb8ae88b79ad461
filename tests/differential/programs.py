"""What a random program is: a C file, the function in it, and the arrays and sizes it is called with."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from tests.differential.tree import Tree
from tests.differential.types import Type

Sizes = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Extent:
    """``size + plus``, or ``plus`` alone."""

    size: str
    plus: int

    def at(self, sizes: Sizes) -> int:
        return (sizes[self.size] if self.size else 0) + self.plus

    def __str__(self) -> str:
        if not self.size:
            return str(self.plus)
        return f"{self.size} + {self.plus}" if self.plus else self.size


@dataclass(frozen=True, slots=True)
class Variable:
    """A parameter or a global. ``extents``: none for a scalar; ``declared``: how a parameter list has it. ``tame``: its
    elements stay small, else they are anything that their type holds. ``apart``: a global."""

    name: str
    type: Type
    declared: str
    extents: tuple[Extent, ...] = ()
    tame: bool = True
    apart: bool = False
    read_only: bool = False

    def shape(self, sizes: Sizes) -> tuple[int, ...]:
        return tuple(e.at(sizes) for e in self.extents)


@dataclass(frozen=True, slots=True)
class Program:
    """``tree`` is the whole file. ``variables`` are the function's parameters in their order, then globals; ``sizes``
    is a list of calls, each with the values of the scalars. ``jumps``: an inexact value may decide what happens."""

    name: str
    tree: Tree
    variables: tuple[Variable, ...]
    sizes: tuple[Sizes, ...]
    seed: int
    jumps: bool = False

    @property
    def text(self) -> str:
        return str(self.tree)

    def arguments(self, number: int) -> dict[str, np.ndarray | int | float]:
        """The values of call ``number`` by name, arrays filled at random."""
        sizes = self.sizes[number]
        return {
            v.name: _filled(v, v.shape(sizes), self.seed + number) if v.extents else sizes[v.name]
            for v in self.variables
        }


def _filled(v: Variable, shape: tuple[int, ...], seed: int) -> np.ndarray:
    rng = np.random.default_rng((seed, crc32(v.name.encode())))
    if v.type.dtype == "bool":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if v.type.is_float:
        return (rng.integers(-16, 17, shape) / (1 if v.tame else 2)).astype(v.type.dtype)
    if v.tame:
        return rng.integers(-9 if v.type.signed else 0, 10, shape).astype(v.type.dtype)
    edges = [v.type.lo, v.type.lo + 1, v.type.hi, v.type.hi - 1, v.type.hi // 2 + 1, 0, 1, 2, 3, 100]
    edges += [-1, -2, -7] if v.type.signed else [7, 8, 9]
    picks = random.Random(seed * 31 + crc32(v.name.encode()))
    flat = [picks.choice(edges) if picks.random() < 0.6 else picks.randint(v.type.lo, v.type.hi)
            for _ in range(int(np.prod(shape)))]  # fmt: skip
    return np.array(flat, v.type.dtype).reshape(shape)
