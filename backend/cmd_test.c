/* cmd_test.c: `test SPEC`: the source's test blocks on the netlist as elaborated, then as optimised. */
#include "../dsl/dsl.h"
#include "cli.h"

static unsigned run_level(const Design *d, const Circuit *c, const char *level)
{
    unsigned failed = 0;
    for (uint32_t i = 0; i < d->tests.n; i++) {
        const TestCase *t = &d->tests.data[i];
        Span where = t->span;
        const char *bad = test_run_sim(t, c, &where);
        if (bad) error_at(where, "test \"%s\" %s: %s", t->name, level, bad), failed++;
    }
    return failed;
}

int cmd_test(const Args *a)
{
    Design *d = load_design(a, false);
    if (!d) return 1;
    unsigned failed = test_run_all(d, d->circuit);
    /* what is wrong already there would only be said again */
    if (!failed) failed = run_level(d, circuit_optimize(d->circuit), "after optimisation");
    printf("%u passed, %u failed\n", d->tests.n - failed, failed);
    return failed != 0;
}
