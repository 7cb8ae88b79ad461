/* s = A^T * r and q = A * p, the two products of a step of the biconjugate gradient method, with A of n x m elements.
 *
 * Source: bicg of PolyBench/C 4.2.1; program.h says how it is compiled and what it prints.
 */
#include "program.h"

#ifndef M
#define M SIZE(38, 116, 390, 1900, 1800)
#endif
#ifndef N
#define N SIZE(42, 124, 410, 2100, 2200)
#endif

#pragma hmpp bicg codelet, target=CUDA
static void bicg(int m, int n, DATA_TYPE A[n][m], DATA_TYPE s[m], DATA_TYPE q[n], DATA_TYPE p[m], DATA_TYPE r[n])
{
    int i, j;

    for (i = 0; i < m; i++)
        s[i] = 0;
    for (i = 0; i < n; i++) {
        q[i] = 0;
        for (j = 0; j < m; j++) {
            s[j] = s[j] + r[i] * A[i][j];
            q[i] = q[i] + A[i][j] * p[j];
        }
    }
}

static void init(int m, int n, DATA_TYPE A[n][m], DATA_TYPE p[m], DATA_TYPE r[n])
{
    int i, j;

    for (i = 0; i < m; i++)
        p[i] = REAL(i) / m;
    for (i = 0; i < n; i++) {
        r[i] = REAL(i) / n;
        for (j = 0; j < m; j++)
            A[i][j] = REAL(i * (j + 1) % n) / n;
    }
}

int main(void)
{
    int m = M, n = N;
    DATA_TYPE(*A)[m] = allocate(n, sizeof *A);
    DATA_TYPE *s = allocate(m, sizeof *s);
    DATA_TYPE *q = allocate(n, sizeof *q);
    DATA_TYPE *p = allocate(m, sizeof *p);
    DATA_TYPE *r = allocate(n, sizeof *r);

    init(m, n, A, p, r);
    start_clock();
    bicg(m, n, A, s, q, p, r);
    stop_clock();
    report("s", 1, m, s);
    report("q", 1, n, q);
    return 0;
}
