/* Run codelets on an NVIDIA GPU: see looptune_runtime.h.
 *
 *     the driver        libcuda, opened when first needed; which errors leave the device usable
 *     the device        its context, one stream, pinned memory for transfers, memory that is used again
 *     machine code      the best image of a kernel, loaded once
 *     arrays            copies of the host's arrays on the device, and which side is current
 *     selection         of the tuned version
 *     calls             and the public functions
 *     checking, report  LOOPTUNE_CHECK, LOOPTUNE_VERBOSE
 *
 * One lock serves all: a call holds it from its first transfer to its last, and not while loops run on the host.
 */
#if !defined(_POSIX_C_SOURCE) && !defined(_GNU_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif
#include "looptune_runtime.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Several objects of a program may define these functions: the linker takes all of them from one. */
#define LOOPTUNE_WEAK LOOPTUNE_HIDDEN __attribute__((weak))

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the driver ---- */

typedef void *cu_handle; /* of a context, stream, event, module or function */

#define DRIVER_FUNCTIONS(X)                                                                                          \
    X(init, "cuInit", (unsigned flags))                                                                              \
    X(get_count, "cuDeviceGetCount", (int *count))                                                                   \
    X(get_device, "cuDeviceGet", (int *device, int number))                                                          \
    X(get_name, "cuDeviceGetName", (char *name, int length, int device))                                             \
    X(get_attribute, "cuDeviceGetAttribute", (int *value, int attribute, int device))                                \
    X(retain_context, "cuDevicePrimaryCtxRetain", (cu_handle *context, int device))                                  \
    X(release_context, "cuDevicePrimaryCtxRelease_v2", (int device))                                                 \
    X(push_context, "cuCtxPushCurrent_v2", (cu_handle context))                                                      \
    X(pop_context, "cuCtxPopCurrent_v2", (cu_handle *context))                                                       \
    X(current_context, "cuCtxGetCurrent", (cu_handle *context))                                                      \
    X(current_device, "cuCtxGetDevice", (int *device))                                                               \
    X(create_stream, "cuStreamCreate", (cu_handle *stream, unsigned flags))                                          \
    X(wait_stream, "cuStreamSynchronize", (cu_handle stream))                                                        \
    X(destroy_stream, "cuStreamDestroy_v2", (cu_handle stream))                                                      \
    X(create_event, "cuEventCreate", (cu_handle *event, unsigned flags))                                             \
    X(record_event, "cuEventRecord", (cu_handle event, cu_handle stream))                                            \
    X(wait_event, "cuEventSynchronize", (cu_handle event))                                                           \
    X(elapsed, "cuEventElapsedTime", (float *milliseconds, cu_handle start, cu_handle end))                          \
    X(destroy_event, "cuEventDestroy_v2", (cu_handle event))                                                         \
    X(allocate, "cuMemAlloc_v2", (looptune_address *at, size_t bytes))                                               \
    X(free_memory, "cuMemFree_v2", (looptune_address at))                                                            \
    X(allocate_pinned, "cuMemHostAlloc", (void **at, size_t bytes, unsigned flags))                                  \
    X(free_pinned, "cuMemFreeHost", (void *at))                                                                      \
    X(copy_to, "cuMemcpyHtoDAsync_v2", (looptune_address to, const void *from, size_t bytes, cu_handle stream))      \
    X(copy_from, "cuMemcpyDtoHAsync_v2", (void *to, looptune_address from, size_t bytes, cu_handle stream))          \
    X(set_bytes, "cuMemsetD8Async", (looptune_address at, unsigned char value, size_t bytes, cu_handle stream))      \
    X(load_module, "cuModuleLoadDataEx",                                                                             \
      (cu_handle *module, const void *image, unsigned options, int *names, void **values))                           \
    X(unload_module, "cuModuleUnload", (cu_handle module))                                                           \
    X(get_function, "cuModuleGetFunction", (cu_handle *function, cu_handle module, const char *symbol))              \
    X(get_function_attribute, "cuFuncGetAttribute", (int *value, int attribute, cu_handle function))                 \
    X(set_function_attribute, "cuFuncSetAttribute", (cu_handle function, int attribute, int value))                  \
    X(get_occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor",                                                  \
      (int *blocks, cu_handle function, int threads, size_t shared))                                                 \
    X(launch, "cuLaunchKernel",                                                                                      \
      (cu_handle function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,                \
       unsigned shared, cu_handle stream, void **arguments, void **extra))                                           \
    X(launch_together, "cuLaunchCooperativeKernel",                                                                  \
      (cu_handle function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,                \
       unsigned shared, cu_handle stream, void **arguments))                                                         \
    X(get_error_name, "cuGetErrorName", (int error, const char **name))

/* Those that older drivers lack. */
#define NEWER_DRIVER_FUNCTIONS(X)                                                                                    \
    X(context_number, "cuCtxGetId", (cu_handle context, unsigned long long *number))                                 \
    X(allocate_in_order, "cuMemAllocAsync", (looptune_address *at, size_t bytes, cu_handle stream))                  \
    X(free_in_order, "cuMemFreeAsync", (looptune_address at, cu_handle stream))

#define MEMBER(name, symbol, parameters) int(*name) parameters;
static struct { DRIVER_FUNCTIONS(MEMBER) NEWER_DRIVER_FUNCTIONS(MEMBER) } cuda;
#undef MEMBER

enum {
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_FIRST_OF_CAPTURE = 900,    /* what is not allowed while a stream is captured */
    MOST_THREADS_PER_BLOCK = 0,     /* CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK */
    MOST_DYNAMIC_SHARED = 8,        /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
    MULTIPROCESSORS = 16,           /* CU_DEVICE_ATTRIBUTE_… */
    CAPABILITY_MAJOR = 75,
    CAPABILITY_MINOR = 76,
    WITHOUT_TIMING = 2,             /* CU_EVENT_DISABLE_TIMING */
    NON_BLOCKING = 1                /* CU_STREAM_NON_BLOCKING: not ordered with the default stream */
};
static const unsigned long long STAGED_AT_ONCE = 4ull << 20; /* bytes of each half of the pinned memory */
static const int EXIT_LOST = 70;                             /* EX_SOFTWARE */
#define LARGEST_SHARED (48u << 10) /* bytes of dynamic shared memory that need no permission */

struct device {
    char name[128];
    int number, multiprocessors, capability;
};

/* Memory of the device that a call has used and a later one may use. */
struct block {
    looptune_address at;
    unsigned long long bytes;
    struct block *next;
};

/* The copy on the device of `bytes` from `host` on. No two of them overlap. `current`: it has what the host has, or
   something newer; `newer`: the host has not got it yet, and `owner`'s synchronize fetches it (NULL: it is kept). */
struct mirror {
    const char *name;
    char *host;
    unsigned long long bytes;
    struct block *memory;
    int current, newer;
    struct looptune_codelet *owner;
    unsigned long long used; /* number of the last call that used it */
    struct mirror *next;
};

struct loaded_module {
    const void *code;
    unsigned long long context;
    cu_handle handle;
    struct loaded_module *next;
};

struct loaded_kernel {
    const struct looptune_kernel *kernel;
    unsigned long long context;
    cu_handle function;
    int status, again; /* again: what failed may work later */
    char reason[200];
    struct loaded_kernel *next;
};

enum { LEVEL_EXACT, LEVEL_DEVICE, LEVEL_CAPABILITY, LEVEL_FAMILY, LEVEL_PREDICTED, LEVEL_DEFAULT, LEVEL_HOST, LEVEL_COUNT };
static const char *const LEVELS[LEVEL_COUNT] = {
    "exact", "same device", "same capability", "same family", "predicted", "default", "host"};

struct choice {
    looptune_plan plan;
    const struct looptune_version *version; /* NULL for the default */
    int level;
};

/* How often a version ran. */
struct ran {
    const struct looptune_version *version;
    int level;
    unsigned long calls;
    struct ran *next;
};

struct codelet_state {
    struct looptune_codelet *codelet;
    struct ran *ran;
    int levels_told[LEVEL_COUNT], default_told;
    unsigned long on_device, on_host[LOOPTUNE_REFUSED + 1];
    double kernel_seconds, to_seconds, from_seconds, host_seconds;
    unsigned long long to_bytes, from_bytes;
    cu_handle begun, ended; /* events around the launches */
    int timing;             /* they are recorded, and not read */
    int cached;             /* `sizes` and `choice` are those of the last call */
    const struct device *cached_for;
    long long *sizes;
    struct choice choice;
    unsigned long compared, differing;
    double worst; /* error over tolerance */
    struct codelet_state *next;
};

/* What the device computed in a checked call, until its thread compares it. */
struct checked {
    struct looptune_codelet *codelet;
    pthread_t thread;
    int count;
    void **copies;
    struct checked *next;
};

enum opened { NOT_YET, READY, UNAVAILABLE };

static struct {
    int set_up;
    pid_t process;
    int used_in_parent; /* CUDA cannot be used in this process: its parent used it */
    int verbose, timed, check;
    int left;
    enum opened driver, own_device;
    char unavailable[300]; /* why */
    int unavailable_told;
    int lost;              /* no call of the driver works any more */
    int error;             /* the last one of the driver */
    struct device *devices;
    int device_count;
    const struct device *device;
    cu_handle context, stream;
    unsigned long long context_number;
    char *staging; /* two halves */
    int staging_pinned;
    unsigned long long staged; /* bytes of the half in use */
    int half;
    cu_handle half_free[2];
    looptune_address nowhere; /* of arrays without elements */
    struct block *unused;
    struct mirror *mirrors;
    struct loaded_module *modules;
    struct loaded_kernel *kernels[256];
    struct codelet_state *codelets;
    struct checked *checked;
    unsigned long long calls;
    unsigned long long loaded_bytes, stored_bytes; /* by data directives */
    double loaded_seconds, stored_seconds;
    char reason[300]; /* of the last status that is not LOOPTUNE_OK */
} all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A call while it runs. First `checking`: a plan is run without launches, so that what cannot be launched is known
   before anything is. Then for real, with the same `scratch`. */
struct looptune_run {
    cu_handle stream;
    unsigned long long context;
    const struct device *device;
    int own_stream, checking, status, launched;
    struct block *scratch, *next_scratch;
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static unsigned long long smaller(unsigned long long a, unsigned long long b) { return a < b ? a : b; }

/* Memory of the host that the runtime cannot do without. */
static void *needed(void *at) {
    if (!at) {
        fputs("looptune: out of memory\n", stderr);
        abort();
    }
    return at;
}
static void *zeros(size_t count, size_t size) { return needed(calloc(count ? count : 1, size)); }

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...) {
    char line[1200];
    va_list values;
    va_start(values, format);
    vsnprintf(line, sizeof line, format, values);
    va_end(values);
    fprintf(stderr, "looptune: %s\n", line);
}

__attribute__((format(printf, 2, 3))) static int because(int status, const char *format, ...) {
    va_list values;
    va_start(values, format);
    vsnprintf(all.reason, sizeof all.reason, format, values);
    va_end(values);
    return status;
}

/* What is left of an error that the driver returns: these concern one call, after all others nothing works. */
static int leaves_device_usable(int error) {
    static const int harmless[] = {1,   /* INVALID_VALUE */
                                   2,   /* OUT_OF_MEMORY */
                                   200, /* INVALID_IMAGE */
                                   209, /* NO_BINARY_FOR_GPU */
                                   218, 221, 222, 223, /* of the compiler of PTX */
                                   301, 400, 500, /* FILE_NOT_FOUND, INVALID_HANDLE, NOT_FOUND */
                                   701, /* LAUNCH_OUT_OF_RESOURCES */
                                   720, /* COOPERATIVE_LAUNCH_TOO_LARGE */
                                   800, 801, /* NOT_PERMITTED, NOT_SUPPORTED */
                                   900, 901, 906}; /* what a stream does not allow while it is captured */
    size_t k;
    for (k = 0; k < sizeof harmless / sizeof *harmless; k++)
        if (error == harmless[k]) return 1;
    return 0;
}

/* Whether a call of the driver worked; if not, the reason is kept, and whether the device can still be used. */
static int worked(int error, const char *call) {
    const char *name = NULL;
    if (error == 0) return 1;
    all.error = error;
    if (all.lost) { /* the first error is the cause */
        because(LOOPTUNE_FAILED, "%s", all.unavailable);
        return 0;
    }
    if (!cuda.get_error_name || cuda.get_error_name(error, &name) != 0 || !name) name = "an unknown error";
    because(LOOPTUNE_FAILED, "%s: %s (%d)", call, name, error);
    if (all.driver == READY && !leaves_device_usable(error)) {
        all.lost = 1;
        snprintf(all.unavailable, sizeof all.unavailable, "the device failed: %.200s", all.reason);
        if (all.verbose && !all.left) say("%s; it is not used again", all.unavailable);
    }
    return 0;
}

/* End the program: what it would go on with is wrong. */
static void lose(const char *name) {
    fprintf(stderr, "looptune: the contents of %s were on the device only, and are lost (%s): the program ends\n", name,
            all.lost || all.used_in_parent || all.left ? all.unavailable : all.reason);
    pthread_mutex_unlock(&lock);
    if (all.left) {
        fflush(NULL);
        _exit(EXIT_LOST);
    }
    exit(EXIT_LOST);
}

static int enabled(const char *variable) {
    const char *value = getenv(variable);
    return value && *value && strcmp(value, "0") != 0;
}

static void at_exit(void);
static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }

static void forget_counts(void);

/* In a child: what its parent did with CUDA cannot be used. */
static void note_process(void) {
    if (all.process == getpid()) return;
    all.process = getpid();
    forget_counts();
    if (all.driver != READY) return;
    all.used_in_parent = 1;
    snprintf(all.unavailable, sizeof all.unavailable,
             "this process was forked by one that had used CUDA, which works in that one only");
}
static void in_child(void) {
    note_process();
    pthread_mutex_unlock(&lock);
}

static void set_up(void) {
    if (!all.set_up) {
        all.set_up = 1;
        all.process = getpid();
        all.verbose = enabled("LOOPTUNE_VERBOSE");
        all.timed = all.verbose || (getenv("LOOPTUNE_REPORT") && *getenv("LOOPTUNE_REPORT"));
        all.check = enabled("LOOPTUNE_CHECK");
        pthread_atfork(before_fork, after_fork, in_child);
        atexit(at_exit);
    }
    note_process();
}

static int unavailable(void) { return because(LOOPTUNE_NO_DEVICE, "%s", all.unavailable); }

static void find_functions(void *library) {
    static const struct {
        const char *symbol;
        void *at;
        int newer;
    } functions[] = {
#define ENTRY(name, symbol, parameters) {symbol, &cuda.name, 0},
        DRIVER_FUNCTIONS(ENTRY)
#undef ENTRY
#define ENTRY(name, symbol, parameters) {symbol, &cuda.name, 1},
            NEWER_DRIVER_FUNCTIONS(ENTRY)
#undef ENTRY
    };
    size_t k;
    for (k = 0; k < sizeof functions / sizeof *functions; k++) {
        void *found = dlsym(library, functions[k].symbol);
        memcpy(functions[k].at, &found, sizeof found);
        if (!found && !functions[k].newer && all.driver != UNAVAILABLE) {
            all.driver = UNAVAILABLE;
            snprintf(all.unavailable, sizeof all.unavailable, "libcuda.so.1 is too old: it has no %s",
                     functions[k].symbol);
        }
    }
}

static int describe(struct device *d, int number) {
    int device, major, minor;
    if (!worked(cuda.get_device(&device, number), "cuDeviceGet") ||
        !worked(cuda.get_name(d->name, (int)sizeof d->name - 1, device), "cuDeviceGetName") ||
        !worked(cuda.get_attribute(&d->multiprocessors, MULTIPROCESSORS, device), "cuDeviceGetAttribute") ||
        !worked(cuda.get_attribute(&major, CAPABILITY_MAJOR, device), "cuDeviceGetAttribute") ||
        !worked(cuda.get_attribute(&minor, CAPABILITY_MINOR, device), "cuDeviceGetAttribute"))
        return 0;
    d->number = device;
    d->capability = major * 10 + minor;
    return 1;
}

static void find_devices(void) {
    int k;
    if (!worked(cuda.init(0), "cuInit") || !worked(cuda.get_count(&all.device_count), "cuDeviceGetCount")) {
        all.driver = UNAVAILABLE;
        snprintf(all.unavailable, sizeof all.unavailable, "no device: %.200s", all.reason);
        return;
    }
    all.driver = READY;
    atexit(at_exit); /* again: before what libcuda does there */
    all.devices = (struct device *)zeros((size_t)all.device_count, sizeof *all.devices);
    for (k = 0; k < all.device_count; k++)
        if (!describe(&all.devices[k], k)) {
            all.lost = 1;
            snprintf(all.unavailable, sizeof all.unavailable, "no device: %.200s", all.reason);
        }
}

/* The number that LOOPTUNE_DEVICE asks for; -1 for none. */
static long wanted_device(void) {
    const char *text = getenv("LOOPTUNE_DEVICE");
    char *end;
    long number;
    if (!text) return 0;
    if (strcmp(text, "none") == 0) return -1;
    number = strtol(text, &end, 10);
    if (*text >= '0' && *text <= '9' && *end == 0 && number < 1 << 20) return number;
    say("LOOPTUNE_DEVICE is \"%s\": it is none, or the number of a device; no device is used", text);
    return -1;
}

/* Load libcuda; LOOPTUNE_OK or why there is no device. */
static int open_driver(void) {
    void *library;
    set_up();
    if (all.used_in_parent || all.lost || all.left) return unavailable();
    if (all.driver == NOT_YET) {
        if (wanted_device() < 0) {
            all.driver = UNAVAILABLE;
            snprintf(all.unavailable, sizeof all.unavailable, "LOOPTUNE_DEVICE is %s", getenv("LOOPTUNE_DEVICE"));
        } else if (!(library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL))) {
            const char *error = dlerror();
            all.driver = UNAVAILABLE;
            snprintf(all.unavailable, sizeof all.unavailable, "no libcuda: %.200s", error ? error : "it is not found");
        } else {
            find_functions(library);
            if (all.driver != UNAVAILABLE) find_devices();
        }
    }
    return all.driver == READY && !all.lost ? LOOPTUNE_OK : unavailable();
}

/* ---- the device ---- */

static unsigned long long number_of(cu_handle context) {
    unsigned long long number;
    if (cuda.context_number && cuda.context_number(context, &number) == 0) return number;
    return (unsigned long long)(uintptr_t)context;
}

static int make_context(void) {
    cu_handle popped;
    int made;
    if (!worked(cuda.retain_context(&all.context, all.device->number), "cuDevicePrimaryCtxRetain")) return 0;
    if (!worked(cuda.push_context(all.context), "cuCtxPushCurrent")) return 0;
    all.context_number = number_of(all.context);
    made = worked(cuda.create_stream(&all.stream, NON_BLOCKING), "cuStreamCreate") &&
           worked(cuda.create_event(&all.half_free[0], WITHOUT_TIMING), "cuEventCreate") &&
           worked(cuda.create_event(&all.half_free[1], WITHOUT_TIMING), "cuEventCreate") &&
           worked(cuda.allocate(&all.nowhere, 256), "cuMemAlloc");
    cuda.pop_context(&popped);
    return made;
}

/* The device that the program uses. */
static int open_device(void) {
    long number;
    int status = open_driver();
    if (status != LOOPTUNE_OK) return status;
    if (all.own_device == NOT_YET) {
        all.own_device = UNAVAILABLE;
        number = wanted_device();
        if (all.device_count == 0)
            snprintf(all.unavailable, sizeof all.unavailable, "no device: libcuda finds none");
        else if (number >= all.device_count) {
            snprintf(all.unavailable, sizeof all.unavailable, "LOOPTUNE_DEVICE is %ld: the number of devices is %d",
                     number, all.device_count);
            say("%s; no device is used", all.unavailable);
        } else {
            all.device = &all.devices[number];
            if (make_context())
                all.own_device = READY;
            else
                snprintf(all.unavailable, sizeof all.unavailable, "no device: %.200s", all.reason);
        }
    }
    return all.own_device == READY ? LOOPTUNE_OK : unavailable();
}

/* Take the lock, and make the context of the device current; `leave` undoes both. */
static int enter(void) {
    int status;
    pthread_mutex_lock(&lock);
    status = open_device();
    if (status == LOOPTUNE_OK && !worked(cuda.push_context(all.context), "cuCtxPushCurrent")) status = LOOPTUNE_FAILED;
    return status;
}
static void leave(int status) {
    cu_handle popped;
    if (status == LOOPTUNE_OK) cuda.pop_context(&popped);
    pthread_mutex_unlock(&lock);
}

/* Wait until all that was queued is done. */
static int finish_queued(void) {
    if (all.lost || !worked(cuda.wait_stream(all.stream), "cuStreamSynchronize")) return 0;
    all.staged = 0;
    all.half = 0;
    return 1;
}

static int have_staging(void) {
    void *memory = NULL;
    if (all.staging) return 1;
    all.staging_pinned = cuda.allocate_pinned(&memory, 2 * STAGED_AT_ONCE, 0) == 0;
    if (!all.staging_pinned) memory = malloc(2 * STAGED_AT_ONCE); /* the driver then copies once more */
    all.staging = (char *)memory;
    return memory != NULL || because(LOOPTUNE_NO_MEMORY, "no memory of the host for transfers") == LOOPTUNE_OK;
}

/* Queue the copying of an array to the device. The host may change it at once. */
static int send_bytes(looptune_address to, const char *from, unsigned long long bytes) {
    if (!have_staging()) return 0;
    while (bytes) {
        unsigned long long part;
        char *at;
        if (all.staged == STAGED_AT_ONCE) {
            if (!worked(cuda.record_event(all.half_free[all.half], all.stream), "cuEventRecord")) return 0;
            all.half = !all.half;
            all.staged = 0;
            if (!worked(cuda.wait_event(all.half_free[all.half]), "cuEventSynchronize")) return 0;
        }
        part = smaller(bytes, STAGED_AT_ONCE - all.staged);
        at = all.staging + (all.half ? STAGED_AT_ONCE : 0) + all.staged;
        memcpy(at, from, part);
        if (!worked(cuda.copy_to(to, at, part, all.stream), "cuMemcpyHtoDAsync")) return 0;
        all.staged = smaller(STAGED_AT_ONCE, all.staged + (part + 63) / 64 * 64);
        to += part;
        from += part;
        bytes -= part;
    }
    return 1;
}

/* A part of an array on its way to the host. */
struct piece {
    char *to;
    looptune_address from;
    unsigned long long bytes;
    int precious; /* what the host has there is needed if the transfer fails */
};

/* Copy small pieces at once: nothing is written to the host unless all of them have arrived. */
static int fetch_together(const struct piece *pieces, int count) {
    unsigned long long at = 0;
    int k;
    for (k = 0; k < count; at += (pieces[k++].bytes + 63) / 64 * 64)
        if (!worked(cuda.copy_from(all.staging + at, pieces[k].from, pieces[k].bytes, all.stream), "cuMemcpyDtoHAsync"))
            return 0;
    if (!finish_queued()) return 0;
    for (k = 0, at = 0; k < count; at += (pieces[k++].bytes + 63) / 64 * 64)
        memcpy(pieces[k].to, all.staging + at, pieces[k].bytes);
    return 1;
}

/* Copy a large piece in parts: while one is on its way, the one before is copied from the pinned memory. */
static int fetch_in_parts(const struct piece *p, int *written) {
    unsigned long long done = 0, queued = 0, arriving[2] = {0, 0};
    int half = 0;
    while (done < p->bytes) {
        unsigned long long part = smaller(p->bytes - queued, STAGED_AT_ONCE);
        if (part) {
            if (!worked(cuda.copy_from(all.staging + (half ? STAGED_AT_ONCE : 0), p->from + queued, part, all.stream),
                        "cuMemcpyDtoHAsync") ||
                !worked(cuda.record_event(all.half_free[half], all.stream), "cuEventRecord"))
                return 0;
            queued += part;
        }
        arriving[half] = part;
        half = !half;
        if (arriving[half]) {
            if (!worked(cuda.wait_event(all.half_free[half]), "cuEventSynchronize")) return 0;
            memcpy(p->to + done, all.staging + (half ? STAGED_AT_ONCE : 0), arriving[half]);
            *written = 1;
            done += arriving[half];
        }
    }
    return 1;
}

/* Copy pieces to the host. 0 if that failed; `*harmed` then says whether something precious was overwritten. */
static int fetch(const struct piece *pieces, int count, int *harmed) {
    unsigned long long total = 0;
    int k, precious;
    *harmed = 0;
    if (!finish_queued() || !have_staging()) return 0;
    for (k = 0; k < count; k++) total += (pieces[k].bytes + 63) / 64 * 64;
    if (total <= 2 * STAGED_AT_ONCE) return fetch_together(pieces, count);
    for (precious = 0; precious < 2; precious++)
        for (k = 0; k < count; k++) {
            int written = 0;
            if (pieces[k].precious != precious) continue;
            if (!fetch_in_parts(&pieces[k], &written)) {
                *harmed |= precious && written;
                return 0;
            }
            *harmed |= precious;
        }
    *harmed = 0;
    return 1;
}

static void free_block(struct block *b) {
    if (!all.lost && !all.used_in_parent) worked(cuda.free_memory(b->at), "cuMemFree");
    free(b);
}
static void put_back(struct block *b) {
    b->next = all.unused;
    all.unused = b;
}
static void free_unused(void) {
    while (all.unused) {
        struct block *b = all.unused;
        all.unused = b->next;
        free_block(b);
    }
}

static void drop(struct mirror *m) {
    struct mirror **link = &all.mirrors;
    while (*link != m) link = &(*link)->next;
    *link = m->next;
    if (m->memory) put_back(m->memory);
    free(m);
}

/* Drop the copy that no call has used for longest: 0 if all are needed. */
static int drop_oldest(void) {
    struct mirror *m, *oldest = NULL;
    for (m = all.mirrors; m; m = m->next)
        if (!m->newer && m->used != all.calls && (!oldest || m->used < oldest->used)) oldest = m;
    if (oldest) drop(oldest);
    return oldest != NULL;
}

/* Memory of the device: one that was used before and is at most twice as large, else new memory. */
static struct block *take(unsigned long long bytes) {
    struct block **link, **best = NULL, *b;
    int error;
    bytes = (bytes + 511) / 512 * 512;
    for (link = &all.unused; *link; link = &(*link)->next)
        if ((*link)->bytes >= bytes && (*link)->bytes / 2 <= bytes && (!best || (*link)->bytes < (*best)->bytes))
            best = link;
    if (best) {
        b = *best;
        *best = b->next;
        return b;
    }
    b = (struct block *)zeros(1, sizeof *b);
    b->bytes = bytes;
    error = cuda.allocate(&b->at, bytes);
    while (error == CUDA_OUT_OF_MEMORY && (all.unused || drop_oldest())) {
        free_unused();
        error = all.lost ? error : cuda.allocate(&b->at, bytes);
    }
    if (worked(error, "cuMemAlloc")) return b;
    if (error == CUDA_OUT_OF_MEMORY) because(LOOPTUNE_NO_MEMORY, "the device has no %llu bytes left", bytes);
    free(b);
    return NULL;
}

/* ---- machine code ---- */

/* How well an image fits a device: larger is better, 0 does not run. */
static int fitness(const struct looptune_image *image, int capability) {
    if (image->is_ptx) return image->capability <= capability ? 1 + image->capability : 0;
    if (image->capability / 10 != capability / 10 || image->capability > capability) return 0;
    return 10000 + image->capability;
}

static cu_handle load_image(const struct looptune_image *image, unsigned long long context) {
    struct loaded_module *m;
    for (m = all.modules; m; m = m->next)
        if (m->code == image->code && m->context == context) return m->handle;
    m = (struct loaded_module *)zeros(1, sizeof *m);
    m->code = image->code;
    m->context = context;
    if (!worked(cuda.load_module(&m->handle, image->code, 0, NULL, NULL), "cuModuleLoadDataEx")) {
        free(m);
        return NULL;
    }
    m->next = all.modules;
    all.modules = m;
    return m->handle;
}

/* The best image that the driver accepts. */
static cu_handle load_best(const struct looptune_kernel *kernel, const struct looptune_run *run) {
    int below = 1 << 30;
    because(LOOPTUNE_NO_CODE, "no machine code of %s is for sm_%d", kernel->name, run->device->capability);
    for (;;) {
        const struct looptune_image *best = NULL;
        cu_handle module;
        int k, found = 0;
        for (k = 0; k < kernel->image_count; k++) {
            int fits = fitness(&kernel->images[k], run->device->capability);
            if (fits > found && fits < below) {
                best = &kernel->images[k];
                found = fits;
            }
        }
        if (!best) return NULL;
        module = load_image(best, run->context);
        if (module || all.lost) return module;
        below = found;
    }
}

static int prepare(struct loaded_kernel *k, const struct looptune_run *run) {
    const struct looptune_kernel *kernel = k->kernel;
    long long threads = (long long)kernel->block[0] * kernel->block[1] * kernel->block[2];
    int most = 0;
    cu_handle module = load_best(kernel, run);
    if (!module) return LOOPTUNE_NO_CODE;
    if (!worked(cuda.get_function(&k->function, module, kernel->symbol), "cuModuleGetFunction"))
        return LOOPTUNE_NO_CODE;
    if (!worked(cuda.get_function_attribute(&most, MOST_THREADS_PER_BLOCK, k->function), "cuFuncGetAttribute"))
        return LOOPTUNE_FAILED;
    if (threads > most)
        return because(LOOPTUNE_BAD_GRID, "%s needs %lld threads per block, the limit is %d", kernel->name, threads,
                       most);
    if (kernel->shared_bytes > LARGEST_SHARED &&
        !worked(cuda.set_function_attribute(k->function, MOST_DYNAMIC_SHARED, (int)kernel->shared_bytes),
                "cuFuncSetAttribute"))
        return because(LOOPTUNE_BAD_GRID, "%s needs %u bytes of shared memory, which %s does not have", kernel->name,
                       kernel->shared_bytes, run->device->name);
    return LOOPTUNE_OK;
}

/* The function of a kernel in the context of a run, loaded when first needed. */
static struct loaded_kernel *loaded(const struct looptune_kernel *kernel, const struct looptune_run *run) {
    struct loaded_kernel **list = &all.kernels[((uintptr_t)kernel >> 4) % 256], *k;
    for (k = *list; k; k = k->next)
        if (k->kernel == kernel && k->context == run->context) break;
    if (!k) {
        k = (struct loaded_kernel *)zeros(1, sizeof *k);
        k->kernel = kernel;
        k->context = run->context;
        k->again = 1;
        k->next = *list;
        *list = k;
    }
    if (k->again) {
        all.error = 0;
        k->status = prepare(k, run);
        k->again = all.error == CUDA_OUT_OF_MEMORY || all.error >= CUDA_FIRST_OF_CAPTURE;
        if (k->status != LOOPTUNE_OK) snprintf(k->reason, sizeof k->reason, "%.199s", all.reason);
    }
    if (k->status != LOOPTUNE_OK) because(k->status, "%s", k->reason);
    return k;
}

static int launched(struct looptune_run *run, int error, const char *call) {
    if (worked(error, call))
        run->launched = 1;
    else
        run->status = LOOPTUNE_FAILED;
    return run->status;
}

LOOPTUNE_WEAK int looptune_launch(struct looptune_run *run, const struct looptune_kernel *kernel, long long x,
                                  long long y, long long z, void **arguments) {
    const struct loaded_kernel *k;
    const unsigned *b = kernel->block;
    if (run->status != LOOPTUNE_OK || x <= 0 || y <= 0 || z <= 0) return run->status;
    if (x > 2147483647 || y > 65535 || z > 65535)
        return run->status = because(LOOPTUNE_BAD_GRID, "%s needs %lld x %lld x %lld blocks, the limits are "
                                     "2147483647 x 65535 x 65535", kernel->name, x, y, z);
    k = loaded(kernel, run);
    if (k->status != LOOPTUNE_OK) return run->status = k->status;
    if (run->checking) return LOOPTUNE_OK;
    return launched(run, cuda.launch(k->function, (unsigned)x, (unsigned)y, (unsigned)z, b[0], b[1], b[2],
                                     kernel->shared_bytes, run->stream, arguments, NULL), "cuLaunchKernel");
}

LOOPTUNE_WEAK int looptune_launch_together(struct looptune_run *run, const struct looptune_kernel *kernel, int each,
                                           void **arguments) {
    const struct loaded_kernel *k;
    const unsigned *b = kernel->block;
    int fit = 0;
    if (run->status != LOOPTUNE_OK || each <= 0) return run->status;
    k = loaded(kernel, run);
    if (k->status != LOOPTUNE_OK) return run->status = k->status;
    if (run->checking) {
        if (!worked(cuda.get_occupancy(&fit, k->function, (int)(b[0] * b[1] * b[2]), kernel->shared_bytes),
                    "cuOccupancyMaxActiveBlocksPerMultiprocessor"))
            return run->status = LOOPTUNE_FAILED;
        if (fit < each)
            run->status = because(LOOPTUNE_BAD_GRID, "%s needs %d blocks at one time on every multiprocessor, %d fit",
                                  kernel->name, each, fit);
        return run->status;
    }
    return launched(run, cuda.launch_together(k->function, (unsigned)(each * run->device->multiprocessors), 1, 1, b[0],
                                              b[1], b[2], kernel->shared_bytes, run->stream, arguments),
                    "cuLaunchCooperativeKernel");
}

/* Memory that is ordered with the caller's stream, if the driver can do that. */
static struct block *take_for(const struct looptune_run *run, unsigned long long bytes) {
    struct block *b;
    int error;
    if (run->own_stream) return take(bytes);
    b = (struct block *)zeros(1, sizeof *b);
    b->bytes = bytes;
    if (cuda.allocate_in_order && cuda.free_in_order)
        error = cuda.allocate_in_order(&b->at, bytes, run->stream);
    else
        error = cuda.allocate(&b->at, bytes);
    if (worked(error, "cuMemAlloc")) return b;
    free(b);
    return NULL;
}

LOOPTUNE_WEAK looptune_address looptune_scratch(struct looptune_run *run, unsigned long long bytes, int zeroed) {
    struct block *b, **end;
    if (run->status != LOOPTUNE_OK) return 0;
    if (bytes == 0) bytes = 1;
    if (run->checking) {
        b = take_for(run, bytes);
        if (!b) {
            run->status = all.lost ? LOOPTUNE_FAILED : LOOPTUNE_NO_MEMORY;
            return 0;
        }
        b->next = NULL;
        for (end = &run->scratch; *end; end = &(*end)->next) {}
        *end = b;
        return b->at;
    }
    b = run->next_scratch;
    if (!b || b->bytes < bytes) { /* the plan asks for other memory than when it was checked */
        run->status = because(LOOPTUNE_FAILED, "a plan does not ask for the same memory twice");
        return 0;
    }
    run->next_scratch = b->next;
    if (zeroed && !worked(cuda.set_bytes(b->at, 0, bytes, run->stream), "cuMemsetD8Async")) {
        run->status = LOOPTUNE_FAILED;
        return 0;
    }
    return b->at;
}

static void return_scratch(struct looptune_run *run) {
    while (run->scratch) {
        struct block *b = run->scratch;
        run->scratch = b->next;
        if (run->own_stream)
            put_back(b);
        else {
            if (all.lost) {
            } else if (cuda.free_in_order)
                worked(cuda.free_in_order(b->at, run->stream), "cuMemFreeAsync");
            else
                worked(cuda.free_memory(b->at), "cuMemFree"); /* which waits */
            free(b);
        }
    }
}

/* ---- arrays ---- */

static int is_written(const struct looptune_array *a) {
    return !(a->flags & LOOPTUNE_READ) || (a->flags & (LOOPTUNE_WRITTEN | LOOPTUNE_KEPT));
}

static int meet(const char *a, unsigned long long m, const char *b, unsigned long long n) {
    return m && n && (uintptr_t)a < (uintptr_t)b + n && (uintptr_t)b < (uintptr_t)a + m;
}

static int overlap(const struct looptune_array *arrays, int count) {
    int i, k;
    for (i = 0; i < count; i++)
        for (k = 0; k < i; k++)
            if ((is_written(&arrays[i]) || is_written(&arrays[k])) &&
                meet((const char *)arrays[i].host, arrays[i].bytes, (const char *)arrays[k].host, arrays[k].bytes))
                return because(LOOPTUNE_ALIASED, "%s and %s overlap", arrays[k].name, arrays[i].name);
    return LOOPTUNE_OK;
}

/* Let the host have what only the device has; the program ends if that is lost. */
static void settle(struct mirror *m) {
    struct piece piece;
    int harmed;
    if (!m->newer) return;
    if (all.used_in_parent || all.lost || all.left) lose(m->name);
    piece.to = m->host;
    piece.from = m->memory->at;
    piece.bytes = m->bytes;
    piece.precious = 0;
    if (!fetch(&piece, 1, &harmed)) lose(m->name);
    m->newer = 0;
    m->owner = NULL;
}

/* Before the original loops run on the host: give them what is on the device, and note what they will overwrite. */
static void give_to_host(const struct looptune_array *arrays, int count) {
    int k;
    for (k = 0; k < count; k++) {
        const struct looptune_array *a = &arrays[k];
        char *host = (char *)a->host;
        struct mirror *m;
        for (m = all.mirrors; m; m = m->next) {
            if (!meet(m->host, m->bytes, host, a->bytes)) continue;
            if (!(a->flags & LOOPTUNE_READ) && host <= m->host && m->host + m->bytes <= host + a->bytes) m->newer = 0;
            settle(m);
            if (is_written(a)) m->current = 0;
        }
    }
}

/* An array of a call on the device. `m` is NULL for one without elements; `own` is memory for this call only, of an
   array that overlaps another one of the call. */
struct bound {
    struct mirror *m;
    struct block *own;
    int sent;
};

static struct mirror *exact_mirror(const char *host, unsigned long long bytes) {
    struct mirror *m;
    for (m = all.mirrors; m; m = m->next)
        if (m->host == host && m->bytes == bytes) return m;
    return NULL;
}

/* Drop the copies that overlap an array; 1 if one of them is used by this call, and stays. */
static int clear_overlapping(const char *host, unsigned long long bytes) {
    struct mirror *m, *next;
    int stays = 0;
    for (m = all.mirrors; m; m = next) {
        next = m->next;
        if (!meet(m->host, m->bytes, host, bytes)) continue;
        settle(m);
        if (m->used == all.calls)
            stays = 1;
        else
            drop(m);
    }
    return stays;
}

/* Find or make the copy of an array; its contents are not sent. */
static int bind_array(struct bound *b, const char *name, char *host, unsigned long long bytes) {
    struct block *memory;
    int stays;
    memset(b, 0, sizeof *b);
    if (bytes == 0) return LOOPTUNE_OK;
    b->m = exact_mirror(host, bytes);
    if (b->m) {
        b->sent = b->m->used == all.calls; /* by another name of this call */
        b->m->used = all.calls;
        return LOOPTUNE_OK;
    }
    stays = clear_overlapping(host, bytes);
    memory = take(bytes);
    if (!memory) return all.lost ? LOOPTUNE_FAILED : LOOPTUNE_NO_MEMORY;
    if (stays) {
        b->own = memory;
        return LOOPTUNE_OK;
    }
    b->m = (struct mirror *)zeros(1, sizeof *b->m);
    b->m->name = name;
    b->m->host = host;
    b->m->bytes = bytes;
    b->m->memory = memory;
    b->m->used = all.calls;
    b->m->next = all.mirrors;
    all.mirrors = b->m;
    return LOOPTUNE_OK;
}

static looptune_address address_of(const struct bound *b) {
    return b->m ? b->m->memory->at : b->own ? b->own->at : all.nowhere;
}

/* Send what the device needs and has not got. */
static int send_arrays(const struct looptune_array *arrays, const struct bound *bound, int count,
                       struct codelet_state *state) {
    double begin = now();
    unsigned long long bytes = 0;
    int k;
    for (k = 0; k < count; k++) {
        const struct looptune_array *a = &arrays[k];
        struct mirror *m = bound[k].m;
        if (!a->bytes || !(a->flags & LOOPTUNE_READ) || (m && m->newer)) continue;
        if (m && m->current && (bound[k].sent || (!all.check && (a->flags & LOOPTUNE_PRESENT)))) continue;
        if (!send_bytes(address_of(&bound[k]), (const char *)a->host, a->bytes)) return 0;
        if (m) m->current = 1;
        bytes += a->bytes;
    }
    if (bytes && all.timed && !finish_queued()) return 0;
    state->to_bytes += bytes;
    state->to_seconds += now() - begin;
    return 1;
}

/* ---- selection of the tuned version ---- */

static int same_sizes(const long long *a, const long long *b, int count) {
    int k;
    for (k = 0; k < count; k++)
        if (a[k] != b[k]) return 0;
    return 1;
}

static int level_of(const struct looptune_version *v, const struct device *d, int same) {
    if (strcmp(v->device, d->name) == 0 && v->multiprocessors == d->multiprocessors)
        return same ? LEVEL_EXACT : LEVEL_DEVICE;
    if (v->capability == d->capability) return LEVEL_CAPABILITY;
    return v->capability / 10 == d->capability / 10 ? LEVEL_FAMILY : LEVEL_DEFAULT;
}

static double distance(const long long *tuned, const long long *sizes, int count) {
    double sum = 0;
    int k;
    for (k = 0; k < count; k++)
        sum += fabs(log((double)(sizes[k] > 1 ? sizes[k] : 1) / (double)(tuned[k] > 1 ? tuned[k] : 1)));
    return sum;
}

/* The closest version: by level, then by distance of the sizes, then the first. */
static struct choice look_up(const struct looptune_codelet *c, const struct device *d, const long long *sizes) {
    struct choice best = {c->by_default, NULL, LEVEL_DEFAULT};
    double nearest = 0;
    int k;
    for (k = 0; k < c->version_count; k++) {
        const struct looptune_version *v = &c->versions[k];
        int same = same_sizes(v->sizes, sizes, c->size_count), level = level_of(v, d, same);
        looptune_plan plan = same ? v->exact : v->elsewhere;
        double far = distance(v->sizes, sizes, c->size_count);
        if (!plan || level >= LEVEL_DEFAULT) continue;
        if (!best.version || level < best.level || (level == best.level && far < nearest)) {
            best.plan = plan;
            best.version = v;
            best.level = level;
            nearest = far;
        }
    }
    if (!best.version && c->predicted) {
        best.plan = c->predicted->elsewhere;
        best.version = c->predicted;
        best.level = LEVEL_PREDICTED;
    }
    return best;
}

static struct codelet_state *state_of(struct looptune_codelet *c) {
    struct codelet_state *s = (struct codelet_state *)c->state, **end;
    if (s) return s;
    s = (struct codelet_state *)zeros(1, sizeof *s);
    s->codelet = c;
    s->sizes = (long long *)zeros((size_t)c->size_count, sizeof *s->sizes);
    for (end = &all.codelets; *end; end = &(*end)->next) {}
    *end = s;
    c->state = s;
    return s;
}

static struct choice chosen(struct codelet_state *s, const struct device *d, const long long *sizes) {
    if (!s->cached || s->cached_for != d || !same_sizes(s->sizes, sizes, s->codelet->size_count)) {
        s->choice = look_up(s->codelet, d, sizes);
        if (s->codelet->size_count) memcpy(s->sizes, sizes, (size_t)s->codelet->size_count * sizeof *sizes);
        s->cached_for = d;
        s->cached = 1;
    }
    return s->choice;
}

/* The sizes as text after `first`; "" if there are none. */
static const char *named_sizes(char *text, size_t length, const char *first, const struct looptune_codelet *c,
                               const long long *sizes) {
    size_t at = 0;
    int k;
    *text = 0;
    for (k = 0; k < c->size_count && at < length; k++)
        at += (size_t)snprintf(text + at, length - at, "%s%s=%lld", k ? " " : first, c->size_names[k], sizes[k]);
    return text;
}

/* Say once for each level what runs in place of what would have been tuned. */
static void tell_choice(struct codelet_state *s, struct choice ch, const struct device *d, const long long *sizes) {
    char here[300], there[300];
    const struct looptune_codelet *c = s->codelet;
    if (!all.verbose || ch.level == LEVEL_EXACT || s->levels_told[ch.level]) return;
    s->levels_told[ch.level] = 1;
    named_sizes(here, sizeof here, ", ", c, sizes);
    if (!ch.version)
        say("%s (%s): nothing was tuned for %s%s: the default is used", c->name, c->place, d->name, here);
    else if (ch.level == LEVEL_PREDICTED)
        say("%s (%s): nothing was tuned for %s%s: what is predicted to be fastest is used", c->name, c->place, d->name,
            here);
    else
        say("%s (%s): nothing was tuned for %s%s: using what is best on %s%s (%s)", c->name, c->place, d->name,
            here, ch.version->device, named_sizes(there, sizeof there, " at ", c, ch.version->sizes), LEVELS[ch.level]);
}

static void count_run(struct codelet_state *s, struct choice ch) {
    struct ran **link = &s->ran;
    while (*link && ((*link)->version != ch.version || (*link)->level != ch.level)) link = &(*link)->next;
    if (!*link) {
        *link = (struct ran *)zeros(1, sizeof **link);
        (*link)->version = ch.version;
        (*link)->level = ch.level;
    }
    (*link)->calls++;
    s->on_device++;
}

/* ---- calls ---- */

/* Run a plan without launches: LOOPTUNE_OK if it can be launched. */
static int check_plan(struct looptune_run *run, looptune_plan plan, const void *arguments, const looptune_address *at) {
    int status;
    run->checking = 1;
    run->status = LOOPTUNE_OK;
    status = plan(run, arguments, at);
    if (run->status == LOOPTUNE_OK) run->status = status;
    run->checking = 0;
    if (run->status != LOOPTUNE_OK) return_scratch(run);
    return run->status;
}

/* Replace a tuned version that cannot run, for `all.reason`. */
static void use_default(struct codelet_state *s, struct choice *ch) {
    if (all.verbose && !s->default_told)
        say("%s (%s): what was tuned cannot run (%s): the default is used", s->codelet->name, s->codelet->place,
            all.reason);
    s->default_told = 1;
    ch->plan = s->codelet->by_default;
    ch->version = NULL;
    ch->level = LEVEL_DEFAULT;
}

/* Find a plan that can be launched: the chosen one, else the default. */
static int check_choice(struct looptune_run *run, struct codelet_state *s, struct choice *ch, const void *arguments,
                        const looptune_address *at) {
    const struct looptune_codelet *c = s->codelet;
    int status = LOOPTUNE_NO_CODE;
    if (ch->plan) status = check_plan(run, ch->plan, arguments, at);
    if (status == LOOPTUNE_OK || all.lost || !c->by_default || ch->plan == c->by_default) {
        if (!ch->plan) because(status, "there is no version of it for any device");
        return status;
    }
    use_default(s, ch);
    return check_plan(run, ch->plan, arguments, at);
}

static int run_plan(struct looptune_run *run, looptune_plan plan, const void *arguments, const looptune_address *at) {
    int status;
    run->next_scratch = run->scratch;
    status = plan(run, arguments, at);
    if (run->status == LOOPTUNE_OK) run->status = status;
    return run->status;
}

/* Add the time of the launches that the events stand around, once these are done. */
static void read_timing(struct codelet_state *s) {
    float milliseconds;
    if (!s->timing || all.lost) return;
    s->timing = 0;
    if (worked(cuda.wait_event(s->ended), "cuEventSynchronize") &&
        worked(cuda.elapsed(&milliseconds, s->begun, s->ended), "cuEventElapsedTime"))
        s->kernel_seconds += 1e-3 * (double)milliseconds;
}

static void begin_timing(struct codelet_state *s) {
    if (!all.timed) return;
    read_timing(s);
    if (!s->begun && !worked(cuda.create_event(&s->begun, 0), "cuEventCreate")) return;
    if (!s->ended && !worked(cuda.create_event(&s->ended, 0), "cuEventCreate")) return;
    s->timing = worked(cuda.record_event(s->begun, all.stream), "cuEventRecord");
}

static void end_timing(struct codelet_state *s) {
    if (s->timing) s->timing = worked(cuda.record_event(s->ended, all.stream), "cuEventRecord");
}

/* Fetch what a call has written, to the arrays or to copies of them; `harmed` as in fetch. */
static int fetch_written(struct codelet_state *s, const struct looptune_array *arrays, const struct bound *bound,
                         int count, void **copies, int *harmed) {
    struct piece *pieces = (struct piece *)zeros((size_t)count, sizeof *pieces);
    double begin = now();
    unsigned long long bytes = 0;
    int k, n = 0, done;
    for (k = 0; k < count; k++) {
        const struct looptune_array *a = &arrays[k];
        if (!a->bytes || !(a->flags & (LOOPTUNE_WRITTEN | LOOPTUNE_KEPT))) continue;
        if (!copies && (a->flags & LOOPTUNE_KEPT)) continue;
        if (copies) copies[k] = needed(malloc(a->bytes));
        pieces[n].to = (char *)(copies ? copies[k] : a->host);
        pieces[n].from = address_of(&bound[k]);
        pieces[n].bytes = a->bytes;
        pieces[n].precious = !copies && (a->flags & LOOPTUNE_READ);
        bytes += pieces[n++].bytes;
    }
    *harmed = 0;
    done = n == 0 || fetch(pieces, n, harmed);
    free(pieces);
    s->from_bytes += bytes;
    s->from_seconds += now() - begin;
    return done;
}

/* One call on the device of the program. */
struct call {
    struct codelet_state *state;
    const void *arguments;
    const long long *sizes;
    struct looptune_array *arrays;
    int count, asynchronous;
    struct bound *bound;
    looptune_address *at;
    struct looptune_run run;
    struct choice choice;
};

/* What was only on the device, and a call that failed has overwritten. */
static void lose_overwritten(const struct call *c) {
    int k;
    for (k = 0; k < c->count; k++)
        if (c->bound[k].m && is_written(&c->arrays[k])) {
            if (c->bound[k].m->newer && (c->arrays[k].flags & LOOPTUNE_READ)) lose(c->arrays[k].name);
            c->bound[k].m->current = c->bound[k].m->newer = 0;
        }
}

/* The device has the results, and the host has not. */
static void note_written(const struct call *c) {
    int k;
    for (k = 0; k < c->count; k++) {
        struct mirror *m = c->bound[k].m;
        const struct looptune_array *a = &c->arrays[k];
        if (!m || !is_written(a)) continue;
        m->name = a->name;
        m->newer = (a->flags & (LOOPTUNE_WRITTEN | LOOPTUNE_KEPT)) != 0;
        m->current = m->newer;
        m->owner = a->flags & LOOPTUNE_KEPT ? NULL : c->state->codelet;
    }
}

static int launch_all(struct call *c) {
    const looptune_plan by_default = c->state->codelet->by_default;
    int status;
    if (!send_arrays(c->arrays, c->bound, c->count, c->state)) return LOOPTUNE_FAILED;
    begin_timing(c->state);
    status = run_plan(&c->run, c->choice.plan, c->arguments, c->at);
    if (status != LOOPTUNE_OK && !c->run.launched && !all.lost && by_default && c->choice.plan != by_default) {
        return_scratch(&c->run);
        use_default(c->state, &c->choice);
        status = check_plan(&c->run, by_default, c->arguments, c->at);
        if (status == LOOPTUNE_OK) status = run_plan(&c->run, by_default, c->arguments, c->at);
    }
    end_timing(c->state);
    return status;
}

/* Fetch the results of a call; a copy for each array if they are to be compared. */
static int finish(struct call *c, void **copies) {
    int k, harmed;
    if (!finish_queued()) return LOOPTUNE_FAILED;
    read_timing(c->state);
    if (!fetch_written(c->state, c->arrays, c->bound, c->count, copies, &harmed)) {
        if (harmed) lose("an array that was partly copied to the host");
        return LOOPTUNE_FAILED;
    }
    note_written(c);
    for (k = 0; k < c->count; k++) {
        struct mirror *m = c->bound[k].m;
        if (!m || !is_written(&c->arrays[k])) continue;
        if (copies) m->current = 0; /* the original loops will write it */
        if (copies || !(c->arrays[k].flags & LOOPTUNE_KEPT)) m->newer = 0;
    }
    return LOOPTUNE_OK;
}

static struct checked *kept_copies(const struct looptune_codelet *codelet) {
    struct checked **link, *c;
    for (link = &all.checked; *link; link = &(*link)->next)
        if ((*link)->codelet == codelet && pthread_equal((*link)->thread, pthread_self())) {
            c = *link;
            *link = c->next;
            return c;
        }
    return NULL;
}
static void free_copies(struct checked *c) {
    int k;
    if (!c) return;
    for (k = 0; k < c->count; k++) free(c->copies[k]);
    free(c->copies);
    free(c);
}
/* Keep what was computed until it is compared. */
static void **keep_copies(struct looptune_codelet *codelet, int count) {
    struct checked *c = (struct checked *)zeros(1, sizeof *c);
    free_copies(kept_copies(codelet)); /* of loops that a return has left */
    c->codelet = codelet;
    c->thread = pthread_self();
    c->count = count;
    c->copies = (void **)zeros((size_t)count, sizeof *c->copies);
    c->next = all.checked;
    all.checked = c;
    return c->copies;
}

/* Make memory for all arrays, choose what runs, run it; their memory is returned by the caller. */
static int run_bound(struct call *c) {
    int k, status;
    for (k = 0; k < c->count; k++) {
        const struct looptune_array *a = &c->arrays[k];
        status = bind_array(&c->bound[k], a->name, (char *)a->host, a->bytes);
        if (status != LOOPTUNE_OK) return status;
        c->at[k] = address_of(&c->bound[k]);
    }
    c->choice = chosen(c->state, all.device, c->sizes);
    tell_choice(c->state, c->choice, all.device, c->sizes);
    status = check_choice(&c->run, c->state, &c->choice, c->arguments, c->at);
    if (status != LOOPTUNE_OK) return status;
    status = launch_all(c);
    if (status == LOOPTUNE_OK && all.check) {
        status = finish(c, keep_copies(c->state->codelet, c->count));
        if (status != LOOPTUNE_OK) free_copies(kept_copies(c->state->codelet));
    } else if (status == LOOPTUNE_OK && c->asynchronous)
        note_written(c);
    else if (status == LOOPTUNE_OK)
        status = finish(c, NULL);
    if (status != LOOPTUNE_OK && c->run.launched) {
        finish_queued();
        lose_overwritten(c);
    }
    return status == LOOPTUNE_OK && all.check ? LOOPTUNE_COMPARE : status;
}

static int run_on_device(struct call *c) {
    int k, status;
    all.calls++;
    c->bound = (struct bound *)zeros((size_t)c->count, sizeof *c->bound);
    c->at = (looptune_address *)zeros((size_t)c->count, sizeof *c->at);
    c->run.stream = all.stream;
    c->run.context = all.context_number;
    c->run.device = all.device;
    c->run.own_stream = 1;
    status = run_bound(c);
    return_scratch(&c->run);
    for (k = 0; k < c->count; k++)
        if (c->bound[k].own) put_back(c->bound[k].own);
    free(c->bound);
    free(c->at);
    if (status == LOOPTUNE_OK || status == LOOPTUNE_COMPARE) count_run(c->state, c->choice);
    return status;
}

/* Count a call that runs on the host; say why, once for each reason. */
static void count_on_host(struct codelet_state *s, int status) {
    int first = s->on_host[status]++ == 0;
    if (!all.verbose) return;
    if (status == LOOPTUNE_NO_DEVICE) {
        if (!all.unavailable_told) say("all codelets run on the host: %s", all.unavailable);
        all.unavailable_told = 1;
    } else if (first)
        say("%s (%s) runs on the host: %s: %s", s->codelet->name, s->codelet->place, looptune_message(status),
            all.reason);
}

/* Let the host have everything, before it runs loops whose arrays are not known. */
static void settle_all(void) {
    struct mirror *m;
    for (m = all.mirrors; m; m = m->next) {
        settle(m);
        m->current = 0;
    }
}

/* What is said of the next call of a codelet by a thread. */
static __thread struct {
    const struct looptune_codelet *codelet;
    unsigned long long present, kept;
    int asynchronous;
} next;
static __thread double loops_begin; /* when the caller began to run the original loops */
static __thread int held;
static __thread unsigned long long held_since; /* the number of the last call before */

LOOPTUNE_WEAK void looptune_next(struct looptune_codelet *codelet, unsigned long long present, unsigned long long kept,
                                 int asynchronous) {
    next.codelet = codelet;
    next.present = present;
    next.kept = kept;
    next.asynchronous = asynchronous;
}

/* A call that is held takes all of an array of which an earlier one has taken more, so that both share one copy. */
static void widen(struct looptune_array *arrays, int count, int k) {
    struct looptune_array *a = &arrays[k];
    struct mirror *m;
    int i;
    for (m = all.mirrors; m; m = m->next) {
        if (m->host != (char *)a->host || m->bytes <= a->bytes || !m->current || m->used <= held_since) continue;
        for (i = 0; i < count; i++)
            if (i != k && meet(m->host, m->bytes, (char *)arrays[i].host, arrays[i].bytes)) return;
        a->bytes = m->bytes;
        a->flags |= LOOPTUNE_READ;
        return;
    }
}

/* Take over what is said of this call, and forget it. */
static void apply_next(struct looptune_codelet *codelet, struct looptune_array *arrays, int count, int *asynchronous) {
    int k, mine = next.codelet == codelet;
    for (k = 0; k < count; k++) {
        int said = mine && k < 64;
        if (arrays[k].flags & LOOPTUNE_GATHERED) continue;
        if (held && arrays[k].bytes) widen(arrays, count, k);
        if (held || (said && next.present >> k & 1)) arrays[k].flags |= LOOPTUNE_PRESENT;
        if ((held || (said && next.kept >> k & 1)) && arrays[k].flags & LOOPTUNE_WRITTEN)
            arrays[k].flags |= LOOPTUNE_KEPT;
    }
    if (!mine) return;
    *asynchronous |= next.asynchronous;
    next.codelet = NULL;
}

LOOPTUNE_WEAK int looptune_refuse(struct looptune_codelet *codelet, const char *why) {
    int entered = enter();
    if (next.codelet == codelet) next.codelet = NULL;
    because(LOOPTUNE_REFUSED, "%s", why);
    count_on_host(state_of(codelet), LOOPTUNE_REFUSED);
    settle_all();
    leave(entered);
    loops_begin = now();
    return LOOPTUNE_REFUSED;
}

LOOPTUNE_WEAK void looptune_done(struct looptune_codelet *codelet) {
    pthread_mutex_lock(&lock);
    state_of(codelet)->host_seconds += now() - loops_begin;
    pthread_mutex_unlock(&lock);
}

LOOPTUNE_WEAK void looptune_hold(void) {
    struct mirror *m;
    if (held++) return;
    /* What the host wrote since the last call is not known. */
    pthread_mutex_lock(&lock);
    held_since = all.calls;
    for (m = all.mirrors; m; m = m->next) m->current = m->newer;
    pthread_mutex_unlock(&lock);
}

LOOPTUNE_WEAK void looptune_give_back(void) {
    int entered;
    double begin = now();
    struct mirror *m;
    if (--held) return;
    entered = enter();
    for (m = all.mirrors; m; m = m->next)
        if (m->newer) {
            settle(m);
            all.stored_bytes += m->bytes;
        }
    all.stored_seconds += now() - begin;
    leave(entered);
}

LOOPTUNE_WEAK int looptune_call(struct looptune_codelet *codelet, const void *arguments, const long long *sizes,
                                struct looptune_array *arrays, int array_count, void (*loops)(const void *arguments),
                                int asynchronous) {
    struct call c;
    struct codelet_state *state;
    int entered = enter(), status = overlap(arrays, array_count);
    double begin;
    apply_next(codelet, arrays, array_count, &asynchronous);
    memset(&c, 0, sizeof c);
    c.state = state = state_of(codelet);
    c.arguments = arguments;
    c.sizes = sizes;
    c.arrays = arrays;
    c.count = array_count;
    c.asynchronous = asynchronous;
    if (status == LOOPTUNE_OK) status = entered == LOOPTUNE_OK ? run_on_device(&c) : entered;
    if (status != LOOPTUNE_OK && status != LOOPTUNE_COMPARE) {
        count_on_host(state, status);
        give_to_host(arrays, array_count);
    }
    leave(entered);
    loops_begin = now();
    if (status == LOOPTUNE_OK || status == LOOPTUNE_COMPARE || status == LOOPTUNE_ALIASED || !loops) return status;
    begin = now();
    loops(arguments);
    pthread_mutex_lock(&lock);
    state->host_seconds += now() - begin;
    pthread_mutex_unlock(&lock);
    return LOOPTUNE_OK;
}

/* ---- arrays in pieces ---- */

static int is_in_pieces(const struct looptune_pieces *p) { return p->rows || p->base; }

static char *piece_at(const struct looptune_pieces *p, unsigned long long k) {
    return p->rows ? (char *)p->rows[k] : p->base + k * p->stride;
}

/* The memory of an array, or of one of its rows. */
struct interval {
    const char *begin, *end;
    int written;
};

static int by_begin(const void *a, const void *b) {
    const char *x = ((const struct interval *)a)->begin, *y = ((const struct interval *)b)->begin;
    return x < y ? -1 : x > y;
}

/* Whether none of the intervals that are written meets another one; they are sorted. */
static int are_apart(struct interval *all_of_them, size_t count) {
    const char *end = NULL, *written_end = NULL;
    size_t k;
    qsort(all_of_them, count, sizeof *all_of_them, by_begin);
    for (k = 0; k < count; k++) {
        const struct interval *i = &all_of_them[k];
        if ((written_end && i->begin < written_end) || (i->written && end && i->begin < end)) return 0;
        if (!end || i->end > end) end = i->end;
        if (i->written && (!written_end || i->end > written_end)) written_end = i->end;
    }
    return 1;
}

static size_t add_interval(struct interval *list, size_t n, const char *begin, unsigned long long bytes, int written) {
    if (!bytes) return n;
    list[n].begin = begin;
    list[n].end = begin + bytes;
    list[n].written = written;
    return n + 1;
}

/* Whether no piece that is written meets another array, or another piece. Fields of the same structs are apart. */
static int pieces_are_apart(const struct looptune_array *arrays, const struct looptune_pieces *pieces, int count) {
    struct interval *list;
    size_t n = (size_t)count;
    unsigned long long k;
    int i, j, apart;
    for (i = 0; i < count; i++) n += pieces[i].rows ? (size_t)pieces[i].count : 0;
    list = (struct interval *)zeros(n, sizeof *list);
    for (i = 0, n = 0; i < count; i++) {
        const struct looptune_pieces *p = &pieces[i];
        int written = is_written(&arrays[i]), before = 0;
        if (!is_in_pieces(p)) n = add_interval(list, n, (const char *)arrays[i].host, arrays[i].bytes, written);
        for (k = 0; p->rows && k < p->count; k++) n = add_interval(list, n, piece_at(p, k), p->bytes, written);
        if (!p->base) continue;
        for (j = 0, k = 0; j < count; j++) {
            if (!pieces[j].base || pieces[j].structs != p->structs) continue;
            before |= j < i;
            written |= is_written(&arrays[j]);
            if (pieces[j].count > k) k = pieces[j].count;
        }
        if (!before) n = add_interval(list, n, p->structs, k * p->stride, written);
    }
    apart = are_apart(list, n);
    free(list);
    return apart;
}

static void copy_pieces(const struct looptune_pieces *p, char *whole, int back) {
    unsigned long long k;
    for (k = 0; k < p->count; k++) {
        char *piece = piece_at(p, k);
        memcpy(back ? piece : whole + k * p->bytes, back ? whole + k * p->bytes : piece, (size_t)p->bytes);
    }
}

/* Memory in one piece for each array in pieces, with its contents where `all_of_it` or the array is read. */
static int gather(struct looptune_array *arrays, const struct looptune_pieces *pieces, int count, int all_of_it) {
    int k;
    for (k = 0; k < count; k++) {
        const struct looptune_pieces *p = &pieces[k];
        if (!is_in_pieces(p)) continue;
        arrays[k].bytes = p->count * p->bytes;
        arrays[k].flags |= LOOPTUNE_GATHERED;
        arrays[k].host = malloc((size_t)(arrays[k].bytes ? arrays[k].bytes : 1));
        if (!arrays[k].host) return 0;
        if (all_of_it || arrays[k].flags & LOOPTUNE_READ) copy_pieces(p, (char *)arrays[k].host, 0);
    }
    return 1;
}

static void free_gathered(struct looptune_array *arrays, int count) {
    int k;
    for (k = 0; k < count; k++)
        if (arrays[k].flags & LOOPTUNE_GATHERED) {
            if (arrays[k].host) looptune_release(arrays[k].host);
            free(arrays[k].host);
        }
}

LOOPTUNE_WEAK int looptune_call_in_pieces(struct looptune_codelet *codelet, const void *arguments,
                                          const long long *sizes, struct looptune_array *arrays,
                                          const struct looptune_pieces *pieces, int array_count) {
    int entered = enter(), status = entered, k;
    if (status == LOOPTUNE_OK && !pieces_are_apart(arrays, pieces, array_count))
        status = because(LOOPTUNE_ALIASED, "pieces of arrays overlap");
    if (status != LOOPTUNE_OK) count_on_host(state_of(codelet), status);
    settle_all();
    leave(entered);
    if (status == LOOPTUNE_OK) {
        status = gather(arrays, pieces, array_count, 0)
                     ? looptune_call(codelet, arguments, sizes, arrays, array_count, NULL, 0)
                     : LOOPTUNE_NO_MEMORY;
        for (k = 0; status == LOOPTUNE_OK && k < array_count; k++)
            if (arrays[k].flags & LOOPTUNE_GATHERED && arrays[k].flags & LOOPTUNE_WRITTEN)
                copy_pieces(&pieces[k], (char *)arrays[k].host, 1);
        free_gathered(arrays, array_count);
    }
    loops_begin = now();
    return status;
}

LOOPTUNE_WEAK void looptune_compare_in_pieces(struct looptune_codelet *codelet, struct looptune_array *arrays,
                                              const struct looptune_pieces *pieces, int array_count) {
    if (gather(arrays, pieces, array_count, 1)) looptune_compare(codelet, arrays, array_count);
    free_gathered(arrays, array_count);
}

/* Fetch all that a codelet's asynchronous calls have written: 0 if that failed. */
static int fetch_pending(struct codelet_state *state) {
    struct piece *pieces;
    struct mirror *m;
    double begin = now();
    int n = 0, done, harmed;
    for (m = all.mirrors; m; m = m->next) n += m->newer && m->owner == state->codelet;
    pieces = (struct piece *)zeros((size_t)n, sizeof *pieces);
    for (m = all.mirrors, n = 0; m; m = m->next)
        if (m->newer && m->owner == state->codelet) {
            pieces[n].to = m->host;
            pieces[n].from = m->memory->at;
            pieces[n++].bytes = m->bytes;
        }
    done = n == 0 || fetch(pieces, n, &harmed);
    free(pieces);
    state->from_seconds += now() - begin;
    return done;
}

LOOPTUNE_WEAK void looptune_synchronize(struct looptune_codelet *codelet) {
    int entered = enter(), done = 0;
    struct codelet_state *state = state_of(codelet);
    struct mirror *m;
    if (entered == LOOPTUNE_OK && finish_queued()) {
        read_timing(state);
        done = fetch_pending(state);
    }
    for (m = all.mirrors; m; m = m->next)
        if (m->newer && m->owner == codelet) {
            if (!done) lose(m->name);
            state->from_bytes += m->bytes;
            m->newer = 0;
            m->owner = NULL;
        }
    leave(entered);
}

LOOPTUNE_WEAK void looptune_load(const char *name, const void *host, unsigned long long bytes) {
    int entered = enter(), status = entered;
    struct bound b;
    double begin = now();
    all.calls++;
    if (entered == LOOPTUNE_OK) {
        status = bind_array(&b, name, (char *)(uintptr_t)host, bytes);
        if (status == LOOPTUNE_OK && b.m) {
            b.m->newer = b.m->current = 0;
            if (send_bytes(b.m->memory->at, b.m->host, bytes) && (!all.timed || finish_queued())) {
                b.m->current = 1;
                all.loaded_bytes += bytes;
                all.loaded_seconds += now() - begin;
            }
        }
    }
    leave(entered);
}

LOOPTUNE_WEAK void looptune_store(const char *name, void *host, unsigned long long bytes) {
    int entered = enter();
    struct mirror *m;
    double begin = now();
    for (m = all.mirrors; m; m = m->next)
        if (m->newer && meet(m->host, m->bytes, (const char *)host, bytes)) {
            m->name = name;
            settle(m);
            all.stored_bytes += m->bytes;
            all.stored_seconds += now() - begin;
        }
    leave(entered);
}

LOOPTUNE_WEAK void looptune_release(const void *host) {
    int entered = enter();
    struct mirror *m, *after;
    const char *at = (const char *)host;
    for (m = all.mirrors; m; m = after) {
        after = m->next;
        if (host && !meet(m->host, m->bytes, at, 1)) continue;
        if (m->owner) settle(m);
        drop(m);
    }
    if (entered == LOOPTUNE_OK && finish_queued()) free_unused();
    leave(entered);
}

static int device_overlap(const looptune_address *at, const struct looptune_array *arrays, int count) {
    int i, k;
    for (i = 0; i < count; i++) {
        if ((arrays[i].flags & LOOPTUNE_ALIGNED) && at[i] % 16)
            return because(LOOPTUNE_MISALIGNED, "the address of %s is no multiple of 16", arrays[i].name);
        for (k = 0; k < i; k++)
            if ((is_written(&arrays[i]) || is_written(&arrays[k])) && arrays[i].bytes && arrays[k].bytes &&
                at[i] < at[k] + arrays[k].bytes && at[k] < at[i] + arrays[i].bytes)
                return because(LOOPTUNE_ALIASED, "%s and %s overlap", arrays[k].name, arrays[i].name);
    }
    return LOOPTUNE_OK;
}

/* The context that is current, and its device. */
static int find_current(struct looptune_run *run) {
    cu_handle context = NULL;
    int number, k;
    if (!worked(cuda.current_context(&context), "cuCtxGetCurrent")) return LOOPTUNE_FAILED;
    if (!context) return because(LOOPTUNE_NO_DEVICE, "no context is current");
    if (!worked(cuda.current_device(&number), "cuCtxGetDevice")) return LOOPTUNE_FAILED;
    run->context = number_of(context);
    for (k = 0; k < all.device_count; k++)
        if (all.devices[k].number == number) run->device = &all.devices[k];
    return run->device ? LOOPTUNE_OK : because(LOOPTUNE_NO_DEVICE, "the current device is not known");
}

LOOPTUNE_WEAK int looptune_call_on_device(struct looptune_codelet *codelet, const void *arguments,
                                          const long long *sizes, const looptune_address *arrays,
                                          const struct looptune_array *described, int array_count, void *stream) {
    struct looptune_run run;
    struct codelet_state *state;
    struct choice ch;
    int status;
    memset(&run, 0, sizeof run);
    run.stream = stream;
    pthread_mutex_lock(&lock);
    status = open_driver();
    state = state_of(codelet);
    if (status == LOOPTUNE_OK) status = find_current(&run);
    if (status == LOOPTUNE_OK) status = device_overlap(arrays, described, array_count);
    if (status == LOOPTUNE_OK) {
        ch = chosen(state, run.device, sizes);
        tell_choice(state, ch, run.device, sizes);
        status = check_choice(&run, state, &ch, arguments, arrays);
        if (status == LOOPTUNE_OK) status = run_plan(&run, ch.plan, arguments, arrays);
        return_scratch(&run);
        if (status == LOOPTUNE_OK) count_run(state, ch);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

LOOPTUNE_WEAK int looptune_match(struct looptune_codelet *codelet, const long long *sizes, const char **level,
                                 const char **directives) {
    int entered = enter(), status = entered;
    struct choice ch = {NULL, NULL, LEVEL_HOST};
    if (status == LOOPTUNE_OK) ch = look_up(codelet, all.device, sizes);
    if (status == LOOPTUNE_OK && !ch.plan) {
        status = LOOPTUNE_NO_CODE;
        ch.level = LEVEL_HOST;
    }
    *level = LEVELS[ch.level];
    *directives = ch.version && ch.version->directives ? ch.version->directives : "";
    leave(entered);
    return status;
}

LOOPTUNE_WEAK const char *looptune_message(int status) {
    static const char *const messages[] = {"it ran on the device",
                                           "it ran on the device, and is to be compared with the original loops",
                                           "there is no device",
                                           "there is no machine code for this device",
                                           "the arrays do not fit into the memory of the device",
                                           "arrays overlap, one of which is written",
                                           "the kernel cannot be launched at these sizes",
                                           "an array is not aligned to 16 bytes",
                                           "the driver reported an error",
                                           "the sizes are not what its analysis assumes"};
    if (status < 0 || status > LOOPTUNE_REFUSED) return "this is no status of looptune";
    return messages[status];
}

/* ---- LOOPTUNE_CHECK ---- */

/* Whether a number is finite, or none. By its bits: the compiler may have been told that all numbers are finite. */
static int has_all_ones(double x, int *none) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    *none = (bits & 0xfffffffffffffull) != 0;
    return (bits >> 52 & 0x7ff) == 0x7ff;
}
static int is_finite(double x) {
    int none;
    return !has_all_ones(x, &none);
}
static int is_none(double x) {
    int none;
    return has_all_ones(x, &none) && none;
}
static int same_infinity(double x, double y) {
    return memcmp(&x, &y, sizeof x) == 0;
}

/* The element of an array that differs most: `ratio` is its error over its tolerance. */
static const double INFINITELY_MANY = 1e300;
struct difference {
    unsigned long long index, count, of;
    double ratio, got, expected, tolerance;
};

static double element(const struct looptune_array *a, const void *values, unsigned long long k) {
    float single;
    double number;
    const char *at = (const char *)values + k * a->item;
    if (a->item == sizeof single) {
        memcpy(&single, at, sizeof single);
        return (double)single;
    }
    memcpy(&number, at, sizeof number);
    return number;
}

/* The median of `count` numbers, which are reordered (Hoare's selection). */
static double median(double *x, unsigned long long count) {
    unsigned long long low = 0, high, wanted = count / 2;
    if (count == 0) return 0;
    high = count - 1;
    while (low < high) {
        double pivot = x[low + (high - low) / 2], moved;
        unsigned long long i = low, k = high;
        for (;;) {
            while (x[i] < pivot) i++;
            while (pivot < x[k]) k--;
            if (i >= k) break;
            moved = x[i];
            x[i++] = x[k];
            x[k--] = moved;
        }
        if (wanted <= k)
            high = k;
        else
            low = k + 1;
    }
    if (count % 2) return x[wanted];
    for (high = 1, low = 0; high < wanted; high++) /* the largest below it */
        if (x[high] > x[low]) low = high;
    return (x[low] + x[wanted]) / 2;
}

/* The magnitude of an array: the median of its finite elements other than 0. */
static double magnitude(const struct looptune_array *a) {
    unsigned long long count = a->bytes / a->item, k, n = 0;
    double *finite = (double *)zeros((size_t)count, sizeof *finite), found;
    for (k = 0; k < count; k++) {
        double x = fabs(element(a, a->host, k));
        if (is_finite(x) && x > 0) finite[n++] = x;
    }
    found = median(finite, n);
    free(finite);
    return found;
}

static void note_difference(struct difference *d, unsigned long long k, double ratio, double got, double expected,
                            double tolerance) {
    if (ratio > 1) d->count++;
    if (ratio <= d->ratio) return;
    d->ratio = ratio;
    d->index = k;
    d->got = got;
    d->expected = expected;
    d->tolerance = tolerance;
}

/* |got - expected| <= 4 sqrt(terms) eps (|expected| + magnitude): the tolerance of looptune's own verification. */
static void compare_floats(struct difference *d, const struct looptune_array *a, const void *got, double terms) {
    double eps = a->item == 4 ? 1.1920928955078125e-07 : 2.220446049250313e-16;
    double relative = 4 * sqrt(terms > 16 ? terms : 16) * eps, scale = magnitude(a);
    unsigned long long k;
    for (k = 0; k < d->of; k++) {
        double x = element(a, got, k), y = element(a, a->host, k), error, tolerance;
        if (!is_finite(x) || !is_finite(y)) {
            if (!(is_none(x) && is_none(y)) && !same_infinity(x, y)) note_difference(d, k, INFINITELY_MANY, x, y, 0);
            continue;
        }
        tolerance = relative * (fabs(y) + scale);
        error = fabs(x - y);
        if (error > 0) note_difference(d, k, tolerance > 0 ? error / tolerance : INFINITELY_MANY, x, y, tolerance);
    }
}

static double integer(const struct looptune_array *a, const void *values, unsigned long long k) {
    const char *at = (const char *)values + k * a->item;
    unsigned long long bits = 0;
    int byte;
    for (byte = 0; byte < a->item && byte < 8; byte++)
        bits |= (unsigned long long)(unsigned char)at[byte] << (8 * byte);
    if (a->kind == 'i' && a->item < 8 && bits >> (8 * a->item - 1)) bits |= ~0ull << (8 * a->item);
    return a->kind == 'i' ? (double)(long long)bits : (double)bits;
}

static void compare_bytes(struct difference *d, const struct looptune_array *a, const void *got) {
    unsigned long long k;
    for (k = 0; k < d->of; k++)
        if (memcmp((const char *)got + k * a->item, (const char *)a->host + k * a->item, a->item) != 0)
            note_difference(d, k, INFINITELY_MANY, integer(a, got, k), integer(a, a->host, k), 0);
}

static void compare(struct difference *d, const struct looptune_array *a, const void *got, double terms) {
    d->of = a->bytes / a->item;
    if (a->kind == 'f' && (a->item == 4 || a->item == 8))
        compare_floats(d, a, got, terms);
    else
        compare_bytes(d, a, got);
}

LOOPTUNE_WEAK void looptune_compare(struct looptune_codelet *codelet, struct looptune_array *arrays, int array_count) {
    struct codelet_state *s;
    struct checked *c;
    int k, differs = 0;
    pthread_mutex_lock(&lock);
    s = state_of(codelet);
    c = kept_copies(codelet);
    for (k = 0; c && k < array_count && k < c->count; k++) {
        struct difference d = {0, 0, 0, 0, 0, 0, 0};
        const struct looptune_array *a = &arrays[k];
        if (!c->copies[k] || !a->item) continue;
        compare(&d, a, c->copies[k], codelet->terms);
        if (d.ratio > s->worst) s->worst = d.ratio;
        if (d.count == 0) continue;
        if (s->differing == 0)
            say("%s (%s): %s[%llu] is %.9g on the device and %.9g on the host, the tolerance is %.3g "
                "(%llu of %llu elements differ)", codelet->name, codelet->place, a->name, d.index, d.got, d.expected,
                d.tolerance, d.count, d.of);
        differs = 1;
    }
    if (c) {
        s->compared++;
        s->differing += (unsigned long)differs;
    }
    free_copies(c);
    pthread_mutex_unlock(&lock);
}

/* ---- the report, and the end ---- */

static void forget_counts(void) {
    struct codelet_state *s;
    all.unavailable_told = 0;
    all.loaded_bytes = all.stored_bytes = 0;
    all.loaded_seconds = all.stored_seconds = 0;
    for (s = all.codelets; s; s = s->next) {
        struct ran *r;
        for (r = s->ran; r; r = r->next) r->calls = 0;
        memset(s->on_host, 0, sizeof s->on_host);
        s->on_device = s->compared = s->differing = 0;
        s->kernel_seconds = s->to_seconds = s->from_seconds = s->host_seconds = s->worst = 0;
        s->to_bytes = s->from_bytes = 0;
        s->timing = 0;
    }
}

static void report_codelet(const struct codelet_state *s) {
    const struct looptune_codelet *c = s->codelet;
    const struct ran *r;
    unsigned long on_host = 0;
    int k;
    if (s->on_device)
        say("%s (%s): calls on %s: %lu; kernels %.3f ms, to the device %.3f MB in %.3f ms, from it %.3f MB in %.3f ms",
            c->name, c->place, all.device ? all.device->name : "the caller's device", s->on_device,
            1e3 * s->kernel_seconds, 1e-6 * (double)s->to_bytes, 1e3 * s->to_seconds, 1e-6 * (double)s->from_bytes,
            1e3 * s->from_seconds);
    for (r = s->ran; r; r = r->next)
        if (r->calls)
            say("%s (%s):   %s match, calls: %lu; %s%s", c->name, c->place, LEVELS[r->level], r->calls,
                r->version ? "directives: " : "no directives",
                !r->version ? "" : r->version->directives && *r->version->directives ? r->version->directives : "none");
    for (k = 0; k <= LOOPTUNE_REFUSED; k++) on_host += s->on_host[k];
    if (on_host)
        say("%s (%s): calls on the host: %lu; the original loops %.3f ms", c->name, c->place, on_host,
            1e3 * s->host_seconds);
    for (k = 0; k <= LOOPTUNE_REFUSED; k++)
        if (s->on_host[k])
            say("%s (%s):   %s, calls: %lu", c->name, c->place, looptune_message(k), s->on_host[k]);
}

/* Append the figures of each codelet to a file, one object of JSON a line: for programs. */
static void write_report(const char *path) {
    const struct codelet_state *s;
    FILE *file = fopen(path, "a");
    int k;
    if (!file) {
        say("cannot write %s", path);
        return;
    }
    for (s = all.codelets; s; s = s->next) {
        unsigned long on_host = 0;
        for (k = 0; k <= LOOPTUNE_REFUSED; k++) on_host += s->on_host[k];
        fprintf(file,
                "{\"codelet\": \"%s\", \"place\": \"%s\", \"device\": \"%s\", \"device_calls\": %lu, "
                "\"kernel_s\": %.9g, \"to_device_s\": %.9g, \"to_device_bytes\": %llu, \"from_device_s\": %.9g, "
                "\"from_device_bytes\": %llu, \"host_calls\": %lu, \"host_s\": %.9g}\n",
                s->codelet->name, s->codelet->place, all.device ? all.device->name : "", s->on_device,
                s->kernel_seconds, s->to_seconds, s->to_bytes, s->from_seconds, s->from_bytes, on_host,
                s->host_seconds);
    }
    fclose(file);
}

static void report(void) {
    const struct codelet_state *s;
    const char *path = getenv("LOOPTUNE_REPORT");
    if (path && *path) write_report(path);
    for (s = all.codelets; all.verbose && s; s = s->next) report_codelet(s);
    if (all.verbose && (all.loaded_bytes || all.stored_bytes))
        say("data directives: loaded %.3f MB in %.3f ms, stored %.3f MB in %.3f ms", 1e-6 * (double)all.loaded_bytes,
            1e3 * all.loaded_seconds, 1e-6 * (double)all.stored_bytes, 1e3 * all.stored_seconds);
    for (s = all.codelets; all.check && s; s = s->next)
        if (s->differing)
            say("%s (%s): calls that differ from the original loops: %lu of %lu", s->codelet->name, s->codelet->place,
                s->differing, s->compared);
        else if (s->compared)
            say("%s (%s): all calls agree with the original loops: %lu; the largest error is %.2g of the tolerance",
                s->codelet->name, s->codelet->place, s->compared, s->worst);
        else
            say("%s (%s): no call was compared", s->codelet->name, s->codelet->place);
}

/* Wait for what runs, and free everything. What only the device has stays in the list, for who still asks for it. */
static void close_device(void) {
    struct mirror **link = &all.mirrors;
    cu_handle popped;
    if (all.own_device != READY || all.used_in_parent || all.lost) return;
    if (!worked(cuda.push_context(all.context), "cuCtxPushCurrent")) return;
    if (finish_queued()) {
        struct codelet_state *s;
        for (s = all.codelets; s; s = s->next) {
            read_timing(s);
            if (s->begun) cuda.destroy_event(s->begun);
            if (s->ended) cuda.destroy_event(s->ended);
        }
        while (*link)
            if ((*link)->newer) {
                put_back((*link)->memory);
                (*link)->memory = NULL;
                link = &(*link)->next;
            } else
                drop(*link);
        free_unused();
        while (all.modules) {
            struct loaded_module *m = all.modules;
            if (m->context == all.context_number) cuda.unload_module(m->handle);
            all.modules = m->next;
            free(m);
        }
        cuda.free_memory(all.nowhere);
        if (all.staging_pinned) cuda.free_pinned(all.staging);
        cuda.destroy_event(all.half_free[0]);
        cuda.destroy_event(all.half_free[1]);
        cuda.destroy_stream(all.stream);
    }
    cuda.pop_context(&popped);
    cuda.release_context(all.device->number);
}

static void at_exit(void) {
    pthread_mutex_lock(&lock);
    if (!all.left) {
        all.left = 1;
        note_process();
        close_device();
        report();
        all.driver = all.own_device = UNAVAILABLE;
        snprintf(all.unavailable, sizeof all.unavailable, "the program has ended");
    }
    pthread_mutex_unlock(&lock);
}

#ifdef __cplusplus
}
#endif
