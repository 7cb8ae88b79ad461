/* LU factorisations of many small matrices, without pivoting. */
#define B 20000
#define N 24
#pragma hmpp batchlu codelet, target=CUDA
void batchlu(double a[B][N][N])
{
    for (int b = 0; b < B; b++)
        for (int k = 0; k < N; k++) {
            for (int i = k + 1; i < N; i++) a[b][i][k] /= a[b][k][k];
            for (int i = k + 1; i < N; i++)
                for (int j = k + 1; j < N; j++)
                    a[b][i][j] -= a[b][i][k] * a[b][k][j];
        }
}
