"""Jumps, results of functions and statements in expressions: each program computes what gcc's does, on every target."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptune.frontend import load
from looptune.ir.nodes import Loop, While
from looptune.ir.rewrite import walk
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from tests.helpers import all_targets, cross_check
from tests.helpers.all_targets import Case

PROGRAMS = {
    "search": """
void f(int n, int x, const int a[n], int at[3]) {
  int i;
  for (i = 0; i < n; i++) if (a[i] == x) break;
  at[0] = i;
  for (i = n - 1; i >= 0; i -= 2) if (a[i] == x) break; else at[1] += a[i];
  at[2] = i;
}""",
    "break in an inner loop": """
void f(int n, int m, double a[n][m], const int b[m]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) { if (b[j] < -5) break; a[i][j] = b[j] * i; }
}""",
    "continue at any depth": """
void f(int n, int a[n], int b[n]) {
  for (int i = 0; i < n; i++) {
    if (a[i] > 0) { if (b[i] > 0) { a[i]--; continue; } if (b[i] == 0) continue; b[i]++; }
    a[i] += 2;
    for (int j = 0; j < i; j++) { if (j % 3 == 1) { if (a[j] < 0) continue; } a[j] ^= j; }
    b[i] -= 3;
  }
}""",
    "loops that only a break ends": """
void f(int n, int a[n], int b[n]) {
  int i = 0;
  for (;;) { if (i >= n) break; a[i] += i; i++; }
  while (1) { i--; if (i < 0) break; if (a[i] % 2) continue; b[i] = a[i]; }
  do { i++; if (i > 3) break; b[i] = 7; } while (i < n - 1);
  for (i = 0; ; i += 2) { if (i >= n) break; b[i] *= 2; }
  a[0] = i;
}""",
    "goto": """
void f(int n, int m, const int a[n][m], int r[3]) {
  int i, j;
  for (i = 0; i < n; i++)
    for (j = 0; j < m; j++)
      if (a[i][j] == 3) goto found;
  r[0] = -1;
  goto end;
found:
  r[0] = i; r[1] = j;
end:
  r[2] = i * 100 + j;
}""",
    "goto as a loop": """
void f(int n, int a[n]) {
  int i = 0;
  for (int j = 0; j < n; j++) a[j]--;
again:
  if (i < n) {
    a[i] += 5;
    if (a[i] > 8) { i += 2; goto again; }
    i++;
    goto again;
  }
  a[0] = i;
}""",
    "cleanup by goto": """
int f(int n, int a[n]) {
  int status = 1;
  if (n < 3) goto out;
  for (int i = 0; i < n; i++) { if (a[i] > 8) { status = 2; goto out; } a[i]++; }
  status = 0;
out:
  a[0] = status;
  return status;
}""",
    "return in loops": """
int f(int n, int m, const int a[n][m], int count[3]) {
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < m; j++) { if (a[i][j] > 8) return i * m + j; count[0]++; }
    if (a[i][0] < -8) return -i;
    count[1] += i;
  }
  count[2] = 1;
  return 12345;
}""",
    "a sum that is returned": """
double f(int n, const double a[n], const double b[n]) {
  double s = 0;
  for (int i = 0; i < n; i++) s += a[i] * b[i];
  return s / n;
}""",
    "a truth value that is returned": """
_Bool f(int n, const float a[n]) {
  if (n < 2) return 0;
  for (int i = 1; i < n; i++) if (a[i] < a[i - 1]) return 0;
  return 1;
}""",
    "void returns": """
void f(int n, int a[n]) {
  if (a[0] > 5) return;
  for (int i = 0; i < n; i++) { if (a[i] > 7) { a[i] = 0; return; } if (a[i] < 0) { a[i]++; if (a[i] == 0) return; } }
  a[n - 1] = 77;
}""",
    "breaks of several loops": """
void f(int n, int a[n], int b[n]) {
  for (int k = 0; k < 3; k++) {
    int i = 0;
    while (i < n) {
      for (int j = i; j < n; j++) { if (a[j] == k) break; if (a[j] > 6) { b[i] += j; goto next; } b[j] -= k; }
      if (b[i] > 20) break;
      b[i]++;
    next:
      i++;
    }
    a[k] = i;
  }
}""",
}  # fmt: skip
SIZES = {"n": 9, "m": 5, "x": 3, "a": 9, "b": 9}


def cases(programs: dict[str, str], ways: tuple[str, ...], seeds: int) -> list[Case]:
    made = []
    for name, text in programs.items():
        codelet = load(f"{text}\n").codelet
        given = [cross_check.arguments(codelet, sizes_of(codelet), seed) for seed in range(1, seeds + 1)]
        made.append(Case(name, f"{text}\n", given, ways=ways, tolerance=1e-12))
    return made


def sizes_of(codelet: object) -> dict[str, int | float]:
    return {p.name: SIZES.get(p.name, 9) for p in codelet.params}  # type: ignore[attr-defined]


def test_programs_compute_what_gcc_computes(tmp_path: Path) -> None:
    """The interpreter, the C that is printed, and CUDA C on a processor."""
    assert all_targets.wrong(cases(PROGRAMS, all_targets.QUICK, 6), tmp_path) == []


@pytest.mark.wide
def test_programs_compute_it_on_every_target(tmp_path: Path) -> None:
    """A CPU's machine code and Numba's CUDA module too."""
    assert all_targets.wrong(cases(PROGRAMS, all_targets.ALL, 2), tmp_path) == []


def modes(text: str) -> list[str]:
    done = schedule(Analysis(load(f"{text}\n").codelet)).codelet
    return [n.mode if isinstance(n, Loop) else "while" for n in walk(done.body) if isinstance(n, Loop | While)]


def test_a_break_leaves_the_loops_around_parallel() -> None:
    """Subscripts remain those of counted loops, so that rows of a linear array are told apart."""
    text = """
void f(int n, int m, double *restrict a, const double *restrict b) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) { if (b[j] < 0) break; a[i * m + j] = 2 * b[j]; }
}"""
    assert modes(text) == ["parallel", "sequential"]


def test_many_jumps_do_not_multiply_the_text() -> None:
    """A statement is lowered once, however many jumps precede it."""
    jumps = "".join(f"if (a[i] > {k}) {{ if (a[i] > 9) {{ a[i]--; continue; }} a[i] += {k}; }}\n" for k in range(60))
    codelet = load(f"void f(int n, int *a) {{ for (int i = 0; i < n; i++) {{ {jumps} }} }}\n").codelet
    assert sum(1 for _ in walk(codelet.body)) < 5000
