/* Channels as sums of conditions (runtime/slice_form.c): random rules, exceptions and amounts over ten planes, for every value of the planes and every level of what
 * is assumed. Where the check says nothing the channel is the sum; at the widest level it never says anything. Also that a sum told from others at one end
 * is the AND that it is, and that a bit with its exceptions needs no check. */
#include "../../runtime/slice.h"
#include "random64.h"
#include <stdlib.h>

enum { LEAVES = 10, SUMS = 400, MOST_PARTS = 7 };

/* A condition: some leaves, each as it is or negated. */
typedef struct {
    uint32_t used, sign;
    int64_t w;
} Rule;

static Bits graph;
static uint8_t *value; /* [nodes] under the assignment looked at */

static bool of(Ref r) { return value[r >> 1] ^ (r & 1); }

static void evaluate(uint32_t leaves)
{
    for (uint32_t i = 0; i < graph.node.n; i++) {
        const Node *x = &graph.node.data[i];
        if (x->op == NODE_CONST) value[i] = 0;
        else if (x->op == NODE_LEAF) value[i] = leaves >> x->a & 1;
        else value[i] = x->op == NODE_AND ? of(x->a) && of(x->b) : of(x->a) != of(x->b);
    }
}

static int64_t int_of(const Int *x)
{
    int64_t v = x->lo;
    for (uint32_t p = 0; p < x->n; p++) v += (int64_t)of(x->plane[p]) << p;
    return v;
}

static int64_t sum_of(const Rule *r, uint32_t n, uint32_t leaves)
{
    int64_t v = 0;
    for (uint32_t i = 0; i < n; i++) v += ((leaves ^ r[i].sign) & r[i].used) ? 0 : r[i].w;
    return v;
}

/* Rules of one or two leaves; exceptions: an earlier rule under more conditions, taken away. `amounts`: not only 1. */
static uint32_t random_rules(Rule *r, bool amounts)
{
    uint32_t n = 1 + (uint32_t)(random64() % MOST_PARTS);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t x = random64();
        r[i] = (Rule){1u << x % LEAVES | 1u << (x >> 8) % LEAVES, (uint32_t)(x >> 16) & ((1 << LEAVES) - 1), 1};
        if (i && x >> 32 & 1) {
            const Rule *rule = &r[(x >> 40) % i];
            r[i].sign = (rule->sign & rule->used) | (r[i].sign & ~rule->used);
            r[i].used |= rule->used;
            r[i].w = -1;
        }
        else if (i && (x >> 33 & 7) == 0) r[i].w = -1; /* an exception to nothing */
        if (amounts) r[i].w *= 1 << (x >> 56 & 3);
    }
    return n;
}

static Int *make(Block *k, Sum *s, const Rule *r, uint32_t n, uint8_t level)
{
    s->term.n = s->part.n = 0;
    for (uint32_t i = 0; i < n; i++) {
        Entry *literal = pool_array(k->pool, LEAVES, sizeof *literal);
        Part p = {.first = i, .end = i + 1, .lo = r[i].w < 0 ? r[i].w : 0, .hi = r[i].w > 0 ? r[i].w : 0, .literal = literal};
        Ref all = TRUE_REF;
        for (uint32_t b = 0; b < LEAVES; b++) {
            if (!(r[i].used >> b & 1)) continue;
            bool on = r[i].sign >> b & 1;
            literal[p.literals++] = (Entry){b, on ? 1 : -1};
            all = bits_and(k->g, all, bits_leaf(k->g, b) ^ !on);
        }
        vec_push(&s->part, p);
        vec_push(&s->term, ((Term){all, r[i].w}));
    }
    return sum_channel(k, s, NULL, 0, level);
}

static bool right(const Int *x, const Block *k, const Rule *r, uint32_t n, uint8_t level)
{
    for (uint32_t leaves = 0; leaves < 1u << LEAVES; leaves++) {
        evaluate(leaves);
        bool bad = false;
        for (uint32_t i = 0; i < k->check.n; i++) bad |= of(k->check.data[i].ref);
        if (bad ? level == WIDEST : int_of(x) != sum_of(r, n, leaves)) return false;
    }
    return true;
}

static bool try_rules(const Rule *r, uint32_t n, uint8_t level, uint32_t *checks)
{
    bits_reset(&graph);
    Block k = {.g = &graph, .pool = pool_new()};
    Sum s = {0};
    Int *x = make(&k, &s, r, n, level);
    value = xrealloc(value, graph.node.n);
    bool ok = x && right(x, &k, r, n, level);
    *checks = k.check.n;
    free(s.term.data);
    free(s.part.data);
    free(k.check.data);
    pool_free(k.pool);
    return ok;
}

/* Leaf 0 and 1 but for leaf 2, 0 and not 1: a bit, which needs no check. */
static bool exception_is_free(void)
{
    const Rule r[] = {{3, 3, 1}, {7, 7, -1}, {3, 1, 1}};
    uint32_t checks;
    return try_rules(r, 3, 0, &checks) && checks == 0;
}

/* a + b + c at least 3 is their AND, and at most 2 its negation. */
static bool end_is_an_and(void)
{
    bits_reset(&graph);
    Block k = {.g = &graph, .pool = pool_new()};
    Int bit[3], *x[3];
    const Entry e[] = {{0, 1}, {1, 1}, {2, 1}};
    const uint8_t top[] = {0, 0, 0, 1}, rest[] = {1, 1, 1, 0};
    Table t;
    Ref all = TRUE_REF;
    for (uint32_t i = 0; i < 3; i++) {
        bit[i] = (Int){.hi = 1, .n = 1, .plane = {bits_leaf(&graph, i)}};
        x[i] = &bit[i];
        all = bits_and(&graph, all, bit[i].plane[0]);
    }
    bool ok = form_table(&k, x, e, 3, 0, &t) && table_plane(&k, &t, top) == all && table_plane(&k, &t, rest) == bits_not(all);
    pool_free(k.pool);
    return ok;
}

int main(void)
{
    uint32_t checks;
    Rule r[MOST_PARTS];
    bits_init(&graph);
    for (uint32_t i = 0; i < SUMS; i++) {
        uint32_t n = random_rules(r, i & 1);
        for (uint8_t level = 0; level <= WIDEST; level++)
            if (!try_rules(r, n, level, &checks)) die("sum %u, level %u: the channel is not the sum", i, level);
    }
    if (!exception_is_free()) die("a rule with an exception needs a check");
    if (!end_is_an_and()) die("a sum's end is no AND");
    bits_free(&graph);
    free(value);
    return 0;
}
