/* A lower triangular system with many right-hand sides. */
#define N 1024
#define M 1024
#pragma hmpp trsm codelet, target=CUDA
void trsm(const double L[N][N], double B[N][M])
{
    for (int j = 0; j < M; j++)
        for (int i = 0; i < N; i++) {
            double s = B[i][j];
            for (int k = 0; k < i; k++) s -= L[i][k] * B[k][j];
            B[i][j] = s / L[i][i];
        }
}
