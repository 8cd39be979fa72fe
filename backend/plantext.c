/* plantext.c: the plan as text, one line per thing, and its invariants: who owns which channel, head and unit. */
#include "plan.h"
#include <string.h>

static void print_form(Lin f, FILE *out)
{
    bool any = false;
    for (uint32_t i = 0; i < f.n; i++) {
        int32_t k = f.t[i].coef;
        fprintf(out, "%s", any ? (k < 0 ? " - " : " + ") : k < 0 ? "-" : "");
        if (k != 1 && k != -1) fprintf(out, "%d ", k < 0 ? -k : k);
        fprintf(out, "c%u", f.t[i].node);
        any = true;
    }
    if (f.k || !any) fprintf(out, any ? (f.k < 0 ? " - %d" : " + %d") : "%d", any && f.k < 0 ? -f.k : f.k);
}

static void print_forms(const char *what, const Lin *f, uint32_t n, FILE *out)
{
    if (!f || !n) return;
    fprintf(out, " %s [", what);
    for (uint32_t i = 0; i < n; i++) {
        if (i) fputs(", ", out);
        print_form(f[i], out);
    }
    fputc(']', out);
}

static void print_port(const PlanPort *p, FILE *out)
{
    const Port *q = p->port;
    fprintf(out, "  port %s: %u x %u bits", q->name, q->rows, q->width);
    for (uint32_t i = 0; i < q->nslices && q->nslices > 1; i++) fprintf(out, ", groups %u+%u in layer %d", q->slices[i].group0, q->slices[i].groups, q->slices[i].layer);
    if (p->reads) {
        print_forms("read at", p->raddr, q->nraddr, out);
        fputs(" into [", out);
        for (unsigned i = 0; i < q->width; i++) {
            if (i) fputs(", ", out);
            if (p->out[i] == UINT32_MAX) fputc('-', out);
            else fprintf(out, "c%u", p->out[i]);
        }
        fputc(']', out);
    }
    if (q->written) {
        print_forms(q->waddr_tap ? "write (address of the token before) at" : "write at", p->waddr, q->nwaddr, out);
        print_forms("when", p->en, q->nen, out);
        if (q->en_any[0] != LIT0 || q->en_any[1] != LIT0) print_forms("and any of", p->en_any, 2, out);
        print_forms("lanes", p->lanes, q->lanes ? port_lanes(q) : 0, out);
        print_forms("data", p->data, q->data ? q->width : 0, out);
    }
    fputc('\n', out);
}

static void print_unit(const Unit *u, FILE *out)
{
    fputs("  unit relu(", out);
    print_form(u->gate, out);
    fputs(")", out);
    if (u->up.n || u->up.k != 1) {
        fputs(" * (", out);
        print_form(u->up, out);
        fputc(')', out);
    }
    fputs(" ->", out);
    for (uint32_t i = 0; i < u->out.n; i++) fprintf(out, " %+g c%u", u->out.data[i].coef, u->out.data[i].ch);
    if (u->span.line) fprintf(out, "  @%u", u->span.line);
    fputc('\n', out);
}

void plan_print(const Plan *p, FILE *out)
{
    const Protocol *proto = p->p;
    fprintf(out, "plan %s: %u layers, %u channels\n", p->net->c->name, p->layers, p->nchannels);
    for (uint32_t i = 0; i < p->embed.n; i++) fprintf(out, "embed c%u = %s\n", p->embed.data[i].ch, proto->tok.data[p->embed.data[i].tok].name);
    for (uint32_t i = 0; i < p->start.n; i++) fprintf(out, "embed c%u = %d\n", p->start.data[i].ch, p->start.data[i].value);
    for (unsigned l = 0; l < p->layers; l++) {
        fprintf(out, "layer %u\n", l);
        for (uint32_t i = 0; i < p->ports.n; i++)
            if (p->ports.data[i].home == (int)l) print_port(&p->ports.data[i], out);
        for (uint32_t i = 0; i < p->mlp[l].units.n; i++) print_unit(&p->mlp[l].units.data[i], out);
    }
    for (uint32_t k = 0; k < proto->kinds.n; k++) {
        if (!proto->kinds.data[k].score) continue;
        fprintf(out, "token %s (priority %u) if ", proto->kinds.data[k].name, proto->kinds.data[k].score);
        print_form(p->kind_out[k], out);
        fputc('\n', out);
    }
    for (uint32_t k = 0; k < p->net->nwords; k++) print_forms(xfmt("payload %u", k), p->word_out[k], p->net->word_width[k], out), fputc('\n', out);
}

/* ---- invariants ---- */

typedef struct {
    const Plan *p;
    int *written; /* per channel: earliest time that writes it; INT32_MAX: none */
    const char *wrong;
} PlanCheck;

static void check_form(PlanCheck *c, Lin f, int t, const char *who)
{
    for (uint32_t i = 0; i < f.n && !c->wrong; i++) {
        if (f.t[i].node >= c->p->nchannels) c->wrong = xfmt("%s reads channel %u of %u", who, f.t[i].node, c->p->nchannels);
        else if (c->written[f.t[i].node] >= t) c->wrong = xfmt("%s at time %d reads channel %u, first written at %d", who, t, f.t[i].node, c->written[f.t[i].node]);
    }
}

static void first_write(PlanCheck *c, uint32_t ch, int t)
{
    if (ch >= c->p->nchannels) c->wrong = xfmt("channel %u of %u is written", ch, c->p->nchannels);
    else if (t < c->written[ch]) c->written[ch] = t;
}

const char *plan_check(const Plan *p)
{
    PlanCheck c = {.p = p, .written = xalloc((p->nchannels + 1) * sizeof(int))};
    for (uint32_t i = 0; i < p->nchannels; i++) c.written[i] = INT32_MAX;
    for (uint32_t i = 0; i < p->embed.n; i++) first_write(&c, p->embed.data[i].ch, -1);
    for (uint32_t i = 0; i < p->start.n; i++) first_write(&c, p->start.data[i].ch, -1);
    for (uint32_t i = 0; i < p->ports.n; i++)
        for (unsigned b = 0; b < p->ports.data[i].port->width; b++)
            if (p->ports.data[i].out[b] != UINT32_MAX) first_write(&c, p->ports.data[i].out[b], 2 * p->ports.data[i].home);
    for (unsigned l = 0; l < p->layers; l++)
        for (uint32_t i = 0; i < p->mlp[l].units.n; i++)
            for (uint32_t k = 0; k < p->mlp[l].units.data[i].out.n; k++) first_write(&c, p->mlp[l].units.data[i].out.data[k].ch, 2 * (int)l + 1);
    for (uint32_t i = 0; i < p->ports.n && !c.wrong; i++) {
        const PlanPort *q = &p->ports.data[i];
        int t = 2 * q->port->home;
        for (uint32_t k = 0; k < q->port->nraddr; k++) check_form(&c, q->raddr[k], t, q->port->name);
        for (uint32_t k = 0; q->port->written && k < q->port->nwaddr; k++) check_form(&c, q->waddr[k], t, q->port->name);
        for (uint32_t k = 0; q->port->written && k < q->port->nen; k++) check_form(&c, q->en[k], t, q->port->name);
        for (uint32_t k = 0; q->data && k < q->port->width; k++) check_form(&c, q->data[k], t, q->port->name);
    }
    for (unsigned l = 0; l < p->layers; l++)
        for (uint32_t i = 0; i < p->mlp[l].units.n && !c.wrong; i++) {
            check_form(&c, p->mlp[l].units.data[i].gate, 2 * (int)l + 1, "a unit");
            check_form(&c, p->mlp[l].units.data[i].up, 2 * (int)l + 1, "a unit");
        }
    return c.wrong;
}
