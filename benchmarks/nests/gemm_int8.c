/* A product of matrices of bytes. */
#include <stdint.h>
#define M 1024
#define N 1024
#define K 1024
#pragma hmpp qgemm codelet, target=CUDA
void qgemm(const int8_t a[M][K], const int8_t b[N][K], int32_t c[M][N])
{
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            int32_t s = 0;
            for (int k = 0; k < K; k++) s += (int32_t)a[i][k] * b[j][k];
            c[i][j] = s;
        }
}
