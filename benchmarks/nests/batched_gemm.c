/* Products of many small matrices. */
#define B 4096
#define N 32
#pragma hmpp batched codelet, target=CUDA
void batched(const double a[B][N][N], const double b[B][N][N], double c[B][N][N])
{
    for (int p = 0; p < B; p++)
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                c[p][i][j] = 0;
                for (int k = 0; k < N; k++)
                    c[p][i][j] += a[p][i][k] * b[p][k][j];
            }
}
