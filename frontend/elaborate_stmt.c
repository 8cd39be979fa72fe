/* elaborate_stmt.c: statements. e->path is the path of the statement that runs next; a return makes it NULL, and what
 * follows the branching around the return runs under the path that excludes it. */
#include "elaborate.h"

static void exec(Elab *e, const Node *n);

void exec_block(Elab *e, const Node *block)
{
    Local *mark = e->frame->locals;
    for (uint32_t i = 0; i < block->list.n && e->path && !e->stop; i++) exec(e, block->list.data[i]);
    e->frame->locals = mark;
}

static void exec_let(Elab *e, const Node *n)
{
    unsigned width = n->a ? type_width(e, n->a) : 0;
    Val v = { .kind = V_ERROR };
    if (width) v = bits_val(e, eval_bits(e, n->b, width));
    else if (!n->a) v = eval(e, n->b, 0);
    if (v.kind == V_VOID) v = fail(e, n->b->span, "found no value");
    local_add(e, n->name, v, NULL);
}

static void exec_assign(Elab *e, const Node *n)
{
    const Node *t = n->a;
    const Local *l = t->kind == N_NAME && !t->decl ? local_find(e, t->name) : NULL;
    if (l && l->carry) {
        Ref r = eval_bits(e, n->b, l->carry->width);
        if (r) slot_assign(e, l->carry, r, n->span);
    } else if (t->kind == N_NAME) {
        Info *s = t->decl ? info_of(e, t->decl) : NULL;
        Ref r = s ? eval_bits(e, n->b, s->elem) : 0;
        if (r && s->shift) r = ir_slice(e->c, r, s->shift, s->elem - s->shift);
        if (r && effect_allowed(e, n->span)) slot_assign(e, &s->slot, r, n->span);
    } else {
        const Node *rows = t->a;
        unsigned view = 0;
        if (rows->kind == N_MEMBER) view = (unsigned)rows->value, rows = rows->a;
        Info *s = rows->decl ? info_of(e, rows->decl) : NULL;
        if (s) rows_write(e, s, view, t->b, n->b, n->span);
    }
}

static void exec_return(Elab *e, const Node *n)
{
    Frame *f = e->frame;
    Return r = { e->path, { .kind = V_VOID }, n->span };
    if (n->a) {
        r.val = eval(e, n->a, f->want);
        r.span = n->a->span;
        if (f->want) r.val = bits_val(e, to_bits(e, r.val, f->want, n->a->span));
    }
    vec_push(&f->returns, r);
    e->path = NULL;
}

/* Runs an arm under its own path; tells where it began and ended. */
static void exec_arm(Elab *e, const Node *block, Path *saved, Ref cond, uint32_t group, uint32_t arm, Path **start,
                     Path **end)
{
    *start = e->path = path_child(e, saved, cond, group, arm);
    if (block && block->kind == N_IF) exec(e, block);
    else if (block) exec_block(e, block);
    *end = e->path;
}

static void exec_if(Elab *e, const Node *n)
{
    Ref c = eval_bits(e, n->a, 1);
    uint64_t k;
    if (!c) return;
    if (ir_is_const(e->c, c, &k)) {
        const Node *taken = k ? n->b : n->c;
        if (taken && taken->kind == N_IF) exec(e, taken);
        else if (taken) exec_block(e, taken);
        return;
    }
    Path *saved = e->path, *start[2], *end[2];
    uint32_t returns = e->frame->returns.n, group = ++e->groups;
    exec_arm(e, n->b, saved, c, group, 0, &start[0], &end[0]);
    exec_arm(e, n->c, saved, ir_not(e->c, c), group, 1, &start[1], &end[1]);
    e->path = path_join(e, saved, start, end, 2, returns);
}

static void exec_match(Elab *e, const Node *n)
{
    Arms arms;
    if (!match_arms(e, n, &arms)) return;
    if (arms.n == 1) {
        if (arms.arm[0]) exec_block(e, arms.arm[0]->a);
        return;
    }
    Path *saved = e->path, **start = xalloc(arms.n * sizeof *start), **end = xalloc(arms.n * sizeof *end);
    uint32_t returns = e->frame->returns.n;
    for (uint32_t i = 0; i < arms.n; i++)
        exec_arm(e, arms.arm[i] ? arms.arm[i]->a : NULL, saved, arms.cond[i], arms.group, i, &start[i], &end[i]);
    e->path = path_join(e, saved, start, end, arms.n, returns);
}

static void exec_for(Elab *e, const Node *n)
{
    Big low, high;
    if (!eval_const(e, n->a, &low) || !eval_const(e, n->b, &high)) return;
    Local *mark = e->frame->locals;
    for (Big i = low; i < high && e->path && enter_work(e, n->span); i++) {
        local_add(e, n->name, (Val){ .kind = V_INT, .i = i }, NULL);
        exec_block(e, n->c);
        e->frame->locals = mark;
    }
}

static void exec_fault(Elab *e, const Node *n)
{
    Big code;
    Ref value = n->b ? eval_bits(e, n->b, FAULT_VALUE) : 0;
    if (!n->a) vec_push(&e->kept, e->path);
    else if (eval_const_in(e, n->a, 0, UINT32_MAX, "the fault's code", &code))
        emit_fault(e, (uint64_t)code, n->name, value, e->path, n->span);
}

static void exec_node(Elab *e, const Node *n)
{
    switch (n->kind) {
    case N_LET: exec_let(e, n); break;
    case N_ASSIGN: exec_assign(e, n); break;
    case N_DO: eval(e, n->a, 0); break;
    case N_RETURN: exec_return(e, n); break;
    case N_IF: exec_if(e, n); break;
    case N_MATCH: exec_match(e, n); break;
    case N_FOR: exec_for(e, n); break;
    case N_EXECUTE: exec_execute(e, n); break;
    case N_FAULT: exec_fault(e, n); break;
    case N_TAKE: emit_take(e, n->decl, n->span); break;
    case N_ITERATE: exec_iterate(e, n); break;
    case N_BLOCK: exec_block(e, n); break;
    default: break;
    }
}

static void exec(Elab *e, const Node *n)
{
    if (!enter_work(e, n->span)) return;
    e->depth++;
    exec_node(e, n);
    e->depth--;
}
