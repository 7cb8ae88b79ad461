#include <stdbool.h>
#include <stdio.h>
#define N 37
#define BEGIN {
#define END }
#pragma hmpp a codelet
void a(int run, int given, double arrays[run], double sizes[given], double x, double codelet)
{
    for (int plan_0 = 0; plan_0 < run; plan_0++)
        for (int min = 0; min < given; min++)
            arrays[plan_0] += sizes[min] * x + codelet;
}
#pragma hmpp b codelet
void b(int new, int class, float min[new][class], float *template, float this, float operator)
{
    for (int i = 0; i < new; i++)
        for (int j = 0; j < class; j++)
            min[i][j] = template[j] * this + operator + i;
}
#pragma hmpp c codelet
void c(int n, int looptune_todo, double *addresses, double *arguments, double *looptune_run, double *launch_0)
{
    for (int i = 0; i < n; i++)
        addresses[i] = arguments[i] + looptune_run[i] * launch_0[i] + looptune_todo;
}
#pragma hmpp d codelet
void d(int n, bool all, unsigned char *flag, bool *mask, short *sh, long long *ll, unsigned short *us, signed char *sc)
{
    for (int k = 0; k < n; k++) {
        mask[k] = all || sh[k] > 3;
        flag[k] = (unsigned char)(sh[k] * 37);
        ll[k] = (long long)sh[k] * 1000000007LL * us[k];
        sc[k] = (signed char)(us[k] - 70000);
        us[k] += 65530;
        sh[k] = (short)(sh[k] * 3001);
    }
}
#pragma hmpp e codelet
void e(int n, const double from[const restrict static 1], double to[1])
{
    for (int i = 0; i < n; i++)
        to[i] = from[n - 1 - i] + 1;
}
#pragma hmpp f codelet
void f(int n, double *x) BEGIN
    for (int i = 0; i < n; i++)
        x[i] *= 2;
END
double dot(int n, const double *looptune_result, double looptune_expected)
{
    double s = looptune_expected;
    for (int i = 0; i < n; i++)
        s += looptune_result[i];
    return s;
}
int main(void)
{
    static double A[N], B[N], C[N], D[N];
    static float M[N][N], T[N];
    unsigned char fl[N];
    bool ma[N];
    short sh[N];
    long long ll[N];
    unsigned short us[N];
    signed char sc[N];
    double s = 0;
    for (int i = 0; i < N; i++) {
        A[i] = i; B[i] = 2 * i; C[i] = 3; D[i] = i * i; T[i] = i; sh[i] = i; us[i] = 3 * i;
    }
    a(N, N - 3, A, B, 2, 1);
    printf("%.17g\n", A[3]);
    b(N, N, M, T, 3, 4);
    c(N, 5, A, B, C, D);
    printf("%.17g\n", A[3]);
    d(N, sh[0] > 2, fl, ma, sh, ll, us, sc);
    e(N, D, B);
    f(N, D);
    for (int i = 0; i < N; i++)
        s += A[i] * (i + 1) + B[i] * 3 + D[i] + M[i][N - 1 - i] + fl[i] + ma[i] * 7 + sh[i] + (double)ll[i] + us[i] * 11 + sc[i];
    printf("%.17g %.17g\n", s, dot(N, A, 2));
    return 0;
}
