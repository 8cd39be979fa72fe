/* Logic over bit planes: random expressions, compiled, give in every lane what evaluating them node by node gives, as machine code
 * (runtime/bitjit.c, where the processor has it) and as a list that is interpreted. Many live values, so that registers run out. */
#include "../../runtime/bits.h"
#include "random64.h"
#include <stdlib.h>

enum { LEAVES = 40, NODES = 600, GOALS = 60, TEMP = 1000, SLOTS = 4096 };

static Plane value_of(const Plane *node, Ref r)
{
    Plane p = node[r >> 1];
    for (int i = 0; i < PLANE_WORDS; i++) p.w[i] ^= r & 1 ? ~0ull : 0;
    return p;
}

static void evaluate(const Bits *g, const Plane *slot, Plane *node)
{
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *x = &g->node.data[i];
        if (x->op == NODE_CONST) memset(&node[i], 0, sizeof *node);
        else if (x->op == NODE_LEAF) node[i] = slot[x->a];
        else {
            Plane a = value_of(node, x->a), b = value_of(node, x->b);
            for (int k = 0; k < PLANE_WORDS; k++) node[i].w[k] = x->op == NODE_AND ? a.w[k] & b.w[k] : a.w[k] ^ b.w[k];
        }
    }
}

/* Operands near the end make deep chains, operands from anywhere keep many values alive. */
static Ref pick(const Ref *made, uint32_t n)
{
    uint64_t x = random64();
    uint32_t at = x & 1 ? n - 1 - (uint32_t)(x >> 8) % (n < 6 ? n : 6) : (uint32_t)(x >> 8) % n;
    return made[at] ^ (x >> 1 & 1);
}

static void make_goals(Bits *g, BitGoal *goal)
{
    Ref made[LEAVES + NODES + 2] = {FALSE_REF, TRUE_REF};
    uint32_t n = 2;
    for (uint32_t i = 0; i < LEAVES; i++) made[n++] = bits_leaf(g, i);
    for (uint32_t i = 0; i < NODES; i++, n++) {
        Ref a = pick(made, n), b = pick(made, n);
        made[n] = random64() & 1 ? bits_and(g, a, b) : bits_xor(g, a, b);
    }
    for (uint32_t i = 0; i < GOALS; i++) goal[i] = (BitGoal){pick(made, n), LEAVES + i};
}

static bool same(const Plane *slot, const Plane *node, const BitGoal *goal, const char *how, uint64_t seed)
{
    for (uint32_t i = 0; i < GOALS; i++) {
        Plane want = value_of(node, goal[i].ref);
        if (memcmp(&want, &slot[goal[i].slot], sizeof want) == 0) continue;
        fprintf(stderr, "seed %llu, goal %u, %s: wrong\n", (unsigned long long)seed, i, how);
        return false;
    }
    return true;
}

int main(void)
{
    Plane *slot = aligned_alloc(64, SLOTS * sizeof *slot), *node = aligned_alloc(64, SLOTS * sizeof *node);
    Bits g;
    BitCode code = {0};
    BitGoal goal[GOALS];
    bool ok = slot && node;
    bits_init(&g);
    for (uint64_t seed = 1; ok && seed <= 300; seed++) {
        rng = seed;
        bits_reset(&g);
        make_goals(&g, goal);
        for (uint32_t i = 0; i < SLOTS; i++)
            for (int k = 0; k < PLANE_WORDS; k++) slot[i].w[k] = random64();
        evaluate(&g, slot, node);
        uint32_t end = bitcode_make(&code, &g, goal, GOALS, TEMP);
        ok = end > 0 && end <= SLOTS;
        if (!ok) break;
        bitcode_run(&code, slot);
        ok = same(slot, node, goal, code.machine ? "machine code" : "interpreted", seed);
        bitjit_free(&code);
        for (uint32_t i = 0; i < GOALS; i++) memset(&slot[goal[i].slot], 0x5a, sizeof *slot);
        bitcode_run(&code, slot);
        ok = ok && same(slot, node, goal, "interpreted", seed);
    }
    bitcode_free(&code);
    bits_free(&g);
    free(slot);
    free(node);
    return !ok;
}
