/* machine.c: the token loop. Installs the initial state, feeds `start`, then feeds back what comes out, and does what the
 * kinds' roles say (chip.md, "Running"). Knows no machine: roles stand in the chip's manifest. */
#include "runtime.h"
#include <errno.h>
#include <jansson.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { BURST = 256 }; /* tokens between two looks at the clock */

struct Machine {
    const Model *m;
    const Backend *b;
    void *self;
    const ChipKind *input; /* the kind of host tokens, or NULL */
    uint64_t tokens, steps;
    bool resumed;
    uint32_t next; /* the token to feed: where machine_run stopped, or goes on when resumed */
    bool waits;    /* `next` has been fed already, and `out` came out */
    uint32_t out;
};

double clock_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Memories in attention layers have no state to install: their rows are tokens. So is what must come before everything. */
static bool load_roms(Machine *mc, const Image *image, char **err)
{
    Prompt p = {0};
    bool any = json_object_get(json_object_get(mc->m->manifest, "load"), "before") != NULL, ok = true;
    for (uint32_t i = 0; i < mc->m->nstates; i++) any |= mc->m->state[i].ncopies == 0 && mc->m->state[i].init != INIT_ZERO;
    if (any) ok = prompt_make(mc->m, image, true, &p, err);
    for (uint32_t i = 0; ok && i < p.n; i++) machine_feed(mc, p.data[i]);
    free(p.data);
    return ok;
}

static Machine *machine_new(const Model *m, const Backend *b, const BackendOptions *o, char **err)
{
    void *self = b->open(m, o, err);
    if (!self) return NULL;
    Machine *mc = xrealloc(NULL, sizeof *mc);
    *mc = (Machine){.m = m, .b = b, .self = self, .next = m->start};
    for (uint32_t i = 0; i < m->nkinds; i++)
        if (m->kind[i].role == CHIP_INPUT) mc->input = &m->kind[i];
    return mc;
}

static Machine *opened(Machine *mc, bool ok)
{
    if (ok) return mc;
    machine_close(mc);
    return NULL;
}

Machine *machine_open(const Model *m, const Backend *b, const BackendOptions *o, const Image *image, char **err)
{
    Machine *mc = machine_new(m, b, o, err);
    return opened(mc, mc && state_install(m, b, mc->self, image, err) && load_roms(mc, image, err));
}

/* The prompt's last token is the first that machine_run feeds. With an input it is fed before the first byte. */
Machine *machine_prompted(const Model *m, const Backend *b, const BackendOptions *o, const Image *image, char **err)
{
    Prompt p = {0};
    Machine *mc = machine_new(m, b, o, err);
    bool ok = mc && prompt_make(m, image, false, &p, err);
    for (uint32_t i = 0; ok && i + 1 < p.n; i++) machine_feed(mc, p.data[i]);
    if (ok) mc->resumed = !mc->input, mc->next = p.data[p.n - 1];
    free(p.data);
    return opened(mc, ok);
}

Machine *machine_resumed(const Model *m, const Backend *b, const BackendOptions *o, const char *state, char **err)
{
    Machine *mc = machine_new(m, b, o, err);
    if (mc) mc->resumed = true;
    return opened(mc, mc && state_load(m, b, mc->self, &mc->next, state, err));
}

bool machine_save(Machine *mc, const char *state, char **err) { return state_save(mc->m, mc->b, mc->self, mc->next, state, err); }

void machine_close(Machine *mc)
{
    if (!mc) return;
    mc->b->close(mc->self);
    free(mc);
}

const Model *machine_model(const Machine *mc) { return mc->m; }
uint64_t machine_tokens(const Machine *mc) { return mc->tokens; }

void machine_stats(const Machine *mc, FILE *out)
{
    if (mc->b->stats) mc->b->stats(mc->self, out);
}
uint64_t machine_steps(const Machine *mc) { return mc->steps; }

uint32_t machine_feed(Machine *mc, uint32_t token)
{
    uint32_t out;
    mc->b->run(mc->self, token, &out, 1);
    return out;
}

void machine_settle(Machine *mc)
{
    if (mc->waits) return;
    mc->out = machine_feed(mc, mc->next);
    mc->waits = true;
}

bool machine_get(Machine *mc, const ChipState *s, uint32_t row, uint64_t *value, char **err)
{
    return state_get(mc->m, mc->b, mc->self, s, row, value, err);
}

void machine_set(Machine *mc, const ChipState *s, uint32_t row, uint64_t value) { state_set(mc->m, mc->b, mc->self, s, row, value); }

/* ---- roles ---- */
typedef struct {
    Machine *mc;
    const LoopOptions *o;
    StopInfo stop;
    bool stopped;
    bool asked;    /* the step has taken its input; the host answers after the step's last token */
    uint32_t next; /* the token to feed */
    double began, shown;
    bool progress_shown;
} Loop;

static void trace(Loop *l, const ChipKind *k, uint32_t token)
{
    if (l->o->trace) fprintf(l->o->trace, "%s %x\n", k->name, token - k->base);
}

static void clear_progress(Loop *l)
{
    if (l->progress_shown) fputs("\r\033[K", stderr);
    l->progress_shown = false;
}

static void show_progress(Loop *l)
{
    double t = l->o->progress ? clock_seconds() : 0;
    if (!l->o->progress || t - l->shown < 0.5) return;
    l->shown = t;
    l->progress_shown = true;
    fprintf(stderr, "\r%" PRIu64 " steps, %" PRIu64 " tokens, %.0f tokens/s ", l->mc->steps, l->mc->tokens, (double)l->mc->tokens / (t - l->began));
}

static void stop(Loop *l, Stop why, const ChipKind *k, uint64_t payload)
{
    l->stopped = true;
    l->stop.why = why;
    l->stop.kind = k;
    l->stop.payload = payload;
    if (k && why != STOP_STEPS) l->next = k->base + (uint32_t)payload;
}

/* Feeds the token (whose own output is dropped), then asks the host for a byte and makes it the next token. */
static void take_input(Loop *l, uint32_t token)
{
    const ChipKind *in = l->mc->input;
    if (l->o->out) fflush(l->o->out);
    int byte = l->o->in ? getc(l->o->in) : EOF;
    machine_feed(l->mc, token);
    l->next = input_token(in, byte);
    trace(l, in, l->next);
    if (l->o->check && l->o->check->input) l->o->check->input(l->o->check->ctx, l->mc, l->next);
}

static void role_none(Loop *l, const ChipKind *k, uint32_t token) { (void)k, l->next = token; }

static void role_output(Loop *l, const ChipKind *k, uint32_t token)
{
    l->next = token;
    clear_progress(l);
    if (l->o->out) putc((int)((token - k->base) & 0xff), l->o->out);
}

static void role_exit(Loop *l, const ChipKind *k, uint32_t token) { stop(l, STOP_EXIT, k, token - k->base); }
static void role_fault(Loop *l, const ChipKind *k, uint32_t token) { stop(l, STOP_FAULT, k, token - k->base); }

static void role_take(Loop *l, const ChipKind *k, uint32_t token)
{
    (void)k;
    l->next = token;
    l->asked = l->mc->input;
}

static void role_host(Loop *l, const ChipKind *k, uint32_t token)
{
    snprintf(l->stop.message, sizeof l->stop.message, "token %u of kind \"%.60s\" came out, which only the host may feed", token, k->name);
    stop(l, STOP_BROKEN, k, token - k->base);
}

static void (*const roles[CHIP_COUNT])(Loop *, const ChipKind *, uint32_t) = {
    [CHIP_TRACE] = role_none, [CHIP_OUTPUT] = role_output, [CHIP_EXIT] = role_exit,  [CHIP_FAULT] = role_fault,
    [CHIP_TAKE] = role_take,  [CHIP_INPUT] = role_host,    [CHIP_START] = role_host, [CHIP_LOAD] = role_host,
};

static void accept(Loop *l, uint32_t token)
{
    Machine *mc = l->mc;
    const ChipKind *k = model_kind(mc->m, token);
    if (!k) {
        snprintf(l->stop.message, sizeof l->stop.message, "token %u came out, which belongs to no kind", token);
        stop(l, STOP_BROKEN, NULL, token);
        return;
    }
    mc->tokens++;
    mc->steps += k->retire;
    trace(l, k, token);
    if (l->o->check && l->o->check->token && l->o->check->token(l->o->check->ctx, mc, token)) {
        stop(l, STOP_CHECK, k, token - k->base);
        return;
    }
    roles[k->role](l, k, token);
    if (!l->stopped && l->asked && k->last) {
        l->asked = false;
        take_input(l, token);
    }
    if (!l->stopped && l->o->max_steps && mc->steps >= l->o->max_steps) stop(l, STOP_STEPS, k, 0);
}

/* A step takes at least one token, so a burst of as many tokens as steps are left cannot run past the limit; and a
 * checker must see each token before the next is fed. */
static uint32_t burst_size(const Loop *l)
{
    uint64_t left = l->o->max_steps ? l->o->max_steps - l->mc->steps : BURST;
    if (l->o->check || l->asked) return 1;
    return left < BURST ? (uint32_t)left : BURST;
}

StopInfo machine_run(Machine *mc, const LoopOptions *o)
{
    Loop l = {.mc = mc, .o = o, .next = mc->next, .began = clock_seconds()};
    uint32_t out[BURST];
    const ChipKind *k = model_kind(mc->m, l.next);
    l.shown = l.began;
    if (mc->waits) accept(&l, mc->out);
    else trace(&l, k, l.next);
    mc->waits = false;
    if (mc->input && !mc->resumed) take_input(&l, l.next);
    while (!l.stopped) {
        uint32_t n = mc->b->run(mc->self, l.next, out, burst_size(&l));
        for (uint32_t i = 0; i < n && !l.stopped; i++) accept(&l, out[i]);
        show_progress(&l);
    }
    clear_progress(&l);
    if (o->out) fflush(o->out);
    mc->next = l.next;
    mc->resumed = true;
    return l.stop;
}

/* ---- tapeout run ---- */
typedef struct {
    const RunOptions *o;
    Model *m;
    Firmware *f;
    Machine *mc;
    FILE *trace;
    char *trace_temp;
    Signature signature;
    double seconds;
    char *err;
} Run;

static void print_stats(const Run *r)
{
    double tokens = (double)r->mc->tokens, steps = (double)r->mc->steps, s = r->seconds > 0 ? r->seconds : 1e-9;
    fprintf(stderr, "tokens: %" PRIu64 "\nsteps: %" PRIu64 "\ntokens_per_step: %.4f\nseconds: %.6f\n", r->mc->tokens, r->mc->steps,
            steps > 0 ? tokens / steps : 0.0, r->seconds);
    fprintf(stderr, "tokens_per_second: %.0f\nsteps_per_second: %.0f\n", tokens / s, steps / s);
    machine_stats(r->mc, stderr);
    if (r->o->check) fprintf(stderr, "mismatches: %" PRIu64 "\n", r->o->check->mismatches);
}

static bool open_trace(Run *r)
{
    if (!r->o->trace) return true;
    r->trace_temp = xfmt("%s.tmp", r->o->trace);
    r->trace = fopen(r->trace_temp, "w");
    return r->trace || fail(&r->err, "%s: %s", r->o->trace, strerror(errno));
}

static bool close_trace(Run *r)
{
    if (!r->trace) return true;
    bool bad = ferror(r->trace) != 0;
    bad |= fclose(r->trace) != 0;
    if (!bad && rename(r->trace_temp, r->o->trace) == 0) return true;
    unlink(r->trace_temp);
    return fail(&r->err, "%s: cannot be written", r->o->trace);
}

static bool open_run(Run *r, const Backend *b)
{
    const Image *image = NULL;
    const RunOptions *o = r->o;
    if (!(r->m = model_open(o->chip, &r->err))) return false;
    if (o->firmware) {
        if (!(r->f = firmware_open(o->firmware, &r->err)) || !firmware_fits(r->f, r->m, &r->err)) return false;
        image = &r->f->image;
    } else if (model_needs_firmware(r->m) && !o->load) {
        return fail(&r->err, "%s: %s runs firmware, and none is given", o->chip, r->m->name);
    }
    if (o->signature && !image) return fail(&r->err, "--signature needs firmware, whose symbols say where it is");
    if (o->signature && !signature_find(&r->signature, r->m, image, o->firmware, &r->err)) return false;
    r->mc = o->load     ? machine_resumed(r->m, b, &o->backend_options, o->load, &r->err)
            : o->prompt ? machine_prompted(r->m, b, &o->backend_options, image, &r->err)
                        : machine_open(r->m, b, &o->backend_options, image, &r->err);
    if (!r->mc) return false;
    if (o->check && o->check->begin && !o->check->begin(o->check->ctx, r->m, image, &r->err)) return false;
    return open_trace(r);
}

/* A status whose low byte is 0 must not look like success to the shell. */
static int exit_status(uint64_t payload) { return payload & 0xff || !payload ? (int)(payload & 0xff) : 1; }

static int report(const Run *r, const StopInfo *s)
{
    const char *name = r->m->name;
    uint64_t n = r->mc->steps;
    switch (s->why) {
    case STOP_EXIT: return exit_status(s->payload);
    case STOP_FAULT:
        fprintf(stderr, "%s: fault: %s (code %u) after %" PRIu64 " steps\n", name, s->kind->message ? s->kind->message : s->kind->name, s->kind->code, n);
        return 1;
    case STOP_STEPS: fprintf(stderr, "%s: stopped after %" PRIu64 " steps, as asked\n", name, n); return 1;
    case STOP_BROKEN: fprintf(stderr, "%s: after %" PRIu64 " steps: %s\n", r->m->path, n, s->message); return 1;
    case STOP_CHECK: return 1;
    }
    return 1;
}

/* A run that did not come to its end has no signature. */
static bool save_signature(Run *r, const StopInfo *s)
{
    if (s->why == STOP_EXIT) return signature_write(&r->signature, r->mc, r->o->signature, &r->err);
    return r->err || fail(&r->err, "%s: not written: the program did not exit", r->o->signature);
}

static int run_opened(Run *r)
{
    const RunOptions *o = r->o;
    LoopOptions loop = {o->max_steps, r->trace, stdout, stdin, o->check, isatty(STDERR_FILENO) && !isatty(STDOUT_FILENO)};
    double t = clock_seconds();
    if (o->save) setvbuf(stdin, NULL, _IONBF, 0); /* bytes that this run does not take are for the one that goes on */
    StopInfo s = machine_run(r->mc, &loop);
    r->seconds = clock_seconds() - t;
    int status = report(r, &s);
    if (o->save && !machine_save(r->mc, o->save, &r->err)) status = 1;
    if (o->check && o->check->end && s.why != STOP_CHECK && o->check->end(o->check->ctx, r->mc)) status = 1;
    if (o->signature && !save_signature(r, &s)) status = 1;
    if (o->stats) print_stats(r);
    return status;
}

int runtime_run(const RunOptions *o)
{
    Run r = {.o = o};
    const Backend *b = o->use ? o->use : o->backend || o->check ? backend_find(o->backend) : &adaptive_backend;
    if (!b) {
        fprintf(stderr, "tapeout: unknown back end \"%s\"; there are:", o->backend);
        for (const Backend *const *k = backends; *k; k++) fprintf(stderr, " %s", (*k)->name);
        fputs(" plan\n", stderr);
        return 2;
    }
    int status = open_run(&r, b) ? run_opened(&r) : 1;
    if (!close_trace(&r)) status = 1;
    if (r.err) fprintf(stderr, "tapeout: %s\n", r.err);
    free(r.err);
    machine_close(r.mc);
    firmware_close(r.f);
    model_close(r.m);
    return status;
}
