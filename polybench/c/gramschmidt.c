/* A = Q * R by the modified Gram-Schmidt process: the n columns of A, of m elements each, become the orthonormal
 * columns of Q, one after the other. A and Q of m x n, R of n x n elements.
 *
 *     R[k][k] = |a_k|    q_k = a_k / R[k][k]    R[k][j] = q_k . a_j    a_j = a_j - R[k][j] q_k  for j > k
 *
 * The columns of PolyBench/C's A are linearly dependent: there are more of them than dimensions. Of some, rounding
 * errors are all that is left, and are scaled up to a column of Q, which so depends on the compiler and its options.
 * With --inputs-from-main, looptune therefore calls versions wrong that add up in another order. Random data with
 * -DM=.. of at least -DN=.. have independent columns.
 *
 * Source: gramschmidt of PolyBench/C 4.2.1; program.h says how it is compiled and what it prints.
 */
#include "program.h"

#ifndef M
#define M SIZE(20, 60, 200, 1000, 2000)
#endif
#ifndef N
#define N SIZE(30, 80, 240, 1200, 2600)
#endif

#pragma hmpp gramschmidt codelet, target=CUDA
static void gramschmidt(int m, int n, DATA_TYPE A[m][n], DATA_TYPE R[n][n], DATA_TYPE Q[m][n])
{
    int i, j, k;
    DATA_TYPE nrm;

    for (k = 0; k < n; k++) {
        nrm = 0;
        for (i = 0; i < m; i++)
            nrm += A[i][k] * A[i][k];
        R[k][k] = sqrt(nrm);
        for (i = 0; i < m; i++)
            Q[i][k] = A[i][k] / R[k][k];
        for (j = k + 1; j < n; j++) {
            R[k][j] = 0;
            for (i = 0; i < m; i++)
                R[k][j] += Q[i][k] * A[i][j];
            for (i = 0; i < m; i++)
                A[i][j] = A[i][j] - Q[i][k] * R[k][j];
        }
    }
}

static void init(int m, int n, DATA_TYPE A[m][n])
{
    int i, j;

    for (i = 0; i < m; i++)
        for (j = 0; j < n; j++)
            A[i][j] = REAL(i * j % m) / m * 100 + 10;
}

int main(void)
{
    int m = M, n = N;
    DATA_TYPE(*A)[n] = allocate(m, sizeof *A);
    DATA_TYPE(*R)[n] = allocate(n, sizeof *R);
    DATA_TYPE(*Q)[n] = allocate(m, sizeof *Q);

    init(m, n, A);
    start_clock();
    gramschmidt(m, n, A, R, Q);
    stop_clock();
    report("R", n, n, *R);
    report("Q", m, n, *Q);
    return 0;
}
