/* bits.h: logic over bit planes. A plane holds one bit of every lane (a lane is a machine, or a token of a given trace); an expression over
 * planes is a node, equal nodes are one, and what is asked for is compiled to a list of two-input operations.
 *
 *   bits.c       nodes: AND and XOR with negation for free; sums, tables
 *   bitcode.c    scheduling, slots, the list of operations, and running it
 *   bitjit.c     the list as machine code */
#ifndef TAPEOUT_BITS_H
#define TAPEOUT_BITS_H
#include "runtime.h"

/* A node, or its negation: node << 1 | negated. */
typedef uint32_t Ref;
enum { FALSE_REF = 0, TRUE_REF = 1 };

typedef enum { NODE_CONST, NODE_LEAF, NODE_AND, NODE_XOR } NodeOp;
typedef struct {
    NodeOp op;
    Ref a, b; /* leaf: a is its slot */
} Node;
typedef struct {
    VEC(Node) node;
    uint32_t *slot, nslots; /* hash table */
} Bits;

/* ---- bits.c ---- */
void bits_init(Bits *g);
void bits_reset(Bits *g); /* forgets all nodes */
void bits_free(Bits *g);
Ref bits_leaf(Bits *g, uint32_t slot); /* a plane in memory */
Ref bits_and_nodes(Bits *g, Ref a, Ref b); /* neither is a constant */
Ref bits_xor_nodes(Bits *g, Ref a, Ref b);
static inline Ref bits_and(Bits *g, Ref a, Ref b)
{
    if (a <= TRUE_REF) return a == TRUE_REF ? b : FALSE_REF;
    if (b <= TRUE_REF) return b == TRUE_REF ? a : FALSE_REF;
    return bits_and_nodes(g, a, b);
}
static inline Ref bits_xor(Bits *g, Ref a, Ref b) { return a <= TRUE_REF || b <= TRUE_REF ? a ^ b : bits_xor_nodes(g, a, b); }
static inline Ref bits_not(Ref a) { return a ^ 1; }
static inline Ref bits_or(Bits *g, Ref a, Ref b) { return bits_not(bits_and(g, bits_not(a), bits_not(b))); }
Ref bits_mux(Bits *g, Ref s, Ref one, Ref zero);

/* An amount that a plane adds where it is 1. */
typedef struct {
    Ref plane;
    int64_t w;
} Term;
enum { MAX_PLANES = 40 };
/* An integer of each lane: lo + sum of plane k * 2^k; never above hi. */
typedef struct {
    int64_t lo, hi;
    uint32_t n;
    Ref plane[MAX_PLANES];
} Int;
/* Planes needed for 0 .. span. */
uint32_t bits_width(uint64_t span);
/* out[width] = the planes of c + sum of the terms, modulo 2^width. */
void bits_add(Bits *g, const Term *t, uint32_t n, int64_t c, uint32_t width, Ref *out);
/* The sum as an Int whose range follows from the terms alone; false when it needs more than MAX_PLANES. */
bool bits_sum(Bits *g, const Term *t, uint32_t n, int64_t c, Int *out);
/* The plane that is table[i] where the n planes of `in` say i; entries from `size` on do not matter. */
Ref bits_table(Bits *g, const Ref *in, uint32_t n, const uint8_t *table, uint32_t size);

/* Nodes that are operations, by number. */
static inline bool bits_computed(const Bits *g, uint32_t node) { return g->node.data[node].op >= NODE_AND; }
typedef VEC(uint32_t) NodeList;
/* Appends the operations that `root` needs and that are not in `seen` ([nodes]) yet to *order, operands first, and marks them. *stack is scratch. */
void bits_order(const Bits *g, uint32_t root, uint8_t *seen, NodeList *stack, NodeList *order);

/* ---- bitcode.c ---- */
/* A plane in memory is `words` 64-bit words, whatever the processor's vectors are. */
enum { PLANE_WORDS = 8, LANES = 64 * PLANE_WORDS };
typedef struct {
    uint64_t w[PLANE_WORDS];
} __attribute__((aligned(64))) Plane;

typedef enum { BIT_AND, BIT_ANDN, BIT_OR, BIT_XOR, BIT_COPY, BIT_NOT, BIT_OPS } BitOp; /* ANDN: ~a & b */
typedef struct {
    uint16_t dst, a, b;
} BitStep;
typedef struct {
    uint32_t op, first, n;
} BitRun;
/* A list of operations: runs of the same operation. */
typedef struct {
    VEC(BitStep) step;
    VEC(BitRun) run;
    void *machine; /* the list as machine code (bitjit.c), or NULL */
    size_t mapped;
} BitCode;
/* What a piece of code must leave behind: the node's value in a slot. */
typedef struct {
    Ref ref;
    uint32_t slot;
} BitGoal;
/* Compiles the goals; temporaries lie in slots from `temp` on. Returns the first slot beyond those used, 0 when there are too many. */
uint32_t bitcode_make(BitCode *c, const Bits *g, const BitGoal *goal, uint32_t n, uint32_t temp);
void bitcode_free(BitCode *c);
void bitcode_run(const BitCode *c, Plane *plane);

/* ---- bitjit.c ---- */
bool bitjit_usable(void);
/* Adds machine code to a list whose temporaries are the slots from `temp` on; where the system does not allow that nothing happens. */
void bitjit_make(BitCode *c, uint32_t temp);
bool bitjit_run(const BitCode *c, Plane *plane); /* false: there is none */
void bitjit_free(BitCode *c);

/* ---- bitcode.c ---- */
/* Where a lane's word stands among the words of all lanes. */
static inline uint32_t lane_place(uint32_t lane) { return (lane & 63) * PLANE_WORDS + (lane >> 6); }
/* out[lane_place(i)], bit k = plane k's bit of lane i, and back; [LANES] words; n <= 64 planes, given by their slots. */
void planes_to_lanes(const Plane *plane, const uint16_t *slot, uint32_t n, uint64_t *out);
void lanes_to_planes(const uint64_t *in, Plane *plane, const uint16_t *slot, uint32_t n);
#endif
