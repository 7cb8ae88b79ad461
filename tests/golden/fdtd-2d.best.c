/* looptune transform
   loop 1: overlap 8, rows 8
   codelet: grid blocksize 64x8
   codelet: launchbounds off
*/
#define TMAX 500
#define NX 2048
#define NY 2048
/* Maxwell's equations in two dimensions by finite differences in the time domain: the electric field ex, ey and the
 * magnetic field hz, staggered, through tmax time steps with a source fict on the edge i = 0. In each step t
 *
 *     ey[0][j]  = fict[t]
 *     ey[i][j] -= 0.5 * (hz[i][j] - hz[i-1][j])                                    0 < i < nx
 *     ex[i][j] -= 0.5 * (hz[i][j] - hz[i][j-1])                                    0 < j < ny
 *     hz[i][j] -= 0.7 * (ex[i][j+1] - ex[i][j] + ey[i+1][j] - ey[i][j])
 *
 * with ex of nx x (ny+1), ey of (nx+1) x ny and hz of nx x ny elements, row-major. The steps are stable: nothing grows.
 *
 * Source: FDTD-2D of PolyBench/GPU 1.0 (Grauer-Gray and Pouchet): its loop nests, its initial values, its 500 steps of
 * 2048 x 2048 of float; tuned in Grauer-Gray et al., "Auto-tuning a High-Level Language Targeted to GPU Codes",
 * InPar 2012. PolyBench/GPU leaves the last column of ex and the last row of ey uninitialised; here they continue the
 * formulas of the others.
 *
 *     gcc -O2 polybench/fdtd-2d.c -lm && ./a.out      prints the sizes, a checksum of all fields and five elements of hz
 *     -DDUMP                                          prints every element of ex, ey and hz, one row a line
 *     -DTIME                                          prints the seconds the codelet took, to stderr
 *     -DMINI_DATASET (32, 5 steps) SMALL (128, 20) MEDIUM (512, 100) PAPER (2048, 500, the default)
 *     STANDARD (2048, 500) LARGE (4096, 1000) EXTRALARGE (8192, 2000)
 *     -DTMAX=.. -DNX=.. -DNY=.. -DDATA_TYPE=double    any sizes, either type
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(MINI_DATASET)
#define SIZE 32
#define STEPS 5
#elif defined(SMALL_DATASET)
#define SIZE 128
#define STEPS 20
#elif defined(MEDIUM_DATASET)
#define SIZE 512
#define STEPS 100
#elif defined(LARGE_DATASET)
#define SIZE 4096
#define STEPS 1000
#elif defined(EXTRALARGE_DATASET)
#define SIZE 8192
#define STEPS 2000
#else /* PAPER_DATASET, STANDARD_DATASET */
#define SIZE 2048
#define STEPS 500
#endif

#ifndef TMAX
#endif
#ifndef NX
#endif
#ifndef NY
#endif
#ifndef DATA_TYPE
#define DATA_TYPE float
#endif

#pragma hmpp fdtd_2d codelet, target=CUDA, args[fict].io=in, args[ex;ey;hz].io=inout
static void fdtd_2d(int tmax, int nx, int ny, DATA_TYPE fict[tmax], DATA_TYPE ex[nx][ny + 1], DATA_TYPE ey[nx + 1][ny],
                    DATA_TYPE hz[nx][ny])
{
    const DATA_TYPE half = (DATA_TYPE)0.5, rate = (DATA_TYPE)0.7;
    int t, i, j;

    #pragma hmppcg noParallel
    #pragma looptune overlap 8, rows 8
    #pragma hmppcg grid blocksize 64x8
    #pragma looptune launchbounds off
    for (int t = 0; t < tmax; t++) {
      #pragma hmppcg parallel
      for (int j = 0; j < ny; j++) {
        ey[0][j] = fict[t];
      }
      #pragma hmppcg parallel
      for (int i = 1; i < nx; i++) {
        #pragma hmppcg parallel
        for (int j = 0; j < ny; j++) {
          ey[i][j] -= (float)0.5 * (hz[i][j] - hz[i - 1][j]);
        }
      }
      #pragma hmppcg parallel
      for (int i = 0; i < nx; i++) {
        #pragma hmppcg parallel
        for (int j = 1; j < ny; j++) {
          ex[i][j] -= (float)0.5 * (hz[i][j] - hz[i][j - 1]);
        }
      }
      #pragma hmppcg parallel
      for (int i = 0; i < nx; i++) {
        #pragma hmppcg parallel
        for (int j = 0; j < ny; j++) {
          hz[i][j] -= (float)0.7 * (ex[i][j + 1] - ex[i][j] + ey[i + 1][j] - ey[i][j]);
        }
      }
    }
}

static void init(int tmax, int nx, int ny, DATA_TYPE fict[tmax], DATA_TYPE ex[nx][ny + 1], DATA_TYPE ey[nx + 1][ny],
                 DATA_TYPE hz[nx][ny])
{
    int i, j;

    for (i = 0; i < tmax; i++)
        fict[i] = (DATA_TYPE)i;
    for (i = 0; i < nx; i++)
        for (j = 0; j < ny + 1; j++)
            ex[i][j] = ((DATA_TYPE)i * (j + 1) + 1) / nx;
    for (i = 0; i < nx + 1; i++)
        for (j = 0; j < ny; j++)
            ey[i][j] = ((DATA_TYPE)(i - 1) * (j + 2) + 2) / nx;
    for (i = 0; i < nx; i++)
        for (j = 0; j < ny; j++)
            hz[i][j] = ((DATA_TYPE)(i - 9) * (j + 4) + 3) / nx;
}

/* The checksum weighs each element by its place, so that two swapped elements change it. */
static double checksum(int rows, int cols, DATA_TYPE field[rows][cols])
{
    double sum = 0;
    int i, j;

    for (i = 0; i < rows; i++) {
        for (j = 0; j < cols; j++) {
            sum += (double)field[i][j] * (1 + (3 * i + 7 * j) % 11);
#ifdef DUMP
            printf("%.9g%c", (double)field[i][j], j + 1 < cols ? ' ' : '\n');
#endif
        }
    }
    return sum;
}

int main(void)
{
    int tmax = TMAX, nx = NX, ny = NY;
    DATA_TYPE *fict = malloc(sizeof(DATA_TYPE) * tmax);
    DATA_TYPE(*ex)[ny + 1] = malloc(sizeof(DATA_TYPE) * nx * (ny + 1));
    DATA_TYPE(*ey)[ny] = malloc(sizeof(DATA_TYPE) * (nx + 1) * ny);
    DATA_TYPE(*hz)[ny] = malloc(sizeof(DATA_TYPE) * nx * ny);
    double sum;

    if (!fict || !ex || !ey || !hz) {
        fprintf(stderr, "fdtd-2d: no memory for %d x %d\n", nx, ny);
        return 1;
    }
    init(tmax, nx, ny, fict, ex, ey, hz);
#ifdef TIME
    clock_t start = clock();
#endif
#pragma hmpp fdtd_2d callsite
    fdtd_2d(tmax, nx, ny, fict, ex, ey, hz);
#ifdef TIME
    fprintf(stderr, "%.6f s\n", (double)(clock() - start) / CLOCKS_PER_SEC);
#endif
    sum = checksum(nx, ny + 1, ex);
    sum += checksum(nx + 1, ny, ey);
    sum += checksum(nx, ny, hz);
    printf("fdtd-2d tmax=%d nx=%d ny=%d checksum=%.6e\n", tmax, nx, ny, sum);
    printf("corners %.6e %.6e %.6e %.6e middle %.6e\n", (double)hz[0][0], (double)hz[0][ny - 1], (double)hz[nx - 1][0],
           (double)hz[nx - 1][ny - 1], (double)hz[nx / 2][ny / 2]);
    free(fict);
    free(ex);
    free(ey);
    free(hz);
    return 0;
}
