/* dce.c: the only pass that deletes: values that no write, emit or `retire` needs, and writes and emits that are
 * never enabled. State elements stay, read or not: the host sees them. */
#include "passes.h"

static bool enabled(const Circuit *c, Ref en)
{
    uint64_t k;
    return en && !(ir_is_const(c, en, &k) && !k);
}

static bool *find_live(const Circuit *c)
{
    bool *live = xalloc(c->ops.n * sizeof *live);
    for (uint32_t i = 0; i < c->writes.n; i++) {
        const Write *w = &c->writes.data[i];
        if (enabled(c, w->en)) live[w->en] = live[w->index] = live[w->data] = live[w->lanes] = true;
    }
    for (uint32_t i = 0; i < c->emits.n; i++) {
        const Emit *e = &c->emits.data[i];
        if (enabled(c, e->en)) live[e->en] = live[e->payload] = true;
    }
    live[c->retire] = true;
    for (Ref r = c->ops.n; --r > 0;)
        for (uint32_t i = 0; live[r] && i < op_at(c, r)->nargs; i++) live[arg_at(c, r, i)] = true;
    return live;
}

/* Also those whose enable was never made, or folded to 0 just now. */
static void drop_disabled(Circuit *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->writes.n; i++)
        if (enabled(c, c->writes.data[i].en)) c->writes.data[n++] = c->writes.data[i];
    c->writes.n = n;
    n = 0;
    for (uint32_t i = 0; i < c->emits.n; i++)
        if (enabled(c, c->emits.data[i].en)) c->emits.data[n++] = c->emits.data[i];
    c->emits.n = n;
}

Circuit *pass_dce(Circuit *c)
{
    Rebuild b = {.from = c, .keep = find_live(c)};
    drop_disabled(rebuild(&b));
    return b.to;
}
