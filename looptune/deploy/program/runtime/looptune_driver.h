/* NVIDIA's driver: its functions, its errors, and the devices that it finds.
   A part of looptune_runtime.c, which includes it once. */

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
    X(let_wait, "cuStreamWaitEvent", (cu_handle stream, cu_handle event, unsigned flags))                            \
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
    X(free_in_order, "cuMemFreeAsync", (looptune_address at, cu_handle stream))                                      \
    X(create_pool, "cuMemPoolCreate", (cu_handle *pool, const void *properties))                                     \
    X(set_pool_attribute, "cuMemPoolSetAttribute", (cu_handle pool, int attribute, void *value))                     \
    X(allocate_in_pool, "cuMemAllocFromPoolAsync",                                                                   \
      (looptune_address *at, size_t bytes, cu_handle pool, cu_handle stream))                                        \
    X(is_captured, "cuStreamIsCapturing", (cu_handle stream, int *status))                                           \
    X(exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", (int *mode))                                       \
    X(begin_capture, "cuStreamBeginCapture_v2", (cu_handle stream, int mode))                                        \
    X(end_capture, "cuStreamEndCapture", (cu_handle stream, cu_handle *graph))                                       \
    X(instantiate, "cuGraphInstantiateWithFlags",                                                                    \
      (cu_handle *executable, cu_handle graph, unsigned long long flags))                                            \
    X(destroy_graph, "cuGraphDestroy", (cu_handle graph))                                                            \
    X(launch_graph, "cuGraphLaunch", (cu_handle executable, cu_handle stream))                                       \
    X(destroy_executable, "cuGraphExecDestroy", (cu_handle executable))

#define MEMBER(name, symbol, parameters) int(*name) parameters;
static struct { DRIVER_FUNCTIONS(MEMBER) NEWER_DRIVER_FUNCTIONS(MEMBER) } cuda;
#undef MEMBER

enum {
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_FIRST_OF_CAPTURE = 900,    /* what is not allowed while a stream is captured */
    CUDA_LAST_OF_CAPTURE = 910,     /* …, or not possible with a graph */
    CAPTURE_OF_THREAD = 1,          /* CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: other threads may do anything */
    CAPTURE_RELAXED = 2,            /* CU_STREAM_CAPTURE_MODE_RELAXED: and this one */
    MOST_THREADS_PER_BLOCK = 0,     /* CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK */
    MOST_DYNAMIC_SHARED = 8,        /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
    MULTIPROCESSORS = 16,           /* CU_DEVICE_ATTRIBUTE_… */
    CAPABILITY_MAJOR = 75,
    CAPABILITY_MINOR = 76,
    RELEASE_THRESHOLD = 4,          /* CU_MEMPOOL_ATTR_RELEASE_THRESHOLD */
    WITHOUT_TIMING = 2,             /* CU_EVENT_DISABLE_TIMING */
    NON_BLOCKING = 1                /* CU_STREAM_NON_BLOCKING: not ordered with the default stream */
};
static const unsigned long long STAGED_AT_ONCE = 4ull << 20; /* bytes of each half of the pinned memory */
static const int EXIT_LOST = 70;                             /* EX_SOFTWARE */
#define LARGEST_SHARED (48u << 10) /* bytes of dynamic shared memory that need no permission */

struct device {
    char name[128];
    int number, multiprocessors, capability;
    cu_handle pool; /* NULL before it is needed, and where there can be none */
    int asked_for_pool;
};

/* Memory of the device that a call has used and a later one may use. `used` is the number of what was queued last for
   it in the stream of the kernels. */
struct block {
    looptune_address at;
    unsigned long long bytes, used;
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

/* The launches of a call: kernels, grids, parameters, and memory that is set, one after the other. `whole`: all of them
   are in it, and a graph can replace them. */
struct record {
    unsigned char *bytes;
    size_t length, room;
    int launches, whole;
};

/* A record of a codelet that was launched, and the graph of it once it was launched twice. */
struct graph {
    struct record record;
    unsigned long long context, used; /* `used`: the number of the last call */
    cu_handle executable;
};
enum { GRAPHS = 4 };

/* The events of a call: around its copies to the device, and around its launches. */
enum { SENDING, SENT, LAUNCHING, LAUNCHED, EVENTS };

struct codelet_state {
    struct looptune_codelet *codelet;
    struct ran *ran;
    int levels_told[LEVEL_COUNT], default_told;
    unsigned long on_device, on_host[LOOPTUNE_REFUSED + 1];
    double kernel_seconds, to_seconds, from_seconds, host_seconds;
    unsigned long long to_bytes, from_bytes;
    cu_handle events[EVENTS];
    int sending, launching; /* the events around these are recorded, and not read */
    int cached;             /* `sizes` and `choice` are those of the last call */
    const struct device *cached_for;
    long long *sizes;
    struct choice choice;
    unsigned long compared, differing, widened;
    double worst; /* error over tolerance */
    struct graph graphs[GRAPHS];
    unsigned long replayed;
    int without_graphs; /* they did not work */
    struct codelet_state *next;
};

/* What the device computed in a checked call, until its thread compares it. `shifts` says how far the results move
   if the inputs change by one rounding, 0 where that is not known. */
struct checked {
    struct looptune_codelet *codelet;
    pthread_t thread;
    int count;
    void **copies;
    double *shifts;
    struct checked *next;
};

enum opened { NOT_YET, READY, UNAVAILABLE };

static struct {
    int set_up;
    pid_t process;
    int used_in_parent; /* CUDA cannot be used in this process: its parent used it */
    int used_threads;   /* loops ran, with OpenMP where they are parallel */
    int verbose, timed, check, graphs;
    int left;
    enum opened driver, own_device;
    char unavailable[300]; /* why */
    int unavailable_told;
    int lost;              /* no call of the driver works any more */
    int error;             /* the last one of the driver */
    struct device *devices;
    int device_count;
    struct device *device;
    cu_handle context, stream, copies; /* the stream of the kernels, and one for copies beside them */
    unsigned long long queued, done;   /* numbers of what was queued last, and of what has ended, in the former */
    unsigned long long context_number;
    char *staging; /* two halves */
    int staging_pinned;
    unsigned long long staged; /* bytes of the half in use */
    int half;
    cu_handle half_free[2][2]; /* of each half, in each of the two streams */
    int half_used[2][2];
    cu_handle arrived;
    looptune_address nowhere; /* of arrays without elements */
    struct block *unused;
    struct mirror *mirrors;
    struct loaded_module *modules;
    struct loaded_kernel *kernels[256];
    struct codelet_state *codelets;
    struct checked *checked;
    struct record record; /* of the call that runs */
    unsigned long long calls, recorded;
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
    struct device *device;
    int own_stream, checking, status, launched;
    struct block *scratch, *next_scratch;
    const struct looptune_array *arrays;
    int array_count;
    struct record *record; /* where a check notes the launches, NULL for nowhere */
    int has_pairs;         /* one launch at least is beside another one */
    int alone;             /* the last launch has blocks, and no other one is beside it */
    struct second_stream *second; /* while such launches are captured */
};

/* Another stream of a capture, for the second of two kernels that may run at the same time, and events: where they begin,
   and where the second one ends. */
struct second_stream {
    cu_handle stream, begin, end;
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

/* No call of the driver is made from now on, for `all.reason`. */
static void lose_device(void) {
    if (all.lost) return;
    all.lost = 1;
    snprintf(all.unavailable, sizeof all.unavailable, "the device failed: %.200s", all.reason);
    if (all.verbose && !all.left) say("%s; it is not used again", all.unavailable);
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
    if (all.driver == READY && !leaves_device_usable(error)) lose_device();
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
#ifdef _OPENMP
    /* The threads that the parent has for OpenMP are not in the child, and libgomp would wait for them. */
    if (all.used_threads) omp_set_num_threads(1);
#endif
    pthread_mutex_unlock(&lock);
}

static void set_up(void) {
    if (!all.set_up) {
        all.set_up = 1;
        all.process = getpid();
        all.verbose = enabled("LOOPTUNE_VERBOSE");
        all.timed = all.verbose || (getenv("LOOPTUNE_REPORT") && *getenv("LOOPTUNE_REPORT"));
        all.check = enabled("LOOPTUNE_CHECK");
        all.graphs = !getenv("LOOPTUNE_GRAPHS") || strcmp(getenv("LOOPTUNE_GRAPHS"), "0") != 0;
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
