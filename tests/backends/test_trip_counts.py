"""Loops run as often as C says, whatever their counters' types, in every back end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from looptune.core.errors import UnsupportedError
from looptune.frontend import load
from looptune.ir.nodes import Loop, While
from looptune.ir.rewrite import walk_stmts
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from tests.helpers import all_targets, cross_check, loop_counters
from tests.helpers.all_targets import Case


def _counting() -> list[cross_check.Arguments]:
    size = len(loop_counters.HEADERS)
    return [
        {**v, "count": np.zeros(size, np.int64), "last": np.full(size, -77, np.int64)} for v in loop_counters.VALUES
    ]


@pytest.mark.long
@pytest.mark.wide
@pytest.mark.simulator
def test_every_header_counts_as_in_c(tmp_path: Path) -> None:
    """Every type, direction, relation and step, with bounds of other types; loops of no iteration, and that wrap."""
    assert not all_targets.wrong([Case("headers", loop_counters.program(), _counting())], tmp_path)


UNSIGNED = {
    "up": "void f(unsigned n, unsigned m, int a[64]) { for (unsigned i = m; i < n; i++) a[i] += 100; }\n",
    "down": "void f(unsigned n, unsigned m, int a[64]) { for (unsigned i = n; i > m; i--) a[i - 1] += i; }\n",
    "stencil": "void f(unsigned n, unsigned m, int a[64]) { for (unsigned long i = 1; i + 1 < n; i++) a[i] += i; }\n",
    "by three": "void f(unsigned n, unsigned m, int a[64]) { for (unsigned i = m; i <= n; i += 3) a[i] -= i; }\n",
}
WAYS = ("", "unroll 2", "unroll 3, split", "unroll 4, split, guarded", "unroll 2, guarded", "tile i:4")


def _few() -> list[cross_check.Arguments]:
    sizes = ((3, 9), (9, 3), (20, 0), (1, 1), (2, 1), (1, 0))
    return [{"n": n, "m": m, "a": np.arange(64, dtype=np.int32)} for n, m in sizes]


@pytest.mark.long
def test_unsigned_loops_count_under_every_directive(tmp_path: Path) -> None:
    """Loops that begin behind their end run not at all, unrolled and in strips as well."""
    cases = []
    for name, text in UNSIGNED.items():
        for line in WAYS:
            lines = [f"loop i: {line}"] if line else []
            ways = all_targets.ALL if line == "unroll 2" and name in ("up", "down") else all_targets.QUICK
            cases.append(Case(f"{name} {line}", text, _few(), lines, ways))
    assert not all_targets.wrong(cases, tmp_path)


@pytest.mark.parametrize(
    "header",
    [
        "unsigned i = 9; i >= 0; i--",
        "unsigned i = 0; i <= 4294967295u; i++",
        "unsigned char i = 0; i < 300; i++",
        "unsigned char i = 0; i != 256; i++",
        "unsigned long i = n; i >= 0; --i",
        "signed char i = 0; i <= 127; i++",
        "int i = 0; i <= 2147483647; i++",
        "unsigned short i = 3; i > -1; i--",
    ],
)
def test_a_loop_without_end_is_refused(header: str) -> None:
    """What holds for every value of the counter ends no loop."""
    with pytest.raises(UnsupportedError, match=r"the loop never ends, as its condition holds for every [a-z ]+ i"):
        load(f"void f(unsigned n, int a[9]) {{ for ({header}) a[i & 7] += 1; }}\n")


@pytest.mark.parametrize(
    "header",
    [
        "size_t i = 0; i < n; i++",
        "unsigned i = 1; i + 1 < m; ++i",
        "size_t i = 1; i < n - 1; i++",
        "size_t i = n; i > 0; i--",
        "size_t i = 0; i != n; i++",
        "size_t i = n; i-- > 0;",
        "unsigned i = m; i-- != 0;",
        "size_t i = n - 1; i < n; i--",
        "unsigned i = 0; i < n; i++",
        "int i = 0; i < n; i++",
        "int i = 0; i <= m; i += 3",
        "unsigned char i = 0; i < 20; i++",
        "long i = k; i < n; i++",
    ],
)
def test_ordinary_unsigned_loops_stay_parallel(header: str) -> None:
    """Loops that cannot wrap are counted and analysed."""
    text = f"#include <stddef.h>\nvoid f(size_t n, unsigned m, unsigned k, int a[99]) {{ for ({header}) a[i] += 1; }}"
    loops = [s for s in walk_stmts(schedule(Analysis(load(text).codelet)).codelet.body) if isinstance(s, (Loop, While))]
    assert [s.mode for s in loops if isinstance(s, Loop)] == ["parallel"]
    assert len(loops) == 1
