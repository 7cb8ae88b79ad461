/* The average of an element and its eight neighbours, in place, n x n elements and tsteps times.
 *
 * Source: seidel-2d of PolyBench/C 4.2.1; program.h says how it is compiled and what it prints.
 */
#include "program.h"

#ifndef TSTEPS
#define TSTEPS SIZE(20, 40, 100, 500, 1000)
#endif
#ifndef N
#define N SIZE(40, 120, 400, 2000, 4000)
#endif

#pragma hmpp seidel_2d codelet, target=CUDA
static void seidel_2d(int tsteps, int n, DATA_TYPE A[n][n])
{
    int t, i, j;

    for (t = 0; t <= tsteps - 1; t++)
        for (i = 1; i <= n - 2; i++)
            for (j = 1; j <= n - 2; j++)
                A[i][j] = (A[i - 1][j - 1] + A[i - 1][j] + A[i - 1][j + 1] + A[i][j - 1] + A[i][j] + A[i][j + 1] +
                           A[i + 1][j - 1] + A[i + 1][j] + A[i + 1][j + 1]) / REAL(9);
}

static void init(int n, DATA_TYPE A[n][n])
{
    int i, j;

    for (i = 0; i < n; i++)
        for (j = 0; j < n; j++)
            A[i][j] = (REAL(i) * (j + 2) + 2) / n;
}

int main(void)
{
    int tsteps = TSTEPS, n = N;
    DATA_TYPE(*A)[n] = allocate(n, sizeof *A);

    init(n, A);
    start_clock();
    seidel_2d(tsteps, n, A);
    stop_clock();
    report("A", n, n, *A);
    return 0;
}
