/* Stockham's transform of many rows of 1024 complex numbers, radix 2. */
#define B 4096
#define N 1024
#pragma hmpp fft codelet, target=CUDA
void fft(float re[2][B][N], float im[2][B][N], const float wr[N], const float wi[N])
{
    for (int b = 0; b < B; b++) {
        int l = N / 2, m = 1, src = 0;
        for (int st = 0; st < 10; st++) {
            for (int j = 0; j < l; j++)
                for (int k = 0; k < m; k++) {
                    float ar = re[src][b][k + j * m], ai = im[src][b][k + j * m];
                    float br = re[src][b][k + j * m + l * m], bi = im[src][b][k + j * m + l * m];
                    float dr = ar - br, di = ai - bi;
                    re[1 - src][b][k + 2 * j * m] = ar + br;
                    im[1 - src][b][k + 2 * j * m] = ai + bi;
                    re[1 - src][b][k + 2 * j * m + m] = wr[j * m] * dr - wi[j * m] * di;
                    im[1 - src][b][k + 2 * j * m + m] = wr[j * m] * di + wi[j * m] * dr;
                }
            l /= 2; m *= 2; src = 1 - src;
        }
    }
}
