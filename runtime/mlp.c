/* mlp.c: a SwiGLU block of the sparse back end: down(silu(gate) * up), for units whose gate is on.
 *
 * Units whose up form is a constant add fixed amounts to the stream: for an AND those are worked out beforehand; for the
 * members of a sum they depend on the sum alone, so each sum that occurs is worked out once and remembered (the many
 * thresholds of a look-up table mostly cancel, what is left is a change of a few bits). All other units are computed.
 * Nothing is added to the stream before every unit has read it. */
#include "sparse.h"
#include <stdlib.h>

enum { MAX_MEMO = 4096, NONE = 0xffffffff };

/* What is added to the stream: entries [first, first + n) of Mlp.delta (at = channel). */
typedef struct {
    uint32_t first, n;
    uint64_t touched;
} Patch;
typedef struct {
    uint32_t up;          /* form */
    uint32_t first, last; /* entries of Mlp.down */
} Unit;
/* Patches by sum: open addressing; once MAX_MEMO sums have been seen, new ones are not remembered. */
typedef struct {
    uint32_t n, cap;
    float *sum; /* NaN: free */
    Patch *patch;
} Memo;

struct Mlp {
    bool bf16;
    Gates gate;
    Forms up;
    Unit *unit;              /* [units] */
    Entry *down;             /* at = channel */
    Lists units;             /* units of each gate form */
    uint32_t *varying;       /* [forms + 1] into vary: those of them whose up form is not constant */
    uint32_t *vary;
    Patch base;              /* fixed units of constant forms */
    Patch *patch;            /* [forms]: fixed units of an AND when its value is patch_gate, NaN: not worked out yet */
    float *patch_gate;
    Memo *memo;              /* [parts]; cap 0 and n NONE: no fixed units */
    bool *part_varies;       /* [parts] */
    VEC(Entry) delta;
    float *scratch;          /* [hidden] 0 between uses */
    uint32_t *touched_list;
    /* what this token adds */
    Patch *due;
    uint32_t *due_unit;
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

/* Adds what the fixed units of a form give at this gate value to the scratch; returns the new length of the list. */
static uint32_t collect(Mlp *l, uint32_t form, float gate, uint32_t n)
{
    for (uint32_t k = l->units.start[form]; k < l->units.start[form + 1]; k++) {
        uint32_t u = l->units.item[k];
        if (varies(l, u)) continue;
        float p = product(l, gate, l->up.bias[l->unit[u].up]);
        for (uint32_t i = l->unit[u].first; i < l->unit[u].last; i++) {
            l->touched_list[n++] = l->down[i].at;
            l->scratch[l->down[i].at] += l->down[i].w * p;
        }
    }
    return n;
}

/* The scratch as a patch; empties it. */
static Patch make_patch(Mlp *l, uint32_t n)
{
    Patch p = {l->delta.n, 0, 0};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = l->touched_list[i];
        float v = l->scratch[c];
        l->scratch[c] = 0;
        if (v == 0) continue;
        vec_push(&l->delta, ((Entry){c, v}));
        p.touched |= touch_of(c);
    }
    p.n = l->delta.n - p.first;
    return p;
}

static void make_varying(Mlp *l, Pool *p, uint32_t forms, uint32_t units)
{
    uint32_t n = 0;
    l->varying = pool_array(p, (size_t)forms + 1, sizeof *l->varying);
    l->vary = pool_array(p, units, sizeof *l->vary);
    for (uint32_t f = 0; f < forms; f++) {
        l->varying[f] = n;
        for (uint32_t k = l->units.start[f]; k < l->units.start[f + 1]; k++) {
            uint32_t u = l->units.item[k];
            if (varies(l, u)) l->vary[n++] = u;
        }
    }
    l->varying[forms] = n;
}

/* Which members of each part have varying units, and whether any has fixed ones. */
static void make_parts(Mlp *l, Pool *p)
{
    const Gates *g = &l->gate;
    l->memo = pool_array(p, g->nparts, sizeof *l->memo);
    l->part_varies = pool_array(p, g->nparts, sizeof *l->part_varies);
    for (uint32_t i = 0; i < g->nparts; i++) {
        bool fixed = false;
        for (uint32_t k = g->member_start[i]; k < g->member_start[i + 1]; k++) {
            uint32_t f = g->member[k].form, vary = l->varying[f + 1] - l->varying[f];
            l->part_varies[i] |= vary > 0;
            fixed |= vary < l->units.start[f + 1] - l->units.start[f];
        }
        if (!fixed) l->memo[i].n = NONE;
    }
}

static void make_patches(Mlp *l, Pool *p)
{
    const Gates *g = &l->gate;
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->always; i++) n = collect(l, g->on[i], g->value[i], n);
    l->base = make_patch(l, n);
    l->patch = pool_array(p, g->n, sizeof *l->patch);
    l->patch_gate = pool_array(p, g->n, sizeof *l->patch_gate);
    for (uint32_t f = 0; f < g->n; f++) l->patch_gate[f] = NAN;
    l->due = pool_array(p, (size_t)g->n + g->nparts + 1, sizeof *l->due);
}

static void size_scratch(Mlp *l, Pool *p, const Model *m, uint32_t entries)
{
    uint32_t units = m->geo.intermediate;
    l->scratch = pool_array(p, m->geo.hidden, sizeof *l->scratch);
    l->touched_list = pool_array(p, entries + 1, sizeof *l->touched_list);
    l->due_unit = pool_array(p, units, sizeof *l->due_unit);
    l->due_product = pool_array(p, units, sizeof *l->due_product);
}

/* Units whose gate, up or down is all zero do nothing and get no form. */
Mlp *mlp_make(const Model *m, uint32_t layer, const Basis *basis, Pool *p)
{
    const Tensor *t = m->layer[layer].t;
    if (t[T_GATE].fill != 0 || t[T_UP].fill != 0 || t[T_DOWN].fill != 0) return NULL;
    uint32_t units = m->geo.intermediate, *key = xrealloc(NULL, units * sizeof *key);
    Mlp *l = pool_alloc(p, sizeof *l);
    Matrix gate, up;
    Forms f;
    l->bf16 = m->bf16;
    matrix_make(&gate, p, &t[T_GATE], false, NULL);
    matrix_make(&up, p, &t[T_UP], false, NULL);
    forms_init(&f);
    forms_init(&l->up);
    down_columns(l, p, &t[T_DOWN]);
    for (uint32_t u = 0; u < units; u++) {
        uint32_t g = gate.start[u], ng = gate.start[u + 1] - g, w = up.start[u], nw = up.start[u + 1] - w;
        key[u] = NONE;
        if (ng == 0 || nw == 0 || l->unit[u].first == l->unit[u].last) continue;
        key[u] = forms_add(&f, basis, gate.col + g, gate.value + g, ng, 1);
        l->unit[u].up = forms_add(&l->up, basis, up.col + w, up.value + w, nw, 1);
    }
    gates_make(&l->gate, p, &f, m->geo.hidden, true);
    l->units = lists_make(p, key, units, f.n);
    size_scratch(l, p, m, t[T_DOWN].n);
    make_varying(l, p, f.n, units);
    make_parts(l, p);
    make_patches(l, p);
    forms_free(&f);
    free(key);
    return l;
}

void mlp_close(Mlp *l)
{
    if (!l) return;
    for (uint32_t i = 0; i < l->gate.nparts; i++) {
        free(l->memo[i].sum);
        free(l->memo[i].patch);
    }
    gates_close(&l->gate);
    forms_free(&l->up);
    free(l->delta.data);
}

/* ---- one token ---- */
static uint32_t hash_float(float v)
{
    uint32_t u;
    memcpy(&u, &v, 4);
    u *= 0x9e3779b1u;
    return u ^ u >> 15;
}

static uint32_t memo_slot(const Memo *m, float sum)
{
    uint32_t k = hash_float(sum) & (m->cap - 1);
    while (m->sum[k] == m->sum[k] && m->sum[k] != sum) k = (k + 1) & (m->cap - 1);
    return k;
}

static void memo_grow(Memo *m)
{
    Memo old = *m;
    m->cap = old.cap ? old.cap * 4 : 16;
    m->sum = xrealloc(NULL, m->cap * sizeof *m->sum);
    m->patch = xrealloc(NULL, m->cap * sizeof *m->patch);
    for (uint32_t i = 0; i < m->cap; i++) m->sum[i] = NAN;
    for (uint32_t i = 0; i < old.cap; i++) {
        if (old.sum[i] != old.sum[i]) continue;
        uint32_t k = memo_slot(m, old.sum[i]);
        m->sum[k] = old.sum[i];
        m->patch[k] = old.patch[i];
    }
    free(old.sum);
    free(old.patch);
}

static Patch part_patch(Mlp *l, uint32_t part, float sum)
{
    const Gates *g = &l->gate;
    uint32_t n = 0;
    for (uint32_t k = g->member_start[part]; k < g->member_start[part + 1]; k++) {
        float v = sum + g->member[k].bias;
        if (!(v > OFF_BELOW)) break;
        if (v != 0) n = collect(l, g->member[k].form, v, n);
    }
    return make_patch(l, n);
}

/* The patch of a sum; false when it is not remembered and there is no more room. */
static bool recall(Mlp *l, uint32_t part, float sum, Patch *out)
{
    Memo *m = &l->memo[part];
    if (m->cap) {
        uint32_t k = memo_slot(m, sum);
        *out = m->patch[k];
        if (m->sum[k] == sum) return true;
    }
    if (m->n >= MAX_MEMO) return false;
    if (m->n * 2 >= m->cap) memo_grow(m);
    uint32_t k = memo_slot(m, sum);
    m->n++;
    m->sum[k] = sum;
    *out = m->patch[k] = part_patch(l, part, sum);
    return true;
}

static uint32_t compute_unit(Mlp *l, uint32_t unit, float gate, const Stream *s, uint32_t n)
{
    float p = product(l, gate, form_value(&l->up, l->unit[unit].up, s->x));
    l->due_unit[n] = unit;
    l->due_product[n] = p;
    return n + (p != 0);
}

static uint32_t compute_varying(Mlp *l, uint32_t form, float gate, const Stream *s, uint32_t n)
{
    for (uint32_t k = l->varying[form]; k < l->varying[form + 1]; k++) n = compute_unit(l, l->vary[k], gate, s, n);
    return n;
}

static uint32_t compute_fixed(Mlp *l, uint32_t form, float gate, const Stream *s, uint32_t n)
{
    for (uint32_t k = l->units.start[form]; k < l->units.start[form + 1]; k++)
        if (!varies(l, l->units.item[k])) n = compute_unit(l, l->units.item[k], gate, s, n);
    return n;
}

/* Units of a part's members; `fixed`: those with constant up forms as well. */
static uint32_t compute_part(Mlp *l, uint32_t part, float sum, bool fixed, const Stream *s, uint32_t n)
{
    const Gates *g = &l->gate;
    for (uint32_t k = g->member_start[part]; k < g->member_start[part + 1]; k++) {
        float v = sum + g->member[k].bias;
        if (!(v > OFF_BELOW)) break;
        if (v == 0) continue;
        if (fixed) n = compute_fixed(l, g->member[k].form, v, s, n);
        n = compute_varying(l, g->member[k].form, v, s, n);
    }
    return n;
}

static void add_all(const Mlp *l, Stream *s, uint32_t patches, uint32_t units)
{
    for (uint32_t i = 0; i < patches; i++) {
        const Entry *e = l->delta.data + l->due[i].first;
        for (uint32_t k = 0; k < l->due[i].n; k++) s->x[e[k].at] += e[k].w;
        s->touched |= l->due[i].touched;
    }
    for (uint32_t i = 0; i < units; i++) {
        const Unit *u = &l->unit[l->due_unit[i]];
        for (uint32_t k = u->first; k < u->last; k++) stream_put(s, l->down[k].at, l->down[k].w * l->due_product[i]);
    }
    stream_settle(s);
}

void mlp_step(Mlp *l, Stream *s)
{
    Gates *g = &l->gate;
    uint32_t patches = 0, units = 0, n = gates_ands(g, s);
    if (l->base.n) l->due[patches++] = l->base;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t form = g->on[i];
        units = compute_varying(l, form, g->value[i], s, units);
        if (i < g->always) continue;
        if (l->patch_gate[form] != l->patch_gate[form]) {
            l->patch_gate[form] = g->value[i];
            l->patch[form] = make_patch(l, collect(l, form, g->value[i], 0));
        }
        if (l->patch_gate[form] != g->value[i]) units = compute_fixed(l, form, g->value[i], s, units);
        else if (l->patch[form].n) l->due[patches++] = l->patch[form];
    }
    n = gates_sums(g, s);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t part = g->part[i];
        bool known = l->memo[part].n == NONE || recall(l, part, g->sum[i], &l->due[patches]);
        if (known && l->memo[part].n != NONE) patches++;
        if (!known || l->part_varies[part]) units = compute_part(l, part, g->sum[i], !known, s, units);
    }
    add_all(l, s, patches, units);
}
