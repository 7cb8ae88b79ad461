/* Attention of several heads: scores, softmax of rows, weighted sums. */
#include <math.h>
#define HEADS 16
#define T 1024
#define D 64
#pragma hmpp attention codelet, target=CUDA
void attention(const float q[HEADS][T][D], const float k[HEADS][T][D], const float v[HEADS][T][D], float s[HEADS][T][T], float o[HEADS][T][D])
{
    for (int h = 0; h < HEADS; h++)
        for (int i = 0; i < T; i++) {
            for (int j = 0; j < T; j++) {
                float d = 0;
                for (int c = 0; c < D; c++) d += q[h][i][c] * k[h][j][c];
                s[h][i][j] = d * 0.125f;
            }
            float m = s[h][i][0];
            for (int j = 1; j < T; j++) m = fmaxf(m, s[h][i][j]);
            float z = 0;
            for (int j = 0; j < T; j++) { s[h][i][j] = expf(s[h][i][j] - m); z += s[h][i][j]; }
            for (int c = 0; c < D; c++) {
                float a = 0;
                for (int j = 0; j < T; j++) a += s[h][i][j] * v[h][j][c];
                o[h][i][c] = a / z;
            }
        }
}
