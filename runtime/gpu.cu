/* gpu.cu: a device that is a GPU: the kernels compiled by nvcc, and memory, copies and launches through the CUDA runtime. Everything goes one after the other on
 * the default stream of device 0 (CUDA_VISIBLE_DEVICES chooses another). */
#include "gpu_kernel.h"
#include "gpu_dense.h"
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The message of a failed call, malloc'd. */
static bool cuda_failed(cudaError_t e, const char *what, char **err)
{
    if (e == cudaSuccess) return false;
    char text[256];
    snprintf(text, sizeof text, "cuda: %s: %s", what, cudaGetErrorString(e));
    cudaGetLastError(); /* forgotten */
    if (err) *err = strdup(text);
    return true;
}

static bool cuda_open(GpuDevice *d, char **err)
{
    cudaDeviceProp p;
    int n = 0;
    if (cuda_failed(cudaGetDeviceCount(&n), "no GPU can be used", err)) return false;
    if (cuda_failed(n ? cudaSuccess : cudaErrorNoDevice, "no GPU can be used", err)) return false;
    if (cuda_failed(cudaGetDeviceProperties(&p, 0), "the GPU cannot be looked at", err)) return false;
    d->processors = (uint32_t)p.multiProcessorCount;
    d->shared = p.sharedMemPerBlockOptin;
    d->threads = 512;
    return !cuda_failed(cudaFuncSetAttribute(gpu_planes, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)d->shared), "the GPU does not run this program's kernel", err);
}

static void *cuda_alloc(GpuDevice *, size_t bytes, char **err)
{
    void *p = NULL;
    if (cuda_failed(cudaMalloc(&p, bytes ? bytes : 1), "out of memory", err)) return NULL;
    if (cuda_failed(cudaMemset(p, 0, bytes), "memory", err)) {
        cudaFree(p);
        return NULL;
    }
    return p;
}

static void cuda_free(GpuDevice *, void *p) { cudaFree(p); }

static bool cuda_put(GpuDevice *, void *to, const void *from, size_t bytes, char **err)
{
    return !cuda_failed(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "copying to the GPU", err);
}

static bool cuda_get(GpuDevice *, void *to, const void *from, size_t bytes, char **err)
{
    return !cuda_failed(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "copying from the GPU", err);
}

static bool cuda_run(GpuDevice *, const GpuRun *r, uint32_t blocks, uint32_t threads, char **err)
{
    gpu_planes<<<blocks, threads, gpu_shared_bytes(&r->g, r->lanes)>>>(*r);
    return !cuda_failed(cudaGetLastError(), "launch", err) && !cuda_failed(cudaDeviceSynchronize(), "kernel", err);
}

/* ---- the dense executor: a token's launches as a graph, so that a token costs the host one call ---- */
enum { DENSE_BLOCK = 256 };

static bool record(const DenseStep *step, uint32_t n, cudaStream_t stream, cudaGraphExec_t *out, char **err)
{
    cudaGraph_t graph;
    if (cuda_failed(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "recording", err)) return false;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t threads = dense_threads(&step[i], DENSE_BLOCK);
        gpu_dense<<<step[i].blocks, threads, dense_shared(&step[i], threads), stream>>>(step[i]);
    }
    if (cuda_failed(cudaStreamEndCapture(stream, &graph), "recording", err)) return false;
    bool ok = !cuda_failed(cudaGraphInstantiate(out, graph, 0), "recording", err);
    cudaGraphDestroy(graph);
    return ok;
}

static bool cuda_tokens(GpuDevice *, const DenseStep *step, uint32_t n, uint32_t tokens, void **plan, char **err)
{
    static cudaStream_t stream;
    cudaGraphExec_t exec = (cudaGraphExec_t)*plan;
    if (!stream && cuda_failed(cudaStreamCreate(&stream), "stream", err)) return false;
    if (!exec && !record(step, n, stream, &exec, err)) return false;
    *plan = exec;
    for (uint32_t i = 0; i < tokens; i++)
        if (cuda_failed(cudaGraphLaunch(exec, stream), "launch", err)) return false;
    return !cuda_failed(cudaStreamSynchronize(stream), "kernel", err);
}

static void cuda_forget(GpuDevice *, void *plan)
{
    if (plan) cudaGraphExecDestroy((cudaGraphExec_t)plan);
}

extern "C" GpuDevice gpu_cuda;
GpuDevice gpu_cuda = {"cuda", cuda_open, cuda_alloc, cuda_free, cuda_put, cuda_get, cuda_run, cuda_tokens, cuda_forget, 0, 0, 0, 0, false, 0, NULL};
