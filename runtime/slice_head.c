/* slice_head.c: both ends of a chip over planes: the embedding of the tokens fed, from planes of the kind's number and the payload, and the output
 * head: the best kind by comparing scores, its payload by signs (head.c says why that is the argmax). */
#include "slice_priv.h"
#include <stdlib.h>

/* ---- embedding ---- */
static Ref kind_plane(Block *k, const uint16_t *slot, uint32_t bits, uint32_t kind)
{
    Ref all = TRUE_REF;
    for (uint32_t b = 0; b < bits; b++) all = bits_and(k->g, all, bits_leaf(k->g, slot[b]) ^ !(kind >> b & 1));
    return all;
}

typedef struct {
    uint32_t channel, kind;
    Ref plane;
    float w;
} Seed;
typedef VEC(Seed) Seeds;

static int by_channel_then_weight(const void *p, const void *q)
{
    const Seed *x = p, *y = q;
    if (x->channel != y->channel) return x->channel < y->channel ? -1 : 1;
    if (x->w != y->w) return x->w < y->w ? -1 : 1;
    return x->kind < y->kind ? -1 : x->kind > y->kind ? 1 : x->plane < y->plane ? -1 : x->plane > y->plane;
}

static void list_seeds(Block *k, Seeds *out)
{
    Slice *s = k->s;
    const Model *m = s->m;
    Ref *kind = pool_array(k->pool, m->nkinds, sizeof *kind);
    for (uint32_t i = 0; i < m->nkinds; i++) kind[i] = kind_plane(k, s->token_in, s->kind_bits, i);
    for (uint32_t i = 0; i < m->embed_kind.n; i++) {
        uint32_t c = (uint32_t)m->embed_kind.col[i], r = (uint32_t)m->embed_kind.row[i];
        if (s->pilot[c] == 0) vec_push(out, ((Seed){c, r, kind[r], m->embed_kind.value[i]}));
    }
    for (uint32_t i = 0; i < m->embed_bit.n; i++) {
        uint32_t c = (uint32_t)m->embed_bit.col[i], r = (uint32_t)m->embed_bit.row[i] / m->max_width, b = (uint32_t)m->embed_bit.row[i] % m->max_width;
        vec_push(out, ((Seed){c, r, bits_and(k->g, kind[r], bits_leaf(k->g, s->token_in[s->kind_bits + b])), m->embed_bit.value[i]}));
    }
    if (out->n) qsort(out->data, out->n, sizeof *out->data, by_channel_then_weight);
}

/* Kinds exclude each other: amounts of different kinds that are equal are one plane. */
static bool seed_channel(Block *k, const Seed *seed, uint32_t n, uint8_t level)
{
    Sum s = {0};
    bool ok = true;
    for (uint32_t i = 0, end; i < n; i = end) {
        Ref plane = FALSE_REF;
        int64_t w;
        for (end = i; end < n && seed[end].w == seed[i].w && (end == i || seed[end].kind != seed[end - 1].kind); end++) plane = bits_or(k->g, plane, seed[end].plane);
        ok &= whole((double)seed[i].w, &w);
        vec_push(&s.part, ((Part){.first = s.term.n, .end = s.term.n + 1, .lo = w < 0 ? w : 0, .hi = w > 0 ? w : 0}));
        vec_push(&s.term, ((Term){plane, w}));
    }
    Int *x = ok ? sum_channel(k, &s, NULL, seed->channel, level) : NULL;
    if (!x) k->why = "an embedding that is no integer";
    k->x[seed->channel] = x;
    free(s.term.data);
    free(s.part.data);
    return x != NULL;
}

bool slice_embed(Block *k, const uint8_t *level)
{
    Seeds seeds = {0};
    bool ok = true;
    list_seeds(k, &seeds);
    for (uint32_t i = 0, end; ok && i < seeds.n; i = end) {
        for (end = i; end < seeds.n && seeds.data[end].channel == seeds.data[i].channel; end++) {}
        ok = seed_channel(k, seeds.data + i, end - i, level[seeds.data[i].channel]);
    }
    free(seeds.data);
    return ok;
}

/* ---- output head ---- */
typedef struct {
    Ref payload[32];
    double margin; /* the sum of the absolute values, when it is constant */
    VEC(Term) term; /* else, in units of `unit` */
} Code;

/* A payload bit is the sign of its form's value; what it adds to the score is the absolute value. */
static bool payload_bit(Block *k, uint32_t form, double unit, Ref *bit, Code *c)
{
    const Forms *f = &k->s->head;
    Table t;
    if (!form_table(k, k->x, f->e.data + f->start[form], f->start[form + 1] - f->start[form], (double)f->bias[form], &t)) return false;
    uint8_t *plane = xrealloc(NULL, t.size);
    double least = INFINITY;
    int64_t most = 0, v;
    for (uint32_t i = 0; i < t.size; i++) {
        plane[i] = t.value[i] > 0;
        if (fabs(t.value[i]) < least) least = fabs(t.value[i]);
    }
    *bit = table_plane(k, &t, plane);
    bool ok = true;
    for (uint32_t i = 0; i < t.size && ok; i++) {
        ok = whole((fabs(t.value[i]) - least) / unit, &v);
        if (v > most) most = v;
    }
    c->margin += least;
    for (uint32_t b = 0; ok && most >> b; b++) {
        for (uint32_t i = 0; i < t.size; i++) plane[i] = (uint64_t)llrint((fabs(t.value[i]) - least) / unit) >> b & 1;
        vec_push(&c->term, ((Term){table_plane(k, &t, plane), 1ll << b}));
    }
    free(plane);
    return ok;
}

static double head_unit(const Slice *s)
{
    double unit = 1e30;
    for (uint32_t i = 0; i < s->head.e.n + s->head.n; i++) {
        int exp;
        float w = i < s->head.e.n ? s->head.e.data[i].w : s->head.bias[i - s->head.e.n];
        int64_t mantissa = (int64_t)ldexp(frexp(fabs((double)w), &exp), 24);
        if (!mantissa) continue;
        double u = ldexp(1, exp + __builtin_ctzll((uint64_t)mantissa) - 24);
        if (u < unit) unit = u;
    }
    return unit;
}

static bool make_code(Block *k, uint32_t kind, double unit, Code *c)
{
    const Model *m = k->s->m;
    for (uint32_t i = 0; i < m->kind[kind].width; i++)
        if (!payload_bit(k, k->s->bit_form[kind * m->max_width + i], unit, &c->payload[i], c)) return false;
    return true;
}

static bool score_of(Block *k, uint32_t kind, double unit, const Code *c, Int *out)
{
    const Forms *f = &k->s->head;
    uint32_t form = k->s->kind_form[kind];
    VEC(Term) term = {0};
    int64_t constant = 0, w = 0;
    bool ok = whole(((double)f->bias[form] + c->margin) / unit, &constant);
    for (uint32_t e = f->start[form]; ok && e < f->start[form + 1]; e++) {
        const Int *x = channel_int(k->x, f->e.data[e].at);
        ok = whole((double)f->e.data[e].w / unit, &w);
        constant += w * x->lo;
        for (uint32_t p = 0; p < x->n; p++) vec_push(&term, ((Term){x->plane[p], w * (1ll << p)}));
    }
    for (uint32_t i = 0; i < c->term.n; i++) vec_push(&term, c->term.data[i]);
    ok = ok && bits_sum(k->g, term.data, term.n, constant, out);
    free(term.data);
    return ok;
}

/* x - lo in `width` planes. */
static void rebase(Block *k, const Int *x, int64_t lo, uint32_t width, Ref *out)
{
    Term t[MAX_PLANES];
    for (uint32_t p = 0; p < x->n; p++) t[p] = (Term){x->plane[p], 1ll << p};
    bits_add(k->g, t, x->n, x->lo - lo, width, out);
}

static Ref greater(Block *k, const Ref *a, const Ref *b, uint32_t n)
{
    Ref g = FALSE_REF;
    for (uint32_t i = 0; i < n; i++) g = bits_mux(k->g, bits_xor(k->g, a[i], b[i]), a[i], g);
    return g;
}

typedef struct {
    Ref score[64], number[32];
} Contender;

/* The better of the two, the first where they are alike. */
static void match(Block *k, Contender *first, const Contender *second, uint32_t width)
{
    Ref better = greater(k, second->score, first->score, width);
    for (uint32_t b = 0; b < width; b++) first->score[b] = bits_mux(k->g, better, second->score[b], first->score[b]);
    for (uint32_t b = 0; b < k->s->kind_bits; b++) first->number[b] = bits_mux(k->g, better, second->number[b], first->number[b]);
}

/* Those that may have the greatest score, in order. */
static uint32_t contenders(Block *k, const Int *score, int64_t lo, uint32_t width, Contender *out)
{
    const Slice *s = k->s;
    int64_t floor = INT64_MIN; /* some earlier kind has at least this */
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->m->nkinds; i++) {
        if (i && score[i].hi <= floor) continue;
        rebase(k, &score[i], lo, width, out[n].score);
        for (uint32_t b = 0; b < s->kind_bits; b++) out[n].number[b] = i >> b & 1 ? TRUE_REF : FALSE_REF;
        n++;
        if (score[i].lo > floor) floor = score[i].lo;
    }
    return n;
}

/* The first of the greatest scores: planes of its kind's number. In rounds, each between neighbours: few operations one after the other. */
static void best_kind(Block *k, const Int *score, Ref *number)
{
    const Slice *s = k->s;
    int64_t lo = INT64_MAX, hi = INT64_MIN;
    for (uint32_t i = 0; i < s->m->nkinds; i++) {
        if (score[i].lo < lo) lo = score[i].lo;
        if (score[i].hi > hi) hi = score[i].hi;
    }
    uint32_t width = bits_width((uint64_t)(hi - lo));
    Contender *all = pool_array(k->pool, s->m->nkinds, sizeof *all);
    uint32_t n = contenders(k, score, lo, width, all);
    for (uint32_t step = 1; step < n; step *= 2)
        for (uint32_t i = 0; i + step < n; i += 2 * step) match(k, &all[i], &all[i + step], width);
    const Ref *best = all->score;
    memcpy(number, all->number, s->kind_bits * sizeof *number);
    if (s->m->end < s->m->geo.vocab && lo < 0) { /* an unused row, whose logit is 0, must not win */
        Ref zero[64];
        for (uint32_t b = 0; b < width; b++) zero[b] = (uint64_t)-lo >> b & 1 ? TRUE_REF : FALSE_REF;
        Ref below = greater(k, zero, best, width);
        if (below != FALSE_REF) vec_push(&k->check, ((CheckNode){below, CHECK_FATAL, 0, "an unused row of the vocabulary won"}));
    }
}

static void head_goals(Block *k, const Ref *number, const Code *code)
{
    Slice *s = k->s;
    const Model *m = s->m;
    Ref payload[32] = {0}, special = FALSE_REF, retired = FALSE_REF, *of_code = pool_array(k->pool, m->nkinds, sizeof *of_code);
    for (uint32_t i = 0; i < m->nkinds; i++) {
        Ref mine = TRUE_REF;
        for (uint32_t b = 0; b < s->kind_bits; b++) mine = bits_and(k->g, mine, number[b] ^ !(i >> b & 1));
        of_code[s->code_of[i]] = bits_or(k->g, of_code[s->code_of[i]], mine);
        if (m->kind[i].role != CHIP_TRACE) special = bits_or(k->g, special, mine);
        if (m->kind[i].retire) retired = bits_or(k->g, retired, mine);
    }
    for (uint32_t i = 0; i < m->nkinds; i++)
        for (uint32_t b = 0; s->code_of[i] == i && b < m->kind[i].width; b++)
            payload[b] = bits_or(k->g, payload[b], bits_and(k->g, of_code[i], code[i].payload[b]));
    for (uint32_t b = 0; b < s->kind_bits; b++) vec_push(&k->goal, ((BitGoal){number[b], s->token_out[b]}));
    for (uint32_t b = 0; b < s->payload_bits; b++) vec_push(&k->goal, ((BitGoal){payload[b], s->token_out[s->kind_bits + b]}));
    vec_push(&k->goal, ((BitGoal){special, s->special}));
    vec_push(&k->goal, ((BitGoal){retired, s->retired}));
}

bool slice_head(Block *k)
{
    Slice *s = k->s;
    const Model *m = s->m;
    double unit = head_unit(s);
    Code *code = pool_array(k->pool, m->nkinds, sizeof *code);
    Int *score = pool_array(k->pool, m->nkinds, sizeof *score);
    Ref number[32];
    bool ok = true;
    for (uint32_t i = 0; ok && i < m->nkinds; i++) {
        if (s->code_of[i] == i) ok = make_code(k, i, unit, &code[i]);
        ok = ok && score_of(k, i, unit, &code[s->code_of[i]], &score[i]);
    }
    if (ok) {
        best_kind(k, score, number);
        head_goals(k, number, code);
    } else k->why = "scores that are no multiples of a unit";
    for (uint32_t i = 0; i < m->nkinds; i++) free(code[i].term.data);
    return ok;
}

