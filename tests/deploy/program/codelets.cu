extern "C" __global__ void __launch_bounds__(256)
axpy_default(const float *__restrict__ x, float *__restrict__ y, unsigned int n, float a)
{
    unsigned int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) {
        return;
    }
    y[i] += a * x[i];
}

extern "C" __global__ void __launch_bounds__(128)
axpy_tuned(const float *__restrict__ x, float *__restrict__ y, unsigned int n, float a)
{
    for (unsigned int i = blockIdx.x * 128 + threadIdx.x; i < n; i += 128 * gridDim.x) {
        y[i] += a * x[i];
    }
}

extern "C" __global__ void __launch_bounds__(256)
axpy_wrong(const float *__restrict__ x, float *__restrict__ y, unsigned int n, float a)
{
    unsigned int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n && i != 7) {
        y[i] += a * x[i];
    }
}

extern "C" __global__ void __launch_bounds__(256)
add_scratch(const unsigned int *__restrict__ zeros, float *__restrict__ y, unsigned int n)
{
    unsigned int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) {
        y[i] += (float)zeros[i];
    }
}

extern "C" __global__ void __launch_bounds__(64)
turn_blocks(float *__restrict__ y, unsigned int n)
{
    __shared__ float tile[64];
    unsigned int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) {
        tile[threadIdx.x] = y[i];
    }
    __syncthreads();
    unsigned int size = n - blockIdx.x * 64 < 64 ? n - blockIdx.x * 64 : 64;
    if (i < n) {
        y[i] = tile[size - 1 - threadIdx.x];
    }
}

extern "C" __global__ void __launch_bounds__(64)
add_garbage(unsigned int *__restrict__ garbage, float *__restrict__ y, unsigned int n)
{
    unsigned int i = blockIdx.x * 64 + threadIdx.x;
    if (i == 7 && i < n) {
        y[i] += 0.5f * (float)(1 + garbage[0] % 4);
        garbage[0] += 1;
    }
}
