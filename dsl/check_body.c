/* check_body.c: resolves the names in declarations, expressions and statements, and checks what may stand where.
 *
 * Afterwards every NAME, MEMBER of an enumeration, TYPE and TAKE that refers to a declaration has `decl`; a NAME
 * without is a local. Rules kept here: a fn is pure; only registers, rows and carried values are assigned; the body of
 * an iterate assigns its carried values only; no name hides another. */
#include "dsl.h"
#include <string.h>

typedef enum { LOCAL_VALUE, LOCAL_CARRY } LocalKind;
typedef struct {
    const char *name;
    LocalKind kind;
    bool closed; /* a carried value that may only be read here (in `then`) */
    Span span;
} Local;

/* What surrounds the place that is being checked. */
typedef struct {
    Program *p;
    bool machine;     /* inside the machine: its names are visible */
    bool handler;     /* in a fault handler */
    const Node *pure; /* the fn we are in */
    const Node *proc; /* the fn or proc we are in */
    const Node *loop; /* the iterate whose body we are in */
    bool test;
    VEC(Local) locals;
} Check;

static void expr(Check *c, Node *n);
static void block(Check *c, Node *n);

bool is_builtin(const char *name)
{
    static const char *const names[] = { "sext", "zext", "clog2", "width", "image", "u" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i], name)) return true;
    return false;
}

static Node *global(const Check *c, const char *name)
{
    Node *n = c->machine ? names_get(&c->p->locals, name) : NULL;
    return n ? n : names_get(&c->p->names, name);
}

static Local *local(Check *c, const char *name)
{
    for (uint32_t i = c->locals.n; i-- > 0;)
        if (c->locals.data[i].name == name) return &c->locals.data[i];
    return NULL;
}

static void declare(Check *c, const Node *n, LocalKind kind)
{
    const Local *l = local(c, n->name);
    const Node *g = global(c, n->name);
    if (l || g) {
        error_at(n->name_span, "the name '%s' is already taken", n->name);
        note_at(l ? l->span : g->name_span, "it is declared here");
    } else if (is_builtin(n->name)) {
        error_at(n->name_span, "the name '%s' is built into the language", n->name);
    }
    Local new = { n->name, kind, false, n->name_span };
    vec_push(&c->locals, new);
}

static void unknown(Check *c, const Node *n)
{
    if (!c->machine && names_get(&c->p->locals, n->name)) {
        error_at(n->name_span, "'%s' belongs to the machine and is not seen outside it", n->name);
        return;
    }
    const char *near = c->machine ? names_near(&c->p->locals, n->name) : NULL;
    if (!near) near = names_near(&c->p->names, n->name);
    for (uint32_t i = 0; i < c->locals.n && !near; i++)
        if (!strncmp(c->locals.data[i].name, n->name, 2)) near = c->locals.data[i].name;
    error_at(n->name_span, "unknown name '%s'%s", n->name, near ? xfmt(", did you mean '%s'?", near) : "");
}

static void forbid_in_fn(const Check *c, Span at, const char *text)
{
    if (c->pure) error_at(at, "%s inside fn %s: a fn is pure; a proc may do this", text, c->pure->name);
}

static void type(Check *c, Node *t, bool formal)
{
    if (!t || t->kind != N_TYPE || t->value) return;
    if (t->op) {
        if (!formal) error_at(t->span, "found the type const, expected uN: only parameters of functions are const");
    } else if (!strcmp(t->name, "u")) {
        if (t->a) expr(c, t->a);
        else if (!formal)
            error_at(t->span,
                     "found the type u, expected a width as in u32: only parameters of functions leave it open");
    } else {
        t->decl = global(c, t->name);
        if (t->a || !t->decl || t->decl->kind != N_ENUM) {
            error_at(t->span, "found '%s', expected a type: u1 to u64, u(expression), or an enumeration", t->name);
            t->decl = NULL;
        }
    }
}

/* ---- names as values ---- */
static void state_use(const Check *c, const Node *n)
{
    if (c->pure)
        error_at(n->span, "fn %s uses the state '%s': a fn is pure; pass the value, or make it a proc", c->pure->name,
                 n->name);
}

static void name(Check *c, Node *n)
{
    if (local(c, n->name)) return;
    n->decl = global(c, n->name);
    if (!n->decl) {
        if (!strcmp(n->name, "image"))
            error_at(n->span, "'image' fills registers and memories where they are declared, it is no value");
        else if (is_builtin(n->name)) error_at(n->span, "'%s' is a function, expected '%s(..)'", n->name, n->name);
        else unknown(c, n);
        return;
    }
    switch (n->decl->kind) {
    case N_CONST: case N_PARAM: break;
    case N_REG: case N_INPUT: state_use(c, n); break;
    case N_FILE:
    case N_MEM: error_at(n->span, "'%s' has many rows, expected an index: %s[..]", n->name, n->name); break;
    case N_ENUM:
        error_at(n->span, "'%s' is an enumeration, expected one of its values: %s.NAME", n->name, n->name);
        break;
    case N_FN: case N_PROC: error_at(n->span, "'%s' is called, expected %s(..)", n->name, n->name); break;
    default: error_at(n->span, "'%s' has no value", n->name); break;
    }
}

/* The memory or file that n names, if it does. */
static Node *rows_of(Check *c, Node *n)
{
    if (n->kind != N_NAME || local(c, n->name)) return NULL;
    Node *g = global(c, n->name);
    if (!g || (g->kind != N_FILE && g->kind != N_MEM)) return NULL;
    n->decl = g;
    state_use(c, n);
    return g;
}

static void member(Check *c, Node *n)
{
    Node *g = n->a->kind == N_NAME && !local(c, n->a->name) ? global(c, n->a->name) : NULL;
    if (g && g->kind == N_ENUM) {
        for (uint32_t i = 0; i < g->list.n; i++)
            if (g->list.data[i]->name == n->name) n->decl = g->list.data[i];
        n->a->decl = g;
        if (!n->decl) error_at(n->name_span, "the enumeration '%s' has no value '%s'", g->name, n->name);
    } else if (g && (g->kind == N_MEM || g->kind == N_FILE)) {
        error_at(n->span,
                 n->value ? "expected an address: %s.%s[..]"
                          : "'%s' has no '%s': expected a view, u8 to u64, or in(..)",
                 g->name, n->value ? xfmt("u%d", (int)n->value) : n->name);
    } else {
        if (n->a->kind == N_NAME && !g && !local(c, n->a->name)) unknown(c, n->a);
        else error_at(n->name_span, "found '.%s' behind a value, which has no members", n->name);
    }
}

/* ---- calls ---- */
static void args(Check *c, Node *n)
{
    for (uint32_t i = 0; i < n->list.n; i++) expr(c, n->list.data[i]);
}

static void arity(const Node *n, const char *name, uint32_t least, uint32_t most)
{
    if (n->list.n >= least && n->list.n <= most) return;
    error_at(n->span, "%s takes %u argument%s, found %u", name, most, most == 1 ? "" : "s", n->list.n);
}

static bool builtin_call(const Node *n)
{
    const char *name = n->a->name;
    if (!strcmp(name, "sext") || !strcmp(name, "zext")) arity(n, name, 1, 2);
    else if (!strcmp(name, "clog2") || !strcmp(name, "width")) arity(n, name, 1, 1);
    else return false;
    return true;
}

static void call_named(Check *c, Node *n, bool statement)
{
    const char *callee = n->a->name;
    Node *g = global(c, callee);
    n->a->decl = g;
    args(c, n);
    if (!g) {
        if (!builtin_call(n)) unknown(c, n->a);
        else if (statement) error_at(n->span, "the value of %s is not used", callee);
        return;
    }
    switch (g->kind) {
    case N_FN:
        arity(n, callee, g->list.n, g->list.n);
        if (statement) error_at(n->span, "the value of %s is not used", callee);
        break;
    case N_PROC:
        arity(n, callee, g->list.n, g->list.n);
        forbid_in_fn(c, n->span, "found a call of a proc");
        if (c->test) error_at(n->span, "found a call of a proc, expected constants and state in a test");
        if (!statement && !g->a) error_at(n->span, "the proc '%s' returns no value", callee);
        break;
    case N_OUTPUT: case N_EXIT:
        arity(n, callee, 1, 1);
        forbid_in_fn(c, n->span, "found output");
        if (!statement) error_at(n->span, "'%s' has no value: it is written by a statement", callee);
        break;
    default: error_at(n->a->span, "'%s' cannot be called", callee); break;
    }
}

static void call(Check *c, Node *n, bool statement)
{
    Node *f = n->a;
    if (f->kind == N_NAME && !local(c, f->name)) {
        call_named(c, n, statement);
    } else if (f->kind == N_MEMBER && !f->value && rows_of(c, f->a)) {
        if (strcmp(f->name, "in"))
            error_at(f->name_span, "'%s' has no '%s', expected a view, u8 to u64, or in(..)", f->a->name, f->name);
        if (statement) error_at(n->span, "the value of in is not used");
        arity(n, "in", 1, 1);
        args(c, n);
    } else {
        error_at(f->span, "found a call of something that is no function");
    }
}

/* ---- expressions ---- */
static void index_expr(Check *c, Node *n)
{
    if (n->a->kind == N_MEMBER && n->a->value && rows_of(c, n->a->a)) {
        if (n->a->a->decl->kind == N_FILE)
            error_at(n->a->span, "a register file has no views, expected %s[..]", n->a->a->name);
    } else if (!rows_of(c, n->a)) {
        expr(c, n->a);
    }
    expr(c, n->b);
}

static void next_expr(Check *c, Node *n)
{
    Node *p = n->a;
    const Local *l = p->kind == N_NAME ? local(c, p->name) : NULL;
    if (p->kind == N_NAME && !l) p->decl = global(c, p->name);
    if (p->kind == N_NAME && ((l && l->kind == LOCAL_CARRY) || (p->decl && p->decl->kind == N_REG))) {
        if (!l) state_use(c, p);
        return;
    }
    error_at(n->span, "expected a register or a carried value behind 'next'");
}

static void scoped(Check *c, Node *n)
{
    uint32_t mark = c->locals.n;
    for (uint32_t i = 0; i < n->list.n; i++) {
        Node *let = n->list.data[i];
        type(c, let->a, false);
        expr(c, let->b);
        declare(c, let, LOCAL_VALUE);
    }
    expr(c, n->a);
    c->locals.n = mark;
}

static void choose(Check *c, Node *n, void (*body)(Check *, Node *))
{
    expr(c, n->a);
    for (uint32_t i = 0; i < n->list.n; i++) {
        Node *arm = n->list.data[i];
        args(c, arm);
        if (!arm->list.n && i + 1 < n->list.n) error_at(arm->span, "the else arm must be the last");
        body(c, arm->a);
    }
}

static void reduce(Check *c, Node *n)
{
    expr(c, n->a);
    expr(c, n->b);
    uint32_t mark = c->locals.n;
    declare(c, n, LOCAL_VALUE);
    expr(c, n->c);
    c->locals.n = mark;
}

static void expr(Check *c, Node *n)
{
    if (!n || error_limit()) return;
    switch (n->kind) {
    case N_NAME: name(c, n); break;
    case N_MEMBER: member(c, n); break;
    case N_CALL: call(c, n, false); break;
    case N_INDEX: index_expr(c, n); break;
    case N_STRING: error_at(n->span, "found a string, expected a value"); break;
    case N_UNARY:
        if (n->op == B_NEXT) next_expr(c, n);
        else expr(c, n->a);
        break;
    case N_LETIN: scoped(c, n); break;
    case N_CHOOSE: choose(c, n, expr); break;
    case N_REDUCE: reduce(c, n); break;
    default:
        expr(c, n->a);
        expr(c, n->b);
        expr(c, n->c);
        args(c, n);
        break;
    }
}

/* ---- statements ---- */
static void target_name(Check *c, Node *t)
{
    const Local *l = local(c, t->name);
    t->decl = l ? NULL : global(c, t->name);
    if (l && l->kind == LOCAL_CARRY && !l->closed) return;
    if (l && l->kind == LOCAL_CARRY) error_at(t->span, "the carried value '%s' is final in 'then'", t->name);
    else if (l) error_at(t->span, "'%s' is a value, only registers, rows and carried values are assigned", t->name);
    else if (!t->decl) unknown(c, t);
    else if (t->decl->kind == N_INPUT) error_at(t->span, "only the host writes the input '%s'", t->name);
    else if (t->decl->kind == N_FILE || t->decl->kind == N_MEM)
        error_at(t->span, "'%s' has many rows, expected an index: %s[..]", t->name, t->name);
    else if (t->decl->kind != N_REG) error_at(t->span, "'%s' is no register", t->name);
    else if (c->loop)
        error_at(t->span, "the body of iterate assigns its carried values only; other effects go into 'then'");
}

static void target(Check *c, Node *t)
{
    if (t->kind == N_NAME) {
        target_name(c, t);
        return;
    }
    Node *rows = t->kind == N_INDEX ? t->a : NULL;
    if (rows && rows->kind == N_MEMBER && rows->value) rows = rows->a;
    if (rows && rows_of(c, rows)) {
        index_expr(c, t);
        if (c->loop)
            error_at(t->span, "the body of iterate assigns its carried values only; other effects go into 'then'");
    } else {
        error_at(t->span, "expected a register, a row of a file or memory, or a carried value left of ':='%s",
                 t->kind == N_SLICE || t->kind == N_INDEX ? "; assign the whole register" : "");
    }
}

static void return_stmt(Check *c, Node *n)
{
    expr(c, n->a);
    if (!c->proc) error_at(n->span, "found return outside a fn or proc");
    else if (c->loop) error_at(n->span, "found return inside iterate");
    else if (n->a && c->proc->kind == N_PROC && !c->proc->a)
        error_at(n->a->span, "the proc '%s' declares no result: add '-> type'", c->proc->name);
    else if (!n->a && (c->proc->a || c->proc->kind == N_FN))
        error_at(n->span, "expected a value to return from '%s'", c->proc->name);
}

static void iterate(Check *c, Node *n)
{
    forbid_in_fn(c, n->span, "found iterate");
    if (c->loop) error_at(n->span, "found iterate inside iterate");
    expr(c, n->a);
    expr(c, n->b);
    uint32_t mark = c->locals.n;
    const Node *outer = c->loop;
    for (uint32_t i = 0; i < n->list.n; i++) {
        type(c, n->list.data[i]->a, false);
        expr(c, n->list.data[i]->b);
    }
    for (uint32_t i = 0; i < n->list.n; i++) declare(c, n->list.data[i], LOCAL_CARRY);
    uint32_t carried = c->locals.n;
    declare(c, n, LOCAL_VALUE);
    c->loop = n;
    block(c, n->d);
    c->loop = outer;
    expr(c, n->c);
    for (uint32_t i = mark; i < carried; i++) c->locals.data[i].closed = true;
    if (n->e) block(c, n->e);
    c->locals.n = mark;
}

static void take(Check *c, Node *n)
{
    forbid_in_fn(c, n->span, "found take");
    if (c->loop) error_at(n->span, "the body of iterate assigns its carried values only; other effects go into 'then'");
    n->decl = local(c, n->name) ? NULL : global(c, n->name);
    if (!n->decl || n->decl->kind != N_INPUT) error_at(n->name_span, "there is no input '%s'", n->name);
}

static void for_stmt(Check *c, Node *n)
{
    expr(c, n->a);
    expr(c, n->b);
    uint32_t mark = c->locals.n;
    declare(c, n, LOCAL_VALUE);
    block(c, n->c);
    c->locals.n = mark;
}

static void do_stmt(Check *c, Node *n)
{
    if (n->a->kind == N_CALL) {
        call(c, n->a, true);
        const Node *g = n->a->a->decl;
        if (c->loop && g && (g->kind == N_OUTPUT || g->kind == N_EXIT))
            error_at(n->span, "the body of iterate assigns its carried values only; other effects go into 'then'");
    } else {
        expr(c, n->a);
        error_at(n->span, "the value is not used, expected ':=' or a call");
    }
}

static void statement(Check *c, Node *n)
{
    if (error_limit()) return;
    switch (n->kind) {
    case N_LET:
        type(c, n->a, false);
        expr(c, n->b);
        declare(c, n, LOCAL_VALUE);
        break;
    case N_ASSIGN:
        forbid_in_fn(c, n->span, "found an assignment");
        target(c, n->a);
        expr(c, n->b);
        break;
    case N_DO: do_stmt(c, n); break;
    case N_RETURN: return_stmt(c, n); break;
    case N_IF:
        expr(c, n->a);
        block(c, n->b);
        if (n->c && n->c->kind == N_IF) statement(c, n->c);
        else if (n->c) block(c, n->c);
        break;
    case N_MATCH: choose(c, n, block); break;
    case N_FOR: for_stmt(c, n); break;
    case N_EXECUTE:
        forbid_in_fn(c, n->span, "found execute");
        if (c->loop) error_at(n->span, "found execute inside iterate");
        expr(c, n->a);
        if (n->b) block(c, n->b);
        break;
    case N_FAULT:
        forbid_in_fn(c, n->span, "found fault");
        if (!n->a && !c->handler) error_at(n->span, "found fault without a code outside a fault handler");
        if (n->a && c->handler) error_at(n->span, "found fault with a code in a fault handler, where it can only be kept: 'fault;'");
        expr(c, n->a);
        expr(c, n->b);
        break;
    case N_TAKE: take(c, n); break;
    case N_ITERATE: iterate(c, n); break;
    case N_BLOCK: block(c, n); break;
    default: break;
    }
}

static void block(Check *c, Node *n)
{
    uint32_t mark = c->locals.n;
    for (uint32_t i = 0; i < n->list.n; i++) {
        if (i && n->list.data[i - 1]->kind == N_RETURN)
            error_at(n->list.data[i]->span, "this statement is never reached");
        statement(c, n->list.data[i]);
    }
    c->locals.n = mark;
}

/* ---- declarations ---- */
static void function(Check *c, Node *n)
{
    c->proc = n;
    c->pure = n->kind == N_FN ? n : NULL;
    for (uint32_t i = 0; i < n->list.n; i++) {
        type(c, n->list.data[i]->a, true);
        declare(c, n->list.data[i], LOCAL_VALUE);
    }
    type(c, n->a, false); /* the result's width may depend on the parameters */
    if (n->b->kind == N_BLOCK) block(c, n->b);
    else expr(c, n->b);
}

/* The fields that an instruction leaves open are names in its body. */
/* Fields that are fixed have names too: their value is read from the word, so that instructions which differ in them share circuits. */
static void instruction(Check *c, Node *n)
{
    const Node *format = n->a->decl;
    for (uint32_t i = 0; i < n->list.n; i++) expr(c, n->list.data[i]->a);
    if (!format) return;
    for (uint32_t i = 0; i < format->list.n; i++) {
        bool seen = false;
        for (uint32_t j = 0; j < i; j++) seen |= format->list.data[j]->name == format->list.data[i]->name;
        if (!seen) declare(c, format->list.data[i], LOCAL_VALUE);
    }
    block(c, n->c);
}

/* `image` in its three forms, or constants. */
static void initial(Check *c, Node *decl, Node *init)
{
    if (!init) return;
    Node *base = init->kind == N_CALL ? init->a : init;
    if (base->kind == N_MEMBER) base = base->a;
    if (base->kind != N_NAME || strcmp(base->name, "image")) {
        expr(c, init);
        return;
    }
    const Node *m = init->kind == N_CALL ? init->a : init;
    bool mem = m->kind == N_NAME, entry = m->kind == N_MEMBER && !strcmp(m->name, "entry") && init->kind == N_MEMBER;
    bool symbol = m->kind == N_MEMBER && !strcmp(m->name, "symbol") && init->kind == N_CALL && init->list.n == 2 &&
                  init->list.data[0]->kind == N_STRING;
    if (symbol) expr(c, init->list.data[1]);
    if (decl->kind == N_MEM ? !mem || init->kind == N_CALL : decl->kind == N_REG ? !entry && !symbol : true)
        error_at(init->span, "expected %s",
                 decl->kind == N_MEM   ? "image, or rows { .. }"
                 : decl->kind == N_REG ? "image.entry, image.symbol(\"name\", default), or a constant"
                                       : "rows { .. }: only registers and memories take values of the image");
}

static void hint(Node *n)
{
    if (n && strcmp(n->name, "deltanet") && strcmp(n->name, "attention") && strcmp(n->name, "weights"))
        error_at(n->span, "found '%s', expected deltanet, attention or weights", n->name);
}

static void state(Check *c, Node *n)
{
    type(c, n->a, false);
    expr(c, n->kind == N_FILE || n->kind == N_MEM || n->kind == N_REG ? n->b : NULL);
    expr(c, n->e);
    hint(n->d);
    initial(c, n, n->c);
    for (uint32_t i = 0; i < n->list.n; i++) {
        if (n->list.data[i]->name != n->name)
            error_at(n->list.data[i]->name_span, "found '%s[..]', expected a row of '%s'", n->list.data[i]->name,
                     n->name);
        expr(c, n->list.data[i]->a);
        expr(c, n->list.data[i]->b);
    }
}

static void enumeration(Check *c, Node *n)
{
    type(c, n->a, false);
    for (uint32_t i = 0; i < n->list.n; i++) {
        Node *e = n->list.data[i];
        expr(c, e->a);
        e->decl = n;
        for (uint32_t j = 0; j < i; j++)
            if (n->list.data[j]->name == e->name) error_at(e->span, "the value '%s' is there twice", e->name);
    }
}

static void test(Check *c, Node *n)
{
    c->test = true;
    for (uint32_t i = 0; i < n->list.n; i++) {
        Node *t = n->list.data[i];
        bool constant = t->kind == N_TEXPECT;
        if (!c->machine && !constant) error_at(t->span, "a test outside a machine can only expect values of constants");
        if (t->kind == N_TSET) target(c, t->a);
        else expr(c, t->a);
        expr(c, t->b);
    }
}

void check_decl_body(Program *p, Node *n, bool machine)
{
    Check c = { .p = p, .machine = machine };
    switch (n->kind) {
    case N_CONST: case N_PARAM:
        type(&c, n->a, false);
        expr(&c, n->b);
        break;
    case N_ENUM: enumeration(&c, n); break;
    case N_REG: case N_FILE: case N_MEM: case N_OUTPUT: case N_EXIT: case N_INPUT: state(&c, n); break;
    case N_FN: case N_PROC: function(&c, n); break;
    case N_INSTR: instruction(&c, n); break;
    case N_STEP: block(&c, n->a); break;
    case N_HANDLER:
        c.handler = true;
        for (uint32_t i = 0; i < n->list.n; i++) declare(&c, n->list.data[i], LOCAL_VALUE);
        block(&c, n->a);
        break;
    case N_TEST: test(&c, n); break;
    default: break;
    }
}
