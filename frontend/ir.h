/* ir.h: the netlist of one step of a machine: state, word-level SSA operations, writes and emits.
 *
 * A step reads every state element as it was before the step, computes, and then all enabled writes take effect
 * together and all enabled emits happen, in the order of `emits`. Nothing here knows tokens, layers or RISC-V.
 * Sections name the file that defines their functions. */
#ifndef TAPEOUT_IR_H
#define TAPEOUT_IR_H
#include "../dsl/util.h"

typedef uint32_t Ref; /* index into Circuit.ops; ops[0] is a reserved non-op, so 0 means "none" */

typedef enum {
#define OP(e, name, arity, comm) OP_##e,
#include "ops.def"
#undef OP
    OP_COUNT
} OpKind;

typedef struct {
    uint8_t kind;   /* OpKind */
    uint8_t width;  /* 1..64 */
    uint32_t nargs; /* arguments are c->args.data[arg0 .. arg0 + nargs) */
    uint32_t arg0;
    uint64_t imm;   /* CONST: value; READ: state index; SLICE: low bit; TOKEN: channel */
    Span span;
} Op;

typedef enum { ST_REG, ST_FILE, ST_MEM, ST_HOST } StateKind;
typedef enum { INIT_ZERO, INIT_ROWS, INIT_IMAGE, INIT_ENTRY, INIT_SYMBOL } InitKind;
typedef enum { HOME_AUTO, HOME_DELTANET, HOME_ATTENTION, HOME_WEIGHTS } HomeHint;

/* One state element. ST_REG: one row. ST_FILE: few rows, indexed. ST_MEM: many rows, may be filled from the ELF image.
 * ST_HOST: a register that only the host's input tokens write. */
typedef struct {
    const char *name;
    StateKind kind;
    unsigned width;     /* bits of a row, 1..64 */
    uint32_t rows;      /* 1 for registers; any number >= 1 */
    unsigned lane;      /* write granularity in bits, divides width; == width when writes replace the whole row */
    uint64_t base;      /* ST_MEM: byte address of row 0 (row r covers [base + r*width/8, + width/8)) */
    InitKind init;
    uint64_t *row_init; /* INIT_ROWS: nrow_init values from row 0 on; the rest are 0 */
    uint32_t nrow_init;
    const char *symbol; /* INIT_SYMBOL: value of this ELF symbol, or row_init[0] where the ELF has none */
    unsigned init_shift;/* INIT_ENTRY and INIT_SYMBOL: the value is shifted right by this (registers with `align`) */
    bool has_hard;      /* row hard_row is hard-wired to hard_value: never written, whatever the write port says */
    uint32_t hard_row;
    uint64_t hard_value;
    HomeHint home;
    bool forward;       /* a READ sees this step's write (write-through); the write must not depend on such a READ */
    bool hidden;        /* made by the compiler (loop state), not declared by the author */
    Span span;
} State;

/* At most one write per state element. When en is 1 at the end of the step: row[index] := data, only the lanes whose bit
 * is set in `lanes` (bit k = bits [k*lane, (k+1)*lane); lanes == 0 means all). Writes to rows >= rows or to the hard row are dropped. */
typedef struct {
    uint32_t state;
    Ref en, index, data, lanes; /* index 0 for registers */
    Span span;
} Write;

typedef enum { EMIT_OUTPUT, EMIT_EXIT, EMIT_FAULT, EMIT_TAKE } EmitRole;

/* Something the host hears of. OUTPUT: the payload, as a byte, goes to stdout. EXIT: ends the run with the payload as exit status.
 * FAULT: ends the run with exit status 1 and `message`; the payload is the fault's code. TAKE: the machine has consumed its
 * host register `state`; the host sends the next input. At most one emit of each (role, name) a step. */
typedef struct {
    EmitRole role;
    const char *name;    /* of the device, or of the fault */
    const char *message; /* FAULT only */
    Ref en, payload;     /* payload 0: none */
    uint32_t state;      /* TAKE: which host register */
    Span span;
} Emit;

typedef struct {
    const char *name;
    VEC(Op) ops;
    VEC(Ref) args;
    VEC(State) states;
    VEC(Write) writes;
    VEC(Emit) emits;
    Ref retire; /* 1 bit: this step counts as a step of the machine (0 on the inner passes of a loop) */
    void *hash; /* ir.c */
} Circuit;

static inline Op *op_at(const Circuit *c, Ref r) { return &c->ops.data[r]; }
static inline Ref arg_at(const Circuit *c, Ref r, unsigned i) { return c->args.data[c->ops.data[r].arg0 + i]; }

/* ---- ir.c: building, with structural hashing and local folding: an op that folds is never made ---- */
Circuit *circuit_new(const char *name);
Ref ir_const(Circuit *c, unsigned width, uint64_t value);
/* The general builder. Folds constants and identities; returns an existing op where an equal one exists. Dies on a width error. */
Ref ir_op(Circuit *c, OpKind kind, unsigned width, uint64_t imm, unsigned nargs, const Ref *args, Span span);
Ref ir_read(Circuit *c, uint32_t state, Ref index, Span span); /* index 0 for registers */
Ref ir_not(Circuit *c, Ref a);
Ref ir_and(Circuit *c, Ref a, Ref b);
Ref ir_or(Circuit *c, Ref a, Ref b);
Ref ir_xor(Circuit *c, Ref a, Ref b);
Ref ir_add(Circuit *c, Ref a, Ref b);
Ref ir_eq(Circuit *c, Ref a, Ref b);
Ref ir_mux(Circuit *c, Ref cond, Ref a, Ref b);
Ref ir_slice(Circuit *c, Ref a, unsigned lo, unsigned width);
Ref ir_cat2(Circuit *c, Ref hi, Ref lo);
Ref ir_zext(Circuit *c, Ref a, unsigned width); /* also the identity when the width is the same */
Ref ir_sext(Circuit *c, Ref a, unsigned width);
/* old, with the lanes whose bit in `lanes` is set (0: all of them) taken from data. */
Ref ir_lanes(Circuit *c, Ref lanes, unsigned lane, Ref data, Ref old);
bool ir_is_const(const Circuit *c, Ref r, uint64_t *value);
/* Appends (or finds) the op exactly as given, without folding or checks: for text.c and for ir_op itself.
 * `args` must not point into the circuit. */
Ref ir_raw(Circuit *c, const Op *op, const Ref *args, bool unique);
/* A circuit with the same states and no ops, writes or emits: where a pass that rebuilds puts its result. */
Circuit *circuit_like(const Circuit *c);
extern const char *const op_name[OP_COUNT];

/* ---- fold.c (arithmetic), fold_logic.c (AND, OR, exclusion), fold_wire.c (CAT, SLICE, extensions): used by ir_op ---- */
typedef struct {
    OpKind kind;
    unsigned width;
    uint64_t imm;
    unsigned nargs;
    Ref *args; /* canonical order for commutative ops: a constant last, else the older value first */
    Span span;
} Request;
typedef Ref Fold(Circuit *c, const Request *q); /* the value that the op folds to, 0 where it must be made */
Ref ir_fold(Circuit *c, const Request *q);
Fold fold_and, fold_or, fold_cat, fold_slice, fold_zext, fold_sext;
/* The value of an op from those of its arguments; READ and TOKEN have none. */
uint64_t op_value(OpKind kind, unsigned width, uint64_t imm, unsigned nargs, const uint64_t *v, const unsigned *w);
/* True when the 1-bit values a and b can be seen never to be 1 together; false says nothing. */
bool ir_exclusive(const Circuit *c, Ref a, Ref b);
/* True when a = 1 can be seen to make b = 1. */
bool ir_implies(const Circuit *c, Ref a, Ref b);

/* ---- text.c: the text form; circuit_parse(circuit_print(c)) prints the same again ---- */
void circuit_print(const Circuit *c, FILE *out);
/* NULL and a message (line number inside) in *err when the text is malformed; never dies on bad text. */
Circuit *circuit_parse(const char *text, const char **err);

/* ---- verify.c: every invariant of this header in one list ---- */
/* NULL, or what is wrong. */
const char *circuit_check(const Circuit *c);
/* What is wrong with one op (its arguments exist), or NULL: arity and widths. */
const char *op_check(const Circuit *c, OpKind kind, unsigned width, uint64_t imm, unsigned nargs, const Ref *args);

/* ---- passes.c and one file per pass ---- */
/* Runs all passes in place until nothing changes; the table of passes is in passes.c. Returns the circuit that replaces c. */
Circuit *circuit_optimize(Circuit *c);

/* ---- lower.c: for elements that a memory of the model cannot hold as they are; the meaning stays ---- */
/* The marked forward states are ordinary ones, and their reads choose between the row and this step's write. */
Circuit *circuit_lower_forward(Circuit *c, const bool *which);
/* Reads of elements with a hard-wired row that is not 0 choose between the row and the value; files and memories of one row are only
 * indexed by 0. */
Circuit *circuit_lower_rows(Circuit *c);

/* ---- eval.c: the first oracle ---- */
typedef struct {
    EmitRole role;
    uint32_t emit; /* index into c->emits */
    uint64_t payload;
} Event;

typedef struct Sim Sim;
/* The image that fills INIT_IMAGE memories and INIT_ENTRY/INIT_SYMBOL registers; all pointers borrowed. */
typedef struct Image Image;
struct Image {
    uint64_t entry;
    /* Copies `n` bytes from address `addr` into out; bytes that no segment covers are 0. */
    void (*read)(const Image *im, uint64_t addr, uint8_t *out, size_t n);
    /* The symbol's value; false where there is none. */
    bool (*symbol)(const Image *im, const char *name, uint64_t *value);
    const void *ctx;
};
Sim *sim_new(const Circuit *c, const Image *image); /* image may be NULL: everything it would fill is 0 */
void sim_free(Sim *s);
/* One step. Returns the number of events (valid until the next call) in *events; *retired says whether it counted. */
uint32_t sim_step(Sim *s, const Event **events, bool *retired);
/* The two halves of a step: everything but the writes; and the writes, except of the states that skip (may be NULL) marks. */
uint32_t sim_eval(Sim *s, const Event **events, bool *retired);
void sim_commit(Sim *s, const bool *skip);
/* Takes back the writes since the last sim_eval. */
void sim_undo(Sim *s);
/* Keeps the value of op r up to date even if nothing of the step needs it. Before the first step or between steps. */
void sim_watch(Sim *s, Ref r);
uint64_t sim_value(const Sim *s, Ref r);                      /* an op's value in the last step; cheap if watched */
uint64_t sim_get(const Sim *s, uint32_t state, uint32_t row); /* state now */
void sim_set(Sim *s, uint32_t state, uint32_t row, uint64_t value);
#endif
