/* C = alpha * A * A^T + beta * C on and below the diagonal of C, with C of n x n and A of n x m elements.
 *
 * Source: syrk of PolyBench/C 4.2.1; program.h says how it is compiled and what it prints.
 */
#include "program.h"

#ifndef M
#define M SIZE(20, 60, 200, 1000, 2000)
#endif
#ifndef N
#define N SIZE(30, 80, 240, 1200, 2600)
#endif

#pragma hmpp syrk codelet, target=CUDA
static void syrk(int n, int m, DATA_TYPE alpha, DATA_TYPE beta, DATA_TYPE C[n][n], DATA_TYPE A[n][m])
{
    int i, j, k;

    for (i = 0; i < n; i++) {
        for (j = 0; j <= i; j++)
            C[i][j] *= beta;
        for (k = 0; k < m; k++) {
            for (j = 0; j <= i; j++)
                C[i][j] += alpha * A[i][k] * A[j][k];
        }
    }
}

static void init(int n, int m, DATA_TYPE C[n][n], DATA_TYPE A[n][m])
{
    int i, j;

    for (i = 0; i < n; i++)
        for (j = 0; j < m; j++)
            A[i][j] = REAL((i * j + 1) % n) / n;
    for (i = 0; i < n; i++)
        for (j = 0; j < n; j++)
            C[i][j] = REAL((i * j + 2) % m) / m;
}

int main(void)
{
    int n = N, m = M;
    DATA_TYPE alpha = REAL(1.5), beta = REAL(1.2);
    DATA_TYPE(*C)[n] = allocate(n, sizeof *C);
    DATA_TYPE(*A)[m] = allocate(n, sizeof *A);

    init(n, m, C, A);
    start_clock();
    syrk(n, m, alpha, beta, C, A);
    stop_clock();
    report("C", n, n, *C);
    return 0;
}
