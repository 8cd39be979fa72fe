/* follow.c: checks a given trace. Since every token is known, many are run at once, a lane each: every layer sees all tokens of a block before the
 * next layer sees any, its state writes and reads in the tokens' order (slice.h). A chip that planes cannot hold is fed one token at a time.
 *
 * Beside the model's answers it is checked that the trace is one that a host can have made (chip.md, "Running"): it begins with the start, a token
 * of an `input` kind stands after the start and after each step that took one, nowhere else, and nothing stands after an exit or a fault. */
#include "trace.h"
#include "slice.h"
#include <inttypes.h>
#include <stdlib.h>

typedef struct {
    const FollowOptions *o;
    Model *m;
    Firmware *f;
    TraceFile *t;
    Slice *s;
    Machine *single;
    char *why; /* of no planes */
    uint8_t *state;
    bool has_input, asked, stopped;
    uint64_t tokens, steps; /* checked */
    uint64_t line;          /* of the last token read, from 1 */
    uint32_t ahead;         /* the token after the block */
    bool more;              /* there is one */
    char *err;
    int status;
    double opening, seconds;
} Follow;

/* ---- opening ---- */
static bool open_planes(Follow *w, const Image *image)
{
    if (w->o->single) return fail(&w->why, "%s", w->o->single);
    if (!(w->s = slice_open(w->m, true, false, &w->why))) return false;
    w->state = calloc(1, slice_bytes(w->s) + 8);
    if (!w->state) die("out of memory");
    SliceState state = {w->s, w->state, NULL};
    if (!state_install(w->m, &slice_cells_backend, &state, image, &w->err)) return false;
    return !state.bad || fail(&w->why, "%s", state.bad);
}

static bool open_follow(Follow *w)
{
    const FollowOptions *o = w->o;
    const Image *image = NULL;
    double t = clock_seconds();
    if (!(w->m = model_open(o->chip, &w->err))) return false;
    if (o->firmware) {
        if (!(w->f = firmware_open(o->firmware, &w->err)) || !firmware_fits(w->f, w->m, &w->err)) return false;
        image = &w->f->image;
    } else if (model_needs_firmware(w->m)) return fail(&w->err, "%s: %s runs firmware, and none is given", o->chip, w->m->name);
    if (o->maker ? !o->maker->begin(o->maker->ctx, w->m, image, &w->err) : !(w->t = trace_open(w->m, o->trace, &w->err))) return false;
    for (uint32_t i = 0; i < w->m->nkinds; i++) w->has_input |= w->m->kind[i].role == CHIP_INPUT;
    w->asked = w->has_input; /* the first byte comes after the start */
    if (!open_planes(w, image)) {
        if (w->err) return false;
        BackendOptions options = {0};
        if (!(w->single = machine_open(w->m, backends[0], &options, image, &w->err))) return false;
    }
    w->opening = clock_seconds() - t;
    return true;
}

/* ---- what is wrong ---- */
static const char *token_text(const Follow *w, uint32_t token)
{
    const ChipKind *k = token == UINT32_MAX ? NULL : model_kind(w->m, token);
    return k ? xfmt("%s %x", k->name, token - k->base) : "no token";
}

static bool wrong(Follow *w, uint64_t line, const char *text)
{
    w->status = 1;
    if (w->o->trace) fprintf(stderr, "%s:%" PRIu64 ": %s\n", w->o->trace, line, text);
    else fprintf(stderr, "token %" PRIu64 ": %s\n", line, text);
    return false;
}

/* Whether a host would have fed this token; the trace's line is that of the token. */
static bool fits(Follow *w, uint32_t token, uint64_t line)
{
    const ChipKind *k = model_kind(w->m, token);
    if (w->stopped) return wrong(w, line, "the trace goes on after the machine has stopped");
    if (line == 1) return token == w->m->start || wrong(w, line, xfmt("the trace begins with %s, a run with %s", token_text(w, token), token_text(w, w->m->start)));
    bool input = k->role == CHIP_INPUT;
    if (w->asked && !input) return wrong(w, line, xfmt("the trace says %s where the host feeds an input", token_text(w, token)));
    if (input && !w->asked) return wrong(w, line, xfmt("the trace says %s where the machine takes no input", token_text(w, token)));
    return true;
}

/* What the token means for those after it. `taking`: the step has taken its input; the host answers after the step's last token. */
static void note(Follow *w, uint32_t token, uint64_t line, bool *taking)
{
    const ChipKind *k = model_kind(w->m, token);
    if (k->role == CHIP_INPUT) w->asked = false;
    if (line == 1) return;
    if (k->role == CHIP_TAKE && w->has_input) *taking = true;
    if (*taking && k->last) *taking = false, w->asked = true;
    if (k->role == CHIP_EXIT || k->role == CHIP_FAULT) w->stopped = true;
    w->tokens += k->role != CHIP_INPUT;
    w->steps += k->retire;
}

/* ---- a block of tokens ---- */
typedef struct {
    uint32_t token[LANES + 1]; /* and the one after the block */
    uint32_t n;
    uint64_t line;             /* of the first */
    uint64_t free[PLANE_WORDS]; /* lanes whose answer nobody asks for: an input follows, or should, or nothing */
    bool taking;
} Block512;

static bool read_token(Follow *w, uint32_t *token)
{
    const TraceMaker *maker = w->o->maker;
    bool more = maker ? maker->next(maker->ctx, token) > 0 : trace_next(w->t, w->asked && w->line > 0, token, &w->err) > 0;
    w->line += more;
    return more;
}

/* Fills the block from the token ahead on; a token that no host would have fed ends it, and is reported when all before it are right. */
static bool read_block(Follow *w, Block512 *b, char **later)
{
    b->n = 0;
    b->line = w->line;
    memset(b->free, 0, sizeof b->free);
    while (w->more && b->n < LANES) {
        uint32_t i = b->n++;
        b->token[i] = w->ahead;
        note(w, w->ahead, w->line, &b->taking);
        w->more = read_token(w, &w->ahead);
        b->token[i + 1] = w->more ? w->ahead : w->m->start;
        if (!w->more || w->asked || w->stopped || model_kind(w->m, w->ahead)->role == CHIP_INPUT) b->free[i / 64] |= 1ull << (i & 63);
        if (w->err) *later = w->err, w->err = NULL, w->more = false;
        if (w->more && !*later) {
            bool input = model_kind(w->m, w->ahead)->role == CHIP_INPUT;
            /* order and answer are both judged: the model's answer first, since a wrong token may look like a wrong host */
            if (w->stopped || w->asked != input) break;
        }
    }
    return b->n > 0;
}

static bool block_planes(Follow *w, const Block512 *b, uint32_t *bad, uint32_t *said)
{
    uint32_t token[LANES];
    uint64_t *active = slice_active(w->s);
    for (uint32_t i = 0; i < LANES; i++) token[i] = b->token[i < b->n ? i : b->n]; /* lane n is what lane n - 1 is compared with */
    for (uint32_t i = 0; i < PLANE_WORDS; i++) active[i] = b->n >= 64 * (i + 1) ? ~0ull : b->n > 64 * i ? (1ull << (b->n & 63)) - 1 : 0;
    slice_put_all(w->s, token);
    const char *why = slice_pass(w->s, w->state, 0);
    if (why) return fail(&w->why, "%s", why);
    const Plane *differs = slice_wrong(w->s, b->token[b->n]);
    *bad = UINT32_MAX;
    for (uint32_t i = 0; i < PLANE_WORDS && *bad == UINT32_MAX; i++) {
        uint64_t x = differs->w[i] & active[i] & ~b->free[i];
        if (x) *bad = 64 * i + (uint32_t)__builtin_ctzll(x);
    }
    if (*bad != UINT32_MAX) *said = slice_got(w->s, *bad);
    return true;
}

static void block_single(Follow *w, const Block512 *b, uint32_t *bad, uint32_t *said)
{
    *bad = UINT32_MAX;
    for (uint32_t i = 0; i < b->n && *bad == UINT32_MAX; i++) {
        *said = machine_feed(w->single, b->token[i]);
        if (*said != b->token[i + 1] && !(b->free[i / 64] >> (i & 63) & 1)) *bad = i;
    }
}

/* The first wrong token of the block, if any, ends the check. */
static bool judge(Follow *w, const Block512 *b)
{
    uint32_t bad = UINT32_MAX, said = 0;
    if (w->single) block_single(w, b, &bad, &said);
    else if (!block_planes(w, b, &bad, &said)) return false;
    if (bad == UINT32_MAX) return true;
    return wrong(w, b->line + bad + 1, xfmt("the %s says %s, the chip says %s", w->o->maker ? "netlist" : "trace", token_text(w, b->token[bad + 1]), token_text(w, said)));
}

static bool follow(Follow *w)
{
    Block512 b = {0};
    char *later = NULL;
    w->more = read_token(w, &w->ahead);
    if (!w->more && !w->err) return fail(&w->err, "%s: there is no token in it", w->o->trace ? w->o->trace : w->o->chip);
    if (w->more && !fits(w, w->ahead, 1)) return false;
    while (!later && w->more && read_block(w, &b, &later)) {
        if (!judge(w, &b)) break;
        if (w->more && !fits(w, w->ahead, w->line)) break;
    }
    if (later && !w->status) w->err = later;
    else free(later);
    return !w->err && !w->status && (w->single || !w->why); /* planes that gave up have judged nothing */
}

static void print_stats(const Follow *w)
{
    double s = w->seconds > 0 ? w->seconds : 1e-9;
    fprintf(stderr, "tokens: %" PRIu64 "\nsteps: %" PRIu64 "\nseconds: %.6f\ntokens_per_second: %.0f\nopening_seconds: %.6f\n", w->tokens, w->steps, w->seconds,
            (double)w->tokens / s, w->opening);
    if (w->single) {
        fprintf(stderr, "path: one token at a time (%s)\n", w->why);
        return;
    }
    SliceReport r = slice_report(w->s);
    fprintf(stderr, "path: %d tokens at a time\nplanes: %u\noperations: %u\nchecks: %u\ncompilations: %u\n", LANES, r.planes, r.operations, r.checks, r.compilations);
}

static void close_follow(Follow *w)
{
    if (w->s) slice_close(w->s);
    machine_close(w->single);
    trace_close(w->t);
    if (w->o->maker) w->o->maker->end(w->o->maker->ctx);
    firmware_close(w->f);
    model_close(w->m);
    free(w->state);
    free(w->err);
    free(w->why);
}

int runtime_follow(const FollowOptions *o)
{
    Follow w = {.o = o};
    double t = 0;
    bool ok = open_follow(&w);
    if (ok) {
        t = clock_seconds();
        ok = follow(&w);
        w.seconds = clock_seconds() - t;
    }
    if (!ok && !w.err && !w.status && w.why) { /* planes gave up in the middle */
        FollowOptions again = *o;
        char *why = w.why;
        again.single = why, w.why = NULL;
        close_follow(&w);
        int status = runtime_follow(&again);
        free(why);
        return status;
    }
    if (w.err) fprintf(stderr, "tapeout: %s\n", w.err);
    if (ok && !o->stats) printf("%" PRIu64 " tokens, %" PRIu64 " steps: as the chip says\n", w.tokens, w.steps);
    if (o->stats && (w.s || w.single)) print_stats(&w);
    close_follow(&w);
    return ok ? 0 : 1;
}
