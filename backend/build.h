/* build.h: the back end for its users: the command line, the checker, the tests. */
#ifndef TAPEOUT_BUILD_H
#define TAPEOUT_BUILD_H
#include "chip.h"

typedef struct {
    BuildOptions options;
    Modes *modes;
    Protocol *protocol;
    Plan *plan;
    Chip *chip;        /* NULL with options.plan_only */
    const char *netlist; /* the circuit as it came in, as text */
    const char *error; /* NULL, or why the target cannot hold the machine */
    Span where;        /* ... and the place in the circuit, where one is to blame */
} Build;

/* The first stages alone: modes and protocol; and the plan. */
Build build_protocol(Circuit *c, const BuildOptions *o);
Build build_plan(Circuit *c, const BuildOptions *o);
/* Compiles an optimised circuit (ops are added to it). Write the result with chip_write. */
Build build_machine(Circuit *c, const BuildOptions *o);
/* Layers, critical path, units, non-zeros, channels, state elements and token kinds, as text. */
void build_report(const Build *b, FILE *out);
#endif
