/* The acoustic wave equation, 8th order in space. */
#define N 320
#define STEPS 10
#pragma hmpp wave codelet, target=CUDA
void wave(float u[N][N][N], float v[N][N][N], const float c2[N][N][N], float c0, float c1, float k2, float c3, float c4)
{
    for (int t = 0; t < STEPS; t++) {
        for (int i = 4; i < N - 4; i++)
            for (int j = 4; j < N - 4; j++)
                for (int k = 4; k < N - 4; k++) {
                    float l = 3 * c0 * u[i][j][k]
                        + c1 * (u[i - 1][j][k] + u[i + 1][j][k] + u[i][j - 1][k] + u[i][j + 1][k] + u[i][j][k - 1] + u[i][j][k + 1])
                        + k2 * (u[i - 2][j][k] + u[i + 2][j][k] + u[i][j - 2][k] + u[i][j + 2][k] + u[i][j][k - 2] + u[i][j][k + 2])
                        + c3 * (u[i - 3][j][k] + u[i + 3][j][k] + u[i][j - 3][k] + u[i][j + 3][k] + u[i][j][k - 3] + u[i][j][k + 3])
                        + c4 * (u[i - 4][j][k] + u[i + 4][j][k] + u[i][j - 4][k] + u[i][j + 4][k] + u[i][j][k - 4] + u[i][j][k + 4]);
                    v[i][j][k] = 2 * u[i][j][k] - v[i][j][k] + c2[i][j][k] * l;
                }
        for (int i = 4; i < N - 4; i++)
            for (int j = 4; j < N - 4; j++)
                for (int k = 4; k < N - 4; k++) {
                    float s = u[i][j][k]; u[i][j][k] = v[i][j][k]; v[i][j][k] = s;
                }
    }
}
