/* elaborate_path.c: conditions under which statements run, which of them exclude each other, and selection by them. */
#include "elaborate.h"
#include <string.h>

Path *path_child(Elab *e, Path *up, Ref lit, uint32_t group, uint32_t arm)
{
    uint64_t k;
    if (ir_is_const(e->c, lit, &k) && k) return up;
    Path *p = xalloc(sizeof *p);
    *p = (Path){
        .up = up, .lit = lit, .abs = ir_and(e->c, up->abs, lit), .group = group, .arm = arm, .depth = up->depth + 1
    };
    return p;
}

bool path_within(const Path *p, const Path *q)
{
    while (p->depth > q->depth) p = p->up;
    return p == q;
}

static bool pieces_exclusive(const Elab *e, const Path *p, const Path *q)
{
    if (p->group && p->group == q->group) return p->arm != q->arm;
    return ir_exclusive(e->c, p->lit, q->lit);
}

static bool excepts(const Path *p, const Path *q)
{
    for (uint32_t i = 0; i < p->nexcept; i++)
        if (path_within(q, p->except[i])) return true;
    return false;
}

bool path_exclusive(const Elab *e, const Path *p, const Path *q)
{
    for (const Path *a = p; a; a = a->up)
        if (excepts(a, q)) return true;
    for (const Path *b = q; b; b = b->up)
        if (excepts(b, p)) return true;
    for (const Path *a = p; a && a->up; a = a->up) {
        if (path_within(q, a)) break; /* all further pieces are common */
        for (const Path *b = q; b && b->up && !path_within(p, b); b = b->up)
            if (pieces_exclusive(e, a, b)) return true;
    }
    return false;
}

Ref path_since(Elab *e, const Path *p, const Path *base)
{
    if (p == base || !p->up) return ir_const(e->c, 1, 1);
    if (base->up == NULL) return p->abs;
    return ir_and(e->c, path_since(e, p->up, base), p->lit);
}

Path *path_join(Elab *e, Path *saved, Path **start, Path **end, uint32_t n, uint32_t returns)
{
    Frame *f = e->frame;
    uint32_t alive = 0, last = 0;
    for (uint32_t i = 0; i < n; i++)
        if (end[i]) alive++, last = i;
    if (!alive) return NULL;
    if (!f || f->returns.n == returns) return saved;
    if (alive == 1 && end[last] == start[last]) return end[last];
    uint32_t count = f->returns.n - returns;
    Ref *cond = xalloc(count * sizeof *cond);
    Path **except = xalloc(count * sizeof *except);
    for (uint32_t i = 0; i < count; i++) {
        except[i] = f->returns.data[returns + i].path;
        cond[i] = path_since(e, except[i], saved);
    }
    Path *p = path_child(e, saved, ir_not(e->c, any_of(e, cond, count)), 0, 0);
    if (p == saved) return p;
    p->except = except;
    p->nexcept = count;
    return p;
}

Ref any_of(Elab *e, const Ref *r, uint32_t n)
{
    if (n == 0) return ir_const(e->c, 1, 0);
    if (n == 1) return r[0];
    return ir_or(e->c, any_of(e, r, n / 2), any_of(e, r + n / 2, n - n / 2));
}

/* Gathers equal values: conditions of group g in order. Returns the number of groups. */
static uint32_t group_values(Elab *e, const Ref *cond, const Ref *val, uint32_t n, Ref *gcond, Ref *gval)
{
    uint32_t groups = 0;
    Ref *same = xalloc(n * sizeof *same);
    for (uint32_t i = 0; i < n; i++) {
        bool seen = false;
        for (uint32_t j = 0; j < i && !seen; j++) seen = val[j] == val[i];
        if (seen) continue;
        uint32_t m = 0;
        for (uint32_t j = i; j < n; j++)
            if (val[j] == val[i]) same[m++] = cond[j];
        gval[groups] = val[i];
        gcond[groups++] = any_of(e, same, m);
    }
    return groups;
}

Ref select_value(Elab *e, const Ref *cond, const Ref *val, uint32_t n, unsigned width, bool total)
{
    Ref *gcond = xalloc((n + 1) * sizeof *gcond), *gval = xalloc((n + 1) * sizeof *gval);
    uint32_t groups = group_values(e, cond, val, n, gcond, gval), m = 0;
    if (groups == 0) return ir_const(e->c, width, 0);
    if (total && groups == 1) return gval[0];
    if (total && groups == 2) return ir_mux(e->c, gcond[0], gval[0], gval[1]);
    Ref *args = xalloc(2 * groups * sizeof *args);
    Span span = op_at(e->c, gval[0])->span;
    for (uint32_t i = 0; i < groups; i++) {
        uint64_t k;
        if (ir_is_const(e->c, gval[i], &k) && !k) continue; /* no condition set gives 0 anyhow */
        args[m++] = gcond[i];
        args[m++] = gval[i];
    }
    return m ? ir_op(e->c, OP_PMUX, width, 0, m, args, span) : ir_const(e->c, width, 0);
}
