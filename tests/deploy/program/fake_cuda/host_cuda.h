/* Kernels of CUDA C in a shared object of the host: HOST_KERNEL(symbol, how) defines launch_symbol and parameters_symbol,
   which the fake driver looks for. `how`: plain (threads one after the other, no barriers), barriers (threads of a block
   take turns), together (blocks take turns as well). */
#include "cuda_c_on_cpu.h"

#include <tuple>
#include <utility>

static void run_plain(dim3 grid, dim3 block, const std::function<void()> &body) {
    gridDim = grid;
    for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++)
        for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++)
                for (threadIdx.z = 0; threadIdx.z < block.z; threadIdx.z++)
                    for (threadIdx.y = 0; threadIdx.y < block.y; threadIdx.y++)
                        for (threadIdx.x = 0; threadIdx.x < block.x; threadIdx.x++) body();
}

static void run_barriers(dim3 grid, dim3 block, const std::function<void()> &body) { launch(grid, block, body); }

static void run_together(dim3 grid, dim3 block, const std::function<void()> &body) {
    size_t count = (size_t)grid.x * grid.y * grid.z, left = count;
    std::vector<Block> blocks(count);
    std::vector<bool> done(count, false);
    thread_body = body;
    gridDim = grid;
    for (size_t number = 0; number < count; number++) begin(blocks[number], block, grid, (unsigned int)number);
    for (size_t round = 0; left > 0; round++) {
        if (round > 10000000) abort();
        for (size_t number = 0; number < count; number++)
            if (!done[number] && ended(blocks[number])) {
                done[number] = true;
                left--;
            }
    }
}

typedef void host_run(dim3, dim3, const std::function<void()> &);

template <class... P, size_t... I>
static void run_kernel(host_run *run, void (*kernel)(P...), const unsigned *grid, const unsigned *block, void **arguments,
                       std::index_sequence<I...>) {
    run(dim3(grid[0], grid[1], grid[2]), dim3(block[0], block[1], block[2]),
        [&] { kernel(*(typename std::remove_reference<P>::type *)arguments[I]...); });
}
template <class... P>
static void run_kernel(host_run *run, void (*kernel)(P...), const unsigned *grid, const unsigned *block, void **arguments) {
    run_kernel(run, kernel, grid, block, arguments, std::index_sequence_for<P...>());
}

/* Their sizes in bytes, and 0. */
template <class F> struct parameters_of;
template <class... P> struct parameters_of<void(P...)> {
    unsigned sizes[sizeof...(P) + 1] = {(unsigned)sizeof(P)..., 0u};
};

#define HOST_KERNEL(symbol, how)                                                                                     \
    extern "C" {                                                                                                     \
    extern const parameters_of<decltype(symbol)> parameters_##symbol;                                                \
    const parameters_of<decltype(symbol)> parameters_##symbol{};                                                     \
    void launch_##symbol(const unsigned *grid, const unsigned *block, unsigned, void **arguments) {                  \
        run_kernel(run_##how, symbol, grid, block, arguments);                                                       \
    }                                                                                                                \
    }
