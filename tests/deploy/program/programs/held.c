#include <stdio.h>
#include <stdlib.h>
#pragma hmpp step codelet
static void step(int n, const double *a, double *b)
{
    for (int i = 1; i < n - 1; i++) b[i] = 0.5 * a[i] + 0.25 * (a[i - 1] + a[i + 1]);
}
#pragma hmpp scale codelet
static void scale(int n, double f, double *a)
{
    for (int i = 0; i < n; i++) a[i] *= f;
}
static double work(int n, int steps, double *a, double *b)
{
    double *t;
    for (int k = 0; k < steps; k++) {
        step(n, a, b);
        t = a, a = b, b = t;
        if (k % 3 == 0)
            scale(n, 1.01, a);
    }
    scale(n, 2, a);
    a[0] += 1;
    scale(n, 2, a);
    double s = 0;
    for (int i = 0; i < n; i++) s += a[i] * (i % 5) + b[i];
    return s;
}
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 500;
    double *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b);
    for (int i = 0; i < n; i++) a[i] = b[i] = (i * 37) % 19;
    printf("%.12g\n", work(n, 20, a, b));
}
