/* CUDA C on a processor: each thread of a block has a stack of its own and runs up to the next barrier, in an order
   shuffled anew after each; copies that are on their way are made as late as they may be. Blocks run one after the
   other; those that wait for each other take turns where they do, and what they shared is overwritten meanwhile. */
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <ucontext.h>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __maxnreg__(most)
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_assume(holds) assert(holds)

struct uint4 { unsigned int x, y, z, w; };
struct dim3 {
    unsigned int x, y, z;
    dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
};
typedef int cudaError_t;
typedef void *cudaStream_t;
enum { cudaSuccess, cudaErrorInvalidValue, cudaErrorMisalignedAddress = 716 };
template <class T> static cudaError_t cudaMallocAsync(T **at, size_t bytes, cudaStream_t) {
    *at = (T *)malloc(bytes + 1);
    memset(*at, 0x7f, bytes + 1);
    return cudaSuccess;
}
static inline cudaError_t cudaFreeAsync(void *at, cudaStream_t) { free(at); return cudaSuccess; }
static inline void cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t) { memset(at, value, bytes); }
enum cudaMemcpyKind { cudaMemcpyDeviceToHost };
static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
  memcpy(to, from, bytes);
  return cudaSuccess;
}
static inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
static inline cudaError_t cudaGetLastError() { return cudaSuccess; }
static inline float __int_as_float(int bits) { float x; memcpy(&x, &bits, 4); return x; }
static inline double __longlong_as_double(long long bits) { double x; memcpy(&x, &bits, 8); return x; }

static inline float __fmul_rn(float a, float b) { return a * b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clzll(unsigned long long x) { return x ? __builtin_clzll(x) : 64; }

struct Copy { void *to; const void *from; int width; };
struct Thread {
    ucontext_t context;
    std::vector<char> stack;
    dim3 at;
    int vote;
    bool ended, looks;
    std::vector<std::vector<Copy>> groups;
};
/* ``ready``: threads that go on; ``met``: those at a barrier already; ``votes``: of the last one. */
struct Block {
    dim3 at;
    std::vector<Thread> threads;
    std::vector<Thread *> ready, met;
    int votes;
};
static dim3 threadIdx, blockIdx, gridDim;
static ucontext_t scheduler;
static Thread *running;
static int votes;
static std::function<void()> thread_body;

static inline void __syncthreads() { running->vote = 0; swapcontext(&running->context, &scheduler); }
static inline int __syncthreads_or(int own) {
    running->vote = own;
    swapcontext(&running->context, &scheduler);
    return votes;
}
/* What the lane ``by`` further holds, of warps of 32; all threads of a block ask at the same time. */
template <class T> static T held_by_lane(T own, int by) {
    static T held[1024];
    held[threadIdx.x] = own;
    __syncthreads();
    T found = threadIdx.x % 32 + by < 32 ? held[threadIdx.x + by] : own;
    __syncthreads();
    return found;
}
template <class T> static T __shfl_up_sync(unsigned int, T own, int by) { return held_by_lane(own, -by); }
template <class T> static T __shfl_down_sync(unsigned int, T own, int by) { return held_by_lane(own, by); }
static inline size_t __cvta_generic_to_global(void *at) { return (size_t)at; }
static inline long long atomicAdd(unsigned long long *at, unsigned long long more) { return (*at += more) - more; }
/* What the thread looks for is another block's to do. */
static inline void look_again() {
    running->looks = true;
    swapcontext(&running->context, &scheduler);
    running->looks = false;
}
/* Zeros, where there is nothing to copy from. */
static inline void copy_later(void *to, const void *from, int width, bool there) {
    assert((uintptr_t)to % width == 0 && (uintptr_t)from % width == 0);
    running->groups.back().push_back({to, there ? from : nullptr, width});
}
static inline void commit_copies() { running->groups.emplace_back(); }
static inline void await_copies(size_t left) {
    while (running->groups.size() > left + 1) { /* the last one has not been begun */
        for (const Copy &c : running->groups.front()) c.from ? memcpy(c.to, c.from, c.width) : memset(c.to, 0, c.width);
        running->groups.erase(running->groups.begin());
    }
}
/* What a warp does together, all warps of a block at the same time: lanes lend each other what they hold, by the
   fragments of the PTX ISA, written down apart from the code that makes the kernels. */
static inline float __uint_as_float(unsigned int bits) { float x; memcpy(&x, &bits, 4); return x; }
static inline unsigned int __float_as_uint(float x) { unsigned int bits; memcpy(&bits, &x, 4); return bits; }
static inline double as_factor(double x) { return x; }
static inline double as_factor(unsigned int x) { return __uint_as_float(x & 0xffffe000u); }
/* Four matrices of eight rows of four floats; lane l names row l mod 8 of matrix l div 8. */
static void matrices_of_warp(float *to, const float *row) {
    static const float *rows[32][4][8];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    assert((uintptr_t)row % 16 == 0);
    rows[warp][lane / 8][lane % 8] = row;
    __syncthreads();
    for (int k = 0; k < 4; k++) to[k] = rows[warp][k][lane / 4][lane % 4];
    __syncthreads();
}
template <int M, int N, int K, class T, class F> static void multiply_of_warp(T *sums, const F *left, const F *right) {
    static double a[32][M][K], b[32][K][N];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, quad = lane % 4;
    for (int r = 0; r < M * K / 32; r++)
        a[warp][M == 16 && r % 2 ? group + 8 : group][quad + (M == 16 ? r / 2 : r) * 4] = as_factor(left[r]);
    for (int r = 0; r < K * N / 32; r++) b[warp][quad + r * 4][group] = as_factor(right[r]);
    __syncthreads();
    for (int r = 0; r < M * N / 32; r++)
        for (int k = 0; k < K; k++) sums[r] = fma(a[warp][r < 2 ? group : group + 8][k], b[warp][k][quad * 2 + (r & 1)], sums[r]);
    __syncthreads();
}
/* A float rounded to 11 bits, a tie away from zero; and to 8 bits, a tie to even, two of them in a register. */
static inline unsigned int tf32_bits(float x) { return x != x ? 0x7fffe000u : __float_as_uint(x) + 0x1000u & 0xffffe000u; }
static inline unsigned int bf16_one(float x) {
    unsigned int bits = __float_as_uint(x);
    return x != x ? 0x7fffu : bits + 0x7fffu + (bits >> 16 & 1) >> 16;
}
static inline unsigned int bf16x2_bits(float high, float low) { return bf16_one(high) << 16 | bf16_one(low); }
/* PTX ISA, "Matrix Fragments for mma.m16n8k16" and k8: a register holds two steps beside each other. */
template <int M, int N, int K> static void multiply_pairs_of_warp(float *sums, const unsigned int *left, const unsigned int *right) {
    static double a[32][M][K], b[32][K][N];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, quad = lane % 4;
    for (int x = 0; x < M * K / 32; x++)
        a[warp][x / 2 % 2 ? group + 8 : group][quad * 2 + x % 2 + x / 4 * 8] = __uint_as_float(left[x / 2] >> x % 2 * 16 << 16);
    for (int x = 0; x < K * N / 32; x++) b[warp][quad * 2 + x % 2 + x / 2 * 8][group] = __uint_as_float(right[x / 2] >> x % 2 * 16 << 16);
    __syncthreads();
    for (int r = 0; r < M * N / 32; r++)
        for (int k = 0; k < K; k++) sums[r] = fma(a[warp][r < 2 ? group : group + 8][k], b[warp][k][quad * 2 + (r & 1)], sums[r]);
    __syncthreads();
}
static void begin_thread() { thread_body(); running->ended = true; }

static void begin(Block &b, dim3 block, dim3 grid, unsigned int number) {
    b.at = dim3(number % grid.x, number / grid.x % grid.y, number / grid.x / grid.y);
    size_t count = (size_t)block.x * block.y * block.z;
    if (b.threads.size() < count) b.threads.resize(count);
    b.ready.clear();
    b.met.clear();
    b.votes = 0;
    for (size_t k = 0; k < count; k++) {
        Thread &t = b.threads[k];
        t.stack.resize(1 << 16);
        t.at = dim3(k % block.x, k / block.x % block.y, k / block.x / block.y);
        t.ended = t.looks = false;
        t.groups.assign(1, {});
        getcontext(&t.context);
        t.context.uc_stack.ss_sp = t.stack.data();
        t.context.uc_stack.ss_size = t.stack.size();
        t.context.uc_link = &scheduler;
        makecontext(&t.context, begin_thread, 0);
        b.ready.push_back(&t);
    }
}

/* Until it has ended, or looks for what other blocks do; whether it has ended. */
static bool ended(Block &b) {
    blockIdx = b.at;
    while (!b.ready.empty()) {
        for (size_t k = b.ready.size(); k > 1; k--) std::swap(b.ready[k - 1], b.ready[rand() % k]);
        std::vector<Thread *> looking;
        size_t gone = 0;
        votes = b.votes;
        for (Thread *t : b.ready) {
            running = t;
            threadIdx = t->at;
            swapcontext(&scheduler, &t->context);
            if (t->ended) gone++;
            else (t->looks ? looking : b.met).push_back(t);
        }
        b.ready = looking;
        if (!looking.empty()) return false;
        if (!b.met.empty() && gone) {
            fprintf(stderr, "%zu threads ended before a barrier of others\n", gone);
            abort();
        }
        b.votes = 0;
        for (Thread *t : b.met) b.votes |= t->vote != 0;
        std::swap(b.ready, b.met);
    }
    return true;
}

static void launch(dim3 grid, dim3 block, std::function<void()> body) {
    static Block b;
    thread_body = body;
    gridDim = grid;
    for (unsigned int number = 0; number < grid.x * grid.y * grid.z; number++) {
        begin(b, block, grid, number);
        if (!ended(b)) {
            fprintf(stderr, "a block waits for another\n");
            abort();
        }
    }
}

/* On three multiprocessors. */
static void launch_at_once(int blocks, int threads, std::function<void()> body) {
    static std::vector<Block> all;
    thread_body = body;
    gridDim = dim3(3 * blocks);
    if (all.size() < gridDim.x) all.resize(gridDim.x);
    for (unsigned int number = 0; number < gridDim.x; number++) begin(all[number], dim3(threads), gridDim, number);
    for (size_t left = gridDim.x, round = 0; left > 0; round++) {
        size_t before = left;
        left = 0;
        for (unsigned int number = 0; number < gridDim.x; number++) left += !ended(all[number]);
        if (round > 100000000 || before < left) abort();
    }
}
