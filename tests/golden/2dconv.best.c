/* looptune transform
   loop j: vectorize 4, guarded
   codelet: grid blocksize 32x4
   assumed: these do not overlap: A and B
*/
#define NI 4096
#define NJ 4096
/* A 3 x 3 convolution of an image A of ni x nj elements, row-major, into B; the border of B is not written:
 *
 *     B[i][j] = sum over a, b in -1, 0, 1 of c[a][b] * A[i+a][j+b],      0 < i < ni - 1, 0 < j < nj - 1
 *
 *     c =  0.2  0.5 -0.8      the row is a, the column b
 *         -0.3  0.6 -0.9
 *          0.4  0.7  0.1
 *
 * Source: 2DCONV of PolyBench/GPU 1.0 (Grauer-Gray and Pouchet): its loop nest, its coefficients, its 4096 x 4096 of
 * float; tuned in Grauer-Gray et al., "Auto-tuning a High-Level Language Targeted to GPU Codes", InPar 2012.
 * PolyBench/GPU fills A with rand(); here a formula, so that every C library gives the same image.
 *
 *     gcc -O2 polybench/2dconv.c -lm && ./a.out       prints the sizes, a checksum and five elements of B
 *     -DDUMP                                          prints every element, one row a line
 *     -DTIME                                          prints the seconds the codelet took, to stderr
 *     -DMINI_DATASET (32) SMALL (128) MEDIUM (512) PAPER (4096, the default) STANDARD (4096) LARGE (8192)
 *     EXTRALARGE (16384)
 *     -DNI=.. -DNJ=.. -DDATA_TYPE=double              any sizes, either type
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
#define SIZE 8192
#elif defined(EXTRALARGE_DATASET)
#define SIZE 16384
#else /* PAPER_DATASET, STANDARD_DATASET */
#define SIZE 4096
#endif

#ifndef NI
#endif
#ifndef NJ
#endif
#ifndef DATA_TYPE
#define DATA_TYPE float
#endif

#pragma hmpp conv2d codelet, target=CUDA, args[A].io=in, args[B].io=inout
static void conv2d(int ni, int nj, DATA_TYPE A[ni][nj], DATA_TYPE B[ni][nj])
{
    const DATA_TYPE c11 = (DATA_TYPE)0.2, c21 = (DATA_TYPE)0.5, c31 = (DATA_TYPE)-0.8;
    const DATA_TYPE c12 = (DATA_TYPE)-0.3, c22 = (DATA_TYPE)0.6, c32 = (DATA_TYPE)-0.9;
    const DATA_TYPE c13 = (DATA_TYPE)0.4, c23 = (DATA_TYPE)0.7, c33 = (DATA_TYPE)0.1;
    int i, j;

    #pragma hmppcg parallel
    #pragma hmppcg grid blocksize 32x4
    for (int i = 1; i < ni - 1; i++) {
      #pragma hmppcg parallel
      #pragma looptune vectorize
      for (int j = 0; j < (nj - 2) / 4 + (nj - 2) % 4; j++) {
        if (j < (nj - 2) / 4) {
          B[i][1 + 4 * j] = (float)0.2 * A[i - 1][4 * j] + (float)-0.3 * A[i][4 * j] + (float)0.4 * A[i + 1][4 * j] + (float)0.5 * A[i - 1][1 + 4 * j] + (float)0.6 * A[i][1 + 4 * j] + (float)0.7 * A[i + 1][1 + 4 * j] + (float)-0.8 * A[i - 1][1 + 4 * j + 1] + (float)-0.9 * A[i][1 + 4 * j + 1] + (float)0.1 * A[i + 1][1 + 4 * j + 1];
          B[i][1 + (4 * j + 1)] = (float)0.2 * A[i - 1][4 * j + 1] + (float)-0.3 * A[i][4 * j + 1] + (float)0.4 * A[i + 1][4 * j + 1] + (float)0.5 * A[i - 1][1 + (4 * j + 1)] + (float)0.6 * A[i][1 + (4 * j + 1)] + (float)0.7 * A[i + 1][1 + (4 * j + 1)] + (float)-0.8 * A[i - 1][1 + (4 * j + 1) + 1] + (float)-0.9 * A[i][1 + (4 * j + 1) + 1] + (float)0.1 * A[i + 1][1 + (4 * j + 1) + 1];
          B[i][1 + (4 * j + 2)] = (float)0.2 * A[i - 1][4 * j + 2] + (float)-0.3 * A[i][4 * j + 2] + (float)0.4 * A[i + 1][4 * j + 2] + (float)0.5 * A[i - 1][1 + (4 * j + 2)] + (float)0.6 * A[i][1 + (4 * j + 2)] + (float)0.7 * A[i + 1][1 + (4 * j + 2)] + (float)-0.8 * A[i - 1][1 + (4 * j + 2) + 1] + (float)-0.9 * A[i][1 + (4 * j + 2) + 1] + (float)0.1 * A[i + 1][1 + (4 * j + 2) + 1];
          B[i][1 + (4 * j + 3)] = (float)0.2 * A[i - 1][4 * j + 3] + (float)-0.3 * A[i][4 * j + 3] + (float)0.4 * A[i + 1][4 * j + 3] + (float)0.5 * A[i - 1][1 + (4 * j + 3)] + (float)0.6 * A[i][1 + (4 * j + 3)] + (float)0.7 * A[i + 1][1 + (4 * j + 3)] + (float)-0.8 * A[i - 1][1 + (4 * j + 3) + 1] + (float)-0.9 * A[i][1 + (4 * j + 3) + 1] + (float)0.1 * A[i + 1][1 + (4 * j + 3) + 1];
        } else {
          B[i][1 + (j + 3 * ((nj - 2) / 4))] = (float)0.2 * A[i - 1][j + 3 * ((nj - 2) / 4)] + (float)-0.3 * A[i][j + 3 * ((nj - 2) / 4)] + (float)0.4 * A[i + 1][j + 3 * ((nj - 2) / 4)] + (float)0.5 * A[i - 1][1 + (j + 3 * ((nj - 2) / 4))] + (float)0.6 * A[i][1 + (j + 3 * ((nj - 2) / 4))] + (float)0.7 * A[i + 1][1 + (j + 3 * ((nj - 2) / 4))] + (float)-0.8 * A[i - 1][1 + (j + 3 * ((nj - 2) / 4)) + 1] + (float)-0.9 * A[i][1 + (j + 3 * ((nj - 2) / 4)) + 1] + (float)0.1 * A[i + 1][1 + (j + 3 * ((nj - 2) / 4)) + 1];
        }
      }
    }
}

static void init(int ni, int nj, DATA_TYPE A[ni][nj], DATA_TYPE B[ni][nj])
{
    int i, j;

    for (i = 0; i < ni; i++) {
        for (j = 0; j < nj; j++) {
            A[i][j] = (DATA_TYPE)((7 * i + 13 * j + i * (j % 5)) % 101) / 101;
            B[i][j] = 0;
        }
    }
}

/* The checksum weighs each element by its place, so that two swapped elements change it. */
static void print(int ni, int nj, DATA_TYPE B[ni][nj])
{
    double checksum = 0;
    int i, j;

    for (i = 0; i < ni; i++) {
        for (j = 0; j < nj; j++) {
            checksum += (double)B[i][j] * (1 + (3 * i + 7 * j) % 11);
#ifdef DUMP
            printf("%.9g%c", (double)B[i][j], j + 1 < nj ? ' ' : '\n');
#endif
        }
    }
    printf("2dconv ni=%d nj=%d checksum=%.6e\n", ni, nj, checksum);
    printf("corners %.6e %.6e %.6e %.6e middle %.6e\n", (double)B[0][0], (double)B[0][nj - 1], (double)B[ni - 1][0],
           (double)B[ni - 1][nj - 1], (double)B[ni / 2][nj / 2]);
}

int main(void)
{
    int ni = NI, nj = NJ;
    DATA_TYPE(*A)[nj] = malloc(sizeof(DATA_TYPE) * ni * nj);
    DATA_TYPE(*B)[nj] = malloc(sizeof(DATA_TYPE) * ni * nj);

    if (!A || !B) {
        fprintf(stderr, "2dconv: no memory for %d x %d\n", ni, nj);
        return 1;
    }
    init(ni, nj, A, B);
#ifdef TIME
    clock_t start = clock();
#endif
#pragma hmpp conv2d callsite
    conv2d(ni, nj, A, B);
#ifdef TIME
    fprintf(stderr, "%.6f s\n", (double)(clock() - start) / CLOCKS_PER_SEC);
#endif
    print(ni, nj, B);
    free(A);
    free(B);
    return 0;
}
