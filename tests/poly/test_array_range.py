"""The range of elements to copy: every access is in it, and where the sizes decide, its ends are accessed."""

from __future__ import annotations

import itertools
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from looptune.frontend import load
from looptune.ir.nodes import Array, Codelet
from looptune.poly.array_range import completely_written, element_ranges
from looptune.poly.reach_data import access_records
from looptune.poly.scop import build
from looptune.runtime import array_reach
from tests.helpers.host_kernels import RUNTIME


def ranges(text: str) -> dict[str, Any]:
    return dict(element_ranges(build(load(text + "\n").codelet)))


def values(texts: list[str], names: tuple[str, ...], points: list[tuple[int, ...]]) -> list[list[int]]:
    """The values of C texts at each point, as the C compiler computes them."""
    params = ", ".join(f"int {name}" for name in names)
    lines = "".join(f'  printf("%lld ", (long long)({text}));\n' for text in texts)
    calls = "".join(f"  at({', '.join(map(str, point))});\n" for point in points)
    program = (
        f'#include <stdio.h>\n#include "looptune_runtime.h"\nstatic void at({params}) {{\n{lines}  puts("");\n}}\n'
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "values"
        path.with_suffix(".c").write_text(f"{program}int main(void) {{\n{calls}}}\n")
        subprocess.run(["gcc", "-w", "-I", RUNTIME, path.with_suffix(".c"), "-o", path], check=True)
        out = subprocess.run([path], check=True, capture_output=True, text=True).stdout
    return [[int(word) for word in line.split()] for line in out.splitlines()]


EXACT = {
    "a bound of one loop": ("void f(int n, float *x) { for (int i = 0; i < n; i++) x[i] = 1; }", ("n",)),
    "guards": ("void f(int n, float *x, float *y) "
               "{ for (int i = 0; i < n; i++) if (i + 2 < n) x[i] = y[i + 2]; }", ("n",)),
    "a stride": ("void f(int n, float *x) { for (int i = 3; i < n; i += 4) x[2 * i] = 1; }", ("n",)),
    "a triangle": ("void f(int n, int m, float *x) "
                   "{ for (int i = 0; i < n; i++) for (int j = i; j < m; j++) x[j - i] = 1; }", ("n", "m")),
    "rows by hand": ("void f(int n, int m, float *x) { for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) "
                     "x[i * m + j] = 1; }", ("n", "m")),
    "open rows": ("void f(int n, float (*x)[5]) { for (int i = 0; i < n; i++) x[i][4] = x[i][0]; }", ("n",)),
    "before the beginning": ("void f(int n, float *x) { for (int i = 0; i < n; i++) x[i - 3] = 1; }", ("n",)),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_ranges_hold_every_access_and_no_more(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At all small sizes, the ends of a range are the first and the last element that the loops access."""
    monkeypatch.setattr(array_reach, "_ends", lambda lo, hi, step, depth: range(lo, hi, step))
    text, sizes = EXACT[name]
    codelet = load(text + "\n").codelet
    found = element_ranges(build(codelet))
    records = access_records(codelet)
    points = list(itertools.product(range(8), repeat=len(sizes)))
    known = [(a, one) for a in arrays(codelet) if (one := found[a.name]) is not None]
    assert len(known) == len(arrays(codelet))
    ends = values([text for _, one in known for text in (one.first, one.end)], sizes, points)
    row = 5 if name == "open rows" else 1
    for point, numbers in zip(points, ends, strict=True):
        reached = array_reach.array_reaches(records, dict(zip(sizes, point, strict=True)))
        for k, (array, one) in enumerate(known):
            first, end = numbers[2 * k : 2 * k + 2]
            if array.name not in reached:
                assert end <= max(0, first), (point, one)
                continue
            least, most = reached[array.name]
            assert first == (0 if one.first == "0" else least) <= least, (point, one)
            assert end == (most // row + 1) * row, (point, one)


def arrays(codelet: Codelet) -> list[Array]:
    return [p for p in codelet.params if isinstance(p, Array)]


def test_declared_extents_are_the_range() -> None:
    """What is declared is copied whole."""
    found = ranges("void f(int n, float x[n][n + 1]) { for (int i = 0; i < n; i++) x[i][0] = 1; }")["x"]
    assert values([found.end], ("n",), [(4,)]) == [[20]]


def test_what_depends_on_data_has_no_range() -> None:
    """The index of such an array does, and is read completely."""
    found = ranges("void f(int n, float *x, int *at) { for (int i = 0; i < n; i++) x[at[i]] += 1; }")
    assert found["x"] is None
    assert values([found["at"].end], ("n",), [(6,)]) == [[6]]


@pytest.mark.parametrize(
    ("body", "whole"),
    [
        ("for (int i = 0; i < n; i++) x[i] = 1;", True),
        ("for (int i = 1; i < n; i++) x[i] = 1; x[0] = 2;", False),
        ("for (int i = 1; i < n; i++) x[i] = 1;", False),
        ("for (int i = 0; i < n; i++) if (y[i] > 0) x[i] = 1;", False),
        ("for (int i = 0; i < n; i += 2) x[i] = 1;", False),
    ],
)
def test_arrays_that_are_written_completely(body: str, whole: bool) -> None:
    """Only what surely happens counts, for every size: ``x[0]`` is outside where n is 0, and not needed."""
    model = build(load(f"void f(int n, float x[n], float y[n]) {{ {body} }}\n").codelet)
    assert ("x" in completely_written(model)) is (whole or body.endswith("x[0] = 2;"))


GUARDED = {
    "one side of a conditional": (
        "void f(int n, float *x, float *y) { for (int i = 0; i < n; i++) "
        "y[i] = i < n - 1 ? x[i + 1] : i > 0 ? x[i - 1] : 2; }",
        ("n",),
        lambda n: n if n > 1 else 0,
    ),
    "operators that stop early": (
        "void f(int n, float *x, float *y) { for (int i = 0; i < n; i++) "
        "if ((i == 0 || x[i - 1] > 0) && i + 1 < n && x[i + 1] > 3) y[i] = 1; }",
        ("n",),
        lambda n: n if n > 1 else 0,
    ),
    "rows by hand": (
        "void f(int n, int m, float *x, float *y) { for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) "
        "if (i > 0 && i < n - 1 && !(j < 1 || m - 1 <= j)) "
        "y[i * m + j] = x[(i - 1) * m + j] + x[(i + 1) * m + j + 1]; }",
        ("n", "m"),
        lambda n, m: n * m if n > 2 and m > 2 else None,
    ),
    "beyond what is declared": (
        "void f(int n, float x[1], float y[n]) { for (int i = 0; i < n; i++) y[i] = x[i]; }",
        ("n",),
        lambda n: max(1, n),
    ),
}


@pytest.mark.parametrize("name", GUARDED)
def test_accesses_that_are_not_evaluated(name: str) -> None:
    """What C does not evaluate is not accessed: nothing before the array, and nothing after it."""
    text, sizes, end = GUARDED[name]
    points = list(itertools.product(range(8), repeat=len(sizes)))
    one = ranges(text)["x"]
    assert one.first == "0"
    for point, (found,) in zip(points, values([one.end], sizes, points), strict=True):
        assert end(*point) in (None, max(0, found)), (point, one)
