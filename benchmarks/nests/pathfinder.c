/* The cheapest way through a grid, row by row, as Rodinia has it. */
#define COLS 100000
#define ROWS 1000
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#pragma hmpp pathfinder codelet, target=CUDA
void pathfinder(const int wall[ROWS][COLS], int src[COLS], int dst[COLS])
{
    for (int t = 0; t < ROWS - 1; t++) {
        for (int n = 0; n < COLS; n++) {
            int m = src[n];
            if (n > 0) m = MIN(m, src[n - 1]);
            if (n < COLS - 1) m = MIN(m, src[n + 1]);
            dst[n] = wall[t + 1][n] + m;
        }
        for (int n = 0; n < COLS; n++) src[n] = dst[n];
    }
}
