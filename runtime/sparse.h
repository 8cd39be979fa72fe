/* sparse.h: what the files of the sparse back end share.
 *
 *   forms.c       rows of a weight matrix as affine forms with the pilot folded away
 *   gates.c       finding the forms that are on
 *   delta.c       a Gated DeltaNet layer: heads, their state, reads and writes
 *   sparse.c      the stream, the MLP, the head, the Backend
 *
 * WHY IT IS EXACT. In a chip whose margins are proved every sum is exact in float32, whatever its order; so the sums here,
 * which leave out zeros and fold constants, are bit for bit the dense back end's. */
#ifndef TAPEOUT_SPARSE_H
#define TAPEOUT_SPARSE_H
#include "runtime.h"

/* Data channels of the residual stream; pilots are constants and live in the forms' biases. */
typedef struct {
    uint32_t n, words;
    float *x;       /* [n] */
    uint64_t *live; /* [words] channels that are not 0 */
    uint64_t *odd;  /* [words] channels that are neither 0 nor 1 */
} Stream;

Stream stream_new(Pool *p, uint32_t n); /* forms.c */

static inline void stream_add(Stream *s, uint32_t channel, float v)
{
    uint32_t w = channel >> 6, k = channel & 63;
    float x = s->x[channel] += v;
    s->live[w] = (s->live[w] & ~(1ull << k)) | (uint64_t)(x != 0) << k;
    s->odd[w] = (s->odd[w] & ~(1ull << k)) | (uint64_t)(x != 0 && x != 1) << k;
}

/* ---- forms.c ---- */
typedef struct {
    uint32_t at;
    float w;
} Entry;

/* How a matrix's columns become channels: a pilot column is worth w * pilot in every token, a data column w * 2^-K * x;
 * the norm's gain (a power of two or 0) is folded in as well. */
typedef struct {
    const float *pilot; /* [hidden] the pilot's value, 0 for data */
    const float *gain;  /* [hidden] 2^-K (1 + norm weight) for data, (1 + norm weight) for pilots */
} Basis;

/* Affine forms bias + sum w * x[at], each different from all others. */
typedef struct {
    uint32_t n, cap;
    float *bias;     /* [n] */
    uint32_t *start; /* [n + 1] */
    VEC(Entry) e;
    uint32_t *slot, nslots; /* hash table while building */
} Forms;
void forms_init(Forms *f);
/* The form of a run of n elements (one matrix row), times `scale`; equal rows give equal numbers. */
uint32_t forms_add(Forms *f, const Basis *basis, const int32_t *col, const float *value, uint32_t n, float scale);
/* Appends form i of another list, which must not be there yet. */
void forms_copy(Forms *to, const Forms *f, uint32_t i);
/* Renumbers the channels of all forms: at = map[at]. */
void forms_remap(Forms *f, const uint32_t *map);
void forms_free(Forms *f);

static inline float form_value(const Forms *f, uint32_t i, const float *x)
{
    float sum = f->bias[i];
    for (uint32_t k = f->start[i]; k < f->start[i + 1]; k++) sum += f->e.data[k].w * x[f->e.data[k].at];
    return sum;
}

/* Lists by key: the items of key k are item[start[k] .. start[k + 1]). */
typedef struct {
    uint32_t *start, *item;
} Lists;
/* key[i] for every item i < n; UINT32_MAX: in no list. */
Lists lists_make(Pool *p, const uint32_t *key, uint32_t n, uint32_t keys);

/* ---- gates.c: which forms are on (silu or sigmoid of the value is not 0), without looking at most of them ---- */
typedef struct Gates {
    uint32_t n;      /* forms */
    uint32_t *on;    /* [n] result of gates_eval: forms that are on, in no order */
    float *value;    /* [n] and their values */
    uint32_t always; /* on[0 .. always) are constant forms, filled in once */
    struct Ands *ands;
    struct Sums *sums;
} Gates;
/* zero_is_off: for silu, where the value 0 is off as well. */
void gates_make(Gates *g, Pool *p, const Forms *f, uint32_t channels, bool zero_is_off);
uint32_t gates_eval(Gates *g, const Stream *s); /* fills on and value; returns how many */
void gates_close(Gates *g);

/* ---- delta.c ---- */
typedef struct Delta Delta;
/* The layer's input norm is folded in by `basis`. False when the layer is no layer for this back end. */
Delta *delta_make(const Model *m, uint32_t layer, const Basis *basis, Pool *p);
void delta_step(Delta *d, Stream *s);
void delta_get(const Delta *d, uint32_t head, uint32_t row, float *lanes);
void delta_set(Delta *d, uint32_t head, uint32_t row, const float *lanes);
void delta_close(Delta *d);
#endif
