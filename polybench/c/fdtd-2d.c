/* tmax time steps of the finite-difference time-domain method in two dimensions: the fields ex, ey and hz of nx x ny
 * elements, and what enters at the first row of ey in each step.
 *
 * Source: fdtd-2d of PolyBench/C 4.2.1; program.h says how it is compiled and what it prints.
 */
#include "program.h"

#ifndef TMAX
#define TMAX SIZE(20, 40, 100, 500, 1000)
#endif
#ifndef NX
#define NX SIZE(20, 60, 200, 1000, 2000)
#endif
#ifndef NY
#define NY SIZE(30, 80, 240, 1200, 2600)
#endif

#pragma hmpp fdtd_2d codelet, target=CUDA
static void fdtd_2d(int tmax, int nx, int ny, DATA_TYPE ex[nx][ny], DATA_TYPE ey[nx][ny], DATA_TYPE hz[nx][ny],
                    DATA_TYPE fict[tmax])
{
    int t, i, j;

    for (t = 0; t < tmax; t++) {
        for (j = 0; j < ny; j++)
            ey[0][j] = fict[t];
        for (i = 1; i < nx; i++)
            for (j = 0; j < ny; j++)
                ey[i][j] = ey[i][j] - REAL(0.5) * (hz[i][j] - hz[i - 1][j]);
        for (i = 0; i < nx; i++)
            for (j = 1; j < ny; j++)
                ex[i][j] = ex[i][j] - REAL(0.5) * (hz[i][j] - hz[i][j - 1]);
        for (i = 0; i < nx - 1; i++)
            for (j = 0; j < ny - 1; j++)
                hz[i][j] = hz[i][j] - REAL(0.7) * (ex[i][j + 1] - ex[i][j] + ey[i + 1][j] - ey[i][j]);
    }
}

static void init(int tmax, int nx, int ny, DATA_TYPE ex[nx][ny], DATA_TYPE ey[nx][ny], DATA_TYPE hz[nx][ny],
                 DATA_TYPE fict[tmax])
{
    int i, j;

    for (i = 0; i < tmax; i++)
        fict[i] = i;
    for (i = 0; i < nx; i++) {
        for (j = 0; j < ny; j++) {
            ex[i][j] = REAL(i) * (j + 1) / nx;
            ey[i][j] = REAL(i) * (j + 2) / ny;
            hz[i][j] = REAL(i) * (j + 3) / nx;
        }
    }
}

int main(void)
{
    int tmax = TMAX, nx = NX, ny = NY;
    DATA_TYPE(*ex)[ny] = allocate(nx, sizeof *ex);
    DATA_TYPE(*ey)[ny] = allocate(nx, sizeof *ey);
    DATA_TYPE(*hz)[ny] = allocate(nx, sizeof *hz);
    DATA_TYPE *fict = allocate(tmax, sizeof *fict);

    init(tmax, nx, ny, ex, ey, hz, fict);
    start_clock();
    fdtd_2d(tmax, nx, ny, ex, ey, hz, fict);
    stop_clock();
    report("ex", nx, ny, *ex);
    report("ey", nx, ny, *ey);
    report("hz", nx, ny, *hz);
    return 0;
}
