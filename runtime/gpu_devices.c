/* gpu_devices.c: devices by name. The build defines HAVE_CUDA where it found a compiler. */
#include "gpu.h"
#include "runtime.h"

#ifdef HAVE_CUDA
extern GpuDevice gpu_cuda; /* gpu.cu */
#endif

GpuDevice *gpu_device(const char *name, char **err)
{
    GpuDevice *d = NULL;
    if (!strcmp(name, "cuda-host")) d = &gpu_host;
#ifdef HAVE_CUDA
    if (!strcmp(name, "cuda")) d = &gpu_cuda;
#else
    if (!strcmp(name, "cuda")) return fail(err, "cuda: this program was built without a CUDA compiler"), NULL;
#endif
    if (!d) return fail(err, "unknown device \"%s\"", name), NULL;
    return d->open(d, err) ? d : NULL;
}
