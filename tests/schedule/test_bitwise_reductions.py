"""Sums of bits: ``& | ^`` reduce in any order, of integers of every width and of truth values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from looptune.frontend import load
from looptune.schedule.analysis import Analysis, ScheduledTree
from tests.helpers.all_targets import Case, wrong

TEXT = """
void f(int n, int x[n], unsigned char u[2], short s[1], long l[2], unsigned w[1], _Bool b[2]) {
  int o = w[0] >> 1; _Bool any = b[0];
  for (int i = 0; i < n; i++) {
    u[0] &= x[i]; u[1] |= x[i] & 16; s[0] ^= x[i]; l[0] = x[i] | l[0]; l[1] ^= (long)x[i] << 20;
    w[0] &= ~x[i]; o ^= x[i]; any |= x[i] > 90; b[1] &= x[i] != 7;
  }
  w[0] += o; b[0] = any;
}
"""
NONE = (
    "void f(int n, int x[n], _Bool b[1]) { for (int i = 0; i < n; i++) b[0] ^= x[i]; }",
    "void f(int n, int x[n], long l[1]) { for (int i = 0; i < n; i++) l[0] = (int)(l[0] | x[i]); }",
    "void f(int n, int x[n], int o[1]) { for (int i = 0; i < n; i++) o[0] = (_Bool)(o[0] | x[i]); }",
    "void f(int n, int x[n], int o[1]) { for (int i = 0; i < n; i++) o[0] = (o[0] & x[i]) | 1; }",
)


def test_they_are_those_of_c_on_every_target(tmp_path: Path) -> None:
    kinds = {"u": np.uint8, "s": np.int16, "l": np.int64, "w": np.uint32, "b": np.bool_}
    sizes = {"u": 2, "s": 1, "l": 2, "w": 1, "b": 2}
    given = [
        {"n": n, "x": np.random.default_rng(n).integers(-99, 99, n).astype(np.int32),
         **{k: np.ones(sizes[k], t) for k, t in kinds.items()}}
        for n in (0, 1, 37)
    ]  # fmt: skip
    cases = [Case(line, TEXT, given, [line] if line else []) for line in ("", "loop i: parallel", "loop i: rfactor 4")]
    assert not wrong(cases, tmp_path)


@pytest.mark.parametrize("text", NONE)
def test_what_loses_bits_is_none(text: str) -> None:
    codelet = load(text).codelet
    analysis = Analysis(codelet)
    tree = ScheduledTree(analysis, codelet.body, analysis.model.order())
    assert tree.verdict(codelet.body[0]).kind == "sequential"
