/* check.h: judging a run, token by token, by the netlist interpreter. */
#ifndef TAPEOUT_CHECK_H
#define TAPEOUT_CHECK_H
#include "../runtime/runtime.h"

/* For `tapeout run --check`: takes the netlist out of the chip file, interprets it beside the machine, says every step in tokens and compares
 * each; at the end compares every register and memory word, in every copy. Reports the first difference on stderr. */
Checker *checker_new(void);
#endif
