/* A sum of sines and cosines for each voxel. */
#include <math.h>
#define X 100000
#define K 2048
#pragma hmpp mriq codelet, target=CUDA
void mriq(const float kx[K], const float ky[K], const float kz[K], const float phi[K], const float x[X], const float y[X], const float z[X], float qr[X], float qi[X])
{
    for (int k = 0; k < K; k++)
        for (int i = 0; i < X; i++) {
            float e = 6.2831853f * (kx[k] * x[i] + ky[k] * y[i] + kz[k] * z[i]);
            qr[i] += phi[k] * cosf(e);
            qi[i] += phi[k] * sinf(e);
        }
}
