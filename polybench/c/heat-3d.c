/* The heat equation in three dimensions, n x n x n elements: tsteps times from A to B and from B to A.
 *
 * Source: heat-3d of PolyBench/C 4.2.1; program.h says how it is compiled and what it prints.
 */
#include "program.h"

#ifndef TSTEPS
#define TSTEPS SIZE(20, 40, 100, 500, 1000)
#endif
#ifndef N
#define N SIZE(10, 20, 40, 120, 200)
#endif

#pragma hmpp heat_3d codelet, target=CUDA
static void heat_3d(int tsteps, int n, DATA_TYPE A[n][n][n], DATA_TYPE B[n][n][n])
{
    int t, i, j, k;

    for (t = 1; t <= tsteps; t++) {
        for (i = 1; i < n - 1; i++) {
            for (j = 1; j < n - 1; j++) {
                for (k = 1; k < n - 1; k++) {
                    B[i][j][k] = REAL(0.125) * (A[i + 1][j][k] - REAL(2) * A[i][j][k] + A[i - 1][j][k]) +
                                 REAL(0.125) * (A[i][j + 1][k] - REAL(2) * A[i][j][k] + A[i][j - 1][k]) +
                                 REAL(0.125) * (A[i][j][k + 1] - REAL(2) * A[i][j][k] + A[i][j][k - 1]) + A[i][j][k];
                }
            }
        }
        for (i = 1; i < n - 1; i++) {
            for (j = 1; j < n - 1; j++) {
                for (k = 1; k < n - 1; k++) {
                    A[i][j][k] = REAL(0.125) * (B[i + 1][j][k] - REAL(2) * B[i][j][k] + B[i - 1][j][k]) +
                                 REAL(0.125) * (B[i][j + 1][k] - REAL(2) * B[i][j][k] + B[i][j - 1][k]) +
                                 REAL(0.125) * (B[i][j][k + 1] - REAL(2) * B[i][j][k] + B[i][j][k - 1]) + B[i][j][k];
                }
            }
        }
    }
}

static void init(int n, DATA_TYPE A[n][n][n], DATA_TYPE B[n][n][n])
{
    int i, j, k;

    for (i = 0; i < n; i++)
        for (j = 0; j < n; j++)
            for (k = 0; k < n; k++)
                A[i][j][k] = B[i][j][k] = REAL(i + j + n - k) * 10 / n;
}

int main(void)
{
    int tsteps = TSTEPS, n = N;
    DATA_TYPE(*A)[n][n] = allocate(n, sizeof *A);
    DATA_TYPE(*B)[n][n] = allocate(n, sizeof *B);

    init(n, A, B);
    start_clock();
    heat_3d(tsteps, n, A, B);
    stop_clock();
    report("A", n * n, n, **A);
    return 0;
}
