/* The nearest of several centres for each point. */
#define N 200000
#define K 64
#define D 32
#pragma hmpp kmeans codelet, target=CUDA
void kmeans(const float p[N][D], const float c[K][D], int best[N])
{
    for (int i = 0; i < N; i++) {
        float least = 1e30f;
        int at = 0;
        for (int k = 0; k < K; k++) {
            float d = 0;
            for (int j = 0; j < D; j++)
                d += (p[i][j] - c[k][j]) * (p[i][j] - c[k][j]);
            if (d < least) { least = d; at = k; }
        }
        best[i] = at;
    }
}
