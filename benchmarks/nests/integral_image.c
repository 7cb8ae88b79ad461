/* Prefix sums along rows, then along columns. */
#define H 4096
#define W 4096
#pragma hmpp integral codelet, target=CUDA
void integral(const float x[H][W], double s[H][W])
{
    for (int i = 0; i < H; i++) {
        s[i][0] = x[i][0];
        for (int j = 1; j < W; j++) s[i][j] = s[i][j - 1] + x[i][j];
    }
    for (int i = 1; i < H; i++)
        for (int j = 0; j < W; j++) s[i][j] += s[i - 1][j];
}
