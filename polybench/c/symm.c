/* C = alpha * A * B + beta * C, with A of m x m elements, symmetric and stored on and below its diagonal, B and C of
 * m x n elements.
 *
 * Source: symm of PolyBench/C 4.2.1; program.h says how it is compiled and what it prints.
 */
#include "program.h"

#ifndef M
#define M SIZE(20, 60, 200, 1000, 2000)
#endif
#ifndef N
#define N SIZE(30, 80, 240, 1200, 2600)
#endif

#pragma hmpp symm codelet, target=CUDA
static void symm(int m, int n, DATA_TYPE alpha, DATA_TYPE beta, DATA_TYPE C[m][n], DATA_TYPE A[m][m], DATA_TYPE B[m][n])
{
    int i, j, k;
    DATA_TYPE temp2;

    for (i = 0; i < m; i++) {
        for (j = 0; j < n; j++) {
            temp2 = 0;
            for (k = 0; k < i; k++) {
                C[k][j] += alpha * B[i][j] * A[i][k];
                temp2 += B[k][j] * A[i][k];
            }
            C[i][j] = beta * C[i][j] + alpha * B[i][j] * A[i][i] + alpha * temp2;
        }
    }
}

/* What is above the diagonal of A is not read: it would be seen in the result. */
static void init(int m, int n, DATA_TYPE C[m][n], DATA_TYPE A[m][m], DATA_TYPE B[m][n])
{
    int i, j;

    for (i = 0; i < m; i++) {
        for (j = 0; j < n; j++) {
            C[i][j] = REAL((i + j) % 100) / m;
            B[i][j] = REAL((n + i - j) % 100) / m;
        }
    }
    for (i = 0; i < m; i++)
        for (j = 0; j < m; j++)
            A[i][j] = j <= i ? REAL((i + j) % 100) / m : REAL(-999);
}

int main(void)
{
    int m = M, n = N;
    DATA_TYPE alpha = REAL(1.5), beta = REAL(1.2);
    DATA_TYPE(*C)[n] = allocate(m, sizeof *C);
    DATA_TYPE(*A)[m] = allocate(m, sizeof *A);
    DATA_TYPE(*B)[n] = allocate(m, sizeof *B);

    init(m, n, C, A, B);
    start_clock();
    symm(m, n, alpha, beta, C, A, B);
    stop_clock();
    report("C", m, n, *C);
    return 0;
}
