#include <stdio.h>
#ifndef N
#define N 10
#endif
#ifdef _OPENMP
#define W 3
#else
#define W 2
#endif
#ifdef __OPTIMIZE__
#define O 11
#else
#define O 12
#endif
#if __STDC_VERSION__ >= 201112L
#define S 5
#else
#define S 4
#endif
#ifndef M
#define M 5
#endif
#define K 7
#pragma hmpp f codelet
void f(double x[M])
{
    int i;
    for (i = 0; i < M; i++)
        x[i] += N * 10000 + W * 1000 + O * 10 + S + F(i) + K / 8.0;
}
int main(void)
{
    static double x[50];
    double s = 0;
    int i;
    f(x);
    for (i = 0; i < 50; i++)
        s += x[i] * (i + 1);
    printf("%.17g\n", s);
    return 0;
}
