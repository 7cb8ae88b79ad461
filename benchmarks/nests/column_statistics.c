/* Column sums and variances of a tall matrix in linear memory. */
#pragma hmpp colstat codelet, target=CUDA
void colstat(int n, int m, const double x[n * m], double mean[m], double var[m])
{
    for (int j = 0; j < m; j++) {
        double s = 0;
        for (int i = 0; i < n; i++) s += x[i * m + j];
        mean[j] = s / n;
        double v = 0;
        for (int i = 0; i < n; i++) v += (x[i * m + j] - mean[j]) * (x[i * m + j] - mean[j]);
        var[j] = v / (n - 1);
    }
}
