/* gpu_map.h: what gpu_plan.c and gpu_map.c share: a stage's operations as values that are never overwritten, and tables over them. */
#ifndef TAPEOUT_GPU_MAP_H
#define TAPEOUT_GPU_MAP_H
#include "bits.h"
#include "gpu.h"

/* Before covering: n = 0 is a plane that is there (in[0]: its slot), n = 2 an operation. Values stand after what they read. */
typedef struct {
    uint32_t n, in[2];
    uint8_t truth; /* bit a | b << 1 */
} Value;
typedef VEC(Value) Values;

/* After it: a table over other values. */
typedef struct {
    uint32_t value, n, in[GPU_MANY];
    uint64_t truth; /* bit: the inputs, the first least */
} GpuLut;
typedef VEC(GpuLut) GpuLuts;

/* Tables of up to `inputs` inputs for the values that are wanted, each after what it reads. `deep`: as few one after the other as there can be, then as
 * few as possible; else just few. */
void gpu_cover(const Values *v, const bool *wanted, uint32_t inputs, bool deep, GpuLuts *out);
#endif
