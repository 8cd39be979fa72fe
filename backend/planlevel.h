/* planlevel.h: test blocks on the plan for target `native`. */
#ifndef TAPEOUT_PLANLEVEL_H
#define TAPEOUT_PLANLEVEL_H
#include "../frontend/frontend.h"

typedef struct PlanLevel PlanLevel;
/* Plans an optimised circuit (ops are added to it). NULL and a message when the target cannot hold it. */
PlanLevel *planlevel_new(Circuit *c, const char **err);
/* Runs one test on the plan, and on the interpreter beside it, from the initial state without an image. NULL when it passed, or what
 * failed; *where is the place in the source. */
const char *test_run_plan(PlanLevel *l, const TestCase *t, Span *where);
#endif
