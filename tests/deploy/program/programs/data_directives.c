#include <stdio.h>
#include <stdlib.h>
#define N 64
#pragma hmpp <g> group, target=CUDA
#pragma hmpp <g> map, args[first::B; second::B]
#pragma hmpp <g> first codelet, args[B].io=out
static void first(int n, float A[n], float B[n])
{
    for (int i = 0; i < n; i++) B[i] = A[i] * 2;
}
#pragma hmpp <g> second codelet, args[B].io=in, &
#pragma hmpp & args[C].io=inout
static void second(int n, float B[n], float C[n])
{
    for (int i = 0; i < n; i++) C[i] += B[i];
}
static float A[N], B[N], C[N];
int main(void)
{
    int n = N, t;
    for (int i = 0; i < n; i++) { A[i] = i; C[i] = 1; }
#pragma hmpp <g> allocate
#pragma hmpp <g> first advancedload, args[A]
#pragma hmpp <g> second advancedload, args[C]
    for (t = 0; t < 10; t++) {
#pragma hmpp <g> first callsite, args[A].advancedload=true
        first(n, A, B);
#pragma hmpp <g> second callsite, args[C].advancedload=true, args[B].advancedload=true, asynchronous
        second(n, B, C);
#pragma hmpp <g> second synchronize
    }
#pragma hmpp <g> first delegatedstore, args[B]
#pragma hmpp <g> second delegatedstore, args[C]
#pragma hmpp <g> release
    double s = 0;
    for (int i = 0; i < n; i++) s += C[i] * (i + 1) + B[i];
    printf("%.9g\n", s);
    return 0;
}
