/* The maximum of each 2 x 2 square of a batch of images. */
#define NB 32
#define C 64
#define H 112
#define W 112
#pragma hmpp pool codelet, target=CUDA
void pool(const float x[NB][C][H][W], float y[NB][C][H / 2][W / 2])
{
    for (int b = 0; b < NB; b++)
        for (int c = 0; c < C; c++)
            for (int i = 0; i < H / 2; i++)
                for (int j = 0; j < W / 2; j++) {
                    float m = x[b][c][2 * i][2 * j];
                    for (int p = 0; p < 2; p++)
                        for (int q = 0; q < 2; q++)
                            if (x[b][c][2 * i + p][2 * j + q] > m) m = x[b][c][2 * i + p][2 * j + q];
                    y[b][c][i][j] = m;
                }
}
