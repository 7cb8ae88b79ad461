/* Functions with several scops, each of which is a codelet, between statements of other kinds. */
#include <stdio.h>
#include <stdlib.h>

static float normalise(int n, float *x) {
    float s = 0, t = 1;
#pragma scop
    for (int i = 0; i < n; i++) s += x[i];
#pragma endscop
    if (s == 0) return -1;
    t += s;
    {
        float u = 2 * t;
#pragma scop
        for (int i = 0; i < n; i++) x[i] = x[i] * u;
        for (int i = 0; i < n; i++) t += x[i];
#pragma endscop
    }
    return t;
}

static void steps(int n, int m, float *x, float *y) {
    for (int k = 0; k < m; k++) {
#pragma scop
        for (int i = 1; i < n - 1; i++) y[i] = (x[i - 1] + x[i + 1]) / 2;
#pragma endscop
        printf("%g ", y[1 + k]);
#pragma scop
        for (int i = 1; i < n - 1; i++) x[i] = y[i] + k;
#pragma endscop
    }
}

int main(void) {
    int n = 200;
    float *x = malloc(n * sizeof *x), *y = calloc(n, sizeof *y);
    for (int i = 0; i < n; i++) x[i] = i % 7;
    steps(n, 5, x, y);
    for (int i = 0; i < n; i++) x[i] = i % 2; /* sums of small whole numbers are exact in any order */
    printf("%g %g\n", normalise(n, x), x[3]);
    free(x);
    free(y);
    return 0;
}
