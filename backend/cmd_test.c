/* cmd_test.c: `test SPEC`: the source's test blocks on the netlist as elaborated, as optimised, and on the plan. */
#include "../dsl/dsl.h"
#include "cli.h"
#include "planlevel.h"

static unsigned report(const TestCase *t, Span where, const char *level, const char *bad)
{
    if (bad) error_at(where, "test \"%s\" %s: %s", t->name, level, bad);
    return bad != NULL;
}

static unsigned run_optimised(const Design *d, const Circuit *c)
{
    unsigned failed = 0;
    for (uint32_t i = 0; i < d->tests.n; i++) {
        Span where = d->tests.data[i].span;
        failed += report(&d->tests.data[i], where, "after optimisation", test_run_sim(&d->tests.data[i], c, &where));
    }
    return failed;
}

/* Changes c. */
static unsigned run_plan(const Design *d, Circuit *c)
{
    unsigned failed = 0;
    const char *why = NULL;
    PlanLevel *l = planlevel_new(c, &why);
    if (!l) return input_error("%s: no plan can be made of it: %s", c->name, why), d->tests.n;
    for (uint32_t i = 0; i < d->tests.n; i++) {
        Span where = d->tests.data[i].span;
        failed += report(&d->tests.data[i], where, "on the plan", test_run_plan(l, &d->tests.data[i], &where));
    }
    return failed;
}

int cmd_test(const Args *a)
{
    Design *d = load_design(a, false);
    if (!d) return 1;
    unsigned failed = test_run_all(d, d->circuit);
    Circuit *c = circuit_optimize(d->circuit);
    bool machine = c->writes.n || c->emits.n; /* else a library, whose tests are of constants */
    /* what is wrong already there would only be said again */
    if (!failed) failed = run_optimised(d, c);
    if (!failed && machine && d->tests.n) failed = run_plan(d, c);
    if (!d->tests.n) fprintf(stderr, "tapeout: there is no test block in %s\n", a->input[0]);
    printf("%u passed, %u failed\n", d->tests.n - failed, failed);
    return failed != 0;
}
