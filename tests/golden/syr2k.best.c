/* looptune transform
   loop 3: fold
   loop 3: box 8
   loop 4: box 8
   loop 3: unroll 8, jam
   loop 4: unroll 4, jam
   loop k: tile k:16
   loop k: stage A, B, buffers 2, unroll 16
   codelet: grid blocksize 16x8
   codelet: launchbounds off
   added up in another order than in the original: +:C (63:17)
   added up in another order than in the original: +:C (64:17)
   assumed: these do not overlap: C and A, C and B
*/
#define N 2048
#define M 2048
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
#endif
#ifndef M
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

    #pragma hmppcg parallel
    #pragma hmppcg grid blocksize 16x8
    #pragma looptune launchbounds off
    for (int i = 0; i < n; i++) {
      #pragma hmppcg parallel
      for (int j = 0; j < n; j++) {
        C[i][j] *= beta;
      }
    }
    #pragma hmppcg parallel
    #pragma hmppcg grid blocksize 16x8
    #pragma looptune launchbounds off
    for (int i = 0; i < (n + 7) / 8; i++) {
      if (8 * i < n) {
        #pragma hmppcg parallel
        for (int j = 0; j < (n + 7) / 8 * 2; j++) {
          if (4 * j < 8 * i + 8) {
            #pragma hmppcg noParallel
            for (int outer_k = 0; outer_k < (m + 15) / 16; outer_k++) {
              #pragma hmppcg noParallel
              #pragma looptune stage A, B, buffers 2, unroll 16
              for (int k = 16 * outer_k; k < (16 * outer_k + 16 < m ? 16 * outer_k + 16 : m); k++) {
                if (4 * j < 8 * i + 1) {
                  C[8 * i][4 * j] += alpha * A[8 * i][k] * B[4 * j][k];
                }
                if (8 * i + 1 < n && 4 * j < 8 * i + 2) {
                  C[8 * i + 1][4 * j] += alpha * A[8 * i + 1][k] * B[4 * j][k];
                }
                if (8 * i + 2 < n && 4 * j < 8 * i + 3) {
                  C[8 * i + 2][4 * j] += alpha * A[8 * i + 2][k] * B[4 * j][k];
                }
                if (8 * i + 3 < n && 4 * j < 8 * i + 4) {
                  C[8 * i + 3][4 * j] += alpha * A[8 * i + 3][k] * B[4 * j][k];
                }
                if (8 * i + 4 < n && 4 * j < 8 * i + 5) {
                  C[8 * i + 4][4 * j] += alpha * A[8 * i + 4][k] * B[4 * j][k];
                }
                if (8 * i + 5 < n && 4 * j < 8 * i + 6) {
                  C[8 * i + 5][4 * j] += alpha * A[8 * i + 5][k] * B[4 * j][k];
                }
                if (8 * i + 6 < n && 4 * j < 8 * i + 7) {
                  C[8 * i + 6][4 * j] += alpha * A[8 * i + 6][k] * B[4 * j][k];
                }
                if (8 * i + 7 < n) {
                  C[8 * i + 7][4 * j] += alpha * A[8 * i + 7][k] * B[4 * j][k];
                }
                if (4 * j + 1 < 8 * i + 1) {
                  C[8 * i][4 * j + 1] += alpha * A[8 * i][k] * B[4 * j + 1][k];
                }
                if (8 * i + 1 < n && 4 * j + 1 < 8 * i + 2) {
                  C[8 * i + 1][4 * j + 1] += alpha * A[8 * i + 1][k] * B[4 * j + 1][k];
                }
                if (8 * i + 2 < n && 4 * j + 1 < 8 * i + 3) {
                  C[8 * i + 2][4 * j + 1] += alpha * A[8 * i + 2][k] * B[4 * j + 1][k];
                }
                if (8 * i + 3 < n && 4 * j + 1 < 8 * i + 4) {
                  C[8 * i + 3][4 * j + 1] += alpha * A[8 * i + 3][k] * B[4 * j + 1][k];
                }
                if (8 * i + 4 < n && 4 * j + 1 < 8 * i + 5) {
                  C[8 * i + 4][4 * j + 1] += alpha * A[8 * i + 4][k] * B[4 * j + 1][k];
                }
                if (8 * i + 5 < n && 4 * j + 1 < 8 * i + 6) {
                  C[8 * i + 5][4 * j + 1] += alpha * A[8 * i + 5][k] * B[4 * j + 1][k];
                }
                if (8 * i + 6 < n && 4 * j + 1 < 8 * i + 7) {
                  C[8 * i + 6][4 * j + 1] += alpha * A[8 * i + 6][k] * B[4 * j + 1][k];
                }
                if (8 * i + 7 < n && 4 * j + 1 < 8 * i + 8) {
                  C[8 * i + 7][4 * j + 1] += alpha * A[8 * i + 7][k] * B[4 * j + 1][k];
                }
                if (4 * j + 2 < 8 * i + 1) {
                  C[8 * i][4 * j + 2] += alpha * A[8 * i][k] * B[4 * j + 2][k];
                }
                if (8 * i + 1 < n && 4 * j + 2 < 8 * i + 2) {
                  C[8 * i + 1][4 * j + 2] += alpha * A[8 * i + 1][k] * B[4 * j + 2][k];
                }
                if (8 * i + 2 < n && 4 * j + 2 < 8 * i + 3) {
                  C[8 * i + 2][4 * j + 2] += alpha * A[8 * i + 2][k] * B[4 * j + 2][k];
                }
                if (8 * i + 3 < n && 4 * j + 2 < 8 * i + 4) {
                  C[8 * i + 3][4 * j + 2] += alpha * A[8 * i + 3][k] * B[4 * j + 2][k];
                }
                if (8 * i + 4 < n && 4 * j + 2 < 8 * i + 5) {
                  C[8 * i + 4][4 * j + 2] += alpha * A[8 * i + 4][k] * B[4 * j + 2][k];
                }
                if (8 * i + 5 < n && 4 * j + 2 < 8 * i + 6) {
                  C[8 * i + 5][4 * j + 2] += alpha * A[8 * i + 5][k] * B[4 * j + 2][k];
                }
                if (8 * i + 6 < n && 4 * j + 2 < 8 * i + 7) {
                  C[8 * i + 6][4 * j + 2] += alpha * A[8 * i + 6][k] * B[4 * j + 2][k];
                }
                if (8 * i + 7 < n && 4 * j + 2 < 8 * i + 8) {
                  C[8 * i + 7][4 * j + 2] += alpha * A[8 * i + 7][k] * B[4 * j + 2][k];
                }
                if (4 * j + 3 < 8 * i + 1) {
                  C[8 * i][4 * j + 3] += alpha * A[8 * i][k] * B[4 * j + 3][k];
                }
                if (8 * i + 1 < n && 4 * j + 3 < 8 * i + 2) {
                  C[8 * i + 1][4 * j + 3] += alpha * A[8 * i + 1][k] * B[4 * j + 3][k];
                }
                if (8 * i + 2 < n && 4 * j + 3 < 8 * i + 3) {
                  C[8 * i + 2][4 * j + 3] += alpha * A[8 * i + 2][k] * B[4 * j + 3][k];
                }
                if (8 * i + 3 < n && 4 * j + 3 < 8 * i + 4) {
                  C[8 * i + 3][4 * j + 3] += alpha * A[8 * i + 3][k] * B[4 * j + 3][k];
                }
                if (8 * i + 4 < n && 4 * j + 3 < 8 * i + 5) {
                  C[8 * i + 4][4 * j + 3] += alpha * A[8 * i + 4][k] * B[4 * j + 3][k];
                }
                if (8 * i + 5 < n && 4 * j + 3 < 8 * i + 6) {
                  C[8 * i + 5][4 * j + 3] += alpha * A[8 * i + 5][k] * B[4 * j + 3][k];
                }
                if (8 * i + 6 < n && 4 * j + 3 < 8 * i + 7) {
                  C[8 * i + 6][4 * j + 3] += alpha * A[8 * i + 6][k] * B[4 * j + 3][k];
                }
                if (8 * i + 7 < n && 4 * j + 3 < 8 * i + 8) {
                  C[8 * i + 7][4 * j + 3] += alpha * A[8 * i + 7][k] * B[4 * j + 3][k];
                }
                if (4 * j < 8 * i) {
                  C[4 * j][8 * i] += alpha * A[4 * j][k] * B[8 * i][k];
                }
                if (8 * i + 1 < n && 4 * j < 8 * i + 1) {
                  C[4 * j][8 * i + 1] += alpha * A[4 * j][k] * B[8 * i + 1][k];
                }
                if (8 * i + 2 < n && 4 * j < 8 * i + 2) {
                  C[4 * j][8 * i + 2] += alpha * A[4 * j][k] * B[8 * i + 2][k];
                }
                if (8 * i + 3 < n && 4 * j < 8 * i + 3) {
                  C[4 * j][8 * i + 3] += alpha * A[4 * j][k] * B[8 * i + 3][k];
                }
                if (8 * i + 4 < n && 4 * j < 8 * i + 4) {
                  C[4 * j][8 * i + 4] += alpha * A[4 * j][k] * B[8 * i + 4][k];
                }
                if (8 * i + 5 < n && 4 * j < 8 * i + 5) {
(340 more lines, sha256 2695083e5d64d6e8fb047938d0d0940132c23608f0938d174423921be7977af8)
