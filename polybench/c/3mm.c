/* G = (A * B) * (C * D), with A of ni x nk, B of nk x nj, C of nj x nm and D of nm x nl elements.
 *
 * Source: 3mm of PolyBench/C 4.2.1; program.h says how it is compiled and what it prints.
 */
#include "program.h"

#ifndef NI
#define NI SIZE(16, 40, 180, 800, 1600)
#endif
#ifndef NJ
#define NJ SIZE(18, 50, 190, 900, 1800)
#endif
#ifndef NK
#define NK SIZE(20, 60, 200, 1000, 2000)
#endif
#ifndef NL
#define NL SIZE(22, 70, 210, 1100, 2200)
#endif
#ifndef NM
#define NM SIZE(24, 80, 220, 1200, 2400)
#endif

#pragma hmpp mm3 codelet, target=CUDA
static void mm3(int ni, int nj, int nk, int nl, int nm, DATA_TYPE E[ni][nj], DATA_TYPE A[ni][nk], DATA_TYPE B[nk][nj],
                DATA_TYPE F[nj][nl], DATA_TYPE C[nj][nm], DATA_TYPE D[nm][nl], DATA_TYPE G[ni][nl])
{
    int i, j, k;

    for (i = 0; i < ni; i++) {
        for (j = 0; j < nj; j++) {
            E[i][j] = 0;
            for (k = 0; k < nk; k++)
                E[i][j] += A[i][k] * B[k][j];
        }
    }

    for (i = 0; i < nj; i++) {
        for (j = 0; j < nl; j++) {
            F[i][j] = 0;
            for (k = 0; k < nm; k++)
                F[i][j] += C[i][k] * D[k][j];
        }
    }

    for (i = 0; i < ni; i++) {
        for (j = 0; j < nl; j++) {
            G[i][j] = 0;
            for (k = 0; k < nj; k++)
                G[i][j] += E[i][k] * F[k][j];
        }
    }
}

static void init(int ni, int nj, int nk, int nl, int nm, DATA_TYPE A[ni][nk], DATA_TYPE B[nk][nj], DATA_TYPE C[nj][nm],
                 DATA_TYPE D[nm][nl])
{
    int i, j;

    for (i = 0; i < ni; i++)
        for (j = 0; j < nk; j++)
            A[i][j] = REAL((i * j + 1) % ni) / (5 * ni);
    for (i = 0; i < nk; i++)
        for (j = 0; j < nj; j++)
            B[i][j] = REAL((i * (j + 1) + 2) % nj) / (5 * nj);
    for (i = 0; i < nj; i++)
        for (j = 0; j < nm; j++)
            C[i][j] = REAL(i * (j + 3) % nl) / (5 * nl);
    for (i = 0; i < nm; i++)
        for (j = 0; j < nl; j++)
            D[i][j] = REAL((i * (j + 2) + 2) % nk) / (5 * nk);
}

int main(void)
{
    int ni = NI, nj = NJ, nk = NK, nl = NL, nm = NM;
    DATA_TYPE(*E)[nj] = allocate(ni, sizeof *E);
    DATA_TYPE(*A)[nk] = allocate(ni, sizeof *A);
    DATA_TYPE(*B)[nj] = allocate(nk, sizeof *B);
    DATA_TYPE(*F)[nl] = allocate(nj, sizeof *F);
    DATA_TYPE(*C)[nm] = allocate(nj, sizeof *C);
    DATA_TYPE(*D)[nl] = allocate(nm, sizeof *D);
    DATA_TYPE(*G)[nl] = allocate(ni, sizeof *G);

    init(ni, nj, nk, nl, nm, A, B, C, D);
    start_clock();
    mm3(ni, nj, nk, nl, nm, E, A, B, F, C, D, G);
    stop_clock();
    report("G", ni, nl, *G);
    return 0;
}
