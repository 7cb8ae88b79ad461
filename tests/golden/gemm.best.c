/* looptune transform
   loop k: factor
   loop i: unroll 4, jam
   loop j: unroll 4, jam
   loop k: tile k:32
   loop k: stage A, B, buffers 2, unroll 16
   codelet: grid blocksize 16x8
   added up in another order than in the original: +:C (58:17)
   assumed: these do not overlap: C and A, C and B
*/
#define NI 512
#define NJ 512
#define NK 512
/* C = alpha * A * B + beta * C, with C of ni x nj, A of ni x nk and B of nk x nj elements, row-major.
 *
 * Source: GEMM of PolyBench/GPU 1.0 (Grauer-Gray and Pouchet): its loop nest, its initial values, its 512 x 512 x 512
 * of float; tuned in Grauer-Gray et al., "Auto-tuning a High-Level Language Targeted to GPU Codes", InPar 2012.
 *
 *     gcc -O2 polybench/gemm.c -lm && ./a.out         prints the sizes, a checksum and five elements of C
 *     -DDUMP                                          prints every element, one row a line
 *     -DTIME                                          prints the seconds the codelet took, to stderr
 *     -DMINI_DATASET (32) SMALL (128) MEDIUM (512) PAPER (512, the default) STANDARD (1024) LARGE (2000)
 *     EXTRALARGE (4000)
 *     -DNI=.. -DNJ=.. -DNK=.. -DDATA_TYPE=double      any sizes, either type
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(MINI_DATASET)
#define SIZE 32
#elif defined(SMALL_DATASET)
#define SIZE 128
#elif defined(STANDARD_DATASET)
#define SIZE 1024
#elif defined(LARGE_DATASET)
#define SIZE 2000
#elif defined(EXTRALARGE_DATASET)
#define SIZE 4000
#else /* PAPER_DATASET, MEDIUM_DATASET */
#define SIZE 512
#endif

#ifndef NI
#endif
#ifndef NJ
#endif
#ifndef NK
#endif
#ifndef DATA_TYPE
#define DATA_TYPE float
#endif

#define ALPHA 32412
#define BETA 2123

#pragma hmpp gemm codelet, target=CUDA, args[C].io=inout
static void gemm(int ni, int nj, int nk, DATA_TYPE alpha, DATA_TYPE beta,
                 DATA_TYPE C[ni][nj], DATA_TYPE A[ni][nk], DATA_TYPE B[nk][nj])
{
    int i, j, k;

    #pragma hmppcg parallel
    #pragma hmppcg grid blocksize 16x8
    for (int i = 0; i < ni / 4; i++) {
      #pragma hmppcg parallel
      for (int j = 0; j < nj / 4; j++) {
        C[4 * i][4 * j] *= beta;
        C[4 * i + 1][4 * j] *= beta;
        C[4 * i + 2][4 * j] *= beta;
        C[4 * i + 3][4 * j] *= beta;
        C[4 * i][4 * j + 1] *= beta;
        C[4 * i + 1][4 * j + 1] *= beta;
        C[4 * i + 2][4 * j + 1] *= beta;
        C[4 * i + 3][4 * j + 1] *= beta;
        C[4 * i][4 * j + 2] *= beta;
        C[4 * i + 1][4 * j + 2] *= beta;
        C[4 * i + 2][4 * j + 2] *= beta;
        C[4 * i + 3][4 * j + 2] *= beta;
        C[4 * i][4 * j + 3] *= beta;
        C[4 * i + 1][4 * j + 3] *= beta;
        C[4 * i + 2][4 * j + 3] *= beta;
        C[4 * i + 3][4 * j + 3] *= beta;
        #pragma hmppcg noParallel
        for (int outer_k = 0; outer_k < (nk + 31) / 32; outer_k++) {
          #pragma hmppcg noParallel
          #pragma looptune stage A, B, buffers 2, unroll 16
          for (int k = 32 * outer_k; k < (32 * outer_k + 32 < nk ? 32 * outer_k + 32 : nk); k++) {
            C[4 * i][4 * j] += alpha * A[4 * i][k] * B[k][4 * j];
            C[4 * i + 1][4 * j] += alpha * A[4 * i + 1][k] * B[k][4 * j];
            C[4 * i + 2][4 * j] += alpha * A[4 * i + 2][k] * B[k][4 * j];
            C[4 * i + 3][4 * j] += alpha * A[4 * i + 3][k] * B[k][4 * j];
            C[4 * i][4 * j + 1] += alpha * A[4 * i][k] * B[k][4 * j + 1];
            C[4 * i + 1][4 * j + 1] += alpha * A[4 * i + 1][k] * B[k][4 * j + 1];
            C[4 * i + 2][4 * j + 1] += alpha * A[4 * i + 2][k] * B[k][4 * j + 1];
            C[4 * i + 3][4 * j + 1] += alpha * A[4 * i + 3][k] * B[k][4 * j + 1];
            C[4 * i][4 * j + 2] += alpha * A[4 * i][k] * B[k][4 * j + 2];
            C[4 * i + 1][4 * j + 2] += alpha * A[4 * i + 1][k] * B[k][4 * j + 2];
            C[4 * i + 2][4 * j + 2] += alpha * A[4 * i + 2][k] * B[k][4 * j + 2];
            C[4 * i + 3][4 * j + 2] += alpha * A[4 * i + 3][k] * B[k][4 * j + 2];
            C[4 * i][4 * j + 3] += alpha * A[4 * i][k] * B[k][4 * j + 3];
            C[4 * i + 1][4 * j + 3] += alpha * A[4 * i + 1][k] * B[k][4 * j + 3];
            C[4 * i + 2][4 * j + 3] += alpha * A[4 * i + 2][k] * B[k][4 * j + 3];
            C[4 * i + 3][4 * j + 3] += alpha * A[4 * i + 3][k] * B[k][4 * j + 3];
          }
        }
      }
      #pragma hmppcg parallel
      for (int j = nj - nj % 4; j < nj; j++) {
        C[4 * i][j] *= beta;
        C[4 * i + 1][j] *= beta;
        C[4 * i + 2][j] *= beta;
        C[4 * i + 3][j] *= beta;
        #pragma hmppcg noParallel
        for (int outer_k = 0; outer_k < (nk + 31) / 32; outer_k++) {
          #pragma hmppcg noParallel
          #pragma looptune stage A, B, buffers 2, unroll 16
          for (int k = 32 * outer_k; k < (32 * outer_k + 32 < nk ? 32 * outer_k + 32 : nk); k++) {
            C[4 * i][j] += alpha * A[4 * i][k] * B[k][j];
            C[4 * i + 1][j] += alpha * A[4 * i + 1][k] * B[k][j];
            C[4 * i + 2][j] += alpha * A[4 * i + 2][k] * B[k][j];
            C[4 * i + 3][j] += alpha * A[4 * i + 3][k] * B[k][j];
          }
        }
      }
    }
    #pragma hmppcg parallel
    #pragma hmppcg grid blocksize 16x8
    for (int i = ni - ni % 4; i < ni; i++) {
      #pragma hmppcg parallel
      for (int j = 0; j < nj / 4; j++) {
        C[i][4 * j] *= beta;
        C[i][4 * j + 1] *= beta;
        C[i][4 * j + 2] *= beta;
        C[i][4 * j + 3] *= beta;
        #pragma hmppcg noParallel
        for (int outer_k = 0; outer_k < (nk + 31) / 32; outer_k++) {
          #pragma hmppcg noParallel
          #pragma looptune stage A, B, buffers 2, unroll 16
          for (int k = 32 * outer_k; k < (32 * outer_k + 32 < nk ? 32 * outer_k + 32 : nk); k++) {
            C[i][4 * j] += alpha * A[i][k] * B[k][4 * j];
            C[i][4 * j + 1] += alpha * A[i][k] * B[k][4 * j + 1];
            C[i][4 * j + 2] += alpha * A[i][k] * B[k][4 * j + 2];
            C[i][4 * j + 3] += alpha * A[i][k] * B[k][4 * j + 3];
          }
        }
      }
      #pragma hmppcg parallel
      for (int j = nj - nj % 4; j < nj; j++) {
        C[i][j] *= beta;
        #pragma hmppcg noParallel
        for (int outer_k = 0; outer_k < (nk + 31) / 32; outer_k++) {
          #pragma hmppcg noParallel
          #pragma looptune stage A, B, buffers 2, unroll 16
          for (int k = 32 * outer_k; k < (32 * outer_k + 32 < nk ? 32 * outer_k + 32 : nk); k++) {
            C[i][j] += alpha * A[i][k] * B[k][j];
          }
        }
      }
    }
}

static void init(int ni, int nj, int nk, DATA_TYPE C[ni][nj], DATA_TYPE A[ni][nk], DATA_TYPE B[nk][nj])
{
    int i, j;

    for (i = 0; i < ni; i++)
        for (j = 0; j < nk; j++)
            A[i][j] = ((DATA_TYPE)i * j) / ni;
    for (i = 0; i < nk; i++)
        for (j = 0; j < nj; j++)
            B[i][j] = ((DATA_TYPE)i * j + 1) / nj;
    for (i = 0; i < ni; i++)
        for (j = 0; j < nj; j++)
            C[i][j] = ((DATA_TYPE)i * j + 2) / nj;
}

/* The checksum weighs each element by its place, so that two swapped elements change it. */
static void print(int ni, int nj, int nk, DATA_TYPE C[ni][nj])
{
    double checksum = 0;
    int i, j;

    for (i = 0; i < ni; i++) {
        for (j = 0; j < nj; j++) {
            checksum += (double)C[i][j] * (1 + (3 * i + 7 * j) % 11);
#ifdef DUMP
            printf("%.9g%c", (double)C[i][j], j + 1 < nj ? ' ' : '\n');
#endif
        }
    }
    printf("gemm ni=%d nj=%d nk=%d checksum=%.6e\n", ni, nj, nk, checksum);
    printf("corners %.6e %.6e %.6e %.6e middle %.6e\n", (double)C[0][0], (double)C[0][nj - 1], (double)C[ni - 1][0],
           (double)C[ni - 1][nj - 1], (double)C[ni / 2][nj / 2]);
}

int main(void)
{
    int ni = NI, nj = NJ, nk = NK;
    DATA_TYPE alpha = ALPHA, beta = BETA;
    DATA_TYPE(*C)[nj] = malloc(sizeof(DATA_TYPE) * ni * nj);
    DATA_TYPE(*A)[nk] = malloc(sizeof(DATA_TYPE) * ni * nk);
    DATA_TYPE(*B)[nj] = malloc(sizeof(DATA_TYPE) * nk * nj);

    if (!C || !A || !B) {
        fprintf(stderr, "gemm: no memory for %d x %d x %d\n", ni, nj, nk);
        return 1;
    }
    init(ni, nj, nk, C, A, B);
#ifdef TIME
    clock_t start = clock();
#endif
#pragma hmpp gemm callsite
    gemm(ni, nj, nk, alpha, beta, C, A, B);
#ifdef TIME
    fprintf(stderr, "%.6f s\n", (double)(clock() - start) / CLOCKS_PER_SEC);
#endif
    print(ni, nj, nk, C);
    free(C);
    free(A);
    free(B);
    return 0;
}
