/* elaborate.h: what the files elaborate*.c share, and nobody else includes: paths, values, places and the elaborator.
 *
 * Elaboration walks the step once, inlining every call. A statement runs under a *path*, the conditions that lead to
 * it; its effects are collected together with their paths and merged into one write port or emit at the end. Paths know
 * which other paths exclude them, so that merging needs no priority and makes no chains. */
#ifndef TAPEOUT_ELABORATE_H
#define TAPEOUT_ELABORATE_H
#include "../dsl/dsl.h"
#include "frontend.h"

enum {
    MAX_WORK = 1000000,  /* nodes evaluated: bounds unrolling and inlining */
    MAX_DEPTH = 1200,    /* nested evaluations, through calls: bounds recursion */
    MAX_ROWS = 1 << 26,
    MAX_MINUS = 16,      /* of Effect.minus, before they are taken into its condition */
    MAX_ARMS = 1024,     /* effects collected for one register, memory or device */
    INPUT_BITS = 9,      /* of an input: a byte, and whether there is one */
    FAULT_VALUE = 32     /* bits of a fault's value and code, as its handler sees them */
};

typedef struct Path Path;
struct Path {
    Path *up;      /* NULL: the root, always taken */
    Ref lit;       /* the condition that this piece adds */
    Ref abs;       /* AND of all of them */
    uint32_t group;/* arms of one branching exclude each other when their `arm` differs; 0: none */
    uint32_t arm;
    Path **except; /* what follows a branching that may return: excludes these paths and all within them */
    uint32_t nexcept;
    unsigned depth;
};

typedef enum {
    V_ERROR, /* reported; silences what follows from it */
    V_VOID,
    V_INT,   /* a constant that takes the width its context wants */
    V_BITS,
    V_WIDEN  /* sext(e) or zext(e) whose width is not known yet: ref is e */
} ValKind;
typedef struct {
    ValKind kind;
    bool sign; /* V_WIDEN */
    unsigned width;
    Ref ref;
    Big i;
} Val;

/* One effect: `en` of a write is the path, once those it excludes are taken out (registers only). */
typedef struct {
    Path *path;
    Ref index, data, lanes; /* data of a fault: its value, 0: none */
    Ref cond;     /* 0, or the path's condition without the older of those below */
    Path **minus; /* later assignments to the same register that may override this one */
    uint32_t nminus;
    bool inner;   /* made by the inner passes of a loop: never waits for it */
    bool fault;
    Span span;
} Effect;

/* A register, a carried value, or the write port of a file or memory. */
typedef struct {
    unsigned width;
    Ref now; /* its value before the step; 0 for rows */
    VEC(Effect) effects;
} Slot;

/* A declared state element. */
typedef struct {
    Node *decl;
    uint32_t state;
    unsigned elem;    /* declared width */
    unsigned row;     /* width of a stored row: the widest view */
    unsigned shift;   /* of an aligned register: low bits that are not stored */
    bool has_base;
    uint32_t rows;    /* of stored rows */
    uint64_t base;
    bool declared;
    Slot slot;
} Info;

typedef struct Local Local;
struct Local {
    Local *up;
    const char *name;
    Val val;
    Slot *carry; /* not NULL: a carried value */
};

typedef struct {
    Path *path;
    Val val;
    Span span;
} Return;

typedef struct Frame Frame;
struct Frame {
    Frame *up;
    const Node *decl; /* fn, proc, instr or step */
    Span call;
    Path *base;
    Local *locals;
    unsigned want; /* width of the result; 0: not declared */
    VEC(Return) returns;
};

/* Everything that the host may hear of, by role, device or code and message. */
typedef struct {
    EmitRole role;
    const Node *device;
    const char *message;
    uint64_t code;
    VEC(Effect) effects; /* data: payload */
    Span span;
} Sink;

typedef struct {
    Path *wait; /* an inner pass that is not the last */
    Span span;
} Loop;

typedef struct {
    Program *p;
    Design *d;
    Circuit *c;
    const Define *defines;
    unsigned ndefines;
    VEC(Info *) infos;
    VEC(Val) consts;
    VEC(Sink *) sinks;
    VEC(Loop) loops;
    VEC(Slot *) hidden;       /* loop state, shared by loops that exclude each other */
    VEC(uint32_t) hidden_state;
    VEC(Span) reported;
    Frame *frame;
    Path *root, *path; /* path NULL: this point is not reached */
    Path *handling;    /* of the fault handler, once the faults are known: all other effects wait for a step without a fault */
    VEC(Path *) kept;  /* where the handler keeps the fault */
    uint32_t groups, work, depth;
    bool inner;        /* in the body of a loop */
    bool executing;
    bool no_effects;   /* evaluating constants or tests */
    bool mute;         /* evaluating what is not taken, for its width: errors are not shown */
    bool stop;         /* a limit was reached */
} Elab;

/* ---- elaborate.c ---- */
/* An error about the source; once per place, however often a body is inlined. Returns the error value. */
#define fail elab_fail /* one program holds other functions of this short name */
Val fail(Elab *e, Span at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Counts one unit of work; false when a limit is reached. */
bool enter_work(Elab *e, Span at);
/* Counts n units: comparisons of effects with each other. */
bool add_work(Elab *e, uint32_t n, Span at);
const char *big_text(Big v);

/* ---- elaborate_path.c ---- */
Path *path_child(Elab *e, Path *up, Ref lit, uint32_t group, uint32_t arm);
bool path_within(const Path *p, const Path *q); /* p is q or lies within it */
bool path_exclusive(const Elab *e, const Path *p, const Path *q);
/* The AND of the conditions from `base` (exclusive) down to p. */
Ref path_since(Elab *e, const Path *p, const Path *base);
/* What follows a branching at `saved` whose arms began at start[i] and ended at end[i] (NULL: they returned), given
 * that the frame had `returns` returns before it. `exhaustive`: one of the arms is taken for certain. */
Path *path_join(Elab *e, Path *saved, Path **start, Path **end, uint32_t n, uint32_t returns);
Ref any_of(Elab *e, const Ref *r, uint32_t n); /* OR, balanced */
/* The value whose condition is set; equal values share one arm. At most one condition is set; when none is: anything if
 * `total`, else 0. */
Ref select_value(Elab *e, const Ref *cond, const Ref *val, uint32_t n, unsigned width, bool total);

/* ---- elaborate_const.c: constants, enumerations, types ---- */
unsigned type_width(Elab *e, const Node *type); /* 0: reported */
Val const_value(Elab *e, Node *decl);           /* of a CONST, PARAM or ENUMERATOR */
bool eval_const(Elab *e, const Node *n, Big *value); /* n must be known at compile time */
bool eval_const_in(Elab *e, const Node *n, Big low, Big high, const char *what, Big *value);

/* ---- elaborate_expr.c, elaborate_call.c ---- */
Val eval(Elab *e, const Node *n, unsigned want);
Ref eval_bits(Elab *e, const Node *n, unsigned width); /* 0: reported */
Ref to_bits(Elab *e, Val v, unsigned width, Span at);  /* 0: reported */
Val bits_val(const Elab *e, Ref r);
bool val_const(const Elab *e, Val v, Big *value);
/* The width of a branch that is not taken, or 0. */
unsigned width_untaken(Elab *e, const Node *n);
unsigned infer(Elab *e, const Node *n); /* the width of n if it can be seen without evaluating it, else 0 */
/* Brings values of several branches to one width; false: reported. `want` counts when no value has a width. */
bool unify(Elab *e, Val *v, const Span *at, uint32_t n, unsigned want, unsigned *width);
Val eval_call(Elab *e, const Node *n, unsigned want);
Val run_body(Elab *e, const Node *g, unsigned want); /* of a fn or proc whose frame is in place */
Local *local_find(const Elab *e, const char *name);
void local_add(Elab *e, const char *name, Val v, Slot *carry);

/* ---- elaborate_match.c ---- */
/* The arms of a match that may be taken, with their conditions: exactly one is set. */
typedef struct {
    const Node **arm;
    Ref *cond;
    uint32_t n, group;
} Arms;
bool match_arms(Elab *e, const Node *n, Arms *arms); /* false: reported */

/* ---- elaborate_stmt.c ---- */
void exec_block(Elab *e, const Node *block);
Frame *frame_push(Elab *e, const Node *decl, Span call);
void frame_pop(Elab *e);

/* ---- elaborate_instr.c ---- */
void exec_execute(Elab *e, const Node *n);
void instr_table(Elab *e); /* encodings, their overlaps, the disassembly table */

/* ---- elaborate_loop.c ---- */
void exec_iterate(Elab *e, const Node *n);

/* ---- elaborate_state.c: declarations of state; registers ---- */
void declare_states(Elab *e);
Info *info_of(const Elab *e, const Node *decl);
Ref register_read(Elab *e, Info *s);
Ref register_next(Elab *e, Info *s);
void slot_assign(Elab *e, Slot *s, Ref value, Span at);
Ref slot_next(Elab *e, const Slot *s);
Ref effect_cond(Elab *e, const Effect *x);
bool gives_way(Elab *e, Effect *old);

/* ---- elaborate_rows.c: files and memories ---- */
Val rows_read(Elab *e, Info *s, unsigned view, const Node *index, Span at);
void rows_write(Elab *e, Info *s, unsigned view, const Node *index, const Node *value, Span at);
Ref rows_inside(Elab *e, Info *s, const Node *addr);
/* Is a base address and a size so that the row of an address is a slice of it? Bits of that slice and below in
 * *bits. */
bool base_aligned(const Info *s, unsigned *bits);

/* ---- elaborate_emit.c: emits, and turning all effects into write ports ---- */
void emit_device(Elab *e, const Node *device, Ref payload, Span at);
void emit_fault(Elab *e, uint64_t code, const char *message, Ref value, Path *path, Span at); /* value 0: none */
void emit_take(Elab *e, const Node *input, Span at);
void finish_effects(Elab *e);
/* False, and an error, in the body of a loop; false where nothing has effects. */
bool effect_allowed(Elab *e, Span at);

/* ---- elaborate_fault.c ---- */
void run_handler(Elab *e);
/* 1 unless a fault may come in the same step as the effect and does. */
Ref no_fault(Elab *e, const Effect *x);
/* The condition under which the effects (of one port or emit) happen. */
Ref effects_enable(Elab *e, const Effect *x, uint32_t n);

/* ---- elaborate_forward.c ---- */
void check_forward(Elab *e);

/* ---- elaborate_unused.c ---- */
void check_unused(Elab *e); /* e: a fresh one, thrown away afterwards */

/* ---- elaborate_test.c ---- */
void elaborate_tests(Elab *e);
#endif
