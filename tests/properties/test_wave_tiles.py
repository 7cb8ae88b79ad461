"""Random recurrences in place, in tiles that teams of threads run wave by wave, staged or not."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from looptune.core.errors import DirectiveError
from looptune.frontend import load
from looptune.lower.machine import Machine
from looptune.lower.pipeline import finish
from looptune.schedule.analysis import Analysis
from looptune.tune.space.patterns import Patterns, band_of
from looptune.tune.space.tiled_waves import skew
from tests.helpers.cuda_c_on_cpu import GXX
from tests.helpers.kernel_cases import Case, planned, sized, wrong_in_c


def recurrence(seed: int) -> Case | None:
    """A nest of two or three loops that reads neighbours of what it writes, or None where no skew allows tiles."""
    rng = random.Random(seed)
    loops = "tij"[3 - rng.choice((2, 3)) :]
    reach = rng.choice((1, 1, 2))
    reads = [(rng.randint(-reach, reach), rng.randint(-reach, reach)) for _ in range(rng.randint(2, 5))]
    inner = {"i": f"for (int i = {reach}; i < n - {reach}; i++)", "j": f"for (int j = {reach}; j < m - {reach}; j++)"}
    around = "for (int t = 0; t < steps; t++)" if "t" in loops else ""
    value = " + ".join(f"{rng.choice(('0.5f', '0.125f', '-0.25f'))} * A[i + {a}][j + {b}]" for a, b in reads)
    value += rng.choice(("", " * X[i]", " + X[j] * 0.5f"))
    guard = rng.choice(("", "", "if (i + j > 9)"))
    params = "int steps, int n, int m, float A[n][m], float X[n + m]"
    text = f"void f({params})\n{{\n  {around} {inner['i']} {inner['j']} {guard}\n    A[i][j] = {value};\n}}\n"
    found = Patterns(Analysis(load(text).codelet))
    band, ordered = band_of(found.body[0]), rng.random() < 0.6
    moved = skew(found, band, ordered=ordered)
    if moved is None or len(band) != len(loops):
        return None
    sizes = [rng.choice((1, 2, 3, 4, 8)) for _ in loops]
    team = f"team:{loops[-1]}" if ordered else "team"
    lines = [*moved, f"loop 1: wavefront {', '.join(loops)}, tile {', '.join(map(str, sizes))}, {team}"]
    staged = rng.choice(("", "A", "A", "A, X" if "X[" in value else "A"))
    lines += [f"loop 1: stage {staged}"] if staged else []
    lines.append(f"codelet: grid blocksize {rng.choice((2, 4, 8))}x{rng.choice((1, 2, 4))}")
    if not found.legal(lines):
        return None
    shapes = [(rng.randint(1, 6), rng.randint(2, 16), rng.randint(2, 16)) for _ in range(2)]
    try:
        finish(planned(text, lines), Machine(blocks=True))
    except DirectiveError:  # elements between those that a tile of few columns writes
        lines = [line for line in lines if "stage" not in line]
    return Case(text, tuple(lines), sized(*shapes))


@pytest.mark.wide
@pytest.mark.skipif(GXX is None, reason="needs g++")
def test_random_recurrences(tmp_path: Path) -> None:
    """Sizes are small and odd, so that most tiles are cut off."""
    made = {f"seed {seed}": recurrence(seed) for seed in range(40)}
    cases = {name: case for name, case in made.items() if case is not None}
    assert sum(any("stage" in line for line in case.lines) for case in cases.values()) > 10
    assert not wrong_in_c(cases, tmp_path, (False,), 1e-3)
