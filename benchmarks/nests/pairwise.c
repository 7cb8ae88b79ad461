/* Squared distances between two sets of points. */
#define N 4096
#define M 4096
#define D 64
#pragma hmpp pairwise codelet, target=CUDA
void pairwise(const float x[N][D], const float y[M][D], float d[N][M])
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++) {
            float s = 0;
            for (int k = 0; k < D; k++)
                s += (x[i][k] - y[j][k]) * (x[i][k] - y[j][k]);
            d[i][j] = s;
        }
}
