/* prove_delta.c: a DeltaNet block as exact memory: decay 1, keys and queries one-hot, and the sum of what the heads read.
 * The value heads are in prove_cells.c. */
#include "prove_priv.h"
#include <stdlib.h>

#define L2_EPS 1e-6f
enum { SMALL_MUX = 4 }; /* a read of more groups of rows than this is a free bit to the solver */

bool silu_row(Prover *p, const Form *f, const char *what, uint32_t row, MarginKind on, Var *s, double *a, double *k)
{
    if (!form_exact(p, f, what, row, 0) || !form_var(p, f, s, a, k)) return false;
    const RealValues *v = form_values(p, *s, *a, *k);
    double least = INFINITY, most = INFINITY;
    for (uint32_t i = 0; v && i < v->n; i++) {
        double pre = v->v[i];
        if (pre > 0) least = fmin(least, pre);
        if (pre < 0) most = fmin(most, -pre);
        if (pre > 0 && !holds(p->bf16, pre)) return refuse(p, "layer %d: %s row %u: %g is rounded", p->layer, what, row, pre);
    }
    if (!v) return false;
    if (least < INFINITY && !margin(p, on, least / SILU_ON, what, row, 0)) return false;
    return most == INFINITY || margin(p, M_GATE_OFF, most / SILU_OFF, what, row, 0);
}

/* ---- convolution: one tap of weight 1, or none ---- */
static bool conv_rows(Prover *p, const Layer *l, Form *f, ConvRow **out)
{
    const Tensor *t = &l->t[T_CONV];
    ConvRow *r = *out = pool_array(p->pool, p->g->conv_dim, sizeof *r);
    if (t->fill != 0) return refuse(p, "layer %d: conv1d is filled with %g", p->layer, (double)t->fill);
    for (uint32_t i = 0; i < p->g->conv_dim; i++) r[i] = (ConvRow){f[i].n || f[i].k != 0, -1, &f[i]};
    for (uint32_t i = 0; i < t->n; i++) {
        if (t->value[i] == 0) continue;
        ConvRow *x = &r[t->row[i]];
        if (t->value[i] != 1 || x->tap >= 0) return refuse(p, "layer %d: conv1d row %d is not one tap of weight 1", p->layer, t->row[i]);
        x->tap = (int)p->g->taps - 1 - t->col[i];
    }
    for (uint32_t i = 0; i < p->g->conv_dim; i++) r[i].any &= r[i].tap >= 0;
    return true;
}

/* ---- decay: exp(-exp(A_log) softplus(a + dt_bias)) is 1, also over a chunk of 64 tokens ---- */
static bool decays(Prover *p, const Layer *l)
{
    Form *a;
    if (!forms_make(p, &l->t[T_A], "in_proj_a", &l->t[T_INPUT_NORM], &a)) return false;
    double *log = pool_array(p->pool, p->g->nv, sizeof *log), *bias = pool_array(p->pool, p->g->nv, sizeof *bias);
    for (uint32_t j = 0; j < p->g->nv; j++) log[j] = l->t[T_A_LOG].fill, bias[j] = l->t[T_DT_BIAS].fill;
    for (uint32_t i = 0; i < l->t[T_A_LOG].n; i++) log[l->t[T_A_LOG].row[i]] = l->t[T_A_LOG].value[i];
    for (uint32_t i = 0; i < l->t[T_DT_BIAS].n; i++) bias[l->t[T_DT_BIAS].row[i]] = l->t[T_DT_BIAS].value[i];
    for (uint32_t j = 0; j < p->g->nv; j++) {
        double lo, hi;
        form_range(p, &a[j], &lo, &hi);
        double x = hi + bias[j], rate = 1.01 * exp(log[j]) * (x > 20 ? x : log1p(exp(x)));
        if (!margin(p, M_DECAY, 0x1p-25 / 64 / fmax(rate, 1e-45), "decay", j, 0)) return false;
    }
    return true;
}

/* ---- keys ---- */
typedef struct {
    uint32_t row;      /* in the head */
    uint32_t index;    /* of the projection */
    int tap;
    Var s;
    double a, k;
    double hi;         /* largest value */
    bool always;       /* positive in every pass */
    double hot[8];     /* its positive values */
    uint32_t nhot;
} KeyRow;

/* The l2 norm makes a lone entry of this size exactly 1. */
static bool norms_to_one(double h)
{
    float x = (float)h, sum = x * x, r = 1.0f / sqrtf(sum + L2_EPS);
    return low_bit(h) == h && sum + L2_EPS == sum && x * r == 1.0f && h >= 4 && h < 0x1p60;
}

/* All its positive values are made 1. */
static bool key_values(const RealValues *all)
{
    for (uint32_t i = 0; all && i < all->n; i++)
        if (all->v[i] > 0 && !norms_to_one(all->v[i])) return false;
    return all != NULL;
}

static bool key_row(Prover *p, const ConvRow *c, uint32_t row, uint32_t index, const char *what, KeyRow *x)
{
    *x = (KeyRow){.row = row, .index = index, .tap = c->tap, .always = true};
    if (!silu_row(p, c->f, what, index, M_KEY, &x->s, &x->a, &x->k)) return false;
    const RealValues *all = form_values(p, x->s, x->a, x->k);
    if (all && !key_values(all) && form_tighten(p, c->f) && form_var(p, c->f, &x->s, &x->a, &x->k)) all = form_values(p, x->s, x->a, x->k);
    for (uint32_t i = 0; all && i < all->n; i++) {
        double v = all->v[i];
        x->always &= v > 0;
        if (v <= 0) continue;
        if (!norms_to_one(v) || x->nhot == 8) return not_shown(p, "layer %d: %s row %u: an entry of %g is not made 1 by the l2 norm", p->layer, what, index, v);
        x->hot[x->nhot++] = v;
        x->hi = fmax(x->hi, v);
    }
    return all != NULL;
}

static Bound hot(const Prover *p, const KeyRow *x)
{
    const VarInfo *v = solver_var(p->s, x->s);
    for (int64_t i = v->lo; i <= v->hi; i++) {
        if (x->a > 0 && x->a * (double)i + x->k > 0) return (Bound){x->s, (int32_t)i, INT32_MAX};
        if (x->a < 0 && x->a * (double)i + x->k <= 0) return (Bound){x->s, INT32_MIN, (int32_t)i - 1};
    }
    return (Bound){x->s, INT32_MIN, INT32_MAX};
}

/* Rows that are ANDs of the same bits, each with its own pattern of complements, exclude each other. */
static int by_pattern(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

typedef struct {
    VEC(Var) var;     /* that the first row is an AND of */
    VEC(uint64_t) want; /* per row that may be hot: the values that it asks for */
} Patterns;

/* In a world's passes: the row is an AND of the variables, or never hot. */
static bool pattern(Prover *p, Patterns *x, const KeyRow *r, int world)
{
    const VarInfo *v = solver_var(p->s, r->s);
    VarTerm self = {r->s, 1};
    const VarTerm *t = v->kind == VAR_LIN ? v->lin : &self;
    uint32_t len = v->kind == VAR_LIN ? v->nlin : 1, n = 0;
    double max = r->k, step = INFINITY;
    uint64_t want = 0;
    bool same = true, first = !x->want.n;
    if (first) x->var.n = 0;
    for (uint32_t i = 0; i < len; i++) {
        double c = r->a * t[i].c;
        int32_t lo, hi;
        if (!solver_world(p->s, t[i].v, world, &lo, &hi)) return true;
        max += fmax(c * lo, c * hi);
        if (lo == hi) continue;
        step = fmin(step, fabs(c));
        if (c > 0 && n < 64) want |= 1ull << n;
        if (first) vec_push(&x->var, t[i].v);
        same &= hi - lo == 1 && n < x->var.n && x->var.data[n] == t[i].v;
        n++;
    }
    if (max <= 0) return true;
    vec_push(&x->want, want);
    return same && n == x->var.n && n <= 64 && max <= step; /* one wrong bit is enough to be cold */
}

static bool patterns(Prover *p, const KeyRow *r, uint32_t n)
{
    Patterns x = {0};
    bool ok = true;
    for (int world = 0; ok && world < WORLDS; world++) {
        x.want.n = 0;
        for (uint32_t i = 0; ok && i < n; i++) ok = pattern(p, &x, &r[i], world);
        if (ok && x.want.n) qsort(x.want.data, x.want.n, sizeof *x.want.data, by_pattern);
        for (uint32_t i = 1; ok && i < x.want.n; i++) ok = x.want.data[i] != x.want.data[i - 1];
    }
    free(x.var.data), free(x.want.data);
    return ok;
}

static bool at_most_one(Prover *p, const KeyRow *r, uint32_t n, const char *what)
{
    for (uint32_t i = 1; i < n; i++)
        if (r[i].tap != r[0].tap) return refuse(p, "layer %d: %s rows %u and %u: different taps", p->layer, what, r[0].index, r[i].index);
    if (n < 2 || patterns(p, r, n)) return true;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++) {
            Bound both[2] = {hot(p, &r[i]), hot(p, &r[j])};
            if (!solver_impossible(p->s, both, 2)) return not_shown(p, "layer %d: %s rows %u and %u may be hot together", p->layer, what, r[j].index, r[i].index);
        }
    return true;
}

/* Channels that have the same coefficient in all rows of the side are alternatives (an address while running or while loading). */
static void side_pairs(Delta *d, uint32_t first)
{
    Prover *p = d->p;
    uint64_t *hash = pool_array(p->pool, p->g->hidden, sizeof *hash);
    uint32_t top = 0;
    for (uint32_t i = 0; i < p->g->dk; i++) {
        const Form *f = d->qkv[first + i].f;
        for (uint32_t k = 0; k < f->n; k++) {
            uint64_t c;
            memcpy(&c, &f->t[k].c, sizeof c);
            uint64_t *h = &hash[f->t[k].ch];
            *h = (*h ^ c >> 32 ^ c ^ (uint64_t)i << 16) * 0x9e3779b97f4a7c15ull + 1;
            *h ^= *h >> 29;
            if (f->t[k].ch >= top) top = f->t[k].ch + 1;
        }
    }
    for (uint32_t a = 0; a < top; a++)
        for (uint32_t b = a + 1; hash[a] && b < top; b++)
            if (hash[a] == hash[b]) {
                form_pair(p, a, b);
                break;
            }
}

/* The rows of one side of a key head; those that are always hot come first. */
static bool side(Delta *d, uint32_t first, const char *what, KeyRow *r, uint32_t *n, uint32_t *always)
{
    Prover *p = d->p;
    *n = *always = 0;
    side_pairs(d, first);
    for (uint32_t i = 0; i < p->g->dk; i++) {
        if (!d->qkv[first + i].any) continue;
        KeyRow x;
        if (!key_row(p, &d->qkv[first + i], i, first + i, what, &x)) return false;
        if (!x.nhot) continue;
        r[(*n)++] = x;
        if (!x.always) continue;
        KeyRow t = r[*always];
        r[*always] = r[*n - 1], r[*n - 1] = t;
        (*always)++;
    }
    return at_most_one(p, r + *always, *n - *always, what);
}

static bool power_of_four(double v) { return low_bit(v) == v && ilogb(v) % 2 == 0; }

/* q's entry at the addressed row when it stands alone (h2 = 0) or beside another of size h2, by division and by multiplication. */
static void query_values(KeyHead *k, double h, double h2, uint32_t dk)
{
    float a = (float)h, b = (float)h2, r = 1.0f / sqrtf(a * a + b * b + L2_EPS), x = a * r, root = sqrtf((float)dk);
    float v[2] = {x / root, x * (1.0f / root)};
    float mul = (float)(1 / sqrt((double)dk));
    k->rounded |= !power_of_four(h * h + h2 * h2) || !power_of_four(dk);
    v[1] = x * mul;
    for (int i = 0; i < 2; i++) {
        bool seen = false;
        for (uint32_t j = 0; j < k->nq; j++) seen |= k->q[j] == v[i];
        if (!seen && k->nq < 4) k->q[k->nq++] = v[i];
    }
}

static bool key_head(Delta *d, uint32_t head, KeyRow *r, KeyHead *out)
{
    Prover *p = d->p;
    uint32_t n, always, dk = p->g->dk;
    *out = (KeyHead){0};
    if (!side(d, (p->g->nk + head) * dk, "key", r, &n, &always)) return false;
    if (always > 1 || (always && n > 1)) return not_shown(p, "layer %d: key head %u: two rows of a key may be hot together", p->layer, head);
    out->key = n > 0;
    uint32_t written = 0; /* rows below this may be written */
    for (uint32_t i = 0; i < n; i++) written = r[i].row >= written ? r[i].row + 1 : written;
    if (!side(d, head * dk, "query", r, &n, &always)) return false;
    if (always > 2 || (always == 2 && n > 2)) return not_shown(p, "layer %d: key head %u: three rows of a query may be hot together", p->layer, head);
    const KeyRow *dummy = always == 2 || (always == 1 && n > 1) ? &r[0] : NULL;
    if (always == 2 && r[1].row > r[0].row) dummy = &r[1];
    for (uint32_t i = 0; i < n; i++) {
        if (&r[i] == dummy) continue;
        if (r[i].nhot != 1) return not_shown(p, "layer %d: query row %u has entries of several sizes", p->layer, r[i].index);
        query_values(out, r[i].hi, dummy ? dummy->hi : 0, dk);
    }
    if (!dummy) return true;
    if (dummy->row < written) return refuse(p, "layer %d: key head %u: row %u is in every query and may be written", p->layer, head, dummy->row);
    out->dummy = dummy->row + 1;
    return true;
}

/* ---- the state map ---- */
static void install_piece(Prover *p, Installed *map, const ChipState *s, const Piece *c)
{
    if (c->layer != (uint32_t)p->layer) return;
    for (uint32_t r = 0; r < c->nrows; r += c->group_rows) {
        uint32_t rows = c->nrows - r < c->group_rows ? c->nrows - r : c->group_rows;
        int64_t base = (int64_t)c->head + (int64_t)(r / c->group_rows) * c->group_heads;
        for (uint32_t h = 0; h < c->nhead; h++) {
            Installed *x = &map[base + c->heads[h]];
            x->any = true;
            if (!p->head_line[base + c->heads[h]]) p->head_line[base + c->heads[h]] = place_of(s->file, s->line);
            x->always = s->rows == 1;
            if (rows > x->rows) x->rows = rows;
        }
        for (uint32_t i = 0; i < s->width; i++)
            if (c->bit[i].lane >= 0) map[base + c->bit[i].head].one[c->bit[i].lane] = c->one;
        for (uint32_t i = 0; i < c->npilot; i++) map[base + c->pilot[i].head].pilot[c->pilot[i].lane] = c->pilot_value[i];
        if (!c->has_count) continue;
        map[base + c->count.head].count[c->count.lane] = c->count_unit;
        map[base + c->count.head].count_max = (int32_t)c->count_max;
    }
}

static Installed *installed(Prover *p)
{
    uint32_t dv = p->g->dv;
    Installed *map = pool_array(p->pool, p->g->nv, sizeof *map);
    double *store = pool_array(p->pool, (size_t)3 * p->g->nv * dv, sizeof *store);
    memset(p->head_line, 0, p->g->nv * sizeof *p->head_line);
    for (uint32_t j = 0; j < p->g->nv; j++) map[j].pilot = store + (size_t)3 * j * dv, map[j].one = map[j].pilot + dv, map[j].count = map[j].one + dv;
    for (uint32_t i = 0; i < p->m->nstates; i++)
        for (uint32_t c = 0; c < p->m->state[i].ncopies; c++)
            for (uint32_t k = 0; k < p->m->state[i].copy[c].n; k++) install_piece(p, map, &p->m->state[i], &p->m->state[i].copy[c].piece[k]);
    return map;
}

/* ---- the output projection ---- */
static void add_lane(Prover *p, Sum *sum, const LaneRead *x, double w)
{
    if (x->value == NO_VAR) return;
    sum_part(sum, fabs(w) * x->most, low_bit(w) * low_bit(x->unit));
    if (x->gated) sum_gate(sum, w * x->unit, &x->gate, true, x->value, 0);
    else sum_linear(p, sum, w * x->unit, x->value, 0);
}

/* Literals that stand in every term's condition; returns how many. */
static uint32_t common_guards(const Prover *p, const VarInfo *d, VarTerm *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->ntable; i++) {
        if (d->table[i].g == NO_VAR) return 0;
        const VarInfo *g = solver_var(p->s, d->table[i].g);
        VarTerm self = {d->table[i].g, 1};
        const VarTerm *t = g->kind == VAR_LIN ? g->lin : &self;
        uint32_t len = g->kind == VAR_LIN ? g->nlin : 1, kept = 0;
        for (uint32_t k = 0; i == 0 && k < len; k++) out[n++] = t[k];
        for (uint32_t k = 0; i && k < n; k++)
            for (uint32_t j = 0; j < len; j++)
                if (t[j].v == out[k].v && t[j].c == out[k].c) out[kept++] = out[k];
        if (i) n = kept;
    }
    return n;
}

/* What a read of many groups of rows is to later questions: some bit, or 0 unless the literals that all groups ask for hold. */
static Var abstract_read(Prover *p, Var v)
{
    const VarInfo d = *solver_var(p->s, v);
    if (d.kind != VAR_DEF || d.ntable <= SMALL_MUX) return v;
    if (d.k) { /* the constant apart */
        Var u = solver_def(p->s, 0, d.lin, d.nlin, d.table, d.ntable);
        solver_limit(p->s, u, d.lo - d.k, d.hi - d.k);
        VarTerm one = {abstract_read(p, u), 1};
        return solver_def(p->s, d.k, &one, 1, NULL, 0);
    }
    Var any = solver_free_var(p->s, d.lo, d.hi);
    solver_like(p->s, any, v);
    VarTerm *t = xrealloc(NULL, (solver_var(p->s, d.table[0].g == NO_VAR ? v : d.table[0].g)->nlin + 1) * sizeof *t);
    uint32_t n = d.nlin || d.k ? 0 : common_guards(p, &d, t);
    if (n) {
        Table x = {.s = NO_VAR, .g = solver_lin(p->s, t, n), .m = any, .n = 1, .t = solver_table(p->s, 1)};
        x.gtop = solver_var(p->s, x.g)->hi, x.t[0] = 1;
        any = solver_def(p->s, 0, NULL, 0, &x, 1);
    }
    free(t);
    return any;
}

/* What is read is off by up to `error` of itself: the residual addition must round that away, and does where the sum's spacing is at least twice
 * what all that is added is off by. The lanes add to something from 0 on, each at least 1 where it is not 0, so that at most `most` of several are not 0. */
static bool snaps(Prover *p, uint32_t ch, Var next, double error, uint32_t lanes, const char *name)
{
    const VarInfo *v = solver_var(p->s, next);
    int32_t least = v->lo < chan_lo(p, ch) ? v->lo : chan_lo(p, ch);
    double most = (double)v->hi - chan_lo(p, ch);
    if (error == 0) return true;
    if (least < 1 || most < 1) return refuse(p, "layer %d: %s: channel %u: what is read is no integer", p->layer, name, ch);
    return margin(p, M_READ, ldexp(1, ilogb(least) - 24) / (most * (error + (lanes > 1 ? most * 0x1p-23 : 0))), name, ch, 0);
}

bool output_lanes(Prover *p, const Tensor *t, const LaneRead *lane, const char *name)
{
    Sum sum = {0};
    Var *next = pool_array(p->pool, p->g->hidden, sizeof *next);
    bool *written = pool_array(p->pool, p->g->hidden, sizeof *written), ok = true;
    for (uint32_t i = 0, j; ok && i < t->n; i = j) {
        uint32_t ch = (uint32_t)t->row[i];
        if (p->pilot[ch]) return refuse(p, "layer %d: %s writes channel %u, a pilot", p->layer, name, ch);
        sum_read(&sum, p, ch);
        double error = 0;
        uint32_t lanes = 0;
        for (j = i; ok && j < t->n && t->row[j] == t->row[i]; j++) {
            const LaneRead *x = &lane[t->col[j]];
            add_lane(p, &sum, x, t->value[j]);
            if (x->value == NO_VAR || x->error == 0) continue;
            error = fmax(error, x->error), lanes++;
            if (t->value[j] * x->unit != 1) ok = refuse(p, "layer %d: %s: channel %u: a lane's weight is %g", p->layer, name, ch, t->value[j]);
        }
        ok = ok && sum_end(p, &sum, name, &next[ch]) && sum_residual(p, ch, next[ch], name, 0) && snaps(p, ch, next[ch], error, lanes, name);
        written[ch] = true;
        if (!ok) break;
        p->read_of[ch].exact = next[ch];
        p->read_of[ch].abstract = next[ch] = abstract_read(p, next[ch]);
    }
    for (uint32_t ch = 0; ok && ch < p->g->hidden; ch++)
        if (written[ch]) p->chan[ch] = next[ch];
    sum_free(&sum);
    return ok;
}

bool prove_delta(Prover *p, const Layer *l)
{
    const Geometry *g = p->g;
    const Tensor *gain = &l->t[T_INPUT_NORM], *out = &l->t[T_OUT];
    Form *qkv;
    Delta d = {.p = p, .l = l, .map = installed(p)};
    if (!decays(p, l)) return false;
    if (!forms_make(p, &l->t[T_QKV], "in_proj_qkv", gain, &qkv) || !forms_make(p, &l->t[T_Z], "in_proj_z", gain, &d.z) ||
        !forms_make(p, &l->t[T_B], "in_proj_b", gain, &d.b) || !conv_rows(p, l, qkv, &d.qkv))
        return false;
    if (out->fill != 0) return refuse(p, "layer %d: out_proj is filled with %g", p->layer, (double)out->fill);
    d.read = pool_array(p->pool, (size_t)g->nv * g->dv, sizeof *d.read);
    d.lane = pool_array(p->pool, (size_t)g->nv * g->dv, sizeof *d.lane);
    for (uint32_t i = 0; i < out->n; i++) d.read[out->col[i]] |= out->value[i] != 0;
    KeyHead *key = pool_array(p->pool, g->nk, sizeof *key);
    KeyRow *rows = pool_array(p->pool, g->dk + 1, sizeof *rows);
    d.key = key;
    for (uint32_t k = 0; k < g->nk; k++) {
        p->line = 0;
        for (uint32_t j = 0; j < g->nv / g->nk && !p->line; j++) p->line = p->head_line[k * (g->nv / g->nk) + j];
        if (!key_head(&d, k, rows, &key[k])) return false;
    }
    for (uint32_t j = 0; j < g->nv; j++) {
        p->line = p->head_line[j];
        if (!prove_cells(&d, j)) return false;
    }
    return output_lanes(p, out, d.lane, "out_proj");
}
