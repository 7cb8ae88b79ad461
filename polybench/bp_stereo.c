/* The disparities of a stereo pair by loopy belief propagation: how far each pixel of the left image lies to the left in
 * the right one, as the labels of a grid of pixels that cost least,
 *
 *     sum over pixels p of D_p(d_p)  +  sum over neighbours p, q of V(d_p, d_q)
 *     D_p(d) = 0.07 * min(|left[y][x] - right[y][x-d]|, 15),   V(d, e) = min(|d - e|, 1.7)
 *
 * Pixel p tells each of its four neighbours q what its own disparity would cost it, at the least:
 *
 *     m_pq(e) = min over d of ( V(d, e) + D_p(d) + sum of m_rp(d) over the other three neighbours r )
 *
 * less its smallest value. V grows by steps of one, so that a pass over d upwards and one downwards find all minima.
 * The pixels are coloured like a checkerboard: one iteration has all those of one colour send, who only read what the
 * other colour has sent. The outermost rows and columns send nothing, and have disparity 0.
 *
 * Of an array [2][..][height][(width+1)/2] the first index is the colour c = (x + y) % 2, the last is x / 2: pixels of one
 * colour lie side by side, x = 2 * k + (y + c) % 2. Costs are whole numbers, in units of 1/1024, of differences in units
 * of 1/64 of a grey level: float adds them exactly in any order, so that every version of the program finds the same
 * disparities.
 *
 * Sources: the algorithm, its checkerboard and its constants are of Felzenszwalb and Huttenlocher, "Efficient Belief
 * Propagation for Early Vision", International Journal of Computer Vision 70 (2006), here with one level. A program of
 * this kind with 15 disparities and 250 iterations was tuned in Grauer-Gray et al., "Auto-tuning a High-Level Language
 * Targeted to GPU Codes", InPar 2012, section 5.7.
 *
 *     gcc -O2 polybench/bp_stereo.c && ./a.out        prints the sizes, a checksum of all disparities and five of them
 *     -DDUMP                                          prints every disparity, one row a line
 *     -DTIME                                          prints the seconds the codelet took, to stderr
 *     -DMINI_DATASET (24 x 32, 5 iterations) SMALL (72 x 96, 20) MEDIUM (144 x 192, 100)
 *     PAPER, STANDARD (288 x 384, 250, the default) LARGE (576 x 768, 500) EXTRALARGE (1152 x 1536, 1000)
 *     -DHEIGHT=.. -DWIDTH=.. -DITERATIONS=.. -DDATA_TYPE=double    any sizes, either type
 *     -DDISPARITIES=..                                             instead of 15
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(MINI_DATASET)
#define SIZE 8
#define STEPS 5
#elif defined(SMALL_DATASET)
#define SIZE 24
#define STEPS 20
#elif defined(MEDIUM_DATASET)
#define SIZE 48
#define STEPS 100
#elif defined(LARGE_DATASET)
#define SIZE 192
#define STEPS 500
#elif defined(EXTRALARGE_DATASET)
#define SIZE 384
#define STEPS 1000
#else /* PAPER_DATASET, STANDARD_DATASET */
#define SIZE 96
#define STEPS 250
#endif

#ifndef HEIGHT
#define HEIGHT (3 * SIZE)
#endif
#ifndef WIDTH
#define WIDTH (4 * SIZE)
#endif
#ifndef ITERATIONS
#define ITERATIONS STEPS
#endif
#ifndef DISPARITIES
#define DISPARITIES 15
#endif
#ifndef DATA_TYPE
#define DATA_TYPE float
#endif

#define DIFFERENCE 15
#define WEIGHED(units) ((112 * (units) + 50) / 100) /* 0.07 * 1024 / 64 of them, to the nearest */
#define STEP 1024
#define JUMP 1741 /* 1.7 * 1024 */

#define UP 0
#define DOWN 1
#define LEFT 2
#define RIGHT 3

#pragma hmpp bp_stereo codelet, target=CUDA, args[left;right].io=in, args[cost;sent;disparity].io=out
static void bp_stereo(int height, int width, int iterations, DATA_TYPE left[height][width],
                      DATA_TYPE right[height][width], DATA_TYPE cost[2][DISPARITIES][height][(width + 1) / 2],
                      DATA_TYPE sent[4][2][DISPARITIES][height][(width + 1) / 2], int disparity[height][width])
{
    const DATA_TYPE most = (DATA_TYPE)DIFFERENCE, step = (DATA_TYPE)STEP, jump = (DATA_TYPE)JUMP;

#pragma hmppcg grid blocksize 32x8
    for (int y = 0; y < height; y++) {
        for (int k = 0; k < (width + 1) / 2; k++) {
            for (int c = 0; c < 2; c++) {
                const int x = 2 * k + (y + c) % 2;
                for (int d = 0; d < DISPARITIES; d++) {
                    DATA_TYPE apart = most;
                    if (d <= x && x < width) {
                        apart = left[y][x] - right[y][x - d];
                        apart = apart < 0 ? -apart : apart;
                        apart = apart < most ? apart : most;
                    }
                    const int units = (int)(64 * apart + (DATA_TYPE)0.5);
                    cost[c][d][y][k] = (DATA_TYPE)WEIGHED(units);
                    for (int n = 0; n < 4; n++) {
                        sent[n][c][d][y][k] = 0;
                    }
                }
            }
        }
    }

    for (int t = 0; t < iterations; t++) {
#pragma hmppcg grid blocksize 32x8
        for (int y = 1; y < height - 1; y++) {
            for (int k = 0; k < (width + 1) / 2; k++) {
                const int odd = (y + t) % 2, x = 2 * k + odd;
                if (x > 0 && x < width - 1) {
                    DATA_TYPE from[4][DISPARITIES], all[DISPARITIES];
                    for (int d = 0; d < DISPARITIES; d++) {
                        from[UP][d] = sent[DOWN][1 - t % 2][d][y - 1][k];
                        from[DOWN][d] = sent[UP][1 - t % 2][d][y + 1][k];
                        from[LEFT][d] = sent[RIGHT][1 - t % 2][d][y][k - 1 + odd];
                        from[RIGHT][d] = sent[LEFT][1 - t % 2][d][y][k + odd];
                        all[d] = cost[t % 2][d][y][k] + from[UP][d] + from[DOWN][d] + from[LEFT][d] + from[RIGHT][d];
                    }
                    for (int n = 0; n < 4; n++) {
                        DATA_TYPE h[DISPARITIES], least = all[0] - from[n][0];
                        for (int d = 0; d < DISPARITIES; d++) {
                            h[d] = all[d] - from[n][d];
                            least = h[d] < least ? h[d] : least;
                        }
                        for (int d = 1; d < DISPARITIES; d++) {
                            h[d] = h[d - 1] + step < h[d] ? h[d - 1] + step : h[d];
                        }
                        for (int d = DISPARITIES - 2; d >= 0; d--) {
                            h[d] = h[d + 1] + step < h[d] ? h[d + 1] + step : h[d];
                        }
                        for (int d = 0; d < DISPARITIES; d++) {
                            sent[n][t % 2][d][y][k] = h[d] - least < jump ? h[d] - least : jump;
                        }
                    }
                }
            }
        }
    }

#pragma hmppcg grid blocksize 32x8
    for (int y = 0; y < height; y++) {
        for (int k = 0; k < (width + 1) / 2; k++) {
            for (int c = 0; c < 2; c++) {
                const int odd = (y + c) % 2, x = 2 * k + odd;
                int best = 0;
                if (y > 0 && y < height - 1 && x > 0 && x < width - 1) {
                    DATA_TYPE least = STEP * STEP;
                    for (int d = 0; d < DISPARITIES; d++) {
                        const DATA_TYPE all = cost[c][d][y][k] + sent[DOWN][1 - c][d][y - 1][k]
                                              + sent[UP][1 - c][d][y + 1][k] + sent[RIGHT][1 - c][d][y][k - 1 + odd]
                                              + sent[LEFT][1 - c][d][y][k + odd];
                        best = all < least ? d : best;
                        least = all < least ? all : least;
                    }
                }
                if (x < width) {
                    disparity[y][x] = best;
                }
            }
        }
    }
}

/* Two slanted planes, the nearer one in the middle, of a texture that hardly repeats. */
static int shape(int height, int width, int y, int x)
{
    int far = 1 + 3 * y / (height + 1), near = 6 + 5 * x / (width + 1);
    int inside = 4 * y > height && 4 * y < 3 * height && 4 * x > width && 4 * x < 3 * width;

    return (inside ? near : far) % DISPARITIES;
}

static void init(int height, int width, DATA_TYPE left[height][width], DATA_TYPE right[height][width])
{
    int y, x;

    for (y = 0; y < height; y++) {
        for (x = 0; x < width; x++) {
            left[y][x] = (DATA_TYPE)((x * x % 101 * 37 + y * y % 97 * 59 + x * y % 89 * 83 + 29 * x + 71 * y) % 256);
            right[y][x] = (DATA_TYPE)((x * 53 + y * 19) % 256);
        }
        for (x = 0; x < width; x++) {
            if (x >= shape(height, width, y, x)) {
                right[y][x - shape(height, width, y, x)] = left[y][x];
            }
        }
    }
}

int main(void)
{
    int height = HEIGHT, width = WIDTH, iterations = ITERATIONS, half = (width + 1) / 2, y, x;
    DATA_TYPE(*left)[width] = malloc(sizeof(DATA_TYPE) * height * width);
    DATA_TYPE(*right)[width] = malloc(sizeof(DATA_TYPE) * height * width);
    DATA_TYPE(*cost)[DISPARITIES][height][half] = malloc(sizeof(DATA_TYPE) * 2 * DISPARITIES * height * half);
    DATA_TYPE(*sent)[2][DISPARITIES][height][half] = malloc(sizeof(DATA_TYPE) * 8 * DISPARITIES * height * half);
    int(*disparity)[width] = malloc(sizeof(int) * height * width);
    double sum = 0;

    if (!left || !right || !cost || !sent || !disparity) {
        fprintf(stderr, "bp_stereo: no memory for %d x %d\n", height, width);
        return 1;
    }
    init(height, width, left, right);
#ifdef TIME
    clock_t start = clock();
#endif
#pragma hmpp bp_stereo callsite
    bp_stereo(height, width, iterations, left, right, cost, sent, disparity);
#ifdef TIME
    fprintf(stderr, "%.6f s\n", (double)(clock() - start) / CLOCKS_PER_SEC);
#endif
    for (y = 0; y < height; y++) {
        for (x = 0; x < width; x++) {
            sum += (double)disparity[y][x] * (1 + (3 * y + 7 * x) % 11);
#ifdef DUMP
            printf("%d%c", disparity[y][x], x + 1 < width ? ' ' : '\n');
#endif
        }
    }
    printf("bp_stereo height=%d width=%d iterations=%d checksum=%.6e\n", height, width, iterations, sum);
    printf("corners %d %d %d %d middle %d\n", disparity[0][0], disparity[0][width - 1], disparity[height - 1][0],
           disparity[height - 1][width - 1], disparity[height / 2][width / 2]);
    free(left);
    free(right);
    free(cost);
    free(sent);
    free(disparity);
    return 0;
}
