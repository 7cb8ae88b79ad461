#include <stdio.h>
#include <stdlib.h>

#include "smooth.h"

int main(int argc, char **argv)
{
    const int n = argc > 1 ? atoi(argv[1]) : 1000;
    float *a = malloc(sizeof(float) * n * n), *b = malloc(sizeof(float) * n * n);
    const char *level, *directives;
    double sum = 0;

    if (n < 3 || !a || !b)
        return 2;
    for (int k = 0; k < n * n; k++)
        a[k] = b[k] = (float)(k % 17);
    int status = smooth(100, n, a, b);
    if (status) {
        fprintf(stderr, "smooth: %s\n", smooth_message(status));
        return 1;
    }
    for (int k = 0; k < n * n; k++)
        sum += a[k];
    smooth_query(100, n, &level, &directives);
    printf("mean %.4f (%s)\n", sum / n / n, level);
    free(a);
    free(b);
    return 0;
}
