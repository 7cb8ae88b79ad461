/* Durbin's algorithm: y of n elements solves the Toeplitz system T * y = -r, where T[i][j] is r[|i - j| - 1], and 1 on
 * the diagonal.
 *
 * Source: durbin of PolyBench/C 4.2.1; program.h says how it is compiled and what it prints.
 */
#include "program.h"

#ifndef N
#define N SIZE(40, 120, 400, 2000, 4000)
#endif

#pragma hmpp durbin codelet, target=CUDA
static void durbin(int n, DATA_TYPE r[n], DATA_TYPE y[n])
{
    DATA_TYPE z[n];
    DATA_TYPE alpha, beta, sum;
    int i, k;

    y[0] = -r[0];
    beta = 1;
    alpha = -r[0];

    for (k = 1; k < n; k++) {
        beta = (1 - alpha * alpha) * beta;
        sum = 0;
        for (i = 0; i < k; i++)
            sum += r[k - i - 1] * y[i];
        alpha = -(r[k] + sum) / beta;

        for (i = 0; i < k; i++)
            z[i] = y[i] + alpha * y[k - i - 1];
        for (i = 0; i < k; i++)
            y[i] = z[i];
        y[k] = alpha;
    }
}

int main(void)
{
    int n = N, i;
    DATA_TYPE *r = allocate(n, sizeof *r);
    DATA_TYPE *y = allocate(n, sizeof *y);

    for (i = 0; i < n; i++)
        r[i] = n + 1 - i;
    start_clock();
    durbin(n, r, y);
    stop_clock();
    report("y", 1, n, y);
    return 0;
}
