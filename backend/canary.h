/* canary.h: value heads beside a machine's own whose readings depend on what runtimes get wrong. canary.c has the arithmetic. */
#ifndef TAPEOUT_CANARY_H
#define TAPEOUT_CANARY_H
#include "chip.h"

typedef struct {
    const char *name, *message; /* kind of token that a runtime with this fault says; its message */
    const char *advice;         /* what to do about it */
} Canary;
extern const Canary canaries[];
extern const unsigned ncanaries;

/* Kinds, after the machine's: one that arms them (fed first, once; its token is plan->p->kinds.data[k].base for the k returned), one for each
 * fault. And channels. */
uint32_t canary_plan(Plan *p);
/* Room for the heads, in a native target: after heads_size. */
void canary_size(Chip *c);
/* Weights: after all others. */
void canary_emit(Chip *c);
#endif
