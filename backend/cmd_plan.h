/* cmd_plan.h: between cmd_run.c and cmd_plan.c. */
#ifndef TAPEOUT_CMD_PLAN_H
#define TAPEOUT_CMD_PLAN_H
#include "../runtime/runtime.h"
/* runtime_run on the plan that the chip was made from, in exact integers. */
int plan_run(RunOptions *o);
#endif
