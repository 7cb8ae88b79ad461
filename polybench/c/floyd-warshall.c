/* The lengths of the shortest paths between all pairs of n nodes, from those of the edges, in place.
 *
 * Source: floyd-warshall of PolyBench/C 4.2.1; program.h says how it is compiled and what it prints. Its type is int.
 */
#ifndef DATA_TYPE
#define DATA_TYPE int
#endif
#include "program.h"

#ifndef N
#define N SIZE(60, 180, 500, 2800, 5600)
#endif

#pragma hmpp floyd_warshall codelet, target=CUDA
static void floyd_warshall(int n, DATA_TYPE path[n][n])
{
    int i, j, k;

    for (k = 0; k < n; k++)
        for (i = 0; i < n; i++)
            for (j = 0; j < n; j++)
                path[i][j] = path[i][j] < path[i][k] + path[k][j] ? path[i][j] : path[i][k] + path[k][j];
}

static void init(int n, DATA_TYPE path[n][n])
{
    int i, j;

    for (i = 0; i < n; i++) {
        for (j = 0; j < n; j++) {
            path[i][j] = i * j % 7 + 1;
            if ((i + j) % 13 == 0 || (i + j) % 7 == 0 || (i + j) % 11 == 0)
                path[i][j] = 999;
        }
    }
}

int main(void)
{
    int n = N;
    DATA_TYPE(*path)[n] = allocate(n, sizeof *path);

    init(n, path);
    start_clock();
    floyd_warshall(n, path);
    stop_clock();
    report("path", n, n, *path);
    return 0;
}
