/* passes.h: what the passes over the netlist share. A pass takes a circuit and returns the circuit that replaces it, which may be
 * the same one; the values of all writes, emits and `retire` (while they matter: see observe.c) and all states are kept.
 * Sections name the file that defines their functions. */
#ifndef TAPEOUT_PASSES_H
#define TAPEOUT_PASSES_H
#include "ir.h"

typedef Circuit *Pass(Circuit *c);
Pass pass_dce; /* dce.c */

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
/* The op as it is, over mapped arguments. */
Ref rebuild_op(Rebuild *b, Ref r, const Ref *args);
/* Makes all ops, then writes, emits and `retire` over the mapped values. Fills in `to` and `map`. */
Circuit *rebuild(Rebuild *b);
/* The same ops, writes, emits and `retire`, by number. */
bool circuit_same(const Circuit *a, const Circuit *b);
#endif
