/* looptune transform
   nest 3: permute j, i
   loop 1: fuse
   loop 2: fuse
   loop 2: parallel
   loop 1: unroll 4, jam
   loop 1: rfactor 256
   codelet: grid blocksize 32x8
   added up in another order than in the original: +:x2 (55:13)
   added up in another order than in the original: +:x1 (48:13)
   assumed: these do not overlap: A and x1, A and x2, x1 and x2, x1 and y1, x1 and y2, x2 and y1, x2 and y2
*/
#define N 4096
/* x1 = x1 + A * y1 and x2 = x2 + transpose(A) * y2, with A of n x n elements, row-major, and four vectors of n.
 *
 * Source: MVT of PolyBench/GPU 1.0 (Grauer-Gray and Pouchet): its two loop nests, its initial values, its 4096 x 4096
 * of float; tuned in Grauer-Gray et al., "Auto-tuning a High-Level Language Targeted to GPU Codes", InPar 2012.
 *
 *     gcc -O2 polybench/mvt.c -lm && ./a.out          prints the size, a checksum and three elements of x1 and of x2
 *     -DDUMP                                          prints every element, one vector a line: x1, x2
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

#pragma hmpp mvt codelet, target=CUDA, args[x1;x2].io=inout
static void mvt(int n, DATA_TYPE A[n][n], DATA_TYPE x1[n], DATA_TYPE x2[n], DATA_TYPE y1[n], DATA_TYPE y2[n])
{
    int i, j;

    #pragma hmppcg noParallel
    #pragma looptune rfactor 256
    #pragma hmppcg grid blocksize 32x8
    for (int i = 0; i < n / 4; i++) {
      #pragma hmppcg parallel, reduce(+:x1)
      for (int j = 0; j < n; j++) {
        x1[4 * i] += A[4 * i][j] * y1[j];
        x1[4 * i + 1] += A[4 * i + 1][j] * y1[j];
        x1[4 * i + 2] += A[4 * i + 2][j] * y1[j];
        x1[4 * i + 3] += A[4 * i + 3][j] * y1[j];
        x2[j] += A[4 * i][j] * y2[4 * i];
        x2[j] += A[4 * i + 1][j] * y2[4 * i + 1];
        x2[j] += A[4 * i + 2][j] * y2[4 * i + 2];
        x2[j] += A[4 * i + 3][j] * y2[4 * i + 3];
      }
    }
    #pragma hmppcg noParallel
    #pragma looptune rfactor 256
    #pragma hmppcg grid blocksize 32x8
    for (int i = n - n % 4; i < n; i++) {
      #pragma hmppcg parallel, reduce(+:x1)
      for (int j = 0; j < n; j++) {
        x1[i] += A[i][j] * y1[j];
        x2[j] += A[i][j] * y2[i];
      }
    }
}

static void init(int n, DATA_TYPE A[n][n], DATA_TYPE x1[n], DATA_TYPE x2[n], DATA_TYPE y1[n], DATA_TYPE y2[n])
{
    int i, j;

    for (i = 0; i < n; i++) {
        x1[i] = ((DATA_TYPE)i) / n;
        x2[i] = ((DATA_TYPE)i + 1) / n;
        y1[i] = ((DATA_TYPE)i + 3) / n;
        y2[i] = ((DATA_TYPE)i + 4) / n;
        for (j = 0; j < n; j++)
            A[i][j] = ((DATA_TYPE)i * j) / n;
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

static void print(int n, DATA_TYPE x1[n], DATA_TYPE x2[n])
{
    double sum = checksum(n, x1) + 2 * checksum(n, x2);

    printf("mvt n=%d checksum=%.6e\n", n, sum);
    printf("x1 %.6e %.6e middle %.6e\n", (double)x1[0], (double)x1[n - 1], (double)x1[n / 2]);
    printf("x2 %.6e %.6e middle %.6e\n", (double)x2[0], (double)x2[n - 1], (double)x2[n / 2]);
}

int main(void)
{
    int n = N;
    DATA_TYPE(*A)[n] = malloc(sizeof(DATA_TYPE) * n * n);
    DATA_TYPE *x1 = malloc(sizeof(DATA_TYPE) * n);
    DATA_TYPE *x2 = malloc(sizeof(DATA_TYPE) * n);
    DATA_TYPE *y1 = malloc(sizeof(DATA_TYPE) * n);
    DATA_TYPE *y2 = malloc(sizeof(DATA_TYPE) * n);

    if (!A || !x1 || !x2 || !y1 || !y2) {
        fprintf(stderr, "mvt: no memory for %d x %d\n", n, n);
        return 1;
    }
    init(n, A, x1, x2, y1, y2);
#ifdef TIME
    clock_t start = clock();
#endif
#pragma hmpp mvt callsite
    mvt(n, A, x1, x2, y1, y2);
#ifdef TIME
    fprintf(stderr, "%.6f s\n", (double)(clock() - start) / CLOCKS_PER_SEC);
#endif
    print(n, x1, x2);
    free(A);
    free(x1);
    free(x2);
    free(y1);
    free(y2);
    return 0;
}
