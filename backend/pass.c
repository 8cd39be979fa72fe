/* pass.c: the network of one pass through the model: the step's logic, what it says, and for every copy of every state element the
 * write that the protocol gives it.
 *
 * Stage registers (layer 0) hold each chunk that has arrived, written by the token itself and read in the same pass, so the pass that reads
 * the last token sees the complete values. A presence latch per field says that an EARLIER token of this step said the field: it is written
 * one token late, through the conv tap, by the field's own tokens (1 if the step goes on) and after every last token (0). A fed-back
 * element is written when commit AND (latch OR this token says the field). What was known below its home in the previous pass comes by
 * the conv tap instead. */
#include "protocol.h"
#include <string.h>

typedef struct {
    Protocol *p;
    Net *n;
    Lit **stage;   /* per field: its width literals, complete after layer 0 */
    Lit (*present)[2]; /* per field: said by an earlier token of this step, said by this token */
    Lit begin, commit;
    Lit act;       /* the pass that may write directly: the first of a step, once the host has given what was asked for */
    Lit begun;     /* a step has begun since the last loader token: a prompt's last tokens end none (LIT0: nobody asks) */
    Lit asked;     /* an earlier token of the step was a `take` (LIT0: there is none) */
    Lit run;       /* not loading (LIT1: nothing can be loaded) */
    Lit *load;     /* the record being loaded: row number, data; 0 otherwise */
} Pass;

static Lit channel_lit(Pass *b, uint32_t ch)
{
    Node x = g_input(b->n, N_TOKEN, ch, 0, 0, 1);
    map_label_one(b->n, x);
    return x * 2;
}

static Lit flag(Pass *b, const char *name, bool (*is)(const Protocol *, const Kind *, int, int), int f, int j)
{
    return channel_lit(b, protocol_channel(b->p, name, is, f, j));
}

/* A channel with the payload bit of the kinds that `is` accepts, and constants elsewhere as `other` says. */
static Lit payload_bit(Pass *b, const char *name, bool (*is)(const Protocol *, const Kind *, int, int), int f, int j, unsigned bit,
                       int (*other)(const Protocol *, const Kind *, int, int, unsigned))
{
    Protocol *p = b->p;
    for (uint32_t i = 0; i < p->tok.n; i++)
        if (strcmp(p->tok.data[i].name, name) == 0) return channel_lit(b, i);
    TokChan t = {.name = name};
    for (uint32_t k = 0; k < p->kinds.n; k++) {
        const Kind *x = &p->kinds.data[k];
        vec_push(&t.by_kind, is(p, x, f, j) && bit < x->width ? (int)bit : other ? other(p, x, f, j, bit) : TOK_ZERO);
    }
    return channel_lit(b, vec_push(&p->tok, t));
}

static bool is_begin(const Protocol *p, const Kind *k, int a, int c) { (void)p, (void)a, (void)c; return k->begin; }
static bool is_commit(const Protocol *p, const Kind *k, int a, int c)
{
    (void)p, (void)a, (void)c;
    return k->last && k->role != ROLE_START && k->role != ROLE_INPUT && !k->carry;
}
static bool is_field(const Protocol *p, const Kind *k, int f, int c) { (void)p, (void)c; return k->field == f; }
static bool is_chunk(const Protocol *p, const Kind *k, int f, int j) { (void)p; return k->field == f && k->chunk == j; }
/* This kind gives chunk j its value: as payload, or by a short form. */
static bool gives_chunk(const Protocol *p, const Kind *k, int f, int j)
{
    (void)p;
    return k->field == f && (k->chunk == j || k->alone || (j > 0 && k->form >= 0));
}
static int form_bit(const Protocol *p, const Kind *k, int f, int j, unsigned bit)
{
    if (k->field != f || k->form < 0 || j == 0) return TOK_ZERO;
    const Field *x = &p->fields.data[f];
    unsigned at = x->chunk_lo[j] + bit - x->chunk_width[0];
    return at < 64 && x->form[k->form] >> at & 1 ? TOK_ONE : TOK_ZERO;
}

static void new_port(Pass *b, Port x)
{
    if (!x.rgate) x.rgate = b->run;
    if (x.kind == PORT_STATE || x.kind == PORT_ROM) modes_place(b->p->m, &x);
    else {
        x.nslices = 1;
        x.slices = xalloc(sizeof *x.slices);
        x.slices[0] = (struct Slice){0, 0, 1};
    }
    vec_push(&b->n->ports, x);
}

static Lit *port_out(Pass *b, unsigned width)
{
    Lit *out = xalloc(width * sizeof *out + 1);
    for (unsigned i = 0; i < width; i++) {
        Node x = g_input(b->n, N_PORT, b->n->ports.n - 1, i, 0, 1);
        map_label_one(b->n, x);
        out[i] = x * 2;
    }
    return out;
}

static Lit *one_lit(Lit l)
{
    Lit *p = xalloc(sizeof *p);
    *p = l;
    return p;
}

static int *taps(unsigned n, int tap)
{
    int *t = xalloc(n * sizeof *t + 1);
    for (unsigned i = 0; i < n; i++) t[i] = tap;
    return t;
}

static bool is_more(const Protocol *p, const Kind *k, int f, int c) { (void)p, (void)c; return k->field == f && !k->last; }

/* A latch for "an earlier token of this step said field f". */
static Lit latch_field(Pass *b, int f)
{
    Port q = {.kind = PORT_LATCH, .name = xfmt("said %s", b->p->fields.data[f].name), .width = 1, .lane = 1, .rows = 1, .written = true, .early = true};
    q.latch_begin = b->begin;
    q.latch_set = flag(b, xfmt("is %d", f), is_field, f, 0);
    q.data = one_lit(flag(b, xfmt("more %d", f), is_more, f, 0));
    q.data_tap = taps(1, 1);
    new_port(b, q);
    return port_out(b, 1)[0];
}

static void stage_field(Pass *b, int f)
{
    const Field *x = &b->p->fields.data[f];
    b->stage[f] = xalloc(x->width * sizeof(Lit) + 1);
    for (unsigned j = 0; j < x->nchunks && x->width; j++) {
        unsigned w = x->chunk_width[j];
        Port q = {.kind = PORT_STAGE, .name = xfmt("stage %s.%u", x->name, j), .width = w, .lane = w, .rows = 1, .written = true, .early = true};
        q.nen = 1;
        q.en = one_lit(flag(b, xfmt("gives %d.%u", f, j), gives_chunk, f, (int)j));
        q.data = xalloc(w * sizeof(Lit));
        q.data_tap = xalloc(w * sizeof(int));
        for (unsigned i = 0; i < w; i++)
            q.data[i] = payload_bit(b, xfmt("payload %d.%u.%u", f, j, i), is_chunk, f, (int)j, i, form_bit);
        new_port(b, q);
        memcpy(b->stage[f] + x->chunk_lo[j], port_out(b, w), w * sizeof(Lit));
    }
    b->present[f][1] = flag(b, xfmt("is %d", f), is_field, f, 0);
    b->present[f][0] = LIT0;
    if (!protocol_has(b->p, is_more, f, 0)) return; /* always the last thing said */
    b->present[f][0] = latch_field(b, f);
}

/* ---- loading ---- */

static bool is_load(const Protocol *p, const Kind *k, int a, int c) { (void)p, (void)a, (void)c; return k->role == ROLE_LOAD; }
static bool is_run(const Protocol *p, const Kind *k, int a, int c) { return !is_load(p, k, a, c); }
static bool is_load_chunk(const Protocol *p, const Kind *k, int j, int c) { (void)p, (void)c; return k->role == ROLE_LOAD && k->chunk == j; }
static bool is_load_kind(const Protocol *p, const Kind *k, int kind, int c) { (void)c; return k == &p->kinds.data[kind]; }

/* The record being loaded stands in stage registers that read 0 while the machine runs, as everything else reads 0 while it loads: so each
 * port can take the sum of both. */
static void stage_load(Pass *b)
{
    Protocol *p = b->p;
    unsigned bits = p->load_index + p->load_data;
    b->load = xalloc(bits * sizeof(Lit) + 1);
    for (unsigned j = 0; j < p->load_chunks; j++) {
        unsigned lo = j * p->load_payload, w = bits - lo < p->load_payload ? bits - lo : p->load_payload;
        Port q = {.kind = PORT_STAGE, .name = xfmt("stage load.%u", j), .width = w, .lane = w, .rows = 1, .written = true, .early = true};
        q.rgate = flag(b, "load", is_load, 0, 0);
        q.nen = 1;
        q.en = one_lit(flag(b, xfmt("load chunk %u", j), is_load_chunk, (int)j, 0));
        q.data = xalloc(w * sizeof(Lit));
        q.data_tap = taps(w, 0);
        for (unsigned i = 0; i < w; i++) q.data[i] = payload_bit(b, xfmt("load %u.%u", j, i), is_load_chunk, (int)j, 0, i, NULL);
        new_port(b, q);
        memcpy(b->load + lo, port_out(b, w), w * sizeof(Lit));
    }
}

static Lit *zeros(unsigned n)
{
    return xalloc(n * sizeof(Lit) + 1); /* LIT0 */
}

static Lit load_and(Pass *b, Lit on, Lit bit)
{
    Node from = b->n->nodes.n;
    Lit x = g_and(b->n, on, bit);
    map_label(b->n, from);
    return x;
}

/* Keys and values of an attention ROM must be 0 in every token that does not load it. */
static void gate_record(Pass *b, Port *q)
{
    Lit *addr = zeros(q->nload_addr), *data = zeros(q->width);
    for (uint32_t i = 0; i < q->nload_addr; i++) addr[i] = load_and(b, q->load_on, q->load_addr[i]);
    for (uint32_t i = 0; i < q->width; i++) data[i] = load_and(b, q->load_on, q->load_data[i]);
    q->load_addr = addr, q->load_data = data;
}

static void load_port(Pass *b, Port *q)
{
    const Protocol *p = b->p;
    for (uint32_t g = 0; g < p->loads.n; g++)
        for (uint32_t i = 0; i < p->loads.data[g].states.n; i++) {
            if (p->loads.data[g].states.data[i] != q->state) continue;
            q->load_on = flag(b, xfmt("load kind %u", g), is_load_kind, (int)p->loads.data[g].kind, 0);
            q->load_addr = b->load;
            q->nload_addr = q->rows > 1 ? clog2(q->rows) : 0;
            q->load_data = b->load + p->load_index;
        }
    if (q->kind == PORT_ROM) {
        gate_record(b, q);
        return;
    }
    if (q->load_on == LIT0 || q->written) return;
    q->written = true; /* a constant of the machine: loading is its only write */
    q->nen = 1;
    q->en = one_lit(LIT0);
    q->nwaddr = q->nload_addr;
    q->waddr = zeros(q->nwaddr);
    q->data = zeros(q->width);
    q->data_tap = taps(q->width, 0);
}

/* ---- state writes ---- */

static bool keep_older(const Net *n, Lit l, void *ctx) { return map_lit_label(n, l) < *(int *)ctx; }

static void write_direct(Pass *b, Port *q, const Write *w)
{
    const BitMap *m = &b->p->m->bits;
    int before = 2 * q->home;
    q->early = true;
    if (w->index) q->nwaddr = op_at(b->p->m->c, w->index)->width, q->waddr = m->bits[w->index];
    g_and_lits(b->n, m->bits[w->en][0], keep_older, &before, &q->en, &q->nen);
    Lit *en = xalloc((q->nen + 2) * sizeof *en);
    memcpy(en, q->en, q->nen * sizeof *en);
    en[q->nen++] = b->act;
    if (b->asked != LIT0) en[q->nen++] = lit_not(b->asked);
    q->en = en;
    if (w->lanes) q->lanes = m->bits[w->lanes];
    q->data = m->bits[w->data];
    q->data_tap = taps(q->width, 0);
}

static void write_fed(Pass *b, Port *q, const Write *w, int f)
{
    const Field *x = &b->p->fields.data[f];
    const BitMap *m = &b->p->m->bits;
    q->nen = 1;
    q->en = one_lit(b->commit);
    memcpy(q->en_any, b->present[f], sizeof q->en_any);
    unsigned at = 0;
    if (x->flags) { /* its slice of the packed field */
        for (uint32_t i = 0; x->regs.data[i] != (uint32_t)(w - b->p->m->c->writes.data); i++)
            at += b->p->m->c->states.data[b->p->m->c->writes.data[x->regs.data[i]].state].width;
        q->data = b->stage[f] + at;
        q->data_tap = taps(q->width, 0);
        return;
    }
    if (w->index) {
        q->nwaddr = op_at(b->p->m->c, w->index)->width;
        q->waddr = x->with_index ? b->stage[f] : m->bits[w->index];
        q->waddr_tap = !x->with_index;
        at += x->with_index;
    }
    if (w->lanes) q->lanes = b->stage[f] + at, at += x->with_lanes;
    q->data = x->data_tap ? m->bits[w->data] : b->stage[f] + at;
    q->data_tap = taps(q->width, x->data_tap);
}

static bool is_bump(const Protocol *p, const Kind *k, int f, int j) { return is_commit(p, k, 0, j) && k->field != f && !k->hold && !k->stay; }

/* The tail register is written at layer 0 by its own tokens, top chunk first: the pass that reads chunk 0 writes it, and chunk j with it if
 * the token j back was chunk j. */
static void write_tail(Pass *b, Port *q, int f)
{
    const Field *x = &b->p->fields.data[f];
    q->early = true;
    q->lane = x->chunk_width[0];
    q->nen = 1;
    q->en = one_lit(flag(b, xfmt("chunk %d.0", f), is_chunk, f, 0));
    q->lane_key = xalloc(x->nchunks * sizeof(Lit));
    for (unsigned j = 0; j < x->nchunks; j++) q->lane_key[j] = j ? flag(b, xfmt("chunk %d.%u", f, j), is_chunk, f, (int)j) : LIT1;
    q->data = xalloc(q->width * sizeof(Lit));
    q->data_tap = taps(q->width, 0);
    for (unsigned i = 0; i < q->width; i++) {
        unsigned j = i / x->chunk_width[0], bit = i - x->chunk_lo[j];
        q->data[i] = payload_bit(b, xfmt("tail %d.%u.%u", f, j, bit), is_chunk, f, (int)j, bit, NULL);
        q->data_tap[i] = (int)j;
    }
    if (q->cnt_bits) q->bump = flag(b, "bump", is_bump, f, 0);
}

static bool is_carry(const Protocol *p, const Kind *k, int s, int j) { (void)p, (void)j; return k->carry == (uint32_t)s + 1; }
static bool is_count(const Protocol *p, const Kind *k, int a, int j) { return is_commit(p, k, a, j) && !k->hold; }

/* A register that counts in every step: added to by every last token, its bits above the count written by its carry. */
static void write_count(Pass *b, Port *q)
{
    int s = (int)q->state;
    q->nen = 1;
    q->en = one_lit(flag(b, xfmt("carry %d", s), is_carry, s, 0));
    q->data = zeros(q->width);
    q->data_tap = taps(q->width, 0);
    for (unsigned i = 0, at = 0; i < q->width; i++)
        if (i < q->cnt_lo || i >= q->cnt_lo + q->cnt_bits)
            q->data[i] = payload_bit(b, xfmt("carry %d.%u", s, at), is_carry, s, 0, at, NULL), at++;
    Node from = b->n->nodes.n;
    q->bump = g_and(b->n, flag(b, "count", is_count, 0, 0), b->begun);
    map_label(b->n, from);
}

/* The key of the pass before says whether, this pass's token says when. */
static void write_late(Pass *b, Port *q, const Write *w)
{
    const BitMap *m = &b->p->m->bits;
    q->late = m->bits[w->en][0];
    q->nen = 2;
    q->en = zeros(2);
    q->en[0] = b->commit, q->en[1] = b->begun;
    q->data = m->bits[w->data];
    q->data_tap = taps(q->width, 1);
}

static bool is_input(const Protocol *p, const Kind *k, int s, int j) { (void)p, (void)j; return k->role == ROLE_INPUT && k->field == -2 - s; }

static void write_host(Pass *b, Port *q)
{
    int s = (int)q->state;
    q->early = true;
    q->nen = 1;
    q->en = one_lit(flag(b, xfmt("input %d", s), is_input, s, 0));
    q->data = xalloc(q->width * sizeof(Lit));
    q->data_tap = taps(q->width, 0);
    for (unsigned i = 0; i < q->width; i++) q->data[i] = payload_bit(b, xfmt("input %d.%u", s, i), is_input, s, 0, i, NULL);
}

static int field_of(const Protocol *p, const Write *w)
{
    uint32_t i = (uint32_t)(w - p->m->c->writes.data);
    for (uint32_t f = 0; f < p->fields.n; f++) {
        const Field *x = &p->fields.data[f];
        if (x->emit) continue;
        if (!x->flags && x->index == i) return (int)f;
        for (uint32_t k = 0; x->flags && k < x->regs.n; k++)
            if (x->regs.data[k] == i) return (int)f;
    }
    die("a fed-back write without a field");
}

static void write_port(Pass *b, uint32_t id)
{
    Modes *m = b->p->m;
    Port *q = &b->n->ports.data[id];
    const Write *w = write_of(m->c, q->state);
    Port x = *q; /* helpers add nodes and channels, never ports */
    x.rgate = b->run;
    if (m->mode[q->state] == MODE_CONST) {
        load_port(b, &x);
        b->n->ports.data[id] = x;
        return;
    }
    x.written = true;
    switch (m->mode[q->state]) {
    case MODE_DIRECT: write_direct(b, &x, w); break;
    case MODE_LATE: write_late(b, &x, w); break;
    case MODE_FED: write_fed(b, &x, w, field_of(b->p, w)); break;
    case MODE_COUNT: write_count(b, &x); break;
    case MODE_TAIL: write_tail(b, &x, field_of(b->p, w)); break;
    default: write_host(b, &x);
    }
    load_port(b, &x);
    b->n->ports.data[id] = x;
}

/* Elements that nothing reads still hold their contents: a copy without a read. */
static void unread_ports(Pass *b)
{
    Modes *m = b->p->m;
    for (uint32_t s = 0; s < m->c->states.n; s++) {
        bool seen = false;
        for (uint32_t i = 0; i < b->n->ports.n; i++) {
            PortKind k = b->n->ports.data[i].kind;
            seen |= (k == PORT_STATE || k == PORT_ROM) && b->n->ports.data[i].state == s;
        }
        const State *st = &m->c->states.data[s];
        if (seen || state_is_rom(st)) continue;
        int home = m->min_home[s];
        Port q = {.kind = PORT_STATE, .name = st->name, .state = s, .width = st->width, .lane = st->lane, .rows = st->rows,
                  .home = home, .has_hard = st->has_hard, .hard_row = st->hard_row, .span = st->span, .unread = true};
        if (m->mode[s] == MODE_LATE) q.late = LIT1;
        modes_count(m, &q);
        new_port(b, q);
    }
}

static bool is_act(const Protocol *p, const Kind *k, int hosts, int c)
{
    return is_begin(p, k, 0, c) && k->role != ROLE_TAKE && !(hosts && k->role == ROLE_START);
}

/* Steps in which the host is asked for input begin again, after the answer. */
static void act_flags(Pass *b)
{
    const Protocol *p = b->p;
    int hosts = 0;
    for (uint32_t k = 0; k < p->kinds.n; k++) hosts |= p->kinds.data[k].role == ROLE_INPUT;
    b->act = flag(b, "act", is_act, hosts, 0);
    b->asked = LIT0;
    for (uint32_t f = p->first_normal; f < p->first_field; f++)
        if (p->m->c->emits.data[p->fields.data[f].index].role == EMIT_TAKE && protocol_has(p, is_more, (int)f, 0)) b->asked = latch_field(b, (int)f);
}

/* Delayed writes and silent counts follow a step that was really taken: the tail's tokens at the end of a prompt end none. */
static void begun_latch(Pass *b)
{
    bool wanted = false;
    for (uint32_t s = 0; s < b->p->m->c->states.n; s++) wanted |= b->p->m->mode[s] == MODE_LATE || b->p->m->mode[s] == MODE_COUNT;
    b->begun = LIT0;
    if (!wanted) return;
    Port q = {.kind = PORT_LATCH, .name = "begun", .width = 1, .lane = 1, .rows = 1, .written = true, .early = true};
    q.latch_begin = flag(b, "load", is_load, 0, 0);
    q.latch_set = b->begin;
    q.data = one_lit(b->begin);
    q.data_tap = taps(1, 1);
    new_port(b, q);
    b->begun = port_out(b, 1)[0];
}

static Ref *pass_roots(Protocol *p, unsigned *n)
{
    const Circuit *c = p->m->c;
    Ref *r = xalloc((c->writes.n * 4 + c->emits.n * 2 + p->kinds.n + p->words.n + 2) * sizeof *r);
    *n = 0;
    for (uint32_t i = 0; i < c->writes.n; i++) {
        const Write *w = &c->writes.data[i];
        r[(*n)++] = w->en, r[(*n)++] = w->index, r[(*n)++] = w->data, r[(*n)++] = w->lanes;
    }
    for (uint32_t k = 0; k < p->kinds.n; k++) r[(*n)++] = p->kind_ref[k];
    for (uint32_t i = 0; i < p->words.n; i++) r[(*n)++] = p->words.data[i];
    return r;
}

/* The port of a silently counting element: all its copies are alike. */
static const Port *count_port(const Net *n, uint32_t s)
{
    for (uint32_t i = 0; i < n->ports.n; i++)
        if (n->ports.data[i].kind == PORT_STATE && n->ports.data[i].state == s && n->ports.data[i].full) return &n->ports.data[i];
    die("a silently counting register that nobody reads");
}

static void carry_outputs(Pass *b)
{
    for (uint32_t k = 0; k < b->p->kinds.n; k++)
        if (b->p->kinds.data[k].carry) b->n->kind_out.data[k] = count_port(b->n, b->p->kinds.data[k].carry - 1)->full;
}

static void outputs(Pass *b)
{
    Protocol *p = b->p;
    Net *n = b->n;
    n->nwords = p->words.n;
    n->word_width = xalloc(n->nwords * sizeof *n->word_width + 1);
    n->word_out = xalloc(n->nwords * sizeof *n->word_out + 1);
    for (uint32_t k = 0; k < p->kinds.n; k++) vec_push(&n->kind_out, p->m->bits.bits[p->kind_ref[k]][0]);
    for (uint32_t i = 0; i < n->nwords; i++) {
        n->word_width[i] = op_at(p->m->c, p->words.data[i])->width;
        n->word_out[i] = p->m->bits.bits[p->words.data[i]];
    }
    carry_outputs(b);
}

static void cover(Net *n)
{
    VEC(Lit) roots = {0};
    int last = 1;
    for (uint32_t k = 0; k < n->kind_out.n; k++) vec_push(&roots, n->kind_out.data[k]);
    for (uint32_t k = 0; k < n->nwords; k++)
        for (unsigned i = 0; i < n->word_width[k]; i++) vec_push(&roots, n->word_out[k][i]);
    for (uint32_t i = 0; i < roots.n; i++) last = map_lit_label(n, roots.data[i]) > last ? map_lit_label(n, roots.data[i]) : last;
    for (uint32_t i = 0; i < n->ports.n; i++) last = 2 * n->ports.data[i].last + 1 > last ? 2 * n->ports.data[i].last + 1 : last;
    n->depth = last / 2 + 1;
    map_cover(n, roots.data, roots.n, 2 * n->depth - 1);
}

Net *pass_build(Protocol *p)
{
    unsigned nroots;
    Ref *roots = pass_roots(p, &nroots);
    modes_drop(p->m); /* the step's, which the protocol was derived from */
    modes_build(p->m, roots, nroots);
    Pass b = {.p = p, .n = p->m->net};
    b.stage = xalloc(p->fields.n * sizeof *b.stage + 1);
    b.present = xalloc(p->fields.n * sizeof *b.present + 1);
    b.begin = flag(&b, "begin", is_begin, 0, 0);
    b.commit = flag(&b, "commit", is_commit, 0, 0);
    b.run = p->loads.n ? flag(&b, "run", is_run, 0, 0) : LIT1;
    act_flags(&b);
    begun_latch(&b);
    stage_load(&b);
    for (uint32_t f = p->first_field; f < p->fields.n; f++)
        if (!p->fields.data[f].tail) stage_field(&b, (int)f);
    unread_ports(&b);
    for (uint32_t i = 0; i < b.n->ports.n; i++)
        if (b.n->ports.data[i].kind == PORT_STATE || b.n->ports.data[i].kind == PORT_ROM) write_port(&b, i);
    if (p->loads.n) load_records(b.n, flag(&b, "load", is_load, 0, 0));
    outputs(&b);
    cover(b.n);
    return b.n;
}
