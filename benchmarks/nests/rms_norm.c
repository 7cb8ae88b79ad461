/* Rows divided by their root mean squares. */
#include <math.h>
#define T 4096
#define D 4096
#pragma hmpp rms codelet, target=CUDA
void rms(float *o, const float *x, const float *w, int t, int d)
{
    for (int i = 0; i < t; i++) {
        float ss = 0.0f;
        for (int j = 0; j < d; j++) ss += x[i * d + j] * x[i * d + j];
        ss = 1.0f / sqrtf(ss / d + 1e-5f);
        for (int j = 0; j < d; j++) o[i * d + j] = w[j] * (ss * x[i * d + j]);
    }
}
int main(void)
{
    static float o[T * D], x[T * D], w[D];
    rms(o, x, w, T, D);
    return 0;
}
