/* Luminance of an image of three interleaved bytes a pixel. */
#define H 4320
#define W 7680
#pragma hmpp grey codelet, target=CUDA
void grey(const unsigned char rgb[H * W * 3], unsigned char out[H * W])
{
    for (int i = 0; i < H; i++)
        for (int j = 0; j < W; j++) {
            int p = i * W + j;
            out[p] = (77 * rgb[3 * p] + 150 * rgb[3 * p + 1] + 29 * rgb[3 * p + 2] + 128) >> 8;
        }
}
