/* elaborate_match.c: the arms of a match, as a value or as a statement, and their conditions. */
#include "elaborate.h"

typedef struct {
    VEC(uint64_t) seen;
    VEC(Span) at;
} Patterns;

static bool pattern_new(Elab *e, Patterns *p, uint64_t k, Span at)
{
    for (uint32_t i = 0; i < p->seen.n; i++)
        if (p->seen.data[i] == k) {
            fail(e, at, "the pattern %llu is there twice", (unsigned long long)k);
            return false;
        }
    vec_push(&p->seen, k);
    vec_push(&p->at, at);
    return true;
}

/* The condition of one arm: the subject equals one of its patterns. */
static bool arm_cond(Elab *e, const Node *arm, Ref subject, Patterns *seen, Ref *cond)
{
    unsigned width = op_at(e->c, subject)->width;
    Ref *eq = xalloc((arm->list.n + 1) * sizeof *eq);
    bool good = true;
    for (uint32_t i = 0; i < arm->list.n; i++) {
        const Node *n = arm->list.data[i];
        Ref r = eval_bits(e, n, width);
        uint64_t k;
        if (r && !ir_is_const(e->c, r, &k)) {
            fail(e, n->span, "expected a pattern that is known at compile time");
            r = 0;
        }
        if (!r || !pattern_new(e, seen, k, n->span)) good = false;
        else eq[i] = ir_op(e->c, OP_EQ, 1, 0, 2, (Ref[]){ subject, r }, n->span);
    }
    if (good) *cond = any_of(e, eq, arm->list.n);
    return good;
}

/* Drops arms that cannot be taken, keeps only the one that is taken for certain. */
static void prune(Elab *e, Arms *arms)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < arms->n; i++) {
        uint64_t k;
        bool known = ir_is_const(e->c, arms->cond[i], &k);
        if (known && !k) continue;
        arms->arm[n] = arms->arm[i];
        arms->cond[n++] = arms->cond[i];
        if (known) {
            arms->arm[0] = arms->arm[i];
            arms->cond[0] = arms->cond[i];
            n = 1;
            break;
        }
    }
    arms->n = n;
}

bool match_arms(Elab *e, const Node *n, Arms *arms)
{
    Val v = eval(e, n->a, 0);
    Big k;
    if (v.kind == V_ERROR) return false;
    if (v.kind == V_INT && val_const(e, v, &k)) v = bits_val(e, ir_const(e->c, 64, (uint64_t)k));
    if (v.kind != V_BITS) {
        fail(e, n->a->span, "the width of this value is not known here: write zext(.., WIDTH)");
        return false;
    }
    Patterns seen = { 0 };
    *arms = (Arms){ xalloc((n->list.n + 1) * sizeof *arms->arm), xalloc((n->list.n + 1) * sizeof *arms->cond), 0,
                    ++e->groups };
    bool good = true, other = false;
    for (uint32_t i = 0; i < n->list.n; i++) {
        const Node *arm = n->list.data[i];
        uint32_t at = arms->n++;
        arms->arm[at] = arm;
        if (arm->list.n) good &= arm_cond(e, arm, v.ref, &seen, &arms->cond[at]);
        else if (good) arms->cond[at] = ir_not(e->c, any_of(e, arms->cond, at)), other = true;
    }
    if (!good) return false;
    if (!other && (v.width >= 32 || seen.seen.n < (Big)1 << v.width)) {
        if (n->kind == N_CHOOSE || !n->list.n) {
            fail(e, n->span, "the match does not cover every value of a u%u: add else", v.width);
            return false;
        }
        arms->arm[arms->n] = NULL; /* a statement that does nothing otherwise */
        arms->cond[arms->n] = ir_not(e->c, any_of(e, arms->cond, arms->n));
        arms->n++;
    }
    prune(e, arms);
    return true;
}
