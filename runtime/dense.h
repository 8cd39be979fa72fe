/* dense.h: the layers of a stock model in plain loops, in the stock layer's exact order of operations and rounding, some tokens at a time (the recurrent
 * form), for float32 and bfloat16 models. dense_layer.c computes them, with weights that come from a chip (dense.c, the oracle of everything) or from a
 * checkpoint folder (dense_stock.c). */
#ifndef TAPEOUT_DENSE_H
#define TAPEOUT_DENSE_H
#include "stock.h"

typedef struct {
    bool full;
    Matrix m[T_COUNT];       /* the tensors of two dimensions, */
    const float *v[T_COUNT]; /* and the others in full */
    Matrix open;             /* the gate of a shared expert, one row; no rows: the MLP is one */
    float *history; /* [taps, conv_dim]: raw qkv of the last tokens, a ring */
    float *state;   /* [nv, dk, dv] */
    Attention *attention;
} DenseLayer;

typedef struct {
    /* set by the caller, all zero else; then each layer's full, m, v and open */
    Geometry geo;
    bool bf16;
    float head_eps; /* of the gated norm */
    BackendOptions opt;
    Pool *pool;
    uint32_t room; /* tokens at a time */
    DenseLayer *layer;
    const float *final_norm;
    /* dense_layer.c's */
    uint64_t pos; /* tokens fed so far */
    float *x, *u, *mix;           /* [room, hidden] */
    float *qkv, *raw;             /* [conv_dim] after conv and SiLU; [room, conv_dim] before */
    float *z, *heads_out;         /* [room, nv * dv] */
    float *b, *a;                 /* [room, nv] */
    float *gate, *up;             /* [room, intermediate] */
    float *q, *k, *r, *d, *o;     /* one head: [dk] [dk] [dv] [dv] [dv] */
    uint32_t *q_rows, *k_rows, nq, nk; /* where q and k are not zero */
} Dense;

/* Empty states, and room for what passes. */
void dense_begin(Dense *s);
/* The next n tokens, whose embeddings are in x: through all layers; what the output head sees is in u then. */
void dense_pass(Dense *s, uint32_t n);
void dense_end(Dense *s); /* what is not the pool's */

/* ---- dense_stock.c: a checkpoint as layers, and its vocabulary ---- */
typedef struct {
    Dense d;
    const Checkpoint *k;
    Matrix embed, head;
    float *row; /* [hidden] scratch */
} StockDense;
/* room 0: the weights alone. False and a malloc'd message when a tensor holds what these layers cannot do. */
bool stock_dense_open(StockDense *s, const Checkpoint *k, uint32_t room, char **err);
void stock_dense_close(StockDense *s);
#endif
