"""Affine loop nests of the kinds that linear algebra, stencils and dynamic programming have, as C functions.

Between them: triangular bounds, loops that count down, time loops, recurrences, sums into scalars and elements,
maxima, conditions on indices, temporaries that are written before they are read.
"""

from __future__ import annotations

CODES = {
    "gemver": """
void gemver(int n, double a, double b, double A[n][n], double p[n], double q[n], double r[n], double s[n],
            double x[n], double y[n], double z[n], double w[n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      A[i][j] = A[i][j] + p[i] * q[j] + r[i] * s[j];
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      x[i] = x[i] + b * A[j][i] * y[j];
  for (int i = 0; i < n; i++)
    x[i] = x[i] + z[i];
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      w[i] = w[i] + a * A[i][j] * x[j];
}
""",
    "symm": """
void symm(int m, int n, double a, double b, double C[m][n], double A[m][m], double B[m][n]) {
  double t;
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      t = 0;
      for (int k = 0; k < i; k++) {
        C[k][j] += a * B[i][j] * A[i][k];
        t += B[k][j] * A[i][k];
      }
      C[i][j] = b * C[i][j] + a * B[i][j] * A[i][i] + a * t;
    }
}
""",
    "trmm": """
void trmm(int m, int n, double a, double A[m][m], double B[m][n]) {
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      for (int k = i + 1; k < m; k++)
        B[i][j] += A[k][i] * B[k][j];
      B[i][j] = a * B[i][j];
    }
}
""",
    "doitgen": """
void doitgen(int nr, int nq, int np, double A[nr][nq][np], double C[np][np], double row[np]) {
  for (int r = 0; r < nr; r++)
    for (int q = 0; q < nq; q++) {
      for (int p = 0; p < np; p++) {
        row[p] = 0.0;
        for (int s = 0; s < np; s++)
          row[p] += A[r][q][s] * C[s][p];
      }
      for (int p = 0; p < np; p++)
        A[r][q][p] = row[p];
    }
}
""",
    "cholesky": """
#include <math.h>
void cholesky(int n, double A[n][n]) {
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < i; j++) {
      for (int k = 0; k < j; k++)
        A[i][j] -= A[i][k] * A[j][k];
      A[i][j] /= A[j][j];
    }
    for (int k = 0; k < i; k++)
      A[i][i] -= A[i][k] * A[i][k];
    A[i][i] = sqrt(A[i][i]);
  }
}
""",
    "lu": """
void lu(int n, double A[n][n]) {
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < i; j++) {
      for (int k = 0; k < j; k++)
        A[i][j] -= A[i][k] * A[k][j];
      A[i][j] /= A[j][j];
    }
    for (int j = i; j < n; j++)
      for (int k = 0; k < i; k++)
        A[i][j] -= A[i][k] * A[k][j];
  }
}
""",
    "ludcmp": """
void ludcmp(int n, double A[n][n], double b[n], double x[n], double y[n]) {
  double w;
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < i; j++) {
      w = A[i][j];
      for (int k = 0; k < j; k++)
        w -= A[i][k] * A[k][j];
      A[i][j] = w / A[j][j];
    }
    for (int j = i; j < n; j++) {
      w = A[i][j];
      for (int k = 0; k < i; k++)
        w -= A[i][k] * A[k][j];
      A[i][j] = w;
    }
  }
  for (int i = 0; i < n; i++) {
    w = b[i];
    for (int j = 0; j < i; j++)
      w -= A[i][j] * y[j];
    y[i] = w;
  }
  for (int i = n - 1; i >= 0; i--) {
    w = y[i];
    for (int j = i + 1; j < n; j++)
      w -= A[i][j] * x[j];
    x[i] = w / A[i][i];
  }
}
""",
    "trisolv": """
void trisolv(int n, double L[n][n], double x[n], double b[n]) {
  for (int i = 0; i < n; i++) {
    x[i] = b[i];
    for (int j = 0; j < i; j++)
      x[i] -= L[i][j] * x[j];
    x[i] = x[i] / L[i][i];
  }
}
""",
    "durbin": """
void durbin(int n, double r[n], double y[n]) {
  double z[n];
  double alpha, beta, sum;
  y[0] = -r[0];
  beta = 1.0;
  alpha = -r[0];
  for (int k = 1; k < n; k++) {
    beta = (1 - alpha * alpha) * beta;
    sum = 0.0;
    for (int i = 0; i < k; i++)
      sum += r[k - i - 1] * y[i];
    alpha = -(r[k] + sum) / beta;
    for (int i = 0; i < k; i++)
      z[i] = y[i] + alpha * y[k - i - 1];
    for (int i = 0; i < k; i++)
      y[i] = z[i];
    y[k] = alpha;
  }
}
""",
    "deriche": """
void deriche(int w, int h, float a1, float a2, float b1, float b2, float in[w][h], float out[w][h],
             float y1[w][h], float y2[w][h]) {
  float xm1, ym1, ym2, xp1, xp2, yp1, yp2;
  for (int i = 0; i < w; i++) {
    ym1 = 0.0f;
    ym2 = 0.0f;
    xm1 = 0.0f;
    for (int j = 0; j < h; j++) {
      y1[i][j] = a1 * in[i][j] + a2 * xm1 + b1 * ym1 + b2 * ym2;
      xm1 = in[i][j];
      ym2 = ym1;
      ym1 = y1[i][j];
    }
  }
  for (int i = 0; i < w; i++) {
    yp1 = 0.0f;
    yp2 = 0.0f;
    xp1 = 0.0f;
    xp2 = 0.0f;
    for (int j = h - 1; j >= 0; j--) {
      y2[i][j] = a1 * xp1 + a2 * xp2 + b1 * yp1 + b2 * yp2;
      xp2 = xp1;
      xp1 = in[i][j];
      yp2 = yp1;
      yp1 = y2[i][j];
    }
  }
  for (int i = 0; i < w; i++)
    for (int j = 0; j < h; j++)
      out[i][j] = y1[i][j] + y2[i][j];
}
""",
    "floyd-warshall": """
void shortest(int n, int path[n][n]) {
  for (int k = 0; k < n; k++)
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++)
        path[i][j] = path[i][j] < path[i][k] + path[k][j] ? path[i][j] : path[i][k] + path[k][j];
}
""",
    "nussinov": """
#define BEST(a, b) ((a) >= (b) ? (a) : (b))
void fold(int n, int seq[n], int t[n][n]) {
  for (int i = n - 1; i >= 0; i--)
    for (int j = i + 1; j < n; j++) {
      if (j - 1 >= 0)
        t[i][j] = BEST(t[i][j], t[i][j - 1]);
      if (i + 1 < n)
        t[i][j] = BEST(t[i][j], t[i + 1][j]);
      if (j - 1 >= 0 && i + 1 < n) {
        if (i < j - 1)
          t[i][j] = BEST(t[i][j], t[i + 1][j - 1] + (seq[i] + seq[j] == 3 ? 1 : 0));
        else
          t[i][j] = BEST(t[i][j], t[i + 1][j - 1]);
      }
      for (int k = i + 1; k < j; k++)
        t[i][j] = BEST(t[i][j], t[i][k] + t[k + 1][j]);
    }
}
""",
    "adi": """
void adi(int steps, int n, double a, double b, double c, double d, double u[n][n], double v[n][n], double p[n][n],
         double q[n][n]) {
  for (int t = 1; t <= steps; t++) {
    for (int i = 1; i < n - 1; i++) {
      v[0][i] = 1.0;
      p[i][0] = 0.0;
      q[i][0] = v[0][i];
      for (int j = 1; j < n - 1; j++) {
        p[i][j] = -c / (a * p[i][j - 1] + b);
        q[i][j] = (-d * u[j][i - 1] + (1.0 + 2.0 * d) * u[j][i] - d * u[j][i + 1] - a * q[i][j - 1]) /
                  (a * p[i][j - 1] + b);
      }
      v[n - 1][i] = 1.0;
      for (int j = n - 2; j >= 1; j--)
        v[j][i] = p[i][j] * v[j + 1][i] + q[i][j];
    }
    for (int i = 1; i < n - 1; i++) {
      u[i][0] = 1.0;
      p[i][0] = 0.0;
      q[i][0] = u[i][0];
      for (int j = 1; j < n - 1; j++) {
        p[i][j] = -c / (a * p[i][j - 1] + b);
        q[i][j] = (-d * v[i - 1][j] + (1.0 + 2.0 * d) * v[i][j] - d * v[i + 1][j] - a * q[i][j - 1]) /
                  (a * p[i][j - 1] + b);
      }
      u[i][n - 1] = 1.0;
      for (int j = n - 2; j >= 1; j--)
        u[i][j] = p[i][j] * u[i][j + 1] + q[i][j];
    }
  }
}
""",
    "fdtd-2d": """
void fdtd(int steps, int nx, int ny, double ex[nx][ny], double ey[nx][ny], double hz[nx][ny], double f[steps]) {
  for (int t = 0; t < steps; t++) {
    for (int j = 0; j < ny; j++)
      ey[0][j] = f[t];
    for (int i = 1; i < nx; i++)
      for (int j = 0; j < ny; j++)
        ey[i][j] -= 0.5 * (hz[i][j] - hz[i - 1][j]);
    for (int i = 0; i < nx; i++)
      for (int j = 1; j < ny; j++)
        ex[i][j] -= 0.5 * (hz[i][j] - hz[i][j - 1]);
    for (int i = 0; i < nx - 1; i++)
      for (int j = 0; j < ny - 1; j++)
        hz[i][j] -= 0.7 * (ex[i][j + 1] - ex[i][j] + ey[i + 1][j] - ey[i][j]);
  }
}
""",
    "heat-3d": """
void heat(int steps, int n, double A[n][n][n], double B[n][n][n]) {
  for (int t = 1; t <= steps; t++) {
    for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < n - 1; j++)
        for (int k = 1; k < n - 1; k++)
          B[i][j][k] = 0.25 * A[i][j][k] + 0.125 * (A[i + 1][j][k] + A[i - 1][j][k] + A[i][j + 1][k] + A[i][j - 1][k]
                                                    + A[i][j][k + 1] + A[i][j][k - 1]);
    for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < n - 1; j++)
        for (int k = 1; k < n - 1; k++)
          A[i][j][k] = 0.25 * B[i][j][k] + 0.125 * (B[i + 1][j][k] + B[i - 1][j][k] + B[i][j + 1][k] + B[i][j - 1][k]
                                                    + B[i][j][k + 1] + B[i][j][k - 1]);
  }
}
""",
    "jacobi-1d": """
void jacobi(int steps, int n, double A[n], double B[n]) {
  for (int t = 0; t < steps; t++) {
    for (int i = 1; i < n - 1; i++)
      B[i] = 0.33333 * (A[i - 1] + A[i] + A[i + 1]);
    for (int i = 1; i < n - 1; i++)
      A[i] = 0.33333 * (B[i - 1] + B[i] + B[i + 1]);
  }
}
""",
    "jacobi-2d": """
void jacobi2(int steps, int n, double A[n][n], double B[n][n]) {
  for (int t = 0; t < steps; t++) {
    for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < n - 1; j++)
        B[i][j] = 0.2 * (A[i][j] + A[i][j - 1] + A[i][1 + j] + A[1 + i][j] + A[i - 1][j]);
    for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < n - 1; j++)
        A[i][j] = 0.2 * (B[i][j] + B[i][j - 1] + B[i][1 + j] + B[1 + i][j] + B[i - 1][j]);
  }
}
""",
    "seidel-2d": """
void seidel(int steps, int n, double A[n][n]) {
  for (int t = 0; t <= steps - 1; t++)
    for (int i = 1; i <= n - 2; i++)
      for (int j = 1; j <= n - 2; j++)
        A[i][j] = (A[i - 1][j - 1] + A[i - 1][j] + A[i - 1][j + 1] + A[i][j - 1] + A[i][j] + A[i][j + 1]
                   + A[i + 1][j - 1] + A[i + 1][j] + A[i + 1][j + 1]) / 9.0;
}
""",
}
