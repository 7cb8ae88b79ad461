/* Nussinov's algorithm: table[i][j] is the largest number of pairs of bases that can bond in a sequence of RNA from
 * base i to base j, without crossings. Two bases match if their numbers, 0 to 3, add up to 3; neighbours do not bond.
 *
 * Source: nussinov of PolyBench/C 4.2.1; program.h says how it is compiled and what it prints. Its type is int.
 */
#ifndef DATA_TYPE
#define DATA_TYPE int
#endif
#include "program.h"

#ifndef N
#define N SIZE(60, 180, 500, 2500, 5500)
#endif

typedef char base;

#define MATCH(a, b) ((a) + (b) == 3 ? 1 : 0)
#define MAX_SCORE(a, b) ((a) >= (b) ? (a) : (b))

#pragma hmpp nussinov codelet, target=CUDA
static void nussinov(int n, base seq[n], DATA_TYPE table[n][n])
{
    int i, j, k;

    for (i = n - 1; i >= 0; i--) {
        for (j = i + 1; j < n; j++) {
            if (j - 1 >= 0)
                table[i][j] = MAX_SCORE(table[i][j], table[i][j - 1]);
            if (i + 1 < n)
                table[i][j] = MAX_SCORE(table[i][j], table[i + 1][j]);

            if (j - 1 >= 0 && i + 1 < n) {
                if (i < j - 1)
                    table[i][j] = MAX_SCORE(table[i][j], table[i + 1][j - 1] + MATCH(seq[i], seq[j]));
                else
                    table[i][j] = MAX_SCORE(table[i][j], table[i + 1][j - 1]);
            }

            for (k = i + 1; k < j; k++)
                table[i][j] = MAX_SCORE(table[i][j], table[i][k] + table[k + 1][j]);
        }
    }
}

int main(void)
{
    int n = N, i;
    base *seq = allocate(n, sizeof *seq);
    DATA_TYPE(*table)[n] = allocate(n, sizeof *table);

    for (i = 0; i < n; i++)
        seq[i] = (i + 1) % 4;
    start_clock();
    nussinov(n, seq, table);
    stop_clock();
    report("table", n, n, *table);
    return 0;
}
