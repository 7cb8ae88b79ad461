/* C = A B, with elements of 16 bits and sums in float.
 *
 *     looptune run examples/half/gemm.c --sweep -D ni=1024 -D nj=1024 -D nk=1024
 *     looptune run examples/half/gemm.c --sweep -D ni=1024 -D nj=1024 -D nk=1024 -D TYPE=__bf16
 */
#ifndef TYPE
#define TYPE _Float16
#endif

void gemm16(int ni, int nj, int nk, const TYPE A[ni][nk], const TYPE B[nk][nj], TYPE C[ni][nj])
{
    for (int i = 0; i < ni; i++)
        for (int j = 0; j < nj; j++) {
            float sum = 0;
            for (int k = 0; k < nk; k++)
                sum += A[i][k] * B[k][j];
            C[i][j] = sum;
        }
}
