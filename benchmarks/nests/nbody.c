/* Forces between all pairs of bodies. */
#include <math.h>
#define N 16384
#pragma hmpp nbody codelet, target=CUDA
void nbody(const float x[N], const float y[N], const float z[N], const float m[N], float ax[N], float ay[N], float az[N])
{
    for (int i = 0; i < N; i++) {
        float fx = 0, fy = 0, fz = 0;
        for (int j = 0; j < N; j++) {
            float dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
            float r = dx * dx + dy * dy + dz * dz + 0.01f;
            float inv = 1.0f / sqrtf(r);
            float s = m[j] * inv * inv * inv;
            fx += dx * s; fy += dy * s; fz += dz * s;
        }
        ax[i] = fx; ay[i] = fy; az[i] = fz;
    }
}
