"""Loops that test a counter at the end, or by a break, are counted loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from looptune.frontend import load
from looptune.ir.nodes import Loop, While
from looptune.ir.rewrite import walk
from tests.helpers.against_gcc import difference

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "void f(int n, int m, int *a, int *b, int *out) { int k = 0, x = 0; unsigned u = 1;"
COUNTED = {
    "do": "do { a[k] = k; k++; } while (k < n); x = k;",
    "step in the condition": "do { a[k] = k; } while (++k < n); x = k;",
    "step first, by two": "k = n; do { k -= 2; a[k + 2] = k; } while (k >= 1); x = k;",
    "the other side": "do { a[k] = 1; k = k + 3; } while (n - 1 >= k); x = k;",
    "unequal": "k = -1; do { k++; b[k] = k; } while (k != m); x = k;",
    "leading break": "for (;;) { if (k >= n) break; a[k] = 1; k++; } x = k;",
    "trailing break": "while (1) { a[k] = 1; k++; if (n <= k) break; } x = k;",
    "another break": "do { a[k] = 1; k++; if (b[k] > 50) break; } while (k < n); x = k;",
    "unsigned": "while (u < 9) { a[u] = 1; u++; } x = u;",
    "swap": "do { int *t = a; a = b; b = t; a[k] = b[k] + 1; k++; } while (k < n); x = k;",
    "the start changes": "for (x = 0; x < 3; x++) { k = n; while (k >= 1) { k--; if (a[k] > 50) n--; b[k] = n; } }",
}
OTHER = {
    "bound changes": "do { a[k] = 1; k++; if (a[k] > 40) n--; } while (k < n); x = k;",
    "counter changes": "do { a[k] = 1; k++; if (b[k] > 40) k++; } while (k < n); x = k;",
    "continue": "do { if (b[k] > 40 && x++ < 3) continue; a[k] = 1; k++; } while (k < n);",
    "wraps": "do { u--; a[u & 7] += 1; } while (u > 0); x = u;",
}


@pytest.mark.parametrize("body", [*COUNTED.values(), *OTHER.values()], ids=[*COUNTED, *OTHER])
def test_the_result_is_that_of_gcc(body: str, tmp_path: Path) -> None:
    text = f"{HEAD} {body} out[0] = x; }}\n"
    shapes = {"a": (99,), "b": (99,), "out": (1,)}
    for n, m in ((6, 4), (0, 0), (5, 3)):
        assert difference(text, {"n": n, "m": m}, tmp_path, shapes) is None
    loops = [type(s) for s in walk(load(text).codelet.body) if isinstance(s, Loop | While)]
    assert (While in loops) == (body in OTHER.values() or "b[k] > 50" in body)
