/* LOOPTUNE_CHECK: what the device computed, compared with the original loops.
   A part of looptune_runtime.c, which includes it once. */

/* The element of an array that differs most: `ratio` is its error over its tolerance. `unusual` counts the elements
   that only the array's shift allows. */
static const double INFINITELY_MANY = 1e300;
struct difference {
    unsigned long long index, count, of, unusual;
    double ratio, got, expected, tolerance;
};

/* The median of `count` numbers, which are reordered (Hoare's selection). */
static double median(double *x, unsigned long long count) {
    unsigned long long low = 0, high, wanted = count / 2;
    if (count == 0) return 0;
    high = count - 1;
    while (low < high) {
        double pivot = x[low + (high - low) / 2], moved;
        unsigned long long i = low, k = high;
        for (;;) {
            while (x[i] < pivot) i++;
            while (pivot < x[k]) k--;
            if (i >= k) break;
            moved = x[i];
            x[i++] = x[k];
            x[k--] = moved;
        }
        if (wanted <= k)
            high = k;
        else
            low = k + 1;
    }
    if (count % 2) return x[wanted];
    for (high = 1, low = 0; high < wanted; high++) /* the largest below it */
        if (x[high] > x[low]) low = high;
    return (x[low] + x[wanted]) / 2;
}

/* The magnitude of an array: the median of its finite elements other than 0. */
static double magnitude(const struct looptune_array *a) {
    unsigned long long count = a->bytes / a->item, k, n = 0;
    double *finite = (double *)zeros((size_t)count, sizeof *finite), found;
    for (k = 0; k < count; k++) {
        double x = fabs(element(a, a->host, k));
        if (is_finite(x) && x > 0) finite[n++] = x;
    }
    found = median(finite, n);
    free(finite);
    return found;
}

static void note_difference(struct difference *d, unsigned long long k, double ratio, double got, double expected,
                            double tolerance) {
    if (ratio > 1) d->count++;
    if (ratio <= d->ratio) return;
    d->ratio = ratio;
    d->index = k;
    d->got = got;
    d->expected = expected;
    d->tolerance = tolerance;
}

/* |got - expected| <= 4 sqrt(terms) eps (|expected| + magnitude), or 4 times how far the array's results move: the
   tolerance of looptune's own verification. Floats of 16 bits are computed in 32 and rounded, for which 4 times their
   own eps is added. `allowed` replaces the first factor where it is larger. */
static void compare_floats(struct difference *d, const struct looptune_array *a, const void *got, double terms,
                           double allowed, double shift) {
    double eps = a->item <= 4 ? 1.1920928955078125e-07 : 2.220446049250313e-16;
    double own = a->item != 2 ? 0 : a->kind == 'f' ? 0.00390625 : 0.03125;
    double relative = 4 * sqrt(terms > 16 ? terms : 16) * eps + own, scale = magnitude(a);
    unsigned long long k;
    if (relative < allowed) relative = allowed;
    for (k = 0; k < d->of; k++) {
        double x = element(a, got, k), y = element(a, a->host, k), error, tolerance;
        if (!is_finite(x) || !is_finite(y)) {
            if (!(is_none(x) && is_none(y)) && !same_infinity(x, y)) note_difference(d, k, INFINITELY_MANY, x, y, 0);
            continue;
        }
        tolerance = relative * (fabs(y) + scale);
        error = fabs(x - y);
        if (error > tolerance && error <= 4 * shift) d->unusual++;
        if (tolerance < 4 * shift) tolerance = 4 * shift;
        if (error > 0) note_difference(d, k, tolerance > 0 ? error / tolerance : INFINITELY_MANY, x, y, tolerance);
    }
}

static double integer(const struct looptune_array *a, const void *values, unsigned long long k) {
    const char *at = (const char *)values + k * a->item;
    unsigned long long bits = 0;
    int byte;
    for (byte = 0; byte < a->item && byte < 8; byte++)
        bits |= (unsigned long long)(unsigned char)at[byte] << (8 * byte);
    if (a->kind == 'i' && a->item < 8 && bits >> (8 * a->item - 1)) bits |= ~0ull << (8 * a->item);
    return a->kind == 'i' ? (double)(long long)bits : (double)bits;
}

static void compare_bytes(struct difference *d, const struct looptune_array *a, const void *got) {
    unsigned long long k;
    for (k = 0; k < d->of; k++)
        if (memcmp((const char *)got + k * a->item, (const char *)a->host + k * a->item, a->item) != 0)
            note_difference(d, k, INFINITELY_MANY, integer(a, got, k), integer(a, a->host, k), 0);
}

static void compare(struct difference *d, const struct looptune_array *a, const void *got, double terms, double allowed,
                    double shift) {
    d->of = a->bytes / a->item;
    if (is_float(a))
        compare_floats(d, a, got, terms, allowed, shift);
    else
        compare_bytes(d, a, got);
}

LOOPTUNE_WEAK void looptune_compare(struct looptune_codelet *codelet, struct looptune_array *arrays, int array_count) {
    struct codelet_state *s;
    struct checked *c;
    int k, differs = 0, unusual = 0;
    pthread_mutex_lock(&lock);
    s = state_of(codelet);
    c = kept_copies(codelet);
    for (k = 0; c && k < array_count && k < c->count; k++) {
        struct difference d = {0, 0, 0, 0, 0, 0, 0, 0};
        const struct looptune_array *a = &arrays[k];
        if (!c->copies[k] || !a->item) continue;
        compare(&d, a, c->copies[k], codelet->terms, codelet->relative ? codelet->relative[k] : 0, c->shifts[k]);
        if (d.ratio > s->worst) s->worst = d.ratio;
        if (d.unusual && s->widened == 0 && !unusual)
            say("%s (%s): %llu of %llu elements of %s are off by more than rounding usually takes, but not by more than "
                "4 times what they move if the inputs change by one rounding (%.3g)", codelet->name, codelet->place,
                d.unusual, d.of, a->name, c->shifts[k]);
        unusual |= d.unusual != 0;
        if (d.count == 0) continue;
        if (s->differing == 0)
            say("%s (%s): %s[%llu] is %.9g on the device and %.9g on the host, the tolerance is %.3g "
                "(%llu of %llu elements differ)", codelet->name, codelet->place, a->name, d.index, d.got, d.expected,
                d.tolerance, d.count, d.of);
        differs = 1;
    }
    if (c) {
        s->compared++;
        s->differing += (unsigned long)differs;
        s->widened += (unsigned long)unusual;
    }
    free_copies(c);
    pthread_mutex_unlock(&lock);
}
