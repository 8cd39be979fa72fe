/* cmd_prove.c: `prove CHIP`: the report of prove.h; exit status 1 when the chip is refused. */
#include "cli.h"
#include "prove.h"

int cmd_prove(const Args *a)
{
    char *err = NULL;
    double worst;
    Model *m = model_open(a->input[0], &err);
    if (!m) return input_error("%s", err);
    return prove_model(m, stdout, &worst) ? 0 : 1;
}
