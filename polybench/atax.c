/* tmp = A * x and y = transpose(A) * tmp, with A of nx x ny elements, row-major, x and y of ny and tmp of nx.
 *
 * Source: ATAX of PolyBench/GPU 1.0 (Grauer-Gray and Pouchet): its loop nest, its initial values, its 4096 x 4096
 * of float; tuned in Grauer-Gray et al., "Auto-tuning a High-Level Language Targeted to GPU Codes", InPar 2012.
 * The paper had split loop 2 by hand: `distribute` does it here, at the `cut`.
 *
 *     gcc -O2 polybench/atax.c -lm && ./a.out         prints the sizes, a checksum and three elements of y and of tmp
 *     -DDUMP                                          prints every element, one vector a line: y, tmp
 *     -DTIME                                          prints the seconds the codelet took, to stderr
 *     -DMINI_DATASET (32) SMALL (128) MEDIUM (1024) PAPER (4096, the default) STANDARD (4000) LARGE (8000)
 *     EXTRALARGE (16000)
 *     -DNX=.. -DNY=.. -DDATA_TYPE=double              any sizes, either type
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(MINI_DATASET)
#define SIZE 32
#elif defined(SMALL_DATASET)
#define SIZE 128
#elif defined(MEDIUM_DATASET)
#define SIZE 1024
#elif defined(STANDARD_DATASET)
#define SIZE 4000
#elif defined(LARGE_DATASET)
#define SIZE 8000
#elif defined(EXTRALARGE_DATASET)
#define SIZE 16000
#else /* PAPER_DATASET */
#define SIZE 4096
#endif

#ifndef NX
#define NX SIZE
#endif
#ifndef NY
#define NY SIZE
#endif
#ifndef DATA_TYPE
#define DATA_TYPE float
#endif

#define PI 3.14159265358979

#pragma hmpp atax codelet, target=CUDA, args[y;tmp].io=out
static void atax(int nx, int ny, DATA_TYPE A[nx][ny], DATA_TYPE x[ny], DATA_TYPE y[ny], DATA_TYPE tmp[nx])
{
    int i, j;

#pragma hmppcg grid blocksize 32x8
    for (i = 0; i < ny; i++) {
        y[i] = 0;
    }

#pragma hmppcg grid blocksize 32x8
#pragma hmppcg distribute
    for (i = 0; i < nx; i++) {
        tmp[i] = 0;
        for (j = 0; j < ny; j++) {
            tmp[i] = tmp[i] + A[i][j] * x[j];
        }
#pragma hmppcg cut
        for (j = 0; j < ny; j++) {
            y[j] = y[j] + A[i][j] * tmp[i];
        }
    }
}

static void init(int nx, int ny, DATA_TYPE A[nx][ny], DATA_TYPE x[ny])
{
    int i, j;

    for (j = 0; j < ny; j++)
        x[j] = j * PI;
    for (i = 0; i < nx; i++)
        for (j = 0; j < ny; j++)
            A[i][j] = ((DATA_TYPE)i * j) / nx;
}

/* Weighs each element by its place, so that two swapped elements change the sum. */
static double checksum(int n, DATA_TYPE x[n])
{
    double sum = 0;
    int i;

    for (i = 0; i < n; i++) {
        sum += (double)x[i] * (1 + (3 * i) % 11);
#ifdef DUMP
        printf("%.9g%c", (double)x[i], i + 1 < n ? ' ' : '\n');
#endif
    }
    return sum;
}

static void print(int nx, int ny, DATA_TYPE y[ny], DATA_TYPE tmp[nx])
{
    double sum = checksum(ny, y) + 2 * checksum(nx, tmp);

    printf("atax nx=%d ny=%d checksum=%.6e\n", nx, ny, sum);
    printf("y %.6e %.6e middle %.6e\n", (double)y[0], (double)y[ny - 1], (double)y[ny / 2]);
    printf("tmp %.6e %.6e middle %.6e\n", (double)tmp[0], (double)tmp[nx - 1], (double)tmp[nx / 2]);
}

int main(void)
{
    int nx = NX, ny = NY;
    DATA_TYPE(*A)[ny] = malloc(sizeof(DATA_TYPE) * nx * ny);
    DATA_TYPE *x = malloc(sizeof(DATA_TYPE) * ny);
    DATA_TYPE *y = malloc(sizeof(DATA_TYPE) * ny);
    DATA_TYPE *tmp = malloc(sizeof(DATA_TYPE) * nx);

    if (!A || !x || !y || !tmp) {
        fprintf(stderr, "atax: no memory for %d x %d\n", nx, ny);
        return 1;
    }
    init(nx, ny, A, x);
#ifdef TIME
    clock_t start = clock();
#endif
#pragma hmpp atax callsite
    atax(nx, ny, A, x, y, tmp);
#ifdef TIME
    fprintf(stderr, "%.6f s\n", (double)(clock() - start) / CLOCKS_PER_SEC);
#endif
    print(nx, ny, y, tmp);
    free(A);
    free(x);
    free(y);
    free(tmp);
    return 0;
}
