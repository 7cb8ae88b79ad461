/* The arguments of a call through XLA's foreign function interface, for the handlers that `looptune build --jax` writes.
 *
 *     operands     the arrays, then the numbers that are no attributes, in order
 *     results      the arrays that are written, in order; each is the memory of its operand
 *     attributes   integers (int64), numbers (float64), operands (int64: 1 for each number that is an operand),
 *                  each an array that begins with a 0, so that none is empty
 *
 * XLA's header is C; what XLA asks of the handler itself is answered here. Compile as C99.
 */
#ifndef LOOPTUNE_XLA_H
#define LOOPTUNE_XLA_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "xla/ffi/api/c_api.h"

enum { LOOPTUNE_XLA_MOST = 64 }; /* arrays, and numbers */

/* What a handler on a device needs of its driver: `copy` copies memory of the device, and `fetch` a number of it to the
   host; 0 says that it worked. `enter` makes the context of a stream current, and `leave` undoes what it returned. */
struct looptune_xla_driver {
    int (*copy)(void *to, const void *from, size_t bytes, void *stream);
    int (*fetch)(void *to, const void *from, size_t bytes, void *stream);
    int (*enter)(void *stream);
    void (*leave)(int entered);
};

/* What a handler takes; `written` has a 1 for each array that is a result; `driver` is NULL on the host. */
struct looptune_xla_signature {
    int arrays, integers, numbers;
    const char *const *names; /* of the arrays */
    const unsigned char *written;
    const struct looptune_xla_driver *driver;
};

struct looptune_xla_call {
    void *arrays[LOOPTUNE_XLA_MOST];
    double numbers[LOOPTUNE_XLA_MOST];
    const int64_t *integers;
    void *stream;
    int entered;
};

static XLA_FFI_Error *looptune_xla_error(const XLA_FFI_CallFrame *frame, XLA_FFI_Error_Code code, const char *message) {
    XLA_FFI_Error_Create_Args args;
    memset(&args, 0, sizeof args);
    args.struct_size = XLA_FFI_Error_Create_Args_STRUCT_SIZE;
    args.message = message;
    args.errc = code;
    return frame->api->XLA_FFI_Error_Create(&args);
}

/* Whether XLA asks for the version of the interface instead of making a call; it is answered then. */
static int looptune_xla_answered(const XLA_FFI_CallFrame *frame) {
    XLA_FFI_Metadata *asked;
    if (!frame->extension_start || frame->extension_start->type != XLA_FFI_Extension_Metadata) return 0;
    asked = ((XLA_FFI_Metadata_Extension *)frame->extension_start)->metadata;
    asked->api_version.major_version = XLA_FFI_API_MAJOR;
    asked->api_version.minor_version = XLA_FFI_API_MINOR;
    asked->traits = 0; /* calls are not recorded in command buffers */
    return 1;
}

/* The elements of an attribute after its first one, NULL where there are not so many of this type. */
static const void *looptune_xla_attribute(const XLA_FFI_CallFrame *frame, const char *name, XLA_FFI_DataType dtype,
                                          int count) {
    int64_t k;
    for (k = 0; k < frame->attrs.size; k++) {
        const XLA_FFI_ByteSpan *own = frame->attrs.names[k];
        const XLA_FFI_Array *array = (const XLA_FFI_Array *)frame->attrs.attrs[k];
        if (own->len != strlen(name) || memcmp(own->ptr, name, own->len) != 0) continue;
        if (frame->attrs.types[k] != XLA_FFI_AttrType_ARRAY || array->dtype != dtype) return NULL;
        return array->size == (size_t)count + 1 ? (const char *)array->data + 8 : NULL;
    }
    return NULL;
}

static size_t looptune_xla_bytes(const XLA_FFI_Buffer *buffer) {
    size_t bytes = 0;
    int64_t k;
    switch (buffer->dtype) {
    case XLA_FFI_DataType_PRED:
    case XLA_FFI_DataType_S8:
    case XLA_FFI_DataType_U8: bytes = 1; break;
    case XLA_FFI_DataType_S16:
    case XLA_FFI_DataType_F16:
    case XLA_FFI_DataType_BF16:
    case XLA_FFI_DataType_U16: bytes = 2; break;
    case XLA_FFI_DataType_S32:
    case XLA_FFI_DataType_U32:
    case XLA_FFI_DataType_F32: bytes = 4; break;
    case XLA_FFI_DataType_S64:
    case XLA_FFI_DataType_U64:
    case XLA_FFI_DataType_F64: bytes = 8; break;
    default: break;
    }
    for (k = 0; k < buffer->rank; k++) bytes *= (size_t)buffer->dims[k];
    return bytes;
}

/* The arrays of a call: those that are written are the results, into which XLA has put the operands. */
static XLA_FFI_Error *looptune_xla_arrays(const XLA_FFI_CallFrame *frame, const struct looptune_xla_signature *s,
                                          struct looptune_xla_call *call) {
    size_t bytes[LOOPTUNE_XLA_MOST];
    char message[300];
    int k, other, result = 0;
    for (k = 0; k < s->arrays; k++) {
        const XLA_FFI_Buffer *operand = (const XLA_FFI_Buffer *)frame->args.args[k];
        bytes[k] = looptune_xla_bytes(operand);
        call->arrays[k] = operand->data;
        if (!s->written[k]) continue;
        call->arrays[k] = ((const XLA_FFI_Buffer *)frame->rets.rets[result++])->data;
        if (call->arrays[k] == operand->data || bytes[k] == 0) continue;
        if (!s->driver)
            memcpy(call->arrays[k], operand->data, bytes[k]);
        else if (s->driver->copy(call->arrays[k], operand->data, bytes[k], call->stream) != 0)
            return looptune_xla_error(frame, XLA_FFI_Error_Code_INTERNAL, "the driver cannot copy an array");
    }
    for (k = 0; k < s->arrays; k++)
        for (other = 0; other < k; other++) {
            const uintptr_t a = (uintptr_t)call->arrays[k], b = (uintptr_t)call->arrays[other];
            if (!(s->written[k] || s->written[other]) || !bytes[k] || !bytes[other]) continue;
            if (a >= b + bytes[other] || b >= a + bytes[k]) continue;
            snprintf(message, sizeof message, "XLA gave %.80s and %.80s, one of which is written, one memory",
                     s->names[other], s->names[k]);
            return looptune_xla_error(frame, XLA_FFI_Error_Code_INTERNAL, message);
        }
    return NULL;
}

static XLA_FFI_Error *looptune_xla_numbers(const XLA_FFI_CallFrame *frame, const struct looptune_xla_signature *s,
                                           struct looptune_xla_call *call, const double *values,
                                           const int64_t *operands) {
    int k, at = s->arrays;
    for (k = 0; k < s->numbers; k++) {
        const XLA_FFI_Buffer *operand;
        union {
            float single;
            double whole;
        } value;
        const void *held;
        call->numbers[k] = values[k];
        if (!operands[k]) continue;
        operand = (const XLA_FFI_Buffer *)frame->args.args[at++];
        held = operand->data;
        if (s->driver) {
            if (s->driver->fetch(&value, operand->data, looptune_xla_bytes(operand), call->stream) != 0)
                return looptune_xla_error(frame, XLA_FFI_Error_Code_INTERNAL, "the driver cannot copy a number");
            held = &value;
        }
        call->numbers[k] = operand->dtype == XLA_FFI_DataType_F32 ? *(const float *)held : *(const double *)held;
    }
    return NULL;
}

/* After a call. */
static void looptune_xla_close(const struct looptune_xla_signature *s, const struct looptune_xla_call *call) {
    if (s->driver) s->driver->leave(call->entered);
}

/* Collect the arguments of a call. `*done` is set where nothing is left to do; an error goes back to XLA. */
static XLA_FFI_Error *looptune_xla_open(XLA_FFI_CallFrame *frame, const struct looptune_xla_signature *s,
                                        struct looptune_xla_call *call, int *done) {
    const double *numbers;
    const int64_t *operands;
    XLA_FFI_Error *error;
    int k, results = 0, given = 0;
    *done = 1;
    if (looptune_xla_answered(frame) || frame->stage != XLA_FFI_ExecutionStage_EXECUTE) return NULL;
    call->stream = NULL;
    call->integers = (const int64_t *)looptune_xla_attribute(frame, "integers", XLA_FFI_DataType_S64, s->integers);
    numbers = (const double *)looptune_xla_attribute(frame, "numbers", XLA_FFI_DataType_F64, s->numbers);
    operands = (const int64_t *)looptune_xla_attribute(frame, "operands", XLA_FFI_DataType_S64, s->numbers);
    for (k = 0; k < s->arrays; k++) results += s->written[k];
    for (k = 0; operands && k < s->numbers; k++) given += operands[k] != 0;
    if (!call->integers || !numbers || !operands || frame->args.size != s->arrays + given ||
        frame->rets.size != results)
        return looptune_xla_error(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT, "this is no call of the module's function");
    call->entered = 0;
    if (s->driver) {
        XLA_FFI_Stream_Get_Args args;
        memset(&args, 0, sizeof args);
        args.struct_size = XLA_FFI_Stream_Get_Args_STRUCT_SIZE;
        args.ctx = frame->ctx;
        if ((error = frame->api->XLA_FFI_Stream_Get(&args))) return error;
        call->stream = args.stream;
        call->entered = s->driver->enter(call->stream);
    }
    error = looptune_xla_arrays(frame, s, call);
    if (!error) error = looptune_xla_numbers(frame, s, call, numbers, operands);
    if (error)
        looptune_xla_close(s, call);
    else
        *done = 0;
    return error;
}

#endif
