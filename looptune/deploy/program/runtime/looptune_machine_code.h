/* Kernels: the machine code for a device, and their launches.
   A part of looptune_runtime.c, which includes it once. */

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

/* The stream of a launch: where launches of a capture may be beside each other, the second of two is on another one, and
   waits for what the first one waits for. */
static cu_handle begin_launch(struct looptune_run *run, int beside) {
    const struct second_stream *s = run->second;
    int done = !s || (beside ? graph_worked(cuda.let_wait(s->stream, s->begin, 0), "cuStreamWaitEvent")
                             : graph_worked(cuda.record_event(s->begin, run->stream), "cuEventRecord"));
    if (!done) run->status = LOOPTUNE_FAILED;
    return s && beside ? s->stream : run->stream;
}

/* What is launched next waits for both. */
static void end_launch(struct looptune_run *run, int beside) {
    const struct second_stream *s = run->second;
    if (run->status == LOOPTUNE_OK && s && beside &&
        !(graph_worked(cuda.record_event(s->end, s->stream), "cuEventRecord") &&
          graph_worked(cuda.let_wait(run->stream, s->end, 0), "cuStreamWaitEvent")))
        run->status = LOOPTUNE_FAILED;
}

static int launch_grid(struct looptune_run *run, const struct looptune_kernel *kernel, long long x, long long y,
                       long long z, void **arguments, int beside) {
    const struct loaded_kernel *k;
    const unsigned *b = kernel->block;
    cu_handle stream;
    run->alone = 0;
    if (run->status != LOOPTUNE_OK || x <= 0 || y <= 0 || z <= 0) return run->status;
    if (x > 2147483647 || y > 65535 || z > 65535)
        return run->status = because(LOOPTUNE_BAD_GRID, "%s needs %lld x %lld x %lld blocks, the limits are "
                                     "2147483647 x 65535 x 65535", kernel->name, x, y, z);
    k = loaded(kernel, run);
    if (k->status != LOOPTUNE_OK) return run->status = k->status;
    run->alone = !beside;
    run->has_pairs |= beside;
    if (run->checking) {
        record_launch(run, kernel, (unsigned long long)x, (unsigned long long)y, (unsigned long long)z, beside, arguments);
        return LOOPTUNE_OK;
    }
    stream = begin_launch(run, beside);
    if (run->status == LOOPTUNE_OK)
        launched(run, cuda.launch(k->function, (unsigned)x, (unsigned)y, (unsigned)z, b[0], b[1], b[2],
                                  kernel->shared_bytes, stream, arguments, NULL), "cuLaunchKernel");
    end_launch(run, beside);
    return run->status;
}

LOOPTUNE_WEAK int looptune_launch(struct looptune_run *run, const struct looptune_kernel *kernel, long long x,
                                  long long y, long long z, void **arguments) {
    return launch_grid(run, kernel, x, y, z, arguments, 0);
}

LOOPTUNE_WEAK int looptune_launch_beside(struct looptune_run *run, const struct looptune_kernel *kernel, long long x,
                                         long long y, long long z, void **arguments) {
    return launch_grid(run, kernel, x, y, z, arguments, run->alone);
}

LOOPTUNE_WEAK int looptune_launch_together(struct looptune_run *run, const struct looptune_kernel *kernel, int each,
                                           void **arguments) {
    const struct loaded_kernel *k;
    const unsigned *b = kernel->block;
    int fit = 0;
    run->alone = 0;
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
        record_launch(run, kernel, (unsigned long long)each, 0, 0, 0, arguments);
        return run->status;
    }
    return launched(run, cuda.launch_together(k->function, (unsigned)(each * run->device->multiprocessors), 1, 1, b[0],
                                              b[1], b[2], kernel->shared_bytes, run->stream, arguments),
                    "cuLaunchCooperativeKernel");
}

/* The pool of a device that keeps memory for the next call: the driver's own gives it back to the system whenever a
   stream is waited for, and the next call takes 0.2 ms to get it again. */
static cu_handle pool_of(struct device *device) {
    struct { /* CUmemPoolProps */
        int type, handles, place, number;
        void *attributes;
        unsigned char more[104];
    } wanted;
    unsigned long long all_of_it = ~0ull;
    if (device->asked_for_pool || !cuda.create_pool || !cuda.set_pool_attribute || !cuda.allocate_in_pool)
        return device->pool;
    device->asked_for_pool = 1;
    memset(&wanted, 0, sizeof wanted);
    wanted.type = 1;  /* CU_MEM_ALLOCATION_TYPE_PINNED */
    wanted.place = 1; /* CU_MEM_LOCATION_TYPE_DEVICE */
    wanted.number = device->number;
    if (cuda.create_pool(&device->pool, &wanted) != 0) device->pool = NULL;
    if (device->pool) cuda.set_pool_attribute(device->pool, RELEASE_THRESHOLD, &all_of_it);
    return device->pool;
}

/* Memory that is ordered with the caller's stream, if the driver can do that. */
static struct block *take_for(const struct looptune_run *run, unsigned long long bytes) {
    struct block *b;
    cu_handle pool;
    int error;
    if (run->own_stream) return take(bytes);
    b = (struct block *)zeros(1, sizeof *b);
    b->bytes = bytes;
    pool = cuda.free_in_order ? pool_of(run->device) : NULL;
    if (pool)
        error = cuda.allocate_in_pool(&b->at, bytes, pool, run->stream);
    else if (cuda.allocate_in_order && cuda.free_in_order)
        error = cuda.allocate_in_order(&b->at, bytes, run->stream);
    else
        error = cuda.allocate(&b->at, bytes);
    if (worked(error, "cuMemAlloc")) return b;
    free(b);
    return NULL;
}

LOOPTUNE_WEAK int looptune_countable(struct looptune_run *run, unsigned long long own) {
    const unsigned long long most = 2147483648ull;
    int k;
    if (own > most)
        run->status = because(LOOPTUNE_REFUSED, "an array of the kernels has %llu elements, the limit is %llu", own, most);
    for (k = 0; k < run->array_count; k++) {
        const struct looptune_array *a = &run->arrays[k];
        if (a->item && a->bytes / a->item > most)
            run->status = because(LOOPTUNE_REFUSED, "%s has %llu elements, the limit of kernels for any sizes is %llu",
                                  a->name, a->bytes / a->item, most);
    }
    return run->status == LOOPTUNE_OK;
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
        if (zeroed) record_launch(run, NULL, b->at, bytes, 0, 0, NULL);
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
