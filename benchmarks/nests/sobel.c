/* Edges of an image of bytes behind a pointer. */
#include <stdlib.h>
#define H 4096
#define W 4096
static inline int clamp(int v) { return v < 0 ? 0 : v > 255 ? 255 : v; }
#pragma hmpp sobel codelet, target=CUDA
void sobel(const unsigned char *in, unsigned char *out, int w, int h)
{
    for (int y = 1; y < h - 1; y++)
        for (int x = 1; x < w - 1; x++) {
            int gx = -in[(y - 1) * w + x - 1] + in[(y - 1) * w + x + 1] - 2 * in[y * w + x - 1] + 2 * in[y * w + x + 1] - in[(y + 1) * w + x - 1] + in[(y + 1) * w + x + 1];
            int gy = -in[(y - 1) * w + x - 1] - 2 * in[(y - 1) * w + x] - in[(y - 1) * w + x + 1] + in[(y + 1) * w + x - 1] + 2 * in[(y + 1) * w + x] + in[(y + 1) * w + x + 1];
            out[y * w + x] = clamp(abs(gx) + abs(gy));
        }
}
