/* chip.h: the sparse weights of a chip in memory, and the constants of its arithmetic. */
#ifndef TAPEOUT_CHIP_H
#define TAPEOUT_CHIP_H
#include "plan.h"

/* Every scale of the numerics, with the inequality that it must satisfy (dsl/numerics.md derives them). */
enum {
    LOG2_SCALE = 24,   /* pilots are p * 2^K: sum of squares of all data < 2^-25 * D * 4^K (float32), and < 2^-9 of it (bf16) */
    GATE = 256,        /* G: a gate that is off is at most -G, and silu(-x) is exactly 0 for x >= 88.73 (104 for every formula in use) */
    HOT = 128,         /* keys, values, beta logits: HOT >= 104 as above, and a power of two >= 8 so that l2norm gives exactly 1 */
    LOG2_PILOT = 30,   /* value pilots P: data energy of a row < 2^-25 P^2 */
    NORM_GAIN = 64,    /* linear_attn.norm.weight */
    LOG2_ACC = 44,     /* the accumulator adds with beta = 2^-44: |v - S| must round to v (v = HOT * 2^44, S <= HOT * 255) */
};

enum { MAX_PILOTS = 8, GRAFT_MARKS = 4 /* graft.c: the channel that marks text, and those that hold epsilon */ };

typedef struct {
    uint32_t row, col;
    float v;
} Nz;

typedef struct {
    const char *name;
    unsigned ndim;
    uint64_t shape[3];
    double fill;
    bool listed; /* in the manifest's `tensors` (not the factored vocabulary) */
    VEC(Nz) nz;
} Weights;

/* Where a bit of a state row lives: value head (from the piece's first) and lane. */
typedef struct {
    int32_t head, lane;
} BitCell;
typedef struct {
    int32_t head, lane;
    double value;
} PilotLane;
typedef struct {
    uint32_t port; /* index into Plan.ports */
    unsigned layer;
    uint32_t row0, nrows, group_rows, group_heads, head0;
    BitCell *bits;
    VEC(PilotLane) pilots;
    BitCell count; /* head -1: none */
} CopyPiece;

typedef struct Chip {
    const Plan *plan;
    const Target *target;
    bool bf16;
    unsigned hidden, mlp, layers /* with the final attention layer */, nk, nv, dk, dv, npilots;
    unsigned attn_heads, attn_kv, head_dim;
    uint32_t pilot_ch[MAX_PILOTS];
    uint32_t pilot_value[MAX_PILOTS];
    unsigned bias;          /* which pilot carries biases: a power of two */
    uint32_t canary_key;    /* canary.c: the first key head */
    unsigned max_width;     /* W of the factored vocabulary */
    VEC(Weights) tensors;
    VEC(CopyPiece) pieces;
    Span **unit_spans;      /* per layer: where each unit comes from */
    const char *netlist;    /* text form of the step */
    const char *error;      /* why the target cannot hold the machine, NULL: it can */
    uint64_t nonzeros;      /* without vocabulary */
    uint32_t units;
} Chip;

/* blocks.c */
Chip *blocks_make(const Plan *p, const char *netlist);
/* Whether layer l is a full-attention layer; else Gated DeltaNet. */
bool chip_is_attention(const Chip *c, unsigned l);
/* The tensor of that name, made on first use. */
Weights *chip_tensor(Chip *c, const char *name, unsigned ndim, uint64_t a, uint64_t b, uint64_t k, double fill);
/* Adds to element (row, col); refuses what the dtype cannot hold. */
void chip_put(Chip *c, Weights *t, uint64_t row, uint64_t col, double v);
/* Row `row` of a projection: scale * form, over the normalised residual stream. */
void chip_form(Chip *c, Weights *t, uint64_t row, Lin form, double scale);
/* heads.c: all DeltaNet layers. Sets nk and nv of a native target. */
void heads_size(Chip *c);
void heads_emit(Chip *c, unsigned layer);
double read_gate(unsigned dv); /* z of a lane that is read: open at this, shut at its negative or below */
/* chip.c: the file; false and a message in c->error when it cannot be written. What `accept` (NULL: nothing) says of the finished file, before it takes
 * the place of `path`, decides: when it returns false, nothing is left behind and c->error is as `accept` left it. */
typedef bool ChipAccept(const char *file, void *ctx);
bool chip_write(Chip *c, const char *path, ChipAccept *accept, void *ctx);
#endif
