"""Integers: division, shifts, conversions and wrapping."""

from __future__ import annotations

from tests.programs.program import Program

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
