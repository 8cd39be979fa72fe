/* elaborate_instr.c: encodings. The table of instructions (mask, match, open fields), the proof that no two overlap,
 * and `execute`, which dispatches a word over all instructions whose format has its width. */
#include "elaborate.h"
#include <string.h>

static unsigned piece_width(const Node *p) { return (unsigned)(p->value - p->low) + 1; }

static const Node *fix_of(const Node *instr, const char *field)
{
    for (uint32_t i = 0; i < instr->list.n; i++)
        if (instr->list.data[i]->name == field) return instr->list.data[i];
    return NULL;
}

static unsigned field_width(const Node *format, const char *field)
{
    unsigned w = 0;
    for (uint32_t i = 0; i < format->list.n; i++) {
        const Node *p = format->list.data[i];
        if (p->name == field && p->value >= w) w = (unsigned)p->value + 1;
    }
    return w;
}

static bool first_piece(const Node *format, uint32_t i)
{
    for (uint32_t j = 0; j < i; j++)
        if (format->list.data[j]->name == format->list.data[i]->name) return false;
    return true;
}

/* ---- the table ---- */
/* False: reported. */
static bool fix_field(Elab *e, Instr *in, const Node *format, const Node *fix)
{
    Big k;
    if (!eval_const(e, fix->a, &k)) return false;
    unsigned width = field_width(format, fix->name);
    Ref r = to_bits(e, (Val){ .kind = V_INT, .i = k }, width, fix->a->span);
    uint64_t bits = 0, named = 0;
    if (!r) return false;
    ir_is_const(e->c, r, &bits);
    for (uint32_t i = 0; i < format->list.n; i++) {
        const Node *p = format->list.data[i];
        if (p->name != fix->name) continue;
        uint64_t m = mask64(piece_width(p));
        in->mask |= m << p->at;
        in->match |= (bits >> (unsigned)p->low & m) << p->at;
        named |= m << (unsigned)p->low;
    }
    if (!(bits & ~named)) return true;
    fail(e, fix->a->span, "the field '%s' of format '%s' cannot hold %s", fix->name, format->name, big_text(k));
    return false;
}

/* The field whose first piece is number i of the format. */
static InstrField field_at(const Node *format, uint32_t i)
{
    const Node *p = format->list.data[i];
    FieldPiece *pieces = xalloc((format->list.n + 1) * sizeof *pieces);
    InstrField f = { p->name, field_width(format, p->name), pieces, 0 };
    for (uint32_t j = i; j < format->list.n; j++) {
        const Node *q = format->list.data[j];
        if (q->name == p->name) pieces[f.npieces++] = (FieldPiece){ (uint8_t)q->value, (uint8_t)q->low, (uint8_t)q->at };
    }
    return f;
}

static void open_fields(Instr *in, const Node *instr, const Node *format)
{
    InstrField *fields = xalloc((format->list.n + 1) * sizeof *fields);
    for (uint32_t i = 0; i < format->list.n; i++)
        if (!fix_of(instr, format->list.data[i]->name) && first_piece(format, i)) fields[in->nfields++] = field_at(format, i);
    in->fields = fields;
}

static void check_overlap(Elab *e, const Instr *a, const Instr *b)
{
    if (a->width != b->width || (a->match ^ b->match) & a->mask & b->mask) return;
    uint64_t both = a->match | b->match;
    unsigned before = error_count();
    fail(e, b->span, "the encodings of '%s' and '%s' overlap: both match 0x%0*llx", a->name, b->name,
         (int)(a->width + 3) / 4, (unsigned long long)both);
    if (error_count() > before) note_at(a->span, "'%s' is here", a->name);
}

void instr_table(Elab *e)
{
    for (uint32_t i = 0; i < e->p->members.n && !e->stop; i++) {
        Node *n = e->p->members.data[i];
        if (n->kind != N_INSTR) continue;
        const Node *format = n->a->decl;
        const char *syntax = n->b ? xstrdup(n->b->name) : n->name;
        Instr in = { .name = n->name, .syntax = syntax, .width = format->at, .span = n->name_span };
        bool good = true;
        for (uint32_t j = 0; j < n->list.n; j++) good &= fix_field(e, &in, format, n->list.data[j]);
        open_fields(&in, n, format);
        for (uint32_t j = 0; j < e->d->instrs.n && good && enter_work(e, n->span); j++)
            check_overlap(e, &e->d->instrs.data[j], &in);
        if (good) n->at = vec_push(&e->d->instrs, in) + 1;
    }
}

/* ---- execute ---- */
static Ref instr_cond(Elab *e, const Instr *in, const Node *n, Ref word)
{
    Ref cond = ir_const(e->c, 1, 1);
    const Node *format = n->a->decl;
    for (uint32_t i = 0; i < format->list.n; i++) {
        const Node *p = format->list.data[i];
        if (!fix_of(n, p->name)) continue;
        unsigned w = piece_width(p);
        Ref want = ir_const(e->c, w, in->match >> p->at & mask64(w));
        Ref eq = ir_op(e->c, OP_EQ, 1, 0, 2, (Ref[]){ ir_slice(e->c, word, p->at, w), want }, n->span);
        cond = ir_op(e->c, OP_AND, 1, 0, 2, (Ref[]){ cond, eq }, n->span);
    }
    return cond;
}

/* The field as a value: its pieces from the highest down, zeros where no piece names a bit. */
static Ref field_value(Elab *e, const InstrField *f, Ref word)
{
    Ref value = 0;
    for (int bit = (int)f->width - 1; bit >= 0;) {
        const FieldPiece *at = NULL;
        int next = -1;
        for (unsigned i = 0; i < f->npieces; i++) {
            if (f->pieces[i].hi == bit) at = &f->pieces[i];
            else if (f->pieces[i].hi < bit && f->pieces[i].hi > next) next = f->pieces[i].hi;
        }
        unsigned width = at ? (unsigned)(at->hi - at->lo) + 1 : (unsigned)(bit - next);
        Ref part = at ? ir_slice(e->c, word, at->at, width) : ir_const(e->c, width, 0);
        value = value ? ir_cat2(e->c, value, part) : part;
        bit -= (int)width;
    }
    return value;
}

/* A fixed field too is read from the word: instructions that differ in nothing else become one circuit. */
static void run_instr(Elab *e, Node *n, Ref word, Span call)
{
    const Node *format = n->a->decl;
    frame_push(e, n, call);
    for (uint32_t i = 0; i < format->list.n; i++) {
        if (!first_piece(format, i)) continue;
        InstrField f = field_at(format, i);
        local_add(e, f.name, bits_val(e, field_value(e, &f, word)), NULL);
    }
    exec_block(e, n->c);
    frame_pop(e);
}

/* Do the encodings of one width fill it? They do not overlap, so their sizes add up. */
static bool complete(const Elab *e, unsigned width)
{
    Big sum = 0;
    for (uint32_t i = 0; i < e->d->instrs.n; i++) {
        const Instr *in = &e->d->instrs.data[i];
        if (in->width == width) sum += (Big)1 << (width - (unsigned)__builtin_popcountll(in->mask));
    }
    return sum == (Big)1 << width;
}

static void run_else(Elab *e, const Node *n, Ref *cond, uint32_t count, uint32_t group)
{
    Path *saved = e->path;
    uint64_t k;
    Ref none = ir_not(e->c, any_of(e, cond, count));
    if (!n->b || (ir_is_const(e->c, none, &k) && !k)) return;
    e->path = path_child(e, saved, none, group, count);
    exec_block(e, n->b);
    e->path = saved;
}

static void execute_all(Elab *e, const Node *n, Ref word)
{
    Path *saved = e->path;
    uint32_t count = 0, group = ++e->groups;
    unsigned width = op_at(e->c, word)->width;
    Ref *cond = xalloc((e->d->instrs.n + 1) * sizeof *cond);
    for (uint32_t i = 0; i < e->p->members.n && !e->stop; i++) {
        Node *m = e->p->members.data[i];
        if (m->kind != N_INSTR || m->a->decl->at != width) continue;
        cond[count] = instr_cond(e, &e->d->instrs.data[m->at - 1], m, word);
        uint64_t k;
        if (!ir_is_const(e->c, cond[count], &k) || k) {
            e->path = path_child(e, saved, cond[count], group, count);
            run_instr(e, m, word, n->span);
            e->path = saved;
        }
        count++;
    }
    if (!count) fail(e, n->a->span, "found a word of %u bits, but no instruction has a format of that width", width);
    if (!n->b && !complete(e, width))
        fail(e, n->span, "the encodings of %u bits are not complete: add else { .. }", width);
    run_else(e, n, cond, count, group);
}

void exec_execute(Elab *e, const Node *n)
{
    Val v = eval(e, n->a, 0);
    if (v.kind == V_ERROR) return;
    if (v.kind != V_BITS) {
        fail(e, n->a->span, "the width of the instruction word is not known");
    } else if (e->executing) {
        fail(e, n->span, "execute inside an instruction");
    } else {
        uint32_t returns = e->frame->returns.n;
        e->executing = true;
        execute_all(e, n, v.ref);
        e->executing = false;
        if (e->frame->returns.n != returns) fail(e, n->span, "found a return in the else of execute");
    }
}
