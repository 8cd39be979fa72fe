/* cmd_check.c: `check`: does a chip say what a trace says? The arguments, handed to the runtime. */
#include "../runtime/trace.h"
#include "cli.h"

/* CHIP TRACE, or CHIP FIRMWARE TRACE. */
int cmd_check(const Args *a)
{
    FollowOptions o = { .chip = a->input[0], .firmware = a->input[2] ? a->input[1] : NULL, .trace = a->input[2] ? a->input[2] : a->input[1], .stats = a->stats };
    if (a->backend && strcmp(a->backend, "sparse") && strcmp(a->backend, "planes")) return usage_error("--backend: found \"%s\", expected planes (the default) or sparse", a->backend);
    o.single = a->backend && !strcmp(a->backend, "sparse");
    return runtime_follow(&o);
}
