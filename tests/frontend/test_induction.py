"""Counters of loops inside of loops whose first values differ from one iteration to the next, against gcc."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.against_gcc import difference

SET = "if (c[i] > 4) k = 3; else k = m;"
BODIES = {
    "moving pointer": f"double *g = a; int k; for (int i = 0; i < n; i++) {{ {SET} while (k-- > 0) *g++ = i + 1; }}",
    "counter": f"int g = 0, k; for (int i = 0; i < n; i++) {{ {SET} for (; k > 0; k--) a[g++] = i + 1; }}",
    "loop before": f"""int g = 0, k = m; while (k-- > 2) a[g++] = 7;
for (int i = 0; i < n; i++) {{ {SET} while (k-- > 0) {{ a[g] = i + 1; g++; }} }}""",
    "unknown before": f"""int g = 0, k = c[0]; if (c[1] > 5) k = m; while (k-- > 2) a[g++] = 7;
for (int i = 0; i < n; i++) {{ {SET} while (k-- > 0) {{ a[g] = i + 1; g++; }} }}""",
    "three deep": f"""int g = 0, h = 0, k; for (int i = 0; i < n; i++)
for (int j = 0; j < 2; j++) {{ {SET} k += j; while (k-- > 0) {{ a[g] = i + j; g++; }} a[300 + h] = g; h += 1; }}""",
    "from data": "int g = 0; for (int i = 0; i < n; i++) { int k = c[i]; while (k-- > 0) { a[g] = i; g += 2; } }",
}


@pytest.mark.parametrize("name", BODIES)
def test_gcc_computes_the_same(name: str, tmp_path: Path) -> None:
    text = f"void f(int n, int m, int *c, double *a) {{ {BODIES[name]} }}\n"
    for n, m in ((7, 5), (3, 2), (1, 0), (0, 4)):
        assert difference(text, {"n": n, "m": m}, tmp_path, {"a": (400,), "c": (40,)}, "f") is None
