/* Graphs: the launches of a call that was made before, as one.
   A part of looptune_runtime.c, which includes it once.

     check of a call ─▶ record of its launches ─▶ never seen: launched one after the other
                                                  seen once: captured into a graph, which is launched
                                                  seen twice: the graph is launched again

   In the graph, kernels that may run at the same time do so: the second of two is captured on another stream.

   A launch takes the host some 4 us, one in a graph 0.5 us, and the device has a shorter gap between kernels. Capturing
   launches and making them executable takes longer than launching them once: a call that is not repeated would lose. The
   record is all that is launched, so that a graph can only do what the call would. */

static const int FEWEST_LAUNCHES = 3;    /* the launch of a graph takes as long as that of two kernels */
static const int MOST_LAUNCHES = 16384;  /* for the memory that records and graphs take */

static int run_plan(struct looptune_run *run, looptune_plan plan, const void *arguments, const looptune_address *at);

static void add_bytes(struct record *r, const void *from, size_t bytes) {
    if (r->length + bytes > r->room) {
        r->room = 2 * (r->length + bytes);
        r->bytes = (unsigned char *)needed(realloc(r->bytes, r->room));
    }
    memcpy(r->bytes + r->length, from, bytes);
    r->length += bytes;
}

static void begin_record(struct record *r) {
    if (!r) return;
    r->length = 0;
    r->launches = 0;
    r->whole = 1;
}

/* Note what a check would launch: a kernel with a grid, maybe beside the one before it, or memory that is set (no kernel,
   and where it is). */
static void record_launch(const struct looptune_run *run, const struct looptune_kernel *kernel, unsigned long long x,
                          unsigned long long y, unsigned long long z, int beside, void **arguments) {
    struct record *r = run->record;
    unsigned long long head[5];
    int k;
    if (!r || !r->whole) return;
    if ((kernel && !kernel->parameters) || ++r->launches > MOST_LAUNCHES) {
        r->whole = 0;
        return;
    }
    head[0] = (unsigned long long)(uintptr_t)kernel;
    head[1] = x;
    head[2] = y;
    head[3] = z;
    head[4] = (unsigned long long)beside;
    add_bytes(r, head, sizeof head);
    for (k = 0; kernel && kernel->parameters[k]; k++) add_bytes(r, arguments[k], kernel->parameters[k]);
}

/* Whether the runs of a codelet are to be recorded. */
static struct record *record_of(const struct codelet_state *s, const struct looptune_run *run) {
    int status = 0;
    if (!all.graphs || all.check || s->without_graphs || !cuda.is_captured || !cuda.exchange_capture_mode ||
        !cuda.begin_capture || !cuda.end_capture || !cuda.instantiate || !cuda.destroy_graph || !cuda.launch_graph ||
        !cuda.destroy_executable)
        return NULL;
    if (run->own_stream) return &all.record;
    /* Contexts of a caller need numbers, since one may be made where another one was. What is launched on a stream that
       the caller captures belongs to the caller's graph. */
    if (!cuda.context_number || cuda.is_captured(run->stream, &status) != 0 || status != 0) return NULL;
    return &all.record;
}

/* Whether a call for a graph worked; if not, launches may, unless the device is lost. */
static int graph_worked(int error, const char *call) {
    if (error == 0) return 1;
    if (error >= CUDA_FIRST_OF_CAPTURE && error <= CUDA_LAST_OF_CAPTURE)
        because(LOOPTUNE_FAILED, "%s: error %d", call, error);
    else
        worked(error, call);
    return 0;
}

/* Destroy a graph. What belongs to a context that is not current may be gone with it. */
static void forget_graph(struct graph *g, unsigned long long current) {
    if (g->executable && g->context == current && !all.lost && !all.used_in_parent)
        cuda.destroy_executable(g->executable);
    g->executable = NULL;
}

/* Destroy the graphs in the context of the program, which is current: 0 if there are none. */
static int forget_graphs(void) {
    struct codelet_state *s;
    int k, found = 0;
    for (s = all.codelets; s; s = s->next)
        for (k = 0; k < GRAPHS; k++) {
            if (!s->graphs[k].executable || s->graphs[k].context != all.context_number) continue;
            forget_graph(&s->graphs[k], all.context_number);
            found = 1;
        }
    return found;
}

/* The graph of a run, or the record of one that was launched once. */
static struct graph *find_graph(struct codelet_state *s, const struct looptune_run *run) {
    const struct record *r = run->record;
    int k;
    for (k = 0; k < GRAPHS; k++) {
        struct graph *g = &s->graphs[k];
        if (g->record.length == r->length && g->context == run->context &&
            memcmp(g->record.bytes, r->bytes, r->length) == 0)
            return g;
    }
    return NULL;
}

/* Keep the record of a run in place of the one that was used longest ago. */
static void keep_record(struct codelet_state *s, struct looptune_run *run) {
    struct graph *oldest = &s->graphs[0];
    struct record kept;
    int k;
    for (k = 1; k < GRAPHS; k++)
        if (s->graphs[k].used < oldest->used) oldest = &s->graphs[k];
    forget_graph(oldest, run->context);
    kept = oldest->record;
    oldest->record = *run->record;
    *run->record = kept;
    oldest->context = run->context;
    oldest->used = ++all.recorded;
}

/* Make the second stream of a capture, where a run has launches for it. */
static int make_second(struct second_stream *s, const struct looptune_run *run) {
    return !run->has_pairs || (graph_worked(cuda.create_stream(&s->stream, NON_BLOCKING), "cuStreamCreate") &&
                               graph_worked(cuda.create_event(&s->begin, WITHOUT_TIMING), "cuEventCreate") &&
                               graph_worked(cuda.create_event(&s->end, WITHOUT_TIMING), "cuEventCreate"));
}

static void destroy_second(const struct second_stream *s) {
    if (all.lost) return;
    if (s->stream) cuda.destroy_stream(s->stream);
    if (s->begin) cuda.destroy_event(s->begin);
    if (s->end) cuda.destroy_event(s->end);
}

/* Capture the launches of a run on a stream of its own, whatever captures the thread has begun elsewhere. */
static int capture(struct graph *g, struct looptune_run *run, looptune_plan plan, const void *arguments,
                   const looptune_address *at) {
    cu_handle stream = NULL, graph = NULL, of_run = run->stream;
    struct second_stream second = {NULL, NULL, NULL};
    int mode = CAPTURE_RELAXED, done;
    if (!graph_worked(cuda.exchange_capture_mode(&mode), "cuThreadExchangeStreamCaptureMode")) return 0;
    done = graph_worked(cuda.create_stream(&stream, NON_BLOCKING), "cuStreamCreate") &&
           make_second(&second, run) && graph_worked(cuda.begin_capture(stream, CAPTURE_OF_THREAD), "cuStreamBeginCapture");
    if (done) {
        run->stream = stream;
        run->second = run->has_pairs ? &second : NULL;
        done = run_plan(run, plan, arguments, at) == LOOPTUNE_OK;
        run->stream = of_run;
        run->second = NULL;
        run->launched = 0;
        done = graph_worked(cuda.end_capture(stream, &graph), "cuStreamEndCapture") && done;
    }
    done = done && graph_worked(cuda.instantiate(&g->executable, graph, 0), "cuGraphInstantiate");
    if (!done) g->executable = NULL;
    if (graph && !all.lost) cuda.destroy_graph(graph);
    if (stream && !all.lost) cuda.destroy_stream(stream);
    destroy_second(&second);
    cuda.exchange_capture_mode(&mode);
    return done;
}

/* Launch what a run has recorded, if it was launched before: 0 if nothing was launched, since it was not, or since that
   failed. */
static int replay(struct looptune_run *run, struct codelet_state *s, looptune_plan plan, const void *arguments,
                  const looptune_address *at) {
    struct graph *g;
    if (!run->record || !run->record->whole || (run->record->launches < FEWEST_LAUNCHES && !run->has_pairs)) return 0;
    g = find_graph(s, run);
    if (!g) {
        keep_record(s, run);
        return 0;
    }
    g->used = ++all.recorded;
    if ((g->executable || capture(g, run, plan, arguments, at)) &&
        graph_worked(cuda.launch_graph(g->executable, run->stream), "cuGraphLaunch")) {
        run->launched = 1;
        s->replayed++;
        return 1;
    }
    forget_graph(g, run->context);
    s->without_graphs = 1;
    run->status = all.lost ? LOOPTUNE_FAILED : LOOPTUNE_OK;
    if (all.verbose)
        say("%s (%s): its launches are no graph (%s)", s->codelet->name, s->codelet->place, all.reason);
    return 0;
}
