/* looptune transform
   loop 2.1: fuse 3
   loop 3.1: fuse
   loop 3.1: parallel
   loop 2.1: unroll 4, jam
   loop 2.1: rfactor 256
   codelet: grid blocksize 32x8
   added up in another order than in the original: +:s (62:13)
   added up in another order than in the original: +:q (63:13)
   assumed: these do not overlap: A and q, A and s, p and q, p and s, q and r, q and s, r and s
*/
#define NX 4096
#define NY 4096
/* s = transpose(A) * r and q = A * p, with A of nx x ny elements, row-major, r and q of nx, p and s of ny.
 *
 * Source: BICG of PolyBench/GPU 1.0 (Grauer-Gray and Pouchet): its loop nest, its initial values, its 4096 x 4096
 * of float; tuned in Grauer-Gray et al., "Auto-tuning a High-Level Language Targeted to GPU Codes", InPar 2012.
 * The paper had split loop 2 by hand into a nest for s and one for q: `distribute` does it here.
 *
 *     gcc -O2 polybench/bicg.c -lm && ./a.out         prints the sizes, a checksum and three elements of s and of q
 *     -DDUMP                                          prints every element, one vector a line: s, q
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

#pragma hmpp bicg codelet, target=CUDA, args[q;s].io=out
static void bicg(int nx, int ny, DATA_TYPE A[nx][ny], DATA_TYPE p[ny], DATA_TYPE q[nx], DATA_TYPE r[nx],
                 DATA_TYPE s[ny])
{
    int i, j;

#pragma hmppcg grid blocksize 32x8
    for (i = 0; i < ny; i++) {
        s[i] = 0;
    }

    #pragma hmppcg noParallel
    #pragma looptune rfactor 256
    #pragma hmppcg grid blocksize 32x8
    for (int i = 0; i < nx / 4; i++) {
      q[4 * i] = 0;
      q[4 * i + 1] = 0;
      q[4 * i + 2] = 0;
      q[4 * i + 3] = 0;
      #pragma hmppcg parallel, reduce(+:q)
      for (int j = 0; j < ny; j++) {
        s[j] += r[4 * i] * A[4 * i][j];
        s[j] += r[4 * i + 1] * A[4 * i + 1][j];
        s[j] += r[4 * i + 2] * A[4 * i + 2][j];
        s[j] += r[4 * i + 3] * A[4 * i + 3][j];
        q[4 * i] += A[4 * i][j] * p[j];
        q[4 * i + 1] += A[4 * i + 1][j] * p[j];
        q[4 * i + 2] += A[4 * i + 2][j] * p[j];
        q[4 * i + 3] += A[4 * i + 3][j] * p[j];
      }
    }
    #pragma hmppcg noParallel
    #pragma looptune rfactor 256
    #pragma hmppcg grid blocksize 32x8
    for (int i = nx - nx % 4; i < nx; i++) {
      q[i] = 0;
      #pragma hmppcg parallel, reduce(+:q)
      for (int j = 0; j < ny; j++) {
        s[j] += r[i] * A[i][j];
        q[i] += A[i][j] * p[j];
      }
    }
}

static void init(int nx, int ny, DATA_TYPE A[nx][ny], DATA_TYPE p[ny], DATA_TYPE r[nx])
{
    int i, j;

    for (j = 0; j < ny; j++)
        p[j] = j * PI;
    for (i = 0; i < nx; i++) {
        r[i] = i * PI;
        for (j = 0; j < ny; j++)
            A[i][j] = ((DATA_TYPE)i * j) / nx;
    }
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

static void print(int nx, int ny, DATA_TYPE s[ny], DATA_TYPE q[nx])
{
    double sum = checksum(ny, s) + 2 * checksum(nx, q);

    printf("bicg nx=%d ny=%d checksum=%.6e\n", nx, ny, sum);
    printf("s %.6e %.6e middle %.6e\n", (double)s[0], (double)s[ny - 1], (double)s[ny / 2]);
    printf("q %.6e %.6e middle %.6e\n", (double)q[0], (double)q[nx - 1], (double)q[nx / 2]);
}

int main(void)
{
    int nx = NX, ny = NY;
    DATA_TYPE(*A)[ny] = malloc(sizeof(DATA_TYPE) * nx * ny);
    DATA_TYPE *p = malloc(sizeof(DATA_TYPE) * ny);
    DATA_TYPE *q = malloc(sizeof(DATA_TYPE) * nx);
    DATA_TYPE *r = malloc(sizeof(DATA_TYPE) * nx);
    DATA_TYPE *s = malloc(sizeof(DATA_TYPE) * ny);

    if (!A || !p || !q || !r || !s) {
        fprintf(stderr, "bicg: no memory for %d x %d\n", nx, ny);
        return 1;
    }
    init(nx, ny, A, p, r);
#ifdef TIME
    clock_t start = clock();
#endif
#pragma hmpp bicg callsite
    bicg(nx, ny, A, p, q, r, s);
#ifdef TIME
    fprintf(stderr, "%.6f s\n", (double)(clock() - start) / CLOCKS_PER_SEC);
#endif
    print(nx, ny, s, q);
    free(A);
    free(p);
    free(q);
    free(r);
    free(s);
    return 0;
}
