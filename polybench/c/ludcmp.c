/* A * x = b solved for x, with A of n x n elements: A = L * U without pivoting, then L * y = b forwards and U * x = y
 * backwards.
 *
 * Source: ludcmp of PolyBench/C 4.2.1; program.h says how it is compiled and what it prints.
 */
#include "positive_definite.h"

#ifndef N
#define N SIZE(40, 120, 400, 2000, 4000)
#endif

#pragma hmpp ludcmp codelet, target=CUDA
static void ludcmp(int n, DATA_TYPE A[n][n], DATA_TYPE b[n], DATA_TYPE x[n], DATA_TYPE y[n])
{
    int i, j, k;
    DATA_TYPE w;

    for (i = 0; i < n; i++) {
        for (j = 0; j < i; j++) {
            w = A[i][j];
            for (k = 0; k < j; k++)
                w -= A[i][k] * A[k][j];
            A[i][j] = w / A[j][j];
        }
        for (j = i; j < n; j++) {
            w = A[i][j];
            for (k = 0; k < i; k++)
                w -= A[i][k] * A[k][j];
            A[i][j] = w;
        }
    }

    for (i = 0; i < n; i++) {
        w = b[i];
        for (j = 0; j < i; j++)
            w -= A[i][j] * y[j];
        y[i] = w;
    }

    for (i = n - 1; i >= 0; i--) {
        w = y[i];
        for (j = i + 1; j < n; j++)
            w -= A[i][j] * x[j];
        x[i] = w / A[i][i];
    }
}

int main(void)
{
    int n = N, i;
    DATA_TYPE(*A)[n] = allocate(n, sizeof *A);
    DATA_TYPE *b = allocate(n, sizeof *b);
    DATA_TYPE *x = allocate(n, sizeof *x);
    DATA_TYPE *y = allocate(n, sizeof *y);

    init_positive_definite(n, A);
    for (i = 0; i < n; i++)
        b[i] = REAL(i + 1) / n / 2 + 4;
    start_clock();
    ludcmp(n, A, b, x, y);
    stop_clock();
    report("x", 1, n, x);
    return 0;
}
