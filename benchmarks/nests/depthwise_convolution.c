/* A 3 x 3 convolution of each channel, with bias and cut at 0. */
#define B 32
#define C 256
#define H 56
#define W 56
#pragma hmpp depthwise codelet, target=CUDA
void depthwise(const float x[B][C][H + 2][W + 2], const float k[C][3][3], const float bias[C], float y[B][C][H][W])
{
    for (int b = 0; b < B; b++)
        for (int c = 0; c < C; c++)
            for (int i = 0; i < H; i++)
                for (int j = 0; j < W; j++) {
                    float s = bias[c];
                    for (int p = 0; p < 3; p++)
                        for (int q = 0; q < 3; q++) s += x[b][c][i + p][j + q] * k[c][p][q];
                    y[b][c][i][j] = s > 0 ? s : 0;
                }
}
