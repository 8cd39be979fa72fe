/* prove_priv.h: what the files of the proof share. */
#ifndef TAPEOUT_PROVE_PRIV_H
#define TAPEOUT_PROVE_PRIV_H
#include "prove.h"

/* ---- assumptions about the arithmetic; numerics.md gives the sources ---- */
#define SILU_ON 17.0     /* silu(x) == x from here: exp(-x) < 2^-24 even when it is 40 % too large (float32; bfloat16 needs 6.25) */
#define SILU_OFF 104.0   /* silu(-x) == -0 and sigmoid(-x) == 0 from here, in every formula: exp(-x) is 0, or exp(x) infinite */
#define SIGMOID_ONE 17.0

/* ---- integer variables ----
 * A variable is the value of a channel after a block, a linear form of such values, or a free input (a bit of the state, of the payload).
 * Its range holds in every reachable pass. */
typedef uint32_t Var;
enum { NO_VAR = UINT32_MAX };

typedef struct {
    Var v;
    int32_t c;
} VarTerm;

/* [g == gtop] * T(s) * (m + mk). Any of the three variables may be NO_VAR: no condition, T a constant, no factor m + mk. T is given for s
 * in [s0, s0 + n), g is never above gtop. */
typedef struct {
    Var s, g, m;
    int32_t gtop, mk, s0, n;
    int32_t *t;
    int8_t mono;   /* T is: 1 rising, -1 falling, 0 neither */
} Table;

typedef struct {
    uint32_t n;
    int32_t *v; /* rising */
} Values;

enum { WORLDS = 2 }; /* prove_world.c */
typedef enum { VAR_FREE, VAR_LIN, VAR_DEF } VarKind;
typedef struct {
    VarKind kind;
    int32_t lo, hi;    /* during a question: what is left of it */
    int32_t plo, phi;  /* what is proved */
    int32_t wlo[WORLDS], whi[WORLDS]; /* what else holds in passes of each world; empty: there are none */
    int32_t k;         /* DEF: constant part */
    uint32_t nlin, ntable;
    VarTerm *lin;      /* LIN: the form; DEF: the affine part */
    Table *table;      /* DEF */
    uint32_t level;    /* longest chain of definitions below it */
    bool on;           /* part of the present question */
    Values *values;    /* cached; a superset of what the range allows */
    Var side;          /* a form that must hold beside it: index + 1, or 0 */
} VarInfo;

typedef struct Solver Solver;
Solver *solver_new(Pool *pool);
void solver_free(Solver *s);
/* Samples (prove_sample.c) take one of these bits as 1 and the others as 0. Before anything is defined by them. */
void solver_one_hot(Solver *s, const Var *v, uint32_t n);
Var solver_free_var(Solver *s, int32_t lo, int32_t hi);
/* The variable of a linear form without constant (terms sorted by variable, no zero coefficients); equal forms are one variable. */
Var solver_lin(Solver *s, const VarTerm *t, uint32_t n);
int32_t *solver_table(Solver *s, int32_t n); /* room for a Table's values */
/* A defined variable. The arrays are copied, but for the tables' values. Its range is the interval hull of the definition; solver_tighten does better. */
Var solver_def(Solver *s, int32_t k, const VarTerm *lin, uint32_t nlin, const Table *table, uint32_t ntable);
VarInfo *solver_var(const Solver *s, Var v);
/* Questions about v take the range of this form into account. */
void solver_attach(Solver *s, Var v, Var form);
/* Passes in which none of the first n bits is 1 are world 0, those in which none of the others is are world 1. Before anything is defined by them. */
void solver_worlds(Solver *s, const Var *first, uint32_t n, const Var *others, uint32_t nothers);
/* The range of v in a world's passes; false: there are none. */
bool solver_world(const Solver *s, Var v, int world, int32_t *lo, int32_t *hi);
/* A free variable takes over another's ranges. */
void solver_like(Solver *s, Var free, Var other);
/* A form's range after its variables' have narrowed. */
void solver_update(Solver *s, Var v);
/* A range that is known to hold. */
void solver_limit(Solver *s, Var v, int32_t lo, int32_t hi);
/* The range of v in the samples; and that with the examples', which are few but telling. */
void solver_sampled(const Solver *s, Var v, int32_t *lo, int32_t *hi);
void solver_shown(Solver *s, Var v, int32_t *lo, int32_t *hi);
/* Proves lo <= v <= hi by case split, within a budget; on success that becomes v's range. */
bool solver_prove(Solver *s, Var v, int32_t lo, int32_t hi);
/* Whether two bits are never both 1; remembered. */
bool solver_exclusive(Solver *s, Var x, Var y);
/* Whether no reachable pass has lo <= v <= hi for all of the list at once (sound, not complete). */
typedef struct {
    Var v;
    int32_t lo, hi;
} Bound;
bool solver_impossible(Solver *s, const Bound *b, uint32_t n);
/* The same for a list that says much about variables far below each other: it is propagated through everything first. */
bool solver_never(Solver *s, const Bound *b, uint32_t n);
/* Whether v has one value, its least or its largest, in every pass where `given` holds. */
bool solver_fixed(Solver *s, Bound given, Var v, int32_t *value);
uint64_t solver_nodes(const Solver *s);
/* Every value that v can have is among them; contiguous but for linear forms. NULL when there are too many. */
const Values *solver_values(Solver *s, Var v);

/* ---- margins ---- */
typedef enum { M_NORM, M_SUM, M_ROUND, M_GATE_ON, M_GATE_OFF, M_BETA, M_KEY, M_CELL, M_READ, M_DECAY, M_LOGIT, M_KINDS } MarginKind;
enum { MARGIN_BINS = 9 };

typedef struct {
    double ratio;       /* decisive quantity / what it must exceed */
    MarginKind kind;
    int layer;          /* -1: vocabulary */
    const char *tensor; /* or what */
    uint32_t row, line; /* a line as place_of makes it */
} Margin;

/* ---- forms: a row of a projection over the normalised stream ---- */
typedef struct {
    uint32_t ch;
    double c;    /* times the channel's integer value */
} FormTerm;
typedef struct {
    uint32_t n;
    FormTerm *t;
    double k;     /* the pilots' part */
    double kabs;  /* the sum of its parts' magnitudes */
    double kunit; /* a power of two of which all those parts are multiples; 0: none */
} Form;

/* A counter: a lane that some tokens add 1 to. */
typedef struct {
    Var value, bump; /* as read in this pass; the channel that says "add" */
    int32_t max;
    int layer;
    uint32_t head;
} Count;

/* A bit and a later one that are never both 1, and their sum, which is a bit, too. */
typedef struct {
    Var y, sum;
    uint32_t next; /* of the same first bit: index + 1 */
} Pair;

typedef struct Prover {
    const Model *m;
    const Geometry *g;
    ProveOptions opt;
    Pool *pool;
    Solver *s;
    bool bf16;
    double scale;       /* the RMS: 2^K */
    bool *pilot;        /* [hidden] */
    double *pilot_value;
    Var *chan;          /* [hidden] the channel's value now; NO_VAR: constant */
    int32_t *constant;  /* [hidden] its value then */
    struct {
        Var exact, abstract;
    } *read_of;         /* [hidden] while its value is `abstract`: the read that this stands for */
    /* vocabulary */
    Var *kind_var;      /* per kind: 1 when this token is of that kind */
    Var *payload_var;   /* per bit */
    Var one_kind;       /* their sum: 1 */
    double *kind_gap;   /* per kind: the right logit less the best wrong one */
    VEC(Count) counts;
    VEC(Pair) pairs;
    VEC(uint32_t) first_pair; /* per variable: index + 1 */
    int layer;
    uint32_t line;        /* of the circuit, that the proof is at; 0: of none */
    const int32_t *lines, *files; /* of this layer's MLP units; files may be NULL */
    uint32_t nlines;
    uint32_t *head_line;  /* [nv] line of a state that this layer's value head holds, 0: none */
    /* results */
    VEC(Margin) margins;       /* the worst of each kind, layer and tensor */
    uint32_t bins[M_KINDS][MARGIN_BINS]; /* how many, by ratio */
    VEC(const char *) notes;   /* what the verdict assumes beyond numerics.md */
    char *refusal;
    bool undecided;
    uint32_t refusal_line;
    uint64_t vain;      /* nodes of searches for channels' ranges that were not shown */
    uint32_t wide;      /* channels that are sums of gates and not shown to be bits */
    Band *bands;
    CellBand *cells;
    FILE *report;
} Prover;

/* A line of a source as one number, 0: none. */
enum { FILE_SHIFT = 20 };
static inline uint32_t place_of(uint32_t file, uint32_t line) { return line ? file << FILE_SHIFT | line : 0; }

/* Records the first reason; always false. */
bool refuse(Prover *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same where the reason is that the ranges found are too wide, which is no fault of the weights' numbers: for questions of logic only. */
bool not_shown(Prover *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void note(Prover *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* ratio > 1 is well; otherwise refuses. line 0: that of p->line. */
bool margin(Prover *p, MarginKind kind, double ratio, const char *tensor, uint32_t row, uint32_t line);

/* prove_form.c */
/* All rows of a tensor as forms (over x = RMSNorm(h) with the given zero-centred gain): form[rows]. */
bool forms_make(Prover *p, const Tensor *t, const char *name, const Tensor *gain, Form **out);
/* The row's sum is exact in float32 for every order of summation. */
bool form_exact(Prover *p, const Form *f, const char *name, uint32_t row, uint32_t line);
void form_range(const Prover *p, const Form *f, double *lo, double *hi);
/* Narrows its channels' ranges to what they are in the samples, where that is shown; true: one was. */
bool form_tighten(Prover *p, const Form *f);
/* form = a * s + k for a linear variable s; NO_VAR when it is constant. */
bool form_var(Prover *p, const Form *f, Var *s, double *a, double *k);
/* All the values a * s + k may have, in pool memory; NULL after a refusal. */
typedef struct {
    uint32_t n;
    double *v;
} RealValues;
const RealValues *form_values(Prover *p, Var s, double a, double k);
/* Forms that add both channels with one coefficient take their sum as one bit from now on, if they are never both 1. */
void form_pair(Prover *p, uint32_t a, uint32_t b);
double low_bit(double v);     /* largest power of two that divides v; 0 for 0 */
bool holds(bool bf16, double v); /* v is a number of the dtype */
double round_to(bool bf16, double v); /* nearest number of the dtype */
int32_t chan_lo(const Prover *p, uint32_t ch);
int32_t chan_hi(const Prover *p, uint32_t ch);

/* form = q * (m + mk), q a power of two; a constant form: m = NO_VAR, mk = 1. */
bool form_scaled(Prover *p, const Form *f, Var *m, int32_t *mk, double *q);

/* The sign-relevant form of a gate: a * (sum of the terms) + k. A bit is a guard when the gate is never positive while the bit is
 * unfavourable; an AND has nothing but guards. */
typedef struct {
    double a, k;
    double hi;       /* its largest value */
    uint32_t n;
    VarTerm *t;
} Gate;
bool gate_form(Prover *p, const Form *f, Gate *out);

/* A channel's new definition under construction; one Sum serves all channels in turn. */
typedef struct {
    Var v;
    double c;
} RealTerm;
typedef struct {
    const Gate *gate;
    double w;
    bool step;
    Var m;
    int32_t mk;
    Var core;
} Addend;
typedef struct {
    Var s, g, m;
    int32_t gtop, mk, s0, n;
    double *t;
    uint32_t next; /* index + 1 of the next table of the same g or s */
} RealTable;
typedef struct {
    uint32_t ch, line;
    double k;
    VEC(RealTerm) lin;
    VEC(Addend) add;
    VEC(RealTable) table;
    VEC(Var) cores;
    uint32_t *slot, nslot; /* per variable: its latest table + 1 */
    double absum, unit;    /* of the products of the projection that adds to the channel */
} Sum;
void sum_begin(Sum *x, Prover *p, uint32_t ch); /* the channel as it is */
/* The same, and if it is a large read then that read itself, which goes on in this layer with more groups of rows. */
void sum_read(Sum *x, Prover *p, uint32_t ch);
void sum_part(Sum *x, double magnitude, double unit);
/* += w * (m + mk) */
void sum_linear(Prover *p, Sum *x, double w, Var m, int32_t mk);
/* += w * relu(gate) * (m + mk); with `step`, w * [gate > 0] * (m + mk) */
void sum_gate(Sum *x, double w, const Gate *gate, bool step, Var m, int32_t mk);
/* The channel's new value; refuses one that is no integer, or a projection that rounds. */
bool sum_end(Prover *p, Sum *x, const char *name, Var *v);
void sum_free(Sum *x);
/* The residual's old + delta is exact in the dtype, for the channel's new variable. */
bool sum_residual(Prover *p, uint32_t ch, Var v, const char *name, uint32_t line);

/* prove_vocab.c */
bool prove_embedding(Prover *p);
bool prove_argmax(Prover *p);
/* prove_cells.c: what a value head's rows hold and how they read */
typedef struct {
    bool any;            /* the projection's row is not zero */
    int tap;             /* tokens back, -1: no convolution weight, so always 0 */
    Form *f;
} ConvRow;
typedef struct {
    uint32_t nq;
    float q[4];          /* values that the query's entry at the addressed row may have */
    bool rounded;        /* ... nearly: a root on the way to it is none of a power of 4 */
    bool key;            /* some row may be addressed for writing */
    uint32_t dummy;      /* a row that every query also reads and nothing may write: index + 1, or 0 */
} KeyHead;
typedef struct {
    Var value;           /* as read, before the gate; NO_VAR: always 0 */
    double unit;         /* of value */
    double error;        /* what is read is off by at most this much of itself */
    bool gated;          /* read only while this is positive */
    Gate gate;
    double most;
} LaneRead;
typedef struct {
    Prover *p;
    const Layer *l;
    ConvRow *qkv;        /* [conv_dim] */
    Form *z, *b;
    bool *read;          /* [nv * dv] the output projection uses it */
    LaneRead *lane;      /* [nv * dv] result */
    const KeyHead *key;  /* [nk] */
    struct Installed *map; /* [nv] */
} Delta;
bool prove_cells(Delta *d, uint32_t head);
/* Every value of the row is 0, or survives (positive) or vanishes in (negative) SiLU and is a number of the dtype. */
bool silu_row(Prover *p, const Form *f, const char *what, uint32_t row, MarginKind on, Var *s, double *a, double *k);

/* What the state map says the loader puts into a value head. */
typedef struct Installed {
    double *pilot;       /* [dv] */
    double *one;         /* [dv] value of a set bit */
    double *count;       /* [dv] unit of a count */
    int32_t count_max;
    uint32_t rows;       /* rows below this may be written */
    bool any, always;    /* always: every row is, before the first token */
} Installed;

/* prove_delta.c, prove_attn.c, prove_mlp.c */
/* The channels after a mixer whose output projection t reads these lanes. */
bool output_lanes(Prover *p, const Tensor *t, const LaneRead *lane, const char *name);
bool prove_attention(Prover *p, const Layer *l);
bool prove_delta(Prover *p, const Layer *l);
bool prove_mlp(Prover *p, const Layer *l);
/* prove.c */
bool prove_norm(Prover *p, const char *name);
#endif
