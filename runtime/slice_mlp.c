/* slice_mlp.c: a SwiGLU block, down(silu(gate) * up), as logic.
 *
 * A gate's form is guards and a rest: a guard is a channel of one plane whose wrong value turns the gate off whatever the rest is. So a gate is an AND
 * of guards times a function of the rest's sum (a gate that is nothing but guards is a plain AND). Gates with the same guards and the same rest, up
 * to bias and scale, share one sum, and what all of them together add to a channel is one table over it: the many units of a look-up or of a guarded
 * step (differences of ramps) become the few gates of the function itself. Where the up form varies that is multiplied by its planes. */
#include "slice.h"
#include <stdlib.h>

enum { NONE = 0xffffffff };

/* Unit `unit` adds w * silu(gate) * up to `channel`. */
typedef struct {
    uint32_t channel, unit;
    float w;
} Output;

struct SliceMlp {
    Forms gate, up;
    uint32_t *gate_of, *up_of; /* [units] forms, or NONE */
    uint32_t hidden;
    Basis plain;            /* channels as they are */
    Output *out;            /* [nout] by channel, then unit */
    uint32_t nout;
    uint32_t *rank;         /* [hidden] how many gate forms use the channel */
};

static int by_channel(const void *p, const void *q)
{
    const Output *x = p, *y = q;
    if (x->channel != y->channel) return x->channel < y->channel ? -1 : 1;
    return x->unit < y->unit ? -1 : x->unit > y->unit;
}

static bool constant_form(const Forms *f, uint32_t i) { return f->start[i] == f->start[i + 1]; }

static void read_units(SliceMlp *l, const Model *m, const Tensor *t, const Basis *basis, Pool *p)
{
    Matrix gate, up;
    matrix_make(&gate, p, &t[T_GATE], false, NULL);
    matrix_make(&up, p, &t[T_UP], false, NULL);
    for (uint32_t u = 0; u < m->geo.intermediate; u++) {
        uint32_t g = gate.start[u], ng = gate.start[u + 1] - g, w = up.start[u], nw = up.start[u + 1] - w;
        l->gate_of[u] = NONE;
        if (ng == 0 || nw == 0) continue;
        l->gate_of[u] = forms_add(&l->gate, basis, gate.col + g, gate.value + g, ng, 1);
        l->up_of[u] = forms_add(&l->up, basis, up.col + w, up.value + w, nw, 1);
    }
}

static Basis plain_basis(uint32_t hidden, Pool *p)
{
    float *gain = pool_array(p, hidden, sizeof *gain);
    for (uint32_t c = 0; c < hidden; c++) gain[c] = 1;
    return (Basis){pool_array(p, hidden, sizeof(float)), gain};
}

SliceMlp *slice_mlp_make(const Model *m, uint32_t layer, const Basis *basis, Pool *p, const char **why)
{
    const Tensor *t = m->layer[layer].t;
    SliceMlp *l = pool_alloc(p, sizeof *l);
    if (t[T_GATE].fill != 0 || t[T_UP].fill != 0 || t[T_DOWN].fill != 0) {
        *why = "a full MLP matrix";
        return NULL;
    }
    forms_init(&l->gate);
    forms_init(&l->up);
    l->gate_of = pool_array(p, m->geo.intermediate, sizeof *l->gate_of);
    l->up_of = pool_array(p, m->geo.intermediate, sizeof *l->up_of);
    read_units(l, m, t, basis, p);
    l->hidden = m->geo.hidden;
    l->plain = plain_basis(l->hidden, p);
    l->rank = pool_array(p, m->geo.hidden, sizeof *l->rank);
    for (uint32_t i = 0; i < l->gate.e.n; i++) l->rank[l->gate.e.data[i].at]++;
    l->out = pool_array(p, t[T_DOWN].n, sizeof *l->out);
    for (uint32_t i = 0; i < t[T_DOWN].n; i++)
        if (l->gate_of[t[T_DOWN].col[i]] != NONE) l->out[l->nout++] = (Output){(uint32_t)t[T_DOWN].row[i], (uint32_t)t[T_DOWN].col[i], t[T_DOWN].value[i]};
    if (l->nout) qsort(l->out, l->nout, sizeof *l->out, by_channel);
    return l;
}

void slice_mlp_close(SliceMlp *l)
{
    if (!l) return;
    forms_free(&l->gate);
    forms_free(&l->up);
}

void slice_mlp_uses(const SliceMlp *l, bool *used)
{
    for (uint32_t i = 0; i < l->gate.e.n; i++) used[l->gate.e.data[i].at] = true;
    for (uint32_t i = 0; i < l->up.e.n; i++) used[l->up.e.data[i].at] = true;
    for (uint32_t i = 0; i < l->nout; i++) used[l->out[i].channel] = true;
}

/* ---- compilation ---- */
typedef struct {
    bool known, dead;      /* dead: always off */
    uint32_t nguards;
    Entry *guard;          /* those that are no constants here */
    Ref on;                /* all guards hold */
    uint32_t part;         /* of the rest, NONE when there is none */
    double scale, bias;    /* value = scale * part + bias when the guards hold */
    float *silu;           /* [size of the part's table]; one element when there is no part */
} Gate;

/* What is added where guards, the rest's sum and the up form are the same: guards * table's value * up form (NONE: 1). Linear: no gate. */
typedef struct {
    uint32_t gate, up; /* gate: the first such form; NONE: linear */
    double coef;       /* linear */
    double *table;
} Adder;

typedef struct {
    SliceMlp *l;
    Block *k;
    Forms part;
    Gate *gate;   /* [gate forms] */
    bool *varies; /* by entry of the gate forms */
    VEC(Table) table;
    VEC(Adder) adder;
    double constant;
    Sum sum;
    uint32_t channel; /* whose sum it is */
    bool trim;        /* ends of tables are taken not to occur */
} Maker;

static bool off(double v) { return v <= (double)OFF_BELOW || v == 0; }

/* The form's greatest value. */
static double greatest(const Maker *mk, uint32_t form)
{
    const Forms *f = &mk->l->gate;
    double top = (double)f->bias[form];
    for (uint32_t e = f->start[form]; e < f->start[form + 1]; e++) {
        const Int *x = channel_int(mk->k->x, f->e.data[e].at);
        top += (double)f->e.data[e].w * (double)(f->e.data[e].w > 0 ? x->hi : x->lo);
    }
    return top;
}

/* The rest of a form as a part in units of its weights. */
static void set_part(Maker *mk, Gate *g, const Entry *rest, uint32_t n)
{
    int32_t *col = xrealloc(NULL, (n + 1) * sizeof *col);
    float *w = xrealloc(NULL, (n + 1) * sizeof *w);
    g->scale = form_unit(rest, n) * (rest->w < 0 ? -1 : 1);
    for (uint32_t i = 0; i < n; i++) col[i] = (int32_t)rest[i].at, w[i] = (float)((double)rest[i].w / g->scale);
    g->part = forms_add(&mk->part, &mk->l->plain, col, w, n, 1);
    free(col);
    free(w);
}

/* Which channels may be guards: none, those that `varies` names, any. */
typedef enum { GUARD_NONE, GUARD_VARYING, GUARD_ANY } GuardChoice;

static void split_gate(Maker *mk, uint32_t form, GuardChoice choice)
{
    const Forms *f = &mk->l->gate;
    Gate *g = &mk->gate[form];
    uint32_t n = f->start[form + 1] - f->start[form], nrest = 0;
    double top = greatest(mk, form);
    Entry *rest = xrealloc(NULL, (n + 1) * sizeof *rest);
    *g = (Gate){.known = true, .dead = off(top) || top < 0, .part = NONE, .bias = (double)f->bias[form], .on = TRUE_REF};
    g->guard = pool_array(mk->k->pool, n, sizeof *g->guard);
    for (uint32_t i = 0; i < n; i++) {
        Entry e = f->e.data[f->start[form] + i];
        const Int *x = channel_int(mk->k->x, e.at);
        double w = (double)e.w;
        bool may = choice == GUARD_ANY || (choice == GUARD_VARYING && mk->varies[f->start[form] + i]);
        if (x->n == 0) g->bias += w * (double)x->lo;
        else if (may && x->n == 1 && x->hi > x->lo && off(top - fabs(w))) {
            g->bias += w * (double)(w > 0 ? x->hi : x->lo);
            g->guard[g->nguards++] = e;
        } else rest[nrest++] = e;
    }
    if (nrest) set_part(mk, g, rest, nrest);
    free(rest);
}

/* All weights are the same but for signs. */
static bool plain_and(const Forms *f, uint32_t form)
{
    for (uint32_t e = f->start[form] + 1; e < f->start[form + 1]; e++)
        if (fabsf(f->e.data[e].w) != fabsf(f->e.data[e - 1].w)) return false;
    return true;
}

static const Forms *sorting;
static int by_channels(const void *p, const void *q)
{
    uint32_t i = *(const uint32_t *)p, j = *(const uint32_t *)q, n = sorting->start[i + 1] - sorting->start[i], m = sorting->start[j + 1] - sorting->start[j];
    if (n != m) return n < m ? -1 : 1;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t x = sorting->e.data[sorting->start[i] + k].at, y = sorting->e.data[sorting->start[j] + k].at;
        if (x != y) return x < y ? -1 : 1;
    }
    return (int)plain_and(sorting, i) - (int)plain_and(sorting, j);
}

static float least_weight(const Forms *f, uint32_t form)
{
    float least = INFINITY;
    for (uint32_t e = f->start[form]; e < f->start[form + 1]; e++)
        if (fabsf(f->e.data[e].w) < least) least = fabsf(f->e.data[e].w);
    return least;
}

/* Channels whose weight, in units of the form's least, is not the same in all forms over the same channels: the guards of a guarded look-up, whose
 * weights depend on the threshold. Plain ANDs of those channels say nothing of them. */
static void find_varying(Maker *mk, uint32_t *order)
{
    const Forms *f = &mk->l->gate;
    sorting = f;
    if (f->n) qsort(order, f->n, sizeof *order, by_channels);
    for (uint32_t i = 0, end; i < f->n; i = end) {
        uint32_t n = f->start[order[i] + 1] - f->start[order[i]];
        for (end = i + 1; end < f->n && by_channels(&order[i], &order[end]) == 0; end++) {}
        for (uint32_t k = 0; k < n; k++) {
            bool same = true;
            float first = fabsf(f->e.data[f->start[order[i]] + k].w) / least_weight(f, order[i]);
            for (uint32_t j = i + 1; j < end; j++) same &= fabsf(f->e.data[f->start[order[j]] + k].w) / least_weight(f, order[j]) == first;
            for (uint32_t j = i; j < end; j++) mk->varies[f->start[order[j]] + k] = !same;
        }
    }
}

/* A gate by what it shares with others: its rest and its guards. */
typedef struct {
    uint32_t part, guards, form;
} Shape;

static int by_shape(const void *p, const void *q)
{
    const Shape *x = p, *y = q;
    if (x->part != y->part) return x->part < y->part ? -1 : 1;
    if (x->guards != y->guards) return x->guards < y->guards ? -1 : 1;
    return x->form < y->form ? -1 : x->form > y->form;
}

static uint32_t guards_hash(const Gate *g)
{
    uint32_t h = g->nguards;
    for (uint32_t i = 0; i < g->nguards; i++) h = (h ^ (g->guard[i].at << 1 | (g->guard[i].w < 0))) * 0x9e3779b1u, h ^= h >> 15;
    return h;
}

/* Tries a choice for the gates that are not `done`; those that then have a rest in common with others, under the same guards, keep it: thresholds of
 * one sum, a look-up, which stay together. */
static void share(Maker *mk, GuardChoice choice, bool *done)
{
    uint32_t n = mk->l->gate.n, count = 0;
    Shape *shape = pool_array(mk->k->pool, n, sizeof *shape);
    for (uint32_t i = 0; i < n; i++) {
        if (done[i]) continue;
        split_gate(mk, i, choice);
        if (mk->gate[i].part != NONE) shape[count++] = (Shape){mk->gate[i].part, guards_hash(&mk->gate[i]), i};
    }
    if (count) qsort(shape, count, sizeof *shape, by_shape);
    for (uint32_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && shape[end].part == shape[i].part && shape[end].guards == shape[i].guards; end++) {}
        for (uint32_t k = i; k < end && end - i > 1; k++) done[shape[k].form] = true;
    }
}

static void split_gates(Maker *mk)
{
    const Forms *f = &mk->l->gate;
    bool *done = pool_array(mk->k->pool, f->n, sizeof *done);
    uint32_t *order = pool_array(mk->k->pool, f->n, sizeof *order);
    for (uint32_t i = 0; i < f->n; i++) order[i] = i, done[i] = constant_form(f, i);
    mk->varies = pool_array(mk->k->pool, f->e.n, sizeof *mk->varies);
    find_varying(mk, order);
    share(mk, GUARD_NONE, done);
    share(mk, GUARD_VARYING, done);
    for (uint32_t i = 0; i < f->n; i++)
        if (!done[i]) split_gate(mk, i, GUARD_ANY);
}

static const uint32_t *sort_rank;
static int by_rank(const void *p, const void *q)
{
    const Entry *x = p, *y = q;
    if (sort_rank[x->at] != sort_rank[y->at]) return sort_rank[x->at] > sort_rank[y->at] ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Guards that many gates have come first, so that the gates share them. */
static Ref guards_hold(Maker *mk, Gate *g)
{
    Ref all = TRUE_REF;
    sort_rank = mk->l->rank;
    if (g->nguards) qsort(g->guard, g->nguards, sizeof *g->guard, by_rank);
    for (uint32_t i = 0; i < g->nguards; i++) {
        Ref bit = channel_int(mk->k->x, g->guard[i].at)->plane[0];
        all = bits_and(mk->k->g, all, g->guard[i].w < 0 ? bits_not(bit) : bit);
    }
    return all;
}

static bool make_table(Maker *mk, uint32_t part)
{
    const Forms *f = &mk->part;
    while (mk->table.n <= part) vec_push(&mk->table, ((Table){0}));
    if (mk->table.data[part].size) return true;
    if (form_table(mk->k, mk->k->x, f->e.data + f->start[part], f->start[part + 1] - f->start[part], 0, &mk->table.data[part])) return true;
    mk->k->why = "a gate's sum is too wide";
    return false;
}

static bool make_gate(Maker *mk, Gate *g)
{
    if (g->silu) return true;
    if (g->part != NONE && !make_table(mk, g->part)) return false;
    const Table *t = g->part != NONE ? &mk->table.data[g->part] : NULL;
    uint32_t size = t ? t->size : 1;
    g->on = guards_hold(mk, g);
    g->silu = pool_array(mk->k->pool, size, sizeof *g->silu);
    for (uint32_t i = 0; i < size; i++) g->silu[i] = siluf((float)((t ? t->value[i] * g->scale : 0) + g->bias));
    return true;
}

static Adder *find_adder(Maker *mk, uint32_t gate, uint32_t up)
{
    for (uint32_t i = 0; i < mk->adder.n; i++) {
        Adder *a = &mk->adder.data[i];
        if (a->up != up || (a->gate == NONE) != (gate == NONE)) continue;
        if (gate == NONE || (mk->gate[a->gate].on == mk->gate[gate].on && mk->gate[a->gate].part == mk->gate[gate].part)) return a;
    }
    Adder a = {gate, up, 0, NULL};
    if (gate != NONE) a.table = pool_array(mk->k->pool, mk->gate[gate].part == NONE ? 1 : mk->table.data[mk->gate[gate].part].size, sizeof *a.table);
    return &mk->adder.data[vec_push(&mk->adder, a)];
}

static bool take_output(Maker *mk, const Output *o)
{
    SliceMlp *l = mk->l;
    uint32_t form = l->gate_of[o->unit], up = l->up_of[o->unit];
    bool fixed = constant_form(&l->up, up);
    double w = (double)o->w * (fixed ? (double)l->up.bias[up] : 1);
    if (constant_form(&l->gate, form)) {
        w *= (double)siluf(l->gate.bias[form]);
        if (fixed) mk->constant += w;
        else find_adder(mk, NONE, up)->coef += w;
        return true;
    }
    Gate *g = &mk->gate[form];
    if (g->dead) return true;
    if (!make_gate(mk, g)) return false;
    Adder *a = find_adder(mk, form, fixed ? NONE : up);
    uint32_t size = g->part == NONE ? 1 : mk->table.data[g->part].size;
    for (uint32_t i = 0; i < size; i++) a->table[i] += w * (double)g->silu[i];
    return true;
}

/* A plain AND as part of a table: its guards are those of the table, and with them each channel of the table's sum, all on one side; so it is on at
 * the table's last index, or at its first. */
static bool and_index(const Maker *mk, const Gate *g, const Gate *b, uint32_t *index)
{
    const Forms *f = &mk->part;
    const Table *t = &mk->table.data[b->part];
    uint32_t first = f->start[b->part], n = f->start[b->part + 1] - first, found = 0, up = 0;
    if (g->nguards != b->nguards + n || !t->summed) return false;
    for (uint32_t i = 0; i < g->nguards; i++) {
        for (uint32_t k = 0; k < b->nguards; k++) found += b->guard[k].at == g->guard[i].at && (b->guard[k].w < 0) == (g->guard[i].w < 0);
        for (uint32_t k = first; k < first + n; k++) {
            if (f->e.data[k].at != g->guard[i].at) continue;
            found++;
            up += (f->e.data[k].w < 0) == (g->guard[i].w < 0);
        }
    }
    *index = up ? t->size - 1 : 0;
    return found == g->nguards && (up == 0 || up == n);
}

/* Plain ANDs go into the tables of which they are a part: the sum's range is then that of the function that was meant. */
static void merge_ands(Maker *mk)
{
    for (uint32_t i = 0; i < mk->adder.n; i++) {
        const Adder *a = &mk->adder.data[i];
        if (a->gate == NONE || mk->gate[a->gate].part != NONE) continue;
        for (uint32_t j = 0; j < mk->adder.n; j++) {
            Adder *b = &mk->adder.data[j];
            uint32_t at;
            if (b->gate == NONE || mk->gate[b->gate].part == NONE || b->up != a->up) continue;
            const Gate *g = &mk->gate[a->gate], *h = &mk->gate[b->gate];
            if (g->on == h->on)
                for (at = 0; at < mk->table.data[h->part].size; at++) b->table[at] += a->table[0];
            else if (and_index(mk, g, h, &at)) b->table[at] += a->table[0];
            else continue;
            mk->adder.data[i--] = mk->adder.data[--mk->adder.n];
            break;
        }
    }
}

static bool not_whole(Maker *mk)
{
    mk->k->why = "a channel is added something that is no integer";
    return false;
}

static void begin_part(Maker *mk) { vec_push(&mk->sum.part, ((Part){.first = mk->sum.term.n, .end = mk->sum.term.n})); }
static Part *this_part(Maker *mk) { return &mk->sum.part.data[mk->sum.part.n - 1]; }

static void add_term(Maker *mk, Ref plane, int64_t w)
{
    if (plane == FALSE_REF || w == 0) return;
    if (plane == TRUE_REF) {
        mk->sum.constant += w;
        return;
    }
    vec_push(&mk->sum.term, ((Term){plane, w}));
    this_part(mk)->end = mk->sum.term.n;
}

/* The range of a part as its terms have it; it goes no further than `least` and `most` from its offset. */
static void end_part(Maker *mk, int64_t offset, int64_t least, int64_t most)
{
    Part *p = this_part(mk);
    for (uint32_t i = p->first; i < p->end; i++) *(mk->sum.term.data[i].w < 0 ? &p->lo : &p->hi) += mk->sum.term.data[i].w;
    if (p->lo < least) p->lo = least;
    if (p->hi > most) p->hi = most;
    p->lo += offset, p->hi += offset, p->offset = offset;
    if (p->first == p->end) mk->sum.part.n--;
}

/* A factor of a product: planes with weights, and a constant; it is in lo .. hi. */
typedef struct {
    double c, lo, hi;
    uint32_t n;
    Ref plane[MAX_PLANES * 4];
    double w[MAX_PLANES * 4];
} Factor;

/* Planes for the table's whole numbers as sign * (value - from), where that is above 0. */
static void table_digits(Maker *mk, const Table *t, const int64_t *v, int64_t from, int sign, int64_t most, double unit, Factor *f)
{
    uint8_t *bit = xrealloc(NULL, t->size);
    for (uint32_t p = 0; most >> p; p++) {
        for (uint32_t i = 0; i < t->size; i++) bit[i] = sign * (v[i] - from) > 0 ? (uint64_t)(sign * (v[i] - from)) >> p & 1 : 0;
        f->plane[f->n] = table_plane(mk->k, t, bit);
        f->w[f->n++] = sign * unit * (double)(1ll << p);
    }
    free(bit);
}

/* A narrow channel that may be below 0, as what is above and what is below. */
static void signed_channel(Maker *mk, const Int *x, double w, Factor *f)
{
    int64_t v[16];
    Table t = {.n = x->n, .size = (uint32_t)(x->hi - x->lo) + 1};
    memcpy(t.in, x->plane, x->n * sizeof *x->plane);
    for (uint32_t i = 0; i < t.size; i++) v[i] = x->lo + i;
    if (x->hi > 0) table_digits(mk, &t, v, 0, 1, x->hi, w, f);
    table_digits(mk, &t, v, 0, -1, -x->lo, w, f);
}

static bool up_factor(Maker *mk, uint32_t up, Factor *f)
{
    const Forms *u = &mk->l->up;
    double bias = up == NONE ? 1 : (double)u->bias[up];
    *f = (Factor){bias, bias, bias, 0, {0}, {0}};
    for (uint32_t e = up == NONE ? 0 : u->start[up]; up != NONE && e < u->start[up + 1]; e++) {
        const Int *x = channel_int(mk->k->x, u->e.data[e].at);
        double w = (double)u->e.data[e].w, far = w * (double)x->lo, near = w * (double)x->hi;
        f->lo += far < near ? far : near;
        f->hi += far < near ? near : far;
        if (f->n + MAX_PLANES > MAX_PLANES * 4) return false;
        if (x->lo < 0 && x->n <= 4) {
            signed_channel(mk, x, w, f);
            continue;
        }
        f->c += far;
        for (uint32_t p = 0; p < x->n; p++) {
            f->plane[f->n] = x->plane[p];
            f->w[f->n++] = w * (double)(1ll << p);
        }
    }
    return true;
}

static double table_unit(const Table *t, const double *value)
{
    double unit = INFINITY;
    int64_t v;
    for (uint32_t i = 0; i < t->size; i++)
        if (fabs(value[i]) > 1e-9 && fabs(value[i]) < unit) unit = fabs(value[i]);
    return unit == INFINITY || (whole(unit, &v) && v > 0) ? 1 : unit;
}

/* Where the straight line ends that the table's values begin with (step: 1) or end with (-1); where they begin level, at once. */
static uint32_t straight(const int64_t *v, uint32_t size, int step)
{
    uint32_t i = step > 0 ? 0 : size - 1, left = size - 2;
    int64_t slope = v[i + (uint32_t)step] - v[i];
    if (slope == 0) return i;
    for (i += (uint32_t)step; left && v[i + (uint32_t)step] - v[i] == slope; left--) i += (uint32_t)step;
    return i;
}

/* The ramps of a table's units go on beyond all that their sum can be, and how far sums go is not known well. So the ends of a table, where they leave the range of
 * what lies between its first and its last line, are taken not to occur. A line that leaves level ground makes its first step: an AND. */
static void find_ends(const int64_t *v, uint32_t size, uint32_t *first, uint32_t *last)
{
    *first = 0, *last = size - 1;
    if (size < 3) return;
    uint32_t from = straight(v, size, 1), to = straight(v, size, -1);
    if (from >= to) return;
    bool rises = to < size - 1 && v[to] == v[to - 1];
    if (from > 0 && v[from] == v[from + 1]) from--;
    if (rises) to++;
    int64_t lo = v[from], hi = v[from];
    for (uint32_t i = from; i <= to; i++) lo = v[i] < lo ? v[i] : lo, hi = v[i] > hi ? v[i] : hi;
    while (from > 0 && v[from - 1] >= lo && v[from - 1] <= hi) from--;
    while (to < size - 1 && v[to + 1] >= lo && v[to + 1] <= hi) to++;
    *first = from, *last = to;
}

static void check_ends(Maker *mk, const Table *t, uint32_t first, uint32_t last)
{
    uint8_t *beyond = xrealloc(NULL, t->size);
    for (uint32_t i = 0; i < t->size; i++) beyond[i] = i < first || i > last;
    Ref r = table_plane(mk->k, t, beyond);
    if (r != FALSE_REF) vec_push(&mk->k->check, ((CheckNode){r, mk->channel, LEVEL_ENDS, "a table's end occurs"}));
    free(beyond);
}

/* The table as unit * whole numbers: what is above 0 and what is below it have planes of their own, so that 0 is no plane at all and guards need no
 * constant; where that takes too many planes, they are of the numbers less the smallest. */
static bool table_factor(Maker *mk, const Table *t, const double *value, Factor *f)
{
    double unit = table_unit(t, value);
    int64_t lo = INT64_MAX, hi = INT64_MIN, *v = xrealloc(NULL, t->size * sizeof *v);
    uint32_t first = 0, last = t->size - 1;
    bool ok = true;
    for (uint32_t i = 0; i < t->size && ok; i++) ok = whole(value[i] / unit, &v[i]);
    if (ok && mk->trim && t->summed) find_ends(v, t->size, &first, &last);
    if (last - first < t->size - 1) check_ends(mk, t, first, last);
    for (uint32_t i = 0; i < t->size && ok; i++) {
        if (i < first) v[i] = v[first];
        if (i > last) v[i] = v[last];
        if (v[i] < lo) lo = v[i];
        if (v[i] > hi) hi = v[i];
    }
    ok = ok && bits_width((uint64_t)(hi - lo)) <= MAX_PLANES;
    f->c = 0;
    f->lo = unit * (double)lo;
    f->hi = unit * (double)hi;
    if (ok && bits_width(hi > 0 ? (uint64_t)hi : 0) + bits_width(lo < 0 ? (uint64_t)-lo : 0) <= bits_width((uint64_t)(hi - lo)) + 1) {
        table_digits(mk, t, v, 0, 1, hi > 0 ? hi : 0, unit, f);
        table_digits(mk, t, v, 0, -1, lo < 0 ? -lo : 0, unit, f);
    } else if (ok) {
        f->c = f->lo;
        table_digits(mk, t, v, lo, 1, hi - lo, unit, f);
    }
    free(v);
    return ok;
}

/* Adds the product of two factors, one of which may have no planes. */
static bool add_product(Maker *mk, const Factor *a, const Factor *b)
{
    int64_t w, offset, least, most;
    double corner[4] = {a->lo * b->lo, a->lo * b->hi, a->hi * b->lo, a->hi * b->hi}, lo = corner[0], hi = corner[0], constant = a->c * b->c;
    for (int i = 1; i < 4; i++) lo = corner[i] < lo ? corner[i] : lo, hi = corner[i] > hi ? corner[i] : hi;
    mk->constant += constant;
    begin_part(mk);
    for (uint32_t i = 0; i < a->n; i++) {
        if (!whole(a->w[i] * b->c, &w)) return not_whole(mk);
        add_term(mk, a->plane[i], w);
        for (uint32_t j = 0; j < b->n; j++) {
            if (!whole(a->w[i] * b->w[j], &w)) return not_whole(mk);
            add_term(mk, bits_and(mk->k->g, a->plane[i], b->plane[j]), w);
        }
    }
    for (uint32_t j = 0; j < b->n; j++) {
        if (!whole(a->c * b->w[j], &w)) return not_whole(mk);
        add_term(mk, b->plane[j], w);
    }
    if (!whole(constant, &offset) || !whole(lo, &least) || !whole(hi, &most)) return not_whole(mk);
    end_part(mk, offset, least - offset, most - offset);
    return true;
}

/* The gate's part of a product: guards times table. */
static bool gate_factor(Maker *mk, const Adder *a, Factor *f)
{
    const Gate *g = &mk->gate[a->gate];
    double v = a->table[0];
    *f = (Factor){v, v, v, 0, {0}, {0}};
    if (g->part != NONE && !table_factor(mk, &mk->table.data[g->part], a->table, f)) return false;
    if (g->on == TRUE_REF) return true;
    for (uint32_t i = 0; i < f->n; i++) f->plane[i] = bits_and(mk->k->g, f->plane[i], g->on);
    if (f->c != 0) {
        f->plane[f->n] = g->on;
        f->w[f->n++] = f->c;
        f->c = 0;
    }
    if (f->lo > 0) f->lo = 0;
    if (f->hi < 0) f->hi = 0;
    return true;
}

/* What a linear part that is one bit needs not to be 0. */
static void linear_literal(Maker *mk, const Adder *a)
{
    const Forms *u = &mk->l->up;
    const Entry *e = &u->e.data[u->start[a->up]];
    if (u->start[a->up + 1] - u->start[a->up] != 1 || u->bias[a->up] != 0 || !is_bit(channel_int(mk->k->x, e->at))) return;
    Entry *is = pool_alloc(mk->k->pool, sizeof *is);
    *is = (Entry){e->at, 1};
    this_part(mk)->literal = is;
    this_part(mk)->literals = 1;
}

static bool finish_adder(Maker *mk, const Adder *a)
{
    Factor up, *gate = xrealloc(NULL, sizeof *gate);
    *gate = (Factor){a->coef, a->coef, a->coef, 0, {0}, {0}};
    bool ok = up_factor(mk, a->up, &up) && (a->gate == NONE || gate_factor(mk, a, gate));
    uint32_t before = mk->sum.part.n;
    if (!ok) not_whole(mk);
    ok = ok && add_product(mk, gate, &up);
    free(gate);
    if (ok && a->gate != NONE && mk->sum.part.n > before) {
        this_part(mk)->literal = mk->gate[a->gate].guard;
        this_part(mk)->literals = mk->gate[a->gate].nguards;
    } else if (ok && a->gate == NONE && mk->sum.part.n > before) linear_literal(mk, a);
    return ok;
}

/* How often the channel's old value is in its new one: once, and what linear units (erasing it, say) add. */
static double self_weight(Maker *mk, uint32_t channel)
{
    double w = 1;
    for (uint32_t i = 0; i < mk->adder.n; i++) {
        Adder *a = &mk->adder.data[i];
        const Forms *u = &mk->l->up;
        if (a->gate != NONE || u->start[a->up + 1] - u->start[a->up] != 1 || u->e.data[u->start[a->up]].at != channel) continue;
        w += a->coef * (double)u->e.data[u->start[a->up]].w;
        mk->constant += a->coef * (double)u->bias[a->up];
        a->coef = 0;
    }
    return w;
}

static bool take_old(Maker *mk, uint32_t channel, const Int **kept)
{
    const Int *x = channel_int(mk->k->x, channel);
    int64_t w;
    if (!whole(self_weight(mk, channel), &w)) return not_whole(mk);
    *kept = w == 1 ? x : NULL;
    if (w == 0) return true;
    int64_t far = w * (x->hi - x->lo);
    mk->constant += (double)(w * x->lo);
    begin_part(mk);
    for (uint32_t p = 0; p < x->n; p++) add_term(mk, x->plane[p], w * (1ll << p));
    end_part(mk, w * x->lo, far < 0 ? far : 0, far > 0 ? far : 0);
    return true;
}

/* A channel that begins as a copy of another goes on as that one's sum does. */
static const Int *copied(Maker *mk)
{
    const Int *x = NULL;
    for (uint32_t i = 0; i < mk->adder.n; i++) {
        const Adder *a = &mk->adder.data[i];
        const Forms *u = &mk->l->up;
        if (a->gate != NONE || a->coef == 0) continue;
        if (x || u->start[a->up + 1] - u->start[a->up] != 1 || u->bias[a->up] != 0) return NULL;
        const Entry *e = &u->e.data[u->start[a->up]];
        if (a->coef * (double)e->w != 1) return NULL;
        x = channel_int(mk->k->x, e->at);
    }
    return x;
}

static bool make_channel(Maker *mk, const Output *o, uint32_t n, uint8_t level, Int **out)
{
    const Int *kept = NULL;
    int64_t constant;
    mk->adder.n = mk->sum.term.n = mk->sum.part.n = 0;
    mk->sum.constant = 0;
    mk->constant = 0;
    mk->channel = o->channel;
    mk->trim = !(level & LEVEL_ENDS);
    for (uint32_t i = 0; i < n; i++)
        if (!take_output(mk, &o[i])) return false;
    merge_ands(mk);
    if (!take_old(mk, o->channel, &kept)) return false;
    for (uint32_t i = 0; i < mk->adder.n; i++)
        if ((mk->adder.data[i].gate != NONE || mk->adder.data[i].coef != 0) && !finish_adder(mk, &mk->adder.data[i])) return false;
    if (!kept || kept->hi == kept->lo) kept = copied(mk);
    if (!whole(mk->constant, &constant)) return not_whole(mk);
    mk->sum.constant += constant;
    *out = sum_channel(mk->k, &mk->sum, kept, o->channel, level);
    if (!*out) mk->k->why = "a channel is too wide";
    return *out != NULL;
}

bool slice_mlp(SliceMlp *l, Block *k, const uint8_t *level)
{
    Maker mk = {.l = l, .k = k};
    VEC(Int *) fresh = {0};
    bool ok = true;
    mk.gate = pool_array(k->pool, l->gate.n, sizeof *mk.gate);
    forms_init(&mk.part);
    split_gates(&mk);
    for (uint32_t i = 0, end; ok && i < l->nout; i = end) {
        if (slice_stopped(k->s)) ok = false;
        Int *x = NULL;
        for (end = i; end < l->nout && l->out[end].channel == l->out[i].channel; end++) {}
        ok = make_channel(&mk, l->out + i, end - i, level[l->out[i].channel], &x);
        vec_push(&fresh, x);
    }
    for (uint32_t i = 0, n = 0; ok && i < l->nout; i++)
        if (i == 0 || l->out[i].channel != l->out[i - 1].channel) k->x[l->out[i].channel] = fresh.data[n++];
    free(fresh.data);
    free(mk.adder.data);
    free(mk.table.data);
    forms_free(&mk.part);
    free(mk.sum.term.data);
    free(mk.sum.part.data);
    return ok;
}
