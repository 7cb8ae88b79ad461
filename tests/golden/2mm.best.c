/* looptune transform
   loop 1: unroll 8, jam
   loop 4: unroll 8, jam
   loop 2: unroll 8, split, vector 4, jam
   loop 5: unroll 8, split, vector 4, jam
   loop 3: tile k:16
   loop 6: tile k:16
   loop 3: stage A, B, buffers 2, transposed(A), unroll 16
   loop 6: stage C, D, buffers 2, transposed(C), unroll 16
   codelet: grid blocksize 16x8
   codelet: swizzle 2
   assumed: these do not overlap: A and C, A and E, B and C, B and E, C and D, C and E, D and E
*/
#define NI 2048
#define NJ 2048
#define NK 2048
#define NL 2048
/* C = C + A * B, then E = E + C * D: two matrix products, the second of which needs the whole of the first.
 * A of ni x nk, B of nk x nj, C of ni x nj, D of nj x nl and E of ni x nl elements, row-major.
 *
 * Source: 2MM of PolyBench/GPU 1.0 (Grauer-Gray and Pouchet): its two loop nests, its initial values, its 2048 in
 * every direction, of float; tuned in Grauer-Gray et al., "Auto-tuning a High-Level Language Targeted to GPU Codes",
 * InPar 2012. There each nest is a codelet of its own and both share C; here they are one.
 *
 *     gcc -O2 polybench/2mm.c -lm && ./a.out          prints the sizes, checksums and five elements of E
 *     -DDUMP                                          prints every element of C and of E, one row a line
 *     -DTIME                                          prints the seconds the codelet took, to stderr
 *     -DMINI_DATASET (32) SMALL (128) MEDIUM (512) PAPER (2048, the default) STANDARD (1024) LARGE (2000)
 *     EXTRALARGE (4000)
 *     -DNI=.. -DNJ=.. -DNK=.. -DNL=.. -DDATA_TYPE=double      any sizes, either type
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

#ifndef NI
#endif
#ifndef NJ
#endif
#ifndef NK
#endif
#ifndef NL
#endif
#ifndef DATA_TYPE
#define DATA_TYPE float
#endif

#pragma hmpp mm2 codelet, target=CUDA, args[C;E].io=inout
static void mm2(int ni, int nj, int nk, int nl, DATA_TYPE A[ni][nk], DATA_TYPE B[nk][nj], DATA_TYPE C[ni][nj],
                DATA_TYPE D[nj][nl], DATA_TYPE E[ni][nl])
{
    int i, j, k;

    #pragma hmppcg parallel
    #pragma hmppcg grid blocksize 16x8
    #pragma looptune swizzle 2
    for (int i = 0; i < ni / 8; i++) {
      #pragma hmppcg parallel
      for (int j = 0; j < nj / 8; j++) {
        #pragma hmppcg noParallel
        for (int outer_k = 0; outer_k < (nk + 15) / 16; outer_k++) {
          #pragma hmppcg noParallel
          #pragma looptune stage A, B, buffers 2, transposed(A), unroll 16
          for (int k = 16 * outer_k; k < (16 * outer_k + 16 < nk ? 16 * outer_k + 16 : nk); k++) {
            C[8 * i][4 * j] += A[8 * i][k] * B[k][4 * j];
            C[8 * i + 1][4 * j] += A[8 * i + 1][k] * B[k][4 * j];
            C[8 * i + 2][4 * j] += A[8 * i + 2][k] * B[k][4 * j];
            C[8 * i + 3][4 * j] += A[8 * i + 3][k] * B[k][4 * j];
            C[8 * i + 4][4 * j] += A[8 * i + 4][k] * B[k][4 * j];
            C[8 * i + 5][4 * j] += A[8 * i + 5][k] * B[k][4 * j];
            C[8 * i + 6][4 * j] += A[8 * i + 6][k] * B[k][4 * j];
            C[8 * i + 7][4 * j] += A[8 * i + 7][k] * B[k][4 * j];
            C[8 * i][4 * j + 1] += A[8 * i][k] * B[k][4 * j + 1];
            C[8 * i + 1][4 * j + 1] += A[8 * i + 1][k] * B[k][4 * j + 1];
            C[8 * i + 2][4 * j + 1] += A[8 * i + 2][k] * B[k][4 * j + 1];
            C[8 * i + 3][4 * j + 1] += A[8 * i + 3][k] * B[k][4 * j + 1];
            C[8 * i + 4][4 * j + 1] += A[8 * i + 4][k] * B[k][4 * j + 1];
            C[8 * i + 5][4 * j + 1] += A[8 * i + 5][k] * B[k][4 * j + 1];
            C[8 * i + 6][4 * j + 1] += A[8 * i + 6][k] * B[k][4 * j + 1];
            C[8 * i + 7][4 * j + 1] += A[8 * i + 7][k] * B[k][4 * j + 1];
            C[8 * i][4 * j + 2] += A[8 * i][k] * B[k][4 * j + 2];
            C[8 * i + 1][4 * j + 2] += A[8 * i + 1][k] * B[k][4 * j + 2];
            C[8 * i + 2][4 * j + 2] += A[8 * i + 2][k] * B[k][4 * j + 2];
            C[8 * i + 3][4 * j + 2] += A[8 * i + 3][k] * B[k][4 * j + 2];
            C[8 * i + 4][4 * j + 2] += A[8 * i + 4][k] * B[k][4 * j + 2];
            C[8 * i + 5][4 * j + 2] += A[8 * i + 5][k] * B[k][4 * j + 2];
            C[8 * i + 6][4 * j + 2] += A[8 * i + 6][k] * B[k][4 * j + 2];
            C[8 * i + 7][4 * j + 2] += A[8 * i + 7][k] * B[k][4 * j + 2];
            C[8 * i][4 * j + 3] += A[8 * i][k] * B[k][4 * j + 3];
            C[8 * i + 1][4 * j + 3] += A[8 * i + 1][k] * B[k][4 * j + 3];
            C[8 * i + 2][4 * j + 3] += A[8 * i + 2][k] * B[k][4 * j + 3];
            C[8 * i + 3][4 * j + 3] += A[8 * i + 3][k] * B[k][4 * j + 3];
            C[8 * i + 4][4 * j + 3] += A[8 * i + 4][k] * B[k][4 * j + 3];
            C[8 * i + 5][4 * j + 3] += A[8 * i + 5][k] * B[k][4 * j + 3];
            C[8 * i + 6][4 * j + 3] += A[8 * i + 6][k] * B[k][4 * j + 3];
            C[8 * i + 7][4 * j + 3] += A[8 * i + 7][k] * B[k][4 * j + 3];
            C[8 * i][4 * j + 4 * (nj / 8)] += A[8 * i][k] * B[k][4 * j + 4 * (nj / 8)];
            C[8 * i + 1][4 * j + 4 * (nj / 8)] += A[8 * i + 1][k] * B[k][4 * j + 4 * (nj / 8)];
            C[8 * i + 2][4 * j + 4 * (nj / 8)] += A[8 * i + 2][k] * B[k][4 * j + 4 * (nj / 8)];
            C[8 * i + 3][4 * j + 4 * (nj / 8)] += A[8 * i + 3][k] * B[k][4 * j + 4 * (nj / 8)];
            C[8 * i + 4][4 * j + 4 * (nj / 8)] += A[8 * i + 4][k] * B[k][4 * j + 4 * (nj / 8)];
            C[8 * i + 5][4 * j + 4 * (nj / 8)] += A[8 * i + 5][k] * B[k][4 * j + 4 * (nj / 8)];
            C[8 * i + 6][4 * j + 4 * (nj / 8)] += A[8 * i + 6][k] * B[k][4 * j + 4 * (nj / 8)];
            C[8 * i + 7][4 * j + 4 * (nj / 8)] += A[8 * i + 7][k] * B[k][4 * j + 4 * (nj / 8)];
            C[8 * i][4 * j + 1 + 4 * (nj / 8)] += A[8 * i][k] * B[k][4 * j + 1 + 4 * (nj / 8)];
            C[8 * i + 1][4 * j + 1 + 4 * (nj / 8)] += A[8 * i + 1][k] * B[k][4 * j + 1 + 4 * (nj / 8)];
            C[8 * i + 2][4 * j + 1 + 4 * (nj / 8)] += A[8 * i + 2][k] * B[k][4 * j + 1 + 4 * (nj / 8)];
            C[8 * i + 3][4 * j + 1 + 4 * (nj / 8)] += A[8 * i + 3][k] * B[k][4 * j + 1 + 4 * (nj / 8)];
            C[8 * i + 4][4 * j + 1 + 4 * (nj / 8)] += A[8 * i + 4][k] * B[k][4 * j + 1 + 4 * (nj / 8)];
            C[8 * i + 5][4 * j + 1 + 4 * (nj / 8)] += A[8 * i + 5][k] * B[k][4 * j + 1 + 4 * (nj / 8)];
            C[8 * i + 6][4 * j + 1 + 4 * (nj / 8)] += A[8 * i + 6][k] * B[k][4 * j + 1 + 4 * (nj / 8)];
            C[8 * i + 7][4 * j + 1 + 4 * (nj / 8)] += A[8 * i + 7][k] * B[k][4 * j + 1 + 4 * (nj / 8)];
            C[8 * i][4 * j + 2 + 4 * (nj / 8)] += A[8 * i][k] * B[k][4 * j + 2 + 4 * (nj / 8)];
            C[8 * i + 1][4 * j + 2 + 4 * (nj / 8)] += A[8 * i + 1][k] * B[k][4 * j + 2 + 4 * (nj / 8)];
            C[8 * i + 2][4 * j + 2 + 4 * (nj / 8)] += A[8 * i + 2][k] * B[k][4 * j + 2 + 4 * (nj / 8)];
            C[8 * i + 3][4 * j + 2 + 4 * (nj / 8)] += A[8 * i + 3][k] * B[k][4 * j + 2 + 4 * (nj / 8)];
            C[8 * i + 4][4 * j + 2 + 4 * (nj / 8)] += A[8 * i + 4][k] * B[k][4 * j + 2 + 4 * (nj / 8)];
            C[8 * i + 5][4 * j + 2 + 4 * (nj / 8)] += A[8 * i + 5][k] * B[k][4 * j + 2 + 4 * (nj / 8)];
            C[8 * i + 6][4 * j + 2 + 4 * (nj / 8)] += A[8 * i + 6][k] * B[k][4 * j + 2 + 4 * (nj / 8)];
            C[8 * i + 7][4 * j + 2 + 4 * (nj / 8)] += A[8 * i + 7][k] * B[k][4 * j + 2 + 4 * (nj / 8)];
            C[8 * i][4 * j + 3 + 4 * (nj / 8)] += A[8 * i][k] * B[k][4 * j + 3 + 4 * (nj / 8)];
            C[8 * i + 1][4 * j + 3 + 4 * (nj / 8)] += A[8 * i + 1][k] * B[k][4 * j + 3 + 4 * (nj / 8)];
            C[8 * i + 2][4 * j + 3 + 4 * (nj / 8)] += A[8 * i + 2][k] * B[k][4 * j + 3 + 4 * (nj / 8)];
            C[8 * i + 3][4 * j + 3 + 4 * (nj / 8)] += A[8 * i + 3][k] * B[k][4 * j + 3 + 4 * (nj / 8)];
            C[8 * i + 4][4 * j + 3 + 4 * (nj / 8)] += A[8 * i + 4][k] * B[k][4 * j + 3 + 4 * (nj / 8)];
            C[8 * i + 5][4 * j + 3 + 4 * (nj / 8)] += A[8 * i + 5][k] * B[k][4 * j + 3 + 4 * (nj / 8)];
            C[8 * i + 6][4 * j + 3 + 4 * (nj / 8)] += A[8 * i + 6][k] * B[k][4 * j + 3 + 4 * (nj / 8)];
            C[8 * i + 7][4 * j + 3 + 4 * (nj / 8)] += A[8 * i + 7][k] * B[k][4 * j + 3 + 4 * (nj / 8)];
          }
        }
      }
      #pragma hmppcg parallel
      for (int j = nj - nj % 8; j < nj; j++) {
        #pragma hmppcg noParallel
        for (int outer_k = 0; outer_k < (nk + 15) / 16; outer_k++) {
          #pragma hmppcg noParallel
          #pragma looptune stage A, B, buffers 2, transposed(A), unroll 16
          for (int k = 16 * outer_k; k < (16 * outer_k + 16 < nk ? 16 * outer_k + 16 : nk); k++) {
            C[8 * i][j] += A[8 * i][k] * B[k][j];
            C[8 * i + 1][j] += A[8 * i + 1][k] * B[k][j];
            C[8 * i + 2][j] += A[8 * i + 2][k] * B[k][j];
            C[8 * i + 3][j] += A[8 * i + 3][k] * B[k][j];
            C[8 * i + 4][j] += A[8 * i + 4][k] * B[k][j];
            C[8 * i + 5][j] += A[8 * i + 5][k] * B[k][j];
            C[8 * i + 6][j] += A[8 * i + 6][k] * B[k][j];
            C[8 * i + 7][j] += A[8 * i + 7][k] * B[k][j];
          }
        }
      }
    }
    #pragma hmppcg parallel
    #pragma hmppcg grid blocksize 16x8
    #pragma looptune swizzle 2
    for (int i = ni - ni % 8; i < ni; i++) {
      #pragma hmppcg parallel
      for (int j = 0; j < nj / 8; j++) {
        #pragma hmppcg noParallel
        for (int outer_k = 0; outer_k < (nk + 15) / 16; outer_k++) {
          #pragma hmppcg noParallel
          #pragma looptune stage A, B, buffers 2, transposed(A), unroll 16
          for (int k = 16 * outer_k; k < (16 * outer_k + 16 < nk ? 16 * outer_k + 16 : nk); k++) {
            C[i][4 * j] += A[i][k] * B[k][4 * j];
            C[i][4 * j + 1] += A[i][k] * B[k][4 * j + 1];
            C[i][4 * j + 2] += A[i][k] * B[k][4 * j + 2];
            C[i][4 * j + 3] += A[i][k] * B[k][4 * j + 3];
            C[i][4 * j + 4 * (nj / 8)] += A[i][k] * B[k][4 * j + 4 * (nj / 8)];
            C[i][4 * j + 1 + 4 * (nj / 8)] += A[i][k] * B[k][4 * j + 1 + 4 * (nj / 8)];
            C[i][4 * j + 2 + 4 * (nj / 8)] += A[i][k] * B[k][4 * j + 2 + 4 * (nj / 8)];
            C[i][4 * j + 3 + 4 * (nj / 8)] += A[i][k] * B[k][4 * j + 3 + 4 * (nj / 8)];
          }
        }
      }
      #pragma hmppcg parallel
      for (int j = nj - nj % 8; j < nj; j++) {
        #pragma hmppcg noParallel
        for (int outer_k = 0; outer_k < (nk + 15) / 16; outer_k++) {
          #pragma hmppcg noParallel
          #pragma looptune stage A, B, buffers 2, transposed(A), unroll 16
          for (int k = 16 * outer_k; k < (16 * outer_k + 16 < nk ? 16 * outer_k + 16 : nk); k++) {
            C[i][j] += A[i][k] * B[k][j];
          }
        }
      }
    }
    #pragma hmppcg parallel
    #pragma hmppcg grid blocksize 16x8
    #pragma looptune swizzle 2
    for (int i = 0; i < ni / 8; i++) {
      #pragma hmppcg parallel
      for (int j = 0; j < nl / 8; j++) {
        #pragma hmppcg noParallel
        for (int outer_k_2 = 0; outer_k_2 < (nj + 15) / 16; outer_k_2++) {
          #pragma hmppcg noParallel
          #pragma looptune stage C, D, buffers 2, transposed(C), unroll 16
          for (int k = 16 * outer_k_2; k < (16 * outer_k_2 + 16 < nj ? 16 * outer_k_2 + 16 : nj); k++) {
            E[8 * i][4 * j] += C[8 * i][k] * D[k][4 * j];
            E[8 * i + 1][4 * j] += C[8 * i + 1][k] * D[k][4 * j];
            E[8 * i + 2][4 * j] += C[8 * i + 2][k] * D[k][4 * j];
            E[8 * i + 3][4 * j] += C[8 * i + 3][k] * D[k][4 * j];
            E[8 * i + 4][4 * j] += C[8 * i + 4][k] * D[k][4 * j];
            E[8 * i + 5][4 * j] += C[8 * i + 5][k] * D[k][4 * j];
            E[8 * i + 6][4 * j] += C[8 * i + 6][k] * D[k][4 * j];
            E[8 * i + 7][4 * j] += C[8 * i + 7][k] * D[k][4 * j];
            E[8 * i][4 * j + 1] += C[8 * i][k] * D[k][4 * j + 1];
            E[8 * i + 1][4 * j + 1] += C[8 * i + 1][k] * D[k][4 * j + 1];
            E[8 * i + 2][4 * j + 1] += C[8 * i + 2][k] * D[k][4 * j + 1];
            E[8 * i + 3][4 * j + 1] += C[8 * i + 3][k] * D[k][4 * j + 1];
            E[8 * i + 4][4 * j + 1] += C[8 * i + 4][k] * D[k][4 * j + 1];
            E[8 * i + 5][4 * j + 1] += C[8 * i + 5][k] * D[k][4 * j + 1];
            E[8 * i + 6][4 * j + 1] += C[8 * i + 6][k] * D[k][4 * j + 1];
            E[8 * i + 7][4 * j + 1] += C[8 * i + 7][k] * D[k][4 * j + 1];
            E[8 * i][4 * j + 2] += C[8 * i][k] * D[k][4 * j + 2];
            E[8 * i + 1][4 * j + 2] += C[8 * i + 1][k] * D[k][4 * j + 2];
            E[8 * i + 2][4 * j + 2] += C[8 * i + 2][k] * D[k][4 * j + 2];
            E[8 * i + 3][4 * j + 2] += C[8 * i + 3][k] * D[k][4 * j + 2];
            E[8 * i + 4][4 * j + 2] += C[8 * i + 4][k] * D[k][4 * j + 2];
            E[8 * i + 5][4 * j + 2] += C[8 * i + 5][k] * D[k][4 * j + 2];
            E[8 * i + 6][4 * j + 2] += C[8 * i + 6][k] * D[k][4 * j + 2];
            E[8 * i + 7][4 * j + 2] += C[8 * i + 7][k] * D[k][4 * j + 2];
            E[8 * i][4 * j + 3] += C[8 * i][k] * D[k][4 * j + 3];
            E[8 * i + 1][4 * j + 3] += C[8 * i + 1][k] * D[k][4 * j + 3];
            E[8 * i + 2][4 * j + 3] += C[8 * i + 2][k] * D[k][4 * j + 3];
            E[8 * i + 3][4 * j + 3] += C[8 * i + 3][k] * D[k][4 * j + 3];
            E[8 * i + 4][4 * j + 3] += C[8 * i + 4][k] * D[k][4 * j + 3];
            E[8 * i + 5][4 * j + 3] += C[8 * i + 5][k] * D[k][4 * j + 3];
            E[8 * i + 6][4 * j + 3] += C[8 * i + 6][k] * D[k][4 * j + 3];
            E[8 * i + 7][4 * j + 3] += C[8 * i + 7][k] * D[k][4 * j + 3];
            E[8 * i][4 * j + 4 * (nl / 8)] += C[8 * i][k] * D[k][4 * j + 4 * (nl / 8)];
            E[8 * i + 1][4 * j + 4 * (nl / 8)] += C[8 * i + 1][k] * D[k][4 * j + 4 * (nl / 8)];
            E[8 * i + 2][4 * j + 4 * (nl / 8)] += C[8 * i + 2][k] * D[k][4 * j + 4 * (nl / 8)];
            E[8 * i + 3][4 * j + 4 * (nl / 8)] += C[8 * i + 3][k] * D[k][4 * j + 4 * (nl / 8)];
            E[8 * i + 4][4 * j + 4 * (nl / 8)] += C[8 * i + 4][k] * D[k][4 * j + 4 * (nl / 8)];
            E[8 * i + 5][4 * j + 4 * (nl / 8)] += C[8 * i + 5][k] * D[k][4 * j + 4 * (nl / 8)];
            E[8 * i + 6][4 * j + 4 * (nl / 8)] += C[8 * i + 6][k] * D[k][4 * j + 4 * (nl / 8)];
            E[8 * i + 7][4 * j + 4 * (nl / 8)] += C[8 * i + 7][k] * D[k][4 * j + 4 * (nl / 8)];
            E[8 * i][4 * j + 1 + 4 * (nl / 8)] += C[8 * i][k] * D[k][4 * j + 1 + 4 * (nl / 8)];
            E[8 * i + 1][4 * j + 1 + 4 * (nl / 8)] += C[8 * i + 1][k] * D[k][4 * j + 1 + 4 * (nl / 8)];
            E[8 * i + 2][4 * j + 1 + 4 * (nl / 8)] += C[8 * i + 2][k] * D[k][4 * j + 1 + 4 * (nl / 8)];
            E[8 * i + 3][4 * j + 1 + 4 * (nl / 8)] += C[8 * i + 3][k] * D[k][4 * j + 1 + 4 * (nl / 8)];
            E[8 * i + 4][4 * j + 1 + 4 * (nl / 8)] += C[8 * i + 4][k] * D[k][4 * j + 1 + 4 * (nl / 8)];
            E[8 * i + 5][4 * j + 1 + 4 * (nl / 8)] += C[8 * i + 5][k] * D[k][4 * j + 1 + 4 * (nl / 8)];
            E[8 * i + 6][4 * j + 1 + 4 * (nl / 8)] += C[8 * i + 6][k] * D[k][4 * j + 1 + 4 * (nl / 8)];
            E[8 * i + 7][4 * j + 1 + 4 * (nl / 8)] += C[8 * i + 7][k] * D[k][4 * j + 1 + 4 * (nl / 8)];
            E[8 * i][4 * j + 2 + 4 * (nl / 8)] += C[8 * i][k] * D[k][4 * j + 2 + 4 * (nl / 8)];
            E[8 * i + 1][4 * j + 2 + 4 * (nl / 8)] += C[8 * i + 1][k] * D[k][4 * j + 2 + 4 * (nl / 8)];
            E[8 * i + 2][4 * j + 2 + 4 * (nl / 8)] += C[8 * i + 2][k] * D[k][4 * j + 2 + 4 * (nl / 8)];
            E[8 * i + 3][4 * j + 2 + 4 * (nl / 8)] += C[8 * i + 3][k] * D[k][4 * j + 2 + 4 * (nl / 8)];
            E[8 * i + 4][4 * j + 2 + 4 * (nl / 8)] += C[8 * i + 4][k] * D[k][4 * j + 2 + 4 * (nl / 8)];
            E[8 * i + 5][4 * j + 2 + 4 * (nl / 8)] += C[8 * i + 5][k] * D[k][4 * j + 2 + 4 * (nl / 8)];
            E[8 * i + 6][4 * j + 2 + 4 * (nl / 8)] += C[8 * i + 6][k] * D[k][4 * j + 2 + 4 * (nl / 8)];
            E[8 * i + 7][4 * j + 2 + 4 * (nl / 8)] += C[8 * i + 7][k] * D[k][4 * j + 2 + 4 * (nl / 8)];
            E[8 * i][4 * j + 3 + 4 * (nl / 8)] += C[8 * i][k] * D[k][4 * j + 3 + 4 * (nl / 8)];
            E[8 * i + 1][4 * j + 3 + 4 * (nl / 8)] += C[8 * i + 1][k] * D[k][4 * j + 3 + 4 * (nl / 8)];
            E[8 * i + 2][4 * j + 3 + 4 * (nl / 8)] += C[8 * i + 2][k] * D[k][4 * j + 3 + 4 * (nl / 8)];
            E[8 * i + 3][4 * j + 3 + 4 * (nl / 8)] += C[8 * i + 3][k] * D[k][4 * j + 3 + 4 * (nl / 8)];
            E[8 * i + 4][4 * j + 3 + 4 * (nl / 8)] += C[8 * i + 4][k] * D[k][4 * j + 3 + 4 * (nl / 8)];
            E[8 * i + 5][4 * j + 3 + 4 * (nl / 8)] += C[8 * i + 5][k] * D[k][4 * j + 3 + 4 * (nl / 8)];
            E[8 * i + 6][4 * j + 3 + 4 * (nl / 8)] += C[8 * i + 6][k] * D[k][4 * j + 3 + 4 * (nl / 8)];
            E[8 * i + 7][4 * j + 3 + 4 * (nl / 8)] += C[8 * i + 7][k] * D[k][4 * j + 3 + 4 * (nl / 8)];
          }
        }
      }
      #pragma hmppcg parallel
      for (int j = nl - nl % 8; j < nl; j++) {
        #pragma hmppcg noParallel
        for (int outer_k_2 = 0; outer_k_2 < (nj + 15) / 16; outer_k_2++) {
          #pragma hmppcg noParallel
          #pragma looptune stage C, D, buffers 2, transposed(C), unroll 16
          for (int k = 16 * outer_k_2; k < (16 * outer_k_2 + 16 < nj ? 16 * outer_k_2 + 16 : nj); k++) {
            E[8 * i][j] += C[8 * i][k] * D[k][j];
            E[8 * i + 1][j] += C[8 * i + 1][k] * D[k][j];
            E[8 * i + 2][j] += C[8 * i + 2][k] * D[k][j];
            E[8 * i + 3][j] += C[8 * i + 3][k] * D[k][j];
            E[8 * i + 4][j] += C[8 * i + 4][k] * D[k][j];
            E[8 * i + 5][j] += C[8 * i + 5][k] * D[k][j];
            E[8 * i + 6][j] += C[8 * i + 6][k] * D[k][j];
            E[8 * i + 7][j] += C[8 * i + 7][k] * D[k][j];
          }
        }
      }
    }
    #pragma hmppcg parallel
    #pragma hmppcg grid blocksize 16x8
    #pragma looptune swizzle 2
    for (int i = ni - ni % 8; i < ni; i++) {
      #pragma hmppcg parallel
      for (int j = 0; j < nl / 8; j++) {
        #pragma hmppcg noParallel
        for (int outer_k_2 = 0; outer_k_2 < (nj + 15) / 16; outer_k_2++) {
          #pragma hmppcg noParallel
          #pragma looptune stage C, D, buffers 2, transposed(C), unroll 16
          for (int k = 16 * outer_k_2; k < (16 * outer_k_2 + 16 < nj ? 16 * outer_k_2 + 16 : nj); k++) {
            E[i][4 * j] += C[i][k] * D[k][4 * j];
            E[i][4 * j + 1] += C[i][k] * D[k][4 * j + 1];
            E[i][4 * j + 2] += C[i][k] * D[k][4 * j + 2];
            E[i][4 * j + 3] += C[i][k] * D[k][4 * j + 3];
            E[i][4 * j + 4 * (nl / 8)] += C[i][k] * D[k][4 * j + 4 * (nl / 8)];
            E[i][4 * j + 1 + 4 * (nl / 8)] += C[i][k] * D[k][4 * j + 1 + 4 * (nl / 8)];
            E[i][4 * j + 2 + 4 * (nl / 8)] += C[i][k] * D[k][4 * j + 2 + 4 * (nl / 8)];
            E[i][4 * j + 3 + 4 * (nl / 8)] += C[i][k] * D[k][4 * j + 3 + 4 * (nl / 8)];
          }
        }
      }
      #pragma hmppcg parallel
      for (int j = nl - nl % 8; j < nl; j++) {
        #pragma hmppcg noParallel
        for (int outer_k_2 = 0; outer_k_2 < (nj + 15) / 16; outer_k_2++) {
          #pragma hmppcg noParallel
          #pragma looptune stage C, D, buffers 2, transposed(C), unroll 16
          for (int k = 16 * outer_k_2; k < (16 * outer_k_2 + 16 < nj ? 16 * outer_k_2 + 16 : nj); k++) {
            E[i][j] += C[i][k] * D[k][j];
          }
        }
      }
    }
}

static void init(int ni, int nj, int nk, int nl, DATA_TYPE A[ni][nk], DATA_TYPE B[nk][nj], DATA_TYPE C[ni][nj],
                 DATA_TYPE D[nj][nl], DATA_TYPE E[ni][nl])
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
    for (i = 0; i < nj; i++)
        for (j = 0; j < nl; j++)
            D[i][j] = ((DATA_TYPE)i * j + 2) / nj;
    for (i = 0; i < ni; i++)
        for (j = 0; j < nl; j++)
            E[i][j] = ((DATA_TYPE)i * j + 2) / nj;
}

/* The checksum weighs each element by its place, so that two swapped elements change it. */
static double checksum(int rows, int cols, DATA_TYPE X[rows][cols])
{
    double sum = 0;
    int i, j;

    for (i = 0; i < rows; i++) {
        for (j = 0; j < cols; j++) {
            sum += (double)X[i][j] * (1 + (3 * i + 7 * j) % 11);
#ifdef DUMP
            printf("%.9g%c", (double)X[i][j], j + 1 < cols ? ' ' : '\n');
#endif
        }
    }
    return sum;
}

static void print(int ni, int nj, int nk, int nl, DATA_TYPE C[ni][nj], DATA_TYPE E[ni][nl])
{
    double first = checksum(ni, nj, C), second = checksum(ni, nl, E);

    printf("mm2 ni=%d nj=%d nk=%d nl=%d checksum=%.6e of C %.6e\n", ni, nj, nk, nl, second, first);
    printf("corners %.6e %.6e %.6e %.6e middle %.6e\n", (double)E[0][0], (double)E[0][nl - 1], (double)E[ni - 1][0],
           (double)E[ni - 1][nl - 1], (double)E[ni / 2][nl / 2]);
}

int main(void)
{
    int ni = NI, nj = NJ, nk = NK, nl = NL;
    DATA_TYPE(*A)[nk] = malloc(sizeof(DATA_TYPE) * ni * nk);
    DATA_TYPE(*B)[nj] = malloc(sizeof(DATA_TYPE) * nk * nj);
    DATA_TYPE(*C)[nj] = malloc(sizeof(DATA_TYPE) * ni * nj);
    DATA_TYPE(*D)[nl] = malloc(sizeof(DATA_TYPE) * nj * nl);
    DATA_TYPE(*E)[nl] = malloc(sizeof(DATA_TYPE) * ni * nl);

    if (!A || !B || !C || !D || !E) {
        fprintf(stderr, "mm2: no memory for %d x %d x %d x %d\n", ni, nj, nk, nl);
        return 1;
    }
    init(ni, nj, nk, nl, A, B, C, D, E);
#ifdef TIME
    clock_t start = clock();
#endif
#pragma hmpp mm2 callsite
    mm2(ni, nj, nk, nl, A, B, C, D, E);
#ifdef TIME
    fprintf(stderr, "%.6f s\n", (double)(clock() - start) / CLOCKS_PER_SEC);
#endif
    print(ni, nj, nk, nl, C, E);
    free(A);
    free(B);
    free(C);
    free(D);
    free(E);
    return 0;
}
