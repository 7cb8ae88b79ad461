/* A[r][q][p] = sum over s of A[r][q][s] * C4[s][p], in place: a step of multiresolution analysis (MADNESS).
 *
 * Source: doitgen of PolyBench/C 4.2.1; program.h says how it is compiled and what it prints.
 */
#include "program.h"

#ifndef NQ
#define NQ SIZE(8, 20, 40, 140, 220)
#endif
#ifndef NR
#define NR SIZE(10, 25, 50, 150, 250)
#endif
#ifndef NP
#define NP SIZE(12, 30, 60, 160, 270)
#endif

#pragma hmpp doitgen codelet, target=CUDA
static void doitgen(int nr, int nq, int np, DATA_TYPE A[nr][nq][np], DATA_TYPE C4[np][np], DATA_TYPE sum[np])
{
    int r, q, p, s;

    for (r = 0; r < nr; r++) {
        for (q = 0; q < nq; q++) {
            for (p = 0; p < np; p++) {
                sum[p] = 0;
                for (s = 0; s < np; s++)
                    sum[p] += A[r][q][s] * C4[s][p];
            }
            for (p = 0; p < np; p++)
                A[r][q][p] = sum[p];
        }
    }
}

static void init(int nr, int nq, int np, DATA_TYPE A[nr][nq][np], DATA_TYPE C4[np][np])
{
    int i, j, k;

    for (i = 0; i < nr; i++)
        for (j = 0; j < nq; j++)
            for (k = 0; k < np; k++)
                A[i][j][k] = REAL((i * j + k) % np) / np;
    for (i = 0; i < np; i++)
        for (j = 0; j < np; j++)
            C4[i][j] = REAL(i * j % np) / np;
}

int main(void)
{
    int nr = NR, nq = NQ, np = NP;
    DATA_TYPE(*A)[nq][np] = allocate(nr, sizeof *A);
    DATA_TYPE(*C4)[np] = allocate(np, sizeof *C4);
    DATA_TYPE *sum = allocate(np, sizeof *sum);

    init(nr, nq, np, A, C4);
    start_clock();
    doitgen(nr, nq, np, A, C4, sum);
    stop_clock();
    report("A", nr * nq, np, **A);
    return 0;
}
