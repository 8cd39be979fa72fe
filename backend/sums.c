/* sums.c: sums of words and products modulo 2^w, without an adder in between.
 *
 * Columns of radix 4. Level 1: C_k, the sum of the products of digits i and j with i + j = k; one unit relu(a_i) * y_j each. Level 2:
 * C_k = lo + 16 hi gives D_k = lo(C_k) + hi(C_k-2), to which the digits of whole words are added for nothing. Level 3: hexadecimal digits
 * V_h = D_2h + 4 D_2h+1 give F_h = lo(V_h) + hi(V_h-1) <= 30, and levels 4 and 5 are those of any adder. A table by 16 has two units per 16 values,
 * since both halves are straight between the multiples.
 * Bounds: C_k and V_h <= MOST, so that bf16 holds every sum exactly; sums that would exceed them are split.
 * Signs: -y = ~y + 1. A sign-extended factor is y = Y - f 2^e with f its sign; -f 2^e a adds ~a from column e / 2 on, and f there.
 * Constant low bits of a count as words times a constant: products that differ there only share their columns. The gate of a term holds it at 0 while
 * nobody looks, so that few units are busy then; it costs no level, since it joins the gates of the units. */
#include "macros.h"
#include <string.h>

enum { MOST = 255 };

/* A factor: low - fill * 2^e, low = bit[0..e). */
typedef struct {
    unsigned e;
    Lit fill;
    const Lit *bit; /* w literals */
} Factor;

typedef struct {
    Net *n;
    unsigned w, nc;
    Expr *col;     /* level 1 */
    int64_t *max;  /* of col */
    Lin *word;     /* added at level 2 */
    Span span;
} Sum;

/* Radix-4 digit i of the first e of the bits. */
static Lin digit_of(unsigned e, const Lit *a, unsigned i)
{
    Lin d = 2 * i < e ? lin_lit(a[2 * i]) : lin_const(0);
    return 2 * i + 1 < e ? lin_add(d, lin_lit(a[2 * i + 1]), 2) : d;
}

static Factor factor(unsigned w, const Lit *a)
{
    Factor f = {.e = w, .fill = LIT0, .bit = a};
    unsigned e = w;
    while (e > 1 && a[e - 2] == a[w - 1]) e--;
    if (e < w && a[w - 1] == LIT0) f.e = e - 1 ? e - 1 : 1;
    else if (e < w && e + e % 2 < w) { /* the sign may count from either of its first two places */
        f.e = e % 2 ? e - 1 : e;
        f.fill = a[w - 1];
    }
    return f;
}

/* ---- level 1 ---- */

static bool keep_none(const Net *n, Lit l, void *ctx)
{
    (void)n, (void)l, (void)ctx;
    return false;
}

static void add_lit(Term *t, Lit l)
{
    uint32_t at = 0;
    if (l == LIT1) return;
    while (at < t->nlits && t->lits[at] < l) at++;
    if (at < t->nlits && t->lits[at] == l) return;
    Lit *more = xalloc((t->nlits + 1) * sizeof *more);
    if (at) memcpy(more, t->lits, at * sizeof *more);
    more[at] = l;
    if (at < t->nlits) memcpy(more + at + 1, t->lits + at, (t->nlits - at) * sizeof *more);
    t->lits = more;
    t->nlits++;
}

/* The same with the parts of an AND, which are older than it is. */
static void add_parts(const Net *n, Term *t, Lit l)
{
    Lit *part;
    uint32_t k;
    g_and_lits(n, l, keep_none, NULL, &part, &k);
    for (uint32_t i = 0; i < k; i++) add_lit(t, part[i]);
}

static int64_t upper(const Net *n, Lin l)
{
    int64_t lo, hi;
    lin_range(n, l, &lo, &hi);
    return hi;
}

/* Adds t, with at most `max`, to column k. */
static void put(Sum *s, unsigned k, Term t, int64_t max)
{
    if (k >= s->nc || max <= 0) return;
    if (!t.cmax && !t.nlits) {
        s->col[k].lin = lin_add(s->col[k].lin, t.up, (int32_t)t.coef);
    } else if (t.up.n == 0) { /* a constant goes into the coefficient */
        t.coef *= t.up.k;
        t.up = lin_const(1);
        s->col[k] = expr_add(s->n, s->col[k], (Expr){lin_const(0), 1, memcpy(xalloc(sizeof t), &t, sizeof t)}, 1);
    } else s->col[k] = expr_add(s->n, s->col[k], (Expr){lin_const(0), 1, memcpy(xalloc(sizeof t), &t, sizeof t)}, 1);
    s->max[k] += max;
}

/* + the digits of f (`low`: without its sign), or their complement, from column `at` on while `on` is. */
static void put_row(Sum *s, Term on, const Factor *f, bool low, bool complement, unsigned at)
{
    for (unsigned j = 0; at + j < s->nc; j++) {
        Term t = on;
        t.up = digit_of(low ? f->e : s->w, f->bit, j);
        if (complement) t.up = lin_add(lin_const(3), t.up, -1);
        put(s, at + j, t, upper(s->n, t.up));
    }
}

/* low(a) * low(y) without signs: one unit per pair of digits. */
static void put_products(Sum *s, const Factor *a, const Factor *y, Lit gate)
{
    Term on = {.coef = 1};
    add_lit(&on, gate);
    for (unsigned i = 0; 2 * i < a->e; i++)
        for (unsigned j = 0; 2 * j < y->e && i + j < s->nc; j++) {
            Lin x = digit_of(a->e, a->bit, i);
            Term t = on;
            t.up = digit_of(y->e, y->bit, j);
            if (x.n) t.core = x, t.cmax = (int32_t)upper(s->n, x);
            else t.coef = x.k;
            put(s, i + j, t, upper(s->n, x) * upper(s->n, t.up));
        }
}

/* l & gate if that is as early as l; else l. */
static Lit masked_lit(Net *n, Lit l, Lit gate)
{
    Lit m = g_and(n, l, gate);
    map_label_new(n);
    return map_lit_label(n, m) <= map_lit_label(n, l) ? m : l;
}

/* + k * ((y ^ sign) + sign) where the words are added; 0 while the gate is off, if that costs no level. */
static void put_word(Sum *s, const Lit *y, Lit sign, Lit gate, int32_t k)
{
    Lit *masked = xalloc(s->w * sizeof *masked);
    for (unsigned i = 0; i < s->w; i++) masked[i] = masked_lit(s->n, y[i], gate);
    for (unsigned j = 0; j < s->nc; j++) s->word[j] = lin_add(s->word[j], digit_of(s->w, masked, j), k);
    s->word[0] = lin_add(s->word[0], lin_lit(g_and(s->n, sign, gate)), k);
}

/* + a * ((y ^ sign) + sign) while the gate is on; y comes with the sign applied. */
static void put_product(Sum *s, const Lit *bits, const Lit *y, Lit sign, Lit gate)
{
    unsigned w = s->w;
    Lit *a = xalloc(w * sizeof *a);
    int32_t k = 0;
    for (unsigned i = 0; i < w; i++) {
        a[i] = bits[i];
        if (i < 3 && a[i] == LIT1) k += 1 << i, a[i] = LIT0;
    }
    if (k) put_word(s, y, sign, gate, k);
    Factor fa = factor(w, a), fy = factor(w, y);
    Term gated = {.coef = 1}, on;
    add_lit(&gated, gate);
    put_products(s, &fa, &fy, gate);
    if (fa.fill != LIT0) { /* - fill * 2^e * y */
        on = gated;
        add_parts(s->n, &on, fa.fill);
        put_row(s, on, &fy, fy.fill != LIT0 && fa.e + fy.e >= w, true, fa.e / 2);
        on.up = lin_const(1);
        put(s, fa.e / 2, on, 1);
    }
    if (fy.fill != LIT0) { /* - fill * 2^e * low(a) */
        on = gated;
        add_parts(s->n, &on, fy.fill);
        put_row(s, on, &fa, true, true, fy.e / 2);
        on.up = lin_const(1);
        put(s, fy.e / 2, on, 1);
    }
    if (sign != LIT0) {
        on = gated;
        add_parts(s->n, &on, sign);
        put_row(s, on, &fa, fa.fill == LIT0, false, 0);
    }
}

/* ---- levels 2 to 5 ---- */

static int fn_low(int v, int arg) { (void)arg; return v & 15; }
static int fn_high(int v, int arg) { (void)arg; return v >> 4; }

static Lin low_of(const Sum *s, Lin v) { return upper(s->n, v) < 16 ? v : m_table(s->n, v, fn_low, 0, s->span); }
static Lin high_of(const Sum *s, Lin v) { return upper(s->n, v) < 16 ? lin_const(0) : m_table(s->n, v, fn_high, 0, s->span); }

static void finish(Sum *s, Lit *out)
{
    Net *n = s->n;
    unsigned nh = (s->w + DIGIT - 1) / DIGIT;
    Lin *d = xalloc((2 * nh + 2) * sizeof *d), *c = xalloc((s->nc + 1) * sizeof *c), *v = xalloc(nh * sizeof *v);
    Lin(*form)[DIGIT] = xalloc(nh * sizeof *form);
    for (unsigned k = 0; k < 2 * nh; k++) {
        d[k] = lin_const(0);
        if (k >= s->nc) continue;
        c[k] = s->col[k].n ? lin_node(g_expr(n, s->col[k], 0, (int32_t)s->max[k], s->span), 1) : s->col[k].lin;
        d[k] = lin_add(s->word[k], low_of(s, c[k]), 1);
        if (k >= 2) d[k] = lin_add(d[k], high_of(s, c[k - 2]), 1);
    }
    for (unsigned h = 0; h < nh; h++) {
        v[h] = lin_add(d[2 * h], d[2 * h + 1], 4);
        if (upper(n, v[h]) > MOST) die("a sum of more than %d in one digit", MOST);
    }
    bool small = true;
    for (unsigned h = 0; h < nh; h++) small &= upper(n, v[h]) <= 30;
    for (unsigned h = 0; h < nh; h++) {
        Lin f = small ? v[h] : low_of(s, v[h]);
        if (h && !small) f = lin_add(f, high_of(s, v[h - 1]), 1);
        for (unsigned i = 0; i < DIGIT; i++) form[h][i] = f;
    }
    m_finish(n, s->w, form, LIT1, out, s->span);
}

/* False when a column would become too large. */
static bool try_sum(Net *n, unsigned w, const SumTerm *t, unsigned nt, Lit *out, Span span)
{
    Sum s = {.n = n, .w = w, .nc = (w + 1) / 2, .span = span};
    s.col = xalloc(s.nc * sizeof *s.col);
    s.max = xalloc(s.nc * sizeof *s.max);
    s.word = xalloc(s.nc * sizeof *s.word);
    for (unsigned k = 0; k < s.nc; k++) s.col[k] = expr_lin(lin_const(0)), s.word[k] = lin_const(0);
    for (unsigned i = 0; i < nt; i++) {
        Lit *y = xalloc(w * sizeof *y);
        for (unsigned j = 0; j < w; j++) y[j] = g_xor(n, t[i].y[j], t[i].s);
        if (t[i].a) put_product(&s, t[i].a, y, t[i].s, t[i].gate);
        else put_word(&s, y, t[i].s, t[i].gate, 1);
    }
    int64_t v = 0;
    for (unsigned k = 0; k < s.nc; k++) {
        int64_t d = upper(n, s.word[k]) + (s.max[k] < 15 ? s.max[k] : 15) + (k >= 2 ? s.max[k - 2] >> 4 : 0);
        v = k % 2 ? v + 4 * d : d;
        if (s.max[k] > MOST || v > MOST) return false;
    }
    finish(&s, out);
    return true;
}

/* The two halves of a product's first factor. */
static void halves(unsigned w, SumTerm t, SumTerm part[2])
{
    unsigned k = 0, at = 0, n = 0;
    for (unsigned i = 0; i < w; i++) n += t.a[i] != LIT0;
    Lit *lo = xalloc(w * sizeof *lo), *hi = xalloc(w * sizeof *hi);
    for (; at < w && k < n / 2; at++) k += (lo[at] = t.a[at]) != LIT0;
    for (unsigned i = at; i < w; i++) hi[i] = t.a[i];
    part[0] = (SumTerm){lo, t.y, t.s, t.gate};
    part[1] = (SumTerm){hi, t.y, t.s, t.gate};
}

void m_sum(Net *n, unsigned w, const SumTerm *t, unsigned nt, Lit *out, Span span)
{
    if (try_sum(n, w, t, nt, out, span)) return;
    SumTerm part[2];
    if (nt == 1) halves(w, t[0], part), t = part, nt = 2;
    Lit *x = xalloc(w * sizeof *x), *y = xalloc(w * sizeof *y);
    m_sum(n, w, t, nt / 2, x, span);
    m_sum(n, w, t + nt / 2, nt - nt / 2, y, span);
    m_add(n, w, x, y, LIT0, LIT1, out, span);
}
