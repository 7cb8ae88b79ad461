/* Counts of bytes. */
#define N 50000000
#pragma hmpp hist codelet, target=CUDA
void hist(const unsigned char x[N], int h[256])
{
    for (int i = 0; i < 256; i++) h[i] = 0;
    for (int i = 0; i < N; i++) h[x[i]]++;
}
