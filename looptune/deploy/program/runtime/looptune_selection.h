/* The version that a call runs: what was tuned nearest to its device and sizes.
   A part of looptune_runtime.c, which includes it once. */

static int same_sizes(const long long *a, const long long *b, int count) {
    int k;
    for (k = 0; k < count; k++)
        if (a[k] != b[k]) return 0;
    return 1;
}

static int level_of(const struct looptune_version *v, const struct device *d, int same) {
    if (strcmp(v->device, d->name) == 0 && v->multiprocessors == d->multiprocessors)
        return same ? LEVEL_EXACT : LEVEL_DEVICE;
    if (v->capability == d->capability) return LEVEL_CAPABILITY;
    return v->capability / 10 == d->capability / 10 ? LEVEL_FAMILY : LEVEL_DEFAULT;
}

static double distance(const long long *tuned, const long long *sizes, int count) {
    double sum = 0;
    int k;
    for (k = 0; k < count; k++)
        sum += fabs(log((double)(sizes[k] > 1 ? sizes[k] : 1) / (double)(tuned[k] > 1 ? tuned[k] : 1)));
    return sum;
}

/* The closest version: by level, then by distance of the sizes, then the first. */
static struct choice look_up(const struct looptune_codelet *c, const struct device *d, const long long *sizes) {
    struct choice best = {c->by_default, NULL, LEVEL_DEFAULT};
    double nearest = 0;
    int k;
    for (k = 0; k < c->version_count; k++) {
        const struct looptune_version *v = &c->versions[k];
        int same = same_sizes(v->sizes, sizes, c->size_count), level = level_of(v, d, same);
        looptune_plan plan = same ? v->exact : v->elsewhere;
        double far = distance(v->sizes, sizes, c->size_count);
        if (!plan || level >= LEVEL_DEFAULT) continue;
        if (!best.version || level < best.level || (level == best.level && far < nearest)) {
            best.plan = plan;
            best.version = v;
            best.level = level;
            nearest = far;
        }
    }
    if (!best.version && c->predicted) {
        best.plan = c->predicted->elsewhere;
        best.version = c->predicted;
        best.level = LEVEL_PREDICTED;
    }
    return best;
}

static struct codelet_state *state_of(struct looptune_codelet *c) {
    struct codelet_state *s = (struct codelet_state *)c->state, **end;
    if (s) return s;
    s = (struct codelet_state *)zeros(1, sizeof *s);
    s->codelet = c;
    s->sizes = (long long *)zeros((size_t)c->size_count, sizeof *s->sizes);
    for (end = &all.codelets; *end; end = &(*end)->next) {}
    *end = s;
    c->state = s;
    return s;
}

static struct choice chosen(struct codelet_state *s, const struct device *d, const long long *sizes) {
    if (!s->cached || s->cached_for != d || !same_sizes(s->sizes, sizes, s->codelet->size_count)) {
        s->choice = look_up(s->codelet, d, sizes);
        if (s->codelet->size_count) memcpy(s->sizes, sizes, (size_t)s->codelet->size_count * sizeof *sizes);
        s->cached_for = d;
        s->cached = 1;
    }
    return s->choice;
}

/* The sizes as text after `first`; "" if there are none. */
static const char *named_sizes(char *text, size_t length, const char *first, const struct looptune_codelet *c,
                               const long long *sizes) {
    size_t at = 0;
    int k;
    *text = 0;
    for (k = 0; k < c->size_count && at < length; k++)
        at += (size_t)snprintf(text + at, length - at, "%s%s=%lld", k ? " " : first, c->size_names[k], sizes[k]);
    return text;
}

/* Say once for each level what runs in place of what would have been tuned. */
static void tell_choice(struct codelet_state *s, struct choice ch, const struct device *d, const long long *sizes) {
    char here[300], there[300];
    const struct looptune_codelet *c = s->codelet;
    if (!all.verbose || ch.level == LEVEL_EXACT || s->levels_told[ch.level]) return;
    s->levels_told[ch.level] = 1;
    named_sizes(here, sizeof here, ", ", c, sizes);
    if (!ch.version)
        say("%s (%s): nothing was tuned for %s%s: the default is used", c->name, c->place, d->name, here);
    else if (ch.level == LEVEL_PREDICTED)
        say("%s (%s): nothing was tuned for %s%s: what is predicted to be fastest is used", c->name, c->place, d->name,
            here);
    else
        say("%s (%s): nothing was tuned for %s%s: using what is best on %s%s (%s)", c->name, c->place, d->name,
            here, ch.version->device, named_sizes(there, sizeof there, " at ", c, ch.version->sizes), LEVELS[ch.level]);
}

static void count_run(struct codelet_state *s, struct choice ch) {
    struct ran **link = &s->ran;
    while (*link && ((*link)->version != ch.version || (*link)->level != ch.level)) link = &(*link)->next;
    if (!*link) {
        *link = (struct ran *)zeros(1, sizeof **link);
        (*link)->version = ch.version;
        (*link)->level = ch.level;
    }
    (*link)->calls++;
    s->on_device++;
}
