/* The arrays of a call: which of them overlap, where their copies are, what has to be sent.
   A part of looptune_runtime.c, which includes it once. */

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

/* Before the original loops run on the host: give them what is on the device, and note which copies are old from then
   on: of what they will overwrite, and of what the call would have sent. */
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
            if (is_written(a) || !(a->flags & LOOPTUNE_PRESENT)) m->current = 0;
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

static struct block *block_of(const struct bound *b) { return b->m ? b->m->memory : b->own; }

static looptune_address address_of(const struct bound *b) { return block_of(b) ? block_of(b)->at : all.nowhere; }

/* Send what the device needs and has not got. */
static int send_arrays(const struct looptune_array *arrays, const struct bound *bound, int count,
                       struct codelet_state *state) {
    unsigned long long bytes = 0;
    int k, timed = 0;
    for (k = 0; k < count; k++) {
        const struct looptune_array *a = &arrays[k];
        struct mirror *m = bound[k].m;
        if (!a->bytes || !(a->flags & LOOPTUNE_READ) || (m && m->newer)) continue;
        if (m && m->current && (bound[k].sent || (!all.check && (a->flags & LOOPTUNE_PRESENT)))) continue;
        if (!bytes && all.timed) timed = mark(state, SENDING);
        if (!send_bytes(block_of(&bound[k]), (const char *)a->host, a->bytes)) return 0;
        if (m) m->current = 1;
        bytes += a->bytes;
    }
    state->sending = timed && mark(state, SENT);
    state->to_bytes += bytes;
    return 1;
}
