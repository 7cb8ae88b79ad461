/* C = alpha * op(A) * op(B) + beta * C, row-major: C of ni x nj, op(A) of ni x nk and op(B) of nk x nj elements.
 *
 * op(X) is X, or X transposed:      A is ni x nk, with -DTRANS_A nk x ni
 *                                   B is nk x nj, with -DTRANS_B nj x nk
 * With -DNO_ALPHA_BETA it is C = op(A) * op(B), and what C held does not count.
 *
 * The cases of GEMM that Jang tuned ("GPU Automatically Tuned Linear Algebra Software", 2010); the loops are ours.
 *
 *     gcc -O2 gatlas/product.c -lm && ./a.out         prints the case, the sizes, a checksum and five elements of C
 *     -DDUMP                                          prints every element, one row a line
 *     -DMINI_DATASET (32) SMALL (128) MEDIUM (512) STANDARD (1024, the default) LARGE (2000) EXTRALARGE (4000)
 *     -DNI=.. -DNJ=.. -DNK=.. -DDATA_TYPE=double      any sizes, either type
 */
#include <stdio.h>
#include <stdlib.h>

#if defined(MINI_DATASET)
#define SIZE 32
#elif defined(SMALL_DATASET)
#define SIZE 128
#elif defined(MEDIUM_DATASET)
#define SIZE 512
#elif defined(LARGE_DATASET)
#define SIZE 2000
#elif defined(EXTRALARGE_DATASET)
#define SIZE 4000
#else /* STANDARD_DATASET */
#define SIZE 1024
#endif

#ifndef NI
#define NI SIZE
#endif
#ifndef NJ
#define NJ SIZE
#endif
#ifndef NK
#define NK SIZE
#endif
#ifndef DATA_TYPE
#define DATA_TYPE float
#endif

#define ALPHA 1.5
#define BETA 0.5

#ifdef TRANS_A
#define A_ROWS nk
#define A_COLUMNS ni
#define A_AT(i, k) A[k][i]
#define A_CASE "t"
#else
#define A_ROWS ni
#define A_COLUMNS nk
#define A_AT(i, k) A[i][k]
#define A_CASE "n"
#endif
#ifdef TRANS_B
#define B_ROWS nj
#define B_COLUMNS nk
#define B_AT(k, j) B[j][k]
#define B_CASE "t"
#else
#define B_ROWS nk
#define B_COLUMNS nj
#define B_AT(k, j) B[k][j]
#define B_CASE "n"
#endif

/* A name for each case: in a database of results they are kernels of their own. */
#if defined(NO_ALPHA_BETA)
#if defined(TRANS_A) && defined(TRANS_B)
#define PRODUCT product_tt
#elif defined(TRANS_A)
#define PRODUCT product_tn
#elif defined(TRANS_B)
#define PRODUCT product_nt
#else
#define PRODUCT product_nn
#endif
#elif defined(TRANS_A) && defined(TRANS_B)
#define PRODUCT gemm_tt
#elif defined(TRANS_A)
#define PRODUCT gemm_tn
#elif defined(TRANS_B)
#define PRODUCT gemm_nt
#else
#define PRODUCT gemm_nn
#endif

#ifdef NO_ALPHA_BETA
#pragma hmpp product codelet, target=CUDA, args[C].io=out
static void PRODUCT(int ni, int nj, int nk, DATA_TYPE C[ni][nj], DATA_TYPE A[A_ROWS][A_COLUMNS],
                    DATA_TYPE B[B_ROWS][B_COLUMNS])
{
    int i, j, k;

    for (i = 0; i < ni; i++) {
        for (j = 0; j < nj; j++) {
            C[i][j] = 0;
            for (k = 0; k < nk; k++) {
                C[i][j] += A_AT(i, k) * B_AT(k, j);
            }
        }
    }
}
#else
#pragma hmpp product codelet, target=CUDA, args[C].io=inout
static void PRODUCT(int ni, int nj, int nk, DATA_TYPE alpha, DATA_TYPE beta, DATA_TYPE C[ni][nj],
                    DATA_TYPE A[A_ROWS][A_COLUMNS], DATA_TYPE B[B_ROWS][B_COLUMNS])
{
    int i, j, k;

    for (i = 0; i < ni; i++) {
        for (j = 0; j < nj; j++) {
            C[i][j] *= beta;
            for (k = 0; k < nk; k++) {
                C[i][j] += alpha * A_AT(i, k) * B_AT(k, j);
            }
        }
    }
}
#endif

static void init(int rows, int columns, DATA_TYPE X[rows][columns], int seed)
{
    int i, j;

    for (i = 0; i < rows; i++)
        for (j = 0; j < columns; j++)
            X[i][j] = (DATA_TYPE)((i * 7 + j * 3 + seed) % 11) / 11;
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
            printf("%.17g%c", (double)C[i][j], j + 1 < nj ? ' ' : '\n');
#endif
        }
    }
    printf("product " A_CASE B_CASE " ni=%d nj=%d nk=%d checksum=%.6e\n", ni, nj, nk, checksum);
    printf("corners %.6e %.6e %.6e %.6e middle %.6e\n", (double)C[0][0], (double)C[0][nj - 1], (double)C[ni - 1][0],
           (double)C[ni - 1][nj - 1], (double)C[ni / 2][nj / 2]);
}

int main(void)
{
    int ni = NI, nj = NJ, nk = NK;
    DATA_TYPE(*C)[nj] = malloc(sizeof(DATA_TYPE) * ni * nj);
    DATA_TYPE(*A)[A_COLUMNS] = malloc(sizeof(DATA_TYPE) * ni * nk);
    DATA_TYPE(*B)[B_COLUMNS] = malloc(sizeof(DATA_TYPE) * nk * nj);

    if (!C || !A || !B) {
        fprintf(stderr, "product: no memory for %d x %d x %d\n", ni, nj, nk);
        return 1;
    }
    init(ni, nj, C, 1);
    init(A_ROWS, A_COLUMNS, A, 2);
    init(B_ROWS, B_COLUMNS, B, 3);
#ifdef NO_ALPHA_BETA
#pragma hmpp product callsite
    PRODUCT(ni, nj, nk, C, A, B);
#else
    DATA_TYPE alpha = ALPHA, beta = BETA;
#pragma hmpp product callsite
    PRODUCT(ni, nj, nk, alpha, beta, C, A, B);
#endif
    print(ni, nj, nk, C);
    free(C);
    free(A);
    free(B);
    return 0;
}
