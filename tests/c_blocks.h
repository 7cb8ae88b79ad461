/* CUDA C on a processor: each thread of a block has a stack of its own and runs up to the next barrier, in an order
   shuffled anew after each; copies that are on their way are made as late as they may be. */
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
#define __launch_bounds__(n)
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
enum { cudaSuccess, cudaErrorMisalignedAddress = 716 };
template <class T> static cudaError_t cudaMallocAsync(T **at, size_t bytes, cudaStream_t) {
    *at = (T *)malloc(bytes + 1);
    memset(*at, 0x7f, bytes + 1);
    return cudaSuccess;
}
static inline cudaError_t cudaFreeAsync(void *at, cudaStream_t) { free(at); return cudaSuccess; }
static inline cudaError_t cudaGetLastError() { return cudaSuccess; }
static inline float __int_as_float(int bits) { float x; memcpy(&x, &bits, 4); return x; }
static inline double __longlong_as_double(long long bits) { double x; memcpy(&x, &bits, 8); return x; }

struct Copy { void *to; const void *from; int width; };
struct Thread {
    ucontext_t context;
    std::vector<char> stack;
    dim3 at;
    int vote;
    bool ended;
    std::vector<std::vector<Copy>> groups;
};
static dim3 threadIdx, blockIdx;
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
static void begin_thread() { thread_body(); running->ended = true; }

static void launch(dim3 grid, dim3 block, std::function<void()> body) {
    static std::vector<Thread> threads;
    size_t count = (size_t)block.x * block.y * block.z;
    if (threads.size() < count) threads.resize(count);
    thread_body = body;
    for (unsigned int number = 0; number < grid.x * grid.y * grid.z; number++) {
        blockIdx = dim3(number % grid.x, number / grid.x % grid.y, number / grid.x / grid.y);
        std::vector<Thread *> waiting;
        for (size_t k = 0; k < count; k++) {
            Thread &t = threads[k];
            t.stack.resize(1 << 16);
            t.at = dim3(k % block.x, k / block.x % block.y, k / block.x / block.y);
            t.ended = false;
            t.groups.assign(1, {});
            getcontext(&t.context);
            t.context.uc_stack.ss_sp = t.stack.data();
            t.context.uc_stack.ss_size = t.stack.size();
            t.context.uc_link = &scheduler;
            makecontext(&t.context, begin_thread, 0);
            waiting.push_back(&t);
        }
        while (!waiting.empty()) {
            for (size_t k = waiting.size(); k > 1; k--) std::swap(waiting[k - 1], waiting[rand() % k]);
            std::vector<Thread *> met;
            int any = 0;
            for (Thread *t : waiting) {
                running = t;
                threadIdx = t->at;
                swapcontext(&scheduler, &t->context);
                if (!t->ended) { met.push_back(t); any |= t->vote != 0; }
            }
            if (!met.empty() && met.size() != waiting.size()) {
                fprintf(stderr, "%zu threads ended before a barrier of others\n", waiting.size() - met.size());
                abort();
            }
            votes = any;
            waiting = met;
        }
    }
}
