"""Nests with variables that iterations use one after the other, and directives that give each its own copy."""

from __future__ import annotations

from looptune.frontend import load
from looptune.ir.nodes import Codelet
from looptune.lower.pipeline import lower
from looptune.lower.plan import Plan
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import ScheduleResult, schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import affine_nests

DOITGEN = """
void doitgen(int nr, int nq, int np, double A[nr][nq][np], double C4[np][np], double sum[np]) {
  for (int r = 0; r < nr; r++)
    for (int q = 0; q < nq; q++) {
      for (int p = 0; p < np; p++) {
        sum[p] = 0;
        for (int s = 0; s < np; s++)
          sum[p] += A[r][q][s] * C4[s][p];
      }
      for (int p = 0; p < np; p++)
        A[r][q][p] = sum[p];
    }
}
"""
BOTH = ("loop r: expand sum", "loop q: expand sum")
DURBIN = affine_nests.CODES["durbin"]
ADI = """
void adi(int ts, int n, double u[n][n], double v[n][n], double p[n][n], double q[n][n]) {
  for (int t = 1; t <= ts; t++) {
    for (int i = 1; i < n - 1; i++) {
      v[0][i] = 1;
      p[i][0] = 0;
      q[i][0] = v[0][i];
      for (int j = 1; j < n - 1; j++) {
        p[i][j] = 2 / (p[i][j - 1] + 16);
        q[i][j] = (u[j][i - 1] + u[j][i] + u[j][i + 1] + q[i][j - 1]) / (p[i][j - 1] + 16);
      }
      v[n - 1][i] = 1;
      for (int j = n - 2; j >= 1; j--)
        v[j][i] = p[i][j] * v[j + 1][i] + q[i][j];
    }
    for (int i = 1; i < n - 1; i++) {
      u[i][0] = 1;
      p[i][0] = 0;
      q[i][0] = u[i][0];
      for (int j = 1; j < n - 1; j++) {
        p[i][j] = 3 / (p[i][j - 1] + 16);
        q[i][j] = (v[i - 1][j] + v[i][j] + v[i + 1][j] + q[i][j - 1]) / (p[i][j - 1] + 16);
      }
      u[i][n - 1] = 1;
      for (int j = n - 2; j >= 1; j--)
        u[i][j] = p[i][j] * u[i][j + 1] + q[i][j];
    }
  }
}
"""
ROWS = """
void rows(int n, int m, double A[n][m], double B[n][m], double x[n], double y[m]) {
  double t, u;
  double row[m];
  for (int i = 0; i < n; i++) {
    t = x[i] * 2;
    for (int j = 0; j < m; j++) {
      u = A[i][j] + t;
      row[j] = u * u;
    }
    for (int j = 0; j < m; j++)
      B[i][j] = row[j] + row[m - 1 - j];
  }
  for (int j = 0; j < m; j++)
    y[j] = row[j] + t;
}
"""
DATA = """
void data(int n, int m, double A[n][m], double B[n][m], double x[n], double y[m]) {
  double t;
  for (int i = 0; i < n; i++) {
    y[0] = 0;
    for (int j = 0; j < m; j++) {
      t = 0;
      if (A[i][j] > 0) t = A[i][j]; else t = 2 - A[i][j];
      if (x[i] > 0) { t = t + 1; }
      if (t > y[0]) y[0] = t;
      B[i][j] = t;
    }
    for (int j = 0; j < m; j++)
      B[i][j] = B[i][j] * y[0];
  }
}
"""
STRIDES = """
void strides(int n, int m, double A[n][m], double x[n], double y[m]) {
  for (int i = n - 1; i >= 1; i -= 2) {
    for (int j = i; j < m; j++)
      y[j] = x[i] + j;
    for (int j = i; j < m; j++)
      A[i][j] = y[j] * y[j];
  }
}
"""
MIXED = """
void mixed(long n, unsigned m, double A[n][m], double B[n][m], float x[n], double y[m]) {
  double t = 3;
  if (n > 2)
    #pragma hmppcg expand t
    for (long i = n - 1; i >= 1; i -= 2) {
      t = x[i];
      for (unsigned j = 0; j < m; j++)
        A[i][j] = A[i][j] * t;
    }
  for (long i = 0; i < n; i++) {
    #pragma hmppcg expand t
    for (unsigned j = 0; j < m; j++) { t = A[i][j]; B[i][j] += t; }
    #pragma hmppcg expand t, y
    for (unsigned j = 0; j < m; j++) { t = B[i][j]; A[i][j] += t; y[0] = t; }
    x[i] = t;
  }
  x[0] += t;
}
"""
PARITY = """
void parity(unsigned char n, unsigned res[n + 64]) {
  for (long k = (n - 7) / 2 + 2; k < 6; ++k)
    for (short j = n - k; j < 1; j += 2) res[k + 5] = n + j;
}
"""
TRMM = """
void trmm(int n, int m, double alpha, double A[n][n], double B[n][m]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      for (int k = i + 1; k < n; k++) B[i][j] += A[k][i] * B[k][j];
      B[i][j] = alpha * B[i][j];
    }
}
"""
OLD = """
void old(int n, int m, float x[n], float y[n], float A[n][m], int c[n]) {
  float t;
  for (int k = 0; k < m; k++) {
    for (int i = n - 2; i >= 1; i--) {
      t = x[i - 1];
      if (c[i] > 0) x[i] = t * x[i] + A[i][k];
      y[i] = y[i - 1] + x[i];
    }
    for (int i = 0; i < n; i++) A[i][k] += A[n - 1][k] * y[i];
  }
}
"""
CASES = {
    "doitgen r q": (DOITGEN, BOTH),
    "doitgen r": (DOITGEN, BOTH[:1]),
    "doitgen q": (DOITGEN, BOTH[1:]),
    "doitgen schedule": (DOITGEN, (*BOTH, "loop r: schedule")),
    "doitgen permute": (DOITGEN, (*BOTH, "loop r: permute q, r", "loop 3: tile p:4")),
    "doitgen distribute": (DOITGEN, (*BOTH, "loop r: distribute", "loop 4: unroll 2")),
    "doitgen fuse": (DOITGEN, (*BOTH, "loop r: gridify(r, q)", "loop 6: noParallel")),
    "durbin z": (DURBIN, ("loop k: expand z, sum",)),
    "adi t": (ADI, ("loop t: expand p, q, v",)),
    "adi i": (ADI, ("loop 2: expand p, q", "loop 5: expand q, p")),
    "rows": (ROWS, ("loop i: expand t, row, u",)),
    "rows distribute": (ROWS, ("loop i: expand t, row", "loop i: distribute", "loop 1.2: permute j, i")),
    "rows inner": (ROWS, ("loop 2: expand u", "loop 2: distribute")),
    "data": (DATA, ("loop i: expand t, y", "loop 2: expand t")),
    "strides": (STRIDES, ("loop i: expand y",)),
    "mixed": (MIXED, ()),
    "parity": (PARITY, ("loop j: expand res",)),
    "trmm": (TRMM, ("loop i: snapshot B", "loop k: tile 4", "loop j: unroll 2, jam")),
    "trmm j": (TRMM, ("loop i: snapshot B", "loop i: permute j, i")),
    "old": (OLD, ("loop 2: snapshot x, y", "loop 2: expand t", "loop 3: snapshot A")),
}
"""By name: the text, and its directives."""


def expanded(text: str, lines: tuple[str, ...]) -> tuple[Codelet, ScheduleResult]:
    """The codelet, and the same under the directives."""
    codelet = load(text).codelet
    return codelet, schedule(Analysis(codelet), parse_lines(lines))


def planned(name: str) -> Plan:
    """A case for a GPU."""
    return lower(expanded(*CASES[name])[1].codelet, blocks=True)
