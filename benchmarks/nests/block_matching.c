/* Block matching: sums of absolute differences of 16 x 16 blocks over a window, the best one kept. */
#include <stdlib.h>
#define BH 67
#define BW 120
#define S 16
#pragma hmpp sad codelet, target=CUDA
void sad(const unsigned char cur[BH * 16][BW * 16], const unsigned char ref[BH * 16 + 2 * S][BW * 16 + 2 * S], int best[BH][BW])
{
    for (int by = 0; by < BH; by++)
        for (int bx = 0; bx < BW; bx++) {
            int least = 1 << 30;
            for (int dy = 0; dy < 2 * S; dy++)
                for (int dx = 0; dx < 2 * S; dx++) {
                    int s = 0;
                    for (int y = 0; y < 16; y++)
                        for (int x = 0; x < 16; x++)
                            s += abs(cur[by * 16 + y][bx * 16 + x] - ref[by * 16 + y + dy][bx * 16 + x + dx]);
                    if (s < least) least = s;
                }
            best[by][bx] = least;
        }
}
