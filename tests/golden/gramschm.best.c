/* looptune transform
   loop 2: parallel
   loop 3: parallel, team
   loop 4: distribute
   loop 6: cut
   loop 4.1: gridify(i, j)
   nest 4.2: permute i, j
   loop 5: unroll 4
   loop 6: unroll 4, jam
   codelet: grid blocksize 32x32
   added up in another order than in the original: +:norm (61:13)
   added up in another order than in the original: +:R (70:17)
   assumed: these do not overlap: A and R, A and Q, R and Q
*/
#define N 2048
#define M 2048
/* A = Q * R by the modified Gram-Schmidt process: the n columns of A, of m >= n elements each, become the orthonormal
 * columns of Q, one after the other. A and Q of m x n, R of n x n elements, row-major.
 *
 *     R[k][k] = |a_k|    q_k = a_k / R[k][k]    R[k][j] = q_k . a_j    a_j = a_j - R[k][j] q_k  for j > k
 *
 * R is written on and above its diagonal. A is overwritten: what is left of a column is R[k][k] q_k.
 *
 * Source: GRAMSCHM of PolyBench/GPU 1.0 (Grauer-Gray and Pouchet): its loop nest, its 2048 x 2048 of float; tuned in
 * Grauer-Gray et al., "Auto-tuning a High-Level Language Targeted to GPU Codes", InPar 2012. Its initial values,
 * (i + 1) * (j + 1) / (m + 1), are a matrix of rank one, of which every column but the first leaves rounding errors;
 * these here are n on the diagonal and values below 1 beside it. Its R has m rows, of which n are used.
 *
 *     gcc -O2 polybench/gramschm.c -lm && ./a.out     prints the sizes, checksums and five elements of R
 *     -DDUMP                                          prints every element of A, of R and of Q, one row a line
 *     -DTIME                                          prints the seconds the codelet took, to stderr
 *     -DMINI_DATASET (32) SMALL (128) MEDIUM (512) PAPER (2048, the default) STANDARD (1024) LARGE (2000)
 *     EXTRALARGE (4000)
 *     -DN=.. -DM=.. -DDATA_TYPE=double                any sizes, either type
 */
#include <math.h>
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

#pragma hmpp gramschm codelet, target=CUDA, args[A;R].io=inout, args[Q].io=out
static void gramschm(int n, int m, DATA_TYPE A[m][n], DATA_TYPE R[n][n], DATA_TYPE Q[m][n])
{
    int i, j, k;
    DATA_TYPE norm;

    #pragma hmppcg noParallel
    #pragma hmppcg grid blocksize 32x32
    for (int k = 0; k < n; k++) {
      float norm;
      norm = 0;
      #pragma hmppcg parallel, reduce(+:norm)
      for (int i = 0; i < m; i++) {
        norm += A[i][k] * A[i][k];
      }
      R[k][k] = sqrt((double)norm);
      #pragma hmppcg parallel, team
      for (int i = 0; i < m; i++) {
        Q[i][k] = A[i][k] / R[k][k];
      }
      #pragma hmppcg gridify(i, j)
      for (int j = k + 1; j < n; j++) {
        R[k][j] = 0;
        #pragma hmppcg parallel, reduce(+:R)
        for (int i = 0; i < m / 4; i++) {
          R[k][j] += Q[4 * i][k] * A[4 * i][j];
          R[k][j] += Q[4 * i + 1][k] * A[4 * i + 1][j];
          R[k][j] += Q[4 * i + 2][k] * A[4 * i + 2][j];
          R[k][j] += Q[4 * i + 3][k] * A[4 * i + 3][j];
        }
        #pragma hmppcg parallel, reduce(+:R)
        for (int i = m - m % 4; i < m; i++) {
          R[k][j] += Q[i][k] * A[i][j];
        }
      }
      #pragma hmppcg parallel
      for (int i = 0; i < m / 4; i++) {
        #pragma hmppcg parallel
        for (int j = k + 1; j < n; j++) {
          A[4 * i][j] -= Q[4 * i][k] * R[k][j];
          A[4 * i + 1][j] -= Q[4 * i + 1][k] * R[k][j];
          A[4 * i + 2][j] -= Q[4 * i + 2][k] * R[k][j];
          A[4 * i + 3][j] -= Q[4 * i + 3][k] * R[k][j];
        }
      }
      #pragma hmppcg parallel
      for (int i = m - m % 4; i < m; i++) {
        #pragma hmppcg parallel
        for (int j = k + 1; j < n; j++) {
          A[i][j] -= Q[i][k] * R[k][j];
        }
      }
    }
}

static void init(int n, int m, DATA_TYPE A[m][n], DATA_TYPE R[n][n])
{
    int i, j;

    for (i = 0; i < m; i++)
        for (j = 0; j < n; j++)
            A[i][j] = (DATA_TYPE)((3 * i + 5 * j) % 7) / 7 + (i == j ? n : 0);
    for (i = 0; i < n; i++)
        for (j = 0; j < n; j++)
            R[i][j] = 0;
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

static void print(int n, int m, DATA_TYPE A[m][n], DATA_TYPE R[n][n], DATA_TYPE Q[m][n])
{
    double first = checksum(m, n, A), second = checksum(n, n, R), third = checksum(m, n, Q);

    printf("gramschm n=%d m=%d checksum=%.6e of A %.6e of Q %.6e\n", n, m, second, first, third);
    printf("corners %.6e %.6e %.6e %.6e middle %.6e\n", (double)R[0][0], (double)R[0][n - 1], (double)R[n - 1][0],
           (double)R[n - 1][n - 1], (double)R[n / 2][n / 2]);
}

int main(void)
{
    int n = N, m = M;
    DATA_TYPE(*A)[n] = malloc(sizeof(DATA_TYPE) * m * n);
    DATA_TYPE(*R)[n] = malloc(sizeof(DATA_TYPE) * n * n);
    DATA_TYPE(*Q)[n] = malloc(sizeof(DATA_TYPE) * m * n);

    if (!A || !R || !Q) {
        fprintf(stderr, "gramschm: no memory for %d x %d\n", n, m);
        return 1;
    }
    init(n, m, A, R);
#ifdef TIME
    clock_t start = clock();
#endif
#pragma hmpp gramschm callsite
    gramschm(n, m, A, R, Q);
#ifdef TIME
    fprintf(stderr, "%.6f s\n", (double)(clock() - start) / CLOCKS_PER_SEC);
#endif
    print(n, m, A, R, Q);
    free(A);
    free(R);
    free(Q);
    return 0;
}
