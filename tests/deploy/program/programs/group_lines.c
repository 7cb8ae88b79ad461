/* in the style of HMPP's manual */
#include <stdio.h>
#include <stdlib.h>
#include <math.h>

#pragma hmpp sgemm codelet, target=CUDA:CAL/IL, args[vout].io=inout, &
#pragma hmpp & args[vin1;vin2].transfer=auto
static void sgemm(int m, int n, int k, float alpha, const float vin1[n][n], const float vin2[n][n], float beta,
           float vout[n][n])
{
    int i, j, l;
    for (i = 0; i < n; i++) {
        for (j = 0; j < n; j++) {
            float prod = 0.0f;
            for (l = 0; l < k; l++)
                prod += vin1[i][l] * vin2[l][j];
            vout[i][j] = alpha * prod + beta * vout[i][j];
        }
    }
}

#pragma hmpp <grp> group, target=CUDA
#pragma hmpp <grp> map, args[init::v;scale::w]
#pragma hmpp <grp> mapbyname, total
#pragma hmpp <grp> init codelet, args[v].io=out
static void init(int n, float v[n], float total[1])
{
    int i;
    for (i = 0; i < n; i++)
        v[i] = (float)i;
    total[0] = 0;
}
#pragma hmpp <grp> scale codelet, args[w].io=inout
static void scale(int n, float w[n], float a)
{
    int i;
    for (i = 0; i < n; i++)
        w[i] = w[i] * a;
}
#pragma hmpp <grp> add codelet, args[total].io=inout, args[x].io=in
static void add(int n, float x[n], float total[1])
{
    int i;
    for (i = 0; i < n; i++)
        total[0] += x[i];
}

int main(int argc, char **argv)
{
    int size = argc > 1 ? atoi(argv[1]) : 64, i, j;
    float (*a)[size] = malloc(sizeof(float[size][size]));
    float (*b)[size] = malloc(sizeof(float[size][size]));
    float (*c)[size] = malloc(sizeof(float[size][size]));
    float *v = malloc(sizeof(float) * size), total[1];
    double sum = 0;
    for (i = 0; i < size; i++)
        for (j = 0; j < size; j++) {
            a[i][j] = (i + j) % 5;
            b[i][j] = (i * j) % 3;
            c[i][j] = 1;
        }
#pragma hmpp sgemm allocate, args[vin1;vin2;vout].size={size,size}
#pragma hmpp sgemm advancedload, args[vin1;vin2], &
#pragma hmpp &     args[m;n;k;alpha;beta]
    for (j = 0; j < 3; j++) {
#pragma hmpp sgemm callsite, args[vin1;vin2].advancedload=true, asynchronous
        sgemm(size, size, size, 1.5f, (const float (*)[size])a, (const float (*)[size])b, 0.5f, c);
#pragma hmpp sgemm synchronize
#pragma hmpp sgemm delegatedstore, args[vout]
        sum += c[j][j];
    }
#pragma hmpp sgemm release
    for (i = 0; i < size; i++)
        for (j = 0; j < size; j++)
            sum += c[i][j] * (i % 3 + 1);
    printf("sgemm %.6e\n", sum);

#pragma hmpp <grp> allocate, args[init::v].size={size}
#pragma hmpp <grp> init callsite, args[v].noupdate=true
    init(size, v, total);
#pragma hmpp <grp> scale callsite, args[w].noupdate=true
    scale(size, v, 2.0f);
#pragma hmpp <grp> delegatedstore, args[scale::w]
#pragma hmpp <grp> add callsite
    add(size, v, total);
#pragma hmpp <grp> release
    printf("%g %g\n", (double)v[size - 1], (double)total[0]);
    free(a); free(b); free(c); free(v);
    return 0;
}
