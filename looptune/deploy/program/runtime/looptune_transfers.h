/* Data directives: what is copied apart from calls.
   A part of looptune_runtime.c, which includes it once. */

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
            int beside = all.queued > all.done; /* waiting for it would be waiting for what runs */
            if (send_bytes(b.m->memory, b.m->host, bytes) && (!all.timed || beside || finish_queued())) {
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
