/* prove.h: the static proof that a chip is exact: from the chip file's weights alone (never from the circuit), sound bounds on every
 * rounding of a pass, for every reachable input, in the chip's dtype and for any order of summation. dsl/numerics.md derives
 * every bound and says what is assumed of the arithmetic.
 *
 *   prove.c         the pass through the layers, norms, residual stream; the report
 *   prove_form.c    weight rows as affine forms over channels, rounding of a projection
 *   prove_solve.c   integer variables and their ranges; prove_world.c, prove_sample.c, prove_search.c, prove_learn.c, prove_encode.c, prove_sat.c: what
 *                   they may be together
 *   prove_mlp.c     SwiGLU blocks
 *   prove_delta.c   DeltaNet blocks: keys, queries, decay; prove_cells.c: what a row may hold, for ever, and how it reads
 *   prove_attn.c    attention blocks: none, or a read-only memory
 *   prove_vocab.c   embedding and argmax */
#ifndef TAPEOUT_PROVE_H
#define TAPEOUT_PROVE_H
#include "../runtime/runtime.h"

/* What is known of a channel after a block, for tests that compare it with runs. */
typedef struct {
    int32_t lo, hi;   /* every value is an integer in this range */
} Band;

/* What is known of a lane of a value head, in every row: 0, or value times a whole number of at most max. A pilot holds value in every row that is not all 0. */
typedef struct {
    float value;
    int32_t max;
    bool pilot;
} CellBand;

typedef struct {
    bool exact;           /* the verdict */
    bool undecided;       /* not exact because what some sum of bits may be could not be bounded: the chip may well be right */
    double worst;         /* the smallest margin: how much larger than needed the decisive quantity is, less 1 */
    const char *refusal;  /* why it is not exact, NULL when it is; malloc'd */
    unsigned assumptions; /* what the verdict assumes of the arithmetic beyond numerics.md: the report lists them */
    const char *file;     /* what the refusal is about: an imported source, NULL: the root; malloc'd */
    uint32_t line;        /* ... and its line; 0: of none */
    /* bands[(2 * layer + (after the MLP)) + 1][channel], the embedding's first: [2 * layers + 1][hidden]; malloc'd, NULL unless asked for */
    Band *bands;
    CellBand *cells;      /* [layers][nv][dv]; likewise */
} Proof;

typedef struct {
    bool bands;           /* fill Proof.bands and Proof.cells */
} ProveOptions;

/* Proves the model and prints the report when `report` is not NULL. True when it is exact. */
bool prove_run(const Model *m, const ProveOptions *o, FILE *report, Proof *out);
void proof_free(Proof *p);
/* The short form. */
bool prove_model(const Model *m, FILE *report, double *worst);
#endif
