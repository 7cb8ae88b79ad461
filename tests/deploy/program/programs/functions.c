#include <stdio.h>
#include <math.h>
#include <complex.h>
enum { N = 50 };
typedef struct { float re, im; } pair;
float dot(int n, const float *x, const float *y)
{
    float s = 0;
    for (int i = 0; i < n; i++) s += x[i] * y[i];
    return s;
}
int find(int n, const float *x, float v)
{
    int at = -1;
    for (int i = 0; i < n; i++) if (x[i] == v) at = i;
    return at;
}
static float field[N][N], (*rows)[N] = field;
static unsigned char bytes[N]; static long long counts[4];
void tables(int n)
{
    int i, j; // a comment }
#pragma scop
    for (i = 0; i < n; i++)
        for (j = 0; j < n; j++)
            field[i][j] = i + 2 * j;
    for (i = 0; i < n; i++) bytes[i] = (unsigned char)(i * 7);
    for (i = 0; i < n; i++) counts[i % 4] += bytes[i]; // }
#pragma endscop
    printf("%d %d\n", i, j);
}
void pairs(int n, pair *p, double complex *z)
{
    for (int i = 0; i < n; i++) { p[i].re += 2 * p[i].im; z[i] *= 2.0 + 1.0 * I; }
}
void aliased(int n, float *a, float *b) { for (int i = 0; i < n; i++) b[i] = a[i] + 1; }
int main(void)
{
    static float x[N], y[N]; pair p[N]; double complex z[N];
    for (int i = 0; i < N; i++) { x[i] = i; y[i] = 1 - i * .5f; p[i].re = i; p[i].im = 2; z[i] = i + I; }
    printf("%g %d %d line %d\n", dot(N, x, y), find(N, x, 7), find(N, x, 7.5f), __LINE__);
    tables(N);
    pairs(N, p, z);
    aliased(N - 1, x, x + 1);
    aliased(0, 0, 0); aliased(-5, 0, 0);
    double s = 0; for (int i = 0; i < N; i++) s += field[i][3] * bytes[i] + p[i].re * creal(z[i]) - cimag(z[i]) + x[i] * i;
    printf("%.12g %lld %lld %s\n", s, counts[0], counts[3], __FILE__);
}
