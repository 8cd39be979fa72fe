/* fold.c: constants and local identities. ir_fold is asked before an op is made; a rule either returns the value that
 * replaces the op or 0. Every rule makes something simpler (fewer bits, fewer arguments, or a kind earlier in the order
 * arithmetic > logic > wiring > constants), so the recursion through ir_op ends.
 * Wiring (slices, concatenations, extensions, shifts by constants) costs nothing later, so rules prefer it. */
#include "ir.h"
#include <string.h>

/* ---- values of constants ---- */

static int64_t as_signed(uint64_t v, unsigned w) { return (int64_t)(v << (64 - w)) >> (64 - w); }

static uint64_t value_ashr(uint64_t a, uint64_t n, unsigned w)
{
    return (uint64_t)(as_signed(a, w) >> (n > 63 ? 63 : n));
}

static uint64_t value_cat(unsigned nargs, const uint64_t *v, const unsigned *w)
{
    uint64_t r = 0;
    for (unsigned i = 0; i < nargs; i++) r = w[i] == 64 ? v[i] : r << w[i] | v[i];
    return r;
}

static uint64_t value_pmux(unsigned nargs, const uint64_t *v)
{
    uint64_t r = 0;
    for (unsigned i = 0; i < nargs; i += 2)
        if (v[i]) r |= v[i + 1];
    return r;
}

uint64_t op_value(OpKind kind, unsigned width, uint64_t imm, unsigned nargs, const uint64_t *v, const unsigned *w)
{
    uint64_t r = 0;
    switch (kind) {
    case OP_CONST: r = imm; break;
    case OP_ADD: r = v[0] + v[1]; break;
    case OP_SUB: r = v[0] - v[1]; break;
    case OP_MUL: r = v[0] * v[1]; break;
    case OP_AND: r = v[0] & v[1]; break;
    case OP_OR: r = v[0] | v[1]; break;
    case OP_XOR: r = v[0] ^ v[1]; break;
    case OP_NOT: r = ~v[0]; break;
    case OP_SHL: r = v[1] >= width ? 0 : v[0] << v[1]; break;
    case OP_LSHR: r = v[1] >= width ? 0 : v[0] >> v[1]; break;
    case OP_ASHR: r = value_ashr(v[0], v[1], width); break;
    case OP_EQ: r = v[0] == v[1]; break;
    case OP_ULT: r = v[0] < v[1]; break;
    case OP_SLT: r = as_signed(v[0], w[0]) < as_signed(v[1], w[1]); break;
    case OP_MUX: r = v[0] ? v[1] : v[2]; break;
    case OP_PMUX: r = value_pmux(nargs, v); break;
    case OP_CAT: r = value_cat(nargs, v, w); break;
    case OP_SLICE: r = v[0] >> imm; break;
    case OP_ZEXT: r = v[0]; break;
    case OP_SEXT: r = (uint64_t)as_signed(v[0], w[0]); break;
    default: die("%s has no value of its own", op_name[kind]);
    }
    return r & mask64(width);
}

static Ref fold_constants(Circuit *c, const Request *q)
{
    enum { MOST = 64 };
    uint64_t v[MOST];
    unsigned w[MOST];
    if (q->nargs > MOST || q->kind == OP_READ || q->kind == OP_TOKEN) return 0;
    for (unsigned i = 0; i < q->nargs; i++) {
        if (!ir_is_const(c, q->args[i], &v[i])) return 0;
        w[i] = op_at(c, q->args[i])->width;
    }
    return ir_const(c, q->width, op_value(q->kind, q->width, q->imm, q->nargs, v, w));
}

/* ---- helpers ---- */

static Ref op2(Circuit *c, const Request *q, OpKind kind, unsigned width, Ref a, Ref b)
{
    return ir_op(c, kind, width, 0, 2, (Ref[]){a, b}, q->span);
}

static Ref op1(Circuit *c, const Request *q, OpKind kind, unsigned width, uint64_t imm, Ref a)
{
    return ir_op(c, kind, width, imm, 1, &a, q->span);
}

static Ref slice_of(Circuit *c, const Request *q, Ref a, unsigned lo, unsigned width)
{
    return op1(c, q, OP_SLICE, width, lo, a);
}

/* The value without its lowest `n` bits (n < width). */
static Ref drop_low(Circuit *c, const Request *q, Ref a, unsigned n)
{
    return slice_of(c, q, a, n, op_at(c, a)->width - n);
}

static bool is_kind(const Circuit *c, Ref r, OpKind kind) { return op_at(c, r)->kind == kind; }

static unsigned trailing_zeros(uint64_t v, unsigned w)
{
    unsigned n = 0;
    while (n < w && !(v >> n & 1)) n++;
    return n;
}

/* How many low bits of a value are seen to be 0. */
static unsigned low_zeros(const Circuit *c, Ref r)
{
    const Op *op = op_at(c, r);
    if (op->kind == OP_CONST) return trailing_zeros(op->imm, op->width);
    if (op->kind == OP_ZEXT || op->kind == OP_SEXT) return low_zeros(c, arg_at(c, r, 0));
    if (op->kind == OP_CAT) return low_zeros(c, arg_at(c, r, op->nargs - 1));
    return 0;
}

/* ---- arithmetic ---- */

/* With k low zeros on one side, the low k bits pass through and the addition is narrower. */
static Ref add_low_zeros(Circuit *c, const Request *q)
{
    Ref a = q->args[0], b = q->args[1];
    unsigned ka = low_zeros(c, a), kb = low_zeros(c, b), k = ka > kb ? ka : kb;
    if (!k || k >= q->width) return 0;
    Ref hi = op2(c, q, OP_ADD, q->width - k, drop_low(c, q, a, k), drop_low(c, q, b, k));
    return op2(c, q, OP_CAT, q->width, hi, slice_of(c, q, ka > kb ? b : a, 0, k));
}

static Ref fold_add(Circuit *c, const Request *q)
{
    Ref a = q->args[0], b = q->args[1];
    uint64_t k, k2;
    if (q->width == 1) return op2(c, q, OP_XOR, 1, a, b);
    if (ir_is_const(c, b, &k)) {
        if (k == 0) return a;
        if (is_kind(c, a, OP_ADD) && ir_is_const(c, arg_at(c, a, 1), &k2))
            return op2(c, q, OP_ADD, q->width, arg_at(c, a, 0), ir_const(c, q->width, k + k2));
    }
    return add_low_zeros(c, q);
}

static Ref fold_sub(Circuit *c, const Request *q)
{
    Ref a = q->args[0], b = q->args[1];
    uint64_t k;
    if (a == b) return ir_const(c, q->width, 0);
    if (q->width == 1) return op2(c, q, OP_XOR, 1, a, b);
    if (ir_is_const(c, b, &k)) return op2(c, q, OP_ADD, q->width, a, ir_const(c, q->width, 0 - k));
    /* low zeros of b pass a's low bits through */
    unsigned z = low_zeros(c, b);
    if (!z || z >= q->width) return 0;
    Ref hi = op2(c, q, OP_SUB, q->width - z, drop_low(c, q, a, z), drop_low(c, q, b, z));
    return op2(c, q, OP_CAT, q->width, hi, slice_of(c, q, a, 0, z));
}

static Ref fold_mul(Circuit *c, const Request *q)
{
    Ref a = q->args[0], b = q->args[1];
    uint64_t k;
    if (q->width == 1) return op2(c, q, OP_AND, 1, a, b);
    if (!ir_is_const(c, b, &k)) return 0;
    if (k == 0) return b;
    if (k & (k - 1)) return 0;
    return op2(c, q, OP_SHL, q->width, a, ir_const(c, 7, trailing_zeros(k, 64)));
}

static Ref fold_shift(Circuit *c, const Request *q)
{
    Ref a = q->args[0], n = q->args[1];
    unsigned w = q->width;
    uint64_t k;
    if (ir_is_const(c, a, &k) && k == 0) return a;
    if (q->kind == OP_ASHR && ir_is_const(c, a, &k) && k == mask64(w)) return a;
    if (is_kind(c, n, OP_ZEXT)) return op2(c, q, q->kind, w, a, arg_at(c, n, 0));
    if (!ir_is_const(c, n, &k)) return 0;
    if (k == 0) return a;
    if (q->kind == OP_ASHR) {
        unsigned by = k >= w ? w - 1 : (unsigned)k;
        return op1(c, q, OP_SEXT, w, 0, slice_of(c, q, a, by, w - by));
    }
    if (k >= w) return ir_const(c, w, 0);
    unsigned by = (unsigned)k;
    if (q->kind == OP_LSHR) return op1(c, q, OP_ZEXT, w, 0, slice_of(c, q, a, by, w - by));
    return op2(c, q, OP_CAT, w, slice_of(c, q, a, 0, w - by), ir_const(c, by, 0));
}

/* ---- comparison ---- */

/* Widths of equal outermost parts of two values (CATs or constants): both ends compare equal and need no compare. */
static void common_ends(Circuit *c, const Request *q, Ref a, Ref b, unsigned *low, unsigned *high)
{
    unsigned w = op_at(c, a)->width;
    *low = *high = 0;
    if (!is_kind(c, a, OP_CAT)) return;
    for (unsigned i = op_at(c, a)->nargs; i-- > 0;) {
        Ref part = arg_at(c, a, i);
        unsigned pw = op_at(c, part)->width;
        if (slice_of(c, q, b, *low, pw) != part) break;
        *low += pw;
    }
    for (unsigned i = 0; i < op_at(c, a)->nargs && *low < w; i++) {
        Ref part = arg_at(c, a, i);
        unsigned pw = op_at(c, part)->width;
        if (slice_of(c, q, b, w - *high - pw, pw) != part) break;
        *high += pw;
    }
}

/* The comparison without its equal ends, for EQ and ULT; 0 where there are none. */
static Ref compare_trimmed(Circuit *c, const Request *q, Ref a, Ref b)
{
    unsigned w = op_at(c, a)->width, low, high;
    bool structured = is_kind(c, b, OP_CAT) || is_kind(c, b, OP_CONST);
    if (!is_kind(c, a, OP_CAT) || !structured) return 0;
    common_ends(c, q, a, b, &low, &high);
    if (low + high == 0) return 0;
    if (low + high >= w) return ir_const(c, 1, q->kind == OP_EQ);
    unsigned rest = w - low - high;
    Ref x = slice_of(c, q, a, low, rest), y = slice_of(c, q, b, low, rest);
    return q->args[0] == a ? op2(c, q, q->kind, 1, x, y) : op2(c, q, q->kind, 1, y, x);
}

/* A value that has a constant part which differs from k there. */
static bool differs_from(const Circuit *c, Ref a, uint64_t k)
{
    const Op *op = op_at(c, a);
    if (op->kind == OP_CONST) return op->imm != k;
    if (op->kind == OP_ZEXT) {
        Ref x = arg_at(c, a, 0);
        unsigned w = op_at(c, x)->width;
        return (k & ~mask64(w)) || differs_from(c, x, k);
    }
    if (op->kind == OP_SEXT) {
        unsigned w = op_at(c, arg_at(c, a, 0))->width;
        return (k >> (w - 1)) != 0 && (k >> (w - 1)) != mask64(op->width - w + 1);
    }
    if (op->kind != OP_CAT) return false;
    unsigned lo = op->width;
    for (unsigned i = 0; i < op->nargs; i++) {
        Ref part = arg_at(c, a, i);
        unsigned pw = op_at(c, part)->width;
        lo -= pw;
        if (differs_from(c, part, k >> lo & mask64(pw))) return true;
    }
    return false;
}

/* A selection among constants equals k exactly under the conditions that select k. */
static Ref eq_selected(Circuit *c, const Request *q, Ref a, uint64_t k)
{
    unsigned n = op_at(c, a)->nargs;
    uint64_t v, u;
    if (is_kind(c, a, OP_MUX) && ir_is_const(c, arg_at(c, a, 1), &v) && ir_is_const(c, arg_at(c, a, 2), &u)) {
        Ref cond = arg_at(c, a, 0);
        if (v != k && u != k) return ir_const(c, 1, 0);
        return v == k ? cond : op1(c, q, OP_NOT, 1, 0, cond);
    }
    if (!is_kind(c, a, OP_PMUX)) return 0;
    for (unsigned i = 0; i < n; i += 2)
        if (!ir_is_const(c, arg_at(c, a, i + 1), NULL)) return 0;
    Ref any = ir_const(c, 1, 0);
    for (unsigned i = 0; i < n; i += 2) {
        ir_is_const(c, arg_at(c, a, i + 1), &v);
        bool take = k ? v == k : v != 0;
        if (take) any = op2(c, q, OP_OR, 1, any, arg_at(c, a, i));
    }
    return k ? any : op1(c, q, OP_NOT, 1, 0, any);
}

static Ref eq_const(Circuit *c, const Request *q, Ref a, uint64_t k)
{
    unsigned w = op_at(c, a)->width;
    uint64_t k2;
    if (w == 1) return k ? a : op1(c, q, OP_NOT, 1, 0, a);
    if (differs_from(c, a, k)) return ir_const(c, 1, 0);
    if (is_kind(c, a, OP_ZEXT) || is_kind(c, a, OP_SEXT)) {
        Ref x = arg_at(c, a, 0);
        unsigned xw = op_at(c, x)->width;
        return op2(c, q, OP_EQ, 1, x, ir_const(c, xw, k));
    }
    if (is_kind(c, a, OP_NOT)) return op2(c, q, OP_EQ, 1, arg_at(c, a, 0), ir_const(c, w, ~k));
    if (is_kind(c, a, OP_ADD) && ir_is_const(c, arg_at(c, a, 1), &k2))
        return op2(c, q, OP_EQ, 1, arg_at(c, a, 0), ir_const(c, w, k - k2));
    if (is_kind(c, a, OP_XOR) && ir_is_const(c, arg_at(c, a, 1), &k2))
        return op2(c, q, OP_EQ, 1, arg_at(c, a, 0), ir_const(c, w, k ^ k2));
    if (k == 0 && (is_kind(c, a, OP_XOR) || is_kind(c, a, OP_SUB)))
        return op2(c, q, OP_EQ, 1, arg_at(c, a, 0), arg_at(c, a, 1));
    return eq_selected(c, q, a, k);
}

static Ref fold_eq(Circuit *c, const Request *q)
{
    Ref a = q->args[0], b = q->args[1];
    uint64_t k;
    if (a == b) return ir_const(c, 1, 1);
    if (ir_is_const(c, b, &k)) {
        Ref r = eq_const(c, q, a, k);
        if (r) return r;
    }
    bool ext = is_kind(c, a, OP_ZEXT) || is_kind(c, a, OP_SEXT);
    if (ext && op_at(c, a)->kind == op_at(c, b)->kind) {
        Ref x = arg_at(c, a, 0), y = arg_at(c, b, 0);
        if (op_at(c, x)->width == op_at(c, y)->width) return op2(c, q, OP_EQ, 1, x, y);
    }
    Ref r = compare_trimmed(c, q, a, b);
    return r ? r : compare_trimmed(c, q, b, a);
}

/* a < k and k < a where k is at an end or a power of two. */
static Ref ult_const(Circuit *c, const Request *q, Ref a, Ref b)
{
    unsigned w = op_at(c, a)->width;
    uint64_t k, ones = mask64(w);
    if (ir_is_const(c, b, &k)) {
        if (k == 0) return ir_const(c, 1, 0);
        if (k == ones) return op1(c, q, OP_NOT, 1, 0, op2(c, q, OP_EQ, 1, a, b));
        if (k & (k - 1)) return 0;
        Ref hi = drop_low(c, q, a, trailing_zeros(k, w));
        return op2(c, q, OP_EQ, 1, hi, ir_const(c, op_at(c, hi)->width, 0));
    }
    if (ir_is_const(c, a, &k)) {
        if (k == ones) return ir_const(c, 1, 0);
        if (k & (k + 1)) return 0;
        Ref hi = drop_low(c, q, b, trailing_zeros(k + 1, w));
        return op1(c, q, OP_NOT, 1, 0, op2(c, q, OP_EQ, 1, hi, ir_const(c, op_at(c, hi)->width, 0)));
    }
    return 0;
}

static Ref fold_ult(Circuit *c, const Request *q)
{
    Ref a = q->args[0], b = q->args[1];
    if (a == b) return ir_const(c, 1, 0);
    if (op_at(c, a)->width == 1) return op2(c, q, OP_AND, 1, op1(c, q, OP_NOT, 1, 0, a), b);
    Ref r = ult_const(c, q, a, b);
    if (r) return r;
    if (is_kind(c, a, OP_ZEXT) && is_kind(c, b, OP_ZEXT)) {
        Ref x = arg_at(c, a, 0), y = arg_at(c, b, 0);
        if (op_at(c, x)->width == op_at(c, y)->width) return op2(c, q, OP_ULT, 1, x, y);
    }
    r = compare_trimmed(c, q, a, b);
    return r ? r : compare_trimmed(c, q, b, a);
}

static Ref fold_slt(Circuit *c, const Request *q)
{
    Ref a = q->args[0], b = q->args[1];
    unsigned w = op_at(c, a)->width;
    uint64_t k;
    if (a == b) return ir_const(c, 1, 0);
    if (w == 1) return op2(c, q, OP_AND, 1, a, op1(c, q, OP_NOT, 1, 0, b));
    if (ir_is_const(c, b, &k) && k == 0) return slice_of(c, q, a, w - 1, 1);
    if (ir_is_const(c, a, &k) && k == mask64(w)) return op1(c, q, OP_NOT, 1, 0, slice_of(c, q, b, w - 1, 1));
    if (is_kind(c, a, OP_ZEXT) && is_kind(c, b, OP_ZEXT)) return op2(c, q, OP_ULT, 1, a, b);
    if (is_kind(c, a, OP_SEXT) && is_kind(c, b, OP_SEXT)) {
        Ref x = arg_at(c, a, 0), y = arg_at(c, b, 0);
        if (op_at(c, x)->width == op_at(c, y)->width) return op2(c, q, OP_SLT, 1, x, y);
    }
    return 0;
}

/* ---- selection ---- */

/* Bits above which the value is seen to be 0, at least 1. */
static unsigned used_width(const Circuit *c, Ref r)
{
    const Op *op = op_at(c, r);
    if (op->kind == OP_ZEXT) return op_at(c, arg_at(c, r, 0))->width;
    if (op->kind != OP_CONST) return op->width;
    unsigned n = 1;
    while (n < op->width && op->imm >> n) n++;
    return n;
}

/* A selection among values with common high zeros selects fewer bits. `first` is the first data argument. */
static Ref select_narrow(Circuit *c, const Request *q, unsigned first, unsigned step)
{
    unsigned most = 0;
    for (unsigned i = first; i < q->nargs; i += step) {
        unsigned u = used_width(c, q->args[i]);
        if (u > most) most = u;
    }
    if (most >= q->width) return 0;
    Ref *args = xalloc(q->nargs * sizeof *args);
    memcpy(args, q->args, q->nargs * sizeof *args);
    for (unsigned i = first; i < q->nargs; i += step) args[i] = slice_of(c, q, args[i], 0, most);
    return op1(c, q, OP_ZEXT, q->width, 0, ir_op(c, q->kind, most, 0, q->nargs, args, q->span));
}

static Ref mux_of_bits(Circuit *c, const Request *q)
{
    Ref s = q->args[0], a = q->args[1], b = q->args[2];
    uint64_t k;
    if (ir_is_const(c, a, &k))
        return k ? op2(c, q, OP_OR, 1, s, b) : op2(c, q, OP_AND, 1, op1(c, q, OP_NOT, 1, 0, s), b);
    if (ir_is_const(c, b, &k))
        return k ? op2(c, q, OP_OR, 1, op1(c, q, OP_NOT, 1, 0, s), a) : op2(c, q, OP_AND, 1, s, a);
    if (a == s) return op2(c, q, OP_OR, 1, s, b);
    if (b == s) return op2(c, q, OP_AND, 1, s, a);
    return 0;
}

static Ref fold_mux(Circuit *c, const Request *q)
{
    Ref s = q->args[0], a = q->args[1], b = q->args[2];
    uint64_t k;
    if (ir_is_const(c, s, &k)) return k ? a : b;
    if (a == b) return a;
    if (is_kind(c, s, OP_NOT)) return ir_op(c, OP_MUX, q->width, 0, 3, (Ref[]){arg_at(c, s, 0), b, a}, q->span);
    if (is_kind(c, a, OP_MUX) && arg_at(c, a, 0) == s)
        return ir_op(c, OP_MUX, q->width, 0, 3, (Ref[]){s, arg_at(c, a, 1), b}, q->span);
    if (is_kind(c, b, OP_MUX) && arg_at(c, b, 0) == s)
        return ir_op(c, OP_MUX, q->width, 0, 3, (Ref[]){s, a, arg_at(c, b, 2)}, q->span);
    if (q->width == 1) {
        Ref r = mux_of_bits(c, q);
        if (r) return r;
    }
    return select_narrow(c, q, 1, 1);
}

/* The arms that can matter: conditions that are not 0, values that are not 0; equal values under the OR of their conditions. */
static unsigned pmux_arms(Circuit *c, const Request *q, Ref *arm)
{
    unsigned n = 0;
    uint64_t k;
    for (unsigned i = 0; i < q->nargs; i += 2) {
        Ref cond = q->args[i], value = q->args[i + 1];
        if ((ir_is_const(c, cond, &k) && !k) || (ir_is_const(c, value, &k) && !k)) continue;
        unsigned j = 0;
        while (j < n && arm[j + 1] != value) j += 2;
        arm[j] = j < n ? op2(c, q, OP_OR, 1, arm[j], cond) : cond;
        arm[j + 1] = value;
        if (j == n) n += 2;
    }
    return n;
}

static bool complements(const Circuit *c, Ref a, Ref b)
{
    return (is_kind(c, a, OP_NOT) && arg_at(c, a, 0) == b) || (is_kind(c, b, OP_NOT) && arg_at(c, b, 0) == a);
}

static Ref fold_pmux(Circuit *c, const Request *q)
{
    uint64_t k;
    for (unsigned i = 0; i < q->nargs; i += 2)
        if (ir_is_const(c, q->args[i], &k) && k) return q->args[i + 1];
    Ref *arm = xalloc((q->nargs + 1) * sizeof *arm);
    unsigned n = pmux_arms(c, q, arm);
    if (n == 0) return ir_const(c, q->width, 0);
    if (n == 2) return ir_op(c, OP_MUX, q->width, 0, 3, (Ref[]){arm[0], arm[1], ir_const(c, q->width, 0)}, q->span);
    if (n == 4 && complements(c, arm[0], arm[2]))
        return ir_op(c, OP_MUX, q->width, 0, 3, (Ref[]){arm[0], arm[1], arm[3]}, q->span);
    if (n < q->nargs) return ir_op(c, OP_PMUX, q->width, 0, n, arm, q->span);
    return select_narrow(c, q, 1, 2);
}

/* ---- the rest ---- */

static Ref fold_not(Circuit *c, const Request *q)
{
    Ref a = q->args[0];
    return is_kind(c, a, OP_NOT) ? arg_at(c, a, 0) : 0;
}

static Ref fold_xor(Circuit *c, const Request *q)
{
    Ref a = q->args[0], b = q->args[1];
    uint64_t k, k2;
    if (a == b) return ir_const(c, q->width, 0);
    if (complements(c, a, b)) return ir_const(c, q->width, ~0ull);
    if (ir_is_const(c, b, &k)) {
        if (k == 0) return a;
        if (k == mask64(q->width)) return op1(c, q, OP_NOT, q->width, 0, a);
        if (is_kind(c, a, OP_XOR) && ir_is_const(c, arg_at(c, a, 1), &k2))
            return op2(c, q, OP_XOR, q->width, arg_at(c, a, 0), ir_const(c, q->width, k ^ k2));
        if (is_kind(c, a, OP_NOT)) return op2(c, q, OP_XOR, q->width, arg_at(c, a, 0), ir_const(c, q->width, ~k));
        return 0;
    }
    if (!is_kind(c, a, OP_NOT) && !is_kind(c, b, OP_NOT)) return 0;
    bool both = is_kind(c, a, OP_NOT) && is_kind(c, b, OP_NOT);
    Ref x = is_kind(c, a, OP_NOT) ? arg_at(c, a, 0) : a, y = is_kind(c, b, OP_NOT) ? arg_at(c, b, 0) : b;
    Ref r = op2(c, q, OP_XOR, q->width, x, y);
    return both ? r : op1(c, q, OP_NOT, q->width, 0, r);
}

static Ref fold_read(Circuit *c, const Request *q)
{
    const State *s = &c->states.data[q->imm];
    uint64_t row;
    if (!q->nargs) return s->has_hard ? ir_const(c, q->width, s->hard_value) : 0;
    if (!ir_is_const(c, q->args[0], &row)) return 0;
    if (row >= s->rows) return ir_const(c, q->width, 0);
    return s->has_hard && row == s->hard_row ? ir_const(c, q->width, s->hard_value) : 0;
}

static Fold *const fold[OP_COUNT] = {
    [OP_READ] = fold_read, [OP_ADD] = fold_add, [OP_SUB] = fold_sub, [OP_MUL] = fold_mul, [OP_AND] = fold_and,
    [OP_OR] = fold_or, [OP_XOR] = fold_xor, [OP_NOT] = fold_not, [OP_SHL] = fold_shift, [OP_LSHR] = fold_shift,
    [OP_ASHR] = fold_shift, [OP_EQ] = fold_eq, [OP_ULT] = fold_ult, [OP_SLT] = fold_slt, [OP_MUX] = fold_mux,
    [OP_PMUX] = fold_pmux, [OP_CAT] = fold_cat, [OP_SLICE] = fold_slice, [OP_ZEXT] = fold_zext, [OP_SEXT] = fold_sext,
};

Ref ir_fold(Circuit *c, const Request *q)
{
    Ref r = fold_constants(c, q);
    return !r && fold[q->kind] ? fold[q->kind](c, q) : r;
}
