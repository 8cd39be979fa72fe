/* gpu_shim.h: the few words of CUDA that gpu_kernel.h and gpu_dense.h are written in: nvcc's own, or on the host those of gpu_host.c, where each thread of a block is a
 * fiber (or a thread of the operating system) and a barrier lets nobody pass before all have come. No warp is assumed to run in step. */
#ifndef TAPEOUT_GPU_SHIM_H
#define TAPEOUT_GPU_SHIM_H
#include <stdint.h>

#ifdef __CUDACC__
#define GPU_FN static __device__ __forceinline__
#define GPU_KERNEL(name, type) extern "C" __global__ void name(const __grid_constant__ type run)
#define GPU_SHARED(name) extern __shared__ __align__(128) uint32_t name[]
#define GPU_THREAD threadIdx.x
#define GPU_THREADS blockDim.x
#define GPU_BLOCK blockIdx.x
#define GPU_BLOCKS gridDim.x
#define GPU_SYNC() __syncthreads()
#define GPU_READ(p) __ldg(p) /* what nobody writes while the kernel runs */
#define GPU_RESTRICT __restrict__
GPU_FN uint32_t gpu_load(const uint32_t *p) { return *(const volatile uint32_t *)p; } /* while others change other bits of it */
GPU_FN uint32_t gpu_or(uint32_t *p, uint32_t v) { return atomicOr(p, v); }
GPU_FN uint32_t gpu_and(uint32_t *p, uint32_t v) { return atomicAnd(p, v); }
GPU_FN uint32_t gpu_add(uint32_t *p, uint32_t v) { return atomicAdd(p, v); }
#else
/* gpu_host.c */
typedef struct {
    uint32_t thread, threads, block, blocks;
    uint32_t *shared;
} GpuSelf;
const GpuSelf *gpu_self(void);
void gpu_barrier(const char *file, uint32_t line);
#define GPU_FN static inline
#define GPU_KERNEL(name, type) static inline void name##_thread(type run)
#define GPU_SHARED(name) uint32_t *name = gpu_self()->shared
#define GPU_THREAD gpu_self()->thread
#define GPU_THREADS gpu_self()->threads
#define GPU_BLOCK gpu_self()->block
#define GPU_BLOCKS gpu_self()->blocks
#define GPU_SYNC() gpu_barrier(__FILE__, __LINE__)
#define GPU_READ(p) (*(p))
#define GPU_RESTRICT restrict
GPU_FN uint32_t gpu_load(const uint32_t *p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
GPU_FN uint32_t gpu_or(uint32_t *p, uint32_t v) { return __atomic_fetch_or(p, v, __ATOMIC_RELAXED); }
GPU_FN uint32_t gpu_and(uint32_t *p, uint32_t v) { return __atomic_fetch_and(p, v, __ATOMIC_RELAXED); }
GPU_FN uint32_t gpu_add(uint32_t *p, uint32_t v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
#endif
#endif
