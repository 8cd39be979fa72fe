/* elaborate_test.c: test blocks to lists of actions on named state elements. Those of imported files are left out. */
#include "elaborate.h"

/* Bits [shift, shift + width) of one row. */
typedef struct {
    const Info *s;
    uint32_t row;
    unsigned shift, width, low; /* low: bits below that are hard-wired 0 */
} Target;

static bool row_by_address(Elab *e, const Info *s, unsigned view, const Node *n, Target *t)
{
    Big addr;
    uint64_t size = (uint64_t)s->rows * (s->row / 8);
    if (!eval_const_in(e, n, s->base, (Big)s->base + size - view / 8, "the address", &addr)) return false;
    if (view < 8 || (view & (view - 1)) || ((uint64_t)addr & (view / 8 - 1))) {
        fail(e, n->span, "found a misaligned address");
        return false;
    }
    uint64_t offset = (uint64_t)addr - s->base;
    t->row = (uint32_t)(offset / (s->row / 8));
    t->shift = (unsigned)(offset % (s->row / 8)) * 8;
    t->width = view;
    return true;
}

static bool target_of(Elab *e, const Node *n, Target *t)
{
    const Node *rows = n->kind == N_INDEX ? n->a : n;
    unsigned view = rows->kind == N_MEMBER ? (unsigned)rows->value : 0;
    if (view) rows = rows->a;
    if (rows->kind != N_NAME || !rows->decl || !rows->decl->at) return false;
    Node *d = rows->decl;
    if (d->kind != N_REG && d->kind != N_FILE && d->kind != N_MEM) return false;
    *t = (Target){ .s = info_of(e, d), .width = 0 };
    if (d->kind == N_REG) {
        t->low = t->s->shift;
        t->width = t->s->elem;
        return n->kind == N_NAME;
    }
    if (n->kind != N_INDEX) return false;
    if (view) return row_by_address(e, t->s, view, n->b, t);
    Big row;
    if (t->s->has_base) {
        fail(e, n->span, "'%s' has addresses, expected a view: %s.u%u[address]", d->name, d->name, t->s->elem);
        return false;
    }
    if (!eval_const_in(e, n->b, 0, t->s->rows - 1, "the row", &row)) return false;
    t->row = (uint32_t)row;
    t->width = t->s->elem;
    return true;
}

/* The value as it is stored in the target. */
static bool value_for(Elab *e, const Target *t, const Node *n, uint64_t *value)
{
    Big k;
    Ref r = eval_const(e, n, &k) ? to_bits(e, (Val){ .kind = V_INT, .i = k }, t->width, n->span) : 0;
    if (!r) return false;
    ir_is_const(e->c, r, value);
    if (t->low && *value & mask64(t->low)) {
        fail(e, n->span, "the low %u bits of '%s' are always 0", t->low, t->s->decl->name);
        return false;
    }
    *value = *value >> t->low << t->shift;
    return true;
}

static void fill_state(TestAction *a, const Target *t)
{
    a->state = t->s->decl->name;
    a->row = t->row;
    a->mask = mask64(t->width - t->low) << t->shift;
}

static void test_set(Elab *e, const Node *n, TestAction *a)
{
    Target t;
    a->kind = TEST_SET;
    if (!target_of(e, n->a, &t)) fail(e, n->a->span, "expected a register or a row of a file or memory");
    else if (value_for(e, &t, n->b, &a->value)) fill_state(a, &t);
}

/* `state == constant`, or an expression over constants. */
static void test_expect(Elab *e, const Node *n, TestAction *a)
{
    const Node *c = n->a;
    Target t;
    bool compare = c->kind == N_BINARY && (c->op == B_EQ || c->op == B_NE);
    if (compare && target_of(e, c->a, &t)) {
        a->kind = TEST_EXPECT;
        a->negate = c->op == B_NE;
        if (value_for(e, &t, c->b, &a->value)) fill_state(a, &t);
        return;
    }
    a->kind = TEST_CONST;
    Ref r = eval_bits(e, c, 1);
    if (r && !ir_is_const(e->c, r, &a->value))
        fail(e, c->span, "expected 'register == constant' or 'row == constant', or an expression over constants");
}

static void count_of(Elab *e, const Node *n, TestAction *a, Big most, const char *what)
{
    Big k = 1;
    if (!n || eval_const_in(e, n, 0, most, what, &k)) a->value = (uint64_t)k;
}

static void test_action(Elab *e, const Node *n, TestAction *a)
{
    a->span = n->span;
    a->text = n->name;
    a->ntext = n->len;
    switch (n->kind) {
    case N_TSET: test_set(e, n, a); break;
    case N_TEXPECT: test_expect(e, n, a); break;
    case N_TSTEP: a->kind = TEST_STEP; count_of(e, n->a, a, 1000000, "the number of steps"); break;
    case N_TRUN: a->kind = TEST_RUN; break;
    case N_TOUTPUT: a->kind = TEST_OUTPUT; break;
    case N_TINPUT: a->kind = TEST_INPUT; break;
    case N_TEXIT: a->kind = TEST_EXIT; count_of(e, n->a, a, UINT32_MAX, "the exit status"); break;
    default: a->kind = TEST_FAULT; a->text = NULL; count_of(e, n->a, a, UINT32_MAX, "the fault's code"); break;
    }
}

static void test_block(Elab *e, const Node *n)
{
    TestCase t = { .name = n->name, .span = n->span };
    for (uint32_t i = 0; i < n->list.n && !e->stop; i++) {
        TestAction a = { 0 };
        test_action(e, n->list.data[i], &a);
        vec_push(&t.actions, a);
    }
    vec_push(&e->d->tests, t);
}

void elaborate_tests(Elab *e)
{
    const NodeList *both[] = { &e->p->top, &e->p->members };
    e->no_effects = true;
    e->frame = NULL;
    e->path = e->root;
    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; i < both[k]->n && !e->stop; i++)
            if (both[k]->data[i]->kind == N_TEST && both[k]->data[i]->span.file == e->p->root)
                test_block(e, both[k]->data[i]);
    e->no_effects = false;
}
