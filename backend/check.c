/* check.c: the netlist interpreter beside a running chip. The netlist comes out of the chip file; protocol_derive finds the same protocol
 * that the chip was built with, and encode.c says each step in tokens. */
#include "check.h"
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

typedef struct {
    Checker checker; /* first: what the runtime holds */
    Build build;
    StepEncoder step;
    uint32_t at;     /* next of its tokens to compare */
    uint64_t steps;
    bool pending;    /* the evaluated step has not been committed */
    bool answered;   /* the host has spoken since: the step's last token has been fed */
} Check;

static bool chip_options(const Model *m, BuildOptions *o, char **err)
{
    const char *target = json_string_value(json_object_get(m->manifest, "target"));
    json_t *p = json_object_get(m->manifest, "protocol");
    o->target = target ? target_find(target) : NULL;
    o->bf16 = m->bf16;
    o->payload = (unsigned)json_integer_value(json_object_get(p, "payload"));
    o->vocab = (uint64_t)json_integer_value(json_object_get(p, "vocab_limit"));
    if (!o->target || o->payload < 1 || o->payload > MAX_PAYLOAD) return fail(err, "%s: made for a target that this compiler does not know", m->path);
    return true;
}

/* The chip's kinds must be those of the protocol found here, or it is another compiler's. */
static bool same_kinds(const Model *m, const Protocol *p, char **err)
{
    bool same = m->nkinds == p->kinds.n;
    for (uint32_t k = 0; same && k < m->nkinds; k++)
        same = m->kind[k].base == p->kinds.data[k].base && m->kind[k].width == p->kinds.data[k].width;
    return same || fail(err, "%s: its kinds of token are not those of this compiler's protocol; build it again to check it", m->path);
}

bool chip_netlist(const Model *m, const Image *image, Build *build, StepEncoder *steps, char **err)
{
    BuildOptions o = {0};
    const char *why = NULL;
    if (!m->netlist) return fail(err, "%s: holds no netlist to check against", m->path);
    Circuit *net = circuit_parse(m->netlist, &why);
    if (!net) return fail(err, "%s: its netlist: %s", m->path, why);
    if (!chip_options(m, &o, err)) return false;
    *build = build_protocol(net, &o);
    if (build->error) return fail(err, "%s: %s", m->path, build->error);
    if (!same_kinds(m, build->protocol, err)) return false;
    encode_begin(steps, build->protocol, sim_new(build->modes->c, image));
    return true;
}

static bool begin(void *ctx, const Model *m, const Image *image, char **err)
{
    Check *c = ctx;
    return chip_netlist(m, image, &c->build, &c->step, err);
}

/* The source line of what a token says: of its field's write or emit. */
static Span token_place(const Check *c, uint32_t token)
{
    const Protocol *p = c->build.protocol;
    for (uint32_t k = 0; k < p->kinds.n; k++) {
        const Kind *x = &p->kinds.data[k];
        if (token - x->base >= 1u << x->width || x->field < 0) continue;
        const Field *f = &p->fields.data[x->field];
        if (f->emit) return p->m->c->emits.data[f->index].span;
        return p->m->c->writes.data[f->flags ? f->regs.data[0] : f->index].span;
    }
    return (Span){0};
}

static const char *token_text(const Check *c, uint32_t token)
{
    const Protocol *p = c->build.protocol;
    for (uint32_t k = 0; k < p->kinds.n; k++)
        if (token - p->kinds.data[k].base < 1u << p->kinds.data[k].width)
            return xfmt("%s 0x%x", p->kinds.data[k].name, token - p->kinds.data[k].base);
    return xfmt("%u, no kind", token);
}

/* A step that ends the run says nothing else: what it would have fed back does not happen. */
static void commit(Check *c)
{
    if (!c->pending) return;
    encode_commit(&c->step, c->step.ended);
    c->pending = false;
}

static int judge(void *ctx, Machine *mc, uint32_t token)
{
    (void)mc;
    Check *c = ctx;
    if (c->at == c->step.said.n) {
        commit(c);
        encode_step(&c->step);
        c->at = 0;
        c->steps += c->step.retired;
        c->pending = true;
        c->answered = false;
    }
    uint32_t want = c->step.said.data[c->at++];
    if (want == token) return 0;
    Span at = token_place(c, want);
    c->checker.mismatches++;
    fprintf(stderr, "check: step %" PRIu64 ", line %u: the chip said %s, the netlist says %s\n", c->steps, at.line, token_text(c, token),
            token_text(c, want));
    return 1;
}

static void host_input(void *ctx, Machine *mc, uint32_t token)
{
    (void)mc;
    Check *c = ctx;
    const Protocol *p = c->build.protocol;
    commit(c);
    c->answered = true;
    for (uint32_t k = 0; k < p->kinds.n; k++) {
        const Kind *x = &p->kinds.data[k];
        if (x->role == ROLE_INPUT && token - x->base < 1u << x->width) sim_set(c->step.sim, kind_host_state(x), 0, token - x->base);
    }
}

/* A run that was stopped between two steps has not yet fed its last token back. In the pass that reads it the next step's direct writes
 * happen too. */
static void settle(Check *c, Machine *mc)
{
    commit(c);
    if (c->step.ended || c->answered || !c->step.said.n || c->at != c->step.said.n) return;
    machine_feed(mc, c->step.said.data[c->at - 1]);
    encode_ahead(&c->step);
}

/* Everything that the machine holds, in every copy. */
static int end(void *ctx, Machine *mc)
{
    Check *c = ctx;
    const Circuit *n = c->build.modes->c;
    const Model *m = machine_model(mc);
    settle(c, mc);
    for (uint32_t s = 0; s < n->states.n; s++)
        for (uint32_t r = 0; m->state[s].ncopies && r < n->states.data[s].rows; r++) {
            uint64_t v = 0, want = sim_get(c->step.sim, s, r);
            char *err = NULL;
            bool hard = n->states.data[s].has_hard && n->states.data[s].hard_row == r;
            if (hard || (machine_get(mc, &m->state[s], r, &v, &err) && v == want)) continue;
            c->checker.mismatches++;
            if (err) fprintf(stderr, "check: %s[%u]: %s\n", n->states.data[s].name, r, err);
            else fprintf(stderr, "check: %s[%u] is 0x%" PRIx64 " in the chip, 0x%" PRIx64 " in the netlist\n", n->states.data[s].name, r, v, want);
            free(err);
            if (c->checker.mismatches >= 10) return 1;
        }
    return c->checker.mismatches != 0;
}

Checker *checker_new(void)
{
    Check *c = xalloc(sizeof *c);
    c->checker = (Checker){.ctx = c, .begin = begin, .token = judge, .input = host_input, .end = end};
    return &c->checker;
}
