/* bitjit.c: a list of operations on planes as machine code for x86-64 with AVX2, half a plane at a time.
 *
 * The interpreter of bitcode.c loads two operands and stores a result for each operation, of planes that fill a few hundred KiB: it waits for
 * the second-level cache. Here the list is run through once at compile time with the sixteen vector registers at hand: a value stays in a register until
 * another needs the place, then the one whose next use is furthest goes (Belady); a temporary that is never pushed out never reaches memory.
 * What a list leaves behind, slots below `temp`, is stored when it is made. The semantics are the list's, operation for operation.
 *
 *   rdi         the planes, at the half that is to be computed; slot i at 64 i
 *   ymm0..14    values
 *   ymm15       all ones, for negation
 *
 * Encodings: Intel SDM vol. 2, VEX.256.66.0F (2.3.5: two-byte and three-byte prefix). */
#include "bits.h"
#include <stdlib.h>
#if defined(__x86_64__) && defined(__linux__)
#include <sys/mman.h>

enum { REGISTERS = 15, ONES = 15, NEVER = 0xffffffff, NOWHERE = 0xff, SLOTS = 65536, MOST_BYTES = 24 };
enum { LOAD = 0x6f, STORE = 0x7f, PAND = 0xdb, PANDN = 0xdf, POR = 0xeb, PXOR = 0xef, PCMPEQD = 0x76 };

/* Which later step reads an operand's or the result's slot next, before it is overwritten. */
typedef struct {
    uint32_t a, b, dst;
} NextUse;

/* What a register holds. */
typedef struct {
    uint32_t slot, next;
    bool held, dirty; /* dirty: the slot in memory does not have it */
} Register;

typedef struct {
    const BitStep *step;
    NextUse *next;
    uint8_t *where; /* [SLOTS] register, or NOWHERE */
    Register reg[REGISTERS];
    uint32_t temp;
    uint8_t *code;
    size_t n;
} Jit;

/* ---- encoding ---- */
static void byte(Jit *j, unsigned b) { j->code[j->n++] = (uint8_t)b; }

static void vex(Jit *j, unsigned reg, unsigned first, unsigned rm)
{
    if (rm < 8) {
        byte(j, 0xc5);
        byte(j, (reg < 8 ? 0x80 : 0) | (~first & 15) << 3 | 5);
    } else {
        byte(j, 0xc4);
        byte(j, (reg < 8 ? 0x80 : 0) | 0x41);
        byte(j, (~first & 15) << 3 | 5);
    }
}

/* reg = first OP rm; loads and stores have no first operand (0). */
static void on_registers(Jit *j, unsigned op, unsigned reg, unsigned first, unsigned rm)
{
    vex(j, reg, first, rm);
    byte(j, op);
    byte(j, 0xc0 | (reg & 7) << 3 | (rm & 7));
}

static void on_slot(Jit *j, unsigned op, unsigned reg, unsigned first, uint32_t slot)
{
    uint32_t at = slot * (uint32_t)sizeof(Plane);
    vex(j, reg, first, 0);
    byte(j, op);
    byte(j, 0x80 | (reg & 7) << 3 | 7); /* [rdi + disp32] */
    for (int k = 0; k < 4; k++) byte(j, at >> 8 * k & 0xff);
}

/* ---- registers ---- */
static void drop(Jit *j, unsigned r)
{
    j->where[j->reg[r].slot] = NOWHERE;
    j->reg[r].held = false;
}

/* A register for a new value; those in `keep` (bits) are operands of this step. */
static unsigned take(Jit *j, uint32_t keep)
{
    unsigned best = REGISTERS;
    for (unsigned r = 0; r < REGISTERS; r++) {
        if (!j->reg[r].held) return r;
        if (!(keep >> r & 1) && (best == REGISTERS || j->reg[r].next > j->reg[best].next)) best = r;
    }
    if (j->reg[best].dirty) on_slot(j, STORE, best, 0, j->reg[best].slot);
    drop(j, best);
    return best;
}

static void hold(Jit *j, unsigned r, uint32_t slot, uint32_t next, bool dirty)
{
    j->reg[r] = (Register){slot, next, true, dirty};
    j->where[slot] = (uint8_t)r;
}

/* The operand in a register; `next` is its use after this one. */
static unsigned fetch(Jit *j, uint32_t slot, uint32_t next, uint32_t keep)
{
    unsigned r = j->where[slot];
    if (r == NOWHERE) {
        r = take(j, keep);
        on_slot(j, LOAD, r, 0, slot);
        hold(j, r, slot, next, false);
    }
    j->reg[r].next = next;
    return r;
}

static void release(Jit *j, uint32_t slot)
{
    unsigned r = j->where[slot];
    if (r != NOWHERE && j->reg[r].next == NEVER) drop(j, r);
}

/* ---- steps ---- */
static void define(Jit *j, const BitStep *s, uint32_t next, unsigned r)
{
    if (j->where[s->dst] != NOWHERE) drop(j, j->where[s->dst]);
    bool kept = s->dst < j->temp;
    if (kept) on_slot(j, STORE, r, 0, s->dst);
    if (next != NEVER) hold(j, r, s->dst, next, !kept);
}

/* An operand that is used once more soon is worth a register; one that is not is read from memory by the operation. */
static void two_inputs(Jit *j, unsigned op, const BitStep *s, const NextUse *n)
{
    uint32_t a = s->a, b = s->b, na = n->a, nb = n->b;
    if (op != PANDN && j->where[a] == NOWHERE && j->where[b] != NOWHERE) a = s->b, b = s->a, na = n->b, nb = n->a;
    unsigned ra = fetch(j, a, na, 0), rb = NOWHERE;
    if (a == b) rb = ra;
    else if (j->where[b] != NOWHERE || nb != NEVER) rb = fetch(j, b, nb, 1u << ra);
    release(j, a);
    if (rb != NOWHERE && a != b) release(j, b);
    /* the operands' own registers may be taken now: they are read before the result is written */
    unsigned r = take(j, (1u << ra) | (rb != NOWHERE ? 1u << rb : 0));
    if (rb != NOWHERE) on_registers(j, op, r, ra, rb);
    else on_slot(j, op, r, ra, b);
    define(j, s, n->dst, r);
}

static void one_input(Jit *j, bool flip, const BitStep *s, const NextUse *n)
{
    unsigned ra = fetch(j, s->a, n->a, 0);
    release(j, s->a);
    if (!flip && s->dst < j->temp && n->dst == NEVER) { /* a copy that only memory wants */
        if (j->where[s->dst] != NOWHERE) drop(j, j->where[s->dst]);
        on_slot(j, STORE, ra, 0, s->dst);
        return;
    }
    unsigned r = take(j, 1u << ra);
    if (flip) on_registers(j, PXOR, r, ra, ONES);
    else on_registers(j, LOAD, r, 0, ra);
    define(j, s, n->dst, r);
}

static void emit_step(Jit *j, BitOp op, uint32_t i)
{
    static const uint8_t opcode[BIT_OPS] = {[BIT_AND] = PAND, [BIT_ANDN] = PANDN, [BIT_OR] = POR, [BIT_XOR] = PXOR};
    if (opcode[op]) two_inputs(j, opcode[op], &j->step[i], &j->next[i]);
    else one_input(j, op == BIT_NOT, &j->step[i], &j->next[i]);
}

static void find_uses(Jit *j, const BitCode *c)
{
    uint32_t *seen = xrealloc(NULL, SLOTS * sizeof *seen);
    memset(seen, 0xff, SLOTS * sizeof *seen);
    for (uint32_t k = c->run.n; k-- > 0;)
        for (uint32_t i = c->run.data[k].first + c->run.data[k].n; i-- > c->run.data[k].first;) {
            const BitStep *s = &j->step[i];
            bool two = c->run.data[k].op != BIT_COPY && c->run.data[k].op != BIT_NOT;
            j->next[i].dst = seen[s->dst];
            seen[s->dst] = NEVER;
            j->next[i].a = seen[s->a];
            j->next[i].b = two ? seen[s->b] : NEVER;
            seen[s->a] = i;
            if (two) seen[s->b] = i;
        }
    free(seen);
}

static void emit_all(Jit *j, const BitCode *c)
{
    on_registers(j, PCMPEQD, ONES, ONES, ONES);
    for (uint32_t k = 0; k < c->run.n; k++)
        for (uint32_t i = 0; i < c->run.data[k].n; i++) emit_step(j, (BitOp)c->run.data[k].op, c->run.data[k].first + i);
    byte(j, 0xc5), byte(j, 0xf8), byte(j, 0x77); /* vzeroupper */
    byte(j, 0xc3);
}

bool bitjit_usable(void) { return __builtin_cpu_supports("avx2"); }

/* A step is at most two spills, two loads, an operation and a store, of 8 bytes each. */
void bitjit_make(BitCode *c, uint32_t temp)
{
    bitjit_free(c);
    size_t most = (size_t)c->step.n * 6 * 8 + MOST_BYTES;
    void *map = mmap(NULL, most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) return;
    Jit j = {.step = c->step.data, .temp = temp, .code = map};
    j.next = xrealloc(NULL, (c->step.n + 1) * sizeof *j.next);
    j.where = xrealloc(NULL, SLOTS);
    memset(j.where, NOWHERE, SLOTS);
    find_uses(&j, c);
    emit_all(&j, c);
    free(j.next);
    free(j.where);
    if (mprotect(map, most, PROT_READ | PROT_EXEC)) munmap(map, most); /* not allowed here: the list is interpreted */
    else c->machine = map, c->mapped = most;
}

bool bitjit_run(const BitCode *c, Plane *plane)
{
    if (!c->machine) return false;
    void (*run)(void *);
    memcpy(&run, &c->machine, sizeof run);
    run(plane);
    run((char *)plane + sizeof(Plane) / 2);
    return true;
}

void bitjit_free(BitCode *c)
{
    if (c->machine) munmap(c->machine, c->mapped);
    c->machine = NULL;
}

#else
bool bitjit_usable(void) { return false; }
void bitjit_make(BitCode *c, uint32_t temp) { (void)c, (void)temp; }
bool bitjit_run(const BitCode *c, Plane *plane) { return (void)c, (void)plane, false; }
void bitjit_free(BitCode *c) { (void)c; }
#endif
