/* cmd_run.c: `run`: the arguments, handed to the runtime. */
#include "../runtime/batch.h"
#include "check.h"
#include "cli.h"
#include "cmd_plan.h"

/* What --fault simulates: runtime.h says what each does. */
static const struct {
    const char *name;
    uint32_t bit;
} faults[] = { { "state-bf16", FAULT_STATE_BF16 }, { "l2-mean", FAULT_L2_MEAN }, { "drop-state", FAULT_DROP_STATE }, { "drop-conv", FAULT_DROP_CONV } };

static int run_batch(const Args *a)
{
    BatchListOptions o = { .chip = a->input[0], .list = a->batch, .max_steps = a->max_steps, .stats = a->stats };
    if (a->input[1] || a->check || a->trace || a->save || a->load || a->prompt)
        return usage_error("--batch: no firmware, --check, --trace, --save-state, --load-state or --prompt with it");
    if (a->backend && strcmp(a->backend, "sparse") && strcmp(a->backend, "planes") && strcmp(a->backend, "cuda") && strcmp(a->backend, "cuda-host"))
        return usage_error("--batch: found back end \"%s\", expected planes (the default), sparse or cuda", a->backend);
    o.single = a->backend && !strcmp(a->backend, "sparse");
    if (a->backend && !strncmp(a->backend, "cuda", 4)) o.device = a->backend;
    return runtime_batch(&o);
}

int cmd_run(const Args *a)
{
    if (a->batch) return run_batch(a);
    RunOptions o = { .chip = a->input[0], .firmware = a->input[1], .backend = a->backend, .max_steps = a->max_steps, .trace = a->trace, .stats = a->stats,
                     .save = a->save, .load = a->load, .prompt = a->prompt, .signature = a->signature };
    if (a->load && (a->input[1] || a->check || a->prompt)) return usage_error("--load-state goes on from a state: no firmware, --prompt or --check with it");
    if (a->load && a->signature) return usage_error("--signature needs firmware, --load-state goes on without");
    if (a->fault && (!a->backend || strcmp(a->backend, "dense"))) return usage_error("--fault needs --backend dense");
    for (unsigned i = 0; a->fault && i < sizeof faults / sizeof *faults; i++)
        if (!strcmp(faults[i].name, a->fault)) o.backend_options.faults |= faults[i].bit;
    if (a->check) o.check = checker_new();
    return a->backend && !strcmp(a->backend, "plan") ? plan_run(&o) : runtime_run(&o);
}
