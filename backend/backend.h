/* backend.h: from the netlist of one step to the weights of a hybrid model.
 *
 *   protocol.c   which writes are direct and which travel in tokens; the kinds of token; the circuit of one PASS
 *   gates.c      words to bits: a network of small integer functions (nodes)
 *   expr.c       the algebra of what one SwiGLU layer can compute: sums of relu(L) * M
 *   map.c        labels: the earliest time of every node; covering: what is computed where
 *   plan.c       channels, units and ports: the plan, its text and its checks
 *   sim.c        runs a plan in exact integers: the second oracle
 *   blocks.c     plan to sparse weights; chip.c writes them
 *
 * TIME. A pass through the model visits time 0, 1, 2, ...: time 2l is the DeltaNet (or attention) block of layer l, time 2l+1 its
 * MLP. A value of time t is in the residual stream for every block later than t. The token's embedding has time -1. */
#ifndef TAPEOUT_BACKEND_H
#define TAPEOUT_BACKEND_H
#include "../frontend/ir.h"

/* ---- target.c: model shapes ---- */
typedef struct {
    const char *name, *family;
    const char *about;
    bool bf16;              /* default dtype; both are built by every target */
    bool native;            /* hidden, mlp, key_heads and value_heads are chosen for the machine */
    unsigned hidden, mlp;   /* D, F (0 when native) */
    unsigned key_heads, value_heads, dk, dv;
    unsigned attn_heads, attn_kv_heads, head_dim;
    double eps;
    unsigned base_hidden;   /* of the model before which the chip is put; 0: none. Then `hidden` may be 0: chosen, with room for both (graft.c) */
} Target;
extern const Target targets[];
extern const unsigned ntargets;
/* A row of the table; or, for a name that target_for_base made, the shape that it spells. NULL for any other name. */
const Target *target_find(const char *name);
/* The name of the target that puts a chip before a model of the shape `base`: base_hidden, mlp, the heads, eps and bf16 are its own, hidden is that of
 * both together, or 0. */
const char *target_for_base(const Target *base);

/* ---- nodes ---- */
typedef uint32_t Node; /* index into Net.nodes; 0 is the constant 0 */
typedef uint32_t Lit;  /* node * 2 + complement; only for nodes that are bits */
#define LIT0 0u
#define LIT1 1u
static inline Node lit_node(Lit l) { return l >> 1; }
static inline bool lit_inv(Lit l) { return l & 1; }
static inline Lit lit_not(Lit l) { return l ^ 1; }

/* An affine form over nodes: k + sum of coef * node. Terms sorted by node, no zero coefficients. */
typedef struct {
    Node node;
    int32_t coef;
} LinTerm;
typedef struct {
    int32_t k;
    uint32_t n;
    LinTerm *t;
} Lin;

/* coef * relu(L) * M, what one SwiGLU unit computes. L = core - cmax * (number of lits that are 0); without a core,
 * L = 1 - (number of lits that are 0), an AND. M = 1 when up.n == 0 and up.k == 1. */
typedef struct {
    double coef;
    uint32_t nlits;
    Lit *lits; /* sorted by node, each node once */
    Lin core;
    int32_t cmax; /* 0: no core; else the largest value of the core, which must be >= 1 */
    Lin up;
} Term;

/* k + lin + sum of terms: the value of a node as computed by one MLP from nodes of earlier times. */
typedef struct {
    Lin lin; /* its k is the constant part */
    uint32_t n;
    Term *t;
} Expr;

typedef enum { N_CONST, N_TOKEN, N_PORT, N_AND, N_XOR, N_MUX, N_PSUM, N_EXPR } NodeKind;
typedef struct {
    uint8_t kind;
    bool bit;        /* range is 0..1 */
    int32_t lo, hi;  /* range of the value */
    uint32_t nargs;  /* N_AND, N_XOR, N_MUX, N_PSUM: literals args[0..nargs) */
    Lit *args;
    Expr expr;       /* N_EXPR: its definition over other nodes (a macro: never expanded before its leaves exist) */
    uint32_t port, portbit; /* N_PORT; N_TOKEN: port = token channel */
    Span span;
    /* set by map.c */
    int32_t label;   /* earliest time */
    Expr fast;       /* its value at time `label` over nodes of earlier times */
    bool free;       /* fast is affine: no unit needed, label is that of its latest leaf */
    int32_t need;    /* latest time it must exist by; INT32_MAX: not needed */
    int32_t time;    /* where it is computed; -2: nowhere */
    Expr impl;       /* the chosen definition at `time` */
} NodeInfo;

/* A state copy (one read port of a state element), a stage register or a presence latch; lives in one home layer. */
/* PORT_ROM: a read-only element in an attention layer, looked up among the loader tokens by row number. */
typedef enum { PORT_STATE, PORT_STAGE, PORT_LATCH, PORT_ROM } PortKind;
typedef struct {
    PortKind kind;
    const char *name;
    uint32_t state;        /* PORT_STATE: index into Circuit.states */
    unsigned width, lane;
    uint32_t rows;
    int home, last;        /* layers: the first, and the last where it takes several; a read is complete after the last */
    uint32_t nslices;
    struct Slice {
        int layer;
        uint32_t group0, groups; /* groups of dk rows */
    } *slices;
    Node out0;             /* node of bit 0; bit i is out0 + i (bits under a count: the count node only) */
    bool has_hard;
    uint32_t hard_row;
    /* read */
    uint32_t nraddr;
    Lit *raddr;            /* low bit first; none for one-row ports */
    Lit rgate;             /* reads 0 unless this is 1 (LIT1: always reads) */
    /* write: key row from waddr, whole group and lanes through beta */
    bool unread;           /* nothing reads this copy */
    bool written;
    bool early;            /* direct: in the same pass */
    uint32_t nwaddr;
    Lit *waddr;
    int waddr_tap;         /* 0: this token's value, 1: the previous token's */
    uint32_t nen;
    Lit *en;               /* AND of these, this token's values */
    Lit *lanes;            /* width / lane literals, or NULL */
    Lit *data;             /* width literals */
    int *data_tap;         /* per bit */
    Lit en_any[2];         /* and one of these two is 1 (both LIT0: no such condition) */
    Lit *lane_key;         /* tail register: lane j is written only if this was 1 on the token data_tap back (LIT1: always) */
    /* accumulator: bits [cnt_lo, cnt_lo + cnt_bits) are one integer lane of 0..cnt_max; bump adds 1 to it */
    unsigned cnt_lo, cnt_bits;
    int32_t cnt_max;
    Lit bump;
    Node cnt;              /* its node */
    Lit full;              /* counts in every step: the lane holds cnt_max = 2^cnt_bits, which the bits above do not know yet */
    Lit late;              /* delayed write: done only if this was 1 in the previous pass (LIT0: the write is none) */
    /* loading: when load_on is 1, row load_addr := load_data whatever the rest says (LIT0: cannot be loaded) */
    Lit load_on, *load_addr, *load_data; /* in the sense of load.c; PORT_ROM: 0 except in the token that loads a row */
    uint32_t nload_addr;
    Lit latch_begin, latch_set; /* PORT_LATCH: after a token with either, holds data[0] of that token */
    Span span;
} Port;

/* Write lanes of a port; the last may be narrower. */
static inline unsigned port_lanes(const Port *q) { return (q->width + q->lane - 1) / q->lane; }

enum { TAPS = 4 }; /* of the short convolution before keys and values: what is written may come from this token or the three before */

/* ---- token protocol ---- */
enum { MIN_PAYLOAD = 4, DEFAULT_PAYLOAD = 16, MAX_PAYLOAD = 24 }; /* bits: a vocabulary limit goes no lower; without one; a chip file has no wider kind */
enum { TOK_ZERO = -1, TOK_ONE = -2 };
typedef enum { ROLE_TRACE, ROLE_OUTPUT, ROLE_EXIT, ROLE_FAULT, ROLE_TAKE, ROLE_INPUT, ROLE_START, ROLE_LOAD } Role;
extern const char *const role_name[];
typedef struct {
    const char *name, *message;
    Role role;
    unsigned width;      /* payload bits */
    uint64_t code;       /* of a fault */
    uint32_t base;       /* first token id */
    bool last;           /* the step ends with this token: its fed-back writes take effect */
    bool begin;          /* the pass that reads this token begins a step (last tokens, start, input) */
    bool retire, hold;   /* counts as a step; of an inner pass or between steps: nothing advances */
    bool alone;          /* the upper of two chunks, said alone: the lower one is 0 */
    bool stay;           /* a step after which the tail register is what it was, where else it would advance */
    int field, chunk;    /* what its payload is; -1: none */
    int form;            /* index into Field.form of the short form, -1: none */
    unsigned score;      /* rank: of the kinds that are on at once the one of the highest is said; 0: never said */
    uint32_t word;       /* of the protocol's words: the payload, where it has bits and is said */
    uint32_t carry;      /* 1 + the silently counting element whose upper bits it brings up to date; 0: none */
} Kind;

enum { FIELD_PARTS = 3 }; /* each of at most 64 bits */
/* What a step may have to say: the data of a fed-back write, or the payload of an emit. */
typedef struct {
    const char *name;
    bool emit;
    uint32_t index;      /* of the write or emit in the circuit */
    bool tail;           /* the last field, written at layer 0 */
    Ref need;            /* 1 bit */
    Ref part[FIELD_PARTS]; /* what it says, from the low end: row index, lane mask, data, where they are said; 0: nothing */
    unsigned width, with_index, with_lanes; /* of all; of the index and the mask, 0: not said */
    bool data_tap;       /* the data are not in the token: the write port takes the previous pass's value */
    unsigned payload;    /* bits per chunk */
    unsigned nchunks, *chunk_lo, *chunk_width; /* chunk 0 is the lowest; said low first, the tail's high first */
    unsigned nforms;     /* short forms: the bits above chunk 0 have one of these values */
    uint64_t form[4];
    bool brief;          /* short forms but the last are for the end of a step only: half the rows */
    VEC(uint32_t) regs;  /* flags field: the states packed in it, low first (writes index list) */
    bool flags, loop;
} Field;

typedef struct {
    const char *name;
    VEC(int) by_kind;    /* per kind: TOK_ZERO, TOK_ONE or the payload bit */
} TokChan;

typedef struct Net {
    Circuit *c;          /* the pass circuit */
    VEC(NodeInfo) nodes;
    VEC(Port) ports;
    VEC(Lit) kind_out;   /* per kind, LIT1: always on */
    uint32_t nwords;
    unsigned *word_width;
    Lit **word_out;      /* literals of each word that some kind says */
    int depth;           /* layers used by the machine */
    void *hash;
} Net;
enum { LEAST_SCORE = 32, SCORE_STEP = 2 }; /* logits of the kinds, by rank: blocks.c */

/* ---- options and report ---- */
typedef struct {
    const Target *target;
    bool bf16;
    uint64_t vocab;          /* largest vocabulary; 0: no limit */
    unsigned payload;        /* payload bits; 0: chosen */
    bool plan_only;          /* stop before the weights */
    bool canaries;           /* add those of canary.c */
} BuildOptions;

/* ---- expr.c ---- */
Lin lin_const(int32_t k);
Lin lin_node(Node n, int32_t coef);
Lin lin_add(Lin a, Lin b, int32_t cb); /* a + cb * b */
Lin lin_lit(Lit l);
void lin_range(const Net *net, Lin a, int64_t *lo, int64_t *hi);
Expr expr_lin(Lin l);
Expr expr_add(const Net *net, Expr a, Expr b, double cb);
/* False when the product is no sum of units, or has more than `limit` terms. */
bool expr_mul(const Net *net, Expr a, Expr b, unsigned limit, Expr *out);
Expr expr_not(Expr a); /* 1 - a */
Term term_core(Lin core, int32_t cmax, double coef);
/* The final L and its maximum, for the plan. */
Lin term_gate(Term t, int32_t *lmax);

/* ---- gates.c ---- */
Net *net_new(Circuit *c);
/* Its growable arrays; the rest goes with the arena that it was made in. */
void net_free(Net *n);
Lit g_and(Net *n, Lit a, Lit b);
Lit g_or(Net *n, Lit a, Lit b);
Lit g_xor(Net *n, Lit a, Lit b);
Lit g_mux(Net *n, Lit c, Lit a, Lit b);
Lit g_psum(Net *n, const Lit *cv, unsigned pairs); /* exclusive conditions and values, alternating */
Node g_expr(Net *n, Expr e, int32_t lo, int32_t hi, Span span);
Node g_input(Net *n, NodeKind kind, uint32_t port, uint32_t bit, int32_t lo, int32_t hi);
/* The literals of an AND tree, expanded while the operands are ANDs and `keep` says no. */
void g_and_lits(const Net *n, Lit l, bool (*keep)(const Net *, Lit, void *), void *ctx, Lit **out, uint32_t *nout);
/* Bits of every op reachable from the roots: bits[ref] is an array of op width literals, or NULL. `read` supplies the bits of READ ops,
 * `token` those of TOKEN ops. */
struct Idle;
typedef struct {
    Lit **bits;
} BitMap;
BitMap g_blast(Net *n, const Ref *roots, unsigned nroots, Lit *(*read)(Net *, Ref, BitMap *, void *), void *ctx, const struct Idle *idle);
/* idle.c: conditions, known early, without which nobody looks at a value. */
struct Idle *idle_find(const Circuit *c);
/* macros.c: arithmetic over literals */
/* a + b + cin; of no interest while gate is 0. */
void m_add(Net *n, unsigned w, const Lit *a, const Lit *b, Lit cin, Lit gate, Lit *sum, Span span);
Lit m_less(Net *n, unsigned w, const Lit *a, const Lit *b, Span span);      /* unsigned a < b */
Lit m_equal(Net *n, unsigned w, const Lit *a, const Lit *b, Span span);
Lit m_sum_equal(Net *n, unsigned w, const Lit *a, const Lit *b, const Lit *t, Span span); /* a + b == t, no carry chain */
void m_shift(Net *n, unsigned w, const Lit *a, unsigned nw, const Lit *amount, OpKind kind, Lit *out);
/* sums.c: a * y, or y where a is NULL; of w literals each; negated when s is 1; of no interest while gate is 0. */
typedef struct {
    const Lit *a, *y;
    Lit s, gate;
} SumTerm;
/* A condition without which nobody looks at op r, not later than the words `by` of w bits (latest: not later than the latest of their bits; else
 * the earliest); LIT1: none is known. */
Lit idle_gate(Net *n, const struct Idle *idle, Ref r, Lit *const *bits, const Lit *const *by, unsigned words, unsigned w, bool latest);
/* The sum of the terms modulo 2^w: four levels above a product of bits, two above words. */
void m_sum(Net *n, unsigned w, const SumTerm *t, unsigned nt, Lit *out, Span span);

/* ---- load.c ---- */
/* The values of nodes while every port and token channel reads 0, and of a literal. */
double *load_idle_values(const Net *n);
double load_idle(const double *v, Lit l);
/* Brings the records of all ports into the sense of the bits that they are added to; `loading` is 1 in the loader's tokens. */
void load_records(Net *n, Lit loading);

/* ---- map.c ---- */
void map_label(Net *n, Node from);   /* labels every node from `from` on; ports must have their homes */
void map_label_new(Net *n);           /* from the first on that has no label */
void map_label_one(Net *n, Node i);
int map_lit_label(const Net *n, Lit l);
void map_cover(Net *n, const Lit *roots, unsigned nroots, int last_time);

#endif
