/* build.c: the back end's stages in order, on one screen, and the report. */
#include "build.h"
#include "../runtime/runtime.h"
#include "canary.h"
#include <stdlib.h>
#include <string.h>

static char *netlist_text(const Circuit *c)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f) die("out of memory");
    circuit_print(c, f);
    fclose(f);
    return text;
}

/* DeltaNet writes before it reads, which is what a forward element wants, if it is written directly; where it cannot be, its reads are
 * given the write by logic, and the modes are chosen again. */
static Modes *choose_modes(Circuit *c, const BuildOptions *o)
{
    Modes *m = xalloc(sizeof *m);
    bool *late = xalloc(c->states.n + 1), any;
    c = circuit_lower_rows(c);
    for (;;) {
        care_simplify(c);
        *m = modes_choose(c, o->target, o->bf16, o->payload ? o->payload : DEFAULT_PAYLOAD);
        if (m->error) return m;
        any = false;
        for (uint32_t s = 0; s < c->states.n; s++) any |= late[s] = c->states.data[s].forward && (m->mode[s] == MODE_FED || m->mode[s] == MODE_TAIL);
        if (!any) break;
        modes_drop(m);
        c = circuit_optimize(circuit_lower_forward(c, late));
    }
    return m;
}

/* What no chip can do; NULL: nothing of it. */
static const char *impossible(const Circuit *c, Span *where)
{
    for (uint32_t i = 0; i < c->writes.n; i++) {
        const State *s = &c->states.data[c->writes.data[i].state];
        *where = c->writes.data[i].span;
        if (s->home != HOME_AUTO && s->home != HOME_DELTANET)
            return xfmt("%s is in %s, where it can only be read", s->name, s->home == HOME_ATTENTION ? "attention" : "weights");
    }
    for (uint32_t i = 0; i < c->emits.n; i++) {
        const Emit *e = &c->emits.data[i];
        unsigned width = e->payload ? op_at(c, e->payload)->width : 0;
        *where = e->span;
        if (e->role != EMIT_FAULT && width > MAX_PAYLOAD) return xfmt("%s says %u bits, and a token at most %d", e->name, width, MAX_PAYLOAD);
    }
    *where = (Span){0};
    return NULL;
}

Build build_protocol(Circuit *c, const BuildOptions *o)
{
    Build b = {.options = *o};
    BuildOptions *opt = xalloc(sizeof *opt);
    *opt = *o;
    b.netlist = netlist_text(c);
    if ((b.error = impossible(c, &b.where))) return b;
    b.modes = choose_modes(c, opt);
    if ((b.error = b.modes->error)) return b;
    b.protocol = protocol_derive(b.modes, opt);
    if (b.protocol->vocab > (opt->vocab ? opt->vocab : MOST_VOCABULARY))
        b.error = xfmt("the machine needs a vocabulary of %llu tokens", (unsigned long long)b.protocol->vocab);
    return b;
}

Build build_plan(Circuit *c, const BuildOptions *o)
{
    Build b = build_protocol(c, o);
    if (b.error) return b;
    Net *n = pass_build(b.protocol);
    if ((b.error = b.modes->error)) return b;
    uint32_t limit = o->target->hidden && !o->target->base_hidden ? o->target->hidden - 8 : 0;
    b.plan = plan_make(b.protocol, n, b.protocol->options, limit);
    const char *wrong = plan_check(b.plan);
    if (wrong) die("plan of %s: %s", c->name, wrong);
    return b;
}

Build build_machine(Circuit *c, const BuildOptions *o)
{
    Build b = build_plan(c, o);
    if (b.error || o->plan_only) return b;
    if (o->canaries) canary_plan(b.plan);
    b.chip = blocks_make(b.plan, b.netlist);
    b.error = b.chip->error;
    return b;
}

/* ---- report ---- */

static const char *const mode_name[] = {[MODE_CONST] = "constant", [MODE_DIRECT] = "direct", [MODE_LATE] = "delayed", [MODE_FED] = "fed back",
                                       [MODE_COUNT] = "counts", [MODE_TAIL] = "tail", [MODE_HOST] = "host"};

static void print_states(const Build *b, FILE *out)
{
    const Circuit *c = b->modes->c;
    for (uint32_t s = 0; s < c->states.n; s++) {
        const State *st = &c->states.data[s];
        fprintf(out, "  %-12s %6u x %-2u  %-8s layers", st->name, st->rows, st->width, mode_name[b->modes->mode[s]]);
        for (uint32_t i = 0; i < b->plan->ports.n; i++) {
            const Port *q = b->plan->ports.data[i].port;
            if ((q->kind == PORT_STATE || q->kind == PORT_ROM) && q->state == s) fprintf(out, " %d%s", q->home, q->kind == PORT_ROM ? " (attention)" : "");
        }
        unsigned counts = (int)s == b->modes->tail ? b->modes->cnt_bits : b->modes->count_bits[s];
        if (counts) fprintf(out, "  (counts silently over %u bits)", counts);
        fputc('\n', out);
    }
}

static void print_kinds(const Build *b, FILE *out)
{
    const Protocol *p = b->protocol;
    for (uint32_t k = 0; k < p->kinds.n; k++) {
        const Kind *x = &p->kinds.data[k];
        fprintf(out, "  %8u  %-24s %2u bits  %-6s%s%s%s\n", x->base, x->name, x->width, role_name[x->role], x->last ? "  ends the step" : "",
                x->hold ? ", inner pass" : x->stay ? ", the tail stays" : "", x->message ? xfmt("  \"%s\"", x->message) : "");
    }
}

/* The longest chain: from the latest output down to a memory read, with the lines that made it. */
static void print_path(const Build *b, FILE *out)
{
    const Net *n = b->plan->net;
    Node at = 0;
    for (uint32_t k = 0; k < n->kind_out.n; k++) {
        Node x = lit_node(n->kind_out.data[k]);
        if (n->nodes.data[x].time > n->nodes.data[at].time) at = x;
    }
    fprintf(out, "critical path (time: line):");
    while (at) {
        const NodeInfo *x = &n->nodes.data[at];
        fprintf(out, " %d:%u%s", x->time, x->span.line, x->kind == N_PORT ? xfmt("(%s)", n->ports.data[x->port].name) : "");
        Node next = 0;
        int best = -2;
        if (x->kind == N_PORT) {
            const Port *q = &n->ports.data[x->port];
            for (uint32_t i = 0; i < q->nraddr; i++)
                if (n->nodes.data[lit_node(q->raddr[i])].time > best) next = lit_node(q->raddr[i]), best = n->nodes.data[next].time;
        } else if (x->kind != N_TOKEN) {
            Lin all = x->impl.lin;
            for (uint32_t i = 0; i < x->impl.n; i++) {
                int32_t m;
                all = lin_add(lin_add(all, term_gate(x->impl.t[i], &m), 1), x->impl.t[i].up, 1);
            }
            for (uint32_t i = 0; i < all.n; i++)
                if (n->nodes.data[all.t[i].node].time > best) next = all.t[i].node, best = n->nodes.data[next].time;
        }
        at = next;
    }
    fputc('\n', out);
}

void build_report(const Build *b, FILE *out)
{
    const Chip *c = b->chip;
    const Plan *p = b->plan;
    fprintf(out, "machine: %s\ntarget: %s, %s\n", b->modes->c->name, b->options.target->name, b->options.bf16 ? "bfloat16" : "float32");
    fprintf(out, "layers: %u (and a no-op attention layer)\n", p->layers);
    uint64_t units = 0;
    for (unsigned l = 0; l < p->layers; l++) units += p->mlp[l].units.n;
    fprintf(out, "units: %llu (", (unsigned long long)units);
    for (unsigned l = 0; l < p->layers; l++) fprintf(out, "%s%u", l ? " " : "", p->mlp[l].units.n);
    fprintf(out, " by layer)\n");
    if (c) fprintf(out, "nonzeros: %llu without vocabulary\n", (unsigned long long)c->nonzeros);
    fprintf(out, "channels: %u used", p->nchannels);
    if (c) fprintf(out, " of %u", c->hidden);
    fprintf(out, ", %u erased for reuse\n", p->erased);
    if (c) fprintf(out, "geometry: hidden %u, mlp %u, key heads %u, value heads %u, dk %u, dv %u\n", c->hidden, c->mlp, c->nk, c->nv, c->dk, c->dv);
    fprintf(out, "vocabulary: %llu tokens, payload %u bits\n", (unsigned long long)b->protocol->vocab, b->protocol->payload);
    print_path(b, out);
    fprintf(out, "state:\n");
    print_states(b, out);
    fprintf(out, "tokens:\n");
    print_kinds(b, out);
}
