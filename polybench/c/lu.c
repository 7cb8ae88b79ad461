/* A = L * U for A of n x n elements, without pivoting: L, with ones on its diagonal, and U replace A.
 *
 * Source: lu of PolyBench/C 4.2.1; program.h says how it is compiled and what it prints.
 */
#include "positive_definite.h"

#ifndef N
#define N SIZE(40, 120, 400, 2000, 4000)
#endif

#pragma hmpp lu codelet, target=CUDA
static void lu(int n, DATA_TYPE A[n][n])
{
    int i, j, k;

    for (i = 0; i < n; i++) {
        for (j = 0; j < i; j++) {
            for (k = 0; k < j; k++)
                A[i][j] -= A[i][k] * A[k][j];
            A[i][j] /= A[j][j];
        }
        for (j = i; j < n; j++) {
            for (k = 0; k < i; k++)
                A[i][j] -= A[i][k] * A[k][j];
        }
    }
}

int main(void)
{
    int n = N;
    DATA_TYPE(*A)[n] = allocate(n, sizeof *A);

    init_positive_definite(n, A);
    start_clock();
    lu(n, A);
    stop_clock();
    report("A", n, n, *A);
    return 0;
}
