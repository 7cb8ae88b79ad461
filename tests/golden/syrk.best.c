/* looptune transform
   loop 3: fold
   loop 3: box 8
   loop 4: box 8
   loop 3: unroll 8, jam
   loop 4: unroll 4, jam
   loop k: rfactor 6
   loop k: tile k:16
   loop k: stage A, buffers 2, unroll 16
   codelet: grid blocksize 16x8
   codelet: pack
   added up in another order than in the original: +:C (62:17)
   assumed: these do not overlap: C and A
*/
#define N 1024
#define M 1024
/* C = beta * C + alpha * A * transposed(A), with C of n x n and A of n x m elements, row-major. All of C is
 * computed, not a triangle.
 *
 * Source: SYRK of PolyBench/GPU 1.0 (Grauer-Gray and Pouchet): its two loop nests, its initial values, its 1024 x 1024
 * of float; tuned in Grauer-Gray et al., "Auto-tuning a High-Level Language Targeted to GPU Codes", InPar 2012.
 *
 *     gcc -O2 polybench/syrk.c -lm && ./a.out         prints the sizes, a checksum and five elements of C
 *     -DDUMP                                          prints every element, one row a line
 *     -DTIME                                          prints the seconds the codelet took, to stderr
 *     -DMINI_DATASET (32) SMALL (128) MEDIUM (512) PAPER (1024, the default) STANDARD (1024) LARGE (2000)
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
#define SIZE 1024
#endif

#ifndef N
#endif
#ifndef M
#endif
#ifndef DATA_TYPE
#define DATA_TYPE float
#endif

#define ALPHA 12435
#define BETA 4546

#pragma hmpp syrk codelet, target=CUDA, args[C].io=inout
static void syrk(int n, int m, DATA_TYPE alpha, DATA_TYPE beta, DATA_TYPE C[n][n], DATA_TYPE A[n][m])
{
    int i, j, k;

    #pragma hmppcg parallel
    #pragma hmppcg grid blocksize 16x8
    #pragma looptune pack
    for (int i = 0; i < n; i++) {
      #pragma hmppcg parallel
      for (int j = 0; j < n; j++) {
        C[i][j] *= beta;
      }
    }
    #pragma hmppcg parallel
    #pragma hmppcg grid blocksize 16x8
    #pragma looptune pack
    for (int i = 0; i < (n + 7) / 8; i++) {
      if (8 * i < n) {
        #pragma hmppcg parallel
        for (int j = 0; j < (n + 7) / 8 * 2; j++) {
          if (4 * j < 8 * i + 8) {
            #pragma hmppcg noParallel
            #pragma looptune rfactor 6
            for (int outer_k = 0; outer_k < (m + 15) / 16; outer_k++) {
              #pragma hmppcg noParallel
              #pragma looptune stage A, buffers 2, unroll 16
              for (int k = 16 * outer_k; k < (16 * outer_k + 16 < m ? 16 * outer_k + 16 : m); k++) {
                if (4 * j < 8 * i + 1) {
                  C[8 * i][4 * j] += alpha * A[8 * i][k] * A[4 * j][k];
                }
                if (8 * i + 1 < n && 4 * j < 8 * i + 2) {
                  C[8 * i + 1][4 * j] += alpha * A[8 * i + 1][k] * A[4 * j][k];
                }
                if (8 * i + 2 < n && 4 * j < 8 * i + 3) {
                  C[8 * i + 2][4 * j] += alpha * A[8 * i + 2][k] * A[4 * j][k];
                }
                if (8 * i + 3 < n && 4 * j < 8 * i + 4) {
                  C[8 * i + 3][4 * j] += alpha * A[8 * i + 3][k] * A[4 * j][k];
                }
                if (8 * i + 4 < n && 4 * j < 8 * i + 5) {
                  C[8 * i + 4][4 * j] += alpha * A[8 * i + 4][k] * A[4 * j][k];
                }
                if (8 * i + 5 < n && 4 * j < 8 * i + 6) {
                  C[8 * i + 5][4 * j] += alpha * A[8 * i + 5][k] * A[4 * j][k];
                }
                if (8 * i + 6 < n && 4 * j < 8 * i + 7) {
                  C[8 * i + 6][4 * j] += alpha * A[8 * i + 6][k] * A[4 * j][k];
                }
                if (8 * i + 7 < n) {
                  C[8 * i + 7][4 * j] += alpha * A[8 * i + 7][k] * A[4 * j][k];
                }
                if (4 * j + 1 < 8 * i + 1) {
                  C[8 * i][4 * j + 1] += alpha * A[8 * i][k] * A[4 * j + 1][k];
                }
                if (8 * i + 1 < n && 4 * j + 1 < 8 * i + 2) {
                  C[8 * i + 1][4 * j + 1] += alpha * A[8 * i + 1][k] * A[4 * j + 1][k];
                }
                if (8 * i + 2 < n && 4 * j + 1 < 8 * i + 3) {
                  C[8 * i + 2][4 * j + 1] += alpha * A[8 * i + 2][k] * A[4 * j + 1][k];
                }
                if (8 * i + 3 < n && 4 * j + 1 < 8 * i + 4) {
                  C[8 * i + 3][4 * j + 1] += alpha * A[8 * i + 3][k] * A[4 * j + 1][k];
                }
                if (8 * i + 4 < n && 4 * j + 1 < 8 * i + 5) {
                  C[8 * i + 4][4 * j + 1] += alpha * A[8 * i + 4][k] * A[4 * j + 1][k];
                }
                if (8 * i + 5 < n && 4 * j + 1 < 8 * i + 6) {
                  C[8 * i + 5][4 * j + 1] += alpha * A[8 * i + 5][k] * A[4 * j + 1][k];
                }
                if (8 * i + 6 < n && 4 * j + 1 < 8 * i + 7) {
                  C[8 * i + 6][4 * j + 1] += alpha * A[8 * i + 6][k] * A[4 * j + 1][k];
                }
                if (8 * i + 7 < n && 4 * j + 1 < 8 * i + 8) {
                  C[8 * i + 7][4 * j + 1] += alpha * A[8 * i + 7][k] * A[4 * j + 1][k];
                }
                if (4 * j + 2 < 8 * i + 1) {
                  C[8 * i][4 * j + 2] += alpha * A[8 * i][k] * A[4 * j + 2][k];
                }
                if (8 * i + 1 < n && 4 * j + 2 < 8 * i + 2) {
                  C[8 * i + 1][4 * j + 2] += alpha * A[8 * i + 1][k] * A[4 * j + 2][k];
                }
                if (8 * i + 2 < n && 4 * j + 2 < 8 * i + 3) {
                  C[8 * i + 2][4 * j + 2] += alpha * A[8 * i + 2][k] * A[4 * j + 2][k];
                }
                if (8 * i + 3 < n && 4 * j + 2 < 8 * i + 4) {
                  C[8 * i + 3][4 * j + 2] += alpha * A[8 * i + 3][k] * A[4 * j + 2][k];
                }
                if (8 * i + 4 < n && 4 * j + 2 < 8 * i + 5) {
                  C[8 * i + 4][4 * j + 2] += alpha * A[8 * i + 4][k] * A[4 * j + 2][k];
                }
                if (8 * i + 5 < n && 4 * j + 2 < 8 * i + 6) {
                  C[8 * i + 5][4 * j + 2] += alpha * A[8 * i + 5][k] * A[4 * j + 2][k];
                }
                if (8 * i + 6 < n && 4 * j + 2 < 8 * i + 7) {
                  C[8 * i + 6][4 * j + 2] += alpha * A[8 * i + 6][k] * A[4 * j + 2][k];
                }
                if (8 * i + 7 < n && 4 * j + 2 < 8 * i + 8) {
                  C[8 * i + 7][4 * j + 2] += alpha * A[8 * i + 7][k] * A[4 * j + 2][k];
                }
                if (4 * j + 3 < 8 * i + 1) {
                  C[8 * i][4 * j + 3] += alpha * A[8 * i][k] * A[4 * j + 3][k];
                }
                if (8 * i + 1 < n && 4 * j + 3 < 8 * i + 2) {
                  C[8 * i + 1][4 * j + 3] += alpha * A[8 * i + 1][k] * A[4 * j + 3][k];
                }
                if (8 * i + 2 < n && 4 * j + 3 < 8 * i + 3) {
                  C[8 * i + 2][4 * j + 3] += alpha * A[8 * i + 2][k] * A[4 * j + 3][k];
                }
                if (8 * i + 3 < n && 4 * j + 3 < 8 * i + 4) {
                  C[8 * i + 3][4 * j + 3] += alpha * A[8 * i + 3][k] * A[4 * j + 3][k];
                }
                if (8 * i + 4 < n && 4 * j + 3 < 8 * i + 5) {
                  C[8 * i + 4][4 * j + 3] += alpha * A[8 * i + 4][k] * A[4 * j + 3][k];
                }
                if (8 * i + 5 < n && 4 * j + 3 < 8 * i + 6) {
                  C[8 * i + 5][4 * j + 3] += alpha * A[8 * i + 5][k] * A[4 * j + 3][k];
                }
                if (8 * i + 6 < n && 4 * j + 3 < 8 * i + 7) {
                  C[8 * i + 6][4 * j + 3] += alpha * A[8 * i + 6][k] * A[4 * j + 3][k];
                }
                if (8 * i + 7 < n && 4 * j + 3 < 8 * i + 8) {
                  C[8 * i + 7][4 * j + 3] += alpha * A[8 * i + 7][k] * A[4 * j + 3][k];
                }
                if (4 * j < 8 * i) {
                  C[4 * j][8 * i] += alpha * A[4 * j][k] * A[8 * i][k];
                }
                if (8 * i + 1 < n && 4 * j < 8 * i + 1) {
                  C[4 * j][8 * i + 1] += alpha * A[4 * j][k] * A[8 * i + 1][k];
                }
                if (8 * i + 2 < n && 4 * j < 8 * i + 2) {
                  C[4 * j][8 * i + 2] += alpha * A[4 * j][k] * A[8 * i + 2][k];
                }
                if (8 * i + 3 < n && 4 * j < 8 * i + 3) {
                  C[4 * j][8 * i + 3] += alpha * A[4 * j][k] * A[8 * i + 3][k];
                }
                if (8 * i + 4 < n && 4 * j < 8 * i + 4) {
                  C[4 * j][8 * i + 4] += alpha * A[4 * j][k] * A[8 * i + 4][k];
                }
                if (8 * i + 5 < n && 4 * j < 8 * i + 5) {
                  C[4 * j][8 * i + 5] += alpha * A[4 * j][k] * A[8 * i + 5][k];
                }
                if (8 * i + 6 < n && 4 * j < 8 * i + 6) {
                  C[4 * j][8 * i + 6] += alpha * A[4 * j][k] * A[8 * i + 6][k];
                }
                if (8 * i + 7 < n && 4 * j < 8 * i + 7) {
                  C[4 * j][8 * i + 7] += alpha * A[4 * j][k] * A[8 * i + 7][k];
                }
                if (4 * j + 1 < 8 * i) {
                  C[4 * j + 1][8 * i] += alpha * A[4 * j + 1][k] * A[8 * i][k];
                }
                if (8 * i + 1 < n && 4 * j + 1 < 8 * i + 1) {
                  C[4 * j + 1][8 * i + 1] += alpha * A[4 * j + 1][k] * A[8 * i + 1][k];
                }
                if (8 * i + 2 < n && 4 * j + 1 < 8 * i + 2) {
                  C[4 * j + 1][8 * i + 2] += alpha * A[4 * j + 1][k] * A[8 * i + 2][k];
                }
                if (8 * i + 3 < n && 4 * j + 1 < 8 * i + 3) {
                  C[4 * j + 1][8 * i + 3] += alpha * A[4 * j + 1][k] * A[8 * i + 3][k];
                }
                if (8 * i + 4 < n && 4 * j + 1 < 8 * i + 4) {
                  C[4 * j + 1][8 * i + 4] += alpha * A[4 * j + 1][k] * A[8 * i + 4][k];
                }
                if (8 * i + 5 < n && 4 * j + 1 < 8 * i + 5) {
                  C[4 * j + 1][8 * i + 5] += alpha * A[4 * j + 1][k] * A[8 * i + 5][k];
                }
                if (8 * i + 6 < n && 4 * j + 1 < 8 * i + 6) {
                  C[4 * j + 1][8 * i + 6] += alpha * A[4 * j + 1][k] * A[8 * i + 6][k];
                }
                if (8 * i + 7 < n && 4 * j + 1 < 8 * i + 7) {
                  C[4 * j + 1][8 * i + 7] += alpha * A[4 * j + 1][k] * A[8 * i + 7][k];
                }
                if (4 * j + 2 < 8 * i) {
                  C[4 * j + 2][8 * i] += alpha * A[4 * j + 2][k] * A[8 * i][k];
                }
                if (8 * i + 1 < n && 4 * j + 2 < 8 * i + 1) {
                  C[4 * j + 2][8 * i + 1] += alpha * A[4 * j + 2][k] * A[8 * i + 1][k];
                }
                if (8 * i + 2 < n && 4 * j + 2 < 8 * i + 2) {
                  C[4 * j + 2][8 * i + 2] += alpha * A[4 * j + 2][k] * A[8 * i + 2][k];
                }
                if (8 * i + 3 < n && 4 * j + 2 < 8 * i + 3) {
                  C[4 * j + 2][8 * i + 3] += alpha * A[4 * j + 2][k] * A[8 * i + 3][k];
                }
                if (8 * i + 4 < n && 4 * j + 2 < 8 * i + 4) {
                  C[4 * j + 2][8 * i + 4] += alpha * A[4 * j + 2][k] * A[8 * i + 4][k];
                }
                if (8 * i + 5 < n && 4 * j + 2 < 8 * i + 5) {
                  C[4 * j + 2][8 * i + 5] += alpha * A[4 * j + 2][k] * A[8 * i + 5][k];
                }
                if (8 * i + 6 < n && 4 * j + 2 < 8 * i + 6) {
                  C[4 * j + 2][8 * i + 6] += alpha * A[4 * j + 2][k] * A[8 * i + 6][k];
                }
                if (8 * i + 7 < n && 4 * j + 2 < 8 * i + 7) {
                  C[4 * j + 2][8 * i + 7] += alpha * A[4 * j + 2][k] * A[8 * i + 7][k];
                }
                if (4 * j + 3 < 8 * i) {
                  C[4 * j + 3][8 * i] += alpha * A[4 * j + 3][k] * A[8 * i][k];
                }
                if (8 * i + 1 < n && 4 * j + 3 < 8 * i + 1) {
                  C[4 * j + 3][8 * i + 1] += alpha * A[4 * j + 3][k] * A[8 * i + 1][k];
                }
                if (8 * i + 2 < n && 4 * j + 3 < 8 * i + 2) {
                  C[4 * j + 3][8 * i + 2] += alpha * A[4 * j + 3][k] * A[8 * i + 2][k];
                }
                if (8 * i + 3 < n && 4 * j + 3 < 8 * i + 3) {
                  C[4 * j + 3][8 * i + 3] += alpha * A[4 * j + 3][k] * A[8 * i + 3][k];
                }
                if (8 * i + 4 < n && 4 * j + 3 < 8 * i + 4) {
                  C[4 * j + 3][8 * i + 4] += alpha * A[4 * j + 3][k] * A[8 * i + 4][k];
                }
                if (8 * i + 5 < n && 4 * j + 3 < 8 * i + 5) {
                  C[4 * j + 3][8 * i + 5] += alpha * A[4 * j + 3][k] * A[8 * i + 5][k];
                }
                if (8 * i + 6 < n && 4 * j + 3 < 8 * i + 6) {
                  C[4 * j + 3][8 * i + 6] += alpha * A[4 * j + 3][k] * A[8 * i + 6][k];
                }
                if (8 * i + 7 < n && 4 * j + 3 < 8 * i + 7) {
                  C[4 * j + 3][8 * i + 7] += alpha * A[4 * j + 3][k] * A[8 * i + 7][k];
                }
              }
            }
          }
        }
      }
    }
}

static void init(int n, int m, DATA_TYPE C[n][n], DATA_TYPE A[n][m])
{
    int i, j;

    for (i = 0; i < n; i++) {
        for (j = 0; j < n; j++)
            C[i][j] = ((DATA_TYPE)i * j + 2) / n;
        for (j = 0; j < m; j++)
            A[i][j] = ((DATA_TYPE)i * j) / n;
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
    printf("syrk n=%d m=%d checksum=%.6e\n", n, m, checksum);
    printf("corners %.6e %.6e %.6e %.6e middle %.6e\n", (double)C[0][0], (double)C[0][n - 1], (double)C[n - 1][0],
           (double)C[n - 1][n - 1], (double)C[n / 2][n / 2]);
}

int main(void)
{
    int n = N, m = M;
    DATA_TYPE alpha = ALPHA, beta = BETA;
    DATA_TYPE(*C)[n] = malloc(sizeof(DATA_TYPE) * n * n);
    DATA_TYPE(*A)[m] = malloc(sizeof(DATA_TYPE) * n * m);

    if (!C || !A) {
        fprintf(stderr, "syrk: no memory for %d x %d\n", n, m);
        return 1;
    }
    init(n, m, C, A);
#ifdef TIME
    clock_t start = clock();
#endif
#pragma hmpp syrk callsite
    syrk(n, m, alpha, beta, C, A);
#ifdef TIME
    fprintf(stderr, "%.6f s\n", (double)(clock() - start) / CLOCKS_PER_SEC);
#endif
    print(n, m, C);
    free(C);
    free(A);
    return 0;
}
