/* graft.h: a chip in front of a base model. graft.c lays the two out beside each other and writes the folder, graft_rows.c makes the rows of
 * every tensor. */
#ifndef TAPEOUT_GRAFT_H
#define TAPEOUT_GRAFT_H
#include "base.h"
#include "chip.h"
#include "export.h"

enum { EPS_CHANNELS = GRAFT_MARKS - 1, NO_CHANNEL = UINT32_MAX };

/* Powers of two between the chip's numbers and the base model's; graft.c says why they are exact and why they do. */
enum {
    LOG2_MARK = -40,  /* what a text token holds in the mark channel */
    LOG2_SHRINK = -50, /* what the chip's answer is multiplied with on its way through the base model */
    LOG2_LOUD = 90,   /* what the output head multiplies it with: chip tokens' logits are 2^40 times larger than the base model's unit */
    LOG2_HUSH = 80,   /* what it multiplies the mark with: on text, chip tokens' logits are below -2^40 of that unit */
};

typedef struct {
    Export x; /* first: rows are made for an Export */
    Checkpoint *base;
    uint32_t narrow, wide;    /* hidden sizes: the base model's; the result's and the chip's */
    uint32_t first;           /* token id of the chip's token 0 */
    uint32_t stand_in;        /* the base token as which the base model reads chip tokens */
    uint32_t chip_layers;     /* without its last, idle one */
    uint32_t nused, *used;    /* channels of the chip that hold anything, in order; they become narrow, narrow + 1, ... */
    uint32_t *place;          /* [wide] chip channel -> index into used, or NO_CHANNEL */
    uint32_t ncopies, *copied; /* those that the output head reads; their copies follow */
    uint32_t mark, eps;       /* channels: the mark, the first of EPS_CHANNELS */
    float eps_value[EPS_CHANNELS];
    float scale;              /* of the base model's residual stream */
    int shift;                /* of its projections: 2^-shift */
    double gain;              /* of its norms: 2^shift sqrt(narrow / wide) */
    float kill;               /* weight of the mark in beta's logit */
    float *stand_row;         /* [narrow] */
    float *scratch;           /* [wide], zero between rows */
    double gain_error;        /* root mean square of the rounding of the norms' gains 1 + w */
} Graft;

typedef struct {
    const char *dir;
    uint64_t shard_bytes; /* 0: 5 GB */
    int64_t stand_in;     /* -1: the base model's end of text, else token 0 */
} GraftOptions;
/* Writes the folder; prints what was done to `report`. False and a malloc'd message; the folder then holds no new file. */
bool graft(Checkpoint *base, const Model *chip, const GraftOptions *o, FILE *report, char **err);

/* graft_rows.c */
void graft_items(const Graft *g, Items *w);
/* Which dimension of a stock tensor is the hidden size: 0, 1, or -1. */
int graft_hidden_dim(const FamilyTensor *t, const Geometry *g);
float graft_norm(const Graft *g, float w); /* a norm weight of the base model, rounded to its dtype */
#endif
