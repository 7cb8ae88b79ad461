/* A transposed copy. */
#define N 8192
#pragma hmpp transpose codelet, target=CUDA
void transpose(const float a[N][N], float b[N][N])
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            b[j][i] = a[i][j];
}
