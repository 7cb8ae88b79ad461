"""Small codelets that many tests use."""

from __future__ import annotations

STEPS = """
void steps(int t, int n, float x[n], float y[n]) {
  for (int k = 0; k < t; k++) {
    for (int i = 1; i < n; i++) y[i] = x[i - 1] + k;
    for (int i = 0; i < n - k; i++) x[i] = 0.5f * y[i];
  }
}
"""
MANDELBROT = """\
void mandel(int h, int w, int most, int out[h][w]) {
  for (int y = 0; y < h; y++)
    for (int x = 0; x < w; x++) {
      double cr = -2.0 + 3.0 * x / w, ci = -1.5 + 3.0 * y / h, zr = 0, zi = 0;
      int it = 0;
      while (it < most && zr * zr + zi * zi < 4.0) {
        double t = zr * zr - zi * zi + cr;
        zi = 2 * zr * zi + ci;
        zr = t;
        it++;
      }
      out[y][x] = it;
    }
}
"""


def nest(body: str, params: str = "int n, double *x") -> str:
    return f"void f({params}) {{\n{body}\n}}\n"
