/* C = alpha * (A * B^T + B * A^T) + beta * C on and below the diagonal of C, with C of n x n elements, and A and B of
 * n x m.
 *
 * Source: syr2k of PolyBench/C 4.2.1; program.h says how it is compiled and what it prints.
 */
#include "program.h"

#ifndef M
#define M SIZE(20, 60, 200, 1000, 2000)
#endif
#ifndef N
#define N SIZE(30, 80, 240, 1200, 2600)
#endif

#pragma hmpp syr2k codelet, target=CUDA
static void syr2k(int n, int m, DATA_TYPE alpha, DATA_TYPE beta, DATA_TYPE C[n][n], DATA_TYPE A[n][m],
                  DATA_TYPE B[n][m])
{
    int i, j, k;

    for (i = 0; i < n; i++) {
        for (j = 0; j <= i; j++)
            C[i][j] *= beta;
        for (k = 0; k < m; k++) {
            for (j = 0; j <= i; j++)
                C[i][j] += A[j][k] * alpha * B[i][k] + B[j][k] * alpha * A[i][k];
        }
    }
}

static void init(int n, int m, DATA_TYPE C[n][n], DATA_TYPE A[n][m], DATA_TYPE B[n][m])
{
    int i, j;

    for (i = 0; i < n; i++) {
        for (j = 0; j < m; j++) {
            A[i][j] = REAL((i * j + 1) % n) / n;
            B[i][j] = REAL((i * j + 2) % m) / m;
        }
    }
    for (i = 0; i < n; i++)
        for (j = 0; j < n; j++)
            C[i][j] = REAL((i * j + 3) % n) / m;
}

int main(void)
{
    int n = N, m = M;
    DATA_TYPE alpha = REAL(1.5), beta = REAL(1.2);
    DATA_TYPE(*C)[n] = allocate(n, sizeof *C);
    DATA_TYPE(*A)[m] = allocate(n, sizeof *A);
    DATA_TYPE(*B)[m] = allocate(n, sizeof *B);

    init(n, m, C, A, B);
    start_clock();
    syr2k(n, m, alpha, beta, C, A, B);
    stop_clock();
    report("C", n, n, *C);
    return 0;
}
