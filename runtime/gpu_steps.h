/* gpu_steps.h: lists of the dense executor's steps (gpu_dense.h) as the host makes them: what lies on the device, and the steps of a model's layers. gpu_dense.c makes them of
 * a chip, gpu_stock.c of a checkpoint. */
#ifndef TAPEOUT_GPU_STEPS_H
#define TAPEOUT_GPU_STEPS_H
#include "gpu_dense.h"
#include "gpu.h"
#include "runtime.h"

/* There. */
typedef struct {
    const void *w;
    bool half; /* bfloat16 */
    uint32_t rows, cols;
} GpuMatrix;
typedef struct {
    bool full, idle; /* of attention; that mixer does nothing */
    GpuMatrix m[T_COUNT], open; /* open: the gate of a shared expert, or no rows */
    const float *v[T_COUNT];
    float *state, *history; /* [nv, dk, dv]; [taps, conv_dim] */
    float *keys, *values;   /* [positions][kv_heads * head_dim] */
} GpuLayer;

typedef VEC(DenseStep) GpuList;

typedef struct {
    /* set by the caller */
    GpuDevice *d;
    Geometry geo;
    bool bf16;
    float head_eps;
    uint32_t room, positions; /* tokens that may pass together; that attention remembers */
    char **err;
    /* there */
    VEC(void *) owned;
    DenseNow *now;
    float *x, *u, *mix, *qkv, *conv, *z, *b, *a, *heads, *gate, *up, *open;
    float *queries, *key, *value, *turned, *mixed, *score, *turn;
    bool failed;
} GpuSteps;

/* What passes between steps; with attention: that some layer has. */
void steps_begin(GpuSteps *s, bool attention);
void steps_end(GpuSteps *s);
void *steps_room(GpuSteps *s, size_t bytes); /* zeros; NULL when it has failed */
float *steps_floats(GpuSteps *s, size_t n);
void *steps_send(GpuSteps *s, const void *data, size_t bytes);
bool steps_put(GpuSteps *s, void *to, const void *data, size_t bytes);
/* Elements from row to row there: rows begin at multiples of 16 bytes. */
static inline uint32_t steps_stride(uint32_t cols) { return (cols + 7) / 8 * 8; }

DenseStep *steps_add(GpuSteps *s, GpuList *list, DenseOp op, uint32_t n, const void *w, const float *x, float *y);
/* y[t] = m x[t]; many: of all tokens that pass, else of the first. */
DenseStep *steps_product(GpuSteps *s, GpuList *list, const GpuMatrix *m, const float *x, float *y, bool many);
void steps_norm(GpuSteps *s, GpuList *list, const float *gain);
/* The room that a layer needs from token to token. */
void steps_remember(GpuSteps *s, GpuLayer *l);
void steps_layer(GpuSteps *s, GpuList *list, const GpuLayer *l, bool many);
#endif
