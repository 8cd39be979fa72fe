/* cli.h: what the commands of `tapeout` share. main.c parses the arguments by its tables and calls the command; a command returns
 * the exit status: 0 well, 1 the input or the program failed, 2 wrong usage. Results go to stdout, diagnostics to stderr. */
#ifndef TAPEOUT_CLI_H
#define TAPEOUT_CLI_H
#include "../frontend/frontend.h"

typedef struct {
    const char *input[3]; /* SPEC or CHIP, then FIRMWARE, TRACE */
    const char *target, *dtype, *output, *backend, *trace, *after, *hf, *family, *save, *load, *batch, *signature, *out, *fault, *base, *as, *gguf, *logits;
    uint64_t vocab, payload, max_steps, max_tokens, shard, first, hidden; /* 0: not given */
    bool quiet, stats, check, prompt, no_prove, netlist;
    VEC(Define) defines;
} Args;

typedef int Command(const Args *a);
Command cmd_build, cmd_targets;   /* cmd_build.c */
Command cmd_run, cmd_info;        /* cmd_run.c, cmd_info.c */
Command cmd_sim, cmd_test, cmd_dump, cmd_export, cmd_graft, cmd_prompt, cmd_prove, cmd_conform, cmd_check; /* one file each */

/* ---- main.c ---- */
/* Print "tapeout: MESSAGE" and return the exit status. */
int usage_error(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* 2 */
int input_error(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* 1 */
int circuit_error(const char *file, Span where, const char *what);           /* 1; where.file 0: no place in it */
/* The source with its -D options; NULL after printed errors, or when there is no machine in it and `machine` asks for one. */
Design *load_design(const Args *a, bool machine);
/* What a shell sees of a machine's exit status: a value whose low byte is 0 must not look like success. */
static inline int exit_status(uint64_t payload) { return payload & 0xff || !payload ? (int)(payload & 0xff) : 1; }

/* ---- the plan of a chip as a back end of the runtime ---- */
/* What a chip file says of its own making. */
typedef struct {
    const char *netlist, *target;
    bool bf16;
    unsigned payload;
    uint64_t vocab;
} Recipe;
struct PlanSim;
/* cmd_build.c: compiles the netlist again as far as the plan, and a simulator of it. NULL and a message on failure. */
struct PlanSim *plan_again(const Recipe *r, const Image *image, const char **err);
/* cmd_build.c: `dump --after plan`. */
int dump_plan(const Args *a, Circuit *c);
#endif
