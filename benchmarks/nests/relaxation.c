/* Relaxation until the largest change is small. */
#include <math.h>
#define N 1024
#pragma hmpp relax codelet, target=CUDA
void relax(double a[N][N], double b[N][N], double tol)
{
    double err = 1;
    int iter = 0;
    while (err > tol && iter < 100) {
        err = 0;
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++) {
                b[i][j] = 0.25 * (a[i - 1][j] + a[i + 1][j] + a[i][j - 1] + a[i][j + 1]);
                err = fmax(err, fabs(b[i][j] - a[i][j]));
            }
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++) a[i][j] = b[i][j];
        iter++;
    }
}
