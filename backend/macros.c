/* macros.c: arithmetic in as few levels as one SwiGLU layer allows.
 *
 * Sums: radix-16 digits. Level 1, per digit k from its partial sums s: y_i = bit i of s, u_i = (bit i of s+1) - (bit i of s),
 * e_k = 0 / 1 / 2 for kill / propagate / generate. Level 2: with S_k = sum over j < k of 2^j (e_j - 1), the carry into digit k
 * is [S_k >= 1]: the highest digit that does not propagate decides, since 2^j > sum of all lower 2^i. Comparison: the same S over all
 * digits of a + ~b has the sign of a - b.
 * Bound: |S_k| < 2^k, at most 2^MAX_SPAN digits wide in one step, so that bf16 (8 significant bits) keeps it exact; wider sums
 * take one level more (group carries). */
#include "macros.h"
#include <string.h>

enum { MAX_SPAN = 8, MOST_VALUES = 4097 /* of a table's form */ };

/* [L >= 1] as an Expr over the leaves of L, for L with maximum `max` >= 1. */
static Expr step1(const Net *n, Lin l)
{
    int64_t lo, hi;
    lin_range(n, l, &lo, &hi);
    if (lo >= 1) return expr_lin(lin_const(1));
    if (hi < 1) return expr_lin(lin_const(0));
    Term *t = xalloc(2 * sizeof *t);
    t[0] = term_core(l, (int32_t)hi, 1);
    Lin m = l;
    m.k -= 1;
    t[1] = term_core(m, (int32_t)hi - 1, -1);
    return (Expr){lin_const(0), hi > 1 ? 2 : 1, t};
}

/* f(v) of the integer form s in [lo, hi] by second differences: f(lo) + sum of d_j relu(s - j). */
static Expr lut(Lin s, int lo, int hi, const int *f)
{
    size_t bends = hi > lo && f[1] != f[0];
    for (int j = 1; j < hi - lo; j++) bends += f[j + 1] - f[j] != f[j] - f[j - 1];
    Expr e = {lin_const(f[0]), 0, xalloc(bends * sizeof(Term))};
    int slope = 0;
    for (int j = lo; j < hi; j++) {
        int d = f[j - lo + 1] - f[j - lo] - slope;
        if (d == 0) continue;
        slope += d;
        Lin core = s;
        core.k -= j;
        e.t[e.n++] = term_core(core, hi - j, d);
    }
    return e;
}

static int fn_bit(int v, int i) { return v >> i & 1; }
static int fn_flip(int v, int i) { return ((v + 1) >> i & 1) - (v >> i & 1); }
static int fn_gen(int v, int full) { return v < full ? 0 : v == full ? 1 : 2; }

/* e where the gate is 1, else 0. */
static Expr gated(const Net *n, Expr e, Lit gate)
{
    Expr r;
    if (gate == LIT1) return e;
    if (!expr_mul(n, e, expr_lin(lin_lit(gate)), 4096, &r)) die("gate of a table");
    return r;
}

/* The table, and 0 while the gate is 0; where it is its argument or constant, that. */
static Lin gated_table(Net *n, Lin s, DigitFn fn, int arg, Lit gate, Span span)
{
    int64_t lo, hi;
    lin_range(n, s, &lo, &hi);
    if (hi - lo >= MOST_VALUES) die("table over %lld values", (long long)(hi - lo));
    int f[MOST_VALUES], min = fn((int)lo, arg), max = min;
    for (int64_t v = lo; v <= hi; v++) {
        int y = f[v - lo] = fn((int)v, arg);
        min = y < min ? y : min;
        max = y > max ? y : max;
    }
    if (min == max) return lin_const(min);
    if (s.n == 1 && s.t[0].coef == 1 && s.k == 0 && lo == 0 && hi == 1 && f[0] == 0 && f[1] == 1) return s;
    Expr e = gated(n, lut(s, (int)lo, (int)hi, f), gate);
    if (gate != LIT1) min = min > 0 ? 0 : min, max = max < 0 ? 0 : max;
    return lin_node(g_expr(n, e, min, max, span), 1);
}

Lin m_table(Net *n, Lin s, DigitFn fn, int arg, Span span) { return gated_table(n, s, fn, arg, LIT1, span); }

static Lit as_lit(Net *n, Lin l, Span span)
{
    if (l.n == 0) return l.k ? LIT1 : LIT0;
    if (l.n == 1 && n->nodes.data[l.t[0].node].bit) {
        if (l.k == 0 && l.t[0].coef == 1) return l.t[0].node * 2;
        if (l.k == 1 && l.t[0].coef == -1) return l.t[0].node * 2 + 1;
    }
    return g_expr(n, expr_lin(l), 0, 1, span) * 2;
}

Lit m_table_bit(Net *n, Lin s, DigitFn fn, int arg, Span span) { return as_lit(n, m_table(n, s, fn, arg, span), span); }

/* S over digits [from, to) of carry states e. */
static Lin span_sum(const Lin *e, unsigned from, unsigned to)
{
    Lin s = lin_const(0);
    for (unsigned j = from; j < to; j++) {
        s = lin_add(s, e[j], 1 << (j - from));
        s.k -= 1 << (j - from);
    }
    return s;
}

static int fn_clip(int v, int arg) { (void)arg; return v < 0 ? 0 : v > 0 ? 2 : 1; }

/* The form whose sign decides the carry into digit k: >= 1 carry. One level for up to MAX_SPAN digits below, else two. */
static Lin carry_form(Net *n, const Lin *e, unsigned k, Span span)
{
    if (k <= MAX_SPAN) return span_sum(e, 0, k);
    Lin s = lin_const(0);
    for (unsigned g = 0; g * MAX_SPAN < k; g++) {
        unsigned to = (g + 1) * MAX_SPAN < k ? (g + 1) * MAX_SPAN : k;
        s = lin_add(s, m_table(n, span_sum(e, g * MAX_SPAN, to), fn_clip, 0, span), 1 << g);
        s.k -= 1 << g;
    }
    return s;
}

void m_finish(Net *n, unsigned w, Lin (*form)[DIGIT], Lit gate, Lit *sum, Span span)
{
    unsigned nd = (w + DIGIT - 1) / DIGIT;
    Lin *e = xalloc(nd * sizeof *e);
    for (unsigned k = 0; k < nd; k++) {
        unsigned bits = k == nd - 1 ? w - k * DIGIT : DIGIT;
        if (k + 1 < nd) e[k] = gated_table(n, form[k][DIGIT - 1], fn_gen, (1 << DIGIT) - 1, gate, span);
        Expr carry = k ? step1(n, carry_form(n, e, k, span)) : expr_lin(lin_const(0));
        for (unsigned i = 0; i < bits; i++) {
            Lin y = gated_table(n, form[k][i], fn_bit, (int)i, gate, span);
            Lin u = gated_table(n, form[k][i], fn_flip, (int)i, gate, span);
            Expr x;
            if (!expr_mul(n, carry, expr_lin(u), 8, &x)) die("carry times flip");
            x = expr_add(n, expr_lin(y), x, 1);
            sum[k * DIGIT + i] = x.n ? g_expr(n, x, 0, 1, span) * 2 : as_lit(n, x.lin, span);
        }
    }
}

void m_add(Net *n, unsigned w, const Lit *a, const Lit *b, Lit cin, Lit gate, Lit *sum, Span span)
{
    Lin(*form)[DIGIT] = xalloc((w / DIGIT + 1) * sizeof *form);
    for (unsigned i = 0; i < w; i++) {
        unsigned k = i / DIGIT, j = i % DIGIT;
        Lin s = j ? form[k][j - 1] : k ? lin_const(0) : lin_lit(cin);
        s = lin_add(s, lin_lit(a[i]), 1 << j);
        form[k][j] = lin_add(s, lin_lit(b[i]), 1 << j);
    }
    m_finish(n, w, form, gate, sum, span);
}

/* Carry states of a + ~b: their S has the sign of a - b. */
static Lin difference_form(Net *n, unsigned w, const Lit *a, const Lit *b, Span span)
{
    unsigned nd = (w + DIGIT - 1) / DIGIT;
    Lin *e = xalloc(nd * sizeof *e);
    for (unsigned k = 0; k < nd; k++) {
        Lin s = lin_const(0);
        unsigned bits = k == nd - 1 ? w - k * DIGIT : DIGIT;
        for (unsigned j = 0; j < bits; j++) {
            s = lin_add(s, lin_lit(a[k * DIGIT + j]), 1 << j);
            s = lin_add(s, lin_lit(lit_not(b[k * DIGIT + j])), 1 << j);
        }
        e[k] = m_table(n, s, fn_gen, (1 << bits) - 1, span);
    }
    return carry_form(n, e, nd, span);
}

static Lit expr_lit(Net *n, Expr e, Span span)
{
    return e.n ? g_expr(n, e, 0, 1, span) * 2 : as_lit(n, e.lin, span);
}

Lit m_less(Net *n, unsigned w, const Lit *a, const Lit *b, Span span)
{
    Lin s = difference_form(n, w, a, b, span);
    return expr_lit(n, step1(n, lin_add(lin_const(0), s, -1)), span);
}

Lit m_equal(Net *n, unsigned w, const Lit *a, const Lit *b, Span span)
{
    bool simple = true; /* constants and equal bits need no digits */
    for (unsigned i = 0; i < w; i++) simple &= lit_node(a[i]) == 0 || lit_node(b[i]) == 0 || lit_node(a[i]) == lit_node(b[i]);
    if (simple || w <= 2) {
        Lit r = LIT1;
        for (unsigned i = 0; i < w; i++) r = g_and(n, r, lit_not(g_xor(n, a[i], b[i])));
        return r;
    }
    Lin s = difference_form(n, w, a, b, span);
    Expr ne = expr_add(n, step1(n, s), step1(n, lin_add(lin_const(0), s, -1)), 1);
    return expr_lit(n, expr_not(ne), span);
}

/* a + b == t without the carry chain. Per digit, D = A + B - T must be 0, -1, 16 or 15: then its carry in is [D is -1 or 15], its
 * carry out [D is 16 or 15]. All digits must be of these, and each carry in must equal the carry out below: the sum over k of
 * 2^k (in_k+1 - out_k) is 0 only if every difference is (each is -1, 0 or 1). */
static int fn_bad(int v, int arg) { (void)arg; return v != 0 && v != -1 && v != 15 && v != 16; }
static int fn_cin(int v, int arg) { (void)arg; return v == -1 || v == 15; }
static int fn_cout(int v, int arg) { (void)arg; return v == 15 || v == 16; }

Lit m_sum_equal(Net *n, unsigned w, const Lit *a, const Lit *b, const Lit *t, Span span)
{
    if (w % DIGIT || w / DIGIT > MAX_SPAN) {
        Lit *s = xalloc(w * sizeof *s);
        m_add(n, w, a, b, LIT0, LIT1, s, span);
        return m_equal(n, w, s, t, span);
    }
    Lin link = lin_const(0), out = lin_const(0);
    Lit good = LIT1;
    for (unsigned k = 0; k < w / DIGIT; k++) {
        Lin d = lin_const(0);
        for (unsigned j = 0; j < DIGIT; j++) {
            d = lin_add(d, lin_lit(a[k * DIGIT + j]), 1 << j);
            d = lin_add(d, lin_lit(b[k * DIGIT + j]), 1 << j);
            d = lin_add(d, lin_lit(t[k * DIGIT + j]), -(1 << j));
        }
        good = g_and(n, good, lit_not(as_lit(n, m_table(n, d, fn_bad, 0, span), span)));
        link = lin_add(link, lin_add(m_table(n, d, fn_cin, 0, span), out, -1), 1 << k);
        out = m_table(n, d, fn_cout, 0, span);
    }
    Expr ne = expr_add(n, step1(n, link), step1(n, lin_add(lin_const(0), link, -1)), 1);
    return g_and(n, good, expr_lit(n, expr_not(ne), span));
}

void m_shift(Net *n, unsigned w, const Lit *a, unsigned nw, const Lit *amount, OpKind kind, Lit *out)
{
    unsigned low = clog2(w); /* amounts of more bits only say "everything out" */
    if (low > nw) low = nw;
    Lit none = LIT1; /* no higher amount bit is set */
    for (unsigned i = low; i < nw; i++) none = g_and(n, none, lit_not(amount[i]));
    unsigned steps = 1u << low;
    Lit *is = xalloc(steps * sizeof *is), *cv = xalloc((2 * steps + 4) * sizeof *cv);
    Lin s = lin_const(0);
    for (unsigned i = 0; i < low; i++) s = lin_add(s, lin_lit(amount[i]), 1 << i);
    for (unsigned k = 0; k < steps; k++) {
        is[k] = none;
        for (unsigned i = 0; i < low; i++) is[k] = g_and(n, is[k], k >> i & 1 ? amount[i] : lit_not(amount[i]));
    }
    Lit sign = kind == OP_ASHR ? a[w - 1] : LIT0;
    for (unsigned i = 0; i < w; i++) {
        unsigned p = 0, inside = kind == OP_SHL ? i + 1 : w - i; /* amounts below this leave a real bit here */
        for (unsigned k = 0; k < steps && k < inside; k++) {
            cv[p++] = is[k];
            cv[p++] = kind == OP_SHL ? a[i - k] : a[i + k];
        }
        if (sign != LIT0 && inside < steps) {
            Lin over = s;
            over.k -= (int32_t)inside - 1;
            cv[p++] = g_and(n, none, expr_lit(n, step1(n, over), (Span){0}));
            cv[p++] = sign;
        }
        if (sign != LIT0 && none != LIT1) {
            cv[p++] = lit_not(none);
            cv[p++] = sign;
        }
        out[i] = g_psum(n, cv, p / 2);
    }
}
