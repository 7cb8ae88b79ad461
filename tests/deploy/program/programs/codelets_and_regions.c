#include <stdio.h>
#include <stdlib.h>
#include "defined_elsewhere.h"

#define N 100
#pragma hmpp relax resident, args[::coef].io=in
static double coef[3] = {0.25, 0.5, 0.25};

#pragma hmpp smooth codelet, target=CUDA, args[out].io=out, args[in].size={n}, args[out].size={n}
static void smooth(int n, const double *in, double *out)
{
    int i;
    out[0] = in[0];
    out[n - 1] = in[n - 1];
    for (i = 1; i < n - 1; i++)
        out[i] = coef[0] * in[i - 1] + coef[1] * in[i] + coef[2] * in[i + 1];
}

int main(void)
{
    double *a = malloc(N * sizeof *a), *b = malloc(N * sizeof *b), *t, s = 0;
    int i, k;

    for (i = 0; i < N; i++)
        a[i] = i % 10, b[i] = 0;
#pragma hmpp advancedload, args[::coef]
    for (k = 0; k < 10; k++) {
#pragma hmpp smooth callsite
        smooth(N, a, b);
        t = a; a = b; b = t;
    }
    /* a region in the middle of a function */
#pragma hmpp sumup region, target=CUDA, args[a].io=in, args[b].io=out
    {
        for (i = 0; i < N; i++)
            b[i] = a[i] * 2.0;
    }
    for (i = 0; i < N; i++)
        s += b[i] * (i + 1);
    printf("%.10g\n", s);
    scaleup(N, b, 3.0);
#pragma hmpp shift callsite
    shift(N, b, 1.0);
    for (s = 0, i = 0; i < N; i++)
        s += b[i];
    printf("%.10g\n", s);
    return 0;
}
