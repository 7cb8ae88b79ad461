/* What the programs of this folder share: the choice of sizes, memory, the clock, and what is printed.
 *
 * They are the 30 kernels of PolyBench/C 4.2.1 (Louis-Noel Pouchet and Tomofumi Yuki, Ohio State University, 2016):
 * its loop nests, its initial values, its sizes and its default types. The text around the loops is not from there.
 *
 *     gcc -O2 polybench/c/gemm.c -lm && ./a.out       prints a checksum and five elements of each result
 *     -DDUMP                                          prints every element before, one row a line
 *     -DTIME                                          prints the seconds the codelet took, to stderr
 *     -DMINI_DATASET SMALL MEDIUM LARGE (the default) EXTRALARGE
 *     -DN=.. -DDATA_TYPE=float                        any sizes, by their names in the file, and either type
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifndef DATA_TYPE
#define DATA_TYPE double
#endif

/* A constant of the loops: without the cast, 0.2 * A[i] is computed in double where A is of float. */
#define REAL(x) ((DATA_TYPE)(x))

#if defined(MINI_DATASET)
#define SIZE(mini, small, medium, large, extralarge) mini
#elif defined(SMALL_DATASET)
#define SIZE(mini, small, medium, large, extralarge) small
#elif defined(MEDIUM_DATASET)
#define SIZE(mini, small, medium, large, extralarge) medium
#elif defined(EXTRALARGE_DATASET)
#define SIZE(mini, small, medium, large, extralarge) extralarge
#else /* LARGE_DATASET */
#define SIZE(mini, small, medium, large, extralarge) large
#endif

/* Memory of zeros. It is returned when the program ends. */
static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);

    if (!memory) {
        fprintf(stderr, "no memory for %zu x %zu bytes\n", count, size);
        exit(1);
    }
    return memory;
}

static clock_t started;

static void start_clock(void)
{
    started = clock();
}

static void stop_clock(void)
{
#ifdef TIME
    fprintf(stderr, "%.6f s\n", (double)(clock() - started) / CLOCKS_PER_SEC);
#endif
}

/* Print the checksum and five elements of a result. The checksum weighs each element by its place, so that two swapped
 * elements change it. */
static void report(const char *name, int rows, int cols, const DATA_TYPE *x)
{
    double checksum = 0;
    size_t corner = (size_t)cols - 1, last = (size_t)rows * cols - 1, middle = (size_t)(rows / 2) * cols + cols / 2;
    int i, j;

    for (i = 0; i < rows; i++) {
        for (j = 0; j < cols; j++) {
            double element = (double)x[(size_t)i * cols + j];

            checksum += element * (1 + (3L * i + 7L * j) % 11);
#ifdef DUMP
            printf("%.9g%c", element, j + 1 < cols ? ' ' : '\n');
#endif
        }
    }
    printf("%s rows=%d cols=%d checksum=%.6e\n", name, rows, cols, checksum);
    printf("corners %.6e %.6e %.6e %.6e middle %.6e\n", (double)x[0], (double)x[corner], (double)x[last - corner],
           (double)x[last], (double)x[middle]);
}

#endif
