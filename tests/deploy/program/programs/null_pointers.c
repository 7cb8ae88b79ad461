#include <stdio.h>
#include <stdlib.h>

static void layer(int n, const double *bias, double *restrict y, const double scale[])
{
  for (int i = 0; i < n; i++) {
    y[i] *= 2;
    if (bias != NULL) y[i] += bias[i];
    y[i] += scale && i > 3 ? scale[i] : 0.5;
    if (!bias || i == 2) y[i] -= 1;
  }
}

static int above(int n, const double *y, const int *mask)
{
  int found = 0;
  for (int i = 0; i < n; i++)
    if (y[i] > 9 && (mask == NULL || mask[i])) found += i;
  return found;
}

int main(void)
{
  enum { N = 5000 };
  static double y[N], b[N];
  static int mask[N];
  for (int i = 0; i < N; i++) {
    y[i] = i % 7;
    b[i] = i % 5 - 2;
    mask[i] = i % 3;
  }
  for (int k = 0; k < 8; k++) {
    const double *bias = k & 1 ? b : NULL, *scale = k & 2 ? b : NULL, *more = k & 4 ? b : 0;
    layer(N, bias, y, scale);
    printf("%d\n", above(N, y, k & 4 ? mask : NULL));
    for (int i = 0; i < N; i++) {
      y[i] *= 0.25;
      if (more) y[i] += more[i];
    }
  }
  double s = 0;
  for (int i = 0; i < N; i++) s += y[i] * (i % 11);
  printf("%g\n", s);
  return 0;
}
