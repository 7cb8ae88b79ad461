/* The covariance matrix of m variables observed n times: data of n x m elements, one variable a column.
 *
 *     mean[j] = sum over i of data[i][j] / float_n
 *     data[i][j] becomes data[i][j] - mean[j]
 *     cov[i][j] = cov[j][i] = sum over k of data[k][i] * data[k][j] / (float_n - 1)
 *
 * Source: covariance of PolyBench/C 4.2.1; program.h says how it is compiled and what it prints.
 */
#include "program.h"

#ifndef M
#define M SIZE(28, 80, 240, 1200, 2600)
#endif
#ifndef N
#define N SIZE(32, 100, 260, 1400, 3000)
#endif

#pragma hmpp covariance codelet, target=CUDA
static void covariance(int m, int n, DATA_TYPE float_n, DATA_TYPE data[n][m], DATA_TYPE cov[m][m], DATA_TYPE mean[m])
{
    int i, j, k;

    for (j = 0; j < m; j++) {
        mean[j] = 0;
        for (i = 0; i < n; i++)
            mean[j] += data[i][j];
        mean[j] /= float_n;
    }

    for (i = 0; i < n; i++)
        for (j = 0; j < m; j++)
            data[i][j] -= mean[j];

    for (i = 0; i < m; i++) {
        for (j = i; j < m; j++) {
            cov[i][j] = 0;
            for (k = 0; k < n; k++)
                cov[i][j] += data[k][i] * data[k][j];
            cov[i][j] /= float_n - REAL(1);
            cov[j][i] = cov[i][j];
        }
    }
}

static void init(int m, int n, DATA_TYPE data[n][m])
{
    int i, j;

    for (i = 0; i < n; i++)
        for (j = 0; j < m; j++)
            data[i][j] = REAL(i) * j / m;
}

int main(void)
{
    int m = M, n = N;
    DATA_TYPE float_n = N;
    DATA_TYPE(*data)[m] = allocate(n, sizeof *data);
    DATA_TYPE(*cov)[m] = allocate(m, sizeof *cov);
    DATA_TYPE *mean = allocate(m, sizeof *mean);

    init(m, n, data);
    start_clock();
    covariance(m, n, float_n, data, cov, mean);
    stop_clock();
    report("cov", m, m, *cov);
    return 0;
}
