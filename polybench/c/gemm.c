/* C = alpha * A * B + beta * C, with C of ni x nj, A of ni x nk and B of nk x nj elements.
 *
 * Source: gemm of PolyBench/C 4.2.1; program.h says how it is compiled and what it prints.
 */
#include "program.h"

#ifndef NI
#define NI SIZE(20, 60, 200, 1000, 2000)
#endif
#ifndef NJ
#define NJ SIZE(25, 70, 220, 1100, 2300)
#endif
#ifndef NK
#define NK SIZE(30, 80, 240, 1200, 2600)
#endif

#pragma hmpp gemm codelet, target=CUDA
static void gemm(int ni, int nj, int nk, DATA_TYPE alpha, DATA_TYPE beta, DATA_TYPE C[ni][nj], DATA_TYPE A[ni][nk],
                 DATA_TYPE B[nk][nj])
{
    int i, j, k;

    for (i = 0; i < ni; i++) {
        for (j = 0; j < nj; j++)
            C[i][j] *= beta;
        for (k = 0; k < nk; k++) {
            for (j = 0; j < nj; j++)
                C[i][j] += alpha * A[i][k] * B[k][j];
        }
    }
}

static void init(int ni, int nj, int nk, DATA_TYPE C[ni][nj], DATA_TYPE A[ni][nk], DATA_TYPE B[nk][nj])
{
    int i, j;

    for (i = 0; i < ni; i++)
        for (j = 0; j < nj; j++)
            C[i][j] = REAL((i * j + 1) % ni) / ni;
    for (i = 0; i < ni; i++)
        for (j = 0; j < nk; j++)
            A[i][j] = REAL(i * (j + 1) % nk) / nk;
    for (i = 0; i < nk; i++)
        for (j = 0; j < nj; j++)
            B[i][j] = REAL(i * (j + 2) % nj) / nj;
}

int main(void)
{
    int ni = NI, nj = NJ, nk = NK;
    DATA_TYPE alpha = REAL(1.5), beta = REAL(1.2);
    DATA_TYPE(*C)[nj] = allocate(ni, sizeof *C);
    DATA_TYPE(*A)[nk] = allocate(ni, sizeof *A);
    DATA_TYPE(*B)[nj] = allocate(nk, sizeof *B);

    init(ni, nj, nk, C, A, B);
    start_clock();
    gemm(ni, nj, nk, alpha, beta, C, A, B);
    stop_clock();
    report("C", ni, nj, *C);
    return 0;
}
