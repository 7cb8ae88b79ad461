/* The matrix that cholesky, lu and ludcmp of PolyBench/C 4.2.1 factorise: L * L^T, which is positive definite, with
 * L[i][j] = 1 - j / n below the diagonal and 1 on it. */
#include "program.h"

static void init_positive_definite(int n, DATA_TYPE A[n][n])
{
    DATA_TYPE(*L)[n] = allocate(n, sizeof *L);
    int i, j, k;

    for (i = 0; i < n; i++) {
        for (j = 0; j < i; j++)
            L[i][j] = REAL(-j) / n + 1;
        L[i][i] = 1;
    }
    for (i = 0; i < n; i++) {
        for (j = 0; j < n; j++) {
            A[i][j] = 0;
            for (k = 0; k < n; k++)
                A[i][j] += L[i][k] * L[j][k];
        }
    }
    free(L);
}
