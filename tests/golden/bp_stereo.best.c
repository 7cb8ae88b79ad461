/* looptune transform
   codelet: nnan
   codelet: grid blocksize 32x2
*/
#define HEIGHT 288
#define WIDTH 384
#define ITERATIONS 250
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
#endif
#ifndef WIDTH
#endif
#ifndef ITERATIONS
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

    #pragma hmppcg parallel
    #pragma hmppcg grid blocksize 32x2
    for (int y = 0; y < height; y++) {
      #pragma hmppcg parallel
      for (int k = 0; k < (width + 1) / 2; k++) {
        #pragma hmppcg parallel
        for (int c = 0; c < 2; c++) {
          #pragma hmppcg parallel
          for (int d = 0; d < 15; d++) {
            float apart;
            int units;
            apart = 15;
            if (d <= 2 * k + (y + c) % 2 && 2 * k + (y + c) % 2 < width) {
              apart = left[y][2 * k + (y + c) % 2] - right[y][2 * k + (y + c) % 2 - d];
              apart = (apart < 0 ? -apart : apart);
              apart = (apart < 15 ? apart : (float)15);
            }
            units = 64 * apart + (float)0.5;
            cost[c][d][y][k] = (112 * units + 50) / 100;
            #pragma hmppcg parallel
            for (int n = 0; n < 4; n++) {
              sent[n][c][d][y][k] = 0;
            }
          }
        }
      }
    }

    #pragma hmppcg noParallel
    #pragma hmppcg grid blocksize 32x2
    for (int t = 0; t < iterations; t++) {
      #pragma hmppcg parallel
      for (int y = 1; y < height - 1; y++) {
        #pragma hmppcg parallel
        for (int k = 0; k < (width + 1) / 2; k++) {
          float from[4][15];
          float all[15];
          if (2 * k + (y + t) % 2 > 0 && 2 * k + (y + t) % 2 < width - 1) {
            #pragma hmppcg parallel
            for (int d = 0; d < 15; d++) {
              from[0][d] = sent[1][1 - t % 2][d][y - 1][k];
              from[1][d] = sent[0][1 - t % 2][d][y + 1][k];
              from[2][d] = sent[3][1 - t % 2][d][y][k - 1 + (y + t) % 2];
              from[3][d] = sent[2][1 - t % 2][d][y][k + (y + t) % 2];
              all[d] = cost[t % 2][d][y][k] + from[0][d] + from[1][d] + from[2][d] + from[3][d];
            }
            #pragma hmppcg parallel
            for (int n = 0; n < 4; n++) {
              float h[15];
              float least;
              least = all[0] - from[n][0];
              #pragma hmppcg noParallel
              for (int d = 0; d < 15; d++) {
                h[d] = all[d] - from[n][d];
                least = (h[d] < least ? h[d] : least);
              }
              #pragma hmppcg noParallel
              for (int d = 1; d < 15; d++) {
                h[d] = (h[d - 1] + 1024 < h[d] ? h[d - 1] + 1024 : h[d]);
              }
              #pragma hmppcg noParallel
              for (int d = 0; d < 14; d++) {
                h[13 - d] = (h[13 - d + 1] + 1024 < h[13 - d] ? h[13 - d + 1] + 1024 : h[13 - d]);
              }
              #pragma hmppcg parallel
              for (int d = 0; d < 15; d++) {
                sent[n][t % 2][d][y][k] = (h[d] - least < 1741 ? h[d] - least : (float)1741);
              }
            }
          }
        }
      }
    }

    #pragma hmppcg parallel
    #pragma hmppcg grid blocksize 32x2
    for (int y = 0; y < height; y++) {
      #pragma hmppcg parallel
      for (int k = 0; k < (width + 1) / 2; k++) {
        #pragma hmppcg parallel
        for (int c = 0; c < 2; c++) {
          int best;
          best = 0;
          if (y > 0 && y < height - 1 && 2 * k + (y + c) % 2 > 0 && 2 * k + (y + c) % 2 < width - 1) {
            float least_2;
            least_2 = 1048576;
            #pragma hmppcg noParallel
            for (int d = 0; d < 15; d++) {
              float all_2;
              all_2 = cost[c][d][y][k] + sent[1][1 - c][d][y - 1][k] + sent[0][1 - c][d][y + 1][k] + sent[3][1 - c][d][y][k - 1 + (y + c) % 2] + sent[2][1 - c][d][y][k + (y + c) % 2];
              best = (all_2 < least_2 ? d : best);
              least_2 = (all_2 < least_2 ? all_2 : least_2);
            }
          }
          if (2 * k + (y + c) % 2 < width) {
            disparity[y][2 * k + (y + c) % 2] = best;
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
