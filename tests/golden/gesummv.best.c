/* looptune transform
   loop j: parallel
   codelet: grid blocksize 128x1
   added up in another order than in the original: +:tmp (55:13)
   added up in another order than in the original: +:y (56:13)
   assumed: these do not overlap: A and y, A and tmp, B and y, B and tmp, x and y, x and tmp, y and tmp
*/
#define N 4096
/* y = alpha * A * x + beta * B * x and tmp = A * x, with A and B of n x n elements, row-major, x, y and tmp of n.
 *
 * Source: GESUMMV of PolyBench/GPU 1.0 (Grauer-Gray and Pouchet): its loop nest, its initial values, its 4096 x 4096
 * of float; tuned in Grauer-Gray et al., "Auto-tuning a High-Level Language Targeted to GPU Codes", InPar 2012.
 * B, which the original leaves without initial values, is (i j + 1) / n here.
 *
 *     gcc -O2 polybench/gesummv.c -lm && ./a.out      prints the size, a checksum and three elements of y and of tmp
 *     -DDUMP                                          prints every element, one vector a line: y, tmp
 *     -DTIME                                          prints the seconds the codelet took, to stderr
 *     -DMINI_DATASET (32) SMALL (128) MEDIUM (1024) PAPER (4096, the default) STANDARD (4000) LARGE (8000)
 *     EXTRALARGE (16000)
 *     -DN=.. -DDATA_TYPE=double                       any size, either type
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

#ifndef N
#endif
#ifndef DATA_TYPE
#define DATA_TYPE float
#endif

#define ALPHA 43532
#define BETA 12313

#pragma hmpp gesummv codelet, target=CUDA, args[y;tmp].io=out
static void gesummv(int n, DATA_TYPE alpha, DATA_TYPE beta, DATA_TYPE A[n][n], DATA_TYPE B[n][n],
                    DATA_TYPE x[n], DATA_TYPE y[n], DATA_TYPE tmp[n])
{
    int i, j;

    #pragma hmppcg parallel
    #pragma hmppcg grid blocksize 128x1
    for (int i = 0; i < n; i++) {
      tmp[i] = 0;
      y[i] = 0;
      #pragma hmppcg parallel, reduce(+:tmp, +:y)
      for (int j = 0; j < n; j++) {
        tmp[i] = A[i][j] * x[j] + tmp[i];
        y[i] = B[i][j] * x[j] + y[i];
      }
      y[i] = alpha * tmp[i] + beta * y[i];
    }
}

static void init(int n, DATA_TYPE A[n][n], DATA_TYPE B[n][n], DATA_TYPE x[n])
{
    int i, j;

    for (i = 0; i < n; i++) {
        x[i] = ((DATA_TYPE)i) / n;
        for (j = 0; j < n; j++) {
            A[i][j] = ((DATA_TYPE)i * j) / n;
            B[i][j] = ((DATA_TYPE)i * j + 1) / n;
        }
    }
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

static void print(int n, DATA_TYPE y[n], DATA_TYPE tmp[n])
{
    double sum = checksum(n, y) + 2 * checksum(n, tmp);

    printf("gesummv n=%d checksum=%.6e\n", n, sum);
    printf("y %.6e %.6e middle %.6e\n", (double)y[0], (double)y[n - 1], (double)y[n / 2]);
    printf("tmp %.6e %.6e middle %.6e\n", (double)tmp[0], (double)tmp[n - 1], (double)tmp[n / 2]);
}

int main(void)
{
    int n = N;
    DATA_TYPE alpha = ALPHA, beta = BETA;
    DATA_TYPE(*A)[n] = malloc(sizeof(DATA_TYPE) * n * n);
    DATA_TYPE(*B)[n] = malloc(sizeof(DATA_TYPE) * n * n);
    DATA_TYPE *x = malloc(sizeof(DATA_TYPE) * n);
    DATA_TYPE *y = malloc(sizeof(DATA_TYPE) * n);
    DATA_TYPE *tmp = malloc(sizeof(DATA_TYPE) * n);

    if (!A || !B || !x || !y || !tmp) {
        fprintf(stderr, "gesummv: no memory for %d x %d\n", n, n);
        return 1;
    }
    init(n, A, B, x);
#ifdef TIME
    clock_t start = clock();
#endif
#pragma hmpp gesummv callsite
    gesummv(n, alpha, beta, A, B, x, y, tmp);
#ifdef TIME
    fprintf(stderr, "%.6f s\n", (double)(clock() - start) / CLOCKS_PER_SEC);
#endif
    print(n, y, tmp);
    free(A);
    free(B);
    free(x);
    free(y);
    free(tmp);
    return 0;
}
