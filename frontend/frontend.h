/* frontend.h: from a circuit source file to the netlist of one machine, its instruction table and its test blocks.
 *
 * Errors in the source are printed to stderr (diag.c) while loading; the caller only has to stop with status 1.
 * Everything returned lives until the process ends. */
#ifndef TAPEOUT_FRONTEND_H
#define TAPEOUT_FRONTEND_H
#include "ir.h"

/* One `-D NAME=VALUE` of the command line: overrides a `param`. The value is written as in the language ("0x80", "64
 * KiB"). */
typedef struct {
    const char *name, *value;
} Define;

/* One field of an instruction that its encoding leaves open. Piece p: bits [hi:lo] of the field stand at word bit `at`
 * upwards. */
typedef struct {
    uint8_t hi, lo, at;
} FieldPiece;
typedef struct {
    const char *name;
    unsigned width;
    const FieldPiece *pieces;
    unsigned npieces;
} InstrField;

/* One row of the disassembly table: a word w of `width` bits is this instruction iff (w & mask) == match. No two rows
 * overlap. */
typedef struct {
    const char *name, *syntax; /* syntax: the assembly string, with {field} */
    unsigned width;
    uint64_t mask, match;
    const InstrField *fields;
    unsigned nfields;
    Span span;
} Instr;

/* ---- test blocks: a list of actions in source order ---- */
typedef enum {
    TEST_SET,    /* bits `mask` of row `row` of `state` become those of `value` */
    TEST_INPUT,  /* append text[0..ntext) to the host's input */
    TEST_STEP,   /* commit `value` steps; an exit or a fault before that fails the test */
    TEST_RUN,    /* run until the machine exits or faults */
    TEST_EXPECT, /* (row & mask) == value; with `negate`, != */
    TEST_OUTPUT, /* all output so far is exactly text[0..ntext) */
    TEST_EXIT,   /* the machine has exited with status `value` */
    TEST_FAULT,  /* the machine has stopped by the fault of code `value` (and message `text`, unless NULL) */
    TEST_CONST   /* an expectation that needed no machine: it holds iff value != 0 */
} TestKind;
typedef struct {
    TestKind kind;
    const char *state; /* a name, since passes may renumber states */
    uint32_t row;
    uint64_t mask, value;
    bool negate;
    const char *text;
    size_t ntext;
    Span span;
} TestAction;
typedef struct {
    const char *name;
    VEC(TestAction) actions;
    Span span;
} TestCase;

/* ---- elaborate.c ---- */
typedef struct {
    Circuit *circuit; /* not optimised */
    bool machine;     /* the file has one */
    VEC(TestCase) tests;
    VEC(Instr) instrs;
} Design;
/* Loads `path` and what it imports. NULL after at least one printed error (error_count() of dsl.h says how many).
 * A file without a machine (a library) gives an empty circuit and its constant tests. */
Design *design_load(const char *path, const Define *defines, unsigned ndefines);
/* The same for a text of `len` bytes with a NUL behind it, imports relative to the working directory: for the
 * fuzzer. */
Design *design_load_text(const char *name, const char *text, size_t len);

/* ---- testblock.c ---- */
/* What a level of the pipeline offers so that test blocks run on it. `step` makes one pass of the machine (not
 * necessarily a retired step) and returns the events as sim_step does, in the numbering of the `emits` of the circuit
 * given to test_run. */
typedef struct {
    void *ctx;
    uint64_t (*get)(void *ctx, uint32_t state, uint32_t row);
    void (*set)(void *ctx, uint32_t state, uint32_t row, uint64_t value);
    uint32_t (*step)(void *ctx, const Event **events, bool *retired);
} TestLevel;
/* Runs one test from the level's initial state. NULL when it passed, or what failed; *where is the place in the
 * source. */
const char *test_run(const TestCase *t, const Circuit *c, const TestLevel *level, Span *where);
/* The same on a fresh interpreter of c (optimised or not). */
const char *test_run_sim(const TestCase *t, const Circuit *c, Span *where);
/* Runs all tests on the interpreter; prints each failure as an error at its place. Returns how many failed. */
unsigned test_run_all(const Design *d, const Circuit *c);
#endif
