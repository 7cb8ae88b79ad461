/* American options by a binomial tree, one array of values for each option. */
#include <math.h>
#define OPT 4096
#define STEPS 512
#pragma hmpp binomial codelet, target=CUDA
void binomial(const float s0[OPT], const float strike[OPT], float price[OPT], float u, float p, float df)
{
    for (int o = 0; o < OPT; o++) {
        float v[STEPS + 1];
        for (int i = 0; i <= STEPS; i++) {
            float x = s0[o] * powf(u, 2.0f * i - STEPS) - strike[o];
            v[i] = x > 0 ? x : 0;
        }
        for (int t = STEPS - 1; t >= 0; t--)
            for (int i = 0; i <= t; i++) v[i] = df * (p * v[i + 1] + (1 - p) * v[i]);
        price[o] = v[0];
    }
}
