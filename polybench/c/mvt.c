/* x1 = x1 + A * y_1 and x2 = x2 + A^T * y_2, with A of n x n elements.
 *
 * Source: mvt of PolyBench/C 4.2.1; program.h says how it is compiled and what it prints.
 */
#include "program.h"

#ifndef N
#define N SIZE(40, 120, 400, 2000, 4000)
#endif

#pragma hmpp mvt codelet, target=CUDA
static void mvt(int n, DATA_TYPE x1[n], DATA_TYPE x2[n], DATA_TYPE y_1[n], DATA_TYPE y_2[n], DATA_TYPE A[n][n])
{
    int i, j;

    for (i = 0; i < n; i++)
        for (j = 0; j < n; j++)
            x1[i] = x1[i] + A[i][j] * y_1[j];

    for (i = 0; i < n; i++)
        for (j = 0; j < n; j++)
            x2[i] = x2[i] + A[j][i] * y_2[j];
}

static void init(int n, DATA_TYPE x1[n], DATA_TYPE x2[n], DATA_TYPE y_1[n], DATA_TYPE y_2[n], DATA_TYPE A[n][n])
{
    int i, j;

    for (i = 0; i < n; i++) {
        x1[i] = REAL(i) / n;
        x2[i] = REAL((i + 1) % n) / n;
        y_1[i] = REAL((i + 3) % n) / n;
        y_2[i] = REAL((i + 4) % n) / n;
        for (j = 0; j < n; j++)
            A[i][j] = REAL(i * j % n) / n;
    }
}

int main(void)
{
    int n = N;
    DATA_TYPE *x1 = allocate(n, sizeof *x1);
    DATA_TYPE *x2 = allocate(n, sizeof *x2);
    DATA_TYPE *y_1 = allocate(n, sizeof *y_1);
    DATA_TYPE *y_2 = allocate(n, sizeof *y_2);
    DATA_TYPE(*A)[n] = allocate(n, sizeof *A);

    init(n, x1, x2, y_1, y_2, A);
    start_clock();
    mvt(n, x1, x2, y_1, y_2, A);
    stop_clock();
    report("x1", 1, n, x1);
    report("x2", 1, n, x2);
    return 0;
}
