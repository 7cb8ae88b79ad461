/* A step of the lattice Boltzmann method, D2Q9, with tables of constants. */
#define H 2048
#define W 2048
#pragma hmpp lbm codelet, target=CUDA
void lbm(const float f[9][H][W], float g[9][H][W], float omega)
{
    static const int cx[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, cy[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
    static const float w[9] = {4.f/9, 1.f/9, 1.f/9, 1.f/9, 1.f/9, 1.f/36, 1.f/36, 1.f/36, 1.f/36};
    for (int y = 1; y < H - 1; y++)
        for (int x = 1; x < W - 1; x++) {
            float p[9], rho = 0, ux = 0, uy = 0;
            for (int k = 0; k < 9; k++) {
                p[k] = f[k][y - cy[k]][x - cx[k]];
                rho += p[k]; ux += cx[k] * p[k]; uy += cy[k] * p[k];
            }
            ux /= rho; uy /= rho;
            float u2 = 1.5f * (ux * ux + uy * uy);
            for (int k = 0; k < 9; k++) {
                float cu = 3.f * (cx[k] * ux + cy[k] * uy);
                g[k][y][x] = p[k] + omega * (w[k] * rho * (1.f + cu + 0.5f * cu * cu - u2) - p[k]);
            }
        }
}
