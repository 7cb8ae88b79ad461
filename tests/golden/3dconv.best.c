/* looptune transform
   nest i: gridify(i, j, k)
   loop i: unroll 4, guarded, jam
   loop j: unroll 2, guarded, jam
   loop k: box 32
   codelet: grid blocksize 64x4
   codelet: launchbounds off
   assumed: these do not overlap: A and B
*/
#define NI 256
#define NJ 256
#define NK 256
/* A convolution of a volume A of ni x nj x nk elements, row-major, into B; the faces of B are not written:
 *
 *     B[i][j][k] = sum of c[a][b][d] * A[i+a][j+b][k+d]      for 0 < i < ni - 1, 0 < j < nj - 1, 0 < k < nk - 1
 *
 * over the eleven neighbours (a, b, d) that PolyBench/GPU reads, four of them with several coefficients.
 *
 * Source: 3DCONV of PolyBench/GPU 1.0 (Grauer-Gray and Pouchet): its loop nest, its coefficients and the order of its
 * terms, its initial values, its 256 x 256 x 256 of float; tuned in Grauer-Gray et al., "Auto-tuning a High-Level
 * Language Targeted to GPU Codes", InPar 2012.
 *
 *     gcc -O2 polybench/3dconv.c -lm && ./a.out       prints the sizes, a checksum and five elements of B
 *     -DDUMP                                          prints every element, one row along k a line
 *     -DTIME                                          prints the seconds the codelet took, to stderr
 *     -DMINI_DATASET (16) SMALL (32) MEDIUM (64) PAPER (256, the default) STANDARD (256) LARGE (384) EXTRALARGE (512)
 *     -DNI=.. -DNJ=.. -DNK=.. -DDATA_TYPE=double      any sizes, either type
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(MINI_DATASET)
#define SIZE 16
#elif defined(SMALL_DATASET)
#define SIZE 32
#elif defined(MEDIUM_DATASET)
#define SIZE 64
#elif defined(LARGE_DATASET)
#define SIZE 384
#elif defined(EXTRALARGE_DATASET)
#define SIZE 512
#else /* PAPER_DATASET, STANDARD_DATASET */
#define SIZE 256
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

#pragma hmpp conv3d codelet, target=CUDA, args[A].io=in, args[B].io=inout
static void conv3d(int ni, int nj, int nk, DATA_TYPE A[ni][nj][nk], DATA_TYPE B[ni][nj][nk])
{
    const DATA_TYPE c11 = 2, c21 = 5, c31 = -8;
    const DATA_TYPE c12 = -3, c22 = 6, c32 = -9;
    const DATA_TYPE c13 = 4, c23 = 7, c33 = 10;
    int i, j, k;

    #pragma hmppcg gridify(i, j, k)
    #pragma hmppcg grid blocksize 64x4
    #pragma looptune launchbounds off
    for (int i = 0; i < (ni - 2) / 4 + (ni - 2) % 4; i++) {
      #pragma hmppcg parallel
      for (int j = 0; j < (nj - 2) / 2 + (nj - 2) % 2; j++) {
        #pragma hmppcg parallel
        for (int k = 0; k < (nk + 30) / 32 * 32; k++) {
          if (i < (ni - 2) / 4) {
            if (j < (nj - 2) / 2) {
              if (k >= 1 && k < nk - 1) {
                B[1 + 4 * i][1 + 2 * j][k] = 2 * A[4 * i][2 * j][k - 1] + 4 * A[1 + 4 * i + 1][2 * j][k - 1] + 5 * A[4 * i][2 * j][k - 1] + 7 * A[1 + 4 * i + 1][2 * j][k - 1] + -8 * A[4 * i][2 * j][k - 1] + 10 * A[1 + 4 * i + 1][2 * j][k - 1] + -3 * A[1 + 4 * i][2 * j][k] + 6 * A[1 + 4 * i][1 + 2 * j][k] + -9 * A[1 + 4 * i][1 + 2 * j + 1][k] + 2 * A[4 * i][2 * j][k + 1] + 4 * A[1 + 4 * i + 1][2 * j][k + 1] + 5 * A[4 * i][1 + 2 * j][k + 1] + 7 * A[1 + 4 * i + 1][1 + 2 * j][k + 1] + -8 * A[4 * i][1 + 2 * j + 1][k + 1] + 10 * A[1 + 4 * i + 1][1 + 2 * j + 1][k + 1];
                B[1 + 4 * i][1 + (2 * j + 1)][k] = 2 * A[4 * i][2 * j + 1][k - 1] + 4 * A[1 + 4 * i + 1][2 * j + 1][k - 1] + 5 * A[4 * i][2 * j + 1][k - 1] + 7 * A[1 + 4 * i + 1][2 * j + 1][k - 1] + -8 * A[4 * i][2 * j + 1][k - 1] + 10 * A[1 + 4 * i + 1][2 * j + 1][k - 1] + -3 * A[1 + 4 * i][2 * j + 1][k] + 6 * A[1 + 4 * i][1 + (2 * j + 1)][k] + -9 * A[1 + 4 * i][1 + (2 * j + 1) + 1][k] + 2 * A[4 * i][2 * j + 1][k + 1] + 4 * A[1 + 4 * i + 1][2 * j + 1][k + 1] + 5 * A[4 * i][1 + (2 * j + 1)][k + 1] + 7 * A[1 + 4 * i + 1][1 + (2 * j + 1)][k + 1] + -8 * A[4 * i][1 + (2 * j + 1) + 1][k + 1] + 10 * A[1 + 4 * i + 1][1 + (2 * j + 1) + 1][k + 1];
              }
            } else {
              if (k >= 1 && k < nk - 1) {
                B[1 + 4 * i][1 + (j + (nj - 2) / 2)][k] = 2 * A[4 * i][j + (nj - 2) / 2][k - 1] + 4 * A[1 + 4 * i + 1][j + (nj - 2) / 2][k - 1] + 5 * A[4 * i][j + (nj - 2) / 2][k - 1] + 7 * A[1 + 4 * i + 1][j + (nj - 2) / 2][k - 1] + -8 * A[4 * i][j + (nj - 2) / 2][k - 1] + 10 * A[1 + 4 * i + 1][j + (nj - 2) / 2][k - 1] + -3 * A[1 + 4 * i][j + (nj - 2) / 2][k] + 6 * A[1 + 4 * i][1 + (j + (nj - 2) / 2)][k] + -9 * A[1 + 4 * i][1 + (j + (nj - 2) / 2) + 1][k] + 2 * A[4 * i][j + (nj - 2) / 2][k + 1] + 4 * A[1 + 4 * i + 1][j + (nj - 2) / 2][k + 1] + 5 * A[4 * i][1 + (j + (nj - 2) / 2)][k + 1] + 7 * A[1 + 4 * i + 1][1 + (j + (nj - 2) / 2)][k + 1] + -8 * A[4 * i][1 + (j + (nj - 2) / 2) + 1][k + 1] + 10 * A[1 + 4 * i + 1][1 + (j + (nj - 2) / 2) + 1][k + 1];
              }
            }
            if (j < (nj - 2) / 2) {
              if (k >= 1 && k < nk - 1) {
                B[1 + (4 * i + 1)][1 + 2 * j][k] = 2 * A[4 * i + 1][2 * j][k - 1] + 4 * A[1 + (4 * i + 1) + 1][2 * j][k - 1] + 5 * A[4 * i + 1][2 * j][k - 1] + 7 * A[1 + (4 * i + 1) + 1][2 * j][k - 1] + -8 * A[4 * i + 1][2 * j][k - 1] + 10 * A[1 + (4 * i + 1) + 1][2 * j][k - 1] + -3 * A[1 + (4 * i + 1)][2 * j][k] + 6 * A[1 + (4 * i + 1)][1 + 2 * j][k] + -9 * A[1 + (4 * i + 1)][1 + 2 * j + 1][k] + 2 * A[4 * i + 1][2 * j][k + 1] + 4 * A[1 + (4 * i + 1) + 1][2 * j][k + 1] + 5 * A[4 * i + 1][1 + 2 * j][k + 1] + 7 * A[1 + (4 * i + 1) + 1][1 + 2 * j][k + 1] + -8 * A[4 * i + 1][1 + 2 * j + 1][k + 1] + 10 * A[1 + (4 * i + 1) + 1][1 + 2 * j + 1][k + 1];
                B[1 + (4 * i + 1)][1 + (2 * j + 1)][k] = 2 * A[4 * i + 1][2 * j + 1][k - 1] + 4 * A[1 + (4 * i + 1) + 1][2 * j + 1][k - 1] + 5 * A[4 * i + 1][2 * j + 1][k - 1] + 7 * A[1 + (4 * i + 1) + 1][2 * j + 1][k - 1] + -8 * A[4 * i + 1][2 * j + 1][k - 1] + 10 * A[1 + (4 * i + 1) + 1][2 * j + 1][k - 1] + -3 * A[1 + (4 * i + 1)][2 * j + 1][k] + 6 * A[1 + (4 * i + 1)][1 + (2 * j + 1)][k] + -9 * A[1 + (4 * i + 1)][1 + (2 * j + 1) + 1][k] + 2 * A[4 * i + 1][2 * j + 1][k + 1] + 4 * A[1 + (4 * i + 1) + 1][2 * j + 1][k + 1] + 5 * A[4 * i + 1][1 + (2 * j + 1)][k + 1] + 7 * A[1 + (4 * i + 1) + 1][1 + (2 * j + 1)][k + 1] + -8 * A[4 * i + 1][1 + (2 * j + 1) + 1][k + 1] + 10 * A[1 + (4 * i + 1) + 1][1 + (2 * j + 1) + 1][k + 1];
              }
            } else {
              if (k >= 1 && k < nk - 1) {
                B[1 + (4 * i + 1)][1 + (j + (nj - 2) / 2)][k] = 2 * A[4 * i + 1][j + (nj - 2) / 2][k - 1] + 4 * A[1 + (4 * i + 1) + 1][j + (nj - 2) / 2][k - 1] + 5 * A[4 * i + 1][j + (nj - 2) / 2][k - 1] + 7 * A[1 + (4 * i + 1) + 1][j + (nj - 2) / 2][k - 1] + -8 * A[4 * i + 1][j + (nj - 2) / 2][k - 1] + 10 * A[1 + (4 * i + 1) + 1][j + (nj - 2) / 2][k - 1] + -3 * A[1 + (4 * i + 1)][j + (nj - 2) / 2][k] + 6 * A[1 + (4 * i + 1)][1 + (j + (nj - 2) / 2)][k] + -9 * A[1 + (4 * i + 1)][1 + (j + (nj - 2) / 2) + 1][k] + 2 * A[4 * i + 1][j + (nj - 2) / 2][k + 1] + 4 * A[1 + (4 * i + 1) + 1][j + (nj - 2) / 2][k + 1] + 5 * A[4 * i + 1][1 + (j + (nj - 2) / 2)][k + 1] + 7 * A[1 + (4 * i + 1) + 1][1 + (j + (nj - 2) / 2)][k + 1] + -8 * A[4 * i + 1][1 + (j + (nj - 2) / 2) + 1][k + 1] + 10 * A[1 + (4 * i + 1) + 1][1 + (j + (nj - 2) / 2) + 1][k + 1];
              }
            }
            if (j < (nj - 2) / 2) {
              if (k >= 1 && k < nk - 1) {
                B[1 + (4 * i + 2)][1 + 2 * j][k] = 2 * A[4 * i + 2][2 * j][k - 1] + 4 * A[1 + (4 * i + 2) + 1][2 * j][k - 1] + 5 * A[4 * i + 2][2 * j][k - 1] + 7 * A[1 + (4 * i + 2) + 1][2 * j][k - 1] + -8 * A[4 * i + 2][2 * j][k - 1] + 10 * A[1 + (4 * i + 2) + 1][2 * j][k - 1] + -3 * A[1 + (4 * i + 2)][2 * j][k] + 6 * A[1 + (4 * i + 2)][1 + 2 * j][k] + -9 * A[1 + (4 * i + 2)][1 + 2 * j + 1][k] + 2 * A[4 * i + 2][2 * j][k + 1] + 4 * A[1 + (4 * i + 2) + 1][2 * j][k + 1] + 5 * A[4 * i + 2][1 + 2 * j][k + 1] + 7 * A[1 + (4 * i + 2) + 1][1 + 2 * j][k + 1] + -8 * A[4 * i + 2][1 + 2 * j + 1][k + 1] + 10 * A[1 + (4 * i + 2) + 1][1 + 2 * j + 1][k + 1];
                B[1 + (4 * i + 2)][1 + (2 * j + 1)][k] = 2 * A[4 * i + 2][2 * j + 1][k - 1] + 4 * A[1 + (4 * i + 2) + 1][2 * j + 1][k - 1] + 5 * A[4 * i + 2][2 * j + 1][k - 1] + 7 * A[1 + (4 * i + 2) + 1][2 * j + 1][k - 1] + -8 * A[4 * i + 2][2 * j + 1][k - 1] + 10 * A[1 + (4 * i + 2) + 1][2 * j + 1][k - 1] + -3 * A[1 + (4 * i + 2)][2 * j + 1][k] + 6 * A[1 + (4 * i + 2)][1 + (2 * j + 1)][k] + -9 * A[1 + (4 * i + 2)][1 + (2 * j + 1) + 1][k] + 2 * A[4 * i + 2][2 * j + 1][k + 1] + 4 * A[1 + (4 * i + 2) + 1][2 * j + 1][k + 1] + 5 * A[4 * i + 2][1 + (2 * j + 1)][k + 1] + 7 * A[1 + (4 * i + 2) + 1][1 + (2 * j + 1)][k + 1] + -8 * A[4 * i + 2][1 + (2 * j + 1) + 1][k + 1] + 10 * A[1 + (4 * i + 2) + 1][1 + (2 * j + 1) + 1][k + 1];
              }
            } else {
              if (k >= 1 && k < nk - 1) {
                B[1 + (4 * i + 2)][1 + (j + (nj - 2) / 2)][k] = 2 * A[4 * i + 2][j + (nj - 2) / 2][k - 1] + 4 * A[1 + (4 * i + 2) + 1][j + (nj - 2) / 2][k - 1] + 5 * A[4 * i + 2][j + (nj - 2) / 2][k - 1] + 7 * A[1 + (4 * i + 2) + 1][j + (nj - 2) / 2][k - 1] + -8 * A[4 * i + 2][j + (nj - 2) / 2][k - 1] + 10 * A[1 + (4 * i + 2) + 1][j + (nj - 2) / 2][k - 1] + -3 * A[1 + (4 * i + 2)][j + (nj - 2) / 2][k] + 6 * A[1 + (4 * i + 2)][1 + (j + (nj - 2) / 2)][k] + -9 * A[1 + (4 * i + 2)][1 + (j + (nj - 2) / 2) + 1][k] + 2 * A[4 * i + 2][j + (nj - 2) / 2][k + 1] + 4 * A[1 + (4 * i + 2) + 1][j + (nj - 2) / 2][k + 1] + 5 * A[4 * i + 2][1 + (j + (nj - 2) / 2)][k + 1] + 7 * A[1 + (4 * i + 2) + 1][1 + (j + (nj - 2) / 2)][k + 1] + -8 * A[4 * i + 2][1 + (j + (nj - 2) / 2) + 1][k + 1] + 10 * A[1 + (4 * i + 2) + 1][1 + (j + (nj - 2) / 2) + 1][k + 1];
              }
            }
            if (j < (nj - 2) / 2) {
              if (k >= 1 && k < nk - 1) {
                B[1 + (4 * i + 3)][1 + 2 * j][k] = 2 * A[4 * i + 3][2 * j][k - 1] + 4 * A[1 + (4 * i + 3) + 1][2 * j][k - 1] + 5 * A[4 * i + 3][2 * j][k - 1] + 7 * A[1 + (4 * i + 3) + 1][2 * j][k - 1] + -8 * A[4 * i + 3][2 * j][k - 1] + 10 * A[1 + (4 * i + 3) + 1][2 * j][k - 1] + -3 * A[1 + (4 * i + 3)][2 * j][k] + 6 * A[1 + (4 * i + 3)][1 + 2 * j][k] + -9 * A[1 + (4 * i + 3)][1 + 2 * j + 1][k] + 2 * A[4 * i + 3][2 * j][k + 1] + 4 * A[1 + (4 * i + 3) + 1][2 * j][k + 1] + 5 * A[4 * i + 3][1 + 2 * j][k + 1] + 7 * A[1 + (4 * i + 3) + 1][1 + 2 * j][k + 1] + -8 * A[4 * i + 3][1 + 2 * j + 1][k + 1] + 10 * A[1 + (4 * i + 3) + 1][1 + 2 * j + 1][k + 1];
                B[1 + (4 * i + 3)][1 + (2 * j + 1)][k] = 2 * A[4 * i + 3][2 * j + 1][k - 1] + 4 * A[1 + (4 * i + 3) + 1][2 * j + 1][k - 1] + 5 * A[4 * i + 3][2 * j + 1][k - 1] + 7 * A[1 + (4 * i + 3) + 1][2 * j + 1][k - 1] + -8 * A[4 * i + 3][2 * j + 1][k - 1] + 10 * A[1 + (4 * i + 3) + 1][2 * j + 1][k - 1] + -3 * A[1 + (4 * i + 3)][2 * j + 1][k] + 6 * A[1 + (4 * i + 3)][1 + (2 * j + 1)][k] + -9 * A[1 + (4 * i + 3)][1 + (2 * j + 1) + 1][k] + 2 * A[4 * i + 3][2 * j + 1][k + 1] + 4 * A[1 + (4 * i + 3) + 1][2 * j + 1][k + 1] + 5 * A[4 * i + 3][1 + (2 * j + 1)][k + 1] + 7 * A[1 + (4 * i + 3) + 1][1 + (2 * j + 1)][k + 1] + -8 * A[4 * i + 3][1 + (2 * j + 1) + 1][k + 1] + 10 * A[1 + (4 * i + 3) + 1][1 + (2 * j + 1) + 1][k + 1];
              }
            } else {
              if (k >= 1 && k < nk - 1) {
                B[1 + (4 * i + 3)][1 + (j + (nj - 2) / 2)][k] = 2 * A[4 * i + 3][j + (nj - 2) / 2][k - 1] + 4 * A[1 + (4 * i + 3) + 1][j + (nj - 2) / 2][k - 1] + 5 * A[4 * i + 3][j + (nj - 2) / 2][k - 1] + 7 * A[1 + (4 * i + 3) + 1][j + (nj - 2) / 2][k - 1] + -8 * A[4 * i + 3][j + (nj - 2) / 2][k - 1] + 10 * A[1 + (4 * i + 3) + 1][j + (nj - 2) / 2][k - 1] + -3 * A[1 + (4 * i + 3)][j + (nj - 2) / 2][k] + 6 * A[1 + (4 * i + 3)][1 + (j + (nj - 2) / 2)][k] + -9 * A[1 + (4 * i + 3)][1 + (j + (nj - 2) / 2) + 1][k] + 2 * A[4 * i + 3][j + (nj - 2) / 2][k + 1] + 4 * A[1 + (4 * i + 3) + 1][j + (nj - 2) / 2][k + 1] + 5 * A[4 * i + 3][1 + (j + (nj - 2) / 2)][k + 1] + 7 * A[1 + (4 * i + 3) + 1][1 + (j + (nj - 2) / 2)][k + 1] + -8 * A[4 * i + 3][1 + (j + (nj - 2) / 2) + 1][k + 1] + 10 * A[1 + (4 * i + 3) + 1][1 + (j + (nj - 2) / 2) + 1][k + 1];
              }
            }
          } else {
            if (j < (nj - 2) / 2) {
              if (k >= 1 && k < nk - 1) {
                B[1 + (i + 3 * ((ni - 2) / 4))][1 + 2 * j][k] = 2 * A[i + 3 * ((ni - 2) / 4)][2 * j][k - 1] + 4 * A[1 + (i + 3 * ((ni - 2) / 4)) + 1][2 * j][k - 1] + 5 * A[i + 3 * ((ni - 2) / 4)][2 * j][k - 1] + 7 * A[1 + (i + 3 * ((ni - 2) / 4)) + 1][2 * j][k - 1] + -8 * A[i + 3 * ((ni - 2) / 4)][2 * j][k - 1] + 10 * A[1 + (i + 3 * ((ni - 2) / 4)) + 1][2 * j][k - 1] + -3 * A[1 + (i + 3 * ((ni - 2) / 4))][2 * j][k] + 6 * A[1 + (i + 3 * ((ni - 2) / 4))][1 + 2 * j][k] + -9 * A[1 + (i + 3 * ((ni - 2) / 4))][1 + 2 * j + 1][k] + 2 * A[i + 3 * ((ni - 2) / 4)][2 * j][k + 1] + 4 * A[1 + (i + 3 * ((ni - 2) / 4)) + 1][2 * j][k + 1] + 5 * A[i + 3 * ((ni - 2) / 4)][1 + 2 * j][k + 1] + 7 * A[1 + (i + 3 * ((ni - 2) / 4)) + 1][1 + 2 * j][k + 1] + -8 * A[i + 3 * ((ni - 2) / 4)][1 + 2 * j + 1][k + 1] + 10 * A[1 + (i + 3 * ((ni - 2) / 4)) + 1][1 + 2 * j + 1][k + 1];
                B[1 + (i + 3 * ((ni - 2) / 4))][1 + (2 * j + 1)][k] = 2 * A[i + 3 * ((ni - 2) / 4)][2 * j + 1][k - 1] + 4 * A[1 + (i + 3 * ((ni - 2) / 4)) + 1][2 * j + 1][k - 1] + 5 * A[i + 3 * ((ni - 2) / 4)][2 * j + 1][k - 1] + 7 * A[1 + (i + 3 * ((ni - 2) / 4)) + 1][2 * j + 1][k - 1] + -8 * A[i + 3 * ((ni - 2) / 4)][2 * j + 1][k - 1] + 10 * A[1 + (i + 3 * ((ni - 2) / 4)) + 1][2 * j + 1][k - 1] + -3 * A[1 + (i + 3 * ((ni - 2) / 4))][2 * j + 1][k] + 6 * A[1 + (i + 3 * ((ni - 2) / 4))][1 + (2 * j + 1)][k] + -9 * A[1 + (i + 3 * ((ni - 2) / 4))][1 + (2 * j + 1) + 1][k] + 2 * A[i + 3 * ((ni - 2) / 4)][2 * j + 1][k + 1] + 4 * A[1 + (i + 3 * ((ni - 2) / 4)) + 1][2 * j + 1][k + 1] + 5 * A[i + 3 * ((ni - 2) / 4)][1 + (2 * j + 1)][k + 1] + 7 * A[1 + (i + 3 * ((ni - 2) / 4)) + 1][1 + (2 * j + 1)][k + 1] + -8 * A[i + 3 * ((ni - 2) / 4)][1 + (2 * j + 1) + 1][k + 1] + 10 * A[1 + (i + 3 * ((ni - 2) / 4)) + 1][1 + (2 * j + 1) + 1][k + 1];
              }
            } else {
              if (k >= 1 && k < nk - 1) {
                B[1 + (i + 3 * ((ni - 2) / 4))][1 + (j + (nj - 2) / 2)][k] = 2 * A[i + 3 * ((ni - 2) / 4)][j + (nj - 2) / 2][k - 1] + 4 * A[1 + (i + 3 * ((ni - 2) / 4)) + 1][j + (nj - 2) / 2][k - 1] + 5 * A[i + 3 * ((ni - 2) / 4)][j + (nj - 2) / 2][k - 1] + 7 * A[1 + (i + 3 * ((ni - 2) / 4)) + 1][j + (nj - 2) / 2][k - 1] + -8 * A[i + 3 * ((ni - 2) / 4)][j + (nj - 2) / 2][k - 1] + 10 * A[1 + (i + 3 * ((ni - 2) / 4)) + 1][j + (nj - 2) / 2][k - 1] + -3 * A[1 + (i + 3 * ((ni - 2) / 4))][j + (nj - 2) / 2][k] + 6 * A[1 + (i + 3 * ((ni - 2) / 4))][1 + (j + (nj - 2) / 2)][k] + -9 * A[1 + (i + 3 * ((ni - 2) / 4))][1 + (j + (nj - 2) / 2) + 1][k] + 2 * A[i + 3 * ((ni - 2) / 4)][j + (nj - 2) / 2][k + 1] + 4 * A[1 + (i + 3 * ((ni - 2) / 4)) + 1][j + (nj - 2) / 2][k + 1] + 5 * A[i + 3 * ((ni - 2) / 4)][1 + (j + (nj - 2) / 2)][k + 1] + 7 * A[1 + (i + 3 * ((ni - 2) / 4)) + 1][1 + (j + (nj - 2) / 2)][k + 1] + -8 * A[i + 3 * ((ni - 2) / 4)][1 + (j + (nj - 2) / 2) + 1][k + 1] + 10 * A[1 + (i + 3 * ((ni - 2) / 4)) + 1][1 + (j + (nj - 2) / 2) + 1][k + 1];
              }
            }
          }
        }
      }
    }
}

static void init(int ni, int nj, int nk, DATA_TYPE A[ni][nj][nk], DATA_TYPE B[ni][nj][nk])
{
    int i, j, k;

    for (i = 0; i < ni; i++) {
        for (j = 0; j < nj; j++) {
            for (k = 0; k < nk; k++) {
                A[i][j][k] = i % 12 + 2 * (j % 7) + 3 * (k % 13);
                B[i][j][k] = 0;
            }
        }
    }
}

/* The checksum weighs each element by its place, so that two swapped elements change it. */
static void print(int ni, int nj, int nk, DATA_TYPE B[ni][nj][nk])
{
    double checksum = 0;
    int i, j, k;

    for (i = 0; i < ni; i++) {
        for (j = 0; j < nj; j++) {
            for (k = 0; k < nk; k++) {
                checksum += (double)B[i][j][k] * (1 + (3 * i + 7 * j + 5 * k) % 11);
#ifdef DUMP
                printf("%.9g%c", (double)B[i][j][k], k + 1 < nk ? ' ' : '\n');
#endif
            }
        }
    }
    printf("3dconv ni=%d nj=%d nk=%d checksum=%.6e\n", ni, nj, nk, checksum);
    printf("corners %.6e %.6e %.6e %.6e middle %.6e\n", (double)B[0][0][0], (double)B[0][nj - 1][nk - 1],
           (double)B[ni - 1][0][0], (double)B[ni - 1][nj - 1][nk - 1], (double)B[ni / 2][nj / 2][nk / 2]);
}

int main(void)
{
    int ni = NI, nj = NJ, nk = NK;
    DATA_TYPE(*A)[nj][nk] = malloc(sizeof(DATA_TYPE) * ni * nj * nk);
    DATA_TYPE(*B)[nj][nk] = malloc(sizeof(DATA_TYPE) * ni * nj * nk);

    if (!A || !B) {
        fprintf(stderr, "3dconv: no memory for %d x %d x %d\n", ni, nj, nk);
        return 1;
    }
    init(ni, nj, nk, A, B);
#ifdef TIME
    clock_t start = clock();
#endif
#pragma hmpp conv3d callsite
    conv3d(ni, nj, nk, A, B);
#ifdef TIME
    fprintf(stderr, "%.6f s\n", (double)(clock() - start) / CLOCKS_PER_SEC);
#endif
    print(ni, nj, nk, B);
    free(A);
    free(B);
    return 0;
}
