/* Memory of the device, and the copies of arrays there; transfers through pinned memory.
   A part of looptune_runtime.c, which includes it once. */

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
           worked(cuda.create_stream(&all.copies, NON_BLOCKING), "cuStreamCreate") &&
           worked(cuda.create_event(&all.half_free[0][0], WITHOUT_TIMING), "cuEventCreate") &&
           worked(cuda.create_event(&all.half_free[0][1], WITHOUT_TIMING), "cuEventCreate") &&
           worked(cuda.create_event(&all.half_free[1][0], WITHOUT_TIMING), "cuEventCreate") &&
           worked(cuda.create_event(&all.half_free[1][1], WITHOUT_TIMING), "cuEventCreate") &&
           worked(cuda.create_event(&all.arrived, WITHOUT_TIMING), "cuEventCreate") &&
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
    if (status == LOOPTUNE_OK && !worked(cuda.push_context(all.context), "cuCtxPushCurrent")) {
        lose_device(); /* whatever the error is: nothing can be fetched */
        status = LOOPTUNE_FAILED;
    }
    return status;
}
static void leave(int status) {
    cu_handle popped;
    if (status == LOOPTUNE_OK) cuda.pop_context(&popped);
    pthread_mutex_unlock(&lock);
}

/* Wait until all that was queued is done: the stream of the kernels waits for the other one. */
static int finish_queued(void) {
    if (all.lost || !worked(cuda.wait_stream(all.stream), "cuStreamSynchronize")) return 0;
    all.done = all.queued;
    all.staged = 0;
    all.half = 0;
    memset(all.half_used, 0, sizeof all.half_used);
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

/* Take the other half of the staging memory, once what was copied from it has arrived. */
static int change_halves(void) {
    int k;
    for (k = 0; k < 2; k++)
        if (all.half_used[all.half][k] &&
            !worked(cuda.record_event(all.half_free[all.half][k], k ? all.copies : all.stream), "cuEventRecord"))
            return 0;
    all.half = !all.half;
    all.staged = 0;
    for (k = 0; k < 2; k++) {
        if (all.half_used[all.half][k] && !worked(cuda.wait_event(all.half_free[all.half][k]), "cuEventSynchronize"))
            return 0;
        all.half_used[all.half][k] = 0;
    }
    return 1;
}

/* Queue the copying of an array to the device in parts, beside the kernels or after them. */
static int send_parts(looptune_address at, const char *from, unsigned long long bytes, int beside) {
    cu_handle stream = beside ? all.copies : all.stream;
    while (bytes) {
        unsigned long long part;
        char *staged;
        if (all.staged == STAGED_AT_ONCE && !change_halves()) return 0;
        part = smaller(bytes, STAGED_AT_ONCE - all.staged);
        staged = all.staging + (all.half ? STAGED_AT_ONCE : 0) + all.staged;
        memcpy(staged, from, part);
        if (!worked(cuda.copy_to(at, staged, part, stream), "cuMemcpyHtoDAsync")) return 0;
        all.half_used[all.half][beside] = 1;
        all.staged = smaller(STAGED_AT_ONCE, all.staged + (part + 63) / 64 * 64);
        at += part;
        from += part;
        bytes -= part;
    }
    return 1;
}

/* Queue the copying of an array to the device. The host may change it at once. Where nothing that is queued uses the
   memory, it is copied beside the kernels that run, and those that are queued later wait for it. After an error that
   is waited for here: nothing else would, and the memory that it copies from and to is used again. */
static int send_bytes(struct block *to, const char *from, unsigned long long bytes) {
    int beside = all.queued > all.done && to->used <= all.done;
    if (!have_staging()) return 0;
    if (!beside) {
        to->used = ++all.queued;
        return send_parts(to->at, from, bytes, 0);
    }
    if (send_parts(to->at, from, bytes, 1) && worked(cuda.record_event(all.arrived, all.copies), "cuEventRecord") &&
        worked(cuda.let_wait(all.stream, all.arrived, 0), "cuStreamWaitEvent"))
        return 1;
    if (!all.lost && !worked(cuda.wait_stream(all.copies), "cuStreamSynchronize")) lose_device();
    return 0;
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
                !worked(cuda.record_event(all.half_free[half][0], all.stream), "cuEventRecord"))
                return 0;
            queued += part;
        }
        arriving[half] = part;
        half = !half;
        if (arriving[half]) {
            if (!worked(cuda.wait_event(all.half_free[half][0]), "cuEventSynchronize")) return 0;
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
    b->used = all.queued;
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

static int forget_graphs(void); /* see looptune_graphs.h */

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
    while (error == CUDA_OUT_OF_MEMORY && (all.unused || forget_graphs() || drop_oldest())) {
        free_unused();
        error = all.lost ? error : cuda.allocate(&b->at, bytes);
    }
    if (worked(error, "cuMemAlloc")) return b;
    if (error == CUDA_OUT_OF_MEMORY) because(LOOPTUNE_NO_MEMORY, "the device has no %llu bytes left", bytes);
    free(b);
    return NULL;
}

/* Record an event of a call, for its times. */
static int mark(struct codelet_state *s, int which) {
    cu_handle *event = &s->events[which];
    return (*event || worked(cuda.create_event(event, 0), "cuEventCreate")) &&
           worked(cuda.record_event(*event, all.stream), "cuEventRecord");
}

/* The seconds between two events of a call, once the device has come to the second. */
static double between(const struct codelet_state *s, int first, int second) {
    float milliseconds;
    if (all.lost || !worked(cuda.wait_event(s->events[second]), "cuEventSynchronize") ||
        !worked(cuda.elapsed(&milliseconds, s->events[first], s->events[second]), "cuEventElapsedTime"))
        return 0;
    return 1e-3 * (double)milliseconds;
}

/* Add the times of what the events of the last call stand around. */
static void read_timing(struct codelet_state *s) {
    if (s->sending) s->to_seconds += between(s, SENDING, SENT);
    if (s->launching) s->kernel_seconds += between(s, LAUNCHING, LAUNCHED);
    s->sending = s->launching = 0;
}

/* Keep the device busy while launches are queued, so that the time of kernels has no time of the host in it: copying
   what is staged takes some 80 us, and the host some 5 us for a launch. Memory is set by the unit that runs kernels:
   it has then waited for the one that copies. */
static void keep_busy(void) {
    struct block *b = have_staging() ? take(STAGED_AT_ONCE) : NULL;
    if (!b) return;
    worked(cuda.copy_to(b->at, all.staging + (all.half ? 0 : STAGED_AT_ONCE), STAGED_AT_ONCE, all.stream),
           "cuMemcpyHtoDAsync");
    worked(cuda.set_bytes(all.nowhere, 0, 256, all.stream), "cuMemsetD8Async");
    all.queued++;
    put_back(b);
}
