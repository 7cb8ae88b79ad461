/* XLA as far as a handler of axpy(int n, float a, const float x[n], float y[n]) sees it, on the host or with a driver.
 *
 *     xla_call LIBRARY host|device attribute|operand [apart|same|short]
 *
 * apart: the result is not the memory of the operand; same: x and y are; short: an operand is missing. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "xla/ffi/api/c_api.h"

enum { N = 1000 };
static void *queue;
static char message[500];

static XLA_FFI_Error *create_error(XLA_FFI_Error_Create_Args *args) {
    snprintf(message, sizeof message, "%s", args->message);
    return (XLA_FFI_Error *)message;
}
static XLA_FFI_Error *get_stream(XLA_FFI_Stream_Get_Args *args) {
    args->stream = queue;
    return NULL;
}

static void *driver;
#define DRIVER(name, symbol, parameters)                                                                             \
    int(*name) parameters;                                                                                           \
    void *found_##name = dlsym(driver, symbol);                                                                      \
    memcpy(&name, &found_##name, sizeof name)

static void *own_context;
static void pop_context(void) {
    DRIVER(pop, "cuCtxPopCurrent_v2", (void **));
    pop(&own_context);
}
static void push_context(void) {
    DRIVER(push, "cuCtxPushCurrent_v2", (void *));
    DRIVER(current, "cuCtxGetCurrent", (void **));
    void *left;
    current(&left);
    if (left) printf("a context is left\n");
    push(own_context);
}

static void *placed(const void *host, size_t bytes, int on_device) {
    static char memory[4][sizeof(float) * N];
    static int used;
    unsigned long long at;
    if (!on_device) return memcpy(memory[used++], host, bytes);
    DRIVER(allocate, "cuMemAlloc_v2", (unsigned long long *, size_t));
    DRIVER(to, "cuMemcpyHtoDAsync_v2", (unsigned long long, const void *, size_t, void *));
    DRIVER(wait_for, "cuStreamSynchronize", (void *));
    allocate(&at, bytes);
    to(at, host, bytes, queue);
    wait_for(queue);
    return (void *)(size_t)at;
}

static void ask_for_version(XLA_FFI_Handler *handler, XLA_FFI_Api *api) {
    XLA_FFI_CallFrame frame;
    XLA_FFI_Metadata asked;
    XLA_FFI_Metadata_Extension extension;
    memset(&frame, 0, sizeof frame);
    memset(&asked, 0, sizeof asked);
    memset(&extension, 0, sizeof extension);
    asked.traits = 7;
    extension.extension_base.type = XLA_FFI_Extension_Metadata;
    extension.metadata = &asked;
    frame.api = api;
    frame.extension_start = &extension.extension_base;
    if (handler(&frame)) printf("refused: ");
    printf("version %d %d, traits %u\n", asked.api_version.major_version == XLA_FFI_API_MAJOR,
           asked.api_version.minor_version == XLA_FFI_API_MINOR, (unsigned)asked.traits);
}

int main(int count, char **given) {
    const int on_device = strcmp(given[2], "device") == 0, operand = strcmp(given[3], "operand") == 0;
    const char *how = count > 4 ? given[4] : "";
    void *library = dlopen(given[1], RTLD_NOW);
    void *found = library ? dlsym(library, "looptune_xla_handler") : NULL;
    XLA_FFI_Handler *handler;
    static float x[N], y[N];
    float a = 2;
    int64_t extent = N, integers[] = {0, N}, operands[] = {0, operand};
    double numbers[] = {0, operand ? -1.0 : 2.0};
    XLA_FFI_Buffer buffers[3], result;
    void *args[3] = {&buffers[0], &buffers[1], &buffers[2]}, *rets[1] = {&result};
    XLA_FFI_ArgType arg_types[3] = {XLA_FFI_ArgType_BUFFER, XLA_FFI_ArgType_BUFFER, XLA_FFI_ArgType_BUFFER};
    XLA_FFI_RetType ret_types[1] = {XLA_FFI_RetType_BUFFER};
    XLA_FFI_Array held[3] = {{XLA_FFI_DataType_S64, 2, integers},
                             {XLA_FFI_DataType_F64, 2, numbers},
                             {XLA_FFI_DataType_S64, 2, operands}};
    void *attrs[3] = {&held[0], &held[1], &held[2]};
    XLA_FFI_ByteSpan names[3] = {{"integers", 8}, {"numbers", 7}, {"operands", 8}};
    XLA_FFI_ByteSpan *named[3] = {&names[0], &names[1], &names[2]};
    XLA_FFI_AttrType attr_types[3] = {XLA_FFI_AttrType_ARRAY, XLA_FFI_AttrType_ARRAY, XLA_FFI_AttrType_ARRAY};
    XLA_FFI_Api api;
    XLA_FFI_CallFrame frame;
    XLA_FFI_Error *error;
    int k, wrong = 0;

    if (!found) {
        printf("%s\n", dlerror());
        return 1;
    }
    memcpy(&handler, &found, sizeof handler);
    memset(&api, 0, sizeof api);
    api.XLA_FFI_Error_Create = create_error;
    api.XLA_FFI_Stream_Get = get_stream;
    ask_for_version(handler, &api);
    if (on_device) {
        void *context;
        driver = dlopen("libcuda.so.1", RTLD_NOW);
        DRIVER(init, "cuInit", (unsigned));
        DRIVER(retain, "cuDevicePrimaryCtxRetain", (void **, int));
        DRIVER(push, "cuCtxPushCurrent_v2", (void *));
        DRIVER(stream, "cuStreamCreate", (void **, unsigned));
        init(0);
        retain(&context, 0);
        push(context);
        stream(&queue, 0);
        own_context = context;
    }
    for (k = 0; k < N; k++) {
        x[k] = (float)k;
        y[k] = 1;
    }
    memset(buffers, 0, sizeof buffers);
    for (k = 0; k < 3; k++) {
        buffers[k].dtype = XLA_FFI_DataType_F32;
        buffers[k].rank = k < 2;
        buffers[k].dims = &extent;
    }
    buffers[0].data = placed(x, sizeof x, on_device);
    buffers[1].data = strcmp(how, "same") == 0 ? buffers[0].data : placed(y, sizeof y, on_device);
    buffers[2].data = placed(&a, sizeof a, on_device);
    result = buffers[1];
    if (strcmp(how, "apart") == 0) result.data = placed(x, sizeof x, on_device);
    memset(&frame, 0, sizeof frame);
    frame.api = &api;
    frame.stage = XLA_FFI_ExecutionStage_EXECUTE;
    frame.args.size = 2 + operand - (strcmp(how, "short") == 0);
    frame.args.types = arg_types;
    frame.args.args = args;
    frame.rets.size = 1;
    frame.rets.types = ret_types;
    frame.rets.rets = rets;
    frame.attrs.size = 3;
    frame.attrs.types = attr_types;
    frame.attrs.names = named;
    frame.attrs.attrs = attrs;
    if (on_device) pop_context(); /* the stream says which context a call works in */
    error = handler(&frame);
    if (on_device) push_context();
    if (error) {
        printf("%s\n", message);
        return 0;
    }
    if (on_device) {
        DRIVER(from, "cuMemcpyDtoHAsync_v2", (void *, unsigned long long, size_t, void *));
        DRIVER(wait_for, "cuStreamSynchronize", (void *));
        from(y, (unsigned long long)(size_t)result.data, sizeof y, queue);
        wait_for(queue);
    } else
        memcpy(y, result.data, sizeof y);
    for (k = 0; k < N; k++) wrong += y[k] != 1 + 2 * (float)k;
    printf("%d wrong\n", wrong);
    return 0;
}
