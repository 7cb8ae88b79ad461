/* What a handler on a GPU needs of the driver beside the launches, which are those of looptune_runtime.c. */
#ifndef LOOPTUNE_XLA_CUDA_H
#define LOOPTUNE_XLA_CUDA_H

#include <dlfcn.h>
#include <stddef.h>

static void *looptune_xla_symbol(const char *symbol) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return library ? dlsym(library, symbol) : NULL;
}

/* Make the context of a stream current; whether that was done, and has to be undone. */
static int looptune_xla_enter(void *stream) {
    typedef int asking(void *, void **);
    typedef int pushing(void *);
    static asking *context_of;
    static pushing *push;
    void *context = NULL;
    if (!context_of) context_of = (asking *)looptune_xla_symbol("cuStreamGetCtx");
    if (!push) push = (pushing *)looptune_xla_symbol("cuCtxPushCurrent_v2");
    if (!stream || !context_of || !push || context_of(stream, &context) != 0) return 0;
    return push(context) == 0;
}

static void looptune_xla_leave(int entered) {
    typedef int popping(void **);
    static popping *pop;
    void *context;
    if (!pop) pop = (popping *)looptune_xla_symbol("cuCtxPopCurrent_v2");
    if (entered && pop) pop(&context);
}

/* Queue a copy on the device; 0 if that worked. */
static int looptune_xla_copy(void *to, const void *from, size_t bytes, void *stream) {
    typedef int function(unsigned long long, unsigned long long, size_t, void *);
    static function *copy;
    if (!copy) copy = (function *)looptune_xla_symbol("cuMemcpyDtoDAsync_v2");
    return copy ? copy((unsigned long long)(size_t)to, (unsigned long long)(size_t)from, bytes, stream) : -1;
}

/* Copy to the host, when all that was queued is done; 0 if that worked. */
static int looptune_xla_fetch(void *to, const void *from, size_t bytes, void *stream) {
    typedef int function(void *, unsigned long long, size_t, void *);
    typedef int waiting(void *);
    static function *copy;
    static waiting *wait;
    if (!copy) copy = (function *)looptune_xla_symbol("cuMemcpyDtoHAsync_v2");
    if (!wait) wait = (waiting *)looptune_xla_symbol("cuStreamSynchronize");
    if (!copy || !wait) return -1;
    return copy(to, (unsigned long long)(size_t)from, bytes, stream) || wait(stream);
}

static const struct looptune_xla_driver looptune_xla_cuda = {
    looptune_xla_copy, looptune_xla_fetch, looptune_xla_enter, looptune_xla_leave
};

#endif
