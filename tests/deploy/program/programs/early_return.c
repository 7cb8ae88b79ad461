#include <malloc.h>
#include <stdio.h>
#define N 100000
#pragma hmpp f codelet
static void f(int n, int stop, double *x)
{
    for (int i = 0; i < n; i++)
        x[i] += 1;
    if (stop)
        return;
    for (int i = 0; i < n; i++)
        x[i] *= 2;
}
int main(void)
{
    static double x[N];
    for (int k = 0; k < 40; k++)
        f(N, k % 10, x);
    printf("%g %d\n", x[N - 1], mallinfo2().uordblks < 10 * sizeof x);
    return 0;
}
