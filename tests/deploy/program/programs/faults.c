/* Calls of which the driver may refuse any step: copies beside kernels, copies that stay, asynchronous calls */
#include <stdio.h>
#include <stdlib.h>
enum { N = 200 };
#pragma hmpp filter codelet, args[k].transfer=atfirstcall, args[to].io=out
void filter(int n, const float k[3], const float from[n], float to[n])
{
    for (int i = 1; i < n - 1; i++) to[i] = k[0] * from[i - 1] + k[1] * from[i] + k[2] * from[i + 1];
}
#pragma hmpp add codelet, args[to].io=inout
void add(int n, float a, const float from[n], float to[n])
{
    for (int i = 0; i < n; i++) to[i] += a * from[i];
}
int main(void)
{
    int n = N;
    float k[3] = {1, 2, 1}, x[N], y[N], z[N], w[N];
    for (int i = 0; i < n; i++) x[i] = i % 4, y[i] = z[i] = w[i] = i % 3;
    for (int t = 0; t < 3; t++) {
#pragma hmpp filter callsite
        filter(n, k, x, y);
#pragma hmpp filter callsite, args[from;to].noupdate=true
        filter(n, k, x, z);
#pragma hmpp add callsite, asynchronous
        add(n, 1, y, z);
        w[t] += t; /* copied to the device while the call before runs */
#pragma hmpp filter callsite, asynchronous
        filter(n, k, w, x);
#pragma hmpp add synchronize
#pragma hmpp filter synchronize
        printf("%g %g %g\n", x[5], y[6], z[5]);
        x[4] += 10;
    }
    return 0;
}
