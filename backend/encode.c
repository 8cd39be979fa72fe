/* encode.c: one evaluated step as tokens. Written from the description of the protocol, not from the pass circuit that protocol.c builds, so
 * that each checks the other. */
#include "encode.h"
#include <stdlib.h>

static void watch(const Protocol *p, Sim *s)
{
    for (uint32_t f = 0; f < p->fields.n; f++) {
        sim_watch(s, p->fields.data[f].need);
        for (unsigned i = 0; i < FIELD_PARTS; i++) sim_watch(s, p->fields.data[f].part[i]);
    }
    sim_watch(s, p->m->c->retire);
    sim_watch(s, p->m->tail_stays);
}

typedef enum { PLAIN, HOLD, STAY } Ending; /* of a step's last token */

/* In an inner pass the tail register stays as it is. */
static bool needed(const Protocol *p, const Sim *s, uint32_t f)
{
    bool inner = p->m->c->retire && !sim_value(s, p->m->c->retire);
    return sim_value(s, p->fields.data[f].need) && !(inner && p->fields.data[f].tail);
}

/* Bits [lo, lo + width) of what a field says; width <= 64. */
static uint64_t said(const Protocol *p, const Sim *s, const Field *f, unsigned lo, unsigned width)
{
    uint64_t v = 0;
    unsigned at = 0;
    for (unsigned i = 0; i < FIELD_PARTS && f->part[i] && at < lo + width; i++) {
        unsigned w = op_at(p->m->c, f->part[i])->width;
        if (at + w > lo) {
            uint64_t x = sim_value(s, f->part[i]);
            v |= at >= lo ? x << (at - lo) : x >> (lo - at);
        }
        at += w;
    }
    return v & mask64(width);
}

static uint32_t find(const Protocol *p, uint32_t f, int chunk, int form, bool last, Ending e)
{
    for (uint32_t k = 0; k < p->kinds.n; k++) {
        const Kind *x = &p->kinds.data[k];
        if (x->field == (int)f && x->chunk == chunk && x->form == form && x->last == last && !x->alone && x->hold == (e == HOLD) && x->stay == (e == STAY)) return k;
    }
    die("no kind of token for field %s", p->fields.data[f].name);
}

static void put(const Protocol *p, Tokens *out, uint32_t kind, uint64_t payload)
{
    const Kind *k = &p->kinds.data[kind];
    vec_push(out, k->base + (uint32_t)(payload & mask64(k->width)));
}

static void encode_tail(const Protocol *p, uint32_t f, uint64_t bits, uint64_t old, Tokens *out)
{
    const Field *x = &p->fields.data[f];
    unsigned top = x->nchunks - 1;
    if (top && (bits ^ old) >> x->chunk_width[0] == 0) top = 0; /* the upper bits stay */
    for (unsigned j = top + 1; j-- > 0;) put(p, out, find(p, f, (int)j, -1, j == 0, PLAIN), bits >> x->chunk_lo[j]);
}

static void encode_field(const Protocol *p, const Sim *s, uint32_t f, bool more, bool stay, Tokens *out)
{
    const Field *x = &p->fields.data[f];
    if (x->tail) {
        encode_tail(p, f, said(p, s, x, 0, x->width), sim_get(s, (uint32_t)p->m->tail, 0), out);
        return;
    }
    for (unsigned g = 0; g < x->nforms; g++)
        if (!(more && at_end_only(x, g)) && said(p, s, x, x->chunk_width[0], x->width - x->chunk_width[0]) == x->form[g]) {
            put(p, out, find(p, f, 0, (int)g, !more, PLAIN), said(p, s, x, 0, x->chunk_width[0]));
            return;
        }
    for (uint32_t k = 0; !more && k < p->kinds.n; k++)
        if (p->kinds.data[k].alone && p->kinds.data[k].field == (int)f && said(p, s, x, 0, x->chunk_lo[1]) == 0) {
            put(p, out, k, said(p, s, x, x->chunk_lo[1], x->chunk_width[1]));
            return;
        }
    bool inner = x->loop && p->m->c->retire && !sim_value(s, p->m->c->retire);
    for (unsigned j = 0; j < x->nchunks; j++) {
        bool final = j + 1 == x->nchunks;
        put(p, out, find(p, f, (int)j, -1, final && !more, !final ? PLAIN : inner ? HOLD : stay ? STAY : PLAIN), said(p, s, x, x->chunk_lo[j], x->chunk_width[j]));
    }
}

static void say_carries(const Protocol *p, const Sim *s, Tokens *out)
{
    for (uint32_t k = 0; k < p->kinds.n; k++) {
        if (!p->kinds.data[k].carry) continue;
        uint32_t r = p->kinds.data[k].carry - 1;
        unsigned lo = p->m->count_lo[r], up = lo + p->m->count_bits[r];
        uint64_t v = sim_get(s, r, 0);
        if ((v >> lo & mask64(up - lo)) == 0) put(p, out, k, (v & mask64(lo)) | (up < 64 ? v >> up << lo : 0));
    }
}

/* The last field before `end` that the step says; -1: none. */
static int last_needed(const Protocol *p, const Sim *s, uint32_t end)
{
    while (end > p->first_normal && !needed(p, s, end - 1)) end--;
    return end > p->first_normal ? (int)end - 1 : -1;
}

/* True when the last token ends the run. */
static bool say_step(const Protocol *p, const Sim *s, Tokens *out)
{
    for (uint32_t f = 0; f < p->first_normal; f++)
        if (needed(p, s, f)) { /* a fault: nothing else is said */
            put(p, out, find(p, f, 0, -1, true, PLAIN), said(p, s, &p->fields.data[f], 0, p->fields.data[f].width));
            return true;
        }
    uint32_t before = out->n;
    int end = last_needed(p, s, p->fields.n);
    bool stay = end >= 0 && p->fields.data[end].tail && p->m->tail_stays && sim_value(s, p->m->tail_stays);
    if (stay) { /* which the field before can say */
        int f = last_needed(p, s, (uint32_t)end);
        stay = f >= 0 && may_stay(p, &p->fields.data[f]);
        if (stay) end = f;
    }
    for (uint32_t f = p->first_normal; (int)f <= end; f++) {
        if (!needed(p, s, f)) continue;
        bool exits = p->fields.data[f].emit && p->m->c->emits.data[p->fields.data[f].index].role == EMIT_EXIT;
        encode_field(p, s, f, (int)f < end && !exits, (int)f == end && stay, out);
        if (exits) return true;
    }
    if (out->n == before)
        for (uint32_t k = 0; k < p->kinds.n; k++)
            if (p->kinds.data[k].role == ROLE_TRACE && p->kinds.data[k].field < 0 && !p->kinds.data[k].carry) put(p, out, k, 0);
    return false;
}

/* ---- what the callers see ---- */

void encode_begin(StepEncoder *e, const Protocol *p, Sim *s)
{
    encode_free(e);
    *e = (StepEncoder){.p = p, .sim = s};
    watch(p, s);
}

void encode_restart(StepEncoder *e) { e->counted = false; }

void encode_step(StepEncoder *e)
{
    e->said.n = 0;
    if (e->counted) say_carries(e->p, e->sim, &e->said);
    e->counted = false;
    e->nevents = sim_eval(e->sim, &e->events, &e->retired);
    e->ended = say_step(e->p, e->sim, &e->said);
}

static void commit(const StepEncoder *e, bool direct_only)
{
    const Modes *m = e->p->m;
    bool *skip = xrealloc(NULL, m->c->states.n + 1);
    for (uint32_t i = 0; i < m->c->states.n; i++) skip[i] = direct_only && m->mode[i] != MODE_DIRECT;
    sim_commit(e->sim, skip);
    free(skip);
}

void encode_commit(StepEncoder *e, bool direct_only)
{
    commit(e, direct_only);
    e->counted = e->retired;
}

void encode_ahead(StepEncoder *e)
{
    sim_eval(e->sim, NULL, NULL);
    commit(e, true);
}

void encode_free(StepEncoder *e)
{
    free(e->said.data);
    e->said = (Tokens){0};
}
