/* sparse.h: what the files of the sparse back end share.
 *
 *   stream.c      the residual stream
 *   forms.c       rows of a weight matrix as affine forms with the pilot folded away
 *   gates.c       finding the forms that are on: sums
 *   ands.c        the same for ANDs
 *   family.c      the same for the rows of an addressed write or read
 *   mlp.c         a SwiGLU block
 *   lut.c         its units with few inputs
 *   delta.c       a Gated DeltaNet layer: heads, their state, reads and writes
 *   sparse.c      norms, embedding, output head, the Backend
 *
 * WHY IT IS EXACT. In a chip whose margins are proved every sum is exact in float32, whatever its order; so the sums here,
 * which leave out zeros and fold constants, are bit for bit the dense back end's. */
#ifndef TAPEOUT_SPARSE_H
#define TAPEOUT_SPARSE_H
#include "runtime.h"

/* Data channels of the residual stream; pilots are constants and live in the forms' biases. The planes are right after stream_settle
 * and stay so until the next put. */
typedef struct {
    uint32_t n, words;
    float *x;        /* [words * 64] */
    uint64_t *plane; /* [PLANES, words] bits of the channels */
    uint64_t *live;  /* [words] = the plane PLANE_LIVE */
    uint64_t *odd;   /* [words] = the plane PLANE_ODD */
    uint8_t *dirty;  /* [words * CHUNKS] 1: written since the last settle */
    uint8_t *coded;  /* [words * CHUNKS] 1: PLANE_WILD and PLANE_CODE are kept */
    int8_t *low, *high; /* [words * 64] the range that a channel is expected to stay in */
    uint32_t ranges;    /* how often one has been widened */
} Stream;
enum {
    PLANE_LIVE, /* channels that are not 0 */
    PLANE_ODD,  /* ... neither 0 nor 1 */
    PLANE_WILD, /* ... no integer in the channel's range */
    PLANE_CODE, /* CODE_BITS planes: the low bits of the integer, the lowest first */
    CODE_BITS = 4,
    PLANES = PLANE_CODE + CODE_BITS,
    CODE_LOW = -8, CODE_HIGH = 7, /* how far a range can go */
    CHUNK = 16, CHUNKS = 64 / CHUNK /* of a word */
};
/* ---- stream.c ---- */
/* Whether the processor has the vector and bit instructions that some functions come in a second version for. */
extern bool simd;
void simd_choose(bool plain);
Stream stream_new(Pool *p, uint32_t n);
void stream_settle(Stream *s);
void stream_clear(Stream *s); /* of a settled stream */
/* Keeps the channel's code from now on, with a range that has its present value; false when none can have it. */
bool stream_range(Stream *s, uint32_t channel);

static inline void stream_put(Stream *s, uint32_t channel, float v)
{
    s->x[channel] += v;
    s->dirty[channel / CHUNK] = 1;
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

/* ---- norms.c ---- */
/* Is the norm's factor 2^-pilot_scale in every pass, by the pilots alone? Fills pilot[hidden], zeroed at first. */
bool pilots_hold(const Model *m, float *pilot);
/* The channel's factor behind a norm whose pilots make it 2^-pilot_scale: gain[hidden], in pool memory; NULL when a gain is no power of two. */
float *norm_gains(const Model *m, Pool *p, const float *pilot, const Tensor *norm);

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
/* The form that equals form i of f; and the one with its entries and bias 0. */
uint32_t forms_add_form(Forms *to, const Forms *f, uint32_t i);
uint32_t forms_add_part(Forms *to, const Forms *f, uint32_t i);
/* Renumbers the channels of all forms: at = map[at]. */
void forms_remap(Forms *f, const uint32_t *map);
void forms_free(Forms *f);
/* The same channels with the same weights up to sign? And n forms in an order in which those that are alike stand together, by number. */
bool forms_alike(const Forms *f, uint32_t i, uint32_t j);
void forms_sort(const Forms *f, uint32_t *form, uint32_t n);

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
/* Every form is one of four kinds:
 *   constant  on or off for ever
 *   AND       on only when its channels, all being 0 or 1, have given values; its value is then a constant (ands.c)
 *   select    one of a family that an address selects from, all under the same condition (family.c)
 *   sum       a member of a part: forms that differ in their bias only share one sum over channels */
typedef struct {
    float bias;
    uint32_t form;
} Member;
typedef struct {
    uint32_t n;             /* forms */
    bool zero_is_off;       /* for silu, where the value 0 is off as well */
    uint32_t *on;           /* [n] forms that are on, in no order */
    float *value;           /* [n] and their values */
    uint32_t always;        /* on[0 .. always) are the constant forms that are on */
    struct Ands *ands;
    struct Families *families;
    uint32_t nparts;
    uint32_t *member_start; /* [nparts + 1] */
    Member *member;         /* of a part: greatest bias first */
    uint32_t *part;         /* [nparts] parts of which a member may be on */
    float *sum;             /* [nparts] and their sums */
    struct Sums *sums;
} Gates;
void gates_make(Gates *g, Pool *p, const Forms *f, uint32_t channels, bool zero_is_off);
uint32_t gates_ands(Gates *g, const Stream *s); /* all but sums: fills on and value, returns how many */
uint32_t gates_sums(Gates *g, const Stream *s); /* fills part and sum, returns how many */
uint32_t gates_eval(Gates *g, const Stream *s); /* all forms that are on: fills on and value, returns how many */
void gates_close(Gates *g);
/* silu is exactly -0 and sigmoid +0 below -88.72284; callers look at what lies between in full. */
#define OFF_BELOW (-88.75f)
static inline bool gate_on(float v, bool zero_is_off) { return v > OFF_BELOW && !(zero_is_off && v == 0); }

/* The bits of x that mask names, close together from bit 0 on: what the instruction pext does. */
static inline uint64_t gather_bits(uint64_t x, uint64_t mask)
{
    uint64_t out = 0;
    for (uint32_t k = 0; mask; mask &= mask - 1, k++) out |= (x >> __builtin_ctzll(mask) & 1) << k;
    return out;
}

/* ---- ands.c ---- */
bool form_is_and(const Forms *f, uint32_t i, bool zero_is_off, float *value); /* and its value when on */
typedef struct Ands Ands;
Ands *ands_new(Pool *p, uint32_t channels, uint32_t most, bool zero_is_off);
/* Takes form i of f, called `name`, when it is an AND. */
bool ands_take(Ands *a, const Forms *f, uint32_t i, uint32_t name);
void ands_finish(Ands *a);
/* Appends the names and values of those that are on; returns the new count. */
uint32_t ands_eval(Ands *a, const Stream *s, uint32_t n, uint32_t *on, float *value);
void ands_close(Ands *a);

/* ---- family.c ---- */
typedef struct Families Families;
/* Takes families out of the forms of f with taken[i] false, setting it. */
Families *families_make(Pool *p, const Forms *f, bool *taken, bool zero_is_off);
uint32_t families_eval(const Families *t, const Stream *s, uint32_t n, uint32_t *on, float *value);
void families_close(Families *t);

/* ---- mlp.c ---- */
typedef struct Mlp Mlp;
/* Amounts to add to the stream: e[0 .. n), at = channel. */
typedef struct {
    const Entry *e;
    uint32_t n;
} Patch;
Mlp *mlp_make(const Model *m, uint32_t layer, const Basis *basis, Pool *p); /* NULL: no MLP for this back end */
void mlp_step(Mlp *l, Stream *s);
void mlp_close(Mlp *l);
/* For lut.c: appends what the units add to `out`; or notes it down to be added with the rest of this token. */
typedef VEC(Entry) Entries;
void mlp_patch(Mlp *l, const uint32_t *unit, uint32_t units, const Stream *s, Entries *out);
void mlp_compute(Mlp *l, const uint32_t *unit, uint32_t units, const Stream *s);

/* ---- lut.c ---- */
typedef struct Luts Luts;
Luts *luts_make(Mlp *mlp, Pool *p, uint32_t channels);
/* Whether a unit with these forms has few enough inputs; if so, luts_take takes it. */
bool lut_fits(const Forms *gate, uint32_t g, const Forms *up, uint32_t u);
void luts_take(Luts *t, uint32_t unit, const Forms *gate, uint32_t g, const Forms *up, uint32_t u);
/* The same for an AND, when there are units with all its channels; false when there are none. */
bool luts_share(Luts *t, uint32_t unit, const Forms *gate, uint32_t g, const Forms *up, uint32_t u);
void luts_finish(Luts *t);
uint32_t luts_most(const Luts *t); /* how many patches luts_eval can give */
/* Appends the patches of all tables to due; returns the new count. */
uint32_t luts_eval(Luts *t, Stream *s, Patch *due, uint32_t n);
void luts_close(Luts *t);

/* ---- delta.c ---- */
typedef struct Delta Delta;
/* The layer's input norm is folded in by `basis`. False when the layer is no layer for this back end. */
Delta *delta_make(const Model *m, uint32_t layer, const Basis *basis, Pool *p);
void delta_step(Delta *d, Stream *s);
void delta_get(const Delta *d, uint32_t head, uint32_t row, float *lanes);
void delta_set(Delta *d, uint32_t head, uint32_t row, const float *lanes);
/* As Backend.recall: for the channels that later tokens ask for. */
void delta_recall(const Delta *d, uint32_t back, float *raw);
/* Notes a token that another back end has run: x is the residual that came into the layer. The state is set afterwards. */
void delta_prime(Delta *d, float *x);
void delta_close(Delta *d);

/* ---- sparse.c, for adaptive.c ---- */
/* Whether it computes by itself: the chip is one for it, and no loaded state is being warmed up. */
bool sparse_plain(const void *self);
/* As BackendOptions.probe, from the next token on; NULL: no longer. */
void sparse_watch(void *self, void (*probe)(void *ctx, int layer, const char *what, const float *x, uint32_t n), void *ctx);
/* As delta_prime. */
void sparse_tell(void *self, uint32_t layer, float *x);
#endif
