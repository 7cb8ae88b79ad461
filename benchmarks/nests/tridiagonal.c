/* Tridiagonal systems, one for each line, by elimination and substitution. */
#define N 65536
#define M 128
#pragma hmpp thomas codelet, target=CUDA
void thomas(const double a[N][M], const double b[N][M], double c[N][M], double d[N][M], double x[N][M])
{
    for (int s = 0; s < N; s++) {
        c[s][0] /= b[s][0];
        d[s][0] /= b[s][0];
        for (int i = 1; i < M; i++) {
            double w = 1.0 / (b[s][i] - a[s][i] * c[s][i - 1]);
            c[s][i] *= w;
            d[s][i] = (d[s][i] - a[s][i] * d[s][i - 1]) * w;
        }
        x[s][M - 1] = d[s][M - 1];
        for (int i = M - 2; i >= 0; i--) x[s][i] = d[s][i] - c[s][i] * x[s][i + 1];
    }
}
