/* Iterations of a point, in a while loop. */
#define H 2048
#define W 2048
#pragma hmpp mandel codelet, target=CUDA
void mandel(int it[H][W])
{
    for (int i = 0; i < H; i++)
        for (int j = 0; j < W; j++) {
            double cr = -2.0 + 3.0 * j / W, ci = -1.5 + 3.0 * i / H, zr = 0, zi = 0;
            int k = 0;
            while (k < 500 && zr * zr + zi * zi < 4.0) {
                double t = zr * zr - zi * zi + cr;
                zi = 2 * zr * zi + ci;
                zr = t;
                k++;
            }
            it[i][j] = k;
        }
}
