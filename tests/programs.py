"""C functions that between them use everything a codelet may hold, each with the sizes it is run at.

``tolerance`` is for values that pass through a sum or a math function; zero asks for every bit.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Program:
    name: str
    text: str
    sizes: dict[str, int | float] = field(default_factory=dict)
    tolerance: float = 0.0


INTEGERS = (
    Program(
        "division truncates",
        """
void f(int n, int a[n], int b[n], int q[n][n], int r[n][n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      if (b[j] != 0) {
        q[i][j] = a[i] / b[j] + (i - 5) / 3 - (-7) / (j + 1);
        r[i][j] = a[i] % b[j] + (i - 5) % 3 - (-7) % (j + 1);
      }
}
""",
        {"n": 17},
    ),
    Program(
        "int wraps",
        """
void f(int n, int a[n], int b[n], int s[4]) {
  for (int i = 0; i < n; i++) {
    a[i] = a[i] * 1000003 * (i + 77777);
    b[i] = -(a[i] + 2147483647) - i + (a[i] << 5) + (a[i] >> 3) + abs(a[i]) / 2;
  }
  for (int i = 0; i < n; i++) { s[0] += b[i] * 65537; s[1] ^= a[i]; s[2] |= b[i] & ~i; s[3] -= a[i]; }
}
""",
        {"n": 19},
    ),
    Program(
        "unsigned arithmetic",
        """
void f(int n, unsigned u[n], unsigned v[n], int x[n], unsigned char c[n]) {
  for (int i = 0; i < n; i++) {
    unsigned w = u[i] - 7;
    v[i] = w / 3 + w % 10 + (w >> 1) + (w << 4) + (u[i] - v[i]) * 2654435761u + ~u[i] + -u[i];
    x[i] = (x[i] < u[i]) + 2 * (-1 < 1u) + 4 * (w > 100u) + 8 * ((int)w < 100) + (int)(w / 2) % 16;
    c[i] = c[i] - 9 + x[i];
  }
}
""",
        {"n": 13},
    ),
    Program(
        "64 bits",
        """
void f(int n, long l[n], unsigned long u[n], int x[n]) {
  for (int i = 0; i < n; i++) {
    u[i] = u[i] * 6364136223846793005ul + 1442695040888963407ul;
    u[i] ^= u[i] >> 33;
    l[i] = (long)(u[i] % 1000003ul) - l[i] * 3000000000l + (long)(u[i] / 7) / -3;
    u[i] = u[i] - 1;
    x[i] = u[i] + l[i] > 5ul ? (int)(u[i] >> 40) : -(int)l[i];
    x[i] += (u[i] > 9223372036854775808ul) + (l[i] < 0) * 2;
  }
}
""",
        {"n": 11},
    ),
    Program(
        "small types promote",
        """
void f(int n, signed char c[n], short s[n], unsigned char b[n], unsigned short h[n], int x[n]) {
  for (int i = 0; i < n; i++) {
    x[i] = c[i] * c[i] * 1000 + s[i] * b[i] - h[i] * 3 + (b[i] - 300) + ~b[i] + (c[i] << 4) + !c[i];
    c[i] = c[i] * 37; s[i] = s[i] * 9999 + c[i]; b[i] += 250; h[i] -= 20; b[i] >>= 1; h[i] ^= 0xABCD; c[i] /= 3;
  }
}
""",
        {"n": 12},
    ),
    Program(
        "mixed conversions",
        """
void f(int n, int x[n], unsigned u[n], float a[n], double d[n], signed char c[n]) {
  for (int i = 0; i < n; i++) {
    d[i] = x[i] / 2 + x[i] / 2.0 + u[i] * 0.5f + (float)x[i] / 3 + (x[i] - u[i]) / 4;
    a[i] = x[i] + u[i] + 16777217 + (i & 1);
    x[i] = (int)(d[i] * -1.75) + (int)a[i] + (a[i] > 0) + !d[i] + (a[i] && d[i]) + (x[i] || 0);
    c[i] = (signed char)x[i];
    u[i] += 2.75f;
  }
}
""",
        {"n": 14},
        1e-15,
    ),
    Program(
        "bits",
        """
void f(int n, int x[n], int y[n]) {
  for (int i = 0; i < n; i++) {
    int v = x[i];
    v = (v & 0x55) | (v ^ i) << 1 | 1 << (i & 7);
    y[i] = v & v - 1 ^ ~v | -v & 15;
    y[i] <<= 2; y[i] >>= 1; y[i] %= 1000; y[i] &= ~3; y[i] |= i; y[i] ^= v;
  }
}
""",
        {"n": 16},
    ),
)

FLOATS = (
    Program(
        "literals have C's types",
        """
void f(int n, float a[n], double d[n], float s, double t) {
  for (int i = 0; i < n; i++) {
    a[i] = a[i] * 0.1 + 0.3f * s - 1.0 / 3 + a[i] / 7;
    d[i] = a[i] * 0.1f + d[i] * 0.1 + s * t + 1 / 3 + 1e-3f;
  }
}
""",
        {"n": 33},
        1e-6,
    ),
    Program(
        "functions of double",
        """
#include <math.h>
void f(int n, double a[n], double b[n][20]) {
  for (int i = 0; i < n; i++) {
    double x = fabs(a[i]) / 4 + 0.25, y = a[i] / 4;
    b[i][0] = sqrt(x); b[i][1] = pow(x, y); b[i][2] = exp(y); b[i][3] = exp2(y); b[i][4] = expm1(y);
    b[i][5] = log(x); b[i][6] = log2(x); b[i][7] = log10(x); b[i][8] = log1p(x); b[i][9] = sin(y);
    b[i][10] = cos(y); b[i][11] = tan(y); b[i][12] = asin(y / 8); b[i][13] = acos(y / 8); b[i][14] = atan(y);
    b[i][15] = atan2(y, x); b[i][16] = sinh(y); b[i][17] = cosh(y); b[i][18] = tanh(y); b[i][19] = cbrt(y * y * y);
  }
}
""",
        {"n": 9},
        1e-14,
    ),
    Program(
        "functions of float",
        """
#include <math.h>
void f(int n, float a[n], float b[n][18]) {
  for (int i = 0; i < n; i++) {
    float x = fabsf(a[i]) / 4 + 0.25f, y = a[i] / 4;
    b[i][0] = sqrtf(x); b[i][1] = powf(x, y); b[i][2] = expf(y); b[i][3] = logf(x); b[i][4] = sinf(y);
    b[i][5] = cosf(y); b[i][6] = tanhf(y); b[i][7] = fmaf(x + y, x - y, y + 1); b[i][8] = hypotf(x, y);
    b[i][9] = fminf(x, y); b[i][10] = fmaxf(x, y); b[i][11] = fmodf(y, x); b[i][12] = cbrtf(x);
    b[i][13] = floorf(y); b[i][14] = ceilf(y); b[i][15] = truncf(y); b[i][16] = roundf(y); b[i][17] = copysignf(x, y);
  }
}
""",
        {"n": 9},
        1e-14,
    ),
    Program(
        "more functions of double",
        """
#include <math.h>
void f(int n, double a[n], double b[n][8]) {
  for (int i = 0; i < n; i++) {
    double x = fabs(a[i]) / 4 + 0.25, y = a[i] / 4;
    b[i][0] = fmin(x, y) - fmax(y, 0); b[i][1] = fmod(y, x); b[i][2] = fma(x - 1, y + 1, x + y); b[i][3] = hypot(x, y);
    b[i][4] = copysign(x, y) * -fabs(y); b[i][5] = sqrt(a[i]) > 1; b[i][6] = abs(-i) + labs(-3l);
    b[i][7] = fmod(-7.5, 2);
  }
}
""",
        {"n": 9},
        1e-14,
    ),
    Program(
        "rounding of large and special values",
        """
#include <math.h>
void f(double v[12], double r[4][12]) {
  v[0] = 1e300; v[1] = -1e300; v[2] = INFINITY; v[3] = -INFINITY; v[4] = NAN; v[5] = 0.49999999999999994;
  v[6] = -2.5; v[7] = 4503599627370497.0; v[8] = -0.25; v[9] = 3e9; v[10] = 2.5; v[11] = -1e19;
  for (int i = 0; i < 12; i++) {
    r[0][i] = floor(v[i]); r[1][i] = ceil(v[i]); r[2][i] = trunc(v[i]); r[3][i] = round(v[i]);
  }
}
""",
    ),
    Program(
        "comparisons with nan",
        """
#include <math.h>
void f(int n, double a[n], int c[n][8], double m[n][2]) {
  a[1] = NAN; a[2] = INFINITY; a[3] = -0.0;
  for (int i = 0; i < n; i++) {
    c[i][0] = a[i] < 1; c[i][1] = a[i] != a[i]; c[i][2] = !(a[i] >= 1); c[i][3] = a[i] == 0; c[i][4] = !a[i];
    c[i][5] = a[i] ? 3 : 4; c[i][6] = a[i] > 0 && a[i] < 2; c[i][7] = a[i] > 0 || a[i] < -2;
    m[i][0] = fmax(a[i], 0.5); m[i][1] = a[i] > 0.5 ? a[i] : 0.5;
  }
}
""",
        {"n": 6},
    ),
    Program(
        "division by zero",
        """
void f(int n, double a[n], double b[n], float c[n]) {
  for (int i = 0; i < n; i++) { b[i] = a[i] / (i - 2.0); c[i] = (i - 3) / (c[i] - c[i]); }
}
""",
        {"n": 6},
    ),
)

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

MORE = (
    Program(
        "an unsigned char as an index",
        """
void f(int n, signed char s[n], int h[256], unsigned char b[n]) {
  for (int i=0;i<n;i++) h[(unsigned char)s[i]]++;
  for (int i=0;i<n;i++) h[b[i] - 0]+=2;
}
""",
        {"n": 20},
    ),
    Program(
        "sizes of type size_t",
        """
#include <stddef.h>
void f(size_t n, float a[n], float b[n]) {
  for (size_t i=0;i+1<n;i++) a[i]=b[i+1];
  for (size_t i=0;i<n-1;i++) a[i]+=b[n-1-i];
}
""",
        {"n": 9},
    ),
    Program(
        "an array of each iteration",
        """
void f(int n, float a[n][4], float b[n][4]) {
  for (int i=0;i<n;i++){ float t[2][4];
    for(int k=0;k<4;k++){t[0][k]=a[i][k];t[1][k]=a[i][3-k];} for(int k=0;k<4;k++) b[i][k]=t[0][k]*t[1][k]; }
}
""",
        {"n": 7},
    ),
    Program(
        "maximum and count",
        """
void f(int n, int m, double a[n][m], double *mx, int *cnt) {
  *mx=a[0][0];
  *cnt=0;
  for (int i=0;i<n;i++) for (int j=0;j<m;j++) { if (a[i][j]>*mx) *mx=a[i][j]; *cnt+=a[i][j]>0; }
}
""",
        {"n": 6, "m": 5},
        1e-12,
    ),
    Program(
        "long loop variables",
        """
void f(long n, long m, double a[n][m]) {
  for (long i=0;i<n;i++) for (long j=0;j<m;j++) a[i][j]+=i*m+j;
}
""",
        {"n": 6, "m": 5},
        1e-12,
    ),
    Program(
        "a stencil with loops inside",
        """
void f(int n, int m, float in[n][m], float out[n][m], float w[3][3]) {
  for (int i=1;i<n-1;i++) for(int j=1;j<m-1;j++){ float s=0; for(int p=-1;p<=1;p++) for(int q=-1;q<=1;q++)
    s+=w[p+1][q+1]*in[i+p][j+q]; out[i][j]=s; }
}
""",
        {"n": 8, "m": 40},
    ),
    Program(
        "a recurrence of scalars",
        """
void f(int n, double x[n]) {
  double a=1,b=1,t;
  for (int i=0;i<n;i++) { t=a+b; a=b; b=t; x[i]=t; }
}
""",
        {"n": 12},
        1e-12,
    ),
    Program(
        "a loop from minus n",
        """
void f(int n, float x[2*n+1]) {
  for (int i=-n;i<=n;i++) x[i+n]=i*i;
}
""",
        {"n": 4},
    ),
    Program(
        "a step that is a parameter",
        """
void f(int n, int s, float x[n]) {
  for (int i=0;i<n;i+=s) x[i]=i;
  for (int i=n-1;i>=0;i-=s) x[i]+=1;
}
""",
        {"n": 13, "s": 3},
    ),
    Program(
        "shortest paths",
        """
void f(int n, int p[n][n]) {
  for (int k=0;k<n;k++) for(int i=0;i<n;i++) for(int j=0;j<n;j++)
    p[i][j]=p[i][j]<p[i][k]+p[k][j]?p[i][j]:p[i][k]+p[k][j];
}
""",
        {"n": 7},
    ),
    Program(
        "diagonals",
        """
#define MIN(a,b) ((a)<(b)?(a):(b))
#define MAX(a,b) ((a)>(b)?(a):(b))
void f(int n, int m, float a[n][m]) {
  for (int d=0;d<n+m-1;d++) for (int i=MAX(0,d-m+1);i<MIN(n,d+1);i++) a[i][d-i]+=d;
}
""",
        {"n": 6, "m": 4},
    ),
    Program(
        "a stencil in place",
        """
void f(int t, int n, double A[n][n]) {
  for (int s=0;s<t;s++) for(int i=1;i<n-1;i++) for(int j=1;j<n-1;j++)





    A[i][j]=(A[i-1][j-1]+A[i-1][j]+A[i-1][j+1]+A[i][j-1]+A[i][j]+A[i][j+1]+A[i+1][j-1]+A[i+1][j]+A[i+1][j+1])/9.0;
}
""",
        {"t": 2, "n": 7},
        1e-12,
    ),
    Program(
        "greatest common divisors",
        """
void f(int n, int x[n]) {
  for (int i=0;i<n;i++) { int a=x[i]<0?-x[i]:x[i], b=12; while (b) { int t=a%b; a=b; b=t; } x[i]=a; }
}
""",
        {"n": 9},
    ),
    Program(
        "four dimensions",
        """
void f(int n, float a[n][3][n][2]) {
  for (int i=0;i<n;i++) for (int j=0;j<3;j++) for (int k=0;k<n;k++) for (int l=0;l<2;l++)
    a[i][j][k][l]=i+10*j+100*k+1000*l;
}
""",
        {"n": 3},
    ),
    Program(
        "a bound that depends on data",
        """
void f(int n, int k[n], float a[n], float b[n]) {
  for (int i=0;i<n;i++) { int m = k[i] > 0 ? k[i] : 0; float s=0; for (int j=0;j<m;j++) s+=a[j]; b[i]=s; }
}
""",
        {"n": 12},
    ),
    Program(
        "a hash",
        """
void f(int n, long long x[n]) {
  long long m=1000000007LL;
  long long h=1;
  for (int i=0;i<n;i++) { h=(h*31+x[i])%m; x[i]=h; }
}
""",
        {"n": 12},
    ),
    Program(
        "one variable, signed and unsigned",
        """
void f(int n, float a[n]) {
  for (int i=-2;i<3;i++) a[i+2]+=i;
  for (int i=0;i<n;i++) { for (int j=-1;j<1;j++) a[i]+=j; for (int j=0;j<2;j++) a[i]-=j; }
}
""",
        {"n": 8},
    ),
    Program(
        "a host loop that doubles",
        """
void f(int n, float a[n][n]) {
  for (int s=1;s<n;s*=2) for (int i=0;i<n;i++) a[i][i]+=s;
  for (int d=n-1;d>0;d-=2) for (int i=0;i<d;i++) a[d][i]+=a[d-1][i];
}
""",
        {"n": 9},
    ),
    Program(
        "bytes of an image",
        """
void f(int h, int w, unsigned char a[h][w], unsigned char b[h][w]) {
  for (int y=1;y<h-1;y++) for (int x=1;x<w-1;x++) { int s=0; for (int d=-1;d<=1;d++) s+=a[y+d][x]; s/=3;
    b[y][x]=s>255?255:s; }
}
""",
        {"h": 6, "w": 7},
    ),
    Program(
        "a local array filled side by side",
        """
void f(int n, int a[n], int b[n]) {
  int z[n], m = 0;
  for (int t=1;t<4;t++) {
    for (int i=0;i<n;i++) z[i]=a[n-1-i]+t;
    for (int i=0;i<n;i++) a[i]=z[i]*2-b[i];
    for (int i=0;i<n;i++) if (a[i]>m) m=a[i];
    b[t]=m;
  }
}
""",
        {"n": 9},
    ),
    Program(
        "a double sum of floats",
        """
void f(int n, float a[n][n], float x[n], float y[n]) {
  for (int i=0;i<n;i++) { double s=0.0; for(int j=0;j<n;j++) s+=(double)a[i][j]*x[j]; y[i]=(float)s; }
}
""",
        {"n": 8},
        1e-12,
    ),
)

ALL = (*INTEGERS, *FLOATS, *CONTROL, *SHAPES, *MORE)
