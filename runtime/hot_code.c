/* hot_code.c: logic of single bits as machine code for x86-64. A bit is a byte in the frame or the low bit of a general register; the other bits of a
 * register are anything. Code is small above all: a run goes through many paths, and what the first-level caches do not hold costs more than what it does.
 *
 *   rdi, rsi, rbp    the frame at 128, 384 and 640: places below 768 need an offset of one byte
 *   rax, rcx, rdx, rbx, r8 to r15    values; the one whose next use is furthest makes place for another (Belady)
 *
 * Encodings: Intel SDM vol. 2. */
#include "hot.h"
#include <stdlib.h>
#if defined(__x86_64__) && defined(__linux__)
#include <sys/mman.h>

enum { REGISTERS = 12, NEVER = 0xffffffff, NOWHERE = 0xff, SOON = 24, CODE_CHUNK = 1 << 21 };
enum { BASE_DI = 7, BASE_SI = 6, BASE_BP = 5 };
enum { DO_AND, DO_OR, DO_XOR };
static const uint8_t number_of[REGISTERS] = {0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15};

/* ---- memory for code ---- */
typedef struct {
    uint8_t *map;
    size_t size, used;
} Chunk;
struct HotArena {
    VEC(Chunk) chunk;
    size_t bytes;
};

HotArena *hot_arena_new(void)
{
    HotArena *a = xrealloc(NULL, sizeof *a);
    *a = (HotArena){0};
    return a;
}

void hot_arena_reset(HotArena *a)
{
    for (uint32_t i = 0; i < a->chunk.n; i++) munmap(a->chunk.data[i].map, a->chunk.data[i].size);
    a->chunk.n = 0;
    a->bytes = 0;
}

void hot_arena_free(HotArena *a)
{
    if (!a) return;
    hot_arena_reset(a);
    free(a->chunk.data);
    free(a);
}

size_t hot_arena_bytes(const HotArena *a) { return a->bytes; }

/* Memory in whole chunks, each on a large page where the system has such: paths lie far apart, and a small page's address takes as long to find as its code. */
static uint8_t *map_chunks(size_t size)
{
    uint8_t *map = mmap(NULL, size + CODE_CHUNK, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) return NULL;
    size_t before = -(uintptr_t)map % CODE_CHUNK;
    if (before) munmap(map, before);
    munmap(map + before + size, CODE_CHUNK - before);
    madvise(map + before, size, MADV_HUGEPAGE);
    return map + before;
}

/* Never writable and executable at once. */
static const uint8_t *keep_code(HotArena *a, const uint8_t *code, size_t n)
{
    Chunk *c = a->chunk.n ? &a->chunk.data[a->chunk.n - 1] : NULL;
    if (!c || c->size - c->used < n) {
        size_t size = n > CODE_CHUNK ? (n + CODE_CHUNK - 1) / CODE_CHUNK * CODE_CHUNK : CODE_CHUNK;
        uint8_t *map = map_chunks(size);
        if (!map) return NULL;
        c = &a->chunk.data[vec_push(&a->chunk, ((Chunk){map, size, 0}))];
    }
    if (mprotect(c->map, c->size, PROT_READ | PROT_WRITE)) return NULL;
    uint8_t *at = c->map + c->used;
    if (n) memcpy(at, code, n);
    c->used += (n + 15) / 16 * 16;
    a->bytes += n;
    return mprotect(c->map, c->size, PROT_READ | PROT_EXEC) ? NULL : at;
}

bool hot_code_usable(void)
{
    HotArena *a = hot_arena_new();
    uint8_t ret = 0xc3;
    bool ok = keep_code(a, &ret, 1) != NULL;
    hot_arena_free(a);
    return ok;
}

/* ---- the coder ---- */
/* A node to be computed, or a goal to be stored. */
typedef struct {
    uint32_t node, goal;       /* goal: NEVER for a node */
    uint32_t next_a, next_b;   /* items that use the operands next */
    uint32_t next;             /* ... and the result */
} Item;
typedef struct {
    uint32_t node, next;
    bool held;
} Register;
typedef struct {
    const Bits *g;
    VEC(Item) item;
    VEC(uint32_t) free;
    VEC(uint8_t) code;
    uint32_t *next;  /* [nodes] */
    uint16_t *place; /* [nodes] in the frame, or HOT_NONE */
    uint8_t *where, *flip; /* [nodes] register; whether the negation is held */
    Register reg[REGISTERS];
    uint32_t temps, top;
    bool full;
} Coder;

/* ---- encoding ---- */
static void byte(Coder *c, unsigned b) { vec_push(&c->code, (uint8_t)b); }

static void frame_operand(Coder *c, unsigned r, uint32_t place)
{
    unsigned base = place < 256 ? BASE_DI : place < 512 ? BASE_SI : place < 768 ? BASE_BP : BASE_DI;
    uint32_t offset = place - (base == BASE_DI ? 128 : base == BASE_SI ? 384 : 640);
    bool small = place < 768;
    byte(c, (small ? 0x40u : 0x80u) | (r & 7) << 3 | base);
    for (int i = 0; i < (small ? 1 : 4); i++) byte(c, offset >> 8 * i & 0xff);
}

static void rex(Coder *c, unsigned r, unsigned m)
{
    if (r >= 8 || m >= 8) byte(c, 0x40 | (r >= 8) << 2 | (m >= 8));
}

static void load(Coder *c, unsigned r, uint32_t place)
{
    rex(c, r, 0);
    byte(c, 0x0f), byte(c, 0xb6);
    frame_operand(c, r, place);
}

static void store(Coder *c, unsigned r, uint32_t place)
{
    rex(c, r, 0);
    byte(c, 0x88);
    frame_operand(c, r, place);
}

static void move(Coder *c, unsigned to, unsigned from)
{
    rex(c, to, from);
    byte(c, 0x8b);
    byte(c, 0xc0 | (to & 7) << 3 | (from & 7));
}

static void negate(Coder *c, unsigned r)
{
    rex(c, 0, r);
    byte(c, 0xf7);
    byte(c, 0xd0 | (r & 7));
}

static void with_register(Coder *c, unsigned op, unsigned r, unsigned m)
{
    static const uint8_t code[] = {[DO_AND] = 0x23, [DO_OR] = 0x0b, [DO_XOR] = 0x33};
    rex(c, r, m);
    byte(c, code[op]);
    byte(c, 0xc0 | (r & 7) << 3 | (m & 7));
}

static void with_place(Coder *c, unsigned op, unsigned r, uint32_t place)
{
    static const uint8_t code[] = {[DO_AND] = 0x22, [DO_OR] = 0x0a, [DO_XOR] = 0x32};
    rex(c, r, 0);
    byte(c, code[op]);
    frame_operand(c, r, place);
}

static void *filled(uint32_t n, int value, size_t size)
{
    void *p = xrealloc(NULL, (size_t)n * size);
    memset(p, value, (size_t)n * size);
    return p;
}

/* ---- order ---- */
/* What each goal needs, then the goal, so that it is stored as soon as it is there. item_end[parts]: where parts end. */
static void list_items(Coder *c, const HotGoal *goal, const uint32_t *end, uint32_t parts, uint32_t *item_end)
{
    NodeList stack = {0}, order = {0};
    uint8_t *seen = filled(c->g->node.n, 0, 1);
    for (uint32_t p = 0, i = 0; p < parts; p++) {
        for (; i < end[p]; i++) {
            order.n = 0;
            bits_order(c->g, goal[i].ref >> 1, seen, &stack, &order);
            for (uint32_t k = 0; k < order.n; k++) vec_push(&c->item, ((Item){.node = order.data[k], .goal = NEVER}));
            vec_push(&c->item, ((Item){.node = goal[i].ref >> 1, .goal = i}));
        }
        item_end[p] = c->item.n;
    }
    free(seen);
    free(stack.data);
    free(order.data);
}

static void find_uses(Coder *c)
{
    for (uint32_t i = c->item.n; i-- > 0;) {
        Item *x = &c->item.data[i];
        const Node *n = &c->g->node.data[x->node];
        if (x->goal != NEVER) {
            x->next_a = c->next[x->node];
            c->next[x->node] = i;
            continue;
        }
        x->next = c->next[x->node];
        x->next_a = c->next[n->a >> 1];
        x->next_b = c->next[n->b >> 1];
        c->next[n->a >> 1] = c->next[n->b >> 1] = i;
    }
}

/* ---- registers ---- */
static uint32_t new_temp(Coder *c)
{
    if (c->free.n) return c->free.data[--c->free.n];
    uint32_t p = c->temps < HOT_TEMPS ? c->temps++ : c->top++;
    if (p >= HOT_PLACES) c->full = true, p = 0;
    return p;
}

static void drop(Coder *c, unsigned r)
{
    c->where[c->reg[r].node] = NOWHERE;
    c->reg[r].held = false;
}

static void spill(Coder *c, unsigned r)
{
    uint32_t n = c->reg[r].node;
    if (c->place[n] != HOT_NONE || c->reg[r].next == NEVER) return;
    c->place[n] = (uint16_t)new_temp(c);
    store(c, number_of[r], c->place[n]);
}

static unsigned take(Coder *c, uint32_t keep)
{
    unsigned best = REGISTERS;
    for (unsigned r = 0; r < REGISTERS; r++) {
        if (keep >> r & 1) continue;
        if (!c->reg[r].held) return r;
        if (best == REGISTERS || c->reg[r].next > c->reg[best].next) best = r;
    }
    spill(c, best);
    drop(c, best);
    return best;
}

static void hold(Coder *c, unsigned r, uint32_t node, uint32_t next)
{
    c->reg[r] = (Register){node, next, true};
    c->where[node] = (uint8_t)r;
}

/* Its last use is over. */
static void done(Coder *c, uint32_t node)
{
    if (c->where[node] != NOWHERE) drop(c, c->where[node]);
    if (bits_computed(c->g, node) && c->place[node] != HOT_NONE) {
        vec_push(&c->free, c->place[node]);
        c->place[node] = HOT_NONE;
    }
}

static unsigned bit_of(unsigned r) { return r == NOWHERE ? 0 : 1u << r; }

/* A register that holds the node's value and may be changed: its own when nobody needs it there any more. */
static unsigned own(Coder *c, uint32_t node, uint32_t next, uint32_t keep)
{
    unsigned r = c->where[node];
    if (r != NOWHERE && next == NEVER) return r;
    if (r != NOWHERE) {
        unsigned t = take(c, keep | bit_of(r));
        move(c, number_of[t], number_of[r]);
        return t;
    }
    unsigned t = take(c, keep);
    load(c, number_of[t], c->place[node]);
    return t;
}

/* A value that is used again soon is worth a register. */
static void fetch(Coder *c, uint32_t node, uint32_t at, uint32_t next, uint32_t keep)
{
    if (c->where[node] != NOWHERE || next == NEVER || next - at > SOON) return;
    unsigned r = take(c, keep);
    load(c, number_of[r], c->place[node]);
    hold(c, r, node, next);
}

static void node_item(Coder *c, uint32_t at)
{
    const Item *x = &c->item.data[at];
    const Node *n = &c->g->node.data[x->node];
    uint32_t a = n->a >> 1, b = n->b >> 1, na = x->next_a, nb = x->next_b;
    bool fa = (n->a & 1) ^ c->flip[a], fb = (n->b & 1) ^ c->flip[b], turn = false;
    unsigned op = DO_XOR;
    if (n->op == NODE_XOR) c->flip[x->node] = fa ^ fb;
    else {
        op = fa && fb ? DO_OR : DO_AND;
        c->flip[x->node] = fa && fb;
        turn = fa != fb; /* a is the one to be negated */
    }
    fetch(c, a, at, na, bit_of(c->where[b]));
    fetch(c, b, at, nb, bit_of(c->where[a]));
    bool swap = turn ? fb : !(c->where[a] != NOWHERE && na == NEVER) && c->where[b] != NOWHERE && (nb == NEVER || c->where[a] == NOWHERE);
    if (swap) {
        uint32_t t = a, u = na;
        a = b, b = t, na = nb, nb = u;
    }
    unsigned r = own(c, a, na, bit_of(c->where[b]));
    if (turn) negate(c, number_of[r]);
    if (c->where[b] != NOWHERE) with_register(c, op, number_of[r], number_of[c->where[b]]);
    else with_place(c, op, number_of[r], c->place[b]);
    if (na == NEVER) done(c, a);
    else if (c->where[a] != NOWHERE) c->reg[c->where[a]].next = na;
    if (nb == NEVER) done(c, b);
    else if (c->where[b] != NOWHERE) c->reg[c->where[b]].next = nb;
    if (x->next != NEVER) hold(c, r, x->node, x->next);
}

static void goal_item(Coder *c, const Item *x, const HotGoal *goal)
{
    bool turn = (goal->ref & 1) ^ c->flip[x->node];
    unsigned r = c->where[x->node];
    if (turn || r == NOWHERE) r = own(c, x->node, x->next_a, 0);
    if (turn) negate(c, number_of[r]);
    store(c, number_of[r], goal->place);
    if (x->next_a == NEVER) done(c, x->node);
    else if (c->where[x->node] != NOWHERE) c->reg[c->where[x->node]].next = x->next_a;
}

static void enter(Coder *c)
{
    static const uint8_t code[] = {0x53, 0x55, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57,         /* push rbx, rbp, r12 to r15 */
                                   0x48, 0x83, 0xef, 0x80,                                             /* sub rdi, -128 */
                                   0x48, 0x8d, 0xb7, 0, 1, 0, 0, 0x48, 0x8d, 0xaf, 0, 2, 0, 0};        /* lea rsi, [rdi + 256]; lea rbp, [rdi + 512] */
    for (size_t i = 0; i < sizeof code; i++) byte(c, code[i]);
}

static void leave(Coder *c)
{
    static const uint8_t code[] = {0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5d, 0x5b, 0xc3};
    for (unsigned r = 0; r < REGISTERS; r++) {
        if (!c->reg[r].held) continue;
        spill(c, r);
        drop(c, r);
    }
    for (size_t i = 0; i < sizeof code; i++) byte(c, code[i]);
}

/* The part's code, from the one before on; *at: where it begins, UINT32_MAX where there is nothing to do. */
static void make_part(Coder *c, const HotGoal *goal, uint32_t first, uint32_t end, uint32_t *at)
{
    *at = UINT32_MAX;
    if (first == end) return;
    *at = c->code.n;
    enter(c);
    for (uint32_t i = first; i < end; i++)
        if (c->item.data[i].goal == NEVER) node_item(c, i);
        else goal_item(c, &c->item.data[i], &goal[c->item.data[i].goal]);
    leave(c);
}

static bool keep_parts(Coder *c, HotArena *a, const uint32_t *at, uint32_t parts, HotCode *code)
{
    const uint8_t *kept = c->full ? NULL : keep_code(a, c->code.data, c->code.n);
    for (uint32_t p = 0; kept && p < parts; p++) {
        const uint8_t *part = at[p] == UINT32_MAX ? NULL : kept + at[p];
        memcpy(&code[p], &part, sizeof part);
    }
    return kept != NULL;
}

bool hot_code_make(HotArena *a, const Bits *g, const HotGoal *goal, const uint32_t *end, uint32_t parts, uint32_t *top, HotCode *code)
{
    uint32_t n = g->node.n, *item_end = filled(parts, 0, sizeof *item_end), *at = filled(parts, 0, sizeof *at);
    Coder c = {.g = g, .top = *top};
    c.next = filled(n, 0xff, sizeof *c.next);
    c.place = filled(n, 0xff, sizeof *c.place);
    c.where = filled(n, NOWHERE, 1), c.flip = filled(n, 0, 1);
    for (uint32_t i = 0; i < n; i++)
        if (g->node.data[i].op == NODE_LEAF) c.place[i] = (uint16_t)g->node.data[i].a;
    list_items(&c, goal, end, parts, item_end);
    find_uses(&c);
    for (uint32_t p = 0; p < parts; p++) make_part(&c, goal, p ? item_end[p - 1] : 0, item_end[p], &at[p]);
    bool ok = keep_parts(&c, a, at, parts, code);
    *top = c.top;
    free(item_end);
    free(at);
    free(c.next);
    free(c.place);
    free(c.where);
    free(c.flip);
    free(c.item.data);
    free(c.free.data);
    free(c.code.data);
    return ok;
}

#else
HotArena *hot_arena_new(void) { return NULL; }
void hot_arena_reset(HotArena *a) { (void)a; }
void hot_arena_free(HotArena *a) { (void)a; }
size_t hot_arena_bytes(const HotArena *a) { return (void)a, 0; }
bool hot_code_usable(void) { return false; }
bool hot_code_make(HotArena *a, const Bits *g, const HotGoal *goal, const uint32_t *end, uint32_t parts, uint32_t *top, HotCode *code)
{
    (void)a, (void)g, (void)goal, (void)end, (void)parts, (void)top, (void)code;
    return false;
}
#endif
