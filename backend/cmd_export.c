/* cmd_export.c: `export CHIP --hf DIR` and `--gguf FILE`. */
#include "cli.h"
#include "export.h"
#include <stdlib.h>

int cmd_export(const Args *a)
{
    char *err = NULL;
    ExportOptions o = { a->hf, a->family, a->shard, stdout };
    if (!a->hf && !a->gguf) return usage_error("export: --hf DIR or --gguf FILE is missing: what to export to");
    if (a->family && !family_find(a->family)) {
        usage_error("unknown family \"%s\"; there are:", a->family);
        for (unsigned i = 0; i < nfamilies; i++) fprintf(stderr, "  %s\n", families[i].name);
        return 2;
    }
    Model *m = model_open(a->input[0], &err);
    bool ok = m && (!a->hf || export_hf(m, &o, &err)) && (!a->gguf || export_gguf(m, a->gguf, &err));
    if (!ok) input_error("%s", err);
    free(err);
    model_close(m);
    return ok ? 0 : 1;
}
