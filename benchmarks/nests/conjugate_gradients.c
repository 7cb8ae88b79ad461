/* Conjugate gradients on the 5-point operator. */
#define N 1024
#pragma hmpp cg codelet, target=CUDA
void cg(double x[N][N], double r[N][N], double p[N][N], double q[N][N], int iters)
{
    double rho = 0;
    for (int i = 1; i < N - 1; i++)
        for (int j = 1; j < N - 1; j++) rho += r[i][j] * r[i][j];
    for (int it = 0; it < iters; it++) {
        double d = 0, rn = 0;
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++) {
                q[i][j] = 4 * p[i][j] - p[i - 1][j] - p[i + 1][j] - p[i][j - 1] - p[i][j + 1];
                d += p[i][j] * q[i][j];
            }
        double alpha = rho / d;
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++) {
                x[i][j] += alpha * p[i][j];
                r[i][j] -= alpha * q[i][j];
                rn += r[i][j] * r[i][j];
            }
        double beta = rn / rho;
        rho = rn;
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++) p[i][j] = r[i][j] + beta * p[i][j];
    }
}
