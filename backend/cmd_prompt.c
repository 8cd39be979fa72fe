/* cmd_prompt.c: `prompt CHIP [FIRMWARE]`: the token ids that fill a chip and start it, one a line. What the model says after them is the run. */
#include "../runtime/runtime.h"
#include "cli.h"
#include <stdlib.h>

static bool print_prompt(const Model *m, const Image *image, uint64_t first, char **err)
{
    Prompt p = { 0 };
    if (!prompt_make(m, image, false, &p, err)) return false;
    for (uint32_t i = 0; i < p.n; i++) printf("%llu\n", (unsigned long long)(first + p.data[i]));
    free(p.data);
    return true;
}

int cmd_prompt(const Args *a)
{
    char *err = NULL;
    Model *m = model_open(a->input[0], &err);
    Firmware *f = m && a->input[1] ? firmware_open(a->input[1], &err) : NULL;
    bool ok = m && (!a->input[1] || (f && firmware_fits(f, m, &err)));
    ok = ok && print_prompt(m, f ? &f->image : NULL, a->first, &err);
    if (!ok) input_error("%s", err);
    free(err);
    firmware_close(f);
    model_close(m);
    return ok ? 0 : 1;
}
