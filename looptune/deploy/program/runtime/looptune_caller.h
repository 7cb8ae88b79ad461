/* Calls of libraries on memory and streams of the caller, and questions.
   A part of looptune_runtime.c, which includes it once. */

static int device_overlap(const looptune_address *at, const struct looptune_array *arrays, int count) {
    int i, k;
    for (i = 0; i < count; i++) {
        if ((arrays[i].flags & LOOPTUNE_ALIGNED) && at[i] % 16)
            return because(LOOPTUNE_MISALIGNED, "the address of %s is no multiple of 16", arrays[i].name);
        for (k = 0; k < i; k++)
            if ((is_written(&arrays[i]) || is_written(&arrays[k])) && arrays[i].bytes && arrays[k].bytes &&
                at[i] < at[k] + arrays[k].bytes && at[k] < at[i] + arrays[i].bytes)
                return because(LOOPTUNE_ALIASED, "%s and %s overlap", arrays[k].name, arrays[i].name);
    }
    return LOOPTUNE_OK;
}

/* The context that is current, and its device. */
static int find_current(struct looptune_run *run) {
    cu_handle context = NULL;
    int number, k;
    if (!worked(cuda.current_context(&context), "cuCtxGetCurrent")) return LOOPTUNE_FAILED;
    if (!context) return because(LOOPTUNE_NO_DEVICE, "no context is current");
    if (!worked(cuda.current_device(&number), "cuCtxGetDevice")) return LOOPTUNE_FAILED;
    run->context = number_of(context);
    for (k = 0; k < all.device_count; k++)
        if (all.devices[k].number == number) run->device = &all.devices[k];
    return run->device ? LOOPTUNE_OK : because(LOOPTUNE_NO_DEVICE, "the current device is not known");
}

LOOPTUNE_WEAK int looptune_call_on_device(struct looptune_codelet *codelet, const void *arguments,
                                          const long long *sizes, const looptune_address *arrays,
                                          const struct looptune_array *described, int array_count, void *stream) {
    struct looptune_run run;
    struct codelet_state *state;
    struct choice ch;
    int status;
    memset(&run, 0, sizeof run);
    run.stream = stream;
    run.arrays = described;
    run.array_count = array_count;
    pthread_mutex_lock(&lock);
    status = open_driver();
    state = state_of(codelet);
    if (status == LOOPTUNE_OK) status = find_current(&run);
    if (status == LOOPTUNE_OK) status = device_overlap(arrays, described, array_count);
    if (status == LOOPTUNE_OK) {
        ch = chosen(state, run.device, sizes);
        tell_choice(state, ch, run.device, sizes);
        run.record = record_of(state, &run);
        status = check_choice(&run, state, &ch, arguments, arrays);
        if (status == LOOPTUNE_OK) status = run_plan_again(&run, state, ch.plan, arguments, arrays);
        return_scratch(&run);
        if (status == LOOPTUNE_OK) count_run(state, ch);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

LOOPTUNE_WEAK int looptune_match(struct looptune_codelet *codelet, const long long *sizes, const char **level,
                                 const char **directives) {
    int entered = enter(), status = entered;
    struct choice ch = {NULL, NULL, LEVEL_HOST};
    if (status == LOOPTUNE_OK) ch = look_up(codelet, all.device, sizes);
    if (status == LOOPTUNE_OK && !ch.plan) {
        status = LOOPTUNE_NO_CODE;
        ch.level = LEVEL_HOST;
    }
    *level = LEVELS[ch.level];
    *directives = ch.version && ch.version->directives ? ch.version->directives : "";
    leave(entered);
    return status;
}

LOOPTUNE_WEAK const char *looptune_message(int status) {
    static const char *const messages[] = {"no error",
                                           "it ran on the device, and is to be compared with the original loops",
                                           "there is no device",
                                           "there is no machine code for this device",
                                           "the arrays do not fit into the memory of the device",
                                           "arrays overlap, one of which is written",
                                           "the kernel cannot be launched at these sizes",
                                           "an array is not aligned to 16 bytes",
                                           "the driver reported an error",
                                           "the sizes are not what its analysis assumes"};
    if (status < 0 || status > LOOPTUNE_REFUSED) return "this is no status of looptune";
    return messages[status];
}
