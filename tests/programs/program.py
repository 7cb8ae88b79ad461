"""A C function as the tests run it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Program:
    """``tolerance`` is for values that pass through a sum or a math function; zero asks for every bit."""

    name: str
    text: str
    sizes: dict[str, int | float] = field(default_factory=dict)
    tolerance: float = 0.0
