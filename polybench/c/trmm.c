/* B = alpha * A^T * B, with A of m x m elements, lower triangular with ones on its diagonal, and B of m x n elements.
 *
 * Source: trmm of PolyBench/C 4.2.1; program.h says how it is compiled and what it prints.
 */
#include "program.h"

#ifndef M
#define M SIZE(20, 60, 200, 1000, 2000)
#endif
#ifndef N
#define N SIZE(30, 80, 240, 1200, 2600)
#endif

#pragma hmpp trmm codelet, target=CUDA
static void trmm(int m, int n, DATA_TYPE alpha, DATA_TYPE A[m][m], DATA_TYPE B[m][n])
{
    int i, j, k;

    for (i = 0; i < m; i++) {
        for (j = 0; j < n; j++) {
            for (k = i + 1; k < m; k++)
                B[i][j] += A[k][i] * B[k][j];
            B[i][j] = alpha * B[i][j];
        }
    }
}

static void init(int m, int n, DATA_TYPE A[m][m], DATA_TYPE B[m][n])
{
    int i, j;

    for (i = 0; i < m; i++) {
        for (j = 0; j < i; j++)
            A[i][j] = REAL((i + j) % m) / m;
        A[i][i] = 1;
        for (j = 0; j < n; j++)
            B[i][j] = REAL((n + i - j) % n) / n;
    }
}

int main(void)
{
    int m = M, n = N;
    DATA_TYPE alpha = REAL(1.5);
    DATA_TYPE(*A)[m] = allocate(m, sizeof *A);
    DATA_TYPE(*B)[n] = allocate(m, sizeof *B);

    init(m, n, A, B);
    start_clock();
    trmm(m, n, alpha, A, B);
    stop_clock();
    report("B", m, n, *B);
    return 0;
}
