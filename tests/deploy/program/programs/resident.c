#include <stdio.h>
#define N 40
#pragma hmpp <heat> group, target=CUDA
#pragma hmpp <heat> resident
static double field[N];
static double before[N];
#pragma hmpp <heat> keep codelet
static void keep(void)
{
    for (int i = 0; i < N; i++) before[i] = field[i];
}
#pragma hmpp <heat> step codelet
static void step(double f)
{
    for (int i = 1; i < N - 1; i++) field[i] = before[i] + f * (before[i - 1] - 2 * before[i] + before[i + 1]);
}
int main(void)
{
    double s = 0;
    for (int i = 0; i < N; i++) field[i] = (i * 7) % 11;
#pragma hmpp <heat> advancedload, args[::field]
    for (int t = 0; t < 5; t++) {
        keep();
        step(0.25);
    }
#pragma hmpp <heat> delegatedstore, args[::field]
    for (int i = 0; i < N; i++) s += field[i] * (i + 1) + before[i];
    printf("%.12g\n", s);
    return 0;
}
