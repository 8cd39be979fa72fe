/* gpu_plan.h: a program while it grows: what gpu_plan.c and gpu_image.c share. */
#ifndef TAPEOUT_GPU_PLAN_H
#define TAPEOUT_GPU_PLAN_H
#include "gpu.h"
#include "slice_priv.h"

typedef struct {
    Gpu g; /* its numbers; the arrays follow: */
    VEC(uint64_t) op;
    VEC(uint32_t) first;
    VEC(GpuStage) stage;
    VEC(GpuCells) cells;
    VEC(GpuSelect) select;
    VEC(GpuItem) item;
    VEC(GpuCount) count;
    VEC(GpuPast) pasts;
    VEC(uint16_t) slot;
    VEC(uint32_t) table;
    VEC(uint16_t) outs;
    VEC(uint16_t) check;
    VEC(uint8_t) kind;
    VEC(uint16_t) token;
    VEC(uint32_t) home;
    const Slice *slice;
} GpuImage;

/* Slots for good come first, then those of a slice's stages; what is no slot stays. */
static inline uint16_t gpu_slot(const Slice *s, uint32_t slot)
{
    if (slot >= GPU_ONES) return (uint16_t)slot;
    return (uint16_t)(slot >= SLICE_TEMP - s->kept ? slot - (SLICE_TEMP - s->kept) : slot + s->kept);
}

/* ---- gpu_image.c ---- */
/* Adds what a stage has besides waves (which are in *st): checks, cells, past planes. */
void gpu_image_stage(GpuImage *g, Slice *s, uint32_t i, GpuStage *st);
/* Adds tokens and kinds, and makes one piece of all; frees the parts. */
Gpu *gpu_image_make(GpuImage *g, Slice *s);
#endif
