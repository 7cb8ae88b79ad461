#include <stdio.h>
#include <stdlib.h>
#include <pthread.h>
#include <omp.h>
#define N 500
#pragma hmpp ax codelet
void ax(int n, double f, const double *x, double *y) { for (int i = 0; i < n; i++) y[i] += f * x[i]; }
#pragma hmpp sc codelet
void sc(int n, double f, double *x) { for (int i = 0; i < n; i++) x[i] *= f; }
static void *work(void *p) { double *x = p, *y = x + N; for (int k = 0; k < 20; k++) { ax(N, 1, x, y); sc(N, .5, y); ax(N / 2, 2, y, x); x[3] += 1; } return 0; }
static void nest(int n, double *x, double *y) { for (int k = 0; k < 3; k++) { ax(n, 2, x, y); sc(n, .25, y); } }
int main(void)
{
    static double m[8][2 * N]; pthread_t t[4];
    for (int k = 0; k < 8; k++) for (int i = 0; i < 2 * N; i++) m[k][i] = i % (k + 2);
    for (int k = 0; k < 4; k++) pthread_create(&t[k], 0, work, m[k]);
    for (int k = 0; k < 4; k++) pthread_join(t[k], 0);
    #pragma omp parallel for num_threads(3)
    for (int k = 0; k < 8; k++) { work(m[k]); nest(N, m[k], m[k] + N); }
    #pragma omp parallel num_threads(2)
    {
        #pragma omp single
        sc(N, 3, m[2]);
        #pragma omp for
        for (int k = 0; k < 8; k++) sc(N, 1.5, m[k]);
        #pragma omp sections
        {
            #pragma omp section
            ax(N, 1, m[0], m[1]);
            #pragma omp section
            ax(N, 1, m[2], m[3]);
        }
    }
    double s = 0; for (int k = 0; k < 8; k++) for (int i = 0; i < 2 * N; i++) s += m[k][i] * (i % 11);
    printf("%.17g\n", s);
}
