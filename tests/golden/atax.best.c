/* looptune transform
   loop 2.1: fuse
   loop 3: parallel
   loop 2.1: unroll 4, jam
   loop 2.1: rfactor 256
   codelet: grid blocksize 32x8
   codelet: launchbounds off
   added up in another order than in the original: +:y (65:13)
   added up in another order than in the original: +:tmp (61:13)
   assumed: these do not overlap: A and y, A and tmp, x and y, x and tmp, y and tmp
*/
#define NX 4096
#define NY 4096
/* tmp = A * x and y = transpose(A) * tmp, with A of nx x ny elements, row-major, x and y of ny and tmp of nx.
 *
 * Source: ATAX of PolyBench/GPU 1.0 (Grauer-Gray and Pouchet): its loop nest, its initial values, its 4096 x 4096
 * of float; tuned in Grauer-Gray et al., "Auto-tuning a High-Level Language Targeted to GPU Codes", InPar 2012.
 * The paper had split loop 2 by hand: `distribute` does it here, at the `cut`.
 *
 *     gcc -O2 polybench/atax.c -lm && ./a.out         prints the sizes, a checksum and three elements of y and of tmp
 *     -DDUMP                                          prints every element, one vector a line: y, tmp
 *     -DTIME                                          prints the seconds the codelet took, to stderr
 *     -DMINI_DATASET (32) SMALL (128) MEDIUM (1024) PAPER (4096, the default) STANDARD (4000) LARGE (8000)
 *     EXTRALARGE (16000)
 *     -DNX=.. -DNY=.. -DDATA_TYPE=double              any sizes, either type
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(MINI_DATASET)
#define SIZE 32
#elif defined(SMALL_DATASET)
#define SIZE 128
#elif defined(MEDIUM_DATASET)
#define SIZE 1024
#elif defined(STANDARD_DATASET)
#define SIZE 4000
#elif defined(LARGE_DATASET)
#define SIZE 8000
#elif defined(EXTRALARGE_DATASET)
#define SIZE 16000
#else /* PAPER_DATASET */
#define SIZE 4096
#endif

#ifndef NX
#endif
#ifndef NY
#endif
#ifndef DATA_TYPE
#define DATA_TYPE float
#endif

#define PI 3.14159265358979

#pragma hmpp atax codelet, target=CUDA, args[y;tmp].io=out
static void atax(int nx, int ny, DATA_TYPE A[nx][ny], DATA_TYPE x[ny], DATA_TYPE y[ny], DATA_TYPE tmp[nx])
{
    int i, j;

    #pragma hmppcg parallel
    #pragma hmppcg grid blocksize 32x8
    #pragma looptune launchbounds off
    for (int i = 0; i < ny; i++) {
      y[i] = 0;
    }

    #pragma hmppcg noParallel
    #pragma looptune rfactor 256
    #pragma hmppcg grid blocksize 32x8
    #pragma looptune launchbounds off
    for (int i = 0; i < nx / 4; i++) {
      tmp[4 * i] = 0;
      tmp[4 * i + 1] = 0;
      tmp[4 * i + 2] = 0;
      tmp[4 * i + 3] = 0;
      #pragma hmppcg parallel, reduce(+:tmp)
      for (int j = 0; j < ny; j++) {
        tmp[4 * i] += A[4 * i][j] * x[j];
        tmp[4 * i + 1] += A[4 * i + 1][j] * x[j];
        tmp[4 * i + 2] += A[4 * i + 2][j] * x[j];
        tmp[4 * i + 3] += A[4 * i + 3][j] * x[j];
      }
      #pragma hmppcg parallel
      for (int j = 0; j < ny; j++) {
        y[j] += A[4 * i][j] * tmp[4 * i];
        y[j] += A[4 * i + 1][j] * tmp[4 * i + 1];
        y[j] += A[4 * i + 2][j] * tmp[4 * i + 2];
        y[j] += A[4 * i + 3][j] * tmp[4 * i + 3];
      }
    }
    #pragma hmppcg noParallel
    #pragma looptune rfactor 256
    #pragma hmppcg grid blocksize 32x8
    #pragma looptune launchbounds off
    for (int i = nx - nx % 4; i < nx; i++) {
      tmp[i] = 0;
      #pragma hmppcg parallel, reduce(+:tmp)
      for (int j = 0; j < ny; j++) {
        tmp[i] += A[i][j] * x[j];
      }
      #pragma hmppcg parallel
      for (int j = 0; j < ny; j++) {
        y[j] += A[i][j] * tmp[i];
      }
    }
}

static void init(int nx, int ny, DATA_TYPE A[nx][ny], DATA_TYPE x[ny])
{
    int i, j;

    for (j = 0; j < ny; j++)
        x[j] = j * PI;
    for (i = 0; i < nx; i++)
        for (j = 0; j < ny; j++)
            A[i][j] = ((DATA_TYPE)i * j) / nx;
}

/* Weighs each element by its place, so that two swapped elements change the sum. */
static double checksum(int n, DATA_TYPE x[n])
{
    double sum = 0;
    int i;

    for (i = 0; i < n; i++) {
        sum += (double)x[i] * (1 + (3 * i) % 11);
#ifdef DUMP
        printf("%.9g%c", (double)x[i], i + 1 < n ? ' ' : '\n');
#endif
    }
    return sum;
}

static void print(int nx, int ny, DATA_TYPE y[ny], DATA_TYPE tmp[nx])
{
    double sum = checksum(ny, y) + 2 * checksum(nx, tmp);

    printf("atax nx=%d ny=%d checksum=%.6e\n", nx, ny, sum);
    printf("y %.6e %.6e middle %.6e\n", (double)y[0], (double)y[ny - 1], (double)y[ny / 2]);
    printf("tmp %.6e %.6e middle %.6e\n", (double)tmp[0], (double)tmp[nx - 1], (double)tmp[nx / 2]);
}

int main(void)
{
    int nx = NX, ny = NY;
    DATA_TYPE(*A)[ny] = malloc(sizeof(DATA_TYPE) * nx * ny);
    DATA_TYPE *x = malloc(sizeof(DATA_TYPE) * ny);
    DATA_TYPE *y = malloc(sizeof(DATA_TYPE) * ny);
    DATA_TYPE *tmp = malloc(sizeof(DATA_TYPE) * nx);

    if (!A || !x || !y || !tmp) {
        fprintf(stderr, "atax: no memory for %d x %d\n", nx, ny);
        return 1;
    }
    init(nx, ny, A, x);
#ifdef TIME
    clock_t start = clock();
#endif
#pragma hmpp atax callsite
    atax(nx, ny, A, x, y, tmp);
#ifdef TIME
    fprintf(stderr, "%.6f s\n", (double)(clock() - start) / CLOCKS_PER_SEC);
#endif
    print(nx, ny, y, tmp);
    free(A);
    free(x);
    free(y);
    free(tmp);
    return 0;
}
