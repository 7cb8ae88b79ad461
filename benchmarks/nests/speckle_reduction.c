/* Speckle reduction: statistics of the image, coefficients, update. */
#define R 2048
#define C 2048
#define ITER 10
#pragma hmpp srad codelet, target=CUDA
void srad(float J[R][C], float c[R][C], float dN[R][C], float dS[R][C], float dW[R][C], float dE[R][C], float lambda)
{
    for (int iter = 0; iter < ITER; iter++) {
        float sum = 0, sum2 = 0;
        for (int i = 0; i < 128; i++)
            for (int j = 0; j < 128; j++) { float t = J[i][j]; sum += t; sum2 += t * t; }
        float mean = sum / (128 * 128), var = sum2 / (128 * 128) - mean * mean, q0 = var / (mean * mean);
        for (int i = 0; i < R; i++)
            for (int j = 0; j < C; j++) {
                int in = i > 0 ? i - 1 : 0, is = i < R - 1 ? i + 1 : R - 1, jw = j > 0 ? j - 1 : 0, je = j < C - 1 ? j + 1 : C - 1;
                float jc = J[i][j];
                dN[i][j] = J[in][j] - jc; dS[i][j] = J[is][j] - jc; dW[i][j] = J[i][jw] - jc; dE[i][j] = J[i][je] - jc;
                float g2 = (dN[i][j] * dN[i][j] + dS[i][j] * dS[i][j] + dW[i][j] * dW[i][j] + dE[i][j] * dE[i][j]) / (jc * jc);
                float l = (dN[i][j] + dS[i][j] + dW[i][j] + dE[i][j]) / jc;
                float num = 0.5f * g2 - 1.0f / 16.0f * (l * l), den = 1 + 0.25f * l, q = num / (den * den);
                den = (q - q0) / (q0 * (1 + q0));
                float v = 1.0f / (1.0f + den);
                c[i][j] = v < 0 ? 0 : v > 1 ? 1 : v;
            }
        for (int i = 0; i < R; i++)
            for (int j = 0; j < C; j++) {
                int is = i < R - 1 ? i + 1 : R - 1, je = j < C - 1 ? j + 1 : C - 1;
                float d = c[i][j] * dN[i][j] + c[is][j] * dS[i][j] + c[i][j] * dW[i][j] + c[i][je] * dE[i][j];
                J[i][j] = J[i][j] + 0.25f * lambda * d;
            }
    }
}
