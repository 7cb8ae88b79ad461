"""Arrays that are too short for the loops, or that overlap, are refused before anything is written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from looptune.core.errors import UsageError
from looptune.deploy import compile
from looptune.frontend import load
from looptune.poly.reach_data import access_records
from looptune.runtime.array_reach import Reach, array_reaches
from tests.helpers.built_modules import imported, written

SAXPY = "void saxpy(int n, float a, const float *x, float *y) { for (int i = 0; i < n; i++) y[i] += a * x[i]; }\n"
MATRIX_VECTOR = (
    "void mv(int b, int m, int n, double *W, double *x, double *y) { for (int k = 0; k < b; k++) "
    "for (int i = 0; i < m; i++) for (int j = 0; j < n; j++) y[k * m + i] += W[(k * m + i) * n + j] * x[k * n + j]; }\n"
)


def reach(body: str, parameters: str = "int n, int m, int *a, int *b", **sizes: int) -> dict[str, Reach]:
    return array_reaches(access_records(load(f"void f({parameters}) {{ {body} }}\n").codelet), sizes)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for (int i = 0; i < n; i++) a[i] = 1;", (0, 9)),
        ("for (int i = 0; i <= n; i++) a[i] = 1;", (0, 10)),
        ("for (int i = n - 1; i >= 0; i--) a[i - 1] = 1;", (-1, 8)),
        ("for (int i = 0; i < n; i += 4) a[3 * i + m] = 1;", (4, 28)),
        ("for (int i = 0; i < n; i++) for (int j = i; j < n; j++) a[i * n + j] = 1;", (0, 99)),
        ("for (int i = 0; i < n; i++) for (int j = 0; j < i; j++) a[i * n + j] = 1;", (10, 98)),
        ("for (int i = 0; i < n; i++) if (i < m) a[i] = 1;", (0, 3)),
        ("for (int i = 0; i < n; i++) if (i >= 2 && !(i > m)) a[3 * i] = 1;", (6, 12)),
        ("for (int i = 0; i < n; i++) if (i == m + 1) a[i] = 1; else if (2 * m - i == 5) a[20] = 1;", (5, 20)),
        ("for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) if (i + j < n + m) a[i + j] = 1;", (0, 13)),
        ("for (int i = n - 1; i >= 0; i--) for (int j = 0; j < 1; j++) if (i > m) a[9 - i] = 1;", (0, 4)),
        ("for (int i = 0; i < n / m; i++) a[i % m] = 1;", (0, 1)),
        ("for (int i = 0; i < n; i++) { int k = 2 * i + 1; a[k] = 1; }", (1, 19)),
        ("for (unsigned i = 0; i < n - 20u; i++) if (i < 4) a[i] = 1;", None),
        ("for (int i = 0; i < n; i++) if (b[i] > 0) a[i] = 1;", None),
        ("for (int i = 0; i < n; i++) b[i] = b[i] > 0 ? a[i] : 0;", None),
        ("for (int i = 0; i < n; i++) a[b[i]] = 1;", None),
        ("for (int i = 0; i < b[0]; i++) a[i] = 1;", None),
        ("for (int i = n; i < m; i++) a[i] = 1;", None),
    ],
)
def test_what_is_reached(body: str, expected: tuple[int, int] | None) -> None:
    """Only accesses that are surely made count: nothing that data decide, nothing in a loop that does not run."""
    assert reach(body, n=10, m=4).get("a") == expected


@pytest.fixture(scope="module")
def saxpy() -> compile.CompiledKernel:
    return compile.compile(SAXPY, target="numba-cpu")


def test_a_compiled_kernel_refuses_what_its_loops_leave(saxpy: compile.CompiledKernel) -> None:
    """The message names the parameter, what it has and what is reached; nothing is written; what fits runs."""
    x, y = np.ones(10, np.float32), np.zeros(10, np.float32)
    with pytest.raises(UsageError, match=r"^x is too short: it has 10 elements, and .* access element 99999"):
        saxpy(100000, 2.0, x, y)
    with pytest.raises(UsageError, match=r"^y is too short: it has 10 elements, and .* access element 10"):
        saxpy(11, 2.0, np.ones(11, np.float32), y)
    assert not y.any()
    saxpy(10, 2.0, x, y)
    saxpy(0, 2.0, x[:0], y[:0])
    assert (y == 2).all()


@pytest.mark.wide
def test_a_built_module_refuses_short_and_overlapping_arrays(tmp_path: Path) -> None:
    """As a compiled kernel does, in a module that has no looptune; the same call again is checked again."""
    mv = imported(written(tmp_path, MATRIX_VECTOR, None, "numba-cpu", default=True)).mv
    w, x, y = np.ones(24), np.ones(8), np.zeros(6)
    mv(2, 3, 4, w, x, y)
    assert (y == 4).all()
    for _ in range(2):
        with pytest.raises(ValueError, match=r"^W is too short: it has 20 elements, and .* access element 23"):
            mv(2, 3, 4, w[:20], x, y)
    with pytest.raises(ValueError, match=r"^y, which is written, overlaps x"):
        mv(2, 3, 4, w, x, x[2:])
    with pytest.raises(ValueError, match=r"^y, which is written, overlaps W"):
        mv(2, 3, 4, w, x, w)
    both = np.zeros(16)
    with pytest.raises(ValueError, match="overlaps"):
        mv(2, 3, 4, w, both[::2], both[:6])
    with pytest.raises(ValueError, match="overlaps"):
        mv(2, 3, 4, w, both[:8], both[::2][:6])
    assert not both.any()
