/* testblock.c: runs test blocks on any level of the pipeline that can set and show state and make a pass.
 *
 * Input: before the first pass the host register holds the first byte of input as 0x100 | byte (0 at the end of input),
 * and after a TAKE the next one, as the runtime does. */
#include "../dsl/dsl.h"
#include "frontend.h"
#include <string.h>

enum { MAX_PASSES = 2000000 }; /* of one `step` or `run`: a machine that never stops fails the test */

typedef struct {
    const Circuit *c;
    const TestLevel *level;
    VEC(char) output, input;
    uint32_t taken; /* bytes of input that the machine has been given */
    bool fed;       /* the first byte has been given */
    bool exited, faulted;
    uint64_t status;
    const char *message;
} Run;

static bool find_state(const Circuit *c, const char *name, uint32_t *state)
{
    for (uint32_t i = 0; i < c->states.n; i++)
        if (!strcmp(c->states.data[i].name, name)) {
            *state = i;
            return true;
        }
    return false;
}

static void feed(Run *r, uint32_t state)
{
    bool more = r->taken < r->input.n;
    r->level->set(r->level->ctx, state, 0, more ? 0x100u | (unsigned char)r->input.data[r->taken] : 0);
    if (more) r->taken++;
}

static void feed_first(Run *r)
{
    for (uint32_t i = 0; i < r->c->states.n && !r->fed; i++)
        if (r->c->states.data[i].kind == ST_HOST) feed(r, i);
    r->fed = true;
}

static void handle(Run *r, const Event *ev)
{
    const Emit *m = &r->c->emits.data[ev->emit];
    if (r->exited || r->faulted) return; /* the first event that ends the run counts */
    switch (ev->role) {
    case EMIT_OUTPUT: vec_push(&r->output, (char)ev->payload); break;
    case EMIT_TAKE: feed(r, m->state); break;
    case EMIT_EXIT:
        r->exited = true;
        r->status = ev->payload;
        break;
    case EMIT_FAULT:
        r->faulted = true;
        r->status = ev->payload;
        r->message = m->message;
        break;
    }
}

/* One pass; true when it counted as a step. */
static bool pass(Run *r)
{
    const Event *events;
    bool retired;
    feed_first(r);
    uint32_t n = r->level->step(r->level->ctx, &events, &retired);
    for (uint32_t i = 0; i < n; i++) handle(r, &events[i]);
    return retired;
}

static const char *ended(const Run *r)
{
    if (r->exited) return xfmt("the machine has exited with status %llu", (unsigned long long)r->status);
    if (r->faulted) return xfmt("the machine has stopped by fault %llu, %s", (unsigned long long)r->status, r->message);
    return "the machine is still running";
}

static const char *do_steps(Run *r, const TestAction *a)
{
    uint64_t done = 0;
    for (uint32_t passes = 0; done < a->value; passes++) {
        if (r->exited || r->faulted) return xfmt("%s before step %llu", ended(r), (unsigned long long)done + 1);
        if (passes == MAX_PASSES)
            return xfmt("step %llu is not done after %d passes", (unsigned long long)done + 1, MAX_PASSES);
        done += pass(r);
    }
    return NULL;
}

static const char *do_run(Run *r)
{
    for (uint32_t passes = 0; !r->exited && !r->faulted; passes++) {
        if (passes == MAX_PASSES) return xfmt("the machine is still running after %d passes", MAX_PASSES);
        pass(r);
    }
    return NULL;
}

static const char *do_state(Run *r, const TestAction *a)
{
    uint32_t state;
    const TestLevel *l = r->level;
    if (!find_state(r->c, a->state, &state)) return xfmt("there is no state '%s' at this level", a->state);
    uint64_t now = l->get(l->ctx, state, a->row);
    if (a->kind == TEST_SET) {
        l->set(l->ctx, state, a->row, (now & ~a->mask) | (a->value & a->mask));
        return NULL;
    }
    if (((now & a->mask) == a->value) != a->negate) return NULL;
    unsigned shift = a->mask ? (unsigned)__builtin_ctzll(a->mask) : 0;
    return xfmt("found 0x%llx, expected %s0x%llx", (unsigned long long)((now & a->mask) >> shift),
                a->negate ? "anything but " : "", (unsigned long long)(a->value >> shift));
}

/* Text with everything that does not print as an escape. */
static const char *quoted(const char *s, size_t n)
{
    char *out = xalloc(4 * n + 3), *p = out;
    *p++ = '"';
    for (size_t i = 0; i < n; i++) {
        unsigned char ch = (unsigned char)s[i];
        if (ch == '\n') p += sprintf(p, "\\n");
        else if (ch < 32 || ch > 126 || ch == '"' || ch == '\\') p += sprintf(p, "\\x%02x", ch);
        else *p++ = (char)ch;
    }
    *p++ = '"';
    *p = 0;
    return out;
}

static const char *do_output(const Run *r, const TestAction *a)
{
    if (r->output.n == a->ntext && (!a->ntext || !memcmp(r->output.data, a->text, a->ntext))) return NULL;
    return xfmt("found the output %s, expected %s", quoted(r->output.data, r->output.n), quoted(a->text, a->ntext));
}

static const char *do_action(Run *r, const TestAction *a)
{
    switch (a->kind) {
    case TEST_SET: case TEST_EXPECT: return do_state(r, a);
    case TEST_INPUT:
        for (size_t i = 0; i < a->ntext; i++) vec_push(&r->input, a->text[i]);
        return NULL;
    case TEST_STEP: return do_steps(r, a);
    case TEST_RUN: return do_run(r);
    case TEST_OUTPUT: return do_output(r, a);
    case TEST_EXIT:
        return r->exited && r->status == a->value
                   ? NULL
                   : xfmt("%s, expected exit %llu", ended(r), (unsigned long long)a->value);
    case TEST_FAULT:
        return r->faulted && r->status == a->value
                   ? NULL
                   : xfmt("%s, expected fault %llu", ended(r), (unsigned long long)a->value);
    case TEST_CONST: return a->value ? NULL : "the expectation does not hold";
    }
    return "unknown action";
}

const char *test_run(const TestCase *t, const Circuit *c, const TestLevel *level, Span *where)
{
    Run r = { .c = c, .level = level };
    for (uint32_t i = 0; i < t->actions.n; i++) {
        const char *bad = do_action(&r, &t->actions.data[i]);
        *where = t->actions.data[i].span;
        if (bad) return bad;
    }
    return NULL;
}

/* ---- the interpreter as a level ---- */
static uint64_t sim_level_get(void *s, uint32_t state, uint32_t row) { return sim_get(s, state, row); }
static void sim_level_set(void *s, uint32_t state, uint32_t row, uint64_t value) { sim_set(s, state, row, value); }
static uint32_t sim_level_step(void *s, const Event **events, bool *retired) { return sim_step(s, events, retired); }

const char *test_run_sim(const TestCase *t, const Circuit *c, Span *where)
{
    Sim *s = sim_new(c, NULL);
    TestLevel level = { s, sim_level_get, sim_level_set, sim_level_step };
    const char *bad = test_run(t, c, &level, where);
    sim_free(s);
    return bad;
}

unsigned test_run_all(const Design *d, const Circuit *c)
{
    unsigned failed = 0;
    for (uint32_t i = 0; i < d->tests.n; i++) {
        Span where = d->tests.data[i].span;
        const char *bad = test_run_sim(&d->tests.data[i], c, &where);
        if (!bad) continue;
        error_at(where, "test \"%s\": %s", d->tests.data[i].name, bad);
        failed++;
    }
    return failed;
}
