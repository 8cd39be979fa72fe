/* batch_priv.h: what batch.c and gpu_batch.c share: the jobs of a batch. */
#ifndef TAPEOUT_BATCH_PRIV_H
#define TAPEOUT_BATCH_PRIV_H
#include "batch.h"
#include "slice.h"
#include <pthread.h>

/* What all threads share. */
typedef struct {
    const Model *m;
    BatchJob *job;
    uint32_t n, next;
    const BatchOptions *o;
    const ChipKind *input;
    pthread_mutex_t lock;
    VEC(const Firmware *) firmware; /* and the state that each begins with: */
    VEC(uint8_t *) image;
    VEC(uint32_t) rest; /* jobs that must be run one by one */
    char *err;          /* of an installation */
    BatchReport *report;
} Batch;

/* ---- batch.c ---- */
/* The state that a firmware begins with; NULL and b->err, or a reason in *why, when it has none. Under the lock. */
const uint8_t *batch_first_state(Batch *b, Slice *s, const Firmware *f, const char **why);
/* ---- gpu_batch.c ---- */
/* Runs all jobs on b->o->device, or puts them into b->rest, with the reason in the report, or sets b->err. */
void gpu_batch(Batch *b);
#endif
