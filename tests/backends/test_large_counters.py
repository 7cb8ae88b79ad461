"""Loops that count beyond 32 bits, in C's long, size_t and unsigned: every target runs each iteration once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from looptune.runtime import targets
from tests.helpers import all_targets, cuda_c_on_cpu
from tests.helpers.all_targets import Case
from tests.helpers.cross_check import Arguments
from tests.helpers.kernel_cases import planned

FAR = 5_000_000_000
SUM = "for (int j = 0; j < m; j++) { int s = 0; %s y[j] = s; }"
EACH = SUM % "for (long i = b; i < n; i++) s += x[i % 100];"
OWN = "for (long i = b; i < n - 1; i++) y[i - b] = x[i % 100];"
UNSIGNED = SUM % "for (unsigned i = u - 5; i < u; i++) s += x[i % 100];"
BIG = SUM % "for (int i = 0; i < 2000000000; i += 500000000) s += x[i % 100] + 1;"
BODIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "values": (SUM % "for (long i = b; i < n; i++) s += x[i % 100] * (int)(i % 7) + (int)(i / 3);", ()),
    "constants": (SUM % "for (long i = 5000000000; i < 5000000011; i++) s += x[i % 100];", ()),
    "downward": (SUM % "for (long i = n; i > b; i--) s += x[i % 100];", ()),
    "steps": (SUM % "for (long i = 0; i < n; i += 1000000007) s += x[i % 100];", ()),
    "a step of 2^32": (SUM % "for (long i = 0; i < 2000000000; i += 4294967296) s += x[i % 100] + 1;", ()),
    "big steps, unrolled": (BIG, ("loop i: unroll 2",)),
    "big steps, tiled": (BIG, ("loop i: tile i:3",)),
    "big steps, split": ("for (int i = 0; i < 2000000000; i += 500000000) y[0] += x[i % 100] + 1;",
                         ("loop i: rfactor 2",)),
    "steps of a grid": ("for (int i = 0; i < 2000000000; i += 400000000) y[i / 400000000] += x[i % 100] + 1;", ()),
    "steps of a team": (SUM % "for (int i = 0; i < 2000000000; i += 100000007) s += x[i % 100];",
                        ("loop i: parallel, team, reduce(+:s)",)),
    "unrolled": (EACH, ("loop i: unroll 4",)),
    "split": (EACH, ("loop i: unroll 2, split, guarded",)),
    "tiled": (EACH, ("loop i: tile i:4",)),
    "size_t": (SUM % "for (unsigned long i = (unsigned long)b; i < (unsigned long)n; i++) s += x[i % 100];", ()),
    "team": (EACH, ("loop i: parallel, team, reduce(+:s)",)),
    "grid": (OWN, ()),
    "grid of constants": ("for (long i = 5000000000; i < 5000000006; i++) y[i - 5000000000] = x[i % 100] + 1;", ()),
    "grid, tiled": (OWN, ("loop i: tile i:4",)),
    "grid, unrolled": (OWN, ("loop i: unroll 2, jam",)),
    "triangle": ("for (long i = 0; i < 3; i++) { int s = 0; for (long k = i + 5000000000; k < n; k++) s += x[k % 100]; "
                 "y[i] = s; }", ()),
    "unsigned": (UNSIGNED, ()),
    "unsigned, unrolled": (UNSIGNED, ("loop i: unroll 4",)),
    "counts": ("for (long i = b; i < n; i++) y[i % 6] += x[i % 100];", ("loop i: rfactor 3",)),
    "counts, unsigned": ("for (unsigned i = u - 5; i < u; i++) y[i % 3] += x[i % 100];", ("loop i: rfactor 3",)),
    "counts, in big steps": ("for (int i = 0; i < 2000000000; i += 400000000) y[i % 2] += x[i % 100] + 1;",
                             ("loop i: rfactor 4",)),
    "unsigned grid": ("for (unsigned i = u - 6; i < u; i++) y[i - (u - 6)] = x[i % 100];", ("loop i: unroll 4",)),
}  # fmt: skip


def cases(ways: tuple[str, ...]) -> list[Case]:
    made = []
    for name, (body, lines) in BODIES.items():
        text = f"void f(long n, long b, unsigned u, int m, int x[100], int y[m])\n{{ {body} }}\n"
        given: Arguments = {"n": FAR + 7, "b": FAR, "u": 2**32 - 1, "m": 6}
        given |= {"x": np.arange(100, dtype=np.int32), "y": np.zeros(6, np.int32)}
        made.append(Case(name, text, [given], lines, ways))
    return made


@pytest.mark.skipif(cuda_c_on_cpu.GXX is None, reason="needs g++")
@pytest.mark.parametrize("ways", [("cuda-c",), pytest.param(all_targets.ALL, marks=pytest.mark.wide)], ids=len)
def test_each_iteration_runs_once(ways: tuple[str, ...], tmp_path: Path) -> None:
    """From 5e9, from 2^32 - 7 in unsigned, in big steps, and through tiles, teams and unrolled loops."""
    assert not all_targets.wrong(cases(ways), tmp_path)


NEST = "void f(long n, unsigned m, float x[n][n]) { for (%s) for (%s) x[i][j] = 1; }\n"
UP, DOWN = ("long i = 0; i < n; i++", "long j = i; j < n - 1; j++"), ("long i = 0; i < n; i++", "long j = n; j-- > i;")
SHORT = {
    "unrolled": (UP, ("loop j: unroll 3, guarded",)),
    "cut": (UP, ("loop j: splitat 32", "loop i: unroll 4")),
    "downward": (DOWN, ()),
    "steps, guarded": (("long i = 0; i < n; i++", "long j = 0; j <= i; j += 2"), ("loop j: unroll 4, guarded",)),
    "unsigned": (("unsigned i = 0; i < m; i++", "unsigned j = i; j < m - 1; j++"), ("loop j: unroll 3, guarded",)),
    "tiled": (("unsigned long i = 0; i < n; i++", "unsigned long j = i; j < n; j++"), ("loop j: tile j:32",)),
}


@pytest.mark.parametrize("name", SHORT)
def test_small_sizes_are_counted_in_32_bits(name: str, tmp_path: Path) -> None:
    """Whatever type the program counts in, where the sizes are constants."""
    heads, lines = SHORT[name]
    text = targets.emit("cuda-c", planned(NEST % heads, lines, {"n": 1000, "m": 1000}), tmp_path)
    loops = [line for line in text.splitlines() if line.lstrip().startswith("for (")]
    assert loops
    assert not [line for line in loops if "(long long " in line.split(" = ")[0]]


def test_unsigned_row_pointers_are_counted_in_32_bits(tmp_path: Path) -> None:
    """A loop of one thread in steps of one needs no room beyond its end."""
    text = (
        "void f(int n, unsigned r[n + 1], float v[9], float y[n])\n{ for (int i = 0; i < n; i++) %s y[i] += v[k]; }\n"
    )
    found = targets.emit("cuda-c", planned(text % "for (unsigned k = r[i]; k < r[i + 1]; k++)", ()), tmp_path)
    assert "for (unsigned int k = " in found
