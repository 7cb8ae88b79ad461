"""Floating point: rounding, math functions and conversions."""

from __future__ import annotations

from tests.programs.program import Program

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
