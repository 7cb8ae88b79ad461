/* A 3 x 3 convolution of a batch of images with several channels. */
#define NB 8
#define CI 64
#define CO 64
#define H 56
#define W 56
#pragma hmpp conv codelet, target=CUDA
void conv(float in[NB][CI][H+2][W+2], float w[CO][CI][3][3], float out[NB][CO][H][W])
{
    for (int b = 0; b < NB; b++)
        for (int o = 0; o < CO; o++)
            for (int y = 0; y < H; y++)
                for (int x = 0; x < W; x++) {
                    float s = 0;
                    for (int c = 0; c < CI; c++)
                        for (int p = 0; p < 3; p++)
                            for (int q = 0; q < 3; q++)
                                s += in[b][c][y + p][x + q] * w[o][c][p][q];
                    out[b][o][y][x] = s;
                }
}
