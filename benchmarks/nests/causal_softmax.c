/* Softmax of the last dimension of scores of heads, with a causal mask. */
#include <math.h>
#define B 32
#define T 512
#pragma hmpp causal codelet, target=CUDA
void causal(float s[B][T][T])
{
    for (int b = 0; b < B; b++)
        for (int i = 0; i < T; i++) {
            float m = -1e30f, z = 0;
            for (int j = 0; j <= i; j++) if (s[b][i][j] > m) m = s[b][i][j];
            for (int j = 0; j <= i; j++) { s[b][i][j] = expf(s[b][i][j] - m); z += s[b][i][j]; }
            for (int j = 0; j <= i; j++) s[b][i][j] /= z;
            for (int j = i + 1; j < T; j++) s[b][i][j] = 0;
        }
}
