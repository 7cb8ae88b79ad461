/* D = alpha * A * B * C + beta * D, with A of ni x nk, B of nk x nj, C of nj x nl and D of ni x nl elements.
 *
 * Source: 2mm of PolyBench/C 4.2.1; program.h says how it is compiled and what it prints.
 */
#include "program.h"

#ifndef NI
#define NI SIZE(16, 40, 180, 800, 1600)
#endif
#ifndef NJ
#define NJ SIZE(18, 50, 190, 900, 1800)
#endif
#ifndef NK
#define NK SIZE(22, 70, 210, 1100, 2200)
#endif
#ifndef NL
#define NL SIZE(24, 80, 220, 1200, 2400)
#endif

#pragma hmpp mm2 codelet, target=CUDA
static void mm2(int ni, int nj, int nk, int nl, DATA_TYPE alpha, DATA_TYPE beta, DATA_TYPE tmp[ni][nj],
                DATA_TYPE A[ni][nk], DATA_TYPE B[nk][nj], DATA_TYPE C[nj][nl], DATA_TYPE D[ni][nl])
{
    int i, j, k;

    for (i = 0; i < ni; i++) {
        for (j = 0; j < nj; j++) {
            tmp[i][j] = 0;
            for (k = 0; k < nk; k++)
                tmp[i][j] += alpha * A[i][k] * B[k][j];
        }
    }

    for (i = 0; i < ni; i++) {
        for (j = 0; j < nl; j++) {
            D[i][j] *= beta;
            for (k = 0; k < nj; k++)
                D[i][j] += tmp[i][k] * C[k][j];
        }
    }
}

static void init(int ni, int nj, int nk, int nl, DATA_TYPE A[ni][nk], DATA_TYPE B[nk][nj], DATA_TYPE C[nj][nl],
                 DATA_TYPE D[ni][nl])
{
    int i, j;

    for (i = 0; i < ni; i++)
        for (j = 0; j < nk; j++)
            A[i][j] = REAL((i * j + 1) % ni) / ni;
    for (i = 0; i < nk; i++)
        for (j = 0; j < nj; j++)
            B[i][j] = REAL(i * (j + 1) % nj) / nj;
    for (i = 0; i < nj; i++)
        for (j = 0; j < nl; j++)
            C[i][j] = REAL((i * (j + 3) + 1) % nl) / nl;
    for (i = 0; i < ni; i++)
        for (j = 0; j < nl; j++)
            D[i][j] = REAL(i * (j + 2) % nk) / nk;
}

int main(void)
{
    int ni = NI, nj = NJ, nk = NK, nl = NL;
    DATA_TYPE alpha = REAL(1.5), beta = REAL(1.2);
    DATA_TYPE(*tmp)[nj] = allocate(ni, sizeof *tmp);
    DATA_TYPE(*A)[nk] = allocate(ni, sizeof *A);
    DATA_TYPE(*B)[nj] = allocate(nk, sizeof *B);
    DATA_TYPE(*C)[nl] = allocate(nj, sizeof *C);
    DATA_TYPE(*D)[nl] = allocate(ni, sizeof *D);

    init(ni, nj, nk, nl, A, B, C, D);
    start_clock();
    mm2(ni, nj, nk, nl, alpha, beta, tmp, A, B, C, D);
    stop_clock();
    report("D", ni, nl, *D);
    return 0;
}
