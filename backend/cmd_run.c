/* cmd_run.c: `run`: the arguments, handed to the runtime. */
#include "check.h"
#include "cli.h"
#include "cmd_plan.h"

int cmd_run(const Args *a)
{
    RunOptions o = { .chip = a->input[0], .firmware = a->input[1], .backend = a->backend, .max_steps = a->max_steps, .trace = a->trace, .stats = a->stats,
                     .save = a->save, .load = a->load, .prompt = a->prompt, .signature = a->signature };
    if (a->load && (a->input[1] || a->check || a->prompt)) return usage_error("--load-state goes on from a state: no firmware, --prompt or --check with it");
    if (a->load && a->signature) return usage_error("--signature needs firmware, --load-state goes on without");
    if (a->check) o.check = checker_new();
    return a->backend && !strcmp(a->backend, "plan") ? plan_run(&o) : runtime_run(&o);
}
