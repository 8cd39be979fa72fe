/* cmd_graft.c: `graft BASE CHIP -o DIR`. */
#include "cli.h"
#include "graft.h"
#include <stdlib.h>
#include <sys/stat.h>

/* Writing into the folder that is being read would destroy it. */
static bool same_folder(const char *a, const char *b)
{
    struct stat x, y;
    return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* -1: not given; false: no number. */
static bool token_number(const char *s, int64_t *out)
{
    char *end;
    *out = -1;
    if (!s) return true;
    if (*s < '0' || *s > '9') return false;
    unsigned long n = strtoul(s, &end, 10);
    *out = n < UINT32_MAX ? (int64_t)n : UINT32_MAX;
    return !*end;
}

int cmd_graft(const Args *a)
{
    char *err = NULL;
    GraftOptions o = { a->output, a->shard, -1 };
    if (!a->output) return usage_error("graft: -o DIR is missing: where the new model goes");
    if (!token_number(a->as, &o.stand_in)) return usage_error("graft: --as: found \"%s\", expected the number of a token", a->as);
    if (same_folder(a->input[0], a->output)) return usage_error("graft: %s is the base model itself", a->output);
    Checkpoint base;
    bool ok = base_config(&base, a->input[0], &err) && checkpoint_open(&base, &err);
    Model *m = ok ? model_open(a->input[1], &err) : NULL;
    ok = m && graft(&base, m, &o, a->quiet ? NULL : stdout, &err);
    if (!ok) input_error("%s", err);
    free(err);
    model_close(m);
    checkpoint_close(&base);
    return ok ? 0 : 1;
}
