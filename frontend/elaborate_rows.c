/* elaborate_rows.c: reads and writes of files and memories.
 *
 * Two ways to name a row. By index (no base address): an index as wide as the row count is never out of range. By byte
 * address (`mem.uN[..]`): inside a memory whose base is a multiple of its size the row is a slice of the address, so
 * that the test whether it is inside costs no adder. What is outside or misaligned is a fault under the path of the
 * access. */
#include "elaborate.h"
#include <string.h>

typedef struct {
    Ref row, sub; /* sub: which part of the row, 0 when the view is the whole row */
    unsigned view;
} Place;

typedef struct {
    const char *outside, *misaligned;
    uint64_t outside_code, misaligned_code;
} Faults;
static const Faults load_faults = { "load access outside memory", "misaligned load", 5, 4 };
static const Faults store_faults = { "store access outside memory", "misaligned store", 7, 6 };

static uint64_t size_of(const Info *s) { return (uint64_t)s->rows * (s->row / 8); }
static unsigned index_width(const Info *s) { return clog2(s->rows) ? clog2(s->rows) : 1; }

/* A fault under the current path unless `good`. The accesses that follow are those of a good address. */
static void fault_unless(Elab *e, Ref good, uint64_t code, const char *message, Ref value, Span at)
{
    Path *p = path_child(e, e->path, ir_not(e->c, good), 0, 0);
    uint64_t k;
    if (p != e->path ? !ir_is_const(e->c, p->abs, &k) || k : true) emit_fault(e, code, message, value, p, at);
}

static Ref below(Elab *e, Ref v, uint64_t limit, Span at)
{
    unsigned w = op_at(e->c, v)->width;
    if (w < 64 && limit >> w) return ir_const(e->c, 1, 1);
    return ir_op(e->c, OP_ULT, 1, 0, 2, (Ref[]){ v, ir_const(e->c, w, limit) }, at);
}

/* ---- by index ---- */
static bool place_by_index(Elab *e, const Info *s, const Node *n, const Faults *f, Place *p)
{
    unsigned w = index_width(s);
    Val v = eval(e, n, w);
    if (v.kind == V_ERROR) return false;
    Big k;
    if (val_const(e, v, &k)) {
        if (k < 0 || k >= s->rows) {
            fail(e, n->span, "the row %s is outside '%s', which has %u", big_text(k), s->decl->name, s->rows);
            return false;
        }
        v = bits_val(e, ir_const(e->c, w, (uint64_t)k));
    }
    if (v.kind != V_BITS) {
        fail(e, n->span, "the width of this index is not known");
        return false;
    }
    Ref good = v.width > w || s->rows < 1ull << v.width ? below(e, v.ref, s->rows, n->span) : ir_const(e->c, 1, 1);
    if (v.width > w) {
        Ref high = ir_slice(e->c, v.ref, w, v.width - w);
        good = ir_eq(e->c, high, ir_const(e->c, v.width - w, 0));
        v.ref = ir_slice(e->c, v.ref, 0, w);
        if (s->rows < 1ull << w) good = ir_and(e->c, good, below(e, v.ref, s->rows, n->span));
    }
    fault_unless(e, good, f->outside_code, f->outside, 0, n->span);
    p->row = v.width < w ? ir_zext(e->c, v.ref, w) : v.ref;
    return true;
}

/* ---- by address ---- */
bool base_aligned(const Info *s, unsigned *bits)
{
    *bits = clog2(size_of(s));
    return !(s->base & mask64(*bits) & (*bits ? ~0ull : 0));
}

/* The address as bits that can hold every address of the memory. */
static Ref address(Elab *e, const Info *s, const Node *n)
{
    Val v = eval(e, n, 32);
    Ref r = v.kind == V_BITS ? v.ref : to_bits(e, v, 32, n->span);
    uint64_t last = s->base + (size_of(s) - 1);
    if (!r) return 0;
    unsigned w = op_at(e->c, r)->width, need = last == UINT64_MAX ? 64 : clog2(last + 1);
    if (w >= need) return r;
    fail(e, n->span, "the address has %u bits, '%s' needs %u", w, s->decl->name, need);
    return 0;
}

/* Is the address inside, and what is its distance from the base (only the low bits count when it is)? */
static Ref inside(Elab *e, const Info *s, Ref addr, Ref *offset, Span at)
{
    unsigned bits, w = op_at(e->c, addr)->width;
    if (!base_aligned(s, &bits)) {
        *offset = ir_op(e->c, OP_SUB, w, 0, 2, (Ref[]){ addr, ir_const(e->c, w, s->base) }, at);
        return below(e, *offset, size_of(s), at);
    }
    *offset = bits && bits < w ? ir_slice(e->c, addr, 0, bits) : addr;
    Ref in = ir_const(e->c, 1, 1);
    if (bits < w)
        in = ir_eq(e->c, bits ? ir_slice(e->c, addr, bits, w - bits) : addr,
                   ir_const(e->c, w - bits, bits < 64 ? s->base >> bits : 0));
    if (bits && size_of(s) < (bits < 64 ? 1ull << bits : 0)) in = ir_and(e->c, in, below(e, *offset, size_of(s), at));
    return in;
}

/* Bits [lo, lo + width) of v, with zeros beyond its end. */
static Ref window(Elab *e, Ref v, unsigned lo, unsigned width)
{
    unsigned w = op_at(e->c, v)->width;
    if (lo >= w) return ir_const(e->c, width, 0);
    if (lo + width <= w) return ir_slice(e->c, v, lo, width);
    return ir_zext(e->c, ir_slice(e->c, v, lo, w - lo), width);
}

static bool place_by_address(Elab *e, const Info *s, unsigned view, const Node *n, const Faults *f, Place *p)
{
    Ref addr = address(e, s, n), offset;
    if (!addr) return false;
    if (view < 8 || (view & (view - 1))) {
        fail(e, n->span, "found the view u%u, expected u8, u16, u32 or u64", view);
        return false;
    }
    Path *saved = e->path;
    Ref in = inside(e, s, addr, &offset, n->span);
    fault_unless(e, in, f->outside_code, f->outside, window(e, addr, 0, FAULT_VALUE), n->span);
    unsigned low = clog2(view / 8), row = clog2(s->row / 8);
    if (low) {
        e->path = path_child(e, saved, in, 0, 0);
        fault_unless(e, ir_eq(e->c, window(e, addr, 0, low), ir_const(e->c, low, 0)), f->misaligned_code, f->misaligned,
                     window(e, addr, 0, FAULT_VALUE), n->span);
        e->path = saved;
    }
    p->row = window(e, offset, row, index_width(s));
    if (s->rows == 1) p->row = ir_const(e->c, 1, 0);
    p->sub = row > low ? window(e, offset, low, row - low) : 0;
    return true;
}

static bool place_of(Elab *e, const Info *s, unsigned view, const Node *n, bool store, Place *p)
{
    const Faults *f = store ? &store_faults : &load_faults;
    *p = (Place){ .view = view ? view : s->elem };
    if (view) return place_by_address(e, s, view, n, f, p);
    if (!s->has_base) return place_by_index(e, s, n, f, p);
    fail(e, n->span, "'%s' has addresses, expected a view: %s.u%u[address]", s->decl->name, s->decl->name, s->elem);
    return false;
}

Ref rows_inside(Elab *e, Info *s, const Node *n)
{
    if (!s->has_base) {
        fail(e, n->span, "'%s' has no base address", s->decl->name);
        return 0;
    }
    Ref addr = address(e, s, n), offset;
    return addr ? inside(e, s, addr, &offset, n->span) : 0;
}

/* ---- reads and writes ---- */
Val rows_read(Elab *e, Info *s, unsigned view, const Node *index, Span at)
{
    Place p;
    if (!place_of(e, s, view, index, false, &p)) return (Val){ .kind = V_ERROR };
    Ref row = ir_read(e->c, s->state, p.row, at);
    unsigned parts = s->row / p.view, bits = clog2(parts);
    if (parts == 1) return bits_val(e, row);
    Ref cond[64], val[64];
    for (unsigned i = 0; i < parts; i++) {
        cond[i] = ir_eq(e->c, p.sub, ir_const(e->c, bits, i));
        val[i] = ir_slice(e->c, row, i * p.view, p.view);
    }
    return bits_val(e, select_value(e, cond, val, parts, p.view, true));
}

/* Which lanes a write of part `sub` touches; 0 when it is the whole row. */
static Ref lanes_of(Elab *e, const Info *s, const Place *p)
{
    unsigned lane = e->c->states.data[s->state].lane, n = s->row / lane, per = p->view / lane;
    if (n == 1) return 0;
    if (!p->sub) return ir_const(e->c, n, mask64(n));
    Ref part[64];
    unsigned bits = op_at(e->c, p->sub)->width;
    for (unsigned i = 0; i < n; i++) part[n - 1 - i] = ir_eq(e->c, p->sub, ir_const(e->c, bits, i / per));
    return ir_op(e->c, OP_CAT, n, 0, n, part, op_at(e->c, p->sub)->span);
}

static Ref copies(Elab *e, const Info *s, Ref value, Span at)
{
    unsigned n = s->row / op_at(e->c, value)->width;
    Ref part[64];
    for (unsigned i = 0; i < n; i++) part[i] = value;
    return n == 1 ? value : ir_op(e->c, OP_CAT, s->row, 0, n, part, at);
}

static void add_write(Elab *e, Info *s, const Effect *new)
{
    if (!add_work(e, s->slot.effects.n / 4, new->span)) return;
    for (uint32_t i = 0; i < s->slot.effects.n; i++) {
        Effect *old = &s->slot.effects.data[i];
        if (path_exclusive(e, old->path, new->path) || gives_way(e, old)) continue;
        unsigned before = error_count();
        fail(e, new->span, "two writes to '%s' may happen in one step", s->decl->name);
        if (error_count() > before) note_at(old->span, "the other write");
        return;
    }
    if (s->slot.effects.n >= MAX_ARMS) {
        fail(e, new->span, "more than %d writes to '%s'", MAX_ARMS, s->decl->name);
        e->stop = true;
    } else {
        vec_push(&s->slot.effects, *new);
    }
}

void rows_write(Elab *e, Info *s, unsigned view, const Node *index, const Node *value, Span at)
{
    Place p;
    bool good = place_of(e, s, view, index, true, &p);
    Ref data = eval_bits(e, value, view ? view : s->elem);
    if (!good || !data || !effect_allowed(e, at)) return;
    Effect w = {
        .path = e->path, .index = p.row, .data = copies(e, s, data, at), .lanes = lanes_of(e, s, &p), .span = at
    };
    add_write(e, s, &w);
}
