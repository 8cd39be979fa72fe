/* encode.h: what a step says, in tokens, from values: the protocol without the model. */
#ifndef TAPEOUT_ENCODE_H
#define TAPEOUT_ENCODE_H
#include "protocol.h"

typedef VEC(uint32_t) Tokens;

/* An interpreter whose steps are said. What holds of the step that encode_step evaluated last: */
typedef struct {
    const Protocol *p;
    Sim *sim;            /* neither is owned */
    Tokens said;         /* its tokens; owned (encode_free) */
    const Event *events; /* valid until the next step */
    uint32_t nevents;
    bool retired, ended; /* it is no inner pass; its last token ends the run */
    bool counted;        /* it has been committed, and the silent counts with it: for encode.c only */
} StepEncoder;

/* Begins before the first step, after which nothing has counted; the interpreter keeps from now on every value that encoding needs. */
void encode_begin(StepEncoder *e, const Protocol *p, Sim *s);
/* The next step is the first again: a machine starts from the interpreter's present state. */
void encode_restart(StepEncoder *e);
/* Evaluates a step (its writes are encode_commit's) and says it: first the carries of silent counts that the step before has made full. */
void encode_step(StepEncoder *e);
/* The step's writes; with `direct_only` those alone that cost no token: all that a machine does of a step that ends the run. */
void encode_commit(StepEncoder *e, bool direct_only);
/* Evaluates a step of which nothing is said and does its direct writes, as the pass does that reads the last token of the step before. */
void encode_ahead(StepEncoder *e);
void encode_free(StepEncoder *e);
#endif
