/* modes.h: how each state element is written; shared by modes.c, hazard.c and protocol.c. */
#ifndef TAPEOUT_MODES_H
#define TAPEOUT_MODES_H
#include "backend.h"

/* CONST: never written. DIRECT: written in the same pass, costs no token. LATE: written by the pass that reads the step's last token,
 * with enable and data of the pass before, both known below its home: costs no token either. FED: its data travel in tokens and it is written
 * by the pass that reads the step's last token. COUNT: advances by a constant in every step, silently. TAIL: the one register of layer 0, the
 * last thing said. HOST: written by input tokens. */
typedef enum { MODE_CONST, MODE_DIRECT, MODE_LATE, MODE_FED, MODE_COUNT, MODE_TAIL, MODE_HOST } Mode;

typedef struct {
    Circuit *c;
    Net *net;
    int *mode, *min_home; /* per state */
    int tail;             /* state, -1: none */
    Ref tail_adv;         /* 1 bit: the tail register only advances by 1 << cnt_lo in this step; 0: it is no accumulator */
    Ref tail_stays;       /* 1 bit: such a register stays as it is; 0: it never does */
    unsigned cnt_lo, cnt_bits;
    unsigned *count_lo, *count_bits; /* per state of MODE_COUNT: bits [lo, lo + bits) are counted */
    unsigned payload;     /* most bits that a token can say */
    Arena *arena;         /* of net, bits and the four arrays by layer */
    BitMap bits;
    Node labelled;
    const Target *target;
    bool *attention, *deltanet; /* per layer: which kind of block stands there (neither yet: open) */
    uint32_t *keys, *shared; /* per layer: key heads in use by addressed ports; value heads in key heads of one constant row */
    const struct Idle *idle;
    int depth;            /* latest time of anything that a step must say or write */
    const char *error;    /* what the target's heads cannot hold, or NULL */
} Modes;

/* The write of state s, or NULL. */
const Write *write_of(const Circuit *c, uint32_t s);
/* Decides mode, min_home, tail. An element of more than dk rows cannot take its write address from a conv tap. */
Modes modes_choose(Circuit *c, const Target *target, bool bf16, unsigned payload);
/* Sets home, last and slices of a port that wants layer q->home: later, or over several layers, where the target's heads are taken. */
void modes_place(Modes *m, Port *q);
/* Gives the port of state p->state its count, if it has one. */
void modes_count(const Modes *m, Port *p);
bool state_is_rom(const State *s);
/* Has contents before the first step. */
bool state_is_filled(const State *s);
/* Value heads that one group of the port's rows takes with value dimension dv. */
unsigned port_heads(const Port *q, unsigned dv);
unsigned pilot_lanes(unsigned dv);
/* Builds m->net from the roots with the modes as they are; ports for every READ, labels for every node. The one before is not touched. */
void modes_build(Modes *m, const Ref *roots, unsigned nroots);
/* Frees what was built last. */
void modes_drop(Modes *m);
/* The first layer whose memory block comes after time t. */
static inline int home_after(int t) { return t < 0 ? 0 : t / 2 + 1; }
/* counts.c: is the element of this write written in every step that retires (with an enable of 1 in no other pass), unless a fault ends the run? */
bool writes_every_step(const Circuit *c, const Write *w);
/* care.c: operands of writes and emits, simplified under their enables. */
void care_simplify(Circuit *c);
/* True when no write or emit of the step can observe state s while s is being written (hazard.c). */
bool hazard_free(const Modes *m, uint32_t s);
#endif
