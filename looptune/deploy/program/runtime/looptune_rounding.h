/* LOOPTUNE_CHECK: how far results move if the inputs change by one rounding. Problems may be ill conditioned, as long
   recurrences and triangular solves are: another order of their sums moves the results as far.
   Floats of 16 bits stay: the next one is farther away than the rounding errors of what is computed from them.
   A part of looptune_runtime.c, which includes it once. */

/* Whether a number is finite, or none. By its bits: the compiler may have been told that all numbers are finite. */
static int has_all_ones(double x, int *none) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    *none = (bits & 0xfffffffffffffull) != 0;
    return (bits >> 52 & 0x7ff) == 0x7ff;
}
static int is_finite(double x) {
    int none;
    return !has_all_ones(x, &none);
}
static int is_none(double x) {
    int none;
    return has_all_ones(x, &none) && none;
}
static int same_infinity(double x, double y) {
    return memcmp(&x, &y, sizeof x) == 0;
}

/* A float of 16 bits as the double of the same value. */
static double of_half(uint16_t half) {
    const uint64_t size = half & 0x7fffu, sign = (uint64_t)(half & 0x8000u) << 48;
    uint64_t bits = sign | (size + (size >= 0x7c00u ? 0x1f8000u : 0xfc000u)) << 42;
    double value;
    if (size < 0x400u) return (sign ? -1.0 : 1.0) * (double)size / 16777216.0;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double element(const struct looptune_array *a, const void *values, unsigned long long k) {
    uint16_t half;
    uint32_t bits;
    float single;
    double number;
    const char *at = (const char *)values + k * a->item;
    if (a->item == sizeof half) {
        memcpy(&half, at, sizeof half);
        if (a->kind == 'f') return of_half(half);
        bits = (uint32_t)half << 16; /* a bfloat16 is the first half of a float */
        memcpy(&single, &bits, sizeof single);
        return (double)single;
    }
    if (a->item == sizeof single) {
        memcpy(&single, at, sizeof single);
        return (double)single;
    }
    memcpy(&number, at, sizeof number);
    return number;
}

static int is_float(const struct looptune_array *a) {
    return (a->kind == 'b' && a->item == 2) ||
           (a->kind == 'f' && (a->item == 2 || a->item == sizeof(float) || a->item == sizeof(double)));
}

/* The next number up or down, in no particular order; what is not finite stays, and 0 becomes the smallest number. */
static uint64_t neighbour(uint64_t bits, uint64_t sign, uint64_t largest, uint64_t *random) {
    uint64_t size = bits & ~sign;
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    if (size > largest) return bits;
    if (size == 0 || (size < largest && *random >> 32 & 1)) return bits + 1;
    return bits - 1;
}

static void perturb(const struct looptune_array *a, char *values) {
    uint64_t random = 0x9e3779b97f4a7c15ull;
    unsigned long long k;
    for (k = 0; k < a->bytes / a->item; k++, values += a->item) {
        uint64_t bits;
        uint32_t single;
        if (a->item == sizeof single) {
            memcpy(&single, values, sizeof single);
            single = (uint32_t)neighbour(single, 0x80000000u, 0x7f7fffffu, &random);
            memcpy(values, &single, sizeof single);
        } else {
            memcpy(&bits, values, sizeof bits);
            bits = neighbour(bits, 1ull << 63, 0x7fefffffffffffffull, &random);
            memcpy(values, &bits, sizeof bits);
        }
    }
}

/* Send an array of the host again, as it is or perturbed. */
static int send_again(const struct call *c, int k, int perturbed) {
    const struct looptune_array *a = &c->arrays[k];
    char *values;
    int sent;
    if (c->bound[k].m) c->bound[k].m->current = 0; /* of the next call */
    if (!perturbed || !is_float(a) || a->item == 2) return send_bytes(block_of(&c->bound[k]), (const char *)a->host, a->bytes);
    values = (char *)needed(malloc(a->bytes));
    memcpy(values, a->host, a->bytes);
    perturb(a, values);
    sent = send_bytes(block_of(&c->bound[k]), values, a->bytes);
    free(values);
    return sent;
}

/* Run a call's default version, into copies of the results. */
static int run_default(struct call *c, struct looptune_run *run, int perturbed, void **copies) {
    unsigned long long from_bytes = c->state->from_bytes;
    double from_seconds = c->state->from_seconds;
    int k, harmed, done;
    for (k = 0; k < c->count; k++)
        if (c->arrays[k].bytes && c->arrays[k].flags & LOOPTUNE_READ && !send_again(c, k, perturbed)) return 0;
    done = run_plan(run, c->state->codelet->by_default, c->arguments, c->at) == LOOPTUNE_OK && finish_queued() &&
           fetch_written(c->state, c->arrays, c->bound, c->count, copies, &harmed);
    c->state->from_bytes = from_bytes;
    c->state->from_seconds = from_seconds;
    return done;
}

static int same_results(const struct call *c, void **one, void **other) {
    int k;
    for (k = 0; k < c->count; k++)
        if (one[k] && memcmp(one[k], other[k], c->arrays[k].bytes) != 0) return 0;
    return 1;
}

static double largest_shift(const struct looptune_array *a, const void *one, const void *other) {
    double largest = 0;
    unsigned long long k;
    for (k = 0; k < a->bytes / a->item; k++) {
        double x = element(a, one, k), y = element(a, other, k);
        if (is_finite(x) && is_finite(y) && fabs(x - y) > largest) largest = fabs(x - y);
    }
    return largest;
}

/* Find out how far the results of a call move. The default version is asked, which computes in the order of the
   original loops, so that what a tuned one does wrong does not pass for the condition of the problem. Nothing is known
   if its own results are not the same each time. */
static void find_shifts(struct call *c, struct checked *first) {
    const looptune_plan by_default = c->state->codelet->by_default;
    struct looptune_run run = c->run;
    void **results[3];
    int k, i, done;
    if (!by_default) return;
    run.scratch = NULL;
    if (check_plan(&run, by_default, c->arguments, c->at) != LOOPTUNE_OK) return;
    for (i = 0; i < 3; i++) results[i] = (void **)zeros((size_t)c->count, sizeof *results[i]);
    done = run_default(c, &run, 0, results[0]) && run_default(c, &run, 0, results[1]) &&
           same_results(c, results[0], results[1]) && run_default(c, &run, 1, results[2]);
    for (k = 0; done && k < c->count; k++)
        if (results[2][k] && is_float(&c->arrays[k]))
            first->shifts[k] = largest_shift(&c->arrays[k], results[0][k], results[2][k]);
    for (i = 0; i < 3; i++) {
        for (k = 0; k < c->count; k++) free(results[i][k]);
        free(results[i]);
    }
    return_scratch(&run);
}
