/* bitcode.c: from nodes to operations on planes in memory, and running them.
 *
 * Nodes are taken in depth-first order, so that a temporary is used soon; that order is cut into stretches, and within a stretch nodes of the
 * same depth and operation stand together: a processor runs a list of equal operations without guessing which comes next. (Machine code, bitjit.c, wants
 * no stretches.) A slot is free again when the last node that reads it has been computed. */
#include "bits.h"
#include <stdlib.h>

enum { STRETCH = 512, MAX_SLOTS = 65536 };

typedef struct {
    uint32_t node, level;
    BitOp op;
    bool flip; /* the slot holds the negation */
} Planned;

typedef struct {
    BitCode *code;
    const Bits *g;
    uint32_t *rank;  /* [nodes] place in `order` + 1; 0: not asked for */
    bool *flip;      /* [nodes] stored negated */
    uint32_t *at;    /* [nodes] slot */
    uint32_t *last;  /* [nodes] the last place in `order` that reads it */
    VEC(Planned) order;
    VEC(uint32_t) free;
    uint32_t next, end;
    bool full;
} Coder;

/* The goals' nodes, and what they need, in depth-first order. */
static void plan_order(Coder *c, const BitGoal *goal, uint32_t n)
{
    NodeList stack = {0}, order = {0};
    uint8_t *seen = calloc(c->g->node.n, 1);
    if (!seen) die("out of memory");
    for (uint32_t i = 0; i < n; i++) bits_order(c->g, goal[i].ref >> 1, seen, &stack, &order);
    for (uint32_t i = 0; i < order.n; i++) {
        vec_push(&c->order, ((Planned){order.data[i], 0, BIT_AND, false}));
        c->rank[order.data[i]] = i + 1;
    }
    free(seen);
    free(stack.data);
    free(order.data);
}

/* How the node is computed from what its inputs' slots hold. */
static void choose(Coder *c, Planned *p)
{
    const Node *x = &c->g->node.data[p->node];
    bool a = (x->a & 1) ^ c->flip[x->a >> 1], b = (x->b & 1) ^ c->flip[x->b >> 1];
    if (x->op == NODE_XOR) p->op = BIT_XOR, p->flip = a ^ b;
    else if (a && b) p->op = BIT_OR, p->flip = true;
    else p->op = a || b ? BIT_ANDN : BIT_AND;
    c->flip[p->node] = p->flip;
}

static int by_level(const void *p, const void *q)
{
    const Planned *x = p, *y = q;
    if (x->level != y->level) return x->level < y->level ? -1 : 1;
    if (x->op != y->op) return x->op < y->op ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

static void sort_stretches(Coder *c, uint32_t stretch)
{
    for (uint32_t first = 0; first < c->order.n; first += stretch) {
        uint32_t end = first + stretch < c->order.n ? first + stretch : c->order.n;
        for (uint32_t i = first; i < end; i++) {
            Planned *p = &c->order.data[i];
            const Node *x = &c->g->node.data[p->node];
            for (int k = 0; k < 2; k++) {
                uint32_t r = c->rank[(k ? x->b : x->a) >> 1];
                if (r > first && c->order.data[r - 1].level >= p->level) p->level = c->order.data[r - 1].level + 1;
            }
            choose(c, p);
        }
        qsort(c->order.data + first, end - first, sizeof *c->order.data, by_level);
    }
    for (uint32_t i = 0; i < c->order.n; i++) c->rank[c->order.data[i].node] = i + 1;
}

static void emit(BitCode *code, BitOp op, uint32_t dst, uint32_t a, uint32_t b)
{
    BitRun *last = code->run.n ? &code->run.data[code->run.n - 1] : NULL;
    if (!last || last->op != (uint32_t)op) {
        vec_push(&code->run, ((BitRun){op, code->step.n, 0}));
        last = &code->run.data[code->run.n - 1];
    }
    vec_push(&code->step, ((BitStep){(uint16_t)dst, (uint16_t)a, (uint16_t)b}));
    last->n++;
}

static uint32_t new_slot(Coder *c)
{
    uint32_t s = c->free.n ? c->free.data[--c->free.n] : c->next++;
    if (s >= c->end) c->end = s + 1;
    if (s >= MAX_SLOTS) c->full = true;
    return s;
}

static void release(Coder *c, uint32_t node, uint32_t place)
{
    if (bits_computed(c->g, node) && c->last[node] == place && c->at[node] != UINT32_MAX) {
        vec_push(&c->free, c->at[node]);
        c->last[node] = UINT32_MAX; /* once, also when both inputs are this node */
    }
}

static void emit_node(Coder *c, uint32_t place)
{
    const Planned *p = &c->order.data[place];
    const Node *x = &c->g->node.data[p->node];
    uint32_t a = c->at[x->a >> 1], b = c->at[x->b >> 1];
    bool swap = p->op == BIT_ANDN && !((x->a & 1) ^ c->flip[x->a >> 1]); /* it is b that is negated */
    if (c->at[p->node] == UINT32_MAX) c->at[p->node] = new_slot(c);
    emit(c->code, p->op, c->at[p->node], swap ? b : a, swap ? a : b);
    release(c, x->a >> 1, place);
    release(c, x->b >> 1, place);
}

/* A node that is a goal as it is gets the goal's slot; its slot is then never given to another. */
static void plan_slots(Coder *c, const BitGoal *goal, uint32_t n)
{
    for (uint32_t i = 0; i < c->g->node.n; i++) {
        c->at[i] = c->g->node.data[i].op == NODE_LEAF ? c->g->node.data[i].a : UINT32_MAX;
        c->last[i] = UINT32_MAX;
    }
    for (uint32_t i = 0; i < c->order.n; i++) {
        const Node *x = &c->g->node.data[c->order.data[i].node];
        c->last[x->a >> 1] = c->last[x->b >> 1] = i;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t node = goal[i].ref >> 1;
        if (!bits_computed(c->g, node)) continue;
        c->last[node] = UINT32_MAX; /* the goals are copied last */
        if (c->at[node] == UINT32_MAX && c->flip[node] == (goal[i].ref & 1)) c->at[node] = goal[i].slot;
    }
}

/* Constants: x & ~x and its negation, of the goal's own slot. */
static void emit_goal(Coder *c, const BitGoal *goal)
{
    uint32_t node = goal->ref >> 1;
    bool flip = (goal->ref & 1) ^ c->flip[node];
    if (node == 0) {
        emit(c->code, BIT_XOR, goal->slot, goal->slot, goal->slot);
        if (flip) emit(c->code, BIT_NOT, goal->slot, goal->slot, 0);
    } else if (flip || c->at[node] != goal->slot) {
        emit(c->code, flip ? BIT_NOT : BIT_COPY, goal->slot, c->at[node], 0);
    }
}

uint32_t bitcode_make(BitCode *code, const Bits *g, const BitGoal *goal, uint32_t n, uint32_t temp)
{
    Coder c = {.code = code, .g = g, .next = temp, .end = temp};
    c.rank = calloc(g->node.n, sizeof *c.rank);
    c.flip = calloc(g->node.n, sizeof *c.flip);
    c.at = xrealloc(NULL, g->node.n * sizeof *c.at);
    c.last = xrealloc(NULL, g->node.n * sizeof *c.last);
    if (!c.rank || !c.flip) die("out of memory");
    code->step.n = code->run.n = 0;
    plan_order(&c, goal, n);
    sort_stretches(&c, bitjit_usable() ? 1 : STRETCH);
    plan_slots(&c, goal, n);
    for (uint32_t i = 0; i < c.order.n; i++) emit_node(&c, i);
    for (uint32_t i = 0; i < n; i++) emit_goal(&c, &goal[i]);
    free(c.rank);
    free(c.flip);
    free(c.at);
    free(c.last);
    free(c.order.data);
    free(c.free.data);
    if (bitjit_usable() && !c.full) bitjit_make(code, temp);
    return c.full ? 0 : c.end;
}

void bitcode_free(BitCode *c)
{
    bitjit_free(c);
    free(c->step.data);
    free(c->run.data);
}

/* ---- running: the same text for each width of vectors ---- */
typedef uint64_t Vector __attribute__((vector_size(sizeof(Plane)), aligned(64), may_alias));
#define EACH(expression)                                                      \
    for (const BitStep *s = first, *end = first + r->n; s < end; s++) {       \
        const Vector *a = (const Vector *)&p[s->a], *b = (const Vector *)&p[s->b]; \
        (void)b;                                                              \
        *(Vector *)&p[s->dst] = (expression);                                 \
    }                                                                         \
    break
#define DEFINE_RUN(name, attribute)                                                                    \
    attribute static void name(const BitCode *c, Plane *p)                                             \
    {                                                                                                  \
        for (const BitRun *r = c->run.data, *stop = r + c->run.n; r < stop; r++) {                     \
            const BitStep *first = c->step.data + r->first;                                            \
            switch ((BitOp)r->op) {                                                                    \
            case BIT_AND: EACH(*a & *b);                                                               \
            case BIT_ANDN: EACH(~*a & *b);                                                             \
            case BIT_OR: EACH(*a | *b);                                                                \
            case BIT_XOR: EACH(*a ^ *b);                                                               \
            case BIT_COPY: EACH(*a);                                                                   \
            case BIT_NOT: EACH(~*a);                                                                   \
            case BIT_OPS: break;                                                                       \
            }                                                                                          \
        }                                                                                              \
    }
DEFINE_RUN(run_plain, )
#if defined(__x86_64__)
DEFINE_RUN(run_avx2, __attribute__((target("avx2"))))
DEFINE_RUN(run_avx512, __attribute__((target("avx512f"))))
#endif

void bitcode_run(const BitCode *c, Plane *plane)
{
    if (bitjit_run(c, plane)) return;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        run_avx512(c, plane);
        return;
    }
    if (__builtin_cpu_supports("avx2")) {
        run_avx2(c, plane);
        return;
    }
#endif
    run_plain(c, plane);
}

/* ---- transposition ---- */
/* Hacker's Delight 7-3, on all words of the planes at once: swaps ever smaller blocks across the diagonal. */
#define DEFINE_TRANSPOSE(name, attribute)                              \
    attribute static void name(Vector *x)                              \
    {                                                                  \
        uint64_t m = 0x00000000ffffffffull;                            \
        for (int j = 32; j; j >>= 1, m ^= m << j)                      \
            for (int k = 0; k < 64; k = (k + j + 1) & ~j) {            \
                Vector t = (x[k] >> j ^ x[k + j]) & m;                 \
                x[k] ^= t << j;                                        \
                x[k + j] ^= t;                                         \
            }                                                          \
    }
DEFINE_TRANSPOSE(transpose_plain, )
#if defined(__x86_64__)
DEFINE_TRANSPOSE(transpose_avx2, __attribute__((target("avx2"))))
DEFINE_TRANSPOSE(transpose_avx512, __attribute__((target("avx512f"))))
#endif

static void transpose(Plane *x)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        transpose_avx512((Vector *)x);
        return;
    }
    if (__builtin_cpu_supports("avx2")) {
        transpose_avx2((Vector *)x);
        return;
    }
#endif
    transpose_plain((Vector *)x);
}

void planes_to_lanes(const Plane *plane, const uint16_t *slot, uint32_t n, uint64_t *out)
{
    Plane x[64];
    for (uint32_t k = 0; k < n; k++) x[k] = plane[slot[k]];
    memset(x + n, 0, (64 - n) * sizeof *x);
    transpose(x);
    memcpy(out, x, sizeof x);
}

void lanes_to_planes(const uint64_t *in, Plane *plane, const uint16_t *slot, uint32_t n)
{
    Plane x[64];
    memcpy(x, in, sizeof x);
    transpose(x);
    for (uint32_t k = 0; k < n; k++) plane[slot[k]] = x[k];
}
