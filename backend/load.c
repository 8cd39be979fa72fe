/* load.c: how the writes of a port take a record that is being loaded.
 *
 * While the machine loads, every port and token channel reads 0, so that an address or data bit has a value that is known at compile time: its
 * idle value. The record's bits read 0 while the machine runs. Where the idle value is 0 the port takes the sum of its own bit and the
 * record's. Where it is 1 the two are complements of such bits: the port takes its own bit less "the machine loads, and the record's bit is
 * 0". Each is a bit in every token, also in those that load another element. */
#include "backend.h"
#include <stdlib.h>

/* ---- values of nodes while every port and token channel reads 0 ---- */

static double idle_lin(const double *v, Lin l)
{
    double x = l.k;
    for (uint32_t i = 0; i < l.n; i++) x += l.t[i].coef * v[l.t[i].node];
    return x;
}

static double idle_expr(const double *v, Expr e)
{
    double x = idle_lin(v, e.lin);
    for (uint32_t i = 0; i < e.n; i++) {
        int32_t m;
        double g = idle_lin(v, term_gate(e.t[i], &m));
        if (g > 0) x += e.t[i].coef * g * idle_lin(v, e.t[i].up);
    }
    return x;
}

double load_idle(const double *v, Lit l) { return lit_inv(l) ? 1 - v[lit_node(l)] : v[lit_node(l)]; }

double *load_idle_values(const Net *n)
{
    double *v = xalloc(n->nodes.n * sizeof *v);
    for (Node i = 1; i < n->nodes.n; i++) {
        const NodeInfo *x = &n->nodes.data[i];
        if (x->kind != N_PORT && x->kind != N_TOKEN) v[i] = idle_expr(v, x->fast);
    }
    return v;
}

/* ---- records ---- */

/* The record's bits, in the sense of the literals that they are added to. */
static Lit *in_sense(Net *n, const double *idle, const Lit *own, uint32_t count, const Lit *record, uint32_t nrecord, Lit loading)
{
    Lit *r = xalloc(count * sizeof *r + 1);
    for (uint32_t i = 0; i < count; i++) {
        r[i] = i < nrecord ? record[i] : LIT0;
        if (load_idle(idle, own[i]) != 0) r[i] = lit_not(g_and(n, loading, lit_not(r[i])));
    }
    return r;
}

void load_records(Net *n, Lit loading)
{
    const double *idle = load_idle_values(n);
    for (uint32_t i = 0; i < n->ports.n; i++) {
        Port *q = &n->ports.data[i];
        if (q->load_on == LIT0 || q->kind == PORT_ROM) continue;
        q->load_addr = in_sense(n, idle, q->waddr, q->nwaddr, q->load_addr, q->nload_addr, loading);
        q->nload_addr = q->nwaddr;
        q->load_data = in_sense(n, idle, q->data, q->width, q->load_data, q->width, loading);
    }
    map_label_new(n);
}
