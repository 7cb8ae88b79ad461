/* y = alpha * A * x + beta * B * x, with A and B of n x n elements.
 *
 * Source: gesummv of PolyBench/C 4.2.1; program.h says how it is compiled and what it prints.
 */
#include "program.h"

#ifndef N
#define N SIZE(30, 90, 250, 1300, 2800)
#endif

#pragma hmpp gesummv codelet, target=CUDA
static void gesummv(int n, DATA_TYPE alpha, DATA_TYPE beta, DATA_TYPE A[n][n], DATA_TYPE B[n][n], DATA_TYPE tmp[n],
                    DATA_TYPE x[n], DATA_TYPE y[n])
{
    int i, j;

    for (i = 0; i < n; i++) {
        tmp[i] = 0;
        y[i] = 0;
        for (j = 0; j < n; j++) {
            tmp[i] = A[i][j] * x[j] + tmp[i];
            y[i] = B[i][j] * x[j] + y[i];
        }
        y[i] = alpha * tmp[i] + beta * y[i];
    }
}

static void init(int n, DATA_TYPE A[n][n], DATA_TYPE B[n][n], DATA_TYPE x[n])
{
    int i, j;

    for (i = 0; i < n; i++) {
        x[i] = REAL(i) / n;
        for (j = 0; j < n; j++) {
            A[i][j] = REAL((i * j + 1) % n) / n;
            B[i][j] = REAL((i * j + 2) % n) / n;
        }
    }
}

int main(void)
{
    int n = N;
    DATA_TYPE alpha = REAL(1.5), beta = REAL(1.2);
    DATA_TYPE(*A)[n] = allocate(n, sizeof *A);
    DATA_TYPE(*B)[n] = allocate(n, sizeof *B);
    DATA_TYPE *tmp = allocate(n, sizeof *tmp);
    DATA_TYPE *x = allocate(n, sizeof *x);
    DATA_TYPE *y = allocate(n, sizeof *y);

    init(n, A, B, x);
    start_clock();
    gesummv(n, alpha, beta, A, B, tmp, x, y);
    stop_clock();
    report("y", 1, n, y);
    return 0;
}
