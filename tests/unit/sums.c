/* sums.c: the products and sums of backend/sums.c, as networks of units, against 64-bit arithmetic: small widths exhaustively, large ones
 * on hard and random operands; no unit may see a number above 256, beyond which bf16 skips some. */
#include "../../backend/backend.h"
#include <string.h>

static uint64_t seed = 1;
static uint64_t random64(void)
{
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return seed;
}

static double *value; /* per node */
static double largest;

static double of_lit(Lit l) { return lit_inv(l) ? 1 - value[lit_node(l)] : value[lit_node(l)]; }
static double of_lin(Lin l)
{
    double x = l.k;
    for (uint32_t i = 0; i < l.n; i++) x += l.t[i].coef * value[l.t[i].node];
    return x;
}

static double of_expr(Expr e)
{
    double x = of_lin(e.lin);
    for (uint32_t i = 0; i < e.n; i++) {
        int32_t max;
        double g = of_lin(term_gate(e.t[i], &max));
        if (g > largest) largest = g;
        if (g > max) die("a gate of %g above its maximum %d", g, max);
        if (g > 0) x += e.t[i].coef * g * of_lin(e.t[i].up);
    }
    return x;
}

static void run(const Net *n)
{
    for (Node i = 1; i < n->nodes.n; i++) {
        const NodeInfo *x = &n->nodes.data[i];
        if (x->kind == N_TOKEN) continue;
        if (x->kind == N_AND) value[i] = of_lit(x->args[0]) * of_lit(x->args[1]);
        else if (x->kind == N_XOR) value[i] = of_lit(x->args[0]) != of_lit(x->args[1]);
        else value[i] = of_expr(x->expr);
        if (value[i] < x->lo || value[i] > x->hi) die("node %u is %g, not in %d..%d", i, value[i], x->lo, x->hi);
    }
}

/* w-bit words whose low `bits` are inputs; the others are 0 or, for `sign`, copies of the highest one (ANDed with an input). */
typedef struct {
    Lit *lit;
} Word;

static Lit input(Net *n, unsigned *count) { return g_input(n, N_TOKEN, (*count)++, 0, 0, 1) * 2; }

static Word word(Net *n, unsigned w, unsigned bits, bool sign, unsigned *count)
{
    Word x = {xalloc(w * sizeof(Lit))};
    Lit s = sign ? input(n, count) : LIT0;
    for (unsigned i = 0; i < bits; i++) x.lit[i] = input(n, count);
    for (unsigned i = bits; i < w; i++) x.lit[i] = g_and(n, s, x.lit[bits - 1]);
    return x;
}

static uint64_t of_word(const Word *x, unsigned w)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < w; i++) v |= (uint64_t)of_lit(x->lit[i]) << i;
    return v;
}

typedef struct {
    unsigned w, a, b, c; /* widths: result, factors, word */
    bool sa, sb, gate;
    unsigned low;        /* constant low bits of the first factor, which is shifted by 3 */
} Shape;

/* out = (p ? -1 : 1) * a * b - c, of no interest while the gate is 0 */
static bool check(Shape f, unsigned rounds)
{
    Net *n = net_new(NULL);
    unsigned count = 1; /* port 0 would be the input of nothing else */
    Word a = word(n, f.w, f.a, f.sa, &count), b = word(n, f.w, f.b, f.sb, &count), c = word(n, f.w, f.c, false, &count);
    if (f.low) {
        memmove(a.lit + 3, a.lit, (f.w - 3) * sizeof(Lit));
        for (unsigned i = 0; i < 3; i++) a.lit[i] = f.low >> i & 1 ? LIT1 : LIT0;
    }
    Lit p = input(n, &count), g = f.gate ? input(n, &count) : LIT1;
    SumTerm t[2] = {{a.lit, b.lit, p, g}, {NULL, c.lit, LIT1, g}};
    Lit *out = xalloc(f.w * sizeof *out);
    m_sum(n, f.w, t, 2, out, (Span){0});
    value = xalloc(n->nodes.n * sizeof *value);
    unsigned inputs = 0;
    for (Node i = 1; i < n->nodes.n; i++) inputs += n->nodes.data[i].kind == N_TOKEN;
    bool all = inputs <= 16;
    for (uint64_t r = 0; r < (all ? 1ull << inputs : rounds); r++) {
        uint64_t k = 0, flip = r % 5 == 0 ? ~0ull : 0, bits[4];
        for (unsigned i = 0; i < 4; i++) bits[i] = (i || r % 3 ? random64() : random64() & random64() & random64()) ^ flip;
        for (Node i = 1; i < n->nodes.n; i++)
            if (n->nodes.data[i].kind == N_TOKEN) {
                value[i] = (all ? r : bits[k / 64 % 4]) >> k % 64 & 1;
                k++;
            }
        run(n);
        uint64_t x = of_word(&a, f.w), y = of_word(&b, f.w), z = of_word(&c, f.w), want = x * y, got = 0;
        if (of_lit(p)) want = -want;
        want = (want - z) & mask64(f.w);
        for (unsigned i = 0; i < f.w; i++) got |= (uint64_t)of_lit(out[i]) << i;
        if (got == want || !of_lit(g)) continue;
        fprintf(stderr, "%u bits: %s0x%llx * 0x%llx - 0x%llx gave 0x%llx, not 0x%llx\n", f.w, of_lit(p) ? "-" : "", (unsigned long long)x,
                (unsigned long long)y, (unsigned long long)z, (unsigned long long)got, (unsigned long long)want);
        return false;
    }
    if (largest > 256) fprintf(stderr, "%u bits: a gate of %g\n", f.w, largest);
    return largest <= 256;
}

int main(void)
{
    static const Shape shape[] = {
        {8, 4, 4, 4, false, false, false, 0},   {8, 4, 4, 3, true, true, false, 0},      {9, 4, 5, 2, true, false, true, 0},
        {7, 3, 4, 4, false, true, true, 0},     {6, 6, 6, 3, false, false, false, 0},    {9, 3, 4, 4, false, true, false, 5},
        {32, 32, 32, 32, false, false, false, 0}, {64, 32, 32, 32, true, true, true, 0}, {64, 32, 32, 20, false, true, false, 0},
        {64, 33, 31, 64, true, false, true, 0}, {36, 32, 33, 32, false, true, false, 7}, {64, 64, 64, 64, false, false, false, 0},
        {64, 64, 64, 64, false, false, true, 0},
    };
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        if (!check(shape[i], 400)) return 1;
    return 0;
}
