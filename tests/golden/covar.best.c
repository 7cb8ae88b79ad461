/* looptune transform
   loop 1: gridify(i, j)
   loop 5: box 8
   loop 6: box 8
   loop 5: unroll 8, jam
   loop 6: unroll 4, jam
   loop 7: tile i:32
   loop 7: stage data, buffers 2, unroll 4
   codelet: grid blocksize 16x8
   codelet: pack
   added up in another order than in the original: +:mean (61:13)
   assumed: these do not overlap: data and mean, data and symmat, mean and symmat
*/
#define M 2048
#define N 2048
/* The covariance matrix of m variables observed n times, up to a factor: data of n x m elements, row-major, one variable
 * a column.
 *
 *     mean[j] = sum over i of data[i][j] / float_n
 *     data[i][j] becomes data[i][j] - mean[j]
 *     symmat[j1][j2] = symmat[j2][j1] = sum over i of data[i][j1] * data[i][j2]
 *
 * Source: COVAR of PolyBench/GPU 1.0 (Grauer-Gray and Pouchet): its loop nests, which leave the sums undivided, and its
 * 2048 x 2048 of float; tuned in Grauer-Gray et al., "Auto-tuning a High-Level Language Targeted to GPU Codes",
 * InPar 2012. Two values are ours. PolyBench/GPU's columns are multiples of one another; here a formula gives them
 * different values. And its float_n is one constant for any n; here it is n, -DFLOAT_N=.. gives another.
 * Rows and columns count from 0, there from 1.
 *
 *     gcc -O2 polybench/covar.c -lm && ./a.out        prints the sizes, a checksum of all results and five elements
 *     -DDUMP                                          prints mean and symmat, one row a line
 *     -DTIME                                          prints the seconds the codelet took, to stderr
 *     -DMINI_DATASET (32) SMALL (128) MEDIUM (512) PAPER (2048, the default) STANDARD (2048) LARGE (4096)
 *     EXTRALARGE (8192)
 *     -DM=.. -DN=.. -DDATA_TYPE=double                any sizes, either type
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
#elif defined(LARGE_DATASET)
#define SIZE 4096
#elif defined(EXTRALARGE_DATASET)
#define SIZE 8192
#else /* PAPER_DATASET, STANDARD_DATASET */
#define SIZE 2048
#endif

#ifndef M
#endif
#ifndef N
#endif
#ifndef DATA_TYPE
#define DATA_TYPE float
#endif
#ifndef FLOAT_N
#define FLOAT_N N
#endif

#pragma hmpp covar codelet, target=CUDA, args[data;mean;symmat].io=inout
static void covar(int m, int n, DATA_TYPE float_n, DATA_TYPE data[n][m], DATA_TYPE mean[m], DATA_TYPE symmat[m][m])
{
    int i, j, j1, j2;

    #pragma hmppcg gridify(i, j)
    #pragma hmppcg grid blocksize 16x8
    #pragma looptune pack
    for (int j = 0; j < m; j++) {
      mean[j] = 0;
      #pragma hmppcg parallel, reduce(+:mean)
      for (int i = 0; i < n; i++) {
        mean[j] += data[i][j];
      }
      mean[j] /= float_n;
    }

    #pragma hmppcg parallel
    #pragma hmppcg grid blocksize 16x8
    #pragma looptune pack
    for (int i = 0; i < n; i++) {
      #pragma hmppcg parallel
      for (int j = 0; j < m; j++) {
        data[i][j] -= mean[j];
      }
    }

    #pragma hmppcg parallel
    #pragma hmppcg grid blocksize 16x8
    #pragma looptune pack
    for (int j1 = 0; j1 < (m + 7) / 8; j1++) {
      if (8 * j1 < m) {
        #pragma hmppcg parallel
        for (int j2 = 0; j2 < (m + 7) / 8 * 2; j2++) {
          if (4 * j2 + 3 >= 8 * j1 && 4 * j2 < m) {
            if (4 * j2 >= 8 * j1) {
              symmat[8 * j1][4 * j2] = 0;
            }
            if (8 * j1 + 1 < m && 4 * j2 >= 8 * j1 + 1) {
              symmat[8 * j1 + 1][4 * j2] = 0;
            }
            if (8 * j1 + 2 < m && 4 * j2 >= 8 * j1 + 2) {
              symmat[8 * j1 + 2][4 * j2] = 0;
            }
            if (8 * j1 + 3 < m && 4 * j2 >= 8 * j1 + 3) {
              symmat[8 * j1 + 3][4 * j2] = 0;
            }
            if (8 * j1 + 4 < m && 4 * j2 >= 8 * j1 + 4) {
              symmat[8 * j1 + 4][4 * j2] = 0;
            }
            if (8 * j1 + 5 < m && 4 * j2 >= 8 * j1 + 5) {
              symmat[8 * j1 + 5][4 * j2] = 0;
            }
            if (8 * j1 + 6 < m && 4 * j2 >= 8 * j1 + 6) {
              symmat[8 * j1 + 6][4 * j2] = 0;
            }
            if (8 * j1 + 7 < m && 4 * j2 >= 8 * j1 + 7) {
              symmat[8 * j1 + 7][4 * j2] = 0;
            }
            if (4 * j2 + 1 >= 8 * j1 && 4 * j2 + 1 < m) {
              symmat[8 * j1][4 * j2 + 1] = 0;
            }
            if (8 * j1 + 1 < m && 4 * j2 + 1 >= 8 * j1 + 1 && 4 * j2 + 1 < m) {
              symmat[8 * j1 + 1][4 * j2 + 1] = 0;
            }
            if (8 * j1 + 2 < m && 4 * j2 + 1 >= 8 * j1 + 2 && 4 * j2 + 1 < m) {
              symmat[8 * j1 + 2][4 * j2 + 1] = 0;
            }
            if (8 * j1 + 3 < m && 4 * j2 + 1 >= 8 * j1 + 3 && 4 * j2 + 1 < m) {
              symmat[8 * j1 + 3][4 * j2 + 1] = 0;
            }
            if (8 * j1 + 4 < m && 4 * j2 + 1 >= 8 * j1 + 4 && 4 * j2 + 1 < m) {
              symmat[8 * j1 + 4][4 * j2 + 1] = 0;
            }
            if (8 * j1 + 5 < m && 4 * j2 + 1 >= 8 * j1 + 5 && 4 * j2 + 1 < m) {
              symmat[8 * j1 + 5][4 * j2 + 1] = 0;
            }
            if (8 * j1 + 6 < m && 4 * j2 + 1 >= 8 * j1 + 6 && 4 * j2 + 1 < m) {
              symmat[8 * j1 + 6][4 * j2 + 1] = 0;
            }
            if (8 * j1 + 7 < m && 4 * j2 + 1 >= 8 * j1 + 7 && 4 * j2 + 1 < m) {
              symmat[8 * j1 + 7][4 * j2 + 1] = 0;
            }
            if (4 * j2 + 2 >= 8 * j1 && 4 * j2 + 2 < m) {
              symmat[8 * j1][4 * j2 + 2] = 0;
            }
            if (8 * j1 + 1 < m && 4 * j2 + 2 >= 8 * j1 + 1 && 4 * j2 + 2 < m) {
              symmat[8 * j1 + 1][4 * j2 + 2] = 0;
            }
            if (8 * j1 + 2 < m && 4 * j2 + 2 >= 8 * j1 + 2 && 4 * j2 + 2 < m) {
              symmat[8 * j1 + 2][4 * j2 + 2] = 0;
            }
            if (8 * j1 + 3 < m && 4 * j2 + 2 >= 8 * j1 + 3 && 4 * j2 + 2 < m) {
              symmat[8 * j1 + 3][4 * j2 + 2] = 0;
            }
            if (8 * j1 + 4 < m && 4 * j2 + 2 >= 8 * j1 + 4 && 4 * j2 + 2 < m) {
              symmat[8 * j1 + 4][4 * j2 + 2] = 0;
            }
            if (8 * j1 + 5 < m && 4 * j2 + 2 >= 8 * j1 + 5 && 4 * j2 + 2 < m) {
              symmat[8 * j1 + 5][4 * j2 + 2] = 0;
            }
            if (8 * j1 + 6 < m && 4 * j2 + 2 >= 8 * j1 + 6 && 4 * j2 + 2 < m) {
              symmat[8 * j1 + 6][4 * j2 + 2] = 0;
            }
            if (8 * j1 + 7 < m && 4 * j2 + 2 >= 8 * j1 + 7 && 4 * j2 + 2 < m) {
              symmat[8 * j1 + 7][4 * j2 + 2] = 0;
            }
            if (4 * j2 + 3 < m) {
              symmat[8 * j1][4 * j2 + 3] = 0;
            }
            if (8 * j1 + 1 < m && 4 * j2 + 3 >= 8 * j1 + 1 && 4 * j2 + 3 < m) {
              symmat[8 * j1 + 1][4 * j2 + 3] = 0;
            }
            if (8 * j1 + 2 < m && 4 * j2 + 3 >= 8 * j1 + 2 && 4 * j2 + 3 < m) {
              symmat[8 * j1 + 2][4 * j2 + 3] = 0;
            }
            if (8 * j1 + 3 < m && 4 * j2 + 3 >= 8 * j1 + 3 && 4 * j2 + 3 < m) {
              symmat[8 * j1 + 3][4 * j2 + 3] = 0;
            }
            if (8 * j1 + 4 < m && 4 * j2 + 3 >= 8 * j1 + 4 && 4 * j2 + 3 < m) {
              symmat[8 * j1 + 4][4 * j2 + 3] = 0;
            }
            if (8 * j1 + 5 < m && 4 * j2 + 3 >= 8 * j1 + 5 && 4 * j2 + 3 < m) {
              symmat[8 * j1 + 5][4 * j2 + 3] = 0;
            }
            if (8 * j1 + 6 < m && 4 * j2 + 3 >= 8 * j1 + 6 && 4 * j2 + 3 < m) {
              symmat[8 * j1 + 6][4 * j2 + 3] = 0;
            }
            if (8 * j1 + 7 < m && 4 * j2 + 3 >= 8 * j1 + 7 && 4 * j2 + 3 < m) {
              symmat[8 * j1 + 7][4 * j2 + 3] = 0;
            }
            #pragma hmppcg noParallel
            for (int outer_i = 0; outer_i < (n + 31) / 32; outer_i++) {
              #pragma hmppcg noParallel
              #pragma looptune stage data, buffers 2, unroll 4
              for (int i = 32 * outer_i; i < (32 * outer_i + 32 < n ? 32 * outer_i + 32 : n); i++) {
                if (4 * j2 >= 8 * j1) {
                  symmat[8 * j1][4 * j2] += data[i][8 * j1] * data[i][4 * j2];
                }
                if (8 * j1 + 1 < m && 4 * j2 >= 8 * j1 + 1) {
                  symmat[8 * j1 + 1][4 * j2] += data[i][8 * j1 + 1] * data[i][4 * j2];
                }
                if (8 * j1 + 2 < m && 4 * j2 >= 8 * j1 + 2) {
                  symmat[8 * j1 + 2][4 * j2] += data[i][8 * j1 + 2] * data[i][4 * j2];
                }
                if (8 * j1 + 3 < m && 4 * j2 >= 8 * j1 + 3) {
                  symmat[8 * j1 + 3][4 * j2] += data[i][8 * j1 + 3] * data[i][4 * j2];
                }
                if (8 * j1 + 4 < m && 4 * j2 >= 8 * j1 + 4) {
                  symmat[8 * j1 + 4][4 * j2] += data[i][8 * j1 + 4] * data[i][4 * j2];
                }
                if (8 * j1 + 5 < m && 4 * j2 >= 8 * j1 + 5) {
                  symmat[8 * j1 + 5][4 * j2] += data[i][8 * j1 + 5] * data[i][4 * j2];
                }
                if (8 * j1 + 6 < m && 4 * j2 >= 8 * j1 + 6) {
                  symmat[8 * j1 + 6][4 * j2] += data[i][8 * j1 + 6] * data[i][4 * j2];
                }
                if (8 * j1 + 7 < m && 4 * j2 >= 8 * j1 + 7) {
                  symmat[8 * j1 + 7][4 * j2] += data[i][8 * j1 + 7] * data[i][4 * j2];
                }
                if (4 * j2 + 1 >= 8 * j1 && 4 * j2 + 1 < m) {
                  symmat[8 * j1][4 * j2 + 1] += data[i][8 * j1] * data[i][4 * j2 + 1];
                }
                if (8 * j1 + 1 < m && 4 * j2 + 1 >= 8 * j1 + 1 && 4 * j2 + 1 < m) {
                  symmat[8 * j1 + 1][4 * j2 + 1] += data[i][8 * j1 + 1] * data[i][4 * j2 + 1];
                }
                if (8 * j1 + 2 < m && 4 * j2 + 1 >= 8 * j1 + 2 && 4 * j2 + 1 < m) {
                  symmat[8 * j1 + 2][4 * j2 + 1] += data[i][8 * j1 + 2] * data[i][4 * j2 + 1];
                }
                if (8 * j1 + 3 < m && 4 * j2 + 1 >= 8 * j1 + 3 && 4 * j2 + 1 < m) {
                  symmat[8 * j1 + 3][4 * j2 + 1] += data[i][8 * j1 + 3] * data[i][4 * j2 + 1];
                }
                if (8 * j1 + 4 < m && 4 * j2 + 1 >= 8 * j1 + 4 && 4 * j2 + 1 < m) {
                  symmat[8 * j1 + 4][4 * j2 + 1] += data[i][8 * j1 + 4] * data[i][4 * j2 + 1];
                }
                if (8 * j1 + 5 < m && 4 * j2 + 1 >= 8 * j1 + 5 && 4 * j2 + 1 < m) {
                  symmat[8 * j1 + 5][4 * j2 + 1] += data[i][8 * j1 + 5] * data[i][4 * j2 + 1];
                }
                if (8 * j1 + 6 < m && 4 * j2 + 1 >= 8 * j1 + 6 && 4 * j2 + 1 < m) {
                  symmat[8 * j1 + 6][4 * j2 + 1] += data[i][8 * j1 + 6] * data[i][4 * j2 + 1];
                }
                if (8 * j1 + 7 < m && 4 * j2 + 1 >= 8 * j1 + 7 && 4 * j2 + 1 < m) {
                  symmat[8 * j1 + 7][4 * j2 + 1] += data[i][8 * j1 + 7] * data[i][4 * j2 + 1];
                }
                if (4 * j2 + 2 >= 8 * j1 && 4 * j2 + 2 < m) {
                  symmat[8 * j1][4 * j2 + 2] += data[i][8 * j1] * data[i][4 * j2 + 2];
                }
                if (8 * j1 + 1 < m && 4 * j2 + 2 >= 8 * j1 + 1 && 4 * j2 + 2 < m) {
                  symmat[8 * j1 + 1][4 * j2 + 2] += data[i][8 * j1 + 1] * data[i][4 * j2 + 2];
                }
                if (8 * j1 + 2 < m && 4 * j2 + 2 >= 8 * j1 + 2 && 4 * j2 + 2 < m) {
                  symmat[8 * j1 + 2][4 * j2 + 2] += data[i][8 * j1 + 2] * data[i][4 * j2 + 2];
                }
                if (8 * j1 + 3 < m && 4 * j2 + 2 >= 8 * j1 + 3 && 4 * j2 + 2 < m) {
                  symmat[8 * j1 + 3][4 * j2 + 2] += data[i][8 * j1 + 3] * data[i][4 * j2 + 2];
                }
                if (8 * j1 + 4 < m && 4 * j2 + 2 >= 8 * j1 + 4 && 4 * j2 + 2 < m) {
                  symmat[8 * j1 + 4][4 * j2 + 2] += data[i][8 * j1 + 4] * data[i][4 * j2 + 2];
                }
                if (8 * j1 + 5 < m && 4 * j2 + 2 >= 8 * j1 + 5 && 4 * j2 + 2 < m) {
                  symmat[8 * j1 + 5][4 * j2 + 2] += data[i][8 * j1 + 5] * data[i][4 * j2 + 2];
                }
                if (8 * j1 + 6 < m && 4 * j2 + 2 >= 8 * j1 + 6 && 4 * j2 + 2 < m) {
                  symmat[8 * j1 + 6][4 * j2 + 2] += data[i][8 * j1 + 6] * data[i][4 * j2 + 2];
                }
                if (8 * j1 + 7 < m && 4 * j2 + 2 >= 8 * j1 + 7 && 4 * j2 + 2 < m) {
                  symmat[8 * j1 + 7][4 * j2 + 2] += data[i][8 * j1 + 7] * data[i][4 * j2 + 2];
                }
                if (4 * j2 + 3 < m) {
                  symmat[8 * j1][4 * j2 + 3] += data[i][8 * j1] * data[i][4 * j2 + 3];
                }
                if (8 * j1 + 1 < m && 4 * j2 + 3 >= 8 * j1 + 1 && 4 * j2 + 3 < m) {
                  symmat[8 * j1 + 1][4 * j2 + 3] += data[i][8 * j1 + 1] * data[i][4 * j2 + 3];
                }
                if (8 * j1 + 2 < m && 4 * j2 + 3 >= 8 * j1 + 2 && 4 * j2 + 3 < m) {
                  symmat[8 * j1 + 2][4 * j2 + 3] += data[i][8 * j1 + 2] * data[i][4 * j2 + 3];
                }
                if (8 * j1 + 3 < m && 4 * j2 + 3 >= 8 * j1 + 3 && 4 * j2 + 3 < m) {
                  symmat[8 * j1 + 3][4 * j2 + 3] += data[i][8 * j1 + 3] * data[i][4 * j2 + 3];
                }
                if (8 * j1 + 4 < m && 4 * j2 + 3 >= 8 * j1 + 4 && 4 * j2 + 3 < m) {
                  symmat[8 * j1 + 4][4 * j2 + 3] += data[i][8 * j1 + 4] * data[i][4 * j2 + 3];
                }
                if (8 * j1 + 5 < m && 4 * j2 + 3 >= 8 * j1 + 5 && 4 * j2 + 3 < m) {
                  symmat[8 * j1 + 5][4 * j2 + 3] += data[i][8 * j1 + 5] * data[i][4 * j2 + 3];
                }
                if (8 * j1 + 6 < m && 4 * j2 + 3 >= 8 * j1 + 6 && 4 * j2 + 3 < m) {
                  symmat[8 * j1 + 6][4 * j2 + 3] += data[i][8 * j1 + 6] * data[i][4 * j2 + 3];
                }
                if (8 * j1 + 7 < m && 4 * j2 + 3 >= 8 * j1 + 7 && 4 * j2 + 3 < m) {
                  symmat[8 * j1 + 7][4 * j2 + 3] += data[i][8 * j1 + 7] * data[i][4 * j2 + 3];
                }
              }
            }
            if (4 * j2 >= 8 * j1) {
              symmat[4 * j2][8 * j1] = symmat[8 * j1][4 * j2];
            }
            if (8 * j1 + 1 < m && 4 * j2 >= 8 * j1 + 1) {
              symmat[4 * j2][8 * j1 + 1] = symmat[8 * j1 + 1][4 * j2];
            }
            if (8 * j1 + 2 < m && 4 * j2 >= 8 * j1 + 2) {
              symmat[4 * j2][8 * j1 + 2] = symmat[8 * j1 + 2][4 * j2];
            }
            if (8 * j1 + 3 < m && 4 * j2 >= 8 * j1 + 3) {
              symmat[4 * j2][8 * j1 + 3] = symmat[8 * j1 + 3][4 * j2];
            }
            if (8 * j1 + 4 < m && 4 * j2 >= 8 * j1 + 4) {
              symmat[4 * j2][8 * j1 + 4] = symmat[8 * j1 + 4][4 * j2];
            }
            if (8 * j1 + 5 < m && 4 * j2 >= 8 * j1 + 5) {
              symmat[4 * j2][8 * j1 + 5] = symmat[8 * j1 + 5][4 * j2];
            }
            if (8 * j1 + 6 < m && 4 * j2 >= 8 * j1 + 6) {
              symmat[4 * j2][8 * j1 + 6] = symmat[8 * j1 + 6][4 * j2];
            }
            if (8 * j1 + 7 < m && 4 * j2 >= 8 * j1 + 7) {
              symmat[4 * j2][8 * j1 + 7] = symmat[8 * j1 + 7][4 * j2];
            }
            if (4 * j2 + 1 >= 8 * j1 && 4 * j2 + 1 < m) {
              symmat[4 * j2 + 1][8 * j1] = symmat[8 * j1][4 * j2 + 1];
            }
            if (8 * j1 + 1 < m && 4 * j2 + 1 >= 8 * j1 + 1 && 4 * j2 + 1 < m) {
              symmat[4 * j2 + 1][8 * j1 + 1] = symmat[8 * j1 + 1][4 * j2 + 1];
            }
            if (8 * j1 + 2 < m && 4 * j2 + 1 >= 8 * j1 + 2 && 4 * j2 + 1 < m) {
              symmat[4 * j2 + 1][8 * j1 + 2] = symmat[8 * j1 + 2][4 * j2 + 1];
            }
            if (8 * j1 + 3 < m && 4 * j2 + 1 >= 8 * j1 + 3 && 4 * j2 + 1 < m) {
              symmat[4 * j2 + 1][8 * j1 + 3] = symmat[8 * j1 + 3][4 * j2 + 1];
            }
            if (8 * j1 + 4 < m && 4 * j2 + 1 >= 8 * j1 + 4 && 4 * j2 + 1 < m) {
              symmat[4 * j2 + 1][8 * j1 + 4] = symmat[8 * j1 + 4][4 * j2 + 1];
            }
            if (8 * j1 + 5 < m && 4 * j2 + 1 >= 8 * j1 + 5 && 4 * j2 + 1 < m) {
              symmat[4 * j2 + 1][8 * j1 + 5] = symmat[8 * j1 + 5][4 * j2 + 1];
            }
            if (8 * j1 + 6 < m && 4 * j2 + 1 >= 8 * j1 + 6 && 4 * j2 + 1 < m) {
              symmat[4 * j2 + 1][8 * j1 + 6] = symmat[8 * j1 + 6][4 * j2 + 1];
            }
            if (8 * j1 + 7 < m && 4 * j2 + 1 >= 8 * j1 + 7 && 4 * j2 + 1 < m) {
              symmat[4 * j2 + 1][8 * j1 + 7] = symmat[8 * j1 + 7][4 * j2 + 1];
            }
            if (4 * j2 + 2 >= 8 * j1 && 4 * j2 + 2 < m) {
              symmat[4 * j2 + 2][8 * j1] = symmat[8 * j1][4 * j2 + 2];
            }
            if (8 * j1 + 1 < m && 4 * j2 + 2 >= 8 * j1 + 1 && 4 * j2 + 2 < m) {
              symmat[4 * j2 + 2][8 * j1 + 1] = symmat[8 * j1 + 1][4 * j2 + 2];
            }
            if (8 * j1 + 2 < m && 4 * j2 + 2 >= 8 * j1 + 2 && 4 * j2 + 2 < m) {
              symmat[4 * j2 + 2][8 * j1 + 2] = symmat[8 * j1 + 2][4 * j2 + 2];
            }
            if (8 * j1 + 3 < m && 4 * j2 + 2 >= 8 * j1 + 3 && 4 * j2 + 2 < m) {
              symmat[4 * j2 + 2][8 * j1 + 3] = symmat[8 * j1 + 3][4 * j2 + 2];
            }
            if (8 * j1 + 4 < m && 4 * j2 + 2 >= 8 * j1 + 4 && 4 * j2 + 2 < m) {
              symmat[4 * j2 + 2][8 * j1 + 4] = symmat[8 * j1 + 4][4 * j2 + 2];
            }
            if (8 * j1 + 5 < m && 4 * j2 + 2 >= 8 * j1 + 5 && 4 * j2 + 2 < m) {
              symmat[4 * j2 + 2][8 * j1 + 5] = symmat[8 * j1 + 5][4 * j2 + 2];
            }
            if (8 * j1 + 6 < m && 4 * j2 + 2 >= 8 * j1 + 6 && 4 * j2 + 2 < m) {
              symmat[4 * j2 + 2][8 * j1 + 6] = symmat[8 * j1 + 6][4 * j2 + 2];
            }
            if (8 * j1 + 7 < m && 4 * j2 + 2 >= 8 * j1 + 7 && 4 * j2 + 2 < m) {
              symmat[4 * j2 + 2][8 * j1 + 7] = symmat[8 * j1 + 7][4 * j2 + 2];
            }
            if (4 * j2 + 3 < m) {
              symmat[4 * j2 + 3][8 * j1] = symmat[8 * j1][4 * j2 + 3];
            }
            if (8 * j1 + 1 < m && 4 * j2 + 3 >= 8 * j1 + 1 && 4 * j2 + 3 < m) {
              symmat[4 * j2 + 3][8 * j1 + 1] = symmat[8 * j1 + 1][4 * j2 + 3];
            }
            if (8 * j1 + 2 < m && 4 * j2 + 3 >= 8 * j1 + 2 && 4 * j2 + 3 < m) {
              symmat[4 * j2 + 3][8 * j1 + 2] = symmat[8 * j1 + 2][4 * j2 + 3];
            }
            if (8 * j1 + 3 < m && 4 * j2 + 3 >= 8 * j1 + 3 && 4 * j2 + 3 < m) {
              symmat[4 * j2 + 3][8 * j1 + 3] = symmat[8 * j1 + 3][4 * j2 + 3];
            }
            if (8 * j1 + 4 < m && 4 * j2 + 3 >= 8 * j1 + 4 && 4 * j2 + 3 < m) {
              symmat[4 * j2 + 3][8 * j1 + 4] = symmat[8 * j1 + 4][4 * j2 + 3];
            }
            if (8 * j1 + 5 < m && 4 * j2 + 3 >= 8 * j1 + 5 && 4 * j2 + 3 < m) {
              symmat[4 * j2 + 3][8 * j1 + 5] = symmat[8 * j1 + 5][4 * j2 + 3];
            }
            if (8 * j1 + 6 < m && 4 * j2 + 3 >= 8 * j1 + 6 && 4 * j2 + 3 < m) {
              symmat[4 * j2 + 3][8 * j1 + 6] = symmat[8 * j1 + 6][4 * j2 + 3];
            }
            if (8 * j1 + 7 < m && 4 * j2 + 3 >= 8 * j1 + 7 && 4 * j2 + 3 < m) {
              symmat[4 * j2 + 3][8 * j1 + 7] = symmat[8 * j1 + 7][4 * j2 + 3];
            }
          }
        }
      }
    }
}

static void init(int m, int n, DATA_TYPE data[n][m])
{
    int i, j;

    for (i = 0; i < n; i++)
        for (j = 0; j < m; j++)
            data[i][j] = (DATA_TYPE)((3 * i + 5 * j + i * j % 11) % 23) / 23;
}

/* The checksum weighs each element by its place, so that two swapped elements change it. */
static double checksum(int rows, int cols, DATA_TYPE a[rows][cols])
{
    double sum = 0;
    int i, j;

    for (i = 0; i < rows; i++) {
        for (j = 0; j < cols; j++) {
            sum += (double)a[i][j] * (1 + (3 * i + 7 * j) % 11);
#ifdef DUMP
            printf("%.9g%c", (double)a[i][j], j + 1 < cols ? ' ' : '\n');
#endif
        }
    }
    return sum;
}

int main(void)
{
    int m = M, n = N;
    DATA_TYPE float_n = FLOAT_N;
    DATA_TYPE(*data)[m] = malloc(sizeof(DATA_TYPE) * n * m);
    DATA_TYPE(*mean)[m] = malloc(sizeof(DATA_TYPE) * m);
    DATA_TYPE(*symmat)[m] = malloc(sizeof(DATA_TYPE) * m * m);
    double sum;

    if (!data || !mean || !symmat) {
        fprintf(stderr, "covar: no memory for %d x %d\n", n, m);
        return 1;
    }
    init(m, n, data);
#ifdef TIME
    clock_t start = clock();
#endif
#pragma hmpp covar callsite
    covar(m, n, float_n, data, *mean, symmat);
#ifdef TIME
    fprintf(stderr, "%.6f s\n", (double)(clock() - start) / CLOCKS_PER_SEC);
#endif
    sum = checksum(1, m, mean);
    sum += checksum(m, m, symmat);
    printf("covar m=%d n=%d checksum=%.6e\n", m, n, sum);
    printf("corners %.6e %.6e %.6e %.6e middle %.6e\n", (double)symmat[0][0], (double)symmat[0][m - 1],
           (double)symmat[m - 1][0], (double)symmat[m - 1][m - 1], (double)symmat[m / 2][m / 2]);
    free(data);
    free(mean);
    free(symmat);
    return 0;
}
