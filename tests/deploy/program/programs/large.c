/* Arrays of more elements than 32 bits count, of which few pages are touched. */
#include <stdio.h>
#include <stdlib.h>

void columns(long n, long m, signed char a[n][m], int b[n][3]) {
#pragma scop
    for (long i = 0; i < n; i++)
        for (long j = 0; j < 3; j++) b[i][j] = 2 * a[i][j * (m / 3)];
#pragma endscop
}

void two_rows(signed char a[2][1100000000], int b[2][3]) {
#pragma scop
    for (long i = 0; i < 2; i++)
        for (long j = 0; j < 3; j++) b[i][j] = 3 * a[i][j * 549999999];
#pragma endscop
}

int main(int argc, char **argv) {
    long n = 5, m = argc > 1 ? atol(argv[1]) : 1500000000;
    signed char *a = calloc((size_t)n, (size_t)m);
    int *b = calloc((size_t)n * 3, sizeof *b);
    if (!a || !b) return 1;
    for (long i = 0; i < n; i++)
        for (long j = 0; j < 3; j++) a[i * m + j * (m / 3)] = (signed char)(10 * i + j + 1);
    for (long i = 0; i < 2; i++)
        for (long j = 0; j < 3; j++) a[i * 1100000000 + j * 549999999] = (signed char)(50 + 10 * i + j);
    columns(n, m, (signed char(*)[m])a, (int(*)[3])b);
    for (long k = 0; k < 3 * n; k++) printf("%d ", b[k]);
    if (argc > 2) two_rows((signed char(*)[1100000000])a, (int(*)[3])b);
    for (long k = 0; k < 6; k++) printf("%d ", b[k]);
    printf("\n");
    free(b);
    free(a);
    return 0;
}
