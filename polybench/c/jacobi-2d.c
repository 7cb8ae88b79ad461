/* The average of an element and its four neighbours, n x n elements: tsteps times from A to B and from B to A.
 *
 * Source: jacobi-2d of PolyBench/C 4.2.1; program.h says how it is compiled and what it prints.
 */
#include "program.h"

#ifndef TSTEPS
#define TSTEPS SIZE(20, 40, 100, 500, 1000)
#endif
#ifndef N
#define N SIZE(30, 90, 250, 1300, 2800)
#endif

#pragma hmpp jacobi_2d codelet, target=CUDA
static void jacobi_2d(int tsteps, int n, DATA_TYPE A[n][n], DATA_TYPE B[n][n])
{
    int t, i, j;

    for (t = 0; t < tsteps; t++) {
        for (i = 1; i < n - 1; i++)
            for (j = 1; j < n - 1; j++)
                B[i][j] = REAL(0.2) * (A[i][j] + A[i][j - 1] + A[i][j + 1] + A[i + 1][j] + A[i - 1][j]);
        for (i = 1; i < n - 1; i++)
            for (j = 1; j < n - 1; j++)
                A[i][j] = REAL(0.2) * (B[i][j] + B[i][j - 1] + B[i][j + 1] + B[i + 1][j] + B[i - 1][j]);
    }
}

static void init(int n, DATA_TYPE A[n][n], DATA_TYPE B[n][n])
{
    int i, j;

    for (i = 0; i < n; i++) {
        for (j = 0; j < n; j++) {
            A[i][j] = (REAL(i) * (j + 2) + 2) / n;
            B[i][j] = (REAL(i) * (j + 3) + 3) / n;
        }
    }
}

int main(void)
{
    int tsteps = TSTEPS, n = N;
    DATA_TYPE(*A)[n] = allocate(n, sizeof *A);
    DATA_TYPE(*B)[n] = allocate(n, sizeof *B);

    init(n, A, B);
    start_clock();
    jacobi_2d(tsteps, n, A, B);
    stop_clock();
    report("A", n, n, *A);
    return 0;
}
