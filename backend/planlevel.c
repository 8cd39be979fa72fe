/* planlevel.c: the plan simulator as a level for test blocks. The interpreter stands beside it: a test sets and reads the interpreter's
 * state, encode.c says every step in tokens, and the plan must say the same ones. At the end, and before a test sets state in mid-run,
 * what the plan holds is compared too; after that the plan starts anew from the interpreter's state.
 *
 * The simulator looks at every unit for every token, so it follows a test for its first PLAN_TOKENS tokens only. */
#include "planlevel.h"
#include "build.h"
#include "encode.h"
#include <stdlib.h>

enum { PLAN_TOKENS = 5000 };

struct PlanLevel {
    Build build;
    PlanSim *plan;       /* serves every test */
    /* of the test at work */
    StepEncoder step;
    bool running;        /* the plan's state is that of the run; else it must be taken from the interpreter */
    uint32_t next;       /* the token to feed */
    const Kind *host;    /* the kind of host tokens, or NULL */
    bool input;          /* the host has spoken since the last step */
    bool tired;          /* the plan has followed long enough */
    unsigned tokens;
    const char *bad;
};
typedef PlanLevel Level;

static const Circuit *circuit_of(const Level *l) { return l->build.modes->c; }

/* ---- the plan's state against the interpreter's ---- */

static void compare_state(Level *l, uint32_t s)
{
    const State *st = &circuit_of(l)->states.data[s];
    for (uint32_t r = 0; r < st->rows && !l->bad; r++) {
        uint64_t want = sim_get(l->step.sim, s, r);
        if (!plansim_holds(l->plan, s, r, want)) l->bad = xfmt("%s[%u] is 0x%llx, but not in the plan", st->name, r, (unsigned long long)want);
    }
}

/* While the plan reads a step's last token it does that step's fed-back writes and the next step's direct ones, unless the host is to
 * speak first. The interpreter is given the latter too, and back again. A step that ends the run has nothing fed back. */
static void compare(Level *l)
{
    const Modes *m = l->build.modes;
    bool ahead = !l->step.ended && !l->input;
    if (!l->running || l->tired || l->bad) return;
    if (!l->step.ended) plansim_step(l->plan, l->next);
    if (ahead) encode_ahead(&l->step);
    for (uint32_t s = 0; s < m->c->states.n; s++)
        if (m->mode[s] != MODE_HOST && (!l->step.ended || m->mode[s] == MODE_DIRECT)) compare_state(l, s);
    if (ahead) sim_undo(l->step.sim);
    l->running = false;
}

static void start_plan(Level *l)
{
    const Protocol *p = l->build.protocol;
    const Circuit *c = circuit_of(l);
    plansim_clear(l->plan);
    for (uint32_t s = 0; s < c->states.n; s++)
        for (uint32_t r = 0; r < c->states.data[s].rows; r++) plansim_set(l->plan, s, r, sim_get(l->step.sim, s, r));
    l->next = protocol_kind(p, ROLE_START)->base;
    l->running = true;
    encode_restart(&l->step);
    l->input = l->host; /* which the start waits for */
}

/* The plan says one step's tokens. */
static void follow(Level *l)
{
    for (uint32_t i = 0; i < l->step.said.n && !l->bad; i++) {
        uint32_t want = l->step.said.data[i], payload;
        l->next = plansim_step(l->plan, l->next);
        if (l->next == want) continue;
        const Kind *k = plan_kind(l->build.plan, l->next, &payload), *w = plan_kind(l->build.plan, want, &payload);
        l->bad = xfmt("the plan says token %s 0x%x, the netlist %s 0x%x", k ? k->name : "?", k ? l->next - k->base : l->next, w->name, payload);
    }
    l->tokens += l->step.said.n;
}

/* ---- the level ---- */

static uint64_t level_get(void *ctx, uint32_t state, uint32_t row) { return sim_get(((Level *)ctx)->step.sim, state, row); }

static void level_set(void *ctx, uint32_t state, uint32_t row, uint64_t value)
{
    Level *l = ctx;
    if (l->host && state == kind_host_state(l->host)) l->input = true;
    else compare(l);
    sim_set(l->step.sim, state, row, value);
}

static uint32_t level_step(void *ctx, const Event **events, bool *retired)
{
    Level *l = ctx;
    l->tired |= l->tokens >= PLAN_TOKENS;
    bool follows = !l->tired && !l->bad;
    if (follows && !l->running) start_plan(l);
    if (follows && l->input) {
        plansim_step(l->plan, l->next);
        l->next = l->host->base + (uint32_t)sim_get(l->step.sim, kind_host_state(l->host), 0);
    }
    l->input = false;
    encode_step(&l->step);
    encode_commit(&l->step, false);
    if (follows) follow(l);
    *events = l->step.events;
    *retired = l->step.retired;
    return l->step.nevents;
}

PlanLevel *planlevel_new(Circuit *c, const char **err)
{
    PlanLevel *l = xalloc(sizeof *l);
    BuildOptions o = { .target = target_find("native"), .plan_only = true };
    l->build = build_plan(c, &o);
    if (l->build.error) return *err = l->build.error, NULL;
    l->plan = plansim_new(l->build.plan, NULL);
    return l;
}

const char *test_run_plan(PlanLevel *l, const TestCase *t, Span *where)
{
    const Protocol *p = l->build.protocol;
    TestLevel level = { l, level_get, level_set, level_step };
    *l = (PlanLevel){ .build = l->build, .plan = l->plan, .host = protocol_kind(p, ROLE_INPUT) };
    encode_begin(&l->step, p, sim_new(l->build.modes->c, NULL));
    const char *bad = test_run(t, circuit_of(l), &level, where);
    if (!bad) compare(l);
    sim_free(l->step.sim);
    encode_free(&l->step);
    return bad ? bad : l->bad;
}
