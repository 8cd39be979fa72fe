/* cmd_run.c: `run`: the arguments, handed to the runtime. */
#include "../runtime/batch.h"
#include "../runtime/stock.h"
#include "check.h"
#include "cli.h"
#include "cmd_plan.h"
#include <sys/stat.h>

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

static bool is_folder(const char *path)
{
    struct stat s;
    return !stat(path, &s) && S_ISDIR(s.st_mode);
}

static int run_folder(const Args *a)
{
    StockOptions o = { .dir = a->input[0], .prompt = a->input[1], .backend = a->backend, .logits = a->logits, .max_tokens = a->max_tokens, .stats = a->stats };
    if (!o.prompt) return usage_error("run: %s is a checkpoint folder: a file of token ids is missing (-: stdin)", o.dir);
    if (a->max_steps || a->check || a->trace || a->save || a->load || a->prompt || a->batch || a->signature || a->fault)
        return usage_error("run: %s is a checkpoint folder: only --backend, --max-tokens, --logits and --stats go with it", o.dir);
    return stock_run(&o);
}

int cmd_run(const Args *a)
{
    if (is_folder(a->input[0])) return run_folder(a);
    if (a->max_tokens || a->logits) return usage_error("run: --max-tokens and --logits are for checkpoint folders");
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
