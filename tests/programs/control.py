"""Control: conditions, loops of every form, and while."""

from __future__ import annotations

from tests.programs.program import Program

CONTROL = (
    Program(
        "if and else",
        """
void f(int n, float a[n], int c[n]) {
  for (int i = 0; i < n; i++) {
    if (a[i] > 1) { a[i] -= 1; c[i] = 1; }
    else if (a[i] < -1 && c[i] > 0) a[i] += 1;
    else { c[i] = c[i] > 3 ? -c[i] : c[i] < 0 ? 0 : 7; if (!c[i]) a[i] = 0; }
  }
}
""",
        {"n": 40},
    ),
    Program(
        "guards protect accesses",
        """
void f(int n, int m, float a[n][m], float b[n][m]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      b[i][j] = i > 0 && a[i - 1][j] > 0 ? a[i - 1][j] : 0;
      if (j + 1 < m && i < n - 1) b[i][j] += a[i + 1][j + 1];
      if (j == 0 || a[i][j - 1] < 0) b[i][j] -= 1;
    }
}
""",
        {"n": 5, "m": 7},
    ),
    Program(
        "while loops",
        """
void f(int n, int x[n], double r[n], int steps[1]) {
  for (int i = 0; i < n; i++) {
    int v = x[i] * x[i] + 1, c = 0;
    while (v != 1 && c < 50) { if (v % 2) v = 3 * v + 1; else v /= 2; c++; }
    x[i] = c;
    double g = 1, t = r[i] * r[i] + 2;
    int k = 0;
    do { g = (g + t / g) / 2; k++; } while (k < 4);
    r[i] = g;
  }
  int i = 0;
  while (i < n) { steps[0] += x[i]; i += 2; }
}
""",
        {"n": 12},
        1e-15,
    ),
    Program(
        "loops of every form",
        """
void f(int n, int s, float x[n], float y[n], int t[8]) {
  int i, j;
  for (i = n - 1; i >= 0; i--) x[i] += i;
  t[0] = i;
  for (i = n - 2; i > 1; i -= 3) x[i] *= 2;
  t[1] = i;
  for (i = 1; i <= n - 2; i += 2) y[i] = x[i] - x[i + 1];
  t[2] = i;
  for (i = s; i < n; i += s) y[i] += s;
  t[3] = i;
  for (i = 5; i < 5; i++) y[0] = 99;
  t[4] = i;
  for (i = 9; i < 2; i += 4) y[0] = 98;
  for (i = -3; i < 3; i++) y[i + 3] += i;
  for (i = 0, j = n - 1; i < j; i++, j--) { float h = x[i]; x[i] = x[j]; x[j] = h; }
  t[5] = i - j;
  for (long k = 0; k < n; k++) x[k] += k;
  for (unsigned k = 1; k < (unsigned)n; k += 2) y[k] -= k;
  for (i = 0; i != n; ++i) if (x[i] > 3) continue; else y[i]++;
}
""",
        {"n": 21, "s": 4},
    ),
    Program(
        "zero-trip loops",
        """
void f(int n, int z, float a[n], float s[3]) {
  for (int i = 0; i < z; i++) a[i] = 77;
  for (int i = n; i < z; i++) for (int j = 0; j < n; j++) a[j] = 78;
  for (int i = 0; i < n; i++) { s[0] = i; for (int j = 0; j < z; j++) s[1] += a[j];
    for (int j = 3; j < i - 5; j++) s[2] += a[j]; }
  for (int i = n - 1; i > n; i--) a[i] = 79;
}
""",
        {"n": 10, "z": 0},
    ),
    Program(
        "triangular nests",
        """
void f(int n, double A[n][n], double x[n], double b[n]) {
  for (int i = 0; i < n; i++) {
    for (int j = 0; j <= i; j++) A[i][j] = A[i][j] / 8 + (i == j ? n : 0);
    for (int j = i + 1; j < n; j++) A[i][j] = 0.5 * A[i][j] / n;
  }
  for (int k = 0; k < n; k++) {
    for (int j = k + 1; j < n; j++) A[k][j] /= A[k][k];
    for (int i = k + 1; i < n; i++) for (int j = k + 1; j < n; j++) A[i][j] -= A[i][k] * A[k][j];
  }
  for (int i = 0; i < n; i++) { x[i] = b[i]; for (int j = 0; j < i; j++) x[i] -= A[i][j] * x[j];
    x[i] = x[i] / A[i][i]; }
  for (int i = n - 1; i >= 0; i--) for (int j = n - 1; j > i; j--) x[i] -= A[i][j] * x[j];
}
""",
        {"n": 11},
        1e-12,
    ),
    Program(
        "host decides",
        """
void f(int n, int mode, float a[n], float b[n]) {
  if (mode > 2) { for (int i = 0; i < n; i++) a[i] = b[i] + 1; }
  else { for (int i = 0; i < n; i++) a[i] = b[i] - 1; b[0] = 5; }
  if (n % 2 == 0 || !mode) for (int i = 0; i < n; i++) b[i] = a[n - 1 - i];
  for (int t = 0; t < mode; t++) { if (t & 1) for (int i = 0; i < n; i++) a[i] += t; else a[t] = b[t]; }
}
""",
        {"n": 9, "mode": 4},
    ),
)
