/* mlp.c: a SwiGLU block of the sparse back end: down(silu(gate) * up), for units whose gate is on.
 *
 * Units whose gate is constant and whose up form is not are linear, and become one sparse matrix by input channel. Of the
 * others, those with few inputs are look-up tables (lut.c); those whose gate is an AND or a constant and whose up form is
 * constant add fixed amounts, worked out once (a patch). What is left is computed. Nothing is added to the stream before
 * every unit has read it. */
#include "sparse.h"
#include <stdlib.h>

enum { NONE = 0xffffffff };

typedef struct {
    uint32_t gate, up;    /* forms; gate is a number in Mlp.all */
    uint32_t first, last; /* entries of Mlp.down */
} Unit;

/* What the fixed units of an AND add when its value is `gate` (NaN: not worked out yet). */
typedef struct {
    const Entry *e;
    uint32_t n;
    float gate;
} __attribute__((aligned(16))) Fixed;

struct Mlp {
    bool bf16;
    Pool *pool;
    Forms all, up;       /* different gate and up forms */
    Unit *unit;          /* [units] */
    Entry *down;         /* by unit; at = channel */
    Luts *luts;
    Patch *linear;       /* [hidden] what a channel of value 1 adds through the linear units */
    uint64_t *linear_used; /* [hidden / 64] */
    uint32_t linear_words; /* words of it that matter */
    Patch linear_base;   /* what their biases add */
    Gates gate;          /* of units that are in no table */
    Lists units;         /* units of each gate form */
    uint32_t *varying;   /* [forms + 1] into vary: those of them whose up form is not constant */
    uint32_t *vary;
    Patch base;          /* fixed units of constant forms */
    Fixed *fixed;        /* [forms] what the fixed units of an AND add */
    float *scratch;      /* [hidden] 0 between uses */
    uint32_t *list;      /* channels that the scratch holds, some perhaps twice */
    Entries flushed;     /* scratch of make_patch */
    Entry *next;         /* where the next patch's entries go */
    uint32_t room;
    /* what this token adds: patches, times `scale` for linear ones; units */
    Patch *due;
    float *due_scale;
    uint32_t ndue, nscaled; /* the first nscaled of due have a scale */
    uint32_t nunits, *due_unit;
    float *due_product;
};

/* ---- opening ---- */
static void down_columns(Mlp *l, Pool *p, const Tensor *down)
{
    uint32_t units = down->cols, at = 0;
    l->unit = pool_array(p, units, sizeof *l->unit);
    l->down = pool_array(p, down->n, sizeof *l->down);
    for (uint32_t i = 0; i < down->n; i++) l->unit[down->col[i]].last++;
    for (uint32_t u = 0; u < units; u++) {
        uint32_t n = l->unit[u].last;
        l->unit[u].first = l->unit[u].last = at;
        at += n;
    }
    for (uint32_t i = 0; i < down->n; i++) l->down[l->unit[down->col[i]].last++] = (Entry){(uint32_t)down->row[i], down->value[i]};
}

static bool varies(const Mlp *l, uint32_t unit) { return l->up.start[l->unit[unit].up] != l->up.start[l->unit[unit].up + 1]; }

static float product(const Mlp *l, float gate, float up)
{
    return cast(l->bf16, cast(l->bf16, siluf(cast(l->bf16, gate))) * cast(l->bf16, up));
}

/* Adds what a unit gives at this gate value to the scratch; returns the new length of the list. */
static uint32_t collect(Mlp *l, uint32_t unit, float gate, float up, uint32_t n)
{
    float p = product(l, gate, up);
    for (uint32_t i = l->unit[unit].first; i < l->unit[unit].last; i++) {
        l->list[n++] = l->down[i].at;
        l->scratch[l->down[i].at] += l->down[i].w * p;
    }
    return n;
}

static uint32_t collect_fixed(Mlp *l, uint32_t form, float gate, uint32_t n)
{
    for (uint32_t k = l->units.start[form]; k < l->units.start[form + 1]; k++) {
        uint32_t u = l->units.item[k];
        if (!varies(l, u)) n = collect(l, u, gate, l->up.bias[l->unit[u].up], n);
    }
    return n;
}

/* Appends what the scratch holds to `out`, and empties it. */
static void flush(Mlp *l, uint32_t n, Entries *out)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = l->list[i];
        if (l->scratch[c] == 0) continue;
        vec_push(out, ((Entry){c, l->scratch[c]}));
        l->scratch[c] = 0;
    }
}

/* Room for n entries that stays where it is; neighbours in time are neighbours in memory. */
static Entry *keep(Mlp *l, const Entry *e, uint32_t n)
{
    enum { CHUNK = 2048 };
    if (l->room < n) {
        l->room = n > CHUNK ? n : CHUNK;
        l->next = pool_array(l->pool, l->room, sizeof *l->next);
    }
    Entry *out = l->next;
    memcpy(out, e, n * sizeof *e);
    l->next += n;
    l->room -= n;
    return out;
}

static Patch make_patch(Mlp *l, uint32_t n)
{
    Patch p = {0};
    l->flushed.n = 0;
    flush(l, n, &l->flushed);
    if (!l->flushed.n) return p;
    p.n = l->flushed.n;
    p.e = keep(l, l->flushed.data, p.n);
    return p;
}

static void make_varying(Mlp *l, Pool *p, uint32_t forms, uint32_t units)
{
    uint32_t n = 0;
    l->varying = pool_array(p, (size_t)forms + 1, sizeof *l->varying);
    l->vary = pool_array(p, units, sizeof *l->vary);
    for (uint32_t f = 0; f < forms; f++) {
        l->varying[f] = n;
        for (uint32_t k = l->units.start[f]; k < l->units.start[f + 1]; k++)
            if (varies(l, l->units.item[k])) l->vary[n++] = l->units.item[k];
    }
    l->varying[forms] = n;
}

static void make_patches(Mlp *l, Pool *p, uint32_t hidden)
{
    const Gates *g = &l->gate;
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->always; i++) n = collect_fixed(l, g->on[i], g->value[i], n);
    l->base = make_patch(l, n);
    l->fixed = pool_array(p, g->n, sizeof *l->fixed);
    for (uint32_t f = 0; f < g->n; f++) l->fixed[f].gate = NAN;
    l->due = pool_array(p, (size_t)g->n + luts_most(l->luts) + hidden + 2, sizeof *l->due);
    l->due_scale = pool_array(p, hidden, sizeof *l->due_scale);
}

static void size_scratch(Mlp *l, Pool *p, const Model *m, uint32_t entries)
{
    uint32_t units = m->geo.intermediate;
    l->scratch = pool_array(p, m->geo.hidden, sizeof *l->scratch);
    l->list = pool_array(p, (size_t)entries + 1, sizeof *l->list);
    l->due_unit = pool_array(p, (size_t)units + 1, sizeof *l->due_unit);
    l->due_product = pool_array(p, (size_t)units + 1, sizeof *l->due_product);
}

/* ---- opening: linear units ---- */
typedef struct {
    uint32_t in, out;
    float w;
} LinearEntry;
typedef VEC(LinearEntry) LinearEntries;

static int by_in_then_out(const void *a, const void *b)
{
    const LinearEntry *x = a, *y = b;
    if (x->in != y->in) return x->in < y->in ? -1 : 1;
    return x->out < y->out ? -1 : x->out > y->out;
}

/* A unit of constant gate, which scales by a power of two so that it does not matter what is multiplied first. */
static bool is_linear(const Mlp *l, uint32_t gate, uint32_t up)
{
    int e;
    bool constant = l->all.start[gate] == l->all.start[gate + 1], varying = l->up.start[up] != l->up.start[up + 1];
    return constant && varying && fabsf(frexpf(product(l, l->all.bias[gate], 1), &e)) == 0.5f;
}

static uint32_t take_linear(Mlp *l, LinearEntries *list, uint32_t unit, uint32_t n)
{
    const Unit *u = &l->unit[unit];
    float g = product(l, l->all.bias[u->gate], 1);
    for (uint32_t k = l->up.start[u->up]; k < l->up.start[u->up + 1]; k++)
        for (uint32_t i = u->first; i < u->last; i++)
            vec_push(list, ((LinearEntry){l->up.e.data[k].at, l->down[i].at, g * l->up.e.data[k].w * l->down[i].w}));
    return collect(l, unit, l->all.bias[u->gate], l->up.bias[u->up], n);
}

static void finish_linear(Mlp *l, LinearEntries *list, uint32_t hidden, uint32_t base)
{
    l->linear_base = make_patch(l, base);
    l->linear = pool_array(l->pool, hidden, sizeof *l->linear);
    l->linear_used = pool_array(l->pool, hidden / 64 + 1, sizeof *l->linear_used);
    if (list->n) qsort(list->data, list->n, sizeof *list->data, by_in_then_out);
    for (uint32_t i = 0, end; i < list->n; i = end) {
        uint32_t in = list->data[i].in, n = 0;
        for (end = i; end < list->n && list->data[end].in == in; end++) {}
        Entry *e = pool_array(l->pool, end - i, sizeof *e);
        Patch *p = &l->linear[in];
        for (uint32_t k = i; k < end; k++) {
            if (n == 0 || e[n - 1].at != list->data[k].out) e[n++] = (Entry){list->data[k].out, 0};
            e[n - 1].w += list->data[k].w;
        }
        p->e = e;
        p->n = n;
        l->linear_used[in >> 6] |= 1ull << (in & 63);
        l->linear_words = in / 64 + 1;
    }
    free(list->data);
}

typedef enum { LINEAR, TABLED, ANDED, OTHER } Place;

static Place place_of(const Mlp *l, uint32_t gate, uint32_t up)
{
    float value;
    if (is_linear(l, gate, up)) return LINEAR;
    if (form_is_and(&l->all, gate, true, &value)) return ANDED;
    return lut_fits(&l->all, gate, &l->up, up) ? TABLED : OTHER;
}

/* ANDs over the channels of a class of units in tables join it; so do ANDs of which many have the same few channels, a decoder. */
static void share_tables(Mlp *l, uint32_t *key, uint32_t units)
{
    for (uint32_t u = 0; u < units; u++) {
        if (key[u] == NONE || !lut_fits(&l->all, key[u], &l->up, l->unit[u].up)) continue;
        if (luts_share(l->luts, u, &l->all, key[u], &l->up, l->unit[u].up)) key[u] = NONE;
    }
}

/* Every unit into the linear matrix, a table, or the gates under key[unit]. An AND goes into a table when that costs nothing. */
static void place_units(Mlp *l, Forms *f, uint32_t *key, uint32_t units, uint32_t hidden)
{
    LinearEntries linear = {0};
    uint32_t base = 0;
    for (uint32_t u = 0; u < units; u++) {
        if (key[u] == NONE) continue;
        l->unit[u].gate = key[u];
        Place place = place_of(l, key[u], l->unit[u].up);
        if (place == LINEAR) base = take_linear(l, &linear, u, base);
        if (place == TABLED) luts_take(l->luts, u, &l->all, key[u], &l->up, l->unit[u].up);
        if (place == LINEAR || place == TABLED) key[u] = NONE;
    }
    share_tables(l, key, units);
    for (uint32_t u = 0; u < units; u++)
        if (key[u] != NONE) key[u] = forms_add_form(f, &l->all, key[u]);
    finish_linear(l, &linear, hidden, base);
    luts_finish(l->luts);
}

/* Units whose gate, up or down is all zero do nothing and get no form. */
static void read_units(Mlp *l, const Model *m, const Tensor *t, const Basis *basis, uint32_t *key)
{
    Matrix gate, up;
    matrix_make(&gate, l->pool, &t[T_GATE], false, NULL);
    matrix_make(&up, l->pool, &t[T_UP], false, NULL);
    for (uint32_t u = 0; u < m->geo.intermediate; u++) {
        uint32_t g = gate.start[u], ng = gate.start[u + 1] - g, w = up.start[u], nw = up.start[u + 1] - w;
        key[u] = NONE;
        if (ng == 0 || nw == 0 || l->unit[u].first == l->unit[u].last) continue;
        key[u] = forms_add(&l->all, basis, gate.col + g, gate.value + g, ng, 1);
        l->unit[u].up = forms_add(&l->up, basis, up.col + w, up.value + w, nw, 1);
    }
}

Mlp *mlp_make(const Model *m, uint32_t layer, const Basis *basis, Pool *p)
{
    const Tensor *t = m->layer[layer].t;
    if (t[T_GATE].fill != 0 || t[T_UP].fill != 0 || t[T_DOWN].fill != 0) return NULL;
    uint32_t units = m->geo.intermediate, *key = xrealloc(NULL, units * sizeof *key);
    Mlp *l = pool_alloc(p, sizeof *l);
    Forms f;
    l->bf16 = m->bf16;
    l->pool = p;
    l->luts = luts_make(l, p, m->geo.hidden);
    forms_init(&f);
    forms_init(&l->all);
    forms_init(&l->up);
    down_columns(l, p, &t[T_DOWN]);
    size_scratch(l, p, m, t[T_DOWN].n);
    read_units(l, m, t, basis, key);
    place_units(l, &f, key, units, m->geo.hidden);
    gates_make(&l->gate, p, &f, m->geo.hidden, true);
    l->units = lists_make(p, key, units, f.n);
    make_varying(l, p, f.n, units);
    make_patches(l, p, m->geo.hidden);
    forms_free(&f);
    free(key);
    return l;
}

void mlp_close(Mlp *l)
{
    if (!l) return;
    luts_close(l->luts);
    free(l->flushed.data);
    gates_close(&l->gate);
    forms_free(&l->all);
    forms_free(&l->up);
}

/* ---- one token ---- */
void mlp_patch(Mlp *l, const uint32_t *unit, uint32_t units, const Stream *s, Entries *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < units; i++) {
        const Unit *u = &l->unit[unit[i]];
        float gate = form_value(&l->all, u->gate, s->x);
        if (gate_on(gate, true)) n = collect(l, unit[i], gate, form_value(&l->up, u->up, s->x), n);
    }
    flush(l, n, out);
}

static void compute_unit(Mlp *l, uint32_t unit, float gate, const Stream *s)
{
    float p = product(l, gate, form_value(&l->up, l->unit[unit].up, s->x));
    l->due_unit[l->nunits] = unit;
    l->due_product[l->nunits] = p;
    l->nunits += p != 0;
}

void mlp_compute(Mlp *l, const uint32_t *unit, uint32_t units, const Stream *s)
{
    for (uint32_t i = 0; i < units; i++) {
        float gate = form_value(&l->all, l->unit[unit[i]].gate, s->x);
        if (gate_on(gate, true)) compute_unit(l, unit[i], gate, s);
    }
}

static void compute_fixed(Mlp *l, uint32_t form, float gate, const Stream *s)
{
    for (uint32_t k = l->units.start[form]; k < l->units.start[form + 1]; k++)
        if (!varies(l, l->units.item[k])) compute_unit(l, l->units.item[k], gate, s);
}

static void compute_varying(Mlp *l, uint32_t form, float gate, const Stream *s)
{
    for (uint32_t k = l->varying[form]; k < l->varying[form + 1]; k++) compute_unit(l, l->vary[k], gate, s);
}

static void eval_linear(Mlp *l, const Stream *s)
{
    for (uint32_t w = 0; w < l->linear_words; w++)
        for (uint64_t bits = s->live[w] & l->linear_used[w]; bits; bits &= bits - 1) {
            uint32_t c = w * 64 + (uint32_t)__builtin_ctzll(bits);
            l->due_scale[l->ndue] = s->x[c];
            l->due[l->ndue++] = l->linear[c];
        }
    l->nscaled = l->ndue;
}

/* An AND whose patch has not been worked out for this value. */
static void new_fixed(Mlp *l, uint32_t form, float gate, const Stream *s)
{
    Fixed *f = &l->fixed[form];
    if (f->gate == f->gate) { /* a channel is no bit, for once */
        compute_fixed(l, form, gate, s);
        return;
    }
    Patch p = make_patch(l, collect_fixed(l, form, gate, 0));
    *f = (Fixed){p.e, p.n, gate};
    if (p.n) l->due[l->ndue++] = p;
}

static void eval_ands(Mlp *l, const Stream *s)
{
    Gates *g = &l->gate;
    uint32_t n = gates_ands(g, s);
    if (l->varying[g->n])
        for (uint32_t i = 0; i < n; i++) compute_varying(l, g->on[i], g->value[i], s);
    for (uint32_t i = g->always; i < n; i++) __builtin_prefetch(&l->fixed[g->on[i]]);
    for (uint32_t i = g->always; i < n; i++) {
        const Fixed *f = &l->fixed[g->on[i]];
        __builtin_prefetch(f->e);
        if (f->gate != g->value[i]) {
            new_fixed(l, g->on[i], g->value[i], s);
            continue;
        }
        l->due[l->ndue] = (Patch){f->e, f->n};
        l->ndue += f->n != 0;
    }
}

static void eval_sums(Mlp *l, const Stream *s)
{
    const Gates *g = &l->gate;
    uint32_t n = gates_sums(&l->gate, s);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = g->member_start[g->part[i]]; k < g->member_start[g->part[i] + 1]; k++) {
            float v = g->sum[i] + g->member[k].bias;
            if (!(v > OFF_BELOW)) break;
            if (v == 0) continue;
            compute_fixed(l, g->member[k].form, v, s);
            compute_varying(l, g->member[k].form, v, s);
        }
}

static void add_all(const Mlp *l, Stream *s)
{
    for (uint32_t i = 0; i < l->nscaled; i++)
        for (uint32_t k = 0; k < l->due[i].n; k++) stream_put(s, l->due[i].e[k].at, l->due[i].e[k].w * l->due_scale[i]);
    for (uint32_t i = l->nscaled; i < l->ndue; i++)
        for (const Entry *e = l->due[i].e, *end = e + l->due[i].n; e < end; e++) stream_put(s, e->at, e->w);
    for (uint32_t i = 0; i < l->nunits; i++) {
        const Unit *u = &l->unit[l->due_unit[i]];
        for (uint32_t k = u->first; k < u->last; k++) stream_put(s, l->down[k].at, l->down[k].w * l->due_product[i]);
    }
    stream_settle(s);
}

void mlp_step(Mlp *l, Stream *s)
{
    l->nunits = l->ndue = 0;
    eval_linear(l, s);
    if (l->base.n) l->due[l->ndue++] = l->base;
    if (l->linear_base.n) l->due[l->ndue++] = l->linear_base;
    l->ndue = luts_eval(l->luts, s, l->due, l->ndue);
    eval_ands(l, s);
    eval_sums(l, s);
    add_all(l, s);
}
