/* Two outer products added to a matrix, and two products of the sum with vectors: A of n x n, the rest of n elements.
 *
 *     A becomes A + u1 * v1^T + u2 * v2^T
 *     x becomes x + beta * A^T * y + z
 *     w becomes w + alpha * A * x
 *
 * Source: gemver of PolyBench/C 4.2.1; program.h says how it is compiled and what it prints.
 */
#include "program.h"

#ifndef N
#define N SIZE(40, 120, 400, 2000, 4000)
#endif

#pragma hmpp gemver codelet, target=CUDA
static void gemver(int n, DATA_TYPE alpha, DATA_TYPE beta, DATA_TYPE A[n][n], DATA_TYPE u1[n], DATA_TYPE v1[n],
                   DATA_TYPE u2[n], DATA_TYPE v2[n], DATA_TYPE w[n], DATA_TYPE x[n], DATA_TYPE y[n], DATA_TYPE z[n])
{
    int i, j;

    for (i = 0; i < n; i++)
        for (j = 0; j < n; j++)
            A[i][j] = A[i][j] + u1[i] * v1[j] + u2[i] * v2[j];

    for (i = 0; i < n; i++)
        for (j = 0; j < n; j++)
            x[i] = x[i] + beta * A[j][i] * y[j];

    for (i = 0; i < n; i++)
        x[i] = x[i] + z[i];

    for (i = 0; i < n; i++)
        for (j = 0; j < n; j++)
            w[i] = w[i] + alpha * A[i][j] * x[j];
}

/* w and x begin as zeros. */
static void init(int n, DATA_TYPE A[n][n], DATA_TYPE u1[n], DATA_TYPE v1[n], DATA_TYPE u2[n], DATA_TYPE v2[n],
                 DATA_TYPE y[n], DATA_TYPE z[n])
{
    int i, j;

    for (i = 0; i < n; i++) {
        DATA_TYPE part = REAL(i + 1) / n;

        u1[i] = i;
        u2[i] = part / 2;
        v1[i] = part / 4;
        v2[i] = part / 6;
        y[i] = part / 8;
        z[i] = part / 9;
        for (j = 0; j < n; j++)
            A[i][j] = REAL(i * j % n) / n;
    }
}

int main(void)
{
    int n = N;
    DATA_TYPE alpha = REAL(1.5), beta = REAL(1.2);
    DATA_TYPE(*A)[n] = allocate(n, sizeof *A);
    DATA_TYPE *u1 = allocate(n, sizeof *u1);
    DATA_TYPE *v1 = allocate(n, sizeof *v1);
    DATA_TYPE *u2 = allocate(n, sizeof *u2);
    DATA_TYPE *v2 = allocate(n, sizeof *v2);
    DATA_TYPE *w = allocate(n, sizeof *w);
    DATA_TYPE *x = allocate(n, sizeof *x);
    DATA_TYPE *y = allocate(n, sizeof *y);
    DATA_TYPE *z = allocate(n, sizeof *z);

    init(n, A, u1, v1, u2, v2, y, z);
    start_clock();
    gemver(n, alpha, beta, A, u1, v1, u2, v2, w, x, y, z);
    stop_clock();
    report("w", 1, n, w);
    return 0;
}
