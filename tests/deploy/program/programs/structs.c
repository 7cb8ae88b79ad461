#include <stdio.h>
#include <stdlib.h>
struct grid { int n, m; double *u, *v; double sum; };
static double total;
int count = 0;
/* a whole function with a result */
#pragma hmpp axpy codelet, target=CUDA
void axpy(int n, double f, const double *x, double *y)
{
    for (int i = 0; i < n; i++)
        y[i] += f * x[i];
}
double dot(int n, const double *x, const double *y)
{
    double s = 0; // comment
    for (int i = 0; i < n; i++)
        s += x[i] * y[i];
    return s;
}
#pragma hmpp relax codelet, target=CUDA
void relax(struct grid *g)
{
    for (int i = 1; i < g->n - 1; i++)
        for (int j = 1; j < g->m - 1; j++)
            g->v[i * g->m + j] = 0.25 * (g->u[(i - 1) * g->m + j] + g->u[(i + 1) * g->m + j] + g->u[i * g->m + j - 1] + g->u[i * g->m + j + 1]);
}
#pragma hmpp accum codelet, target=CUDA
void accum(int n, double *x)
{
    for (int i = 0; i < n; i++) total += x[i];
}
#pragma hmpp shifted codelet, target=CUDA
void shifted(int n, double *p)
{
    for (int i = -2; i < n; i++) p[i] = 2 * p[i] + i;
}
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 40, m = n + 3, i, j;
    struct grid g = { n, m, malloc(n * m * sizeof(double)), calloc(n * m, sizeof(double)), 0 };
    for (i = 0; i < n; i++) for (j = 0; j < m; j++) g.u[i * m + j] = (i * 7 + j * 3) % 11;
    for (int t = 0; t < 5; t++) { relax(&g); double *s = g.u; g.u = g.v; g.v = s; }
    accum(n * m, g.u);
    shifted(n - 2, g.u + 2);
    axpy(n * m, 2.5, g.v, g.u);
    printf("%.17g %.17g %.17g\n", dot(n * m, g.u, g.v), total, g.u[0]);
    return 0;
}
