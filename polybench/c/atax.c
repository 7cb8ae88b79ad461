/* y = A^T * (A * x), with A of m x n elements.
 *
 * Source: atax of PolyBench/C 4.2.1; program.h says how it is compiled and what it prints.
 */
#include "program.h"

#ifndef M
#define M SIZE(38, 116, 390, 1900, 1800)
#endif
#ifndef N
#define N SIZE(42, 124, 410, 2100, 2200)
#endif

#pragma hmpp atax codelet, target=CUDA
static void atax(int m, int n, DATA_TYPE A[m][n], DATA_TYPE x[n], DATA_TYPE y[n], DATA_TYPE tmp[m])
{
    int i, j;

    for (i = 0; i < n; i++)
        y[i] = 0;
    for (i = 0; i < m; i++) {
        tmp[i] = 0;
        for (j = 0; j < n; j++)
            tmp[i] = tmp[i] + A[i][j] * x[j];
        for (j = 0; j < n; j++)
            y[j] = y[j] + A[i][j] * tmp[i];
    }
}

static void init(int m, int n, DATA_TYPE A[m][n], DATA_TYPE x[n])
{
    int i, j;

    for (i = 0; i < n; i++)
        x[i] = 1 + REAL(i) / n;
    for (i = 0; i < m; i++)
        for (j = 0; j < n; j++)
            A[i][j] = REAL((i + j) % n) / (5 * m);
}

int main(void)
{
    int m = M, n = N;
    DATA_TYPE(*A)[n] = allocate(m, sizeof *A);
    DATA_TYPE *x = allocate(n, sizeof *x);
    DATA_TYPE *y = allocate(n, sizeof *y);
    DATA_TYPE *tmp = allocate(m, sizeof *tmp);

    init(m, n, A, x);
    start_clock();
    atax(m, n, A, x, y, tmp);
    stop_clock();
    report("y", 1, n, y);
    return 0;
}
