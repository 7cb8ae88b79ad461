/* Gaussian elimination without pivoting, with a right-hand side, in linear memory. */
#pragma hmpp gaussian codelet, target=CUDA
void gaussian(int n, float m[n * n], float a[n * n], float b[n])
{
    for (int t = 0; t < n - 1; t++) {
        for (int i = 0; i < n - 1 - t; i++)
            m[n * (i + t + 1) + t] = a[n * (i + t + 1) + t] / a[n * t + t];
        for (int i = 0; i < n - 1 - t; i++) {
            for (int j = 0; j < n - t; j++)
                a[n * (i + 1 + t) + (j + t)] -= m[n * (i + 1 + t) + t] * a[n * t + (j + t)];
            b[i + 1 + t] -= m[n * (i + 1 + t) + t] * b[t];
        }
    }
}
