"""Shapes of nests: temporaries, local and flat arrays, several nests, names."""

from __future__ import annotations

from tests.programs.program import Program

SHAPES = (
    Program(
        "a time loop around parallel loops",
        """
void f(int steps, int n, int m, float A[n][m], float B[n][m]) {
  for (int t = 0; t < steps; t++) {
    for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < m - 1; j++)
        B[i][j] = 0.2f * (A[i][j] + A[i][j - 1] + A[i][j + 1] + A[i + 1][j] + A[i - 1][j]);
    for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < m - 1; j++)
        A[i][j] = B[i][j];
    A[0][t % m] = t;
  }
}
""",
        {"steps": 3, "n": 9, "m": 38},
        1e-15,
    ),
    Program(
        "several nests and temporaries",
        """
void f(int n, int m, double A[n][m], double x[m], double y[m], double t[n], double *out) {
  double norm = 0, worst;
  for (int i = 0; i < m; i++) y[i] = 0;
  for (int i = 0; i < n; i++) { t[i] = 0; for (int j = 0; j < m; j++) t[i] = t[i] + A[i][j] * x[j];
    for (int j = 0; j < m; j++) y[j] = y[j] + A[i][j] * t[i]; }
  for (int j = 0; j < m; j++) norm += y[j] * y[j];
  worst = y[0];
  for (int j = 1; j < m; j++) if (y[j] > worst) worst = y[j];
  for (int j = 0; j < m; j++) y[j] = y[j] / (norm + 1) + worst;
  *out = worst;
}
""",
        {"n": 6, "m": 9},
        1e-12,
    ),
    Program(
        "the last value of a temporary",
        """
void f(int n, float a[n], float b[n], float c[4]) {
  float t = 0, u = 2, v;
  int last = -1;
  for (int i = 0; i < n; i++) { t = a[i] * 2; b[i] = t + 1; }
  c[0] = t;
  for (int i = 0; i < n; i++) { v = a[i]; if (v > 0) { u = v; last = i; } b[i] += v; }
  c[1] = u; c[2] = last; c[3] = v;
}
""",
        {"n": 13},
    ),
    Program(
        "temporaries under conditions",
        """
void f(int n, float a[n], float b[n]) {
  for (int i = 0; i < n; i++) {
    float t, s = 1;
    if (a[i] > 0) t = a[i]; else t = -2 * a[i];
    for (int k = 0; k < 3; k++) { float q = t * k; if (q > 1) s += q; }
    b[i] = s - t;
  }
}
""",
        {"n": 13},
    ),
    Program(
        "three dimensions",
        """
void f(int p, int q, int r, float A[p][q][r], float B[p][q][r + 1], float S[q]) {
  for (int i = 0; i < p; i++)
    for (int j = 0; j < q; j++)
      for (int k = 0; k < r; k++)
        B[i][j][k + 1] = A[p - 1 - i][j][k] + 2 * B[i][j][k + 1];
  for (int i = 0; i < p; i++)
    for (int j = 0; j < q; j++) {
      B[i][j][0] = 0;
      for (int k = 1; k <= r; k++) { B[i][j][0] += B[i][j][k]; S[j] += A[i][j][k - 1]; }
    }
}
""",
        {"p": 3, "q": 4, "r": 5},
        1e-14,
    ),
    Program(
        "flat arrays",
        """
void f(int n, int m, float *A, float *B, float c[n * m]) {
  for (int i = 1; i < n; i++)
    for (int j = 1; j < m - 1; j++) {
      B[i * m + j - 1] = A[i * m + j + 1] + A[(i - 1) * m + j];
      c[j * n + i] = B[i * m + j - 1] - i * m;
    }
}
""",
        {"n": 5, "m": 7},
    ),
    Program(
        "local arrays",
        """
void f(int n, float a[n], float b[n], float c[n][4]) {
  float tmp[n], w[4] = {1, -2, 0.5f};
  int first[3];
  for (int i = 0; i < n; i++) tmp[i] = a[i] * w[i % 4];
  for (int i = 0; i < 3; i++) first[i] = i * i;
  for (int i = 0; i < n; i++) b[i] = tmp[n - 1 - i] + first[i % 3];
  for (int i = 0; i < n; i++) {
    float row[4];
    for (int k = 0; k < 4; k++) row[k] = a[i] + k;
    for (int k = 0; k < 4; k++) c[i][k] = row[3 - k] * row[k];
  }
}
""",
        {"n": 11},
    ),
    Program(
        "indirect accesses",
        """
void f(int n, int idx[n], int hist[19], float a[n], float b[n], int perm[n]) {
  for (int i = 0; i < n; i++) hist[idx[i] + 9]++;
  for (int i = 0; i < n; i++) b[i] = a[(idx[i] + 9) % n];
  for (int i = 0; i < n; i++) perm[i] = n - 1 - i;
  for (int i = 0; i < n; i++) b[perm[i]] += a[perm[n - 1 - i]];
}
""",
        {"n": 15},
    ),
    Program(
        "scans and recurrences",
        """
void f(int n, double a[n], double s[n], int fib[n]) {
  s[0] = a[0];
  for (int i = 1; i < n; i++) s[i] = s[i - 1] + a[i];
  fib[0] = 0; fib[1] = 1;
  for (int i = 2; i < n; i++) fib[i] = fib[i - 1] + fib[i - 2];
  for (int i = n - 2; i >= 0; i--) a[i] = a[i + 1] * 0.5 + a[i];
  for (int i = 0; i < n - 2; i++) s[i] += s[i + 2];
}
""",
        {"n": 40},
        1e-14,
    ),
    Program(
        "one element again and again",
        """
void f(int n, int k0, double a[n], double b[n][n], double x[n]) {
  for (int i = 0; i < n; i++) { a[k0] += x[i]; a[i] *= 2; a[k0] -= a[i]; }
  for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) { b[i][i] += b[i][j]; b[i][j] = b[i][i] / 4; }
  for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) for (int k = 0; k < n; k++) b[i][j] += b[i][k] * x[k] / 64;
}
""",
        {"n": 6, "k0": 2},
        1e-12,
    ),
    Program(
        "gram-schmidt",
        """
#include <math.h>
void f(int m, int n, double A[m][n], double R[n][n], double Q[m][n]) {
  int i, j, k;
  double nrm;
  for (k = 0; k < n; k++) {
    nrm = 0;
    for (i = 0; i < m; i++) nrm += A[i][k] * A[i][k];
    R[k][k] = sqrt(nrm);
    for (i = 0; i < m; i++) Q[i][k] = A[i][k] / R[k][k];
    for (j = k + 1; j < n; j++) {
      R[k][j] = 0;
      for (i = 0; i < m; i++) R[k][j] += Q[i][k] * A[i][j];
      for (i = 0; i < m; i++) A[i][j] = A[i][j] - Q[i][k] * R[k][j];
    }
  }
}
""",
        {"m": 8, "n": 5},
        1e-10,
    ),
    Program(
        "correlation",
        """
#include <math.h>
void f(int m, int n, float fn, float data[n][m], float corr[m][m], float mean[m], float sd[m]) {
  float eps = 0.1f;
  for (int j = 0; j < m; j++) {
    mean[j] = 0.0; for (int i = 0; i < n; i++) mean[j] += data[i][j]; mean[j] /= fn;
    sd[j] = 0.0; for (int i = 0; i < n; i++) sd[j] += (data[i][j] - mean[j]) * (data[i][j] - mean[j]);
    sd[j] = sqrtf(sd[j] / fn); sd[j] = sd[j] <= eps ? 1.0f : sd[j];
  }
  for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) { data[i][j] -= mean[j]; data[i][j] /= sqrtf(fn) * sd[j]; }
  for (int i = 0; i < m - 1; i++) {
    corr[i][i] = 1.0;
    for (int j = i + 1; j < m; j++) {
      corr[i][j] = 0.0; for (int k = 0; k < n; k++) corr[i][j] += data[k][i] * data[k][j]; corr[j][i] = corr[i][j];
    }
  }
  corr[m - 1][m - 1] = 1.0;
}
""",
        {"m": 6, "n": 9, "fn": 9},
        1e-12,
    ),
    Program(
        "names that Python or the emitted code has",
        """
void f(int cores, int start, int stop, float in[cores], float lambda[cores], float range[cores], float cuda[cores],
       int first, int last, float grid[cores], float chunk, float trips, float math, float np, int chunks, int f_0) {
  float pass = 1;
  for (int def = 0; def < cores; def++) {
    float min = in[def] * chunk, int32_ = trips + math, max = np + start + stop + first + last + chunks + f_0;
    lambda[def] = range[def] + min * int32_ - max; cuda[def] = grid[def] * pass;
  }
  for (int i = first; i < last; i++) { float is = range[i]; grid[i] = is + start; range[i] = is - i; }
  for (int stream = start; stream < stop; stream++) for (int i = 0; i < stream; i++) in[stream] += lambda[i];
}
""",
        {"cores": 9, "start": 1, "stop": 6, "first": 2, "last": 8, "chunks": 3, "f_0": 5},
        1e-14,
    ),
    Program(
        "parameters that are written",
        """
void f(int n, float s, float a[n], int k) {
  s = s * 2 + 1; k++;
  for (int i = 0; i < n; i++) { a[i] += s; s += i; }
  n = n - 2;
  for (int i = 0; i < n; i++) a[i] *= k;
}
""",
        {"n": 9, "k": 2},
        1e-15,
    ),
    Program(
        "sizes through local copies",
        """
void f(int n, float a[n], float b[n]) {
  int half = n / 2, last = n - 1; const int two = 2;
  for (int i = 0; i < half; i++) a[i] = b[last - i];
  for (int i = half; i <= last; i += two) a[i] = b[i - half];
}
""",
        {"n": 13},
    ),
    Program(
        "a typedef, macros and a helper",
        """
typedef double real;
#define N 12
#define SQ(x) ((x) * (x))
static real clamp(real x, real lo, real hi) { return x < lo ? lo : x > hi ? hi : x; }
void f(real a[N], real b[N][N]) {
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < N; ++j) { b[i][j] = clamp(SQ(a[i]) - a[j], -1, 1); b[i][j] += +a[i]; }
}
""",
        {},
    ),
)
