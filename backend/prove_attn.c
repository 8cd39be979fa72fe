/* prove_attn.c: an attention layer as a read-only memory that was written by tokens: keys are codes of +-c or all 0, the query is the code of
 * an address, so that the softmax is exactly one-hot (numerics.md, "Attention"). A layer whose output projection is zero adds nothing. */
#include "prove_priv.h"
#include <stdlib.h>

typedef struct {
    Prover *p;
    const Layer *l;
    Form *q, *k, *v;
    bool *read;      /* [heads * head_dim] o_proj uses it */
    LaneRead *lane;  /* [heads * head_dim] */
} Attn;

static double gain_at(const Tensor *t, uint32_t d)
{
    double g = t->fill;
    for (uint32_t i = 0; i < t->n; i++)
        if ((uint32_t)t->row[i] == d) g = t->value[i];
    return 1 + g;
}

/* The form's values are all of `size`, up to sign (and 0 where `zero` allows it). The first row sets the size. */
static bool code_row(Attn *a, const Form *f, const char *what, uint32_t row, bool zero, double *size, Var *s)
{
    Prover *p = a->p;
    double c, k;
    if (!form_exact(p, f, what, row, 0) || !form_var(p, f, s, &c, &k)) return false;
    const VarInfo *x = *s == NO_VAR ? NULL : solver_var(p->s, *s);
    const RealValues *v = form_values(p, *s, c, k);
    bool first = *size == 0;
    for (uint32_t i = 0; first && v && i < v->n; i++)
        if (v->v[i] != 0 && (*size == 0 || fabs(v->v[i]) < *size)) *size = fabs(v->v[i]);
    for (uint32_t i = 0; v && i < v->n; i++) {
        double m = fabs(v->v[i]);
        int32_t at = x ? solver_values(p->s, *s)->v[i] : 0;
        if ((m == 0 && zero) || (m == *size && m != 0) || (x && solver_impossible(p->s, &(Bound){*s, at, at}, 1))) continue;
        return refuse(p, "layer %d: %s row %u: an entry of a code may be %g", p->layer, what, row, v->v[i]);
    }
    return v && (low_bit(*size) == *size || refuse(p, "layer %d: %s row %u: codes of %g", p->layer, what, row, *size));
}

/* Key rows are all 0 together: whenever one is, so is the other. */
static bool zero_together(Attn *a, const Form *f, Var s, const Form *g, Var t)
{
    Prover *p = a->p;
    const Form *form[2] = {f, g};
    Var v[2] = {s, t};
    for (int i = 0; i < 2; i++) {
        int32_t zero;
        double c, k;
        Var self;
        if (!form_var(p, form[i], &self, &c, &k)) return false;
        zero = (int32_t)(-k / c);
        const Values *other = solver_values(p->s, v[1 - i]);
        if (!form_var(p, form[1 - i], &self, &c, &k)) return false;
        for (uint32_t j = 0; other && j < other->n; j++) {
            if (c * other->v[j] + k == 0) continue;
            if (!solver_impossible(p->s, (Bound[]){{v[i], zero, zero}, {v[1 - i], other->v[j], other->v[j]}}, 2))
                return refuse(p, "layer %d: a key may be partly 0", p->layer);
        }
    }
    return true;
}

/* The score of a match, the loss of one wrong bit, and the errors of both. */
static bool codes(Attn *a, uint32_t head)
{
    Prover *p = a->p;
    const Geometry *g = p->g;
    uint32_t h = g->head_dim, rot = (uint32_t)(h * g->rotary_factor) & ~1u, n = 0, kv = head / (g->heads / g->kv_heads);
    double qsize = 0, ksize = 0, gain = 0;
    Var s, k0 = NO_VAR;
    const Form *f0 = NULL;
    for (uint32_t d = 0; d < h; d++) {
        const Form *q = &a->q[(size_t)head * 2 * h + d], *k = &a->k[(size_t)kv * h + d];
        bool any = q->n || q->k != 0, key = k->n || k->k != 0;
        if (any != key || (any && d < rot)) return refuse(p, "layer %d: attention head %u: dimension %u is no part of a code", p->layer, head, d);
        if (!any) continue;
        if (!code_row(a, q, "q_proj", head * 2 * h + d, false, &qsize, &s) || !code_row(a, k, "k_proj", kv * h + d, true, &ksize, &s)) return false;
        if (f0 && !zero_together(a, f0, k0, k, s)) return false;
        if (!f0) f0 = k, k0 = s;
        double both = gain_at(&a->l->t[T_Q_NORM], d) * gain_at(&a->l->t[T_K_NORM], d);
        if (n++ && both != gain) return refuse(p, "layer %d: the norms of a code differ in gain", p->layer);
        gain = both;
    }
    if (!n) return refuse(p, "layer %d: attention head %u has no codes", p->layer, head);
    double match = fabs(gain) * sqrt(h), wrong = 2 * match / n; /* n entries of sqrt(h / n), times h^-1/2 */
    double unit = p->bf16 ? 0x1p-8 : 0x1p-23, error = 2 * match * (6 * unit + (n + 8) * 0x1p-23 + (double)g->eps / (qsize * qsize) + (double)g->eps / (ksize * ksize));
    return margin(p, M_KEY, (wrong - error) / SILU_OFF, "attention codes of head", head, 0);
}

/* The gate is 0 or 1, and 0 while anything is loaded. */
static bool gate(Attn *a, const Form *f, uint32_t row, LaneRead *out)
{
    Prover *p = a->p;
    Var s;
    double c, k, least = INFINITY;
    if (!silu_row(p, f, "attention gate", row, M_GATE_ON, &s, &c, &k) || !gate_form(p, f, &out->gate)) return false;
    const RealValues *v = form_values(p, s, c, k);
    for (uint32_t i = 0; v && i < v->n; i++) least = fmin(least, v->v[i]);
    out->gated = least <= 0;
    for (uint32_t i = 0; v && i < v->n; i++) {
        if (v->v[i] == 0) return refuse(p, "layer %d: attention gate row %u is 1/2", p->layer, row);
        for (uint32_t j = 0; v->v[i] > 0 && j < p->m->nkinds; j++) {
            if (p->m->kind[j].role != CHIP_LOAD) continue;
            int32_t at = s == NO_VAR ? 0 : solver_values(p->s, s)->v[i];
            Bound b[2] = {{p->kind_var[j], 1, 1}, {s, at, at}};
            if (!solver_impossible(p->s, b, s == NO_VAR ? 1 : 2)) return not_shown(p, "layer %d: attention gate row %u is open while rows are loaded", p->layer, row);
        }
    }
    return v != NULL;
}

static bool lane(Attn *a, uint32_t head, uint32_t d)
{
    Prover *p = a->p;
    uint32_t h = p->g->head_dim, kv = head / (p->g->heads / p->g->kv_heads);
    LaneRead *out = &a->lane[head * h + d];
    const Form *v = &a->v[(size_t)kv * h + d];
    Var m;
    int32_t mk;
    double q;
    *out = (LaneRead){.value = NO_VAR, .unit = 1};
    if (!a->read[head * h + d] || (!v->n && v->k == 0)) return true;
    if (!form_exact(p, v, "v_proj", kv * h + d, 0) || !form_scaled(p, v, &m, &mk, &q)) return false;
    int32_t lo = mk, hi = mk;
    if (m != NO_VAR) lo += solver_var(p->s, m)->lo, hi += solver_var(p->s, m)->hi;
    double most = fmax(fabs((double)lo), fabs((double)hi));
    if (!margin(p, M_ROUND, ((p->bf16 ? 0x1p8 : 0x1p24) + 1) / fmax(most, 1), "v_proj", kv * h + d, 0)) return false;
    out->value = solver_free_var(p->s, lo, hi);
    out->unit = q, out->most = most * fabs(q);
    return gate(a, &a->q[(size_t)head * 2 * h + h + d], head * 2 * h + h + d, out);
}

/* Addresses beyond a memory's last row match no key. */
static void note_rows(Prover *p)
{
    for (uint32_t i = 0; i < p->m->nstates; i++) {
        const ChipState *s = &p->m->state[i];
        if (s->ncopies == 0 && s->rows & (s->rows - 1)) note(p, "%s is read only at rows below %u", s->name, s->rows);
    }
}

bool prove_attention(Prover *p, const Layer *l)
{
    const Tensor *o = &l->t[T_O_PROJ], *gain = &l->t[T_INPUT_NORM];
    const Geometry *g = p->g;
    Attn a = {.p = p, .l = l};
    bool zero = true;
    if (!forms_make(p, &l->t[T_Q_PROJ], "q_proj", gain, &a.q) || !forms_make(p, &l->t[T_K_PROJ], "k_proj", gain, &a.k) ||
        !forms_make(p, &l->t[T_V_PROJ], "v_proj", gain, &a.v))
        return false;
    if (o->fill != 0) return refuse(p, "layer %d: o_proj is filled with %g", p->layer, (double)o->fill);
    a.read = pool_array(p->pool, (size_t)g->heads * g->head_dim, sizeof *a.read);
    a.lane = pool_array(p->pool, (size_t)g->heads * g->head_dim, sizeof *a.lane);
    for (uint32_t i = 0; i < o->n; i++)
        if (o->value[i] != 0) zero = false, a.read[o->col[i]] = true;
    if (zero) return true;
    note_rows(p);
    for (uint32_t n = 0; n < g->heads; n++) {
        bool used = false;
        for (uint32_t d = 0; d < g->head_dim; d++) used |= a.read[n * g->head_dim + d];
        if (used && !codes(&a, n)) return false;
        for (uint32_t d = 0; used && d < g->head_dim; d++)
            if (!lane(&a, n, d)) return false;
    }
    return output_lanes(p, o, a.lane, "o_proj");
}
