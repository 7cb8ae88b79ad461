"""A pickled node has all its fields again, also those that do not take part in comparisons."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, fields

import pytest

from looptune.frontend import load
from looptune.ir.rewrite import walk

TEXT = """
#pragma hmpp k codelet
void f(int n, double a[n], const double b[n])
{
#pragma hmppcg unroll 2
  for (int i = n; i > 0; i--) { if (a[i - 1] > 0) a[i - 1] = b[i - 1] * 2; while (a[0] > 1) a[0] = a[0] / 2; }
}
"""


def test_every_field_is_kept() -> None:
    before = load(TEXT).codelet
    after = pickle.loads(pickle.dumps(before))
    for old, new in zip(walk((before.params, before.body)), walk((after.params, after.body)), strict=True):
        assert type(old) is type(new)
        assert [getattr(old, f.name) for f in fields(old)] == [getattr(new, f.name) for f in fields(new)]


def test_a_node_stays_frozen() -> None:
    after = pickle.loads(pickle.dumps(load(TEXT).codelet))
    with pytest.raises(FrozenInstanceError):
        after.name = "g"
