/* A prefix sum, of which every element needs the one before. */
#define N 20000000
#pragma hmpp prefix codelet, target=CUDA
void prefix(const float x[N], float y[N])
{
    float s = 0;
    for (int i = 0; i < N; i++) { s += x[i]; y[i] = s; }
}
