/* A filter that weighs neighbours by distance and by difference. */
#include <math.h>
#define H 1080
#define W 1920
#define R 3
#pragma hmpp bilateral codelet, target=CUDA
void bilateral(const float in[H][W], float out[H][W], float ss, float sr)
{
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            float n = 0, d = 0;
            for (int dy = -R; dy <= R; dy++)
                for (int dx = -R; dx <= R; dx++) {
                    int yy = y + dy, xx = x + dx;
                    if (yy < 0 || yy >= H || xx < 0 || xx >= W) continue;
                    float df = in[yy][xx] - in[y][x];
                    float w = expf(-(dx * dx + dy * dy) * ss - df * df * sr);
                    n += w * in[yy][xx];
                    d += w;
                }
            out[y][x] = n / d;
        }
}
