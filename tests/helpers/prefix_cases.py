"""Loops that carry prefix sums, with directives that divide them into parts."""

from __future__ import annotations

from looptune.frontend import load
from looptune.ir.nodes import Codelet
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import ScheduleResult, schedule
from looptune.schedule.directive_lines import parse_lines

SCALAR = """
void f(int n, float x[n], float y[n], float last[1]) {
  float s = 2;
  for (int i = 0; i < n; i++) { s += x[i]; y[i] = s; }
  last[0] = s;
}
"""
ARRAY = "void f(int n, int x[n], int y[n]) { for (int i = 1; i < n; i++) y[i] = y[i - 1] + x[i]; }"
IN_PLACE = "void f(int n, unsigned a[n]) { for (unsigned i = 0; i < n - 1; i++) a[i + 1] += a[i]; }"
BACKWARD = """
void f(int n, double x[n], double y[n]) {
  for (int i = n - 2; i >= 0; i--) y[i] = x[i] - 3 + y[i + 1];
}
"""
EXCLUSIVE = """
void f(int n, int x[n], long y[n]) {
  long s = 7;
  for (int i = 0; i < n; i++) { y[i] = s; s = s - x[i] * 2; }
}
"""
EXTREMES = """
void f(int n, float x[n], float y[n], int z[n], int w[n]) {
  float most = -1;
  int least = 50;
  for (int i = 0; i < n; i++) {
    if (x[i] > most) most = x[i];
    least = z[i] < least ? z[i] : least;
    y[i] = most * least;
    w[i] = least;
  }
}
"""
CALLED = """
double fmax(double, double);
void f(int n, double x[n], double y[n]) {
  for (int i = 1; i < n; i++) y[i] = fmax(y[i - 1], x[i]);
}
"""
BITS = """
void f(int n, unsigned x[n], unsigned y[n], unsigned char z[n]) {
  unsigned any = 1, all = ~0u, odd = 0;
  for (int i = 0; i < n; i++) {
    any |= x[i];
    all &= x[i];
    odd ^= x[i];
    y[i] = any + all + odd;
    z[i] = odd;
  }
}
"""
COUNTED = """
void f(int n, float x[n], int place[n], int count[1]) {
  int k = 0;
  for (int i = 0; i < n; i++) {
    place[i] = -1;
    if (x[i] > 0) { place[i] = k; k++; }
  }
  count[0] = k;
}
"""
TEMPORARY = """
void f(int n, int m, float x[n][m], float y[n]) {
  float s = 0;
  for (int i = 0; i < n; i++) {
    float t = 0;
    for (int j = 0; j < m; j++) if (x[i][j] > 0) t += x[i][j];
    float u = t * t;
    s += u;
    y[i] = s + t;
  }
}
"""
INNER = """
void f(int n, int m, int x[n][m], int y[n + 1]) {
  int s = 0;
  y[0] = 0;
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < m; j++) s += x[i][j];
    y[i + 1] = s;
  }
}
"""
IMAGE = """
void f(int n, int m, int x[n][m], int s[n][m]) {
  for (int i = 1; i < n; i++)
    for (int j = 1; j < m; j++)
      s[i][j] = s[i][j - 1] + s[i - 1][j] - s[i - 1][j - 1] + x[i][j];
}
"""
ROWS = """
void f(int n, int m, float x[n][m], float y[n][m]) {
  float s;
  for (int i = 0; i < n; i++) {
    s = 0;
    for (int j = 0; j < m; j++) { s += x[i][j]; y[i][j] = s; }
  }
}
"""
EACH_ROW = """
void f(int n, int m, double a[n][m]) {
  for (int i = 0; i < n; i++)
    for (int j = 1; j < m; j++) a[i][j] += a[i][j - 1];
}
"""
MOVED = """
void f(int n, int a[n]) {
  int s = 0;
  for (int i = 0; i < n; i++) { s += a[i]; a[i] = s; }
}
"""
WHOLE = """
#define N 24
void f(int x[N], int y[N]) {
  for (int i = 4; i < N; i++) y[i] = y[i - 1] * x[i];
}
"""
COMPACTION = """
void f(int n, float x[n], float y[n], int count[1]) {
  int k = 0;
  for (int i = 0; i < n; i++)
    if (x[i] > 0) y[k++] = x[i];
  count[0] = k;
}
"""
TOTALS = """
void f(int n, int m, int x[n][m], int y[n][m], int t[n + 1], int u[2]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      if (x[i][j] > 2) u[1] ^= x[i][j];
      t[i + 1] += x[i][j];
      u[1] ^= 4;
      y[i][j] = t[i + 1];
    }
}
"""
OUTER = ("loop 1: distribute", "loop 1: expand s, s_sums, s_starts")
CASES = {
    "scalar": (SCALAR, ("loop i: prefix 3",)),
    "three levels": (SCALAR, ("loop i: prefix 2, 2, 3",)),
    "array": (ARRAY, ("loop i: prefix 4, 2",)),
    "in place": (IN_PLACE, ("loop i: prefix 3",)),
    "backward": (BACKWARD, ("loop i: prefix 3", "loop i_part: grid blocksize 4x1")),
    "exclusive": (EXCLUSIVE, ("loop i: prefix 4", "loop i: unroll 2")),
    "extremes": (EXTREMES, ("loop i: prefix 2, 2",)),
    "called": (CALLED, ("loop i: prefix 5",)),
    "bits": (BITS, ("loop i: prefix 2",)),
    "counted": (COUNTED, ("loop i: prefix 3", "loop i_term: unroll 3")),
    "temporary": (TEMPORARY, ("loop i: prefix 2",)),
    "inner": (INNER, ("loop i: prefix 3",)),
    "image": (IMAGE, ("loop j: prefix 3",)),
    "rows": (ROWS, ("loop j: prefix 3", *OUTER)),
    "each row": (EACH_ROW, ("loop j: prefix 3", "loop 1: distribute", "loop 1: expand a_last, a_sums, a_starts")),
    "totals": (TOTALS, ("loop j: prefix 3",)),
    "compaction": (COMPACTION, ("loop i: prefix 3",)),
    "moved": (MOVED, ("loop i: prefix 4",)),
    "whole": (WHOLE, ("loop i: prefix 5",)),
}


def divided(text: str, lines: tuple[str, ...]) -> tuple[Codelet, ScheduleResult]:
    """Return the codelet of a text, and what the directives make of it."""
    codelet = load(text).codelet
    return codelet, schedule(Analysis(codelet), parse_lines(lines), sums=True)
