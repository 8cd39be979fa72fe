/* dce.c: the only pass that deletes: values that no write, emit or `retire` needs, writes and emits that are never
 * enabled, writes to hidden registers that nothing reads, and writes that would go to a hard-wired row or to none. State elements stay, read or not: the host sees them. */
#include "passes.h"

static bool enabled(const Circuit *c, Ref en)
{
    uint64_t k;
    return en && !(ir_is_const(c, en, &k) && !k);
}

static bool has_effect(const Circuit *c, const Write *w)
{
    const State *s = &c->states.data[w->state];
    uint64_t row = 0;
    if (!enabled(c, w->en)) return false;
    if (!w->data || (s->kind != ST_REG && !w->index)) return false; /* not made */
    if (w->index && !ir_is_const(c, w->index, &row)) return true;
    return row < s->rows && !(s->has_hard && row == s->hard_row);
}

/* Marks what the live ones need. True when that reaches a READ of a hidden register whose write was not needed yet. */
static bool spread(const Circuit *c, bool *live, bool *read)
{
    bool more = false;
    for (Ref r = c->ops.n; --r > 0;) {
        const Op *op = op_at(c, r);
        for (uint32_t i = 0; live[r] && i < op->nargs; i++) live[arg_at(c, r, i)] = true;
        if (live[r] && op->kind == OP_READ && !read[op->imm]) more = read[op->imm] = true;
    }
    return more;
}

static bool *find_live(const Circuit *c, bool *read)
{
    bool *live = xalloc(c->ops.n * sizeof *live);
    for (uint32_t i = 0; i < c->emits.n; i++) {
        const Emit *e = &c->emits.data[i];
        if (enabled(c, e->en)) live[e->en] = live[e->payload] = true;
    }
    live[c->retire] = true;
    for (uint32_t s = 0; s < c->states.n; s++) read[s] = !c->states.data[s].hidden;
    do {
        for (uint32_t i = 0; i < c->writes.n; i++) {
            const Write *w = &c->writes.data[i];
            if (read[w->state] && has_effect(c, w)) live[w->en] = live[w->index] = live[w->data] = live[w->lanes] = true;
        }
    } while (spread(c, live, read));
    return live;
}

/* Also those whose enable was never made, or folded just now. */
static void drop_disabled(Circuit *c, const bool *read)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->writes.n; i++)
        if (read[c->writes.data[i].state] && has_effect(c, &c->writes.data[i])) c->writes.data[n++] = c->writes.data[i];
    c->writes.n = n;
    n = 0;
    for (uint32_t i = 0; i < c->emits.n; i++)
        if (enabled(c, c->emits.data[i].en)) c->emits.data[n++] = c->emits.data[i];
    c->emits.n = n;
}

Circuit *pass_dce(Circuit *c)
{
    bool *read = xalloc((c->states.n + 1) * sizeof *read);
    Rebuild b = {.from = c, .keep = find_live(c, read)};
    drop_disabled(rebuild(&b), read);
    return b.to;
}
