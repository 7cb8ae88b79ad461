/* Life on a torus, two boards in turn. */
#define N 2048
#define STEPS 100
#pragma hmpp life codelet, target=CUDA
void life(unsigned char a[N][N], unsigned char b[N][N])
{
    for (int t = 0; t < STEPS; t++) {
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                int n = 0;
                for (int di = -1; di <= 1; di++)
                    for (int dj = -1; dj <= 1; dj++)
                        if (di || dj) n += a[(i + di + N) % N][(j + dj + N) % N];
                b[i][j] = n == 3 || (n == 2 && a[i][j]);
            }
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) a[i][j] = b[i][j];
    }
}
