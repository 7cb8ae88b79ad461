/* The runtime of programs that `looptune cc` builds: it runs codelets on an NVIDIA GPU, or says that it did not.
 *
 *     call ─▶ device? version for it and these sizes ─▶ arrays to the device ─▶ launches ─▶ arrays back
 *
 * libcuda is opened when the first codelet is called; without it, without a device, and after an error before anything
 * was written to the host's arrays, the caller runs the original loops. Nothing else is needed to run a program.
 *
 * Any thread may call; calls of one process run one after the other. A process that was forked after the first call
 * runs the original loops, since what CUDA had set up is its parent's.
 *
 * Environment: LOOPTUNE_VERBOSE=1 (what ran where, and why), LOOPTUNE_CHECK=1 (compare each call with the original
 * loops), LOOPTUNE_DEVICE=none|0|1|..., LOOPTUNE_GRAPHS=0 (launch kernels one after the other)
 *
 * Compile looptune_runtime.c as C99 or C++, and link with -ldl -lpthread -lm.
 */
#ifndef LOOPTUNE_RUNTIME_H
#define LOOPTUNE_RUNTIME_H

#include <stddef.h>

/* Every object of a program may carry a copy of the runtime: one of them serves them all, and a shared library has its
   own. */
#if defined(__GNUC__)
#define LOOPTUNE_HIDDEN __attribute__((visibility("hidden")))
#else
#define LOOPTUNE_HIDDEN
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What a call gives back: OK, or why nothing was done, so that the caller runs the original loops. */
enum looptune_status {
    LOOPTUNE_OK = 0,
    LOOPTUNE_COMPARE,       /* LOOPTUNE_CHECK: run the original loops, then call looptune_compare */
    LOOPTUNE_NO_DEVICE,     /* no libcuda, no device, or LOOPTUNE_DEVICE=none */
    LOOPTUNE_NO_CODE,       /* no machine code for this device */
    LOOPTUNE_NO_MEMORY,     /* the arrays do not fit into the memory of the device */
    LOOPTUNE_ALIASED,       /* arrays overlap, one of which is written */
    LOOPTUNE_BAD_GRID,      /* the sizes need a grid that no GPU launches */
    LOOPTUNE_MISALIGNED,
    LOOPTUNE_FAILED,        /* the driver refused something, or lost the device */
    LOOPTUNE_REFUSED        /* the sizes are not what the analysis of the codelet assumes */
};

typedef unsigned long long looptune_address;    /* of memory on the device */

/* Machine code of one kernel: `capability` is 90 for sm_90; PTX of it, which ends in a 0, serves later ones. */
struct looptune_image {
    int capability;
    int is_ptx;
    const void *code;
    size_t bytes;
};

struct looptune_kernel {
    const char *symbol;                     /* the name of the function in its images */
    const char *name;                       /* for messages */
    const struct looptune_image *images;
    int image_count;
    unsigned block[3];                      /* threads */
    unsigned shared_bytes;                  /* dynamic shared memory, 0 for none */
    const unsigned char *parameters;        /* their sizes in bytes, and 0; NULL if they are not known */
};

struct looptune_run;                        /* one call on a device, while it runs */

/* Launch on the stream of the run; the status is kept in the run as well, and later launches do nothing then.
   `arguments` are the addresses of the kernel's arguments. A grid with a dimension of 0 or less launches nothing. */
LOOPTUNE_HIDDEN
int looptune_launch(struct looptune_run *, const struct looptune_kernel *, long long x, long long y, long long z,
                    void **arguments);
/* The same for a kernel that may run at the same time as the one that the plan has just launched; in a graph it does,
   unless that launch had no blocks, or was itself beside another one. What is launched next waits for both. */
LOOPTUNE_HIDDEN
int looptune_launch_beside(struct looptune_run *, const struct looptune_kernel *, long long x, long long y, long long z,
                           void **arguments);
/* The same for a kernel whose blocks wait for each other: `each` blocks on every multiprocessor. */
LOOPTUNE_HIDDEN
int looptune_launch_together(struct looptune_run *, const struct looptune_kernel *, int each, void **arguments);
/* Whether kernels with subscripts of 32 bits address all elements of the run's arrays, and of one of their own with `own`
   elements; else the run is refused, so that another version or the host can take over. */
LOOPTUNE_HIDDEN
int looptune_countable(struct looptune_run *, unsigned long long own);
/* Memory of the device until the run ends; 0 if there is none (the run has failed then). */
LOOPTUNE_HIDDEN
looptune_address looptune_scratch(struct looptune_run *, unsigned long long bytes, int zeroed);

/* The launches of one version. `arguments` are the codelet's own (a struct of the generated file), `arrays` the
   addresses of its arrays on the device, in order. It is called twice, and must do the same both times: first nothing
   is launched, but checked, so that another version or the host can take over before anything has run. */
typedef int (*looptune_plan)(struct looptune_run *, const void *arguments, const looptune_address *arrays);

/* A version that was measured: on which device, at which sizes. `exact` runs at these sizes on this device, `elsewhere`
   at others, NULL if it fits these sizes only. */
struct looptune_version {
    const char *device;
    int multiprocessors;
    int capability;
    const long long *sizes;
    looptune_plan exact, elsewhere;
    const char *directives;
};

/* READ and WRITTEN: the kernel changes a part. WRITTEN alone: it writes all that the host needs. Neither: the array is
   the device's own. KEPT stands beside WRITTEN: from then on the copy on the device is the array, until it is stored, a
   call without KEPT has written it, or a call runs on the host. Until then the host must not write it (but may load it
   anew), and it is released before its memory is freed. */
enum { LOOPTUNE_READ = 1,           /* the device needs the host's contents */
       LOOPTUNE_WRITTEN = 2,        /* the host needs the contents afterwards */
       LOOPTUNE_PRESENT = 4,        /* the copy on the device is current where there is one: it is not copied again */
       LOOPTUNE_KEPT = 8,           /* written, but stays on the device: looptune_store or a later call fetches it */
       LOOPTUNE_ALIGNED = 16,       /* the kernel reads 16 bytes at a time */
       LOOPTUNE_GATHERED = 32 };    /* the runtime's: see looptune_call_in_pieces */

/* An array of a call: `bytes` from `host` on. `kind` is f (float), b (bfloat16), i (signed) or u
   (unsigned), of `item` bytes. */
struct looptune_array {
    const char *name;
    void *host;
    unsigned long long bytes;
    unsigned flags;
    char kind;
    unsigned char item;
};

struct looptune_codelet {
    const char *name;
    const char *place;                      /* app.c:53 */
    const struct looptune_version *versions;
    int version_count;
    const char *const *size_names;
    int size_count;
    looptune_plan by_default;               /* any device, any sizes */
    double terms;                           /* set by the caller: most terms of a sum, for LOOPTUNE_CHECK */
    void *state;                            /* the runtime's */
    /* What a model predicts to be fastest at any sizes, where nothing was tuned: only `elsewhere` and `directives` of it;
       NULL for none. */
    const struct looptune_version *predicted;
    /* The errors that the user allows in arrays whose values depend on rounded factors, relative to an element and the
       median of its array; NULL for none. */
    const double *relative;
};

/* Run a codelet. `loops` are the original loops on the cores of the host, or NULL: they run if there is no device and
   none of the arrays overlap, and LOOPTUNE_OK is returned. `asynchronous`: return once everything is queued; the host
   may change what is only read, and gets what is written when it synchronizes.
   The arrays of the host are written when all kernels have ended without an error; after one they are as they were, and
   the caller can run the original loops. Where that is impossible (the device is lost with the only copy of an array,
   or while results of more than 8 MB are copied over their own inputs), the program ends with exit status 70. */
LOOPTUNE_HIDDEN
int looptune_call(struct looptune_codelet *, const void *arguments, const long long *sizes,
                  struct looptune_array *arrays, int array_count, void (*loops)(const void *arguments),
                  int asynchronous);
/* An array that the host has in `count` pieces of `bytes` bytes each: `rows` are their addresses, or they begin every
   `stride` bytes from `base` on, in structs of which the first is at `structs`. An array in one piece has neither. */
struct looptune_pieces {
    void *const *rows;
    char *base, *structs;
    unsigned long long stride, count, bytes;
};
/* The same for arrays in pieces, which are copied into one and back; it waits for the results, and never runs loops. */
LOOPTUNE_HIDDEN
int looptune_call_in_pieces(struct looptune_codelet *, const void *arguments, const long long *sizes,
                            struct looptune_array *arrays, const struct looptune_pieces *pieces, int array_count);
LOOPTUNE_HIDDEN
void looptune_compare_in_pieces(struct looptune_codelet *, struct looptune_array *arrays,
                                const struct looptune_pieces *pieces, int array_count);

/* After any other status than LOOPTUNE_OK and LOOPTUNE_COMPARE, and the original loops: note how long they took. */
LOOPTUNE_HIDDEN
void looptune_done(struct looptune_codelet *);
/* After LOOPTUNE_COMPARE and the original loops, in the same thread: compare what the device computed with the arrays
   of the host. */
LOOPTUNE_HIDDEN
void looptune_compare(struct looptune_codelet *, struct looptune_array *arrays, int array_count);

/* Say that a call is not what the analysis of the codelet assumes, and why; returns LOOPTUNE_REFUSED. */
LOOPTUNE_HIDDEN
int looptune_refuse(struct looptune_codelet *, const char *why);

/* Of the next call of this codelet by this thread: the arrays (a bit for each, in order) that are PRESENT and KEPT. */
LOOPTUNE_HIDDEN
void looptune_next(struct looptune_codelet *, unsigned long long present, unsigned long long kept, int asynchronous);
/* Between these two, which nest, calls of the thread leave their arrays on the device, and what is there already is not
   copied again: the host touches no array meanwhile. Then all that only the device has is copied to the host. */
LOOPTUNE_HIDDEN
void looptune_hold(void);
LOOPTUNE_HIDDEN
void looptune_give_back(void);

/* Arithmetic of generated files. */
static inline unsigned long long looptune_bytes(long long count, unsigned long long item) {
    return count > 0 ? (unsigned long long)count * item : 0;
}
static inline long long looptune_min(long long a, long long b) { return a < b ? a : b; }
static inline long long looptune_max(long long a, long long b) { return a > b ? a : b; }
static inline long long looptune_floord(long long a, long long b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

/* Data directives, by the address on the host. */
LOOPTUNE_HIDDEN
void looptune_load(const char *name, const void *host, unsigned long long bytes);   /* to the device, now */
LOOPTUNE_HIDDEN
void looptune_store(const char *name, void *host, unsigned long long bytes);        /* to the host, now */
LOOPTUNE_HIDDEN
void looptune_synchronize(struct looptune_codelet *);       /* wait for its asynchronous call */
LOOPTUNE_HIDDEN
void looptune_release(const void *host);                    /* free the copy on the device; NULL: all */

/* For libraries: run on the caller's device memory and stream (a CUstream; NULL is the default stream) in the current
   context. Asynchronous. Never runs loops on the host. After LOOPTUNE_FAILED what is written has no defined contents;
   after any other status but LOOPTUNE_OK nothing was queued. */
LOOPTUNE_HIDDEN
int looptune_call_on_device(struct looptune_codelet *, const void *arguments, const long long *sizes,
                            const looptune_address *arrays, const struct looptune_array *described, int array_count,
                            void *stream);
/* What a call at these sizes would run: the level of the match ("exact", "same device", "same capability",
   "same family", "predicted", "default", "host") and the directives. */
LOOPTUNE_HIDDEN
int looptune_match(struct looptune_codelet *, const long long *sizes, const char **level, const char **directives);
LOOPTUNE_HIDDEN
const char *looptune_message(int status);

#ifdef __cplusplus
}
#endif
#endif
