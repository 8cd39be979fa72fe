/* check.h: judging a run, token by token, by the netlist interpreter. */
#ifndef TAPEOUT_CHECK_H
#define TAPEOUT_CHECK_H
#include "../runtime/trace.h"
#include "build.h"
#include "encode.h"

/* For `tapeout run --check`: takes the netlist out of the chip file, interprets it beside the machine, says every step in tokens and compares
 * each; at the end compares every register and memory word, in every copy. Reports the first difference on stderr. */
Checker *checker_new(void);
/* The netlist that a chip file holds, with the protocol that the chip was built with, ready to be stepped: `steps` borrows from *build, its interpreter is
 * the caller's (sim_free). False and *err when it is another compiler's. */
bool chip_netlist(const Model *m, const Image *image, Build *build, StepEncoder *steps, char **err);

/* ---- netlist_trace.c ---- */
/* For `tapeout check --netlist`: the trace that the chip's netlist makes, with stdin as input; at most max_steps steps (0: to the end). */
TraceMaker *netlist_trace_new(uint64_t max_steps);
#endif
