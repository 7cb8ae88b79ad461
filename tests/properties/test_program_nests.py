"""The comparison of programs' nests with gcc finds what is the same, what differs and what is undefined."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from looptune.frontend import load
from looptune.report.scan.sources import Source
from tests.differential import nests
from tests.helpers.paths import ROOT

TEXT = """
void f(int n, double *a, const int *at) {
  for (int i = 0; i < n; i++)
    a[i] = 2 * a[i];
  for (int i = 0; i < n; i++)
    a[at[0] - 1000] = i;
}
int g(int n, const int *a) {
  int s = 0;
  for (int i = 0; i < n; i++)
    s += a[i];
  return s;
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Source:
    path = tmp_path / "p.c"
    path.write_text(TEXT)
    return Source(path)


@pytest.mark.parametrize(("kernel", "result"), [("f:3", "compiled"), ("f:5", "undefined"), ("g:10", "compiled")])
def test_each_nest_has_a_result(program: Source, kernel: str, result: str) -> None:
    assert nests.compared(program, kernel)[0] == result


def test_a_difference_is_found(program: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted one leaves the first statements out."""
    right = load(program.path, kernel="f:3")
    wrong = replace(right, codelet=replace(right.codelet, body=()))
    monkeypatch.setattr(nests, "load", lambda *_, **__: wrong)
    result, said = nests.compared(program, "f:3")
    assert result == "different"
    assert said.startswith("a[")


@pytest.mark.wide
def test_the_table_counts_them(program: Source) -> None:
    """In a process of its own: a fork of one that has used OpenMP cannot use it."""
    command = [sys.executable, "-m", "tests.differential.nests"]
    done = subprocess.run([*command, f"p={program.path}"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[2].split()[:5] == ["p", "0", "2", "0", "1"]
    assert nests.main([]) == 2
