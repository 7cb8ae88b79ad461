#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int work(int n, float *a, const float *b, int *idx)
{
    int last = -1, k;
    float best = -1e30f;
    printf("working on %d\n", n);
    if (n > 3)
        for (int i = 0; i < n; i++) {
            a[i] = b[i] * 2 + i;
            for (k = 0; k < i % 5; k++) a[i] += k;
        }
    else
        puts("small");
    for (int i = 0; i < n; i++)
        if (a[i] > best) best = a[i], last = i;
    for (int i = 0; i < n; i++) a[idx[i]] += b[i];
    printf("best %g at %d, k=%d\n", best, last, k);
    return last;
}
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 100;
    float *a = calloc(n + 1, sizeof *a), *b = calloc(n + 1, sizeof *b); int *idx = calloc(n + 1, sizeof *idx);
    for (int i = 0; i < n; i++) { b[i] = (i * 37) % 17; idx[i] = (i * 7) % n; }
    int l = work(n, a, b, idx);
    double s = 0; for (int i = 0; i < n; i++) s += a[i] * (i % 3 + 1);
    printf("%d %.9g\n", l, s);
}
