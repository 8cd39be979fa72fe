/* eval.h: what the interpreter's two halves share: eval_code.c makes code before the first step, eval.c holds the state
 * and runs the code. */
#ifndef TAPEOUT_EVAL_H
#define TAPEOUT_EVAL_H
#include "ir.h"

typedef enum {
    I_ADD, I_SUB, I_MUL, I_AND, I_OR, I_AND_LIST, I_OR_LIST, I_XOR, I_NOT, I_SHL, I_LSHR, I_ASHR, I_EQ, I_ULT,
    I_SLT, I_MUX, I_PMUX, I_CAT, I_SLICE, I_SEXT, I_ROW, I_FORWARD, I_MOVE, I_JUMP, I_JZERO, I_SWITCH, I_END
} Code;

/* k: the mask of the result, or a jump's target. c: third operand or a shift. Lists: a is the first, b how many. */
typedef struct {
    Code code;
    uint32_t dst, a, b, c;
    uint64_t k;
} Ins;

/* Rows in the smallest power-of-two number of bytes; registers are slots instead. */
typedef struct {
    unsigned shift; /* bytes per row = 1 << shift */
    void *rows;
    uint32_t nrows;
} Store;

typedef struct {
    uint32_t state, row;
    uint64_t old, now;
} Change;

struct Sim {
    const Circuit *c;
    uint64_t *slot;     /* per op, then per state (registers) */
    uint32_t *loc;      /* per op: its slot */
    Store *store;       /* per state */
    const Write **write; /* per state, NULL: none */
    bool *watched;      /* per op */
    bool ready;         /* the code is made */
    VEC(Ins) code;
    VEC(uint32_t) list; /* conditions and values (or targets) of PMUXes, operands of AND and OR trees */
    VEC(Change) changes; /* since the last sim_eval, in order of writes */
    VEC(Event) events;
    uint64_t steps;
    uint64_t *memo, *memo_step; /* sim_value */
};

/* ---- eval.c ---- */
/* calloc, which leaves the pages of a large memory untouched; dies when there is none. */
void *sim_zeroed(size_t n, size_t size);

/* ---- eval_code.c ---- */
void sim_compile(Sim *s);
/* The write that READ r sees within its step, NULL where it sees none. */
const Write *sim_seen_write(const Sim *s, Ref r);
/* What op r needs before it: its arguments and the operands of a write that it sees. Number i, 0 behind the last. */
Ref sim_dependency(const Sim *s, Ref r, uint32_t i);
#endif
