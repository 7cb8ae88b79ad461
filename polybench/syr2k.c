/* C = beta * C + alpha * A * transposed(B) + alpha * B * transposed(A), with C of n x n, A and B of n x m elements,
 * row-major. All of C is computed, not a triangle.
 *
 * Source: SYR2K of PolyBench/GPU 1.0 (Grauer-Gray and Pouchet): its two loop nests, its initial values, its 2048 x 2048
 * of float; tuned in Grauer-Gray et al., "Auto-tuning a High-Level Language Targeted to GPU Codes", InPar 2012.
 *
 *     gcc -O2 polybench/syr2k.c -lm && ./a.out        prints the sizes, a checksum and five elements of C
 *     -DDUMP                                          prints every element, one row a line
 *     -DTIME                                          prints the seconds the codelet took, to stderr
 *     -DMINI_DATASET (32) SMALL (128) MEDIUM (512) PAPER (2048, the default) STANDARD (1024) LARGE (2000)
 *     EXTRALARGE (4000)
 *     -DN=.. -DM=.. -DDATA_TYPE=double                any sizes, either type
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(MINI_DATASET)
#define SIZE 32
#elif defined(SMALL_DATASET)
#define SIZE 128
#elif defined(MEDIUM_DATASET)
#define SIZE 512
#elif defined(STANDARD_DATASET)
#define SIZE 1024
#elif defined(LARGE_DATASET)
#define SIZE 2000
#elif defined(EXTRALARGE_DATASET)
#define SIZE 4000
#else /* PAPER_DATASET */
#define SIZE 2048
#endif

#ifndef N
#define N SIZE
#endif
#ifndef M
#define M SIZE
#endif
#ifndef DATA_TYPE
#define DATA_TYPE float
#endif

#define ALPHA 12435
#define BETA 4546

#pragma hmpp syr2k codelet, target=CUDA, args[C].io=inout
static void syr2k(int n, int m, DATA_TYPE alpha, DATA_TYPE beta, DATA_TYPE C[n][n], DATA_TYPE A[n][m],
                  DATA_TYPE B[n][m])
{
    int i, j, k;

#pragma hmppcg grid blocksize 32x8
    for (i = 0; i < n; i++) {
        for (j = 0; j < n; j++) {
            C[i][j] *= beta;
        }
    }
#pragma hmppcg grid blocksize 32x8
    for (i = 0; i < n; i++) {
        for (j = 0; j < n; j++) {
            for (k = 0; k < m; k++) {
                C[i][j] += alpha * A[i][k] * B[j][k];
                C[i][j] += alpha * B[i][k] * A[j][k];
            }
        }
    }
}

static void init(int n, int m, DATA_TYPE C[n][n], DATA_TYPE A[n][m], DATA_TYPE B[n][m])
{
    int i, j;

    for (i = 0; i < n; i++) {
        for (j = 0; j < n; j++)
            C[i][j] = ((DATA_TYPE)i * j + 2) / n;
        for (j = 0; j < m; j++) {
            A[i][j] = ((DATA_TYPE)i * j) / n;
            B[i][j] = ((DATA_TYPE)i * j + 1) / n;
        }
    }
}

/* The checksum weighs each element by its place, so that two swapped elements change it. */
static void print(int n, int m, DATA_TYPE C[n][n])
{
    double checksum = 0;
    int i, j;

    for (i = 0; i < n; i++) {
        for (j = 0; j < n; j++) {
            checksum += (double)C[i][j] * (1 + (3 * i + 7 * j) % 11);
#ifdef DUMP
            printf("%.9g%c", (double)C[i][j], j + 1 < n ? ' ' : '\n');
#endif
        }
    }
    printf("syr2k n=%d m=%d checksum=%.6e\n", n, m, checksum);
    printf("corners %.6e %.6e %.6e %.6e middle %.6e\n", (double)C[0][0], (double)C[0][n - 1], (double)C[n - 1][0],
           (double)C[n - 1][n - 1], (double)C[n / 2][n / 2]);
}

int main(void)
{
    int n = N, m = M;
    DATA_TYPE alpha = ALPHA, beta = BETA;
    DATA_TYPE(*C)[n] = malloc(sizeof(DATA_TYPE) * n * n);
    DATA_TYPE(*A)[m] = malloc(sizeof(DATA_TYPE) * n * m);
    DATA_TYPE(*B)[m] = malloc(sizeof(DATA_TYPE) * n * m);

    if (!C || !A || !B) {
        fprintf(stderr, "syr2k: no memory for %d x %d\n", n, m);
        return 1;
    }
    init(n, m, C, A, B);
#ifdef TIME
    clock_t start = clock();
#endif
#pragma hmpp syr2k callsite
    syr2k(n, m, alpha, beta, C, A, B);
#ifdef TIME
    fprintf(stderr, "%.6f s\n", (double)(clock() - start) / CLOCKS_PER_SEC);
#endif
    print(n, m, C);
    free(C);
    free(A);
    free(B);
    return 0;
}
