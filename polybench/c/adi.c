/* The heat equation in two dimensions by alternating directions, tsteps steps of n x n elements: in each step, the
 * tridiagonal systems of the columns are solved from u into v, and then those of the rows from v into u.
 *
 * Source: adi of PolyBench/C 4.2.1; program.h says how it is compiled and what it prints.
 */
#include "program.h"

#ifndef TSTEPS
#define TSTEPS SIZE(20, 40, 100, 500, 1000)
#endif
#ifndef N
#define N SIZE(20, 60, 200, 1000, 2000)
#endif

#pragma hmpp adi codelet, target=CUDA
static void adi(int tsteps, int n, DATA_TYPE u[n][n], DATA_TYPE v[n][n], DATA_TYPE p[n][n], DATA_TYPE q[n][n])
{
    int t, i, j;
    DATA_TYPE DX, DY, DT, B1, B2, mul1, mul2, a, b, c, d, e, f;

    DX = REAL(1) / n;
    DY = REAL(1) / n;
    DT = REAL(1) / tsteps;
    B1 = 2;
    B2 = 1;
    mul1 = B1 * DT / (DX * DX);
    mul2 = B2 * DT / (DY * DY);
    a = -mul1 / 2;
    b = 1 + mul1;
    c = a;
    d = -mul2 / 2;
    e = 1 + mul2;
    f = d;

    for (t = 1; t <= tsteps; t++) {
        for (i = 1; i < n - 1; i++) {
            v[0][i] = 1;
            p[i][0] = 0;
            q[i][0] = v[0][i];
            for (j = 1; j < n - 1; j++) {
                p[i][j] = -c / (a * p[i][j - 1] + b);
                q[i][j] = (-d * u[j][i - 1] + (1 + 2 * d) * u[j][i] - f * u[j][i + 1] - a * q[i][j - 1]) /
                          (a * p[i][j - 1] + b);
            }
            v[n - 1][i] = 1;
            for (j = n - 2; j >= 1; j--)
                v[j][i] = p[i][j] * v[j + 1][i] + q[i][j];
        }

        for (i = 1; i < n - 1; i++) {
            u[i][0] = 1;
            p[i][0] = 0;
            q[i][0] = u[i][0];
            for (j = 1; j < n - 1; j++) {
                p[i][j] = -f / (d * p[i][j - 1] + e);
                q[i][j] = (-a * v[i - 1][j] + (1 + 2 * a) * v[i][j] - c * v[i + 1][j] - d * q[i][j - 1]) /
                          (d * p[i][j - 1] + e);
            }
            u[i][n - 1] = 1;
            for (j = n - 2; j >= 1; j--)
                u[i][j] = p[i][j] * u[i][j + 1] + q[i][j];
        }
    }
}

static void init(int n, DATA_TYPE u[n][n])
{
    int i, j;

    for (i = 0; i < n; i++)
        for (j = 0; j < n; j++)
            u[i][j] = REAL(i + n - j) / n;
}

int main(void)
{
    int tsteps = TSTEPS, n = N;
    DATA_TYPE(*u)[n] = allocate(n, sizeof *u);
    DATA_TYPE(*v)[n] = allocate(n, sizeof *v);
    DATA_TYPE(*p)[n] = allocate(n, sizeof *p);
    DATA_TYPE(*q)[n] = allocate(n, sizeof *q);

    init(n, u);
    start_clock();
    adi(tsteps, n, u, v, p, q);
    stop_clock();
    report("u", n, n, *u);
    return 0;
}
