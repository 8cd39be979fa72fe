/* check.c: gathers the machine that is compiled: its own declarations, those of the machines it extends and of the
 * extensions it uses, and enters their names. Then checks formats and instructions, and every body (check_body.c).
 *
 * Names of the top level are seen everywhere, names of the machine only inside it; none may hide another. Formats and
 * instructions have tables of their own, so that an instruction may be called `min` beside a function `min`. */
#include "dsl.h"
#include <string.h>

static const char *what(const Node *n)
{
    static const char *const text[N_COUNT] = {
        [N_CONST] = "constant",        [N_PARAM] = "parameter", [N_ENUM] = "enumeration", [N_REG] = "register",
        [N_FILE] = "register file",    [N_MEM] = "memory",      [N_OUTPUT] = "output",    [N_EXIT] = "exit",
        [N_INPUT] = "input",           [N_FN] = "function",     [N_PROC] = "procedure",   [N_STEP] = "step", [N_HANDLER] = "fault handler",
        [N_INSTR] = "instruction",     [N_FORMAT] = "format",   [N_MACHINE] = "machine",  [N_EXTENSION] = "extension",
        [N_ENUMERATOR] = "enumerator",
    };
    return text[n->kind] ? text[n->kind] : "declaration";
}

static void enter(Names *t, Node *n)
{
    Node *old = names_get(t, n->name);
    if (!old) {
        names_put(t, n->name, n);
    } else if (old != n) {
        error_at(n->name_span, "the name '%s' is already taken", n->name);
        note_at(old->name_span, "by this %s", what(old));
    }
}

static bool named(const Node *n)
{
    return n->kind == N_CONST || n->kind == N_PARAM || n->kind == N_ENUM || n->kind == N_FN;
}

static bool state_or_proc(const Node *n)
{
    switch (n->kind) {
    case N_REG: case N_FILE: case N_MEM: case N_OUTPUT: case N_EXIT: case N_INPUT: case N_PROC: return true;
    default: return false;
    }
}

static void enter_builtin_check(const Node *n)
{
    if (is_builtin(n->name)) error_at(n->name_span, "the name '%s' is built into the language", n->name);
}

static void enter_top(Program *p, Node *n)
{
    if (named(n)) {
        enter_builtin_check(n);
        enter(&p->names, n);
    } else if (n->kind == N_FORMAT) {
        enter(&p->formats, n);
    } else if (n->kind == N_MONITOR) {
        error_at(n->span, "monitor circuits are not supported by this version of the compiler");
    } else if (n->kind != N_TEST) {
        error_at(n->span, "a %s belongs into a machine or an extension", what(n));
    }
    vec_push(&p->top, n);
}

/* ---- the members of the machine ---- */
typedef struct {
    Program *p;
    Names machines, extensions;
    uint32_t base; /* members of the machine that is extended */
} Gather;

static Node *look_up(const Names *t, const char *kind, Node *at)
{
    Node *n = names_get(t, at->name);
    if (n) return n;
    const char *near = names_near(t, at->name);
    error_at(at->name_span, "there is no %s '%s'%s", kind, at->name, near ? xfmt(", did you mean '%s'?", near) : "");
    return NULL;
}

/* A machine may redefine instructions, procedures and the fault handler of the machine that it extends: the old one, among the
 * first `base` members, is gone. */
static bool redefines(Gather *g, Node *n, uint32_t base)
{
    if (n->kind != N_INSTR && n->kind != N_PROC && n->kind != N_HANDLER) return false;
    for (uint32_t i = 0; i < base; i++) {
        Node *old = g->p->members.data[i];
        if (old->kind != n->kind || (n->kind != N_HANDLER && old->name != n->name)) continue;
        g->p->members.data[i] = n;
        return true;
    }
    return false;
}

/* Each group is taken once: extensions may use each other. */
static void add_members(Gather *g, Node *group)
{
    if (group->bound) return;
    group->bound = true;
    if (group->kind == N_MACHINE && group->a) {
        Node *base = look_up(&g->machines, "machine", group->a);
        if (base && base->bound) error_at(group->a->span, "the machine '%s' extends itself", group->name);
        else if (base) add_members(g, base);
        g->base = g->p->members.n;
    }
    for (uint32_t i = 0; i < group->list.n; i++) {
        Node *n = group->list.data[i];
        Node *ext = n->kind == N_USE ? look_up(&g->extensions, "extension", n) : NULL;
        if (ext) add_members(g, ext);
        else if (n->kind != N_USE && !redefines(g, n, g->base)) vec_push(&g->p->members, n);
        if (n->kind == N_STEP) n->op = group->kind == N_EXTENSION;
    }
}

static void enter_member(Program *p, Node *n)
{
    if (named(n) || state_or_proc(n)) {
        enter_builtin_check(n);
        Node *outer = names_get(&p->names, n->name);
        if (outer) {
            error_at(n->name_span, "the name '%s' is already taken", n->name);
            note_at(outer->name_span, "by this %s", what(outer));
        } else {
            enter(&p->locals, n);
        }
    } else if (n->kind == N_FORMAT) {
        enter(&p->formats, n);
    } else if (n->kind == N_INSTR) {
        enter(&p->instrs, n);
    } else if (n->kind == N_MONITOR) {
        error_at(n->span, "monitor circuits are not supported by this version of the compiler");
    } else if (n->kind == N_HANDLER && p->handler) {
        error_at(n->span, "a machine has one fault handler");
        note_at(p->handler->span, "here is another");
    } else if (n->kind == N_HANDLER) {
        p->handler = n;
    } else if (n->kind == N_STEP && n->op) {
        return; /* parts of the step */
    } else if (n->kind == N_STEP && p->step) {
        error_at(n->span, "a machine has one step");
        note_at(p->step->span, "here is another");
    } else if (n->kind == N_STEP) {
        p->step = n;
    }
}

static Program *gather(NodeList *decls, uint32_t root)
{
    Program *p = xalloc(sizeof *p);
    Gather g = { .p = p };
    p->root = root;
    for (uint32_t i = 0; i < decls->n; i++) {
        Node *n = decls->data[i];
        if (n->kind == N_MACHINE) {
            enter(&g.machines, n);
            if (n->span.file == root) p->machine = n;
        } else if (n->kind == N_EXTENSION) {
            enter(&g.extensions, n);
        } else {
            enter_top(p, n);
        }
    }
    if (p->machine) add_members(&g, p->machine);
    for (uint32_t i = 0; i < p->members.n; i++) enter_member(p, p->members.data[i]);
    if (p->machine && !p->step) error_at(p->machine->name_span, "the machine '%s' has no step", p->machine->name);
    return p;
}

/* ---- formats ---- */
static bool piece_shape(const Node *piece)
{
    if (piece->value >= 0 && piece->low <= piece->value && piece->value < 64) return true;
    if (piece->op)
        error_at(piece->span, "found bits [%lld:%lld], expected [high:low] within [63:0]", (long long)piece->value,
                 (long long)piece->low);
    else error_at(piece->span, "found a field of %lld bits, expected 1 to 64", (long long)piece->value + 1);
    return false;
}

static void piece_overlap(const Node *a, const Node *b)
{
    if (a->name != b->name || a->value < b->low || b->value < a->low) return;
    error_at(b->span, "the field '%s' has bits in two places", b->name);
    note_at(a->span, "the other place");
}

/* Lays the pieces out, most significant first, and notes the width of the whole. */
static void check_format(Node *f)
{
    Big total = 0;
    for (uint32_t i = f->list.n; i-- > 0;) {
        Node *piece = f->list.data[i];
        if (!piece_shape(piece)) return;
        piece->at = (uint32_t)total;
        total += piece->value - piece->low + 1;
        for (uint32_t j = i + 1; j < f->list.n; j++) piece_overlap(piece, f->list.data[j]);
    }
    if (total > 64)
        error_at(f->name_span, "the format '%s' has %lld bits, at most 64 are possible", f->name, (long long)total);
    else f->at = (uint32_t)total;
}

/* ---- instructions ---- */
static const Node *field_of(const Node *format, const char *name)
{
    for (uint32_t i = 0; i < format->list.n; i++)
        if (format->list.data[i]->name == name) return format->list.data[i];
    return NULL;
}

static void check_fixes(const Node *instr, const Node *format)
{
    for (uint32_t i = 0; i < instr->list.n; i++) {
        const Node *fix = instr->list.data[i];
        if (!field_of(format, fix->name))
            error_at(fix->name_span, "the format '%s' has no field '%s'", format->name, fix->name);
        for (uint32_t j = 0; j < i; j++)
            if (instr->list.data[j]->name == fix->name)
                error_at(fix->name_span, "the field '%s' is fixed twice", fix->name);
    }
}

static void check_syntax(const Node *text, const Node *format)
{
    for (uint32_t i = 0; i < text->len; i++) {
        if (text->name[i] != '{') continue;
        const char *end = memchr(text->name + i, '}', text->len - i);
        if (!end) {
            error_at(text->span, "found '{' without '}' in the assembly form");
            return;
        }
        uint32_t n = (uint32_t)(end - text->name) - i - 1;
        if (memchr(text->name + i, 0, n) || !field_of(format, intern(text->name + i + 1, n)))
            error_at(text->span, "the assembly form names '%.*s', which is no field of the format '%s'", (int)n,
                     text->name + i + 1, format->name);
        i += n + 1;
    }
}

static void check_instr(Program *p, Node *n)
{
    n->a->decl = look_up(&p->formats, "format", n->a);
    if (!n->a->decl) return;
    check_fixes(n, n->a->decl);
    if (n->b) check_syntax(n->b, n->a->decl);
}

Program *program_check(NodeList *decls, uint32_t root)
{
    Program *p = gather(decls, root);
    NodeList *both[] = { &p->top, &p->members };
    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; i < both[k]->n; i++)
            if (both[k]->data[i]->kind == N_FORMAT) check_format(both[k]->data[i]);
    for (uint32_t i = 0; i < p->members.n; i++)
        if (p->members.data[i]->kind == N_INSTR) check_instr(p, p->members.data[i]);
    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; i < both[k]->n && !error_limit(); i++) check_decl_body(p, both[k]->data[i], k == 1);
    return error_count() ? NULL : p;
}
