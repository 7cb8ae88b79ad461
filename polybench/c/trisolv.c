/* L * x = b solved for x, with L of n x n elements, lower triangular.
 *
 * Source: trisolv of PolyBench/C 4.2.1; program.h says how it is compiled and what it prints.
 */
#include "program.h"

#ifndef N
#define N SIZE(40, 120, 400, 2000, 4000)
#endif

#pragma hmpp trisolv codelet, target=CUDA
static void trisolv(int n, DATA_TYPE L[n][n], DATA_TYPE x[n], DATA_TYPE b[n])
{
    int i, j;

    for (i = 0; i < n; i++) {
        x[i] = b[i];
        for (j = 0; j < i; j++)
            x[i] -= L[i][j] * x[j];
        x[i] = x[i] / L[i][i];
    }
}

static void init(int n, DATA_TYPE L[n][n], DATA_TYPE x[n], DATA_TYPE b[n])
{
    int i, j;

    for (i = 0; i < n; i++) {
        x[i] = -999;
        b[i] = i;
        for (j = 0; j <= i; j++)
            L[i][j] = REAL(i + n - j + 1) * 2 / n;
    }
}

int main(void)
{
    int n = N;
    DATA_TYPE(*L)[n] = allocate(n, sizeof *L);
    DATA_TYPE *x = allocate(n, sizeof *x);
    DATA_TYPE *b = allocate(n, sizeof *b);

    init(n, L, x, b);
    start_clock();
    trisolv(n, L, x, b);
    stop_clock();
    report("x", 1, n, x);
    return 0;
}
