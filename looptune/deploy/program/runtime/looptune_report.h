/* The report at exit, and the end of the program.
   A part of looptune_runtime.c, which includes it once. */

static void forget_counts(void) {
    struct codelet_state *s;
    all.unavailable_told = 0;
    all.loaded_bytes = all.stored_bytes = 0;
    all.loaded_seconds = all.stored_seconds = 0;
    for (s = all.codelets; s; s = s->next) {
        struct ran *r;
        for (r = s->ran; r; r = r->next) r->calls = 0;
        memset(s->on_host, 0, sizeof s->on_host);
        s->on_device = s->compared = s->differing = s->replayed = 0;
        s->kernel_seconds = s->to_seconds = s->from_seconds = s->host_seconds = s->worst = 0;
        s->to_bytes = s->from_bytes = 0;
        s->sending = s->launching = 0;
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
    if (s->replayed) say("%s (%s):   kernels launched as one graph, calls: %lu", c->name, c->place, s->replayed);
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
    int k;
    if (all.own_device != READY || all.used_in_parent || all.lost) return;
    if (!worked(cuda.push_context(all.context), "cuCtxPushCurrent")) return;
    if (finish_queued()) {
        struct codelet_state *s;
        for (s = all.codelets; s; s = s->next) {
            read_timing(s);
            for (k = 0; k < EVENTS; k++)
                if (s->events[k]) cuda.destroy_event(s->events[k]);
        }
        forget_graphs();
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
        for (k = 0; k < 4; k++) cuda.destroy_event(all.half_free[k / 2][k % 2]);
        cuda.destroy_event(all.arrived);
        cuda.destroy_stream(all.copies);
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
