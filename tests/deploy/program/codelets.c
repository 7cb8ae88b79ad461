/* Codelets written by hand as looptune cc writes them, and what the tests do with them: codelets MODE [N]. */
#define _POSIX_C_SOURCE 200809L
#include "looptune_runtime.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct axpy_arguments {
    long long n;
    float a;
    float *x, *y;
};

static const char cubin_80[] = "fake-cubin 80", cubin_86[] = "fake-cubin 86", cubin_90[] = "fake-cubin 90";
static const char ptx_80[] = "fake-ptx 80", ptx_90[] = "fake-ptx 90";
static const struct looptune_image images[] = {{80, 0, cubin_80, sizeof cubin_80}, {86, 0, cubin_86, sizeof cubin_86},
                                               {90, 0, cubin_90, sizeof cubin_90}, {80, 1, ptx_80, sizeof ptx_80},
                                               {90, 1, ptx_90, sizeof ptx_90}};
static const unsigned char of_axpy[] = {8, 8, 4, 4, 0}, of_turn[] = {8, 4, 0}, of_add[] = {8, 8, 4, 0};
static const struct looptune_kernel axpy_default = {"axpy_default", "axpy", images, 5, {256, 1, 1}, 0, of_axpy};
static const struct looptune_kernel axpy_tuned = {"axpy_tuned", "axpy tuned", images, 5, {128, 1, 1}, 65536, of_axpy};
static const struct looptune_kernel axpy_wrong = {"axpy_wrong", "axpy wrong", images, 5, {256, 1, 1}, 0, of_axpy};
static const struct looptune_kernel turn_blocks = {"turn_blocks", "turn", images, 5, {64, 1, 1}, 0, of_turn};
static const struct looptune_kernel add_scratch = {"add_scratch", "add scratch", images, 5, {256, 1, 1}, 0, of_add};
static const struct looptune_kernel add_garbage = {"add_garbage", "add garbage", images, 5, {64, 1, 1}, 0, of_add};

/* `each`: blocks on every multiprocessor that wait for each other, 0 for a usual launch, or one BESIDE that before. */
enum { BESIDE = -1 };
static int start_axpy(struct looptune_run *run, const struct looptune_kernel *kernel, const void *arguments,
                      const looptune_address *arrays, int each) {
    const struct axpy_arguments *g = (const struct axpy_arguments *)arguments;
    looptune_address x = arrays[0], y = arrays[1];
    unsigned n = (unsigned)g->n;
    float a = g->a;
    void *list[4];
    list[0] = &x;
    list[1] = &y;
    list[2] = &n;
    list[3] = &a;
    if (each > 0) return looptune_launch_together(run, kernel, each, list);
    if (each == BESIDE)
        return looptune_launch_beside(run, kernel, (g->n + kernel->block[0] - 1) / kernel->block[0], 1, 1, list);
    return looptune_launch(run, kernel, (g->n + kernel->block[0] - 1) / kernel->block[0], 1, 1, list);
}
static int launch_axpy(struct looptune_run *run, const struct looptune_kernel *kernel, const void *arguments,
                       const looptune_address *arrays) {
    return start_axpy(run, kernel, arguments, arrays, 0);
}
static int by_default(struct looptune_run *run, const void *arguments, const looptune_address *arrays) {
    return launch_axpy(run, &axpy_default, arguments, arrays);
}
static int tuned(struct looptune_run *run, const void *arguments, const looptune_address *arrays) {
    return launch_axpy(run, &axpy_tuned, arguments, arrays);
}
static int wrong(struct looptune_run *run, const void *arguments, const looptune_address *arrays) {
    return launch_axpy(run, &axpy_wrong, arguments, arrays);
}
/* Launches a kernel on y and on memory of the run. */
static int launch_with_scratch(struct looptune_run *run, const struct looptune_kernel *kernel, unsigned n,
                               unsigned long long bytes, int zeroed, looptune_address y) {
    looptune_address scratch = looptune_scratch(run, bytes, zeroed);
    void *list[3];
    list[0] = &scratch;
    list[1] = &y;
    list[2] = &n;
    return looptune_launch(run, kernel, (n + kernel->block[0] - 1) / kernel->block[0], 1, 1, list);
}
/* Adds twice a half, with a kernel between that adds zeros from scratch memory. */
static int in_steps(struct looptune_run *run, const void *arguments, const looptune_address *arrays) {
    struct axpy_arguments half = *(const struct axpy_arguments *)arguments;
    half.a = half.a / 2;
    launch_axpy(run, &axpy_default, &half, arrays);
    launch_with_scratch(run, &add_scratch, (unsigned)half.n, 4ull * (unsigned long long)half.n, 1, arrays[1]);
    return launch_axpy(run, &axpy_default, &half, arrays);
}
static int too_many_blocks(struct looptune_run *run, const void *arguments, const looptune_address *arrays) {
    launch_axpy(run, &axpy_default, arguments, arrays);
    return looptune_launch(run, &axpy_default, 1, 65536, 1, NULL);
}
/* Turns each block of 64 elements around, and again. */
static int turn_twice(struct looptune_run *run, const struct axpy_arguments *g, looptune_address y) {
    unsigned n = (unsigned)g->n;
    void *list[2];
    list[0] = &y;
    list[1] = &n;
    looptune_launch(run, &turn_blocks, (g->n + 63) / 64, 1, 1, list);
    return looptune_launch(run, &turn_blocks, (g->n + 63) / 64, 1, 1, list);
}
static int turned_twice(struct looptune_run *run, const void *arguments, const looptune_address *arrays) {
    turn_twice(run, (const struct axpy_arguments *)arguments, arrays[1]);
    return by_default(run, arguments, arrays);
}
/* Twice: adds half of a x to the first 1000 elements of y, beside that to the others, and turns all blocks twice. Of
   exactly 1000 elements the first kernel has none. */
static int in_pairs(struct looptune_run *run, const void *arguments, const looptune_address *arrays) {
    const struct axpy_arguments *g = (const struct axpy_arguments *)arguments;
    struct axpy_arguments part[2] = {*g, *g};
    int k;
    part[0].a = part[1].a = g->a / 2;
    part[0].n = g->n > 1000 ? 1000 : 0;
    part[1].n = g->n - part[0].n;
    for (k = 0; k < 4; k++) {
        const unsigned long long begin = k % 2 ? 4ull * (unsigned long long)part[0].n : 0;
        looptune_address at[2];
        at[0] = arrays[0] + begin;
        at[1] = arrays[1] + begin;
        start_axpy(run, &axpy_default, &part[k % 2], at, k % 2 ? BESIDE : 0);
        if (k % 2) turn_twice(run, g, arrays[1]);
    }
    return LOOPTUNE_OK;
}
/* Adds and subtracts 2^20 x before: what y had below the roundings of that is lost. */
static int with_cancellation(struct looptune_run *run, const void *arguments, const looptune_address *arrays) {
    struct axpy_arguments large = *(const struct axpy_arguments *)arguments;
    large.a = 1048576;
    launch_axpy(run, &axpy_default, &large, arrays);
    large.a = -1048576;
    launch_axpy(run, &axpy_default, &large, arrays);
    return by_default(run, arguments, arrays);
}
/* Adds what is in memory that nothing has set, to y[7]. */
static int with_garbage(struct looptune_run *run, const void *arguments, const looptune_address *arrays) {
    const struct axpy_arguments *g = (const struct axpy_arguments *)arguments;
    launch_with_scratch(run, &add_garbage, (unsigned)g->n, 4, 0, arrays[1]);
    return by_default(run, arguments, arrays);
}
static int together(struct looptune_run *run, const void *arguments, const looptune_address *arrays) {
    return start_axpy(run, &axpy_tuned, arguments, arrays, 2);
}

static const long long at_1000[] = {1000}, at_64000[] = {64000};
static const struct looptune_version versions[] = {
    {"NVIDIA H200", 132, 90, at_1000, tuned, by_default, "tile i:128"},
    {"NVIDIA H200", 132, 90, at_64000, tuned, tuned, "tile i:128, unroll 4"},
    {"NVIDIA H100", 132, 90, at_64000, tuned, tuned, "tile i:64"},
    {"NVIDIA A100", 108, 80, at_64000, tuned, tuned, "tile i:32"},
    {"NVIDIA A100", 108, 80, at_1000, tuned, NULL, "tile i:16"}};
static const char *const size_names[] = {"n"};

static struct looptune_codelet axpy = {"axpy", "app.c:5", versions, 5, size_names, 1, by_default, 1, NULL, NULL, 0};
static struct looptune_codelet steps = {"steps", "app.c:9", NULL, 0, size_names, 1, in_steps, 1, NULL, NULL, 0};
static struct looptune_codelet bad = {"bad", "app.c:20", NULL, 0, size_names, 1, wrong, 1, NULL, NULL, 0};
static struct looptune_codelet beyond = {"beyond", "app.c:30", NULL, 0, size_names, 1, too_many_blocks, 1, NULL, NULL, 0};
static const struct looptune_version beyond_tuned[] = {
    {"NVIDIA H200", 132, 90, at_1000, too_many_blocks, too_many_blocks, "tile i:1"}};
static struct looptune_codelet saved = {"saved", "app.c:40", beyond_tuned, 1, size_names, 1, by_default, 1, NULL, NULL, 0};
static struct looptune_codelet at_once = {"at_once", "app.c:50", NULL, 0, size_names, 1, together, 1, NULL, NULL, 0};

static struct looptune_codelet turned = {"turned", "app.c:60", NULL, 0, size_names, 1, turned_twice, 1, NULL, NULL, 0};
static struct looptune_codelet pairs = {"pairs", "app.c:65", NULL, 0, size_names, 1, in_pairs, 1, NULL, NULL, 0};

static struct looptune_codelet moving = {"moving", "app.c:70", NULL, 0, size_names, 1, with_cancellation, 1, NULL, NULL, 0};
static const struct looptune_version unstable_tuned[] = {
    {"NVIDIA H200", 132, 90, at_1000, with_cancellation, with_cancellation, "tile i:1"}};
static struct looptune_codelet unstable = {"unstable", "app.c:80", unstable_tuned, 1, size_names, 1, by_default, 1, NULL,
                                           NULL, 0};
static struct looptune_codelet unsteady = {"unsteady", "app.c:90", NULL, 0, size_names, 1, with_garbage, 1, NULL, NULL, 0};

static void axpy_loops(const void *arguments) {
    const struct axpy_arguments *g = (const struct axpy_arguments *)arguments;
    long long i;
    for (i = 0; i < g->n; i++) g->y[i] += g->a * g->x[i];
}

/* y += a x as a program of looptune cc does it; the status. */
static int call(struct looptune_codelet *codelet, long long n, float a, float *x, float *y, unsigned x_flags,
                unsigned y_flags, int asynchronous, int own_loops) {
    struct axpy_arguments g;
    struct looptune_array arrays[2];
    int status;
    memset(arrays, 0, sizeof arrays);
    g.n = n;
    g.a = a;
    g.x = x;
    g.y = y;
    arrays[0].name = "x";
    arrays[0].host = x;
    arrays[1].name = "y";
    arrays[1].host = y;
    arrays[0].bytes = arrays[1].bytes = (unsigned long long)n * sizeof *x;
    arrays[0].flags = LOOPTUNE_READ | x_flags;
    arrays[1].flags = LOOPTUNE_READ | LOOPTUNE_WRITTEN | y_flags;
    arrays[0].kind = arrays[1].kind = 'f';
    arrays[0].item = arrays[1].item = sizeof *x;
    status = looptune_call(codelet, &g, &n, arrays, 2, own_loops ? axpy_loops : NULL, asynchronous);
    if (status != LOOPTUNE_OK) axpy_loops(&g);
    if (status == LOOPTUNE_COMPARE) looptune_compare(codelet, arrays, 2);
    return status;
}

static float *filled(long long n, int step) {
    float *x = (float *)malloc((size_t)(n ? n : 1) * sizeof *x);
    long long i;
    for (i = 0; i < n; i++) x[i] = (float)((i * step) % 101);
    return x;
}

/* Whether y is what `times` calls make of it. */
static int right(const float *y, long long n, float a, int times) {
    long long i;
    for (i = 0; i < n; i++) {
        float expected = (float)((i * 3) % 101), x = (float)((i * 7) % 101);
        int k;
        for (k = 0; k < times; k++) expected += a * x;
        if (fabsf(y[i] - expected) > 1e-3f) {
            printf("y[%lld] is %g, expected %g\n", i, (double)y[i], (double)expected);
            return 0;
        }
    }
    return 1;
}

static int tell(const char *what, int status, const float *y, long long n, int times) {
    int good = right(y, n, 2, times);
    printf("%s: status %d, %s\n", what, status, good ? "right" : "wrong");
    fflush(stdout);
    return !good;
}

static struct looptune_codelet *codelet_of(const char *name) {
    struct looptune_codelet *all[] = {&axpy, &steps, &bad, &beyond, &saved, &at_once, &turned, &pairs,
                                      &moving, &unstable, &unsteady};
    size_t k;
    for (k = 0; k < sizeof all / sizeof *all; k++)
        if (strcmp(all[k]->name, name) == 0) return all[k];
    return NULL;
}

static long long n;
static float *x, *y;

static void *in_thread(void *own) {
    long long m = 1000;
    float *u = filled(m, 7), *v = filled(m, 3);
    int k;
    for (k = 0; k < 5; k++) call(own ? &axpy : &steps, m, 2, u, v, 0, 0, 0, 1);
    own = right(v, m, 2, 5) ? NULL : v;
    free(u);
    free(v);
    return own;
}

static int threads(void) {
    pthread_t all[4];
    int k, wrong_ones = 0;
    void *result;
    for (k = 0; k < 4; k++) pthread_create(&all[k], NULL, in_thread, k % 2 ? &axpy : NULL);
    for (k = 0; k < 4; k++) {
        pthread_join(all[k], &result);
        wrong_ones += result != NULL;
    }
    printf("threads: wrong ones %d\n", wrong_ones);
    return wrong_ones;
}

static int forked(int used_before, int kept) {
    int status = 0, code;
    pid_t child;
    if (used_before) {
        code = call(&axpy, n, 2, x, y, 0, kept ? LOOPTUNE_KEPT : 0, 0, 1);
        if (!kept) tell("before", code, y, n, 1);
    }
    child = fork();
    if (child == 0) {
        code = call(&axpy, n, 2, x, y, 0, 0, 0, 1);
        exit(tell("child", code, y, n, 1 + used_before));
    }
    waitpid(child, &status, 0);
    printf("child: exit status %d\n", WEXITSTATUS(status));
    code = call(&axpy, n, 2, x, y, kept ? LOOPTUNE_PRESENT : 0, 0, 0, 1);
    return tell("parent", code, y, n, 1 + used_before);
}

/* Calls one after the other, each with what the letters before its dot say: p(resent), k(ept), a(synchronous), x: only
   x is present, t: of another codelet, z: z += 2 x. Between them l(oad of x and y), s(tore of y and z), w(ait),
   r(elease of x), R(elease of all), h: a part of y in a call, to which zeros are added. Calls in [] are held. */
static int sequence(const char *text) {
    unsigned flags[2] = {0, 0};
    struct looptune_codelet *next = &axpy;
    int asynchronous = 0, calls[2] = {0, 0}, on_z = 0, status = 0, wrong_z;
    unsigned long long bytes = (unsigned long long)n * sizeof *x;
    float *z = filled(n, 3);
    for (; *text; text++) switch (*text) {
        case 'p': flags[0] |= LOOPTUNE_PRESENT; flags[1] |= LOOPTUNE_PRESENT; break;
        case 'x': flags[0] |= LOOPTUNE_PRESENT; break;
        case 'k': flags[1] |= LOOPTUNE_KEPT; break;
        case 'a': asynchronous = 1; break;
        case 't': next = &steps; break;
        case 'z': on_z = 1; break;
        case 'l': looptune_load("x", x, bytes); looptune_load("y", y, bytes); break;
        case 's': looptune_store("y", y, bytes); looptune_store("z", z, bytes); break;
        case 'w': looptune_synchronize(&axpy); looptune_synchronize(&steps); break;
        case 'r': looptune_release(x); break;
        case 'R': looptune_release(NULL); break;
        case 'h': call(&axpy, n / 2, 0, x, y + 1, 0, 0, 0, 1); break;
        case '[': looptune_hold(); break;
        case ']': looptune_give_back(); break;
        case '?': printf("y is %s\n", right(y, n, 2, calls[0]) ? "there" : "not there"); break;
        case '.':
            status |= call(next, n, 2, x, on_z ? z : y, flags[0], flags[1], asynchronous, 1);
            calls[on_z]++;
            flags[0] = flags[1] = 0;
            asynchronous = on_z = 0;
            next = &axpy;
            break;
        }
    wrong_z = tell("z", status, z, n, calls[1]);
    free(z);
    return tell("sequence", status, y, n, calls[0]) | wrong_z;
}

static int aliased(void) {
    int status = call(&axpy, 100, 2, y + 1, y, 0, 0, 0, 1); /* ran the original loops here, in their order */
    long long i;
    float *expected = filled(n, 3);
    for (i = 0; i < 100; i++) expected[i] += 2 * expected[i + 1];
    printf("aliased: status %d, %s\n", status, memcmp(y, expected, (size_t)n * sizeof *y) ? "wrong" : "right");
    free(expected);
    return 0;
}

/* One part of x is read under two names, x and x + 1; y does not overlap them. */
static int read_twice(void) {
    struct axpy_arguments g;
    struct looptune_array arrays[4];
    long long m = n - 1;
    int status, k;
    memset(&arrays, 0, sizeof arrays);
    g.n = m;
    g.a = 2;
    g.x = x + 1;
    g.y = y;
    for (k = 0; k < 4; k++) {
        arrays[k].name = "part";
        arrays[k].host = k == 1 ? y : k == 2 ? x : x + 1; /* twice x + 1, once x */
        arrays[k].bytes = (unsigned long long)m * sizeof *x;
        arrays[k].flags = LOOPTUNE_READ | (k == 1 ? LOOPTUNE_WRITTEN : 0);
        arrays[k].kind = 'f';
        arrays[k].item = sizeof *x;
    }
    status = looptune_call(&axpy, &g, &m, arrays, 4, axpy_loops, 0);
    if (status != LOOPTUNE_OK) axpy_loops(&g);
    if (status == LOOPTUNE_COMPARE) looptune_compare(&axpy, arrays, 4);
    for (k = 0; k < m && y[k] == (float)((k * 3) % 101) + 2 * x[k + 1]; k++) {}
    printf("read twice: status %d, %s\n", status, k == m ? "right" : "wrong");
    return k != m;
}

/* Calls on more arrays than fit into the memory of the device, one of which is kept there. */
static int many_arrays(int count) {
    float *kept = filled(n, 3);
    int k, status = call(&axpy, n, 2, x, kept, 0, LOOPTUNE_KEPT, 0, 1), good = 1;
    for (k = 0; k < count; k++) {
        float *u = filled(n, 7), *v = filled(n, 3);
        status |= call(&axpy, n, 2, u, v, 0, 0, 0, 0);
        good &= right(v, n, 2, 1);
        x = u; /* they stay, so that all have other addresses */
    }
    looptune_store("kept", kept, (unsigned long long)n * sizeof *kept);
    good &= right(kept, n, 2, 1);
    printf("many arrays: status %d, %s\n", status, good ? "right" : "wrong");
    return !good;
}

static void store_late(void) {
    looptune_store("y", y, (unsigned long long)n * sizeof *y);
    printf("stored late\n");
}

static void *of_driver(const char *name) {
    void *found = dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);
    if (!found) exit(3);
    return found;
}
#define DRIVER(name, symbol, parameters)                                                                             \
    int(*name) parameters;                                                                                           \
    void *found_##name = of_driver(symbol);                                                                          \
    memcpy(&name, &found_##name, sizeof name)

/* A program with a context and a stream of its own calls on its own memory; `how`: none (no context), same (arrays
   overlap), odd (one is not aligned), or a codelet. It calls so many times, or once into a graph that it launches so many
   times. */
static int on_device(const char *how, int times, int captured) {
    DRIVER(init, "cuInit", (unsigned));
    DRIVER(retain, "cuDevicePrimaryCtxRetain", (void **, int));
    DRIVER(release, "cuDevicePrimaryCtxRelease_v2", (int));
    DRIVER(push, "cuCtxPushCurrent_v2", (void *));
    DRIVER(current, "cuCtxGetCurrent", (void **));
    DRIVER(allocate, "cuMemAlloc_v2", (looptune_address *, size_t));
    DRIVER(deallocate, "cuMemFree_v2", (looptune_address));
    DRIVER(stream, "cuStreamCreate", (void **, unsigned));
    DRIVER(wait_for, "cuStreamSynchronize", (void *));
    DRIVER(end, "cuStreamDestroy_v2", (void *));
    DRIVER(to, "cuMemcpyHtoDAsync_v2", (looptune_address, const void *, size_t, void *));
    DRIVER(from, "cuMemcpyDtoHAsync_v2", (void *, looptune_address, size_t, void *));
    struct looptune_codelet *codelet = codelet_of(how) ? codelet_of(how) : &axpy;
    struct axpy_arguments g;
    struct looptune_array described[2];
    looptune_address own[2], at[2];
    size_t bytes = (size_t)n * sizeof *x;
    void *context, *queue, *still, *graph;
    int k, status;
    memset(&g, 0, sizeof g);
    memset(described, 0, sizeof described);
    g.n = n;
    g.a = 2;
    init(0);
    retain(&context, 0);
    push(context);
    stream(&queue, 0);
    for (k = 0; k < 2; k++) {
        described[k].name = k ? "y" : "x";
        described[k].bytes = bytes;
        described[k].flags = LOOPTUNE_READ | LOOPTUNE_ALIGNED | (k ? LOOPTUNE_WRITTEN : 0);
        allocate(&own[k], bytes + 64);
        at[k] = own[k];
        to(at[k], k ? y : x, bytes, queue);
    }
    if (strcmp(how, "same") == 0) at[0] = at[1] + 16;
    if (strcmp(how, "odd") == 0) at[0] += 4;
    if (strcmp(how, "none") == 0) push(NULL);
    if (captured) {
        DRIVER(begin, "cuStreamBeginCapture_v2", (void *, int));
        begin(queue, 2);
    }
    for (k = 0, status = 0; k < (captured ? 1 : times); k++)
        status |= looptune_call_on_device(codelet, &g, &n, at, described, 2, queue);
    if (captured) {
        DRIVER(end_capture, "cuStreamEndCapture", (void *, void **));
        DRIVER(instantiate, "cuGraphInstantiateWithFlags", (void **, void *, unsigned long long));
        DRIVER(destroy_graph, "cuGraphDestroy", (void *));
        DRIVER(launch, "cuGraphLaunch", (void *, void *));
        DRIVER(destroy, "cuGraphExecDestroy", (void *));
        void *executable;
        end_capture(queue, &graph);
        instantiate(&executable, graph, 0);
        destroy_graph(graph);
        for (k = 0; k < times; k++) launch(executable, queue);
        wait_for(queue);
        destroy(executable);
    }
    if (status == LOOPTUNE_OK) {
        printf("y is %s\n", right(y, n, 2, 0) ? "as before" : "changed");
        from(y, at[1], bytes, queue);
        wait_for(queue);
        tell("on the device", status, y, n, times);
    }
    current(&still);
    printf("%s; the context is %s\n", looptune_message(status), still == context ? "the same" : "another one");
    deallocate(own[0]);
    deallocate(own[1]);
    end(queue);
    release(0);
    return status;
}

static int match(void) {
    const char *level, *directives;
    int status = looptune_match(&axpy, &n, &level, &directives);
    printf("%s: %s (%s)\n", level, directives, looptune_message(status));
    return 0;
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "", *which = argc > 3 ? argv[3] : "axpy";
    int result = 2, k, times = argc > 4 ? atoi(argv[4]) : 1, status = 0;
    n = argc > 2 ? atoll(argv[2]) : 1000;
    x = filled(n, 7);
    y = filled(n, 3);
    if (strcmp(mode, "call") == 0 || strcmp(mode, "plain") == 0) {
        for (k = 0; k < times; k++) status = call(codelet_of(which), n, 2, x, y, 0, 0, 0, mode[0] == 'c');
        result = tell(which, status, y, n, times);
    }
    if (strcmp(mode, "aliased") == 0) result = aliased();
    if (strcmp(mode, "twice") == 0) result = read_twice();
    if (strcmp(mode, "many") == 0) result = many_arrays(times);
    if (strcmp(mode, "device") == 0) result = on_device(which, times, 0);
    if (strcmp(mode, "captured") == 0) result = on_device(which, times, 1);
    if (strcmp(mode, "late") == 0) {
        atexit(store_late);
        call(&axpy, n, 2, x, y, 0, LOOPTUNE_KEPT, 0, 1);
        exit(0);
    }
    if (strcmp(mode, "match") == 0) result = match();
    if (strcmp(mode, "threads") == 0) result = threads();
    if (strcmp(mode, "fork") == 0) result = forked(strcmp(which, "before") != 0, strcmp(which, "kept") == 0);
    if (strcmp(mode, "sequence") == 0) result = sequence(which);
    free(x);
    free(y);
    return result;
}
