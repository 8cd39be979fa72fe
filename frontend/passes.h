/* passes.h: what the passes over the netlist share. A pass takes a circuit and returns the circuit that replaces
 * it, which may be the same one; the values of all writes, emits and `retire` (while they matter: see observe.c)
 * and all states are kept. Sections name the file that defines their functions. */
#ifndef TAPEOUT_PASSES_H
#define TAPEOUT_PASSES_H
#include "ir.h"

typedef Circuit *Pass(Circuit *c);
Pass pass_dce, pass_ports, pass_assume, pass_share, pass_flatten; /* dce.c, ports.c and so on */

/* ---- rebuild.c: a circuit made again, op by op, in a fresh one, so that folding is applied again ---- */
typedef struct Rebuild Rebuild;
struct Rebuild {
    const Circuit *from;
    Circuit *to;
    Ref *map;        /* per op of `from`: the value in `to`; 0: not made */
    const bool *keep;/* per op of `from`; NULL: every op is made */
    /* Makes op r in `to`; args are its mapped arguments. NULL: as it is. */
    Ref (*make)(Rebuild *b, Ref r, const Ref *args);
    const void *ctx; /* for make */
};
/* The value in `to`, made now where it was not yet. */
Ref rebuild_value(Rebuild *b, Ref r);
/* The op as it is, over mapped arguments. */
Ref rebuild_op(Rebuild *b, Ref r, const Ref *args);
/* Makes all ops, then writes, emits and `retire` over the mapped values. Fills in `to` and `map`. */
Circuit *rebuild(Rebuild *b);
/* How many operands each op is, of ops, writes, emits and `retire`. */
uint32_t *count_uses(const Circuit *c);
/* The same ops, writes, emits and `retire`, by number. */
bool circuit_same(const Circuit *a, const Circuit *b);

/* ---- observe.c: when a value matters ---- */
typedef uint32_t Lit; /* a 1-bit value (ref * 2) or its complement (ref * 2 + 1); never of a NOT or a constant */
static inline Ref lit_ref(Lit l) { return l >> 1; }
static inline bool lit_neg(Lit l) { return l & 1; }
/* Sorted. `all`: nothing observes the value. */
typedef struct {
    uint32_t n;
    const Lit *lit;
    bool all;
} LitSet;
bool litset_has(const LitSet *s, Lit l);
/* The literal of a 1-bit value (complemented: of its NOT). */
Lit lit_of(const Circuit *c, Ref r, bool neg);
typedef enum {
    OBSERVE_KEEP,    /* for replacing a value where it is not observed, see ports.c */
    OBSERVE_IDLE,    /* the same, and knows more */
    OBSERVE_SIMPLIFY /* for simplifying a value under the literals, see assume.c */
} ObserveUse;
/* What is true whenever the value of an op matters, for every op. */
LitSet *observe_values(const Circuit *c, ObserveUse use);
/* What is true whenever argument i of op r matters, given that r matters under s. */
LitSet observe_argument(const Circuit *c, ObserveUse use, LitSet s, Ref r, uint32_t i);
/* What is true when en is: what is true whenever the operands of its write or emit matter. */
LitSet observe_enabled(const Circuit *c, Ref en);
#endif
