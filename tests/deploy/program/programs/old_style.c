/* Definitions as before C89, without types of results, with and without types of parameters. */
#include <stdio.h>
#define N 300

double a[N];

scale(a, n, x)
double *a, x;
{
    int i;
#pragma scop
    for (i = 0; i < n; i++)
        a[i] = a[i] * x + i;
#pragma endscop
}

#pragma hmpp shift codelet, target=CUDA, args[b].io=out
shift(n, a, b)
int n;
double a[N];
float b[N];
{
    register i;
    for (i = 0; i < n; i++)
        b[i] = a[n - 1 - i] + 1;
}

double total(b, n)
float *b;
int n;
{
    int i;
    double s = 0;
#pragma scop
    for (i = 0; i < n; i++)
        s += b[i] > 100 ? 1 : 2;
#pragma endscop
    return s;
}

count(b, n)
float *b;
int n;
{
    int i, s = 0;
#pragma scop
    for (i = 0; i < n; i++)
        s += b[i] > 50;
#pragma endscop
    return s;
}

main()
{
    static float b[N];
    int i;
    for (i = 0; i < N; i++)
        a[i] = i % 17;
    scale(a, N, 1.5);
#pragma hmpp shift callsite
    shift(N, a, b);
    for (i = 0; i < N; i += 29)
        printf("%g %g\n", a[i], b[i]);
    double s = 0;
    s = total(b, N);
    printf("%g\n", s);
    i = count(b, N);
    printf("%d\n", i);
    return 0;
}
