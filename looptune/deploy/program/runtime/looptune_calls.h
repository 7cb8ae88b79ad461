/* Calls: from the arguments to the results, or to the reason why the host runs its loops.
   A part of looptune_runtime.c, which includes it once. */

/* Run a plan without launches: LOOPTUNE_OK if it can be launched. */
static int check_plan(struct looptune_run *run, looptune_plan plan, const void *arguments, const looptune_address *at) {
    int status;
    run->checking = 1;
    run->status = LOOPTUNE_OK;
    begin_record(run->record);
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

/* Run a plan that was checked, as a graph if it ran before. */
static int run_plan_again(struct looptune_run *run, struct codelet_state *s, looptune_plan plan, const void *arguments,
                          const looptune_address *at) {
    if (replay(run, s, plan, arguments, at) || all.lost) return run->status;
    return run_plan(run, plan, arguments, at);
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
    struct codelet_state *s = c->state;
    const looptune_plan by_default = s->codelet->by_default;
    int status, k;
    if (all.timed) read_timing(s);
    if (!send_arrays(c->arrays, c->bound, c->count, s)) return LOOPTUNE_FAILED;
    if (all.timed) keep_busy();
    s->launching = all.timed && mark(s, LAUNCHING);
    all.queued++;
    for (k = 0; k < c->count; k++)
        if (block_of(&c->bound[k])) block_of(&c->bound[k])->used = all.queued;
    status = run_plan_again(&c->run, s, c->choice.plan, c->arguments, c->at);
    if (status != LOOPTUNE_OK && !c->run.launched && !all.lost && by_default && c->choice.plan != by_default) {
        return_scratch(&c->run);
        use_default(s, &c->choice);
        status = check_plan(&c->run, by_default, c->arguments, c->at);
        if (status == LOOPTUNE_OK) status = run_plan(&c->run, by_default, c->arguments, c->at);
    }
    if (s->launching) s->launching = mark(s, LAUNCHED);
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
    free(c->shifts);
    free(c);
}
/* Keep what was computed until it is compared. */
static struct checked *keep_copies(struct looptune_codelet *codelet, int count) {
    struct checked *c = (struct checked *)zeros(1, sizeof *c);
    free_copies(kept_copies(codelet)); /* of loops that a return has left */
    c->codelet = codelet;
    c->thread = pthread_self();
    c->count = count;
    c->copies = (void **)zeros((size_t)count, sizeof *c->copies);
    c->shifts = (double *)zeros((size_t)count, sizeof *c->shifts);
    c->next = all.checked;
    all.checked = c;
    return c;
}

/* See looptune_rounding.h. */
static void find_shifts(struct call *c, struct checked *first);

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
        struct checked *kept = keep_copies(c->state->codelet, c->count);
        status = finish(c, kept->copies);
        if (status == LOOPTUNE_OK)
            find_shifts(c, kept);
        else
            free_copies(kept_copies(c->state->codelet));
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
    c->run.arrays = c->arrays;
    c->run.array_count = c->count;
    c->run.record = record_of(c->state, &c->run);
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
        all.used_threads |= loops != NULL;
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
