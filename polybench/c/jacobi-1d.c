/* The average of three neighbours, n elements: tsteps times from A to B and from B to A.
 *
 * Source: jacobi-1d of PolyBench/C 4.2.1; program.h says how it is compiled and what it prints.
 */
#include "program.h"

#ifndef TSTEPS
#define TSTEPS SIZE(20, 40, 100, 500, 1000)
#endif
#ifndef N
#define N SIZE(30, 120, 400, 2000, 4000)
#endif

#pragma hmpp jacobi_1d codelet, target=CUDA
static void jacobi_1d(int tsteps, int n, DATA_TYPE A[n], DATA_TYPE B[n])
{
    int t, i;

    for (t = 0; t < tsteps; t++) {
        for (i = 1; i < n - 1; i++)
            B[i] = REAL(0.33333) * (A[i - 1] + A[i] + A[i + 1]);
        for (i = 1; i < n - 1; i++)
            A[i] = REAL(0.33333) * (B[i - 1] + B[i] + B[i + 1]);
    }
}

static void init(int n, DATA_TYPE A[n], DATA_TYPE B[n])
{
    int i;

    for (i = 0; i < n; i++) {
        A[i] = (REAL(i) + 2) / n;
        B[i] = (REAL(i) + 3) / n;
    }
}

int main(void)
{
    int tsteps = TSTEPS, n = N;
    DATA_TYPE *A = allocate(n, sizeof *A);
    DATA_TYPE *B = allocate(n, sizeof *B);

    init(n, A, B);
    start_clock();
    jacobi_1d(tsteps, n, A, B);
    stop_clock();
    report("A", 1, n, A);
    return 0;
}
