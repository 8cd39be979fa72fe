/* elaborate.c: from a checked program to the netlist of its machine.
 *
 * The step is walked once under symbolic values: expressions build operations (which fold as they are built),
 * statements collect effects under their paths, and at the end the effects become write ports and emits. */
#include "elaborate.h"
#include <stdarg.h>
#include <string.h>

static bool same_place(Span a, Span b)
{
    return a.file == b.file && a.line == b.line && a.col == b.col;
}

Val fail(Elab *e, Span at, const char *fmt, ...)
{
    Val error = { .kind = V_ERROR };
    if (e->mute) return error;
    for (uint32_t i = 0; i < e->reported.n; i++)
        if (same_place(e->reported.data[i], at)) return error;
    vec_push(&e->reported, at);
    va_list ap;
    va_start(ap, fmt);
    char text[512];
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    error_at(at, "%s", text);
    for (const Frame *f = e->frame; f && f->decl; f = f->up)
        if (f->decl->kind == N_FN || f->decl->kind == N_PROC) {
            if (!same_place(f->call, f->decl->name_span)) note_at(f->call, "in this call of '%s'", f->decl->name);
            break;
        }
    if (error_limit()) e->stop = true;
    return error;
}

bool add_work(Elab *e, uint32_t n, Span at)
{
    if (e->stop) return false;
    bool deep = e->depth > MAX_DEPTH;
    e->work += n;
    if (e->work <= MAX_WORK && !deep) return true;
    e->stop = true;
    error_at(at,
             deep ? "calls and expressions are nested deeper than %d here"
                  : "the machine unrolls to more than %d operations here",
             deep ? MAX_DEPTH : MAX_WORK);
    return false;
}

bool enter_work(Elab *e, Span at) { return add_work(e, 1, at); }

static void run_step(Elab *e, const Node *step)
{
    e->path = e->root;
    frame_push(e, step, step->span);
    exec_block(e, step->a);
    frame_pop(e);
}

/* The parts that extensions add come first: their faults are named first, and so come before others. */
static void elaborate_step(Elab *e)
{
    if (!e->p->step) return;
    for (uint32_t i = 0; i < e->p->members.n; i++)
        if (e->p->members.data[i]->kind == N_STEP && e->p->members.data[i]->op) run_step(e, e->p->members.data[i]);
    run_step(e, e->p->step);
}

/* Constants that the step does not use are evaluated all the same, to find their errors. */
static void evaluate_constants(Elab *e, const NodeList *list)
{
    for (uint32_t i = 0; i < list->n && !e->stop; i++) {
        Node *n = list->data[i];
        if (n->kind == N_CONST || n->kind == N_PARAM) const_value(e, n);
        for (uint32_t j = 0; n->kind == N_ENUM && j < n->list.n; j++) const_value(e, n->list.data[j]);
    }
}

static void check_defines(const Elab *e)
{
    for (unsigned i = 0; i < e->ndefines; i++) {
        const char *name = intern(e->defines[i].name, strlen(e->defines[i].name));
        const Node *n = names_get(&e->p->locals, name);
        if (!n) n = names_get(&e->p->names, name);
        if (!n || n->kind != N_PARAM)
            error_at((Span){ 0 }, "-D %s=%s: there is no param '%s'", name, e->defines[i].value, name);
    }
}

static Elab *elab_new(Program *p, const Define *defines, unsigned ndefines)
{
    Elab *e = xalloc(sizeof *e);
    e->p = p;
    e->d = xalloc(sizeof *e->d);
    e->d->machine = p->machine != NULL;
    e->c = e->d->circuit = circuit_new(p->machine ? p->machine->name : "library");
    e->defines = defines;
    e->ndefines = ndefines;
    e->root = xalloc(sizeof *e->root);
    e->root->lit = e->root->abs = ir_const(e->c, 1, 1);
    e->path = e->root;
    return e;
}

static Design *elaborate(Program *p, const Define *defines, unsigned ndefines)
{
    Elab *e = elab_new(p, defines, ndefines);
    check_defines(e);
    evaluate_constants(e, &p->top);
    evaluate_constants(e, &p->members);
    if (!error_count()) declare_states(e);
    if (!error_count()) instr_table(e);
    if (!error_count()) elaborate_step(e);
    if (!error_count()) finish_effects(e);
    if (!error_count()) check_forward(e);
    if (!error_count()) elaborate_tests(e);
    if (!error_count()) check_unused(elab_new(p, defines, ndefines));
    if (error_count()) return NULL;
    const char *bad = circuit_check(e->c);
    if (bad) die("the elaborated circuit is malformed: %s", bad);
    return e->d;
}

static Design *load(NodeList *decls, uint32_t root, const Define *defines, unsigned ndefines)
{
    if (!decls || error_count()) return NULL;
    Program *p = program_check(decls, root);
    return p ? elaborate(p, defines, ndefines) : NULL;
}

Design *design_load(const char *path, const Define *defines, unsigned ndefines)
{
    uint32_t root;
    NodeList *decls = program_parse(path, &root);
    return load(decls, root, defines, ndefines);
}

Design *design_load_text(const char *name, const char *text, size_t len)
{
    uint32_t root;
    NodeList *decls = program_parse_text(name, text, len, &root);
    return load(decls, root, NULL, 0);
}
