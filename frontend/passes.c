/* passes.c: the passes over the netlist, in order. A new pass is a file, a prototype in passes.h and a row here.
 * Each takes away something that costs units, layers or copies of a memory in a model; none moves state. */
#include "passes.h"

static const struct {
    const char *name;
    Pass *run;
} passes[] = {
    { "dce", pass_dce },
    { "ports", pass_ports },
    { "assume", pass_assume },
    { "share", pass_share },
    { "flatten", pass_flatten },
};

enum { ROUNDS = 20 }; /* RV32I takes 5; every round is sound, so stopping early is too */

Circuit *circuit_optimize(Circuit *c)
{
    for (int round = 0; round < ROUNDS; round++) {
        Circuit *before = c;
        for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
            c = passes[i].run(c);
            const char *bad = circuit_check(c);
            if (bad) die("pass %s: %s", passes[i].name, bad);
        }
        if (circuit_same(before, c)) break;
    }
    return c;
}
