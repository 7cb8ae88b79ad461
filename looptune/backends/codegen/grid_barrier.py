"""A barrier of all blocks of a grid, in Numba and in CUDA C.

    each block   its threads wait · one of them counts the block as arrived, polls until all are · its threads wait
    the last     to leave the kernel sets the counter back to zero

Counting releases what the block has written, and polling acquires what others have written. All blocks have to run at
the same time; otherwise those that wait would prevent the others from beginning.
"""

from __future__ import annotations

LEAST_CAPABILITY = 70
"""Of devices that know what is released and acquired."""
MEET, LEAVE, TOGETHER = "all_blocks_meet", "block_leaves", "launch_together"
LANES = ("lane_before", "lane_behind")
"""Functions of Numba that return a variable of the previous and of the next lane of the warp."""
IMPORT = "from numba import config"
COUNT, LOOK = "count_block", "blocks_arrived"
_RELEASE = "red.release.gpu.global.add.u64 [at], 1;"
_ACQUIRE = "ld.acquire.gpu.global.u64 {}, [at];"
NUMBA = f'''\
@intrinsic
def {COUNT}(typingctx, arrived):
    """One block more has arrived: who sees that sees what it has written."""

    def emit(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(64)])
        text = "{{ .reg .u64 at; cvta.to.global.u64 at, $0; {_RELEASE} }}"
        builder.call(ir.InlineAsm(kind, text, "l,~{{memory}}", True), [builder.ptrtoint(array.data, ir.IntType(64))])
        return context.get_dummy_value()

    return types.void(arrived), emit


@intrinsic
def {LOOK}(typingctx, arrived):
    """How many blocks have arrived; what they had written by then can be read."""

    def emit(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        kind = ir.FunctionType(ir.IntType(64), [ir.IntType(64)])
        text = "{{ .reg .u64 at; cvta.to.global.u64 at, $1; {_ACQUIRE.format("$0")} }}"
        asm = ir.InlineAsm(kind, text, "=l,l,~{{memory}}", True)
        return builder.call(asm, [builder.ptrtoint(array.data, ir.IntType(64))])

    return types.int64(arrived), emit


if config.ENABLE_CUDASIM:  # which has one block, and runs no PTX

    def {COUNT}(arrived):
        arrived[0] += 1

    def {LOOK}(arrived):
        return arrived[0]


@cuda.jit(device=True, inline='always')
def {MEET}(arrived, met):
    """Every block waits here for all others, and sees then what they have written; how many have arrived by then."""
    met += cuda.gridDim.x
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        {COUNT}(arrived)
        while {LOOK}(arrived) < met:
            pass
    cuda.syncthreads()
    return met


@cuda.jit(device=True, inline='always')
def {LEAVE}(arrived, met):
    """The last block to leave sets the counter back to zero."""
    if cuda.threadIdx.x == 0 and cuda.atomic.add(arrived, 0, 1) == met + cuda.gridDim.x - 1:
        arrived[0] = 0
'''
NUMBA_LANES = f'''\
@cuda.jit(device=True, inline='always')
def {LANES[0]}(value):
    """What the previous lane of the warp calls this with; any value where there is none."""
    return cuda.shfl_up_sync(0xffffffff, value, 1)


@cuda.jit(device=True, inline='always')
def {LANES[1]}(value):
    """What the next lane of the warp calls this with; any value where there is none."""
    return cuda.shfl_down_sync(0xffffffff, value, 1)


if config.ENABLE_CUDASIM:  # which has no warps
    lanes = {{}}

    def lane_further(value, by):
        lanes[cuda.threadIdx.x] = value
        cuda.syncthreads()
        found = lanes.get(cuda.threadIdx.x + by, value)
        cuda.syncthreads()
        return found

    def {LANES[0]}(value):
        return lane_further(value, -1)

    def {LANES[1]}(value):
        return lane_further(value, 1)
'''
CUDA_MEET = f"""\
__device__ __forceinline__ long long {MEET}(long long *arrived, long long met)
{{
    met += gridDim.x;
    __syncthreads();
    if (threadIdx.x == 0) {{
        const size_t at = __cvta_generic_to_global(arrived);
        asm volatile("{_RELEASE.replace("at", "%0")}" : : "l"(at) : "memory");
        for (long long seen = 0; seen < met;) {{
            asm volatile("{_ACQUIRE.format("%0").replace("at", "%1")}" : "=l"(seen) : "l"(at) : "memory");
        }}
    }}
    __syncthreads();
    return met;
}}
"""
CUDA_LEAVE = f"""\
__device__ __forceinline__ void {LEAVE}(long long *arrived, long long met)
{{
    if (threadIdx.x == 0 && atomicAdd((unsigned long long *)arrived, 1ULL) == met + gridDim.x - 1) {{
        *arrived = 0;
    }}
}}
"""
CUDA_LAUNCH = f"""\
/* All blocks run at one time: so many on each multiprocessor, with so many bytes of shared memory. */
template <typename... Types, typename... Given>
static void {TOGETHER}(int blocks, int threads, size_t shared, cudaStream_t stream, void (*kernel)(Types...),
    Given... given)
{{
    int device = 0, multiprocessors = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    cudaLaunchAttribute cooperative = {{}};
    cooperative.id = cudaLaunchAttributeCooperative;
    cooperative.val.cooperative = 1;
    cudaLaunchConfig_t config = {{}};
    config.gridDim = dim3(blocks * multiprocessors);
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = &cooperative;
    config.numAttrs = 1;
    cudaLaunchKernelEx(&config, kernel, given...);
}}
"""
