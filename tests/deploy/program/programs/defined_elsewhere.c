#include "defined_elsewhere.h"
/* the definition, in another file than the callsite */
void shift(int n, double x[n], double by)
{
    int i;
    for (i = 0; i < n; i++)
        x[i] += by;
}
void scaleup(int n, double *x, double a)
{
    int i;
#pragma scop
    for (i = 0; i < n; i++)
        x[i] *= a;
#pragma endscop
}
