/* cmd_check.c: `check`: does a chip say what a trace, or its own netlist, says? The arguments, handed to the runtime. */
#include "check.h"
#include "cli.h"

/* CHIP TRACE, or CHIP FIRMWARE TRACE; with --netlist the same without a trace. */
int cmd_check(const Args *a)
{
    const char *const *in = a->input;
    FollowOptions o = { .chip = in[0], .stats = a->stats };
    if (a->backend && strcmp(a->backend, "sparse") && strcmp(a->backend, "planes")) return usage_error("--backend: found \"%s\", expected planes (the default) or sparse", a->backend);
    if (a->backend && !strcmp(a->backend, "sparse")) o.single = "as asked";
    if (a->netlist && in[2]) return usage_error("check: a trace or --netlist, not both");
    if (!a->netlist && !in[1]) return usage_error("check: a trace or --netlist is missing (usage: tapeout check CHIP [FIRMWARE.elf] TRACE)");
    if (!a->netlist && a->max_steps) return usage_error("check: --max-steps goes with --netlist; a trace ends where it ends");
    o.firmware = a->netlist || in[2] ? in[1] : NULL;
    if (a->netlist) o.maker = netlist_trace_new(a->max_steps);
    else o.trace = in[2] ? in[2] : in[1];
    return runtime_follow(&o);
}
