"""Lower bounds of the assignments that loops make."""

from __future__ import annotations

import pytest

from looptune.frontend import load
from looptune.ir import operation_count
from looptune.ir.nodes import Assign, Const
from looptune.ir.rewrite import walk_stmts

BODY = """
void f(int n, int m, float A[n][n], float s[n]) {
  for (int i = 0; i < n; i++) {
    s[i] = 0;
    for (int j = 0; j < i; j++)
      for (int k = j; k < m; k++) A[i][j] += s[k];
    if (s[i] > 0) s[i] = 1;
  }
}
"""


def least(names: set[str], **sizes: int) -> int:
    return operation_count.least_statements(load(BODY).codelet.body, sizes, names)


def test_of_some_statements() -> None:
    names = [s.name for s in walk_stmts(load(BODY).codelet.body) if isinstance(s, Assign)]
    assert len(names) == 3
    assert [least({name}, n=6, m=5) for name in names] == [6, sum(5 - j for i in range(6) for j in range(i)), 6]
    assert least(set(), n=6, m=5) == 0


def test_what_takes_too_long_to_count_is_counted_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = least({"S1"}, n=6, m=5)
    monkeypatch.setattr(operation_count, "LARGEST", 6)
    assert 0 < least({"S1"}, n=6, m=5) < whole


def test_constants_beyond_signed_integers_wrap() -> None:
    assert operation_count.evaluate(Const(2**64 - 1, "uint64"), {}) == -1
