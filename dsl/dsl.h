/* dsl.h: from circuit text to a checked tree. Sections name the file that defines each function.
 *
 * One program at a time: the table of sources and the count of errors are global (diag.c), everything else hangs off
 * a Program. No function here stops the process because of what the user wrote. */
#ifndef TAPEOUT_DSL_H
#define TAPEOUT_DSL_H
#include "util.h"

/* Compile-time integers: wide enough that every u64 and every product of two small constants is exact; see
 * MAX_CONST. */
typedef __int128 Big;
#define MAX_CONST ((Big)1 << 64) /* constants stay strictly between -MAX_CONST and MAX_CONST */
#define MAX_TREE 400 /* deepest expression or nesting of statements; bounds the recursion of every later stage */
#define MAX_OPEN 200             /* open brackets; bounds the parser's stack */
#define MAX_ERRORS 20            /* errors printed before we give up */

/* ---- diag.c: sources, and the only printer of errors ---- */
/* Registers a source text; its number goes into Span.file. The text must end with a NUL at text[len]. */
uint32_t source_add(const char *name, const char *text, size_t len);
const char *source_text(uint32_t file, size_t *len);
/* Prints `file:line:col: error: text`, the source line and a caret; counts. Quiet after MAX_ERRORS. */
void error_at(Span at, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Belongs to the error just printed: points at a second place. */
void note_at(Span at, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
unsigned error_count(void);
bool error_limit(void); /* MAX_ERRORS were printed: stop working */
/* Forgets sources and errors: for programs that compile more than once (the fuzzer). */
void diag_reset(void);
/* Diagnostics go to stderr unless this is set. */
extern FILE *diag_out;

/* From the start of a to the end of b; only a's line counts when they lie on different lines. */
Span span_join(Span a, Span b);

/* ---- tree.c: the tree ---- */
/* Kinds of node, and what each uses of {name, value, a, b, c, d, list}. */
#define NODE_KINDS(X)                                                                               \
    /* expressions */                                                                               \
    X(INT)      /* value */                                                                         \
    X(STRING)   /* name[0..len) */                                                                  \
    X(NAME)     /* name; decl = what it names, NULL for a local */                                  \
    X(UNARY)    /* op, a */                                                                         \
    X(BINARY)   /* op, a, b */                                                                      \
    X(INDEX)    /* a[b] */                                                                          \
    X(SLICE)    /* a[b:c] */                                                                        \
    X(MEMBER)   /* a.name; value = N for the view .uN, else 0 */                                    \
    X(CALL)     /* a(list) */                                                                       \
    X(COND)     /* if a {b} else {c} */                                                             \
    X(CHOOSE)   /* match a {list of ARM with an expression} */                                      \
    X(CAT)      /* {list} */                                                                        \
    X(REP)      /* {a {b}} */                                                                       \
    X(LETIN)    /* {list of LET; a} */                                                              \
    X(REDUCE)   /* reduce op name in a..b {c}; op CONCAT for `concat` */                            \
    X(ARM)      /* list of patterns (empty: else) => a */                                           \
    /* types */                                                                                     \
    X(TYPE)     /* uN: value; u(expr): a; enum: name, decl; any width `u`: none; const: op = 1 */   \
    /* statements */                                                                                \
    X(LET)      /* let name : a = b */                                                              \
    X(ASSIGN)   /* a := b */                                                                        \
    X(DO)       /* a; where a is a call */                                                          \
    X(RETURN)   /* return a; */                                                                     \
    X(IF)       /* if a BLOCK b else BLOCK or IF c */                                               \
    X(MATCH)    /* match a {list of ARM with a BLOCK} */                                            \
    X(FOR)      /* for name in a..b BLOCK c */                                                      \
    X(BLOCK)    /* list */                                                                          \
    X(EXECUTE)  /* execute a else BLOCK b */                                                        \
    X(FAULT)    /* fault a "name", b; in a handler also without a */                                \
    X(TAKE)     /* take name */                                                                     \
    X(ITERATE)  /* iterate name in a..b carry list of CARRY until c BLOCK d then BLOCK e */         \
    X(CARRY)    /* name : a = b */                                                                  \
    /* declarations */                                                                              \
    X(IMPORT)   /* import "name" */                                                                 \
    X(MACHINE)  /* machine name : base(a NAME or none) {list} */                                    \
    X(EXTENSION)/* extension name {list} */                                                         \
    X(USE)      /* use name */                                                                      \
    X(MONITOR)  /* monitor name {}: reserved */                                                     \
    X(CONST)    /* const name : a = b */                                                            \
    X(PARAM)    /* param name = b */                                                                \
    X(ENUM)     /* enum name : a {list of ENUMERATOR} */                                            \
    X(ENUMERATOR)/* name = a */                                                                     \
    X(REG)      /* reg name : a align b in d(NAME) = c */                                           \
    X(FILE)     /* file name[b] : a, hard row list {INDEX, value} in d = c */                       \
    X(MEM)      /* mem name[b] : a at e in d = c */                                                 \
    X(OUTPUT)   /* output name : a */                                                               \
    X(EXIT)     /* exit name : a */                                                                 \
    X(INPUT)    /* input name : a */                                                                \
    X(FORMAT)   /* format name {list of PIECE} */                                                   \
    X(PIECE)    /* bits value..low of name; op 1: written name[value:low], not name:width */        \
    X(INSTR)    /* instr name : a(NAME) {list of FIX} "asm" (b STRING or none) BLOCK c */           \
    X(FIX)      /* name = a */                                                                      \
    X(FN)       /* fn name(list of FORMAL) -> a = b, or BLOCK b */                                  \
    X(PROC)     /* proc name(list) -> a BLOCK b */                                                  \
    X(FORMAL)   /* name : a */                                                                      \
    X(STEP)     /* step BLOCK a; op 1: of an extension */                                           \
    X(HANDLER)  /* fault (list of two FORMAL) BLOCK a */                                            \
    X(TEST)     /* test "name" {list of T...} */                                                    \
    /* statements of a test */                                                                      \
    X(TSET)     /* a = b; */                                                                        \
    X(TSTEP)    /* step a; */                                                                       \
    X(TRUN)     /* run; */                                                                          \
    X(TEXPECT)  /* expect a; */                                                                     \
    X(TOUTPUT)  /* expect output "name"; */                                                         \
    X(TEXIT)    /* expect exit a; */                                                                \
    X(TFAULT)   /* expect fault a; */                                                               \
    X(TINPUT)   /* input "name"; */                                                                 \
    X(BAD)      /* stands where an error was reported */

typedef enum {
#define X(k) N_##k,
    NODE_KINDS(X)
#undef X
    N_COUNT
} NodeKind;

/* Operators of UNARY, BINARY and REDUCE; the text is the one in the source. */
#define NODE_OPS(X)                                                                                        \
    X(NONE, "") X(NEG, "-") X(INV, "~") X(NOT, "!") X(NEXT, "next") X(ADD, "+") X(SUB, "-") X(MUL, "*")    \
    X(AND, "&") X(OR, "|") X(XOR, "^") X(SHL, "<<") X(SHR, ">>") X(SAR, ">>>") X(EQ, "==") X(NE, "!=")     \
    X(LT, "<") X(LE, "<=") X(GT, ">") X(GE, ">=") X(SLT, "<s") X(SLE, "<=s") X(SGT, ">s") X(SGE, ">=s")    \
    X(LAND, "&&") X(LOR, "||") X(DIV, "/") X(MOD, "%") X(CONCAT, "concat")

typedef enum {
#define X(k, t) B_##k,
    NODE_OPS(X)
#undef X
    B_COUNT
} NodeOp;
extern const char *const node_kind_name[N_COUNT];
extern const char *const node_op_text[B_COUNT];

typedef struct Node Node;
typedef VEC(Node *) NodeList;
struct Node {
    uint8_t kind, op;
    bool bound;       /* check.c: taken into the machine; elaborate.c: a constant being evaluated, a function in use */
    bool forward;     /* of a FILE or MEM: reads see the step's write */
    uint16_t depth;   /* 1 + that of the deepest child, at most MAX_TREE */
    uint32_t len;     /* of a string, which may contain NULs */
    uint32_t at;      /* check.c: lowest word bit of a PIECE; width in bits of a FORMAT */
    const char *name; /* interned, except of strings */
    Span span, name_span;
    Big value, low;
    Node *a, *b, *c, *d, *e;
    NodeList list;
    Node *decl; /* check.c: what a NAME, TYPE, TAKE or USE refers to */
};

/* A token is a place in the text, by value; lists are built by the grammar. */
typedef struct {
    const char *s;
    uint32_t n;
    Span span;
} Token;

Node *node(NodeKind kind, Span span, Node *a, Node *b, Node *c);
Node *node_op(NodeKind kind, NodeOp op, Span span, Node *a, Node *b);
Node *node_named(NodeKind kind, Token name, Span span, Node *a, Node *b, Node *c);
Node *node_int(Token t);
Node *node_string(NodeKind kind, Token t);
Node *node_list(NodeKind kind, Span span, NodeList *list, Node *a);
NodeList *list_new(void);
NodeList *list_add(NodeList *l, Node *n);
/* Gives n more children, keeping its depth right. */
Node *node_set(Node *n, Node *d, Node *e);
Node *node_set_list(Node *n, NodeList *list);
/* One line a node, indented: `--after tree`. */
void tree_print(const NodeList *decls, FILE *out);

/* ---- lexer.re ---- */
typedef struct {
    uint32_t file, line;
    const char *start, *cursor, *limit, *line_start;
    unsigned depth;      /* open brackets */
    char open[MAX_OPEN]; /* which */
    bool stop;      /* a limit was reached: the rest is not read */
} Lexer;
void lexer_init(Lexer *lx, uint32_t file);
/* The next token's kind, numbered by the grammar; 0 at the end. Reports what is no token and goes on behind it. */
int lexer_next(Lexer *lx, Token *t);
/* Forgets the innermost open '{': the parser has closed it on its own. */
void lexer_close(Lexer *lx);
/* The value of an integer literal, suffix included. False when s is none (*value < 0) or it is too big. */
bool literal_value(const char *s, size_t n, Big *value);

/* ---- source.c: files and imports ---- */
/* All declarations of the file and of what it imports, imports first, each file once. The root file's own declarations
 * have Span.file == *root. NULL when the file cannot be read; errors are counted. */
NodeList *program_parse(const char *path, uint32_t *root);
/* The same for a text that is already in memory; its imports are relative to the working directory. */
NodeList *program_parse_text(const char *name, const char *text, size_t len, uint32_t *root);

/* ---- grammar.y ---- */
/* Parses one source, appending its declarations (IMPORTs among them) to decls. */
void parse_source(uint32_t file, NodeList *decls);

/* ---- names.c: tables of names ---- */
typedef struct {
    const char **key;
    Node **value;
    uint32_t n, cap;
} Names;
Node *names_get(const Names *t, const char *name);
/* False when the name is there already. */
bool names_put(Names *t, const char *name, Node *value);
/* The known name that looks most like `name`, or NULL. */
const char *names_near(const Names *t, const char *name);

/* ---- check.c, check_body.c: names, places and shapes: every error that needs no widths ---- */
typedef struct {
    Node *machine;    /* the last machine of the root file, NULL for a library */
    NodeList top;     /* declarations outside machines and extensions */
    NodeList members; /* the machine's, those of its base machines and used extensions expanded in place */
    Names names;      /* top-level names: consts, params, enums, fns */
    Names locals;     /* names of the machine: those and its states, procs and devices */
    Names formats;    /* of the machine and of the top level */
    Names instrs;
    Node *step;
    Node *handler; /* NULL: faults end the run */
    uint32_t root;    /* the source whose tests count */
} Program;
/* NULL when there were errors. */
Program *program_check(NodeList *decls, uint32_t root);
/* check_body.c: resolves the names in a body; machine: names of the machine are visible. */
void check_decl_body(Program *p, Node *decl, bool machine);
/* The names built into the language: sext, zext, clog2, width, image. */
bool is_builtin(const char *name);
#endif
