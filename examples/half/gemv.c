/* y = A x, with elements of 16 bits and sums in float; -D TYPE=__bf16 for bfloat16.
 *
 *     looptune run examples/half/gemv.c --sweep -D n=8192 -D m=8192
 */
#ifndef TYPE
#define TYPE _Float16
#endif

void gemv16(int n, int m, const TYPE A[n][m], const TYPE x[m], TYPE y[n])
{
    for (int i = 0; i < n; i++) {
        float sum = 0;
        for (int j = 0; j < m; j++)
            sum += A[i][j] * x[j];
        y[i] = sum;
    }
}
