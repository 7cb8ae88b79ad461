/* Means and variances of channels over a batch of images, and the images normalised by them. */
#include <math.h>
#define B 64
#define C 128
#define H 28
#define W 28
#pragma hmpp batchnorm codelet, target=CUDA
void batchnorm(const float x[B][C][H][W], float y[B][C][H][W], const float g[C], const float bt[C], float mean[C], float var[C])
{
    for (int c = 0; c < C; c++) {
        float s = 0, q = 0;
        for (int b = 0; b < B; b++)
            for (int i = 0; i < H; i++)
                for (int j = 0; j < W; j++) { s += x[b][c][i][j]; q += x[b][c][i][j] * x[b][c][i][j]; }
        mean[c] = s / (B * H * W);
        var[c] = q / (B * H * W) - mean[c] * mean[c];
    }
    for (int b = 0; b < B; b++)
        for (int c = 0; c < C; c++)
            for (int i = 0; i < H; i++)
                for (int j = 0; j < W; j++)
                    y[b][c][i][j] = (x[b][c][i][j] - mean[c]) / sqrtf(var[c] + 1e-5f) * g[c] + bt[c];
}
