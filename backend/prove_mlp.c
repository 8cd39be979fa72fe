/* prove_mlp.c: a SwiGLU block: down(silu(gate x) * up x).
 *
 * A unit is relu(gate) * up exactly when its gate's value is, in every reachable pass, 0, or positive and so large that silu is the identity,
 * or negative and so large that silu is -0; and when gate, up and their product are numbers of the dtype wherever the gate is positive. */
#include "prove_priv.h"
#include <stdlib.h>

typedef struct {
    Var s;           /* gate = a s + k; NO_VAR: constant k */
    double a, k;
    Gate gate;
    Var m;           /* up = q (m + mk) */
    int32_t mk;
    double q;
    double most;     /* largest magnitude of the product */
    double unit;     /* it is a multiple of this */
    bool used;
} UnitInfo;

static uint32_t line_of(const Prover *p, uint32_t u) { return u < p->nlines ? place_of(p->files ? (uint32_t)p->files[u] : 0, (uint32_t)p->lines[u]) : 0; }

/* The gate's values, one by one: where they lie, and whether they are numbers of the dtype where they matter. */
static bool gate_values(Prover *p, const UnitInfo *x, uint32_t u, double *top)
{
    const RealValues *v = form_values(p, x->s, x->a, x->k);
    double on = INFINITY, off = INFINITY;
    *top = 0;
    for (uint32_t i = 0; v && i < v->n; i++) {
        double pre = v->v[i];
        if (pre > 0) {
            on = pre < on ? pre : on;
            *top = pre > *top ? pre : *top;
            if (!holds(p->bf16, pre)) return refuse(p, "layer %d: mlp.gate_proj row %u: %g is rounded", p->layer, u, pre);
        } else if (pre < 0) off = -pre < off ? -pre : off;
    }
    if (!v) return false;
    if (on < INFINITY && !margin(p, M_GATE_ON, on / SILU_ON, "mlp.gate_proj", u, line_of(p, u))) return false;
    return off == INFINITY || margin(p, M_GATE_OFF, off / SILU_OFF, "mlp.gate_proj", u, line_of(p, u));
}

/* up, and gate * up, for every value of both. */
static bool product_values(Prover *p, UnitInfo *x, uint32_t u, double top)
{
    int64_t lo = x->mk, hi = x->mk;
    if (x->m != NO_VAR) lo += solver_var(p->s, x->m)->lo, hi += solver_var(p->s, x->m)->hi;
    double most = fmax(fabs((double)lo), fabs((double)hi)), g = low_bit(x->s == NO_VAR ? x->k : x->a);
    if (x->s != NO_VAR && x->k != 0) g = fmin(g, low_bit(x->k));
    x->unit = g * fabs(x->q), x->most = top * most * fabs(x->q);
    if (top == 0) return true;
    double limit = p->bf16 ? 0x1p8 : 0x1p24; /* every integer up to here is a number */
    double biggest = top / g * most;
    if (biggest <= limit) return margin(p, M_ROUND, (limit + 1) / biggest, "mlp product", u, line_of(p, u));
    if (hi - lo > 4096 || top / g > 4096) return margin(p, M_ROUND, limit / biggest, "mlp product", u, line_of(p, u));
    const RealValues *v = form_values(p, x->s, x->a, x->k);
    for (uint32_t i = 0; v && i < v->n; i++)
        for (int64_t j = lo; j <= hi; j++) {
            double pre = v->v[i];
            if (pre > 0 && (!holds(p->bf16, pre * x->q * (double)j) || !holds(p->bf16, x->q * (double)j)))
                return margin(p, M_ROUND, limit / biggest, "mlp product", u, line_of(p, u));
        }
    return v != NULL;
}

static bool unit_info(Prover *p, const Form *gate, const Form *up, uint32_t u, UnitInfo *x)
{
    double top;
    p->line = line_of(p, u);
    x->used = gate->n || gate->k != 0;
    if (!x->used) return true; /* silu(0) * anything finite is 0 */
    if (!form_exact(p, gate, "mlp.gate_proj", u, line_of(p, u)) || !form_exact(p, up, "mlp.up_proj", u, line_of(p, u))) return false;
    if (!form_var(p, gate, &x->s, &x->a, &x->k) || !gate_form(p, gate, &x->gate) || !form_scaled(p, up, &x->m, &x->mk, &x->q)) return false;
    return gate_values(p, x, u, &top) && product_values(p, x, u, top);
}

static bool down(Prover *p, const Tensor *t, const UnitInfo *units, Var *next, bool *written)
{
    Sum sum = {0};
    bool ok = true;
    if (t->fill != 0) return refuse(p, "layer %d: mlp.down_proj is filled with %g", p->layer, (double)t->fill);
    for (uint32_t i = 0, j; ok && i < t->n; i = j) {
        uint32_t ch = (uint32_t)t->row[i];
        if (p->pilot[ch]) return refuse(p, "layer %d: mlp.down_proj writes channel %u, a pilot", p->layer, ch);
        sum_begin(&sum, p, ch);
        p->line = 0;
        for (j = i; j < t->n && t->row[j] == t->row[i]; j++) {
            const UnitInfo *x = &units[t->col[j]];
            if (!x->used || t->value[j] == 0) continue;
            if (!sum.line) p->line = sum.line = line_of(p, (uint32_t)t->col[j]);
            double w = t->value[j];
            sum_part(&sum, fabs(w) * x->most, low_bit(w) * x->unit);
            sum_gate(&sum, w * x->q, &x->gate, false, x->m, x->mk);
        }
        ok = ok && sum_end(p, &sum, "mlp.down_proj", &next[ch]) && sum_residual(p, ch, next[ch], "mlp.down_proj", sum.line);
        written[ch] = true;
    }
    sum_free(&sum);
    return ok;
}

bool prove_mlp(Prover *p, const Layer *l)
{
    Form *gate, *up;
    if (!forms_make(p, &l->t[T_GATE], "mlp.gate_proj", &l->t[T_POST_NORM], &gate)) return false;
    if (!forms_make(p, &l->t[T_UP], "mlp.up_proj", &l->t[T_POST_NORM], &up)) return false;
    UnitInfo *units = pool_array(p->pool, p->g->intermediate, sizeof *units);
    for (uint32_t u = 0; u < p->g->intermediate; u++)
        if (!unit_info(p, &gate[u], &up[u], u, &units[u])) return false;
    Var *next = pool_array(p->pool, p->g->hidden, sizeof *next);
    bool *written = pool_array(p->pool, p->g->hidden, sizeof *written);
    if (!down(p, &l->t[T_DOWN], units, next, written)) return false;
    for (uint32_t ch = 0; ch < p->g->hidden; ch++)
        if (written[ch]) p->chan[ch] = next[ch];
    return true;
}
