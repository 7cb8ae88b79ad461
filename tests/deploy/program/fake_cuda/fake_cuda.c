/* A libcuda.so.1 without a GPU: what looptune_runtime.c calls, with the rules that it has to keep.
 *
 * Built with -DWITHOUT_GRAPHS it is a driver that has no graphs. Work of a stream is deferred until something waits for
 * it. Memory of a device lies between guard pages, and nobody can touch it but a copy or a kernel while it runs. Kernels
 * are functions launch_SYMBOL of $FAKE_CUDA_KERNELS. Nodes of a graph that need not wait for each other have the same
 * depth, and run in the opposite order.
 *
 *   FAKE_CUDA_DEVICES=1  FAKE_CUDA_NAME="NVIDIA H200"  FAKE_CUDA_MULTIPROCESSORS=132  FAKE_CUDA_CAPABILITY=90
 *   FAKE_CUDA_MEMORY=1073741824 bytes  FAKE_CUDA_OCCUPANCY=2 blocks
 *   FAKE_CUDA_EAGER=1    all streams but the first do at once what they can: nothing in them waits for the first one
 *   FAKE_CUDA_LOG=FILE   one line for each thing that was done; the last one says what was not freed
 *   FAKE_CUDA_FAIL=cuMemAlloc_v2:3=2,kernel:1=719   the third call returns 2; the first kernel that runs ends with 719;
 *                        `to` and `from` are copies that run. 0 stands for every call. Errors that lose a context stay.
 *
 * Misuse (no current context, memory that is not allocated, a child of a process that used CUDA) ends the program.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef int CUresult;
typedef unsigned long long CUdeviceptr;
enum { SUCCESS = 0, INVALID_VALUE = 1, NO_MEMORY = 2, NO_DEVICE = 100, INVALID_IMAGE = 200, NO_BINARY = 209,
       NOT_FOUND = 500, OUT_OF_RESOURCES = 701, TOO_LARGE = 720, UNJOINED = 904 };
enum { GUARD = 4096, CANARY = 0x5a, GARBAGE = 0x7f, MOST_DEVICES = 8, LARGEST_SHARED = 232448 };

struct memory { char *map, *at; size_t mapped, bytes; int device, used; };
struct context { int device, retained; };
struct event { double at; struct stream *stream; unsigned long long number; struct graph *captured; int depth; };
struct module { struct context *context; };
struct function { char symbol[200]; void (*launch)(const unsigned *, const unsigned *, unsigned, void **);
                  const unsigned *sizes; int shared; struct context *context; struct function *next; };

struct work {
    enum { TO, FROM, SET, KERNEL, EVENT, COPY, WAIT } kind;
    CUdeviceptr device;
    void *host;
    char *held; /* contents of pageable memory, as they were */
    size_t bytes;
    unsigned char value;
    struct function *function;
    unsigned grid[3], block[3], shared;
    void **arguments;
    struct event *event;
    unsigned long long number; /* of the record of the event */
    int depth; /* of a node: what it waits for is less deep */
    struct work *next;
};
struct graph { struct work *first; struct context *context; int nodes; struct stream *origin; };
struct stream { struct context *context; struct work *first, **last; struct graph *captured; pthread_t by;
                int depth, unjoined; }; /* while it is captured: nobody waits for its last node */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct memory memories[4096];
static int memory_count, modules, streams, events, graphs, broken, initialised;
static size_t allocated;
static struct context contexts[MOST_DEVICES];
static struct { void *at; size_t bytes; } pinned[64];
static struct function *functions;
static struct stream default_stream;
static struct stream *all_streams[256];
static pid_t owner;
static double ticks;
static __thread struct context *stack[16];
static __thread int depth, captures;

static void note(const char *format, ...) {
    const char *path = getenv("FAKE_CUDA_LOG");
    char line[400];
    va_list values;
    FILE *f;
    if (!path || !(f = fopen(path, "a"))) return;
    va_start(values, format);
    vsnprintf(line, sizeof line, format, values);
    va_end(values);
    fprintf(f, "%s\n", line);
    fclose(f);
}

static void misuse(const char *what) {
    fprintf(stderr, "fake CUDA: %s\n", what);
    note("misuse: %s", what);
    _exit(99);
}

static long setting(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text && *text ? atol(text) : otherwise;
}

/* The error that this call of a function is to return. */
static CUresult planned(const char *function) {
    static struct { char name[64]; int calls; } counts[64];
    const char *text = getenv("FAKE_CUDA_FAIL");
    char name[64];
    int k, at, error;
    for (k = 0; k < 64 && counts[k].name[0] && strcmp(counts[k].name, function) != 0; k++) {}
    if (k == 64) return SUCCESS;
    strcpy(counts[k].name, function);
    counts[k].calls++;
    while (text && sscanf(text, "%63[^:]:%d=%d", name, &at, &error) == 3) {
        if (strcmp(name, function) == 0 && (at == 0 || at == counts[k].calls)) {
            note("fails: %s %d", function, error);
            return error;
        }
        text = strchr(text, ',');
        if (text) text++;
    }
    return SUCCESS;
}

static int loses_context(CUresult e) { return (e >= 702 && e < 720 && e != 704 && e != 705 && e != 708) || e == 214 || e == 999; }

static CUresult begin(const char *function, int needs_context) {
    CUresult e;
    pthread_mutex_lock(&lock);
    if (!initialised && strcmp(function, "cuInit") != 0) misuse("cuInit was not called");
    if (initialised && owner != getpid()) misuse("CUDA is used in a child of the process that used it");
    if (needs_context && depth == 0) misuse("no context is current");
    e = planned(function);
    if (loses_context(e)) broken = e;
    if (broken) return broken;
    return e;
}
#define BEGIN(context)                                                                                               \
    CUresult result = begin(__func__, context);                                                                      \
    if (result != SUCCESS) return end(result)
static CUresult end(CUresult e) {
    pthread_mutex_unlock(&lock);
    return e;
}

static struct memory *memory_of(CUdeviceptr at, size_t bytes) {
    int k;
    for (k = 0; k < memory_count; k++) {
        struct memory *m = &memories[k];
        CUdeviceptr start = (CUdeviceptr)(uintptr_t)m->at;
        if (m->used && at >= start && at < start + m->bytes) {
            if (at + bytes > start + m->bytes) misuse("an access beyond the end of an allocation");
            return m;
        }
    }
    misuse("an address that is not of the device");
    return NULL;
}

/* Memory of the devices can be touched, or not. */
static void open_memory(int yes) {
    int k;
    for (k = 0; k < memory_count; k++)
        if (memories[k].used)
            mprotect(memories[k].map + GUARD, memories[k].mapped - 2 * GUARD, yes ? PROT_READ | PROT_WRITE : PROT_NONE);
}

static int is_pinned(const void *at, size_t bytes) {
    int k;
    for (k = 0; k < 64; k++)
        if (pinned[k].at && (const char *)at >= (char *)pinned[k].at &&
            (const char *)at + bytes <= (char *)pinned[k].at + pinned[k].bytes) return 1;
    return 0;
}

static void drain_to(struct event *event, unsigned long long number);

static void perform(struct work *w) {
    static const char *const names[] = {"to", "from", "set", "kernel", "event", "copy", "wait"};
    CUresult e = broken ? broken : w->kind == EVENT || w->kind == WAIT ? SUCCESS : planned(names[w->kind]);
    if (e != SUCCESS && !broken) broken = e;
    if (w->kind == WAIT) drain_to(w->event, w->number);
    else if (e == SUCCESS) {
        open_memory(1);
        ticks += 0.25;
        switch (w->kind) {
        case TO: memcpy((void *)(uintptr_t)w->device, w->held ? w->held : w->host, w->bytes); break;
        case FROM: memcpy(w->host, (void *)(uintptr_t)w->device, w->bytes); break;
        case COPY: memcpy((void *)(uintptr_t)w->device, w->host, w->bytes); break;
        case SET: memset((void *)(uintptr_t)w->device, w->value, w->bytes); break;
        case KERNEL: w->function->launch(w->grid, w->block, w->shared, w->arguments); break;
        case EVENT: w->event->at = ticks; break;
        case WAIT: break;
        }
        open_memory(0);
    }
    free(w->held);
    if (w->arguments) free(w->arguments[0]);
    free(w->arguments);
}

static void drain(struct stream *s) {
    while (s->first) {
        struct work *w = s->first;
        s->first = w->next;
        perform(w);
        free(w);
    }
    s->last = &s->first;
}
static void drain_all(void) {
    int k;
    for (k = 0; k < 256; k++)
        if (all_streams[k]) drain(all_streams[k]);
    drain(&default_stream);
}

/* Give a kernel a copy of its arguments. */
static void set_arguments(struct work *w, void **arguments) {
    const unsigned *sizes = w->function->sizes;
    size_t total = 0;
    int count = 0, k;
    while (sizes[count]) total += (sizes[count++] + 15) / 16 * 16;
    w->arguments = calloc((size_t)count + 1, sizeof(void *));
    w->arguments[0] = calloc(1, total + 16);
    for (k = 0; k < count; k++) {
        if (k) w->arguments[k] = (char *)w->arguments[k - 1] + (sizes[k - 1] + 15) / 16 * 16;
        memcpy(w->arguments[k], arguments[k], sizes[k]);
    }
}

static void add_node(struct graph *g, struct work *w) {
    struct work **link = &g->first;
    while (*link && (*link)->depth < w->depth) link = &(*link)->next;
    w->next = *link;
    *link = w;
    g->nodes++;
}

static struct work *queue(void *stream, int kind) {
    struct stream *s = stream ? (struct stream *)stream : &default_stream;
    struct work *w = calloc(1, sizeof *w);
    w->kind = kind;
    if (!s->last) s->last = &s->first;
    if (s->captured) {
        if (kind != KERNEL && kind != SET) misuse("what a graph of kernels does not hold is captured");
        w->depth = ++s->depth;
        s->unjoined = 1;
        add_node(s->captured, w);
        return w;
    }
    *s->last = w;
    s->last = &w->next;
    return w;
}

static const char *captured(const void *stream) {
    return stream && ((const struct stream *)stream)->captured ? "captured " : "";
}

/* All but the first stream, which a program makes first. */
static int is_beside(const void *stream) { return stream && stream != all_streams[0]; }
static void hurry(void *stream) {
    if (is_beside(stream) && setting("FAKE_CUDA_EAGER", 0)) drain((struct stream *)stream);
}

CUresult cuGetErrorName(CUresult error, const char **name) {
    static __thread char text[40];
    *name = error == NO_MEMORY      ? "CUDA_ERROR_OUT_OF_MEMORY"
            : error == NO_DEVICE    ? "CUDA_ERROR_NO_DEVICE"
            : error == 719          ? "CUDA_ERROR_LAUNCH_FAILED"
            : error == OUT_OF_RESOURCES ? "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"
                                    : (snprintf(text, sizeof text, "CUDA_ERROR_%d", error), text);
    return SUCCESS;
}

CUresult cuInit(unsigned flags) {
    BEGIN(0);
    (void)flags;
    if (setting("FAKE_CUDA_DEVICES", 1) == 0) return end(NO_DEVICE);
    initialised = 1;
    owner = getpid();
    return end(SUCCESS);
}
CUresult cuDeviceGetCount(int *count) {
    BEGIN(0);
    *count = (int)setting("FAKE_CUDA_DEVICES", 1);
    return end(SUCCESS);
}
CUresult cuDeviceGet(int *device, int number) {
    BEGIN(0);
    *device = number;
    return end(SUCCESS);
}
CUresult cuDeviceGetName(char *name, int length, int device) {
    BEGIN(0);
    (void)device;
    snprintf(name, (size_t)length, "%s", getenv("FAKE_CUDA_NAME") ? getenv("FAKE_CUDA_NAME") : "NVIDIA H200");
    return end(SUCCESS);
}
CUresult cuDeviceGetAttribute(int *value, int attribute, int device) {
    int capability = (int)setting("FAKE_CUDA_CAPABILITY", 90);
    BEGIN(0);
    (void)device;
    *value = attribute == 16   ? (int)setting("FAKE_CUDA_MULTIPROCESSORS", 132)
             : attribute == 75 ? capability / 10
             : attribute == 76 ? capability % 10
                               : 1;
    return end(SUCCESS);
}
CUresult cuDevicePrimaryCtxRetain(void **context, int device) {
    BEGIN(0);
    contexts[device].device = device;
    contexts[device].retained++;
    *context = &contexts[device];
    return end(SUCCESS);
}
CUresult cuDevicePrimaryCtxRelease_v2(int device) {
    BEGIN(0);
    if (--contexts[device].retained < 0) misuse("a context is released more often than retained");
    return end(SUCCESS);
}
CUresult cuCtxPushCurrent_v2(void *context) {
    BEGIN(0);
    if (depth == 16) misuse("contexts are pushed, and not popped");
    stack[depth++] = (struct context *)context;
    return end(SUCCESS);
}
CUresult cuCtxPopCurrent_v2(void **context) {
    pthread_mutex_lock(&lock);
    if (depth == 0) misuse("a context is popped that was not pushed");
    depth--;
    if (context) *context = stack[depth];
    return end(SUCCESS);
}
CUresult cuCtxGetCurrent(void **context) {
    BEGIN(0);
    *context = depth ? stack[depth - 1] : NULL;
    return end(SUCCESS);
}
CUresult cuCtxGetDevice(int *device) {
    BEGIN(1);
    *device = stack[depth - 1]->device;
    return end(SUCCESS);
}
CUresult cuCtxGetId(void *context, unsigned long long *number) {
    BEGIN(0);
    *number = 100 + (unsigned long long)((struct context *)context)->device;
    return end(SUCCESS);
}

CUresult cuStreamCreate(void **stream, unsigned flags) {
    struct stream *s;
    int k;
    BEGIN(1);
    (void)flags;
    s = calloc(1, sizeof *s);
    s->context = stack[depth - 1];
    s->last = &s->first;
    for (k = 0; all_streams[k]; k++) {}
    all_streams[k] = s;
    streams++;
    *stream = s;
    return end(SUCCESS);
}
CUresult cuStreamGetCtx(void *stream, void **context) {
    BEGIN(0);
    *context = ((struct stream *)stream)->context;
    return end(SUCCESS);
}
CUresult cuStreamSynchronize(void *stream) {
    BEGIN(1);
    if (*captured(stream)) misuse("a stream is waited for while it is captured");
    drain(stream ? (struct stream *)stream : &default_stream);
    note("wait");
    return end(broken);
}
CUresult cuStreamDestroy_v2(void *stream) {
    int k;
    BEGIN(1);
    if (*captured(stream)) misuse("a stream is destroyed while it is captured");
    drain((struct stream *)stream);
    for (k = 0; k < 256; k++)
        if (all_streams[k] == stream) all_streams[k] = NULL;
    free(stream);
    streams--;
    return end(SUCCESS);
}
CUresult cuEventCreate(void **event, unsigned flags) {
    BEGIN(1);
    (void)flags;
    *event = calloc(1, sizeof(struct event));
    events++;
    return end(SUCCESS);
}
CUresult cuEventRecord(void *event, void *stream) {
    struct event *e = (struct event *)event;
    struct work *w;
    BEGIN(1);
    e->stream = (struct stream *)stream;
    e->captured = *captured(stream) ? e->stream->captured : NULL;
    if (e->captured) {
        e->depth = e->stream->depth;
        return end(SUCCESS);
    }
    w = queue(stream, EVENT);
    w->event = (struct event *)event;
    w->number = ++((struct event *)event)->number;
    hurry(stream);
    return end(SUCCESS);
}
/* Do what was queued before this record of an event. */
static void drain_to(struct event *event, unsigned long long number) {
    struct stream *s = event->stream;
    struct work *w, *last = NULL;
    for (w = s ? s->first : NULL; w; w = w->next)
        if (w->kind == EVENT && w->event == event && w->number <= number) last = w;
    while (last) {
        w = s->first;
        s->first = w->next;
        if (!s->first) s->last = &s->first;
        perform(w);
        if (w == last) last = NULL;
        free(w);
    }
}
/* What was queued before the event was recorded last is done. */
CUresult cuEventSynchronize(void *event) {
    BEGIN(1);
    drain_to((struct event *)event, ((struct event *)event)->number);
    return end(broken);
}
CUresult cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
    struct event *e = (struct event *)event;
    struct stream *s = (struct stream *)stream;
    struct work *w;
    BEGIN(1);
    (void)flags;
    if (e->captured) {
        if (s->first || (s->captured && s->captured != e->captured)) misuse("a stream cannot join a capture");
        s->captured = e->captured;
        if (e->depth > s->depth) s->depth = e->depth;
        if (e->stream != s && e->depth == e->stream->depth) e->stream->unjoined = 0;
        return end(SUCCESS);
    }
    w = queue(stream, WAIT);
    w->event = e;
    w->number = e->number;
    return end(SUCCESS);
}
CUresult cuEventElapsedTime(float *milliseconds, void *start, void *stop) {
    BEGIN(1);
    *milliseconds = (float)(((struct event *)stop)->at - ((struct event *)start)->at);
    return end(SUCCESS);
}
CUresult cuEventDestroy_v2(void *event) {
    BEGIN(1);
    free(event);
    events--;
    return end(SUCCESS);
}

#ifndef WITHOUT_GRAPHS
static struct work *copied(const struct work *w) {
    struct work *n = malloc(sizeof *n);
    *n = *w;
    n->next = NULL;
    if (w->function) set_arguments(n, w->arguments);
    return n;
}
/* A graph with copies of these nodes; an executable one takes 256 bytes of the device for each. */
static struct graph *new_graph(const struct work *first) {
    struct graph *g = calloc(1, sizeof *g);
    const struct work *w;
    struct work **last = &g->first;
    g->context = stack[depth - 1];
    for (w = first; w; w = w->next, g->nodes++) {
        *last = copied(w);
        last = &(*last)->next;
    }
    return g;
}
static void free_graph(struct graph *g) {
    while (g->first) {
        struct work *w = g->first;
        g->first = w->next;
        if (w->arguments) free(w->arguments[0]);
        free(w->arguments);
        free(w);
    }
    free(g);
}
CUresult cuStreamIsCapturing(void *stream, int *status) {
    BEGIN(1);
    *status = stream && ((struct stream *)stream)->captured ? 1 : 0;
    return end(SUCCESS);
}
CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
    static __thread int capture_mode;
    int before = capture_mode;
    BEGIN(1);
    capture_mode = *mode;
    *mode = before;
    return end(SUCCESS);
}
CUresult cuStreamBeginCapture_v2(void *stream, int mode) {
    struct stream *s = (struct stream *)stream;
    BEGIN(1);
    if (!s || s->captured) misuse("a stream is captured that cannot be");
    if (mode < 1) misuse("other threads are kept from what they do");
    s->captured = new_graph(NULL);
    s->captured->origin = s;
    s->depth = 0;
    s->by = pthread_self();
    captures++;
    return end(SUCCESS);
}
CUresult cuStreamEndCapture(void *stream, void **graph) {
    struct stream *s = (struct stream *)stream;
    struct graph *g = s->captured;
    CUresult e = begin(__func__, 1);
    int k;
    if (!g || g->origin != s || !pthread_equal(s->by, pthread_self())) misuse("another thread ends a capture");
    captures--;
    for (k = 0; k < 256; k++) {
        struct stream *other = all_streams[k];
        if (!other || other->captured != g) continue;
        if (other != s && other->unjoined && e == SUCCESS) e = UNJOINED;
        other->captured = NULL;
        other->depth = other->unjoined = 0;
    }
    *graph = e == SUCCESS ? g : NULL;
    if (e == SUCCESS)
        graphs++;
    else
        free_graph(g);
    return end(e);
}
CUresult cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags) {
    struct graph *g = (struct graph *)graph;
    BEGIN(1);
    if (flags) misuse("a graph has no flags");
    if (allocated + 256 * (size_t)g->nodes > (size_t)setting("FAKE_CUDA_MEMORY", 1 << 30)) return end(NO_MEMORY);
    *executable = new_graph(g->first);
    allocated += 256 * (size_t)g->nodes;
    return end(SUCCESS);
}
CUresult cuGraphDestroy(void *graph) {
    BEGIN(1);
    graphs--;
    free_graph((struct graph *)graph);
    return end(SUCCESS);
}
CUresult cuGraphLaunch(void *executable, void *stream) {
    struct graph *g = (struct graph *)executable;
    const struct work *w;
    BEGIN(1);
    if (g->context != stack[depth - 1]) misuse("a graph of another context is launched");
    if (stream && ((struct stream *)stream)->captured) misuse("a graph is launched into a capture");
    for (w = g->first; w; w = w->next) {
        struct work *n = queue(stream, w->kind), *made = copied(w);
        memcpy(n, made, sizeof *n);
        n->next = NULL;
        free(made);
    }
    note("graph %d", g->nodes);
    return end(SUCCESS);
}
CUresult cuGraphExecDestroy(void *executable) {
    BEGIN(1);
    allocated -= 256 * (size_t)((struct graph *)executable)->nodes;
    free_graph((struct graph *)executable);
    note("forget graph");
    return end(SUCCESS);
}
#endif

static CUresult allocate(CUdeviceptr *at, size_t bytes) {
    size_t inner = (bytes + 255) / 256 * 256, pages = (inner + GUARD - 1) / GUARD * GUARD;
    struct memory *m;
    int k;
    if (bytes == 0) return INVALID_VALUE;
    if (captures) misuse("memory is allocated during a capture");
    if (allocated + bytes > (size_t)setting("FAKE_CUDA_MEMORY", 1 << 30)) return NO_MEMORY;
    for (k = 0; k < memory_count && memories[k].used; k++) {}
    if (k == 4096) misuse("too many allocations");
    if (k == memory_count) memory_count++;
    m = &memories[k];
    m->mapped = pages + 2 * GUARD;
    m->map = mmap(NULL, m->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    m->at = m->map + GUARD + pages - inner;
    m->bytes = bytes;
    m->used = 1;
    m->device = stack[depth - 1]->device;
    mprotect(m->map + GUARD, pages, PROT_READ | PROT_WRITE);
    memset(m->map + GUARD, CANARY, pages);
    memset(m->at, GARBAGE, bytes);
    mprotect(m->map + GUARD, pages, PROT_NONE);
    allocated += bytes;
    *at = (CUdeviceptr)(uintptr_t)m->at;
    note("allocate %zu", bytes);
    return SUCCESS;
}
static void release(CUdeviceptr at) {
    struct memory *m = memory_of(at, 0);
    unsigned char *p;
    if ((CUdeviceptr)(uintptr_t)m->at != at) misuse("an address is freed that was not allocated");
    mprotect(m->map + GUARD, m->mapped - 2 * GUARD, PROT_READ);
    for (p = (unsigned char *)m->map + GUARD; p < (unsigned char *)m->map + m->mapped - GUARD; p++)
        if (*p != CANARY && (p < (unsigned char *)m->at || p >= (unsigned char *)m->at + m->bytes))
            misuse("something was written beside an allocation");
    munmap(m->map, m->mapped);
    m->used = 0;
    allocated -= m->bytes;
    note("free %zu", m->bytes);
}
CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t bytes) {
    BEGIN(1);
    return end(allocate(at, bytes));
}
CUresult cuMemFree_v2(CUdeviceptr at) {
    BEGIN(1);
    drain_all();
    release(at);
    return end(broken);
}
CUresult cuMemAllocAsync(CUdeviceptr *at, size_t bytes, void *stream) {
    BEGIN(1);
    (void)stream;
    return end(allocate(at, bytes));
}
static int pools;
CUresult cuMemPoolCreate(void **pool, const void *properties) {
    const int *given = (const int *)properties;
    BEGIN(1);
    if (given[0] != 1 || given[2] != 1) misuse("a pool is of memory of a device");
    *pool = &pools;
    pools++;
    return end(SUCCESS);
}
CUresult cuMemPoolSetAttribute(void *pool, int attribute, void *value) {
    BEGIN(1);
    if (pool != &pools || attribute != 4) misuse("the attribute of a pool is the memory that it keeps");
    note("pool %d keeps %llu", pools, *(unsigned long long *)value);
    return end(SUCCESS);
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *at, size_t bytes, void *pool, void *stream) {
    BEGIN(1);
    (void)stream;
    if (pool != &pools) misuse("memory is taken from a pool that was not created");
    return end(allocate(at, bytes));
}
CUresult cuMemFreeAsync(CUdeviceptr at, void *stream) {
    BEGIN(1);
    drain(stream ? (struct stream *)stream : &default_stream);
    release(at);
    return end(broken);
}
CUresult cuMemHostAlloc(void **at, size_t bytes, unsigned flags) {
    int k;
    BEGIN(1);
    (void)flags;
    for (k = 0; pinned[k].at; k++) {}
    *at = pinned[k].at = malloc(bytes);
    pinned[k].bytes = bytes;
    memset(*at, GARBAGE, bytes);
    return end(SUCCESS);
}
CUresult cuMemFreeHost(void *at) {
    int k;
    BEGIN(1);
    for (k = 0; k < 64 && pinned[k].at != at; k++) {}
    if (k == 64) misuse("memory is freed that is not pinned");
    pinned[k].at = NULL;
    free(at);
    return end(SUCCESS);
}
/* Pageable memory is read at once, pinned memory when the copy runs. */
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, void *stream) {
    struct work *w;
    BEGIN(1);
    memory_of(to, bytes);
    w = queue(stream, TO);
    w->device = to;
    w->host = (void *)(uintptr_t)from;
    w->bytes = bytes;
    if (!is_pinned(from, bytes)) {
        w->held = malloc(bytes);
        memcpy(w->held, from, bytes);
    }
    note("to %zu%s", bytes, is_beside(stream) ? " beside" : "");
    hurry(stream);
    return end(SUCCESS);
}
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, void *stream) {
    struct work *w;
    BEGIN(1);
    memory_of(from, bytes);
    w = queue(stream, FROM);
    w->device = from;
    w->host = to;
    w->bytes = bytes;
    note("from %zu", bytes);
    return end(SUCCESS);
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, void *stream) {
    struct work *w;
    BEGIN(1);
    memory_of(from, bytes);
    memory_of(to, bytes);
    w = queue(stream, COPY);
    w->device = to;
    w->host = (void *)(uintptr_t)from;
    w->bytes = bytes;
    note("copy %zu", bytes);
    return end(SUCCESS);
}
CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t bytes, void *stream) {
    struct work *w;
    BEGIN(1);
    memory_of(at, bytes);
    w = queue(stream, SET);
    w->device = at;
    w->value = value;
    w->bytes = bytes;
    note("%sset %zu", captured(stream), bytes);
    return end(SUCCESS);
}

/* "fake-cubin 90" and "fake-ptx 80" say what they are for; PTX tells it by its .target; other images are accepted. */
CUresult cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values) {
    int device = (int)setting("FAKE_CUDA_CAPABILITY", 90), made;
    const char *text = (const char *)image;
    BEGIN(1);
    (void)count, (void)options, (void)values;
    if (sscanf(text, "fake-cubin %d", &made) == 1) {
        if (made / 10 != device / 10 || made > device) return end(NO_BINARY);
        note("module cubin %d", made);
    } else if (sscanf(text, "fake-ptx %d", &made) == 1 ||
               (memcmp(text, "\177ELF", 4) != 0 && strstr(text, ".target sm_") &&
                sscanf(strstr(text, ".target sm_"), ".target sm_%d", &made) == 1)) {
        if (made > device) return end(NO_BINARY);
        note("module ptx %d", made);
    } else if (memcmp(text, "\177ELF", 4) == 0)
        note("module elf");
    else
        return end(INVALID_IMAGE);
    modules++;
    *module = calloc(1, sizeof(struct module));
    ((struct module *)*module)->context = stack[depth - 1];
    return end(SUCCESS);
}
CUresult cuModuleUnload(void *module) {
    BEGIN(1);
    modules--;
    free(module);
    return end(SUCCESS);
}
CUresult cuModuleGetFunction(void **function, void *module, const char *symbol) {
    static void *library;
    struct function *f;
    char name[250];
    void *found;
    BEGIN(1);
    if (!library && !(library = dlopen(getenv("FAKE_CUDA_KERNELS"), RTLD_NOW | RTLD_LOCAL))) misuse(dlerror());
    snprintf(name, sizeof name, "launch_%s", symbol);
    if (!(found = dlsym(library, name))) return end(NOT_FOUND);
    f = calloc(1, sizeof *f);
    snprintf(f->symbol, sizeof f->symbol, "%s", symbol);
    memcpy(&f->launch, &found, sizeof found);
    snprintf(name, sizeof name, "parameters_%s", symbol);
    if (!(f->sizes = (const unsigned *)dlsym(library, name))) misuse("a kernel does not say its parameters");
    f->context = ((struct module *)module)->context;
    f->shared = 48 << 10;
    f->next = functions;
    functions = f;
    *function = f;
    return end(SUCCESS);
}
CUresult cuFuncGetAttribute(int *value, int attribute, void *function) {
    BEGIN(1);
    (void)function;
    *value = attribute == 0 ? (int)setting("FAKE_CUDA_THREADS", 1024) : 0;
    return end(SUCCESS);
}
CUresult cuFuncSetAttribute(void *function, int attribute, int value) {
    BEGIN(1);
    if (attribute != 8 || value > LARGEST_SHARED) return end(INVALID_VALUE);
    ((struct function *)function)->shared = value;
    return end(SUCCESS);
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads, size_t shared) {
    BEGIN(1);
    (void)function, (void)threads, (void)shared;
    *blocks = (int)setting("FAKE_CUDA_OCCUPANCY", 2);
    return end(SUCCESS);
}

static CUresult launch(const char *how, struct function *f, const unsigned *grid, const unsigned *block, unsigned shared,
                       void *stream, void **arguments) {
    struct work *w;
    if (f->context != stack[depth - 1]) misuse("a kernel of another context is launched");
    if (!grid[0] || !grid[1] || !grid[2] || grid[0] > 2147483647u || grid[1] > 65535 || grid[2] > 65535)
        return INVALID_VALUE;
    if (shared > (unsigned)f->shared) return INVALID_VALUE;
    if ((long)block[0] * block[1] * block[2] > setting("FAKE_CUDA_THREADS", 1024)) return OUT_OF_RESOURCES;
    w = queue(stream, KERNEL);
    w->function = f;
    memcpy(w->grid, grid, sizeof w->grid);
    memcpy(w->block, block, sizeof w->block);
    w->shared = shared;
    set_arguments(w, arguments);
    note("%s%s %s %ux%ux%u %ux%ux%u %u", captured(stream), how, f->symbol, grid[0], grid[1], grid[2], block[0], block[1],
         block[2], shared);
    if (*captured(stream)) note("depth %d", w->depth);
    return SUCCESS;
}
CUresult cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, void *stream, void **arguments, void **extra) {
    unsigned grid[3] = {x, y, z}, block[3] = {bx, by, bz};
    BEGIN(1);
    (void)extra;
    return end(launch("launch", (struct function *)function, grid, block, shared, stream, arguments));
}
CUresult cuLaunchCooperativeKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by,
                                   unsigned bz, unsigned shared, void *stream, void **arguments) {
    unsigned grid[3] = {x, y, z}, block[3] = {bx, by, bz};
    BEGIN(1);
    if (x > (unsigned)(setting("FAKE_CUDA_OCCUPANCY", 2) * setting("FAKE_CUDA_MULTIPROCESSORS", 132)))
        return end(TOO_LARGE);
    return end(launch("together", (struct function *)function, grid, block, shared, stream, arguments));
}

__attribute__((destructor)) static void say_what_is_left(void) {
    int k, retained = 0, pinned_left = 0;
    if (!initialised || owner != getpid()) return;
    while (functions) {
        struct function *f = functions;
        functions = f->next;
        free(f);
    }
    for (k = 0; k < MOST_DEVICES; k++) retained += contexts[k].retained;
    for (k = 0; k < 64; k++) pinned_left += pinned[k].at != NULL;
    if (graphs) note("misuse: %d graphs are left", graphs);
    note("left: %zu bytes, %d pinned, %d modules, %d streams, %d events, %d contexts", allocated, pinned_left, modules,
         streams, events, retained);
}
