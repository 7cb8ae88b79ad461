/* The correlation matrix of m variables observed n times: data of n x m elements, one variable a column.
 *
 *     mean[j]   = sum over i of data[i][j] / float_n
 *     stddev[j] = sqrt(sum over i of (data[i][j] - mean[j])^2 / float_n), or 1 where that is at most 0.1
 *     data[i][j] becomes (data[i][j] - mean[j]) / (sqrt(float_n) * stddev[j])
 *     corr[i][j] = corr[j][i] = sum over k of data[k][i] * data[k][j],     corr[i][i] = 1
 *
 * Source: correlation of PolyBench/C 4.2.1; program.h says how it is compiled and what it prints.
 */
#include "program.h"

#ifndef M
#define M SIZE(28, 80, 240, 1200, 2600)
#endif
#ifndef N
#define N SIZE(32, 100, 260, 1400, 3000)
#endif

#pragma hmpp correlation codelet, target=CUDA
static void correlation(int m, int n, DATA_TYPE float_n, DATA_TYPE data[n][m], DATA_TYPE corr[m][m], DATA_TYPE mean[m],
                        DATA_TYPE stddev[m])
{
    int i, j, k;
    DATA_TYPE eps = REAL(0.1);

    for (j = 0; j < m; j++) {
        mean[j] = 0;
        for (i = 0; i < n; i++)
            mean[j] += data[i][j];
        mean[j] /= float_n;
    }

    for (j = 0; j < m; j++) {
        stddev[j] = 0;
        for (i = 0; i < n; i++)
            stddev[j] += (data[i][j] - mean[j]) * (data[i][j] - mean[j]);
        stddev[j] /= float_n;
        stddev[j] = sqrt(stddev[j]);
        stddev[j] = stddev[j] <= eps ? REAL(1) : stddev[j];
    }

    for (i = 0; i < n; i++) {
        for (j = 0; j < m; j++) {
            data[i][j] -= mean[j];
            data[i][j] /= REAL(sqrt(float_n)) * stddev[j];
        }
    }

    for (i = 0; i < m - 1; i++) {
        corr[i][i] = 1;
        for (j = i + 1; j < m; j++) {
            corr[i][j] = 0;
            for (k = 0; k < n; k++)
                corr[i][j] += data[k][i] * data[k][j];
            corr[j][i] = corr[i][j];
        }
    }
    corr[m - 1][m - 1] = 1;
}

static void init(int m, int n, DATA_TYPE data[n][m])
{
    int i, j;

    for (i = 0; i < n; i++)
        for (j = 0; j < m; j++)
            data[i][j] = REAL(i * j) / m + i;
}

int main(void)
{
    int m = M, n = N;
    DATA_TYPE float_n = N;
    DATA_TYPE(*data)[m] = allocate(n, sizeof *data);
    DATA_TYPE(*corr)[m] = allocate(m, sizeof *corr);
    DATA_TYPE *mean = allocate(m, sizeof *mean);
    DATA_TYPE *stddev = allocate(m, sizeof *stddev);

    init(m, n, data);
    start_clock();
    correlation(m, n, float_n, data, corr, mean, stddev);
    stop_clock();
    report("corr", m, m, *corr);
    return 0;
}
