/* Arrays of pointers to rows, and fields of structs: gathered for a call, and put back.
   A part of looptune_runtime.c, which includes it once. */

static int is_in_pieces(const struct looptune_pieces *p) { return p->rows || p->base; }

static char *piece_at(const struct looptune_pieces *p, unsigned long long k) {
    return p->rows ? (char *)p->rows[k] : p->base + k * p->stride;
}

/* The memory of an array, or of one of its rows. */
struct interval {
    const char *begin, *end;
    int written;
};

static int by_begin(const void *a, const void *b) {
    const char *x = ((const struct interval *)a)->begin, *y = ((const struct interval *)b)->begin;
    return x < y ? -1 : x > y;
}

/* Whether none of the intervals that are written meets another one; they are sorted. */
static int are_apart(struct interval *all_of_them, size_t count) {
    const char *end = NULL, *written_end = NULL;
    size_t k;
    qsort(all_of_them, count, sizeof *all_of_them, by_begin);
    for (k = 0; k < count; k++) {
        const struct interval *i = &all_of_them[k];
        if ((written_end && i->begin < written_end) || (i->written && end && i->begin < end)) return 0;
        if (!end || i->end > end) end = i->end;
        if (i->written && (!written_end || i->end > written_end)) written_end = i->end;
    }
    return 1;
}

static size_t add_interval(struct interval *list, size_t n, const char *begin, unsigned long long bytes, int written) {
    if (!bytes) return n;
    list[n].begin = begin;
    list[n].end = begin + bytes;
    list[n].written = written;
    return n + 1;
}

/* Whether no piece that is written meets another array, or another piece. Fields of the same structs are apart. */
static int pieces_are_apart(const struct looptune_array *arrays, const struct looptune_pieces *pieces, int count) {
    struct interval *list;
    size_t n = (size_t)count;
    unsigned long long k;
    int i, j, apart;
    for (i = 0; i < count; i++) n += pieces[i].rows ? (size_t)pieces[i].count : 0;
    list = (struct interval *)zeros(n, sizeof *list);
    for (i = 0, n = 0; i < count; i++) {
        const struct looptune_pieces *p = &pieces[i];
        int written = is_written(&arrays[i]), before = 0;
        if (!is_in_pieces(p)) n = add_interval(list, n, (const char *)arrays[i].host, arrays[i].bytes, written);
        for (k = 0; p->rows && k < p->count; k++) n = add_interval(list, n, piece_at(p, k), p->bytes, written);
        if (!p->base) continue;
        for (j = 0, k = 0; j < count; j++) {
            if (!pieces[j].base || pieces[j].structs != p->structs) continue;
            before |= j < i;
            written |= is_written(&arrays[j]);
            if (pieces[j].count > k) k = pieces[j].count;
        }
        if (!before) n = add_interval(list, n, p->structs, k * p->stride, written);
    }
    apart = are_apart(list, n);
    free(list);
    return apart;
}

static void copy_pieces(const struct looptune_pieces *p, char *whole, int back) {
    unsigned long long k;
    for (k = 0; k < p->count; k++) {
        char *piece = piece_at(p, k);
        memcpy(back ? piece : whole + k * p->bytes, back ? whole + k * p->bytes : piece, (size_t)p->bytes);
    }
}

/* Memory in one piece for each array in pieces, with its contents where `all_of_it` or the array is read. */
static int gather(struct looptune_array *arrays, const struct looptune_pieces *pieces, int count, int all_of_it) {
    int k;
    for (k = 0; k < count; k++) {
        const struct looptune_pieces *p = &pieces[k];
        if (!is_in_pieces(p)) continue;
        arrays[k].bytes = p->count * p->bytes;
        arrays[k].flags |= LOOPTUNE_GATHERED;
        arrays[k].host = malloc((size_t)(arrays[k].bytes ? arrays[k].bytes : 1));
        if (!arrays[k].host) return 0;
        if (all_of_it || arrays[k].flags & LOOPTUNE_READ) copy_pieces(p, (char *)arrays[k].host, 0);
    }
    return 1;
}

static void free_gathered(struct looptune_array *arrays, int count) {
    int k;
    for (k = 0; k < count; k++)
        if (arrays[k].flags & LOOPTUNE_GATHERED) {
            if (arrays[k].host) looptune_release(arrays[k].host);
            free(arrays[k].host);
        }
}

LOOPTUNE_WEAK int looptune_call_in_pieces(struct looptune_codelet *codelet, const void *arguments,
                                          const long long *sizes, struct looptune_array *arrays,
                                          const struct looptune_pieces *pieces, int array_count) {
    int entered = enter(), status = entered, k;
    if (status == LOOPTUNE_OK && !pieces_are_apart(arrays, pieces, array_count))
        status = because(LOOPTUNE_ALIASED, "pieces of arrays overlap");
    if (status != LOOPTUNE_OK) count_on_host(state_of(codelet), status);
    settle_all();
    leave(entered);
    if (status == LOOPTUNE_OK) {
        status = gather(arrays, pieces, array_count, 0)
                     ? looptune_call(codelet, arguments, sizes, arrays, array_count, NULL, 0)
                     : LOOPTUNE_NO_MEMORY;
        for (k = 0; status == LOOPTUNE_OK && k < array_count; k++)
            if (arrays[k].flags & LOOPTUNE_GATHERED && arrays[k].flags & LOOPTUNE_WRITTEN)
                copy_pieces(&pieces[k], (char *)arrays[k].host, 1);
        free_gathered(arrays, array_count);
    }
    loops_begin = now();
    return status;
}

LOOPTUNE_WEAK void looptune_compare_in_pieces(struct looptune_codelet *codelet, struct looptune_array *arrays,
                                              const struct looptune_pieces *pieces, int array_count) {
    if (gather(arrays, pieces, array_count, 1)) looptune_compare(codelet, arrays, array_count);
    free_gathered(arrays, array_count);
}
