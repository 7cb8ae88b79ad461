/* Separable Gaussian blur of 15 taps through a temporary image. */
#define H 4096
#define W 4096
#define R 7
#pragma hmpp blur codelet, target=CUDA
void blur(const float in[H][W], float tmp[H][W], float out[H][W], const float g[2 * R + 1])
{
    for (int y = 0; y < H; y++)
        for (int x = R; x < W - R; x++) {
            float s = 0;
            for (int k = -R; k <= R; k++) s += g[k + R] * in[y][x + k];
            tmp[y][x] = s;
        }
    for (int y = R; y < H - R; y++)
        for (int x = R; x < W - R; x++) {
            float s = 0;
            for (int k = -R; k <= R; k++) s += g[k + R] * tmp[y + k][x];
            out[y][x] = s;
        }
}
