/* Rows with mean 0 and variance 1. */
#include <math.h>
#define R 16384
#define C 1024
#pragma hmpp layernorm codelet, target=CUDA
void layernorm(const float x[R][C], const float g[C], const float b[C], float y[R][C])
{
    for (int i = 0; i < R; i++) {
        float mean = 0, var = 0;
        for (int j = 0; j < C; j++) mean += x[i][j];
        mean /= C;
        for (int j = 0; j < C; j++) { float d = x[i][j] - mean; var += d * d; }
        var /= C;
        float r = 1.0f / sqrtf(var + 1e-5f);
        for (int j = 0; j < C; j++) y[i][j] = (x[i][j] - mean) * r * g[j] + b[j];
    }
}
