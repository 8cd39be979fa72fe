/* cmd_sim.c: `sim SPEC FIRMWARE`: the netlist by its interpreter, with the host's part played as the runtime does: output to
 * stdout; one input before the first step and one after each TAKE, 0x100 | byte or 0 at the end of stdin. */
#include "../runtime/runtime.h"
#include "cli.h"
#include <inttypes.h>
#include <stdlib.h>

typedef struct {
    const Circuit *c;
    Sim *sim;
    uint64_t steps;
    bool ended;
    int status;
} Host;

static void give_input(Host *h, uint32_t state)
{
    fflush(stdout);
    sim_set(h->sim, state, 0, input_value(getchar()));
}

static void give_first_input(Host *h)
{
    for (uint32_t i = 0; i < h->c->states.n; i++)
        if (h->c->states.data[i].kind == ST_HOST) {
            give_input(h, i);
            return;
        }
}

static void on_output(Host *h, const Emit *m, uint64_t payload) { (void)h, (void)m, putchar((int)(payload & 0xff)); }
static void on_take(Host *h, const Emit *m, uint64_t payload) { (void)payload, give_input(h, m->state); }

static void on_exit_event(Host *h, const Emit *m, uint64_t payload)
{
    (void)m;
    h->ended = true;
    h->status = exit_status(payload);
}

static void on_fault(Host *h, const Emit *m, uint64_t payload)
{
    fflush(stdout);
    fprintf(stderr, "%s: fault: %s (code %" PRIu64 ") after %" PRIu64 " steps\n", h->c->name, m->message ? m->message : m->name, payload, h->steps);
    h->ended = true;
    h->status = 1;
}

static void (*const on_event[])(Host *, const Emit *, uint64_t) = {
    [EMIT_OUTPUT] = on_output, [EMIT_EXIT] = on_exit_event, [EMIT_FAULT] = on_fault, [EMIT_TAKE] = on_take
};

/* A fault ends the step at once; outputs come before an exit, wherever the source has them (as a chip says them). */
static void handle(Host *h, const Event *events, uint32_t n)
{
    static const EmitRole order[] = {EMIT_FAULT, EMIT_OUTPUT, EMIT_TAKE, EMIT_EXIT};
    for (unsigned k = 0; k < sizeof order / sizeof *order; k++)
        for (uint32_t i = 0; i < n && !h->ended; i++)
            if (events[i].role == order[k]) on_event[order[k]](h, &h->c->emits.data[events[i].emit], events[i].payload);
}

static void run(Host *h, uint64_t max_steps)
{
    give_first_input(h);
    while (!h->ended) {
        const Event *events;
        bool retired;
        uint32_t n = sim_step(h->sim, &events, &retired);
        handle(h, events, n);
        h->steps += retired;
        if (h->ended || !max_steps || h->steps < max_steps) continue;
        fflush(stdout);
        fprintf(stderr, "%s: stopped after %" PRIu64 " steps, as asked\n", h->c->name, h->steps);
        h->ended = true;
        h->status = 1;
    }
    fflush(stdout);
}

/* The circuit's memories as firmware_fits looks at them. */
static bool fits(const Firmware *f, const Circuit *c, char **err)
{
    Model m = { .name = c->name, .nstates = c->states.n, .state = xalloc((c->states.n + 1) * sizeof *m.state) };
    for (uint32_t i = 0; i < c->states.n; i++) {
        const State *s = &c->states.data[i];
        m.state[i] = (ChipState){ .name = s->name, .kind = s->kind, .width = s->width, .rows = s->rows, .base = s->base, .init = s->init,
                                  .init_shift = s->init_shift };
    }
    return firmware_fits(f, &m, err);
}

static bool needs_firmware(const Circuit *c)
{
    for (uint32_t i = 0; i < c->states.n; i++)
        if (c->states.data[i].init == INIT_IMAGE || c->states.data[i].init == INIT_ENTRY) return true;
    return false;
}

int cmd_sim(const Args *a)
{
    char *err = NULL;
    Firmware *f = NULL;
    Design *d = load_design(a, true);
    if (!d) return 1;
    Circuit *c = circuit_optimize(d->circuit);
    if (!a->input[1] && needs_firmware(c)) return input_error("%s: %s runs firmware, and none is given", a->input[0], c->name);
    if (a->input[1] && (!(f = firmware_open(a->input[1], &err)) || !fits(f, c, &err))) {
        input_error("%s", err);
        free(err);
        return 1;
    }
    Host h = { .c = c, .sim = sim_new(c, f ? &f->image : NULL) };
    double began = clock_seconds();
    run(&h, a->max_steps);
    double seconds = clock_seconds() - began;
    if (a->stats)
        fprintf(stderr, "steps: %" PRIu64 "\nseconds: %.6f\nsteps_per_second: %.0f\n", h.steps, seconds, (double)h.steps / (seconds > 0 ? seconds : 1e-9));
    sim_free(h.sim);
    firmware_close(f);
    return h.status;
}
