/* A dot product of 100 million elements. */
#define N 100000000
#pragma hmpp total codelet, target=CUDA
void total(const float x[N], const float y[N], float s[1])
{
    s[0] = 0;
    for (int i = 0; i < N; i++) s[0] += x[i] * y[i];
}
