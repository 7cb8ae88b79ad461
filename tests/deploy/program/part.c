/* One codelet of a program of several parts, each of which has the runtime with it: y[i] += 2 x[i] in PART. */
#include "looptune_runtime.h"

#include <string.h>

#define JOINED(a, b) a##b
#define NAMED(part) JOINED(call_, part)
#define TEXT(x) #x
#define QUOTED(x) TEXT(x)

#ifdef __cplusplus
extern "C"
#endif
int NAMED(PART)(long long n, float *x, float *y);

struct arguments {
    unsigned n;
    float *x, *y;
};

static const char ptx[] = "fake-ptx 80";
static const struct looptune_image image = {80, 1, ptx, sizeof ptx};
static const struct looptune_kernel kernel = {"axpy_default", "axpy", &image, 1, {256, 1, 1}, 0, NULL};

static int plan(struct looptune_run *run, const void *arguments, const looptune_address *arrays) {
    struct arguments g = *(const struct arguments *)arguments;
    looptune_address x = arrays[0], y = arrays[1];
    float a = 2;
    void *list[4];
    list[0] = &x;
    list[1] = &y;
    list[2] = &g.n;
    list[3] = &a;
    return looptune_launch(run, &kernel, ((long long)g.n + 255) / 256, 1, 1, list);
}

static void loops(const void *arguments) {
    const struct arguments *g = (const struct arguments *)arguments;
    unsigned i;
    for (i = 0; i < g->n; i++) g->y[i] += 2 * g->x[i];
}

static const char *const size_names[] = {"n"};
static struct looptune_codelet codelet = {QUOTED(PART), "part.c:40", NULL, 0, size_names, 1, plan, 1, NULL, NULL,
                                          0};

int NAMED(PART)(long long n, float *x, float *y) {
    struct arguments g;
    struct looptune_array arrays[2];
    memset(arrays, 0, sizeof arrays);
    g.n = (unsigned)n;
    arrays[0].host = g.x = x;
    arrays[1].host = g.y = y;
    arrays[0].name = "x";
    arrays[1].name = "y";
    arrays[0].bytes = arrays[1].bytes = (unsigned long long)n * sizeof *x;
    arrays[0].flags = LOOPTUNE_READ;
    arrays[1].flags = LOOPTUNE_READ | LOOPTUNE_WRITTEN;
    return looptune_call(&codelet, &g, &n, arrays, 2, loops, 0);
}
