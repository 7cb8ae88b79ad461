/* The 27-point residual with partial sums of NAS MG. */
#define N 258
#pragma hmpp resid codelet, target=CUDA
void resid(double u[N][N][N], double v[N][N][N], double r[N][N][N], double a0, double a2, double a3)
{
    double u1[N], u2[N];
    for (int k = 1; k < N - 1; k++)
        for (int j = 1; j < N - 1; j++) {
            for (int i = 0; i < N; i++) {
                u1[i] = u[k][j - 1][i] + u[k][j + 1][i] + u[k - 1][j][i] + u[k + 1][j][i];
                u2[i] = u[k - 1][j - 1][i] + u[k - 1][j + 1][i] + u[k + 1][j - 1][i] + u[k + 1][j + 1][i];
            }
            for (int i = 1; i < N - 1; i++)
                r[k][j][i] = v[k][j][i] - a0 * u[k][j][i] - a2 * (u2[i] + u1[i - 1] + u1[i + 1]) - a3 * (u2[i - 1] + u2[i + 1]);
        }
}
