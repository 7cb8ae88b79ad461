/* 8 x 8 cosine transforms of the blocks of an image. */
#define H 2048
#define W 2048
#pragma hmpp dct codelet, target=CUDA
void dct(const float in[H][W], const float c[8][8], float out[H][W])
{
    for (int by = 0; by < H; by += 8)
        for (int bx = 0; bx < W; bx += 8) {
            float t[8][8];
            for (int i = 0; i < 8; i++)
                for (int j = 0; j < 8; j++) {
                    float s = 0;
                    for (int k = 0; k < 8; k++) s += c[i][k] * in[by + k][bx + j];
                    t[i][j] = s;
                }
            for (int i = 0; i < 8; i++)
                for (int j = 0; j < 8; j++) {
                    float s = 0;
                    for (int k = 0; k < 8; k++) s += t[i][k] * c[j][k];
                    out[by + i][bx + j] = s;
                }
        }
}
