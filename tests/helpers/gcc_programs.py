"""The programs of a file that are compared with gcc, one after the other.

    // rows  sizes: n=5 m=7; shapes: a=40 b=4x9; loops: parallel sequential
    void f(…) { … }
    //----

``shapes`` are those of arrays whose extents the loops do not tell; ``loops`` are the verdicts on them in their order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Program:
    name: str
    text: str
    sizes: dict[str, int | float]
    shapes: dict[str, tuple[int, ...]]
    loops: list[str]


def programs(path: Path) -> list[Program]:
    return [_program(part.strip() + "\n") for part in re.split(r"^//----\n", path.read_text(), flags=re.MULTILINE)]


def _program(text: str) -> Program:
    head = text.partition("\n")[0]
    said = {key: value.split() for key, value in re.findall(r"(sizes|shapes|loops):([^;\n]*)", head)}
    pairs = {key: [pair.split("=") for pair in said.get(key, [])] for key in ("sizes", "shapes")}
    sizes = {name: float(value) if "." in value else int(value) for name, value in pairs["sizes"]}
    shapes = {name: tuple(map(int, value.split("x"))) for name, value in pairs["shapes"]}
    return Program(head.split()[1], text, sizes, shapes, said.get("loops", []))
