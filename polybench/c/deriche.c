/* Deriche's recursive filter over a picture of w x h elements: along each row forwards and backwards, the two results
 * added, and then the same along each column.
 *
 * Source: deriche of PolyBench/C 4.2.1; program.h says how it is compiled and what it prints. Its type is float.
 */
#ifndef DATA_TYPE
#define DATA_TYPE float
#endif
#include "program.h"

#ifndef W
#define W SIZE(64, 192, 720, 4096, 7680)
#endif
#ifndef H
#define H SIZE(64, 128, 480, 2160, 4320)
#endif

#pragma hmpp deriche codelet, target=CUDA
static void deriche(int w, int h, DATA_TYPE alpha, DATA_TYPE imgIn[w][h], DATA_TYPE imgOut[w][h], DATA_TYPE yy1[w][h],
                    DATA_TYPE yy2[w][h])
{
    int i, j;
    DATA_TYPE xm1, tm1, ym1, ym2, xp1, xp2, tp1, tp2, yp1, yp2;
    DATA_TYPE k, a1, a2, a3, a4, a5, a6, a7, a8, b1, b2, c1, c2;

    k = (1 - exp(-alpha)) * (1 - exp(-alpha)) / (1 + 2 * alpha * exp(-alpha) - exp(2 * alpha));
    a1 = a5 = k;
    a2 = a6 = k * exp(-alpha) * (alpha - 1);
    a3 = a7 = k * exp(-alpha) * (alpha + 1);
    a4 = a8 = -k * exp(-2 * alpha);
    b1 = pow(2, -alpha);
    b2 = -exp(-2 * alpha);
    c1 = c2 = 1;

    for (i = 0; i < w; i++) {
        ym1 = 0;
        ym2 = 0;
        xm1 = 0;
        for (j = 0; j < h; j++) {
            yy1[i][j] = a1 * imgIn[i][j] + a2 * xm1 + b1 * ym1 + b2 * ym2;
            xm1 = imgIn[i][j];
            ym2 = ym1;
            ym1 = yy1[i][j];
        }
    }

    for (i = 0; i < w; i++) {
        yp1 = 0;
        yp2 = 0;
        xp1 = 0;
        xp2 = 0;
        for (j = h - 1; j >= 0; j--) {
            yy2[i][j] = a3 * xp1 + a4 * xp2 + b1 * yp1 + b2 * yp2;
            xp2 = xp1;
            xp1 = imgIn[i][j];
            yp2 = yp1;
            yp1 = yy2[i][j];
        }
    }

    for (i = 0; i < w; i++)
        for (j = 0; j < h; j++)
            imgOut[i][j] = c1 * (yy1[i][j] + yy2[i][j]);

    for (j = 0; j < h; j++) {
        tm1 = 0;
        ym1 = 0;
        ym2 = 0;
        for (i = 0; i < w; i++) {
            yy1[i][j] = a5 * imgOut[i][j] + a6 * tm1 + b1 * ym1 + b2 * ym2;
            tm1 = imgOut[i][j];
            ym2 = ym1;
            ym1 = yy1[i][j];
        }
    }

    for (j = 0; j < h; j++) {
        tp1 = 0;
        tp2 = 0;
        yp1 = 0;
        yp2 = 0;
        for (i = w - 1; i >= 0; i--) {
            yy2[i][j] = a7 * tp1 + a8 * tp2 + b1 * yp1 + b2 * yp2;
            tp2 = tp1;
            tp1 = imgOut[i][j];
            yp2 = yp1;
            yp1 = yy2[i][j];
        }
    }

    for (i = 0; i < w; i++)
        for (j = 0; j < h; j++)
            imgOut[i][j] = c2 * (yy1[i][j] + yy2[i][j]);
}

static void init(int w, int h, DATA_TYPE imgIn[w][h])
{
    int i, j;

    for (i = 0; i < w; i++)
        for (j = 0; j < h; j++)
            imgIn[i][j] = REAL((313 * i + 991 * j) % 65536) / 65535;
}

int main(void)
{
    int w = W, h = H;
    DATA_TYPE alpha = REAL(0.25);
    DATA_TYPE(*imgIn)[h] = allocate(w, sizeof *imgIn);
    DATA_TYPE(*imgOut)[h] = allocate(w, sizeof *imgOut);
    DATA_TYPE(*yy1)[h] = allocate(w, sizeof *yy1);
    DATA_TYPE(*yy2)[h] = allocate(w, sizeof *yy2);

    init(w, h, imgIn);
    start_clock();
    deriche(w, h, alpha, imgIn, imgOut, yy1, yy2);
    stop_clock();
    report("imgOut", w, h, *imgOut);
    return 0;
}
