/* A stencil in time that copies its result back, as Rodinia has it. */
#define N 2048
#define STEPS 60
#pragma hmpp hotspot codelet, target=CUDA
void hotspot(float t[N][N], float o[N][N], const float p[N][N], float cap, float rx, float ry, float rz)
{
    for (int s = 0; s < STEPS; s++) {
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++)
                o[i][j] = t[i][j] + cap * (p[i][j] + (t[i + 1][j] + t[i - 1][j] - 2.f * t[i][j]) * ry + (t[i][j + 1] + t[i][j - 1] - 2.f * t[i][j]) * rx + (80.f - t[i][j]) * rz);
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++)
                t[i][j] = o[i][j];
    }
}
