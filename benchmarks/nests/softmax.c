/* Softmax of rows, with the maximum under a condition. */
#include <math.h>
#define R 8192
#define C 4096
#pragma hmpp softmax codelet, target=CUDA
void softmax(float x[R][C], float y[R][C])
{
    for (int i = 0; i < R; i++) {
        float m = x[i][0];
        for (int j = 1; j < C; j++)
            if (x[i][j] > m) m = x[i][j];
        float s = 0;
        for (int j = 0; j < C; j++) {
            y[i][j] = expf(x[i][j] - m);
            s += y[i][j];
        }
        for (int j = 0; j < C; j++) y[i][j] /= s;
    }
}
