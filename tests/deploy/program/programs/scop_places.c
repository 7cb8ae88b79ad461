/* Scops after labels, and as bodies without braces. */
#include <stdio.h>

static void f_if(int n, float *x, int k)
{
  if (k > 2)
#pragma scop
    for (int i = 0; i < n; i++) x[i] = 2 * x[i] + i;
#pragma endscop
}

static void f_else(int n, float *x, int k)
{
  if (k > 2) {
    x[0] = 1;
  } else
#pragma scop
    for (int i = 0; i < n; i++) x[i] = 2 * x[i] + i;
#pragma endscop
}

static void f_else_if(int n, float *x, int k)
{
  if (k > 3)
    x[0] = 1;
  else if (k > 1)
#pragma scop
    for (int i = 0; i < n; i++) x[i] = 2 * x[i] + i;
#pragma endscop
}

static void f_for(int n, float *x, int k)
{
  for (int t = 0; t < k; t++)
#pragma scop
    for (int i = 0; i < n; i++) x[i] = 2 * x[i] + i;
#pragma endscop
}

static void f_while(int n, float *x, int k)
{
  while (k-- > 0)
#pragma scop
    for (int i = 0; i < n; i++) x[i] = 2 * x[i] + i;
#pragma endscop
}

static void f_nested(int n, float *x, int k)
{
  for (int t = 0; t < k; t++)
    if (t % 2)
#pragma scop
    for (int i = 0; i < n; i++) x[i] = 2 * x[i] + i;
#pragma endscop
}

static void f_label(int n, float *x, int k)
{
  if (k > 3) goto out;
  x[0] = 1;
out:
#pragma scop
    for (int i = 0; i < n; i++) x[i] = 2 * x[i] + i;
#pragma endscop
}

static void f_label_two(int n, float *x, int k)
{
  if (k > 3) goto out;
  x[0] = 1;
out:
#pragma scop
    for (int i = 0; i < n; i++) x[i] = 2 * x[i] + i;
    x[1] = 3;
#pragma endscop
}

static void f_case(int n, float *x, int k)
{
  switch (k) {
  case 1:
  case 2:
#pragma scop
    for (int i = 0; i < n; i++) x[i] = 2 * x[i] + i;
#pragma endscop
    break;
  default:
    x[1] = 0;
  }
}

int main(void)
{
  static void (*const all[])(int, float *, int) = {f_if, f_else, f_else_if, f_for, f_while, f_nested, f_label, f_label_two, f_case};
  float x[100];
  for (unsigned f = 0; f < sizeof all / sizeof *all; f++)
    for (int k = 0; k < 6; k++) {
      double sum = 0;
      for (int i = 0; i < 100; i++) x[i] = i % 7;
      all[f](100, x, k);
      for (int i = 0; i < 100; i++) sum += x[i] * (i + 1);
      printf("%u %d %g\n", f, k, sum);
    }
  return 0;
}
