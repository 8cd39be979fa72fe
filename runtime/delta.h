/* delta.h: what a Gated DeltaNet layer of the sparse back end consists of; delta.c says how it works. */
#ifndef TAPEOUT_DELTA_H
#define TAPEOUT_DELTA_H
#include "sparse.h"

#define L2_EPS 1e-6f
enum { MAX_TAPS = 16, GENERAL = MAX_TAPS, NONE = 0xffffffff };
enum { PART_Q, PART_K, PART_V, PARTS };

/* A channel of q, k or v: kind << 26 | number. kind < MAX_TAPS: a form over the stream `kind` tokens back; GENERAL: a number
 * in Delta.general. */
#define CODE(kind, i) ((uint32_t)(kind) << 26 | (i))
#define CODE_KIND(c) ((c) >> 26)
#define CODE_INDEX(c) ((c) & 0x3ffffff)

typedef struct {
    uint32_t form; /* in Delta.raw */
    float w[MAX_TAPS];
} General;

typedef struct {
    Forms forms[MAX_TAPS];  /* by how many tokens back */
    Gates gates[MAX_TAPS];  /* q and k only */
    Lists rows[MAX_TAPS];   /* q and k: channels of each form */
    uint32_t *code;         /* [channels] or NONE: always 0 */
    VEC(uint32_t) general;  /* q and k: channels that are GENERAL */
} Part;

/* The non-zero entries of each key head's key or query. */
typedef struct {
    uint32_t row;
    float v;
} Hot;
typedef struct {
    uint32_t *n;    /* [nk] */
    Hot *hot;       /* [nk, dk] */
    uint32_t *used; /* key heads with entries */
    uint32_t nused;
} HotLists;

/* What writes may put into a row: heads with equal value channels share one. */
typedef struct {
    uint32_t n;
    uint32_t *lane, *code; /* [n] lanes whose value is not always 0 */
    uint32_t *plain;       /* [n] the channel whose being 1 makes the value plain_value, and being 0 makes it 0; NONE: it is no such value */
    float *plain_value;
    bool bits;             /* may be bit-coded */
    uint64_t fixed;        /* lanes with a constant value */
    float fixed_value[64];
    float one;             /* 0: no bit has been seen yet */
    float q, factor;       /* the norm's factor for query entry q; 0: it depends on the bits */
} ValueClass;

/* Columns of out_proj: lane i adds w * y to the channels e[start[i] .. start[i + 1]). */
typedef struct {
    uint32_t *start; /* [dv + 1] */
    const Entry *e;
} OutClass;

typedef struct {
    ValueClass *value;
    const OutClass *out;
    float *rows; /* [dk, dv]; NULL while bit-coded, or while nothing has been written */
} DeltaHead;

typedef struct {
    uint32_t head, word; /* lanes word * 64 ... */
    uint64_t mask;
} GateMember;

typedef struct {
    uint32_t head, form; /* form in Delta.a, NONE: constant */
    float factor;
} Decay;

struct Delta {
    const Model *m;
    const Geometry *g;
    bool bf16;
    uint64_t pos;
    float scale;    /* sqrt(dk) */
    uint32_t share; /* value heads per key head */
    Part part[PARTS];
    Forms raw; /* unconvolved projections of GENERAL channels */
    VEC(General) general;
    /* snapshots of the channels that past tokens are asked for: snap[0] is this token */
    uint32_t nsnap, *snap_channel;
    Stream snap[MAX_TAPS];
    Gates b, z;
    Lists b_heads;        /* value heads of each form of b that writes can change */
    Forms b_forms;
    uint32_t *b_form;     /* [nv] */
    bool nothing;         /* the layer does nothing while no state is set from outside */
    VEC(uint32_t) idle;   /* heads whose values are always 0, but of which a row has been set: a write would clear it */
    uint32_t *z_start; /* [forms of z + 1] into z_member */
    GateMember *z_member;
    Forms a;
    VEC(Decay) decay;
    const float *a_log, *dt_bias, *norm;
    const Tensor *conv;
    HotLists key, query;
    DeltaHead *head; /* [nv] */
    uint64_t *bits;  /* [nv, dk] bit-coded rows */
    uint8_t *valid;  /* [nv, dk] the row has been written */
    float *v, *r, *o; /* [dv] scratch */
    Pool *pool;
};
#endif
