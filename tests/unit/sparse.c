/* unit/sparse.c: random chips of the patterns that a compiler emits, and some that it does not; the sparse back end must
 * have the dense one's residual stream, bit for bit, after every block of every token, and the same state at the end. */
#include "chipgen.h"

static uint64_t seed = 1;
static uint32_t rnd(uint32_t n)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)((seed >> 33) % n);
}

enum { IN = 8, HIDDEN = 256, BITS_END = 150, KIND = 250, ASIDE = 245, LAYERS = 4, HEADS = 8, ROWS = 4 }; /* payload 0..7, bits, integers from BITS_END on, the kind */

/* ODD: heads that forget and lanes with gates of their own. TWO_HOT: besides, queries of two entries in the last layer,
 * whose reads are no integers, so that sums depend on their order and only nearly agree. */
typedef enum { PLAIN, ODD, TWO_HOT } Odd;

/* An AND of up to three literals over the first n channels, written as L with L = 1 when it holds, else <= 0. */
static void random_and(Term *t, uint32_t n, float gain, float off)
{
    uint32_t k = 1 + rnd(3), used = 0;
    float constant = 1;
    for (uint32_t i = 0; i < k; i++) {
        int32_t c = (int32_t)rnd(n);
        bool repeated = false;
        for (uint32_t j = 0; j < used; j++) repeated |= t[j].channel == c;
        if (repeated) continue;
        bool neg = rnd(2);
        t[used++] = (Term){c, gain * (neg ? -1.0f : 1.0f)};
        constant -= neg ? 0.0f : 1.0f;
    }
    t[used++] = (Term){-1, gain * constant + off};
    t[used] = (Term){-2, 0};
}

/* Bits r of an address: the literal AND that is 1 when channels a and b spell row r of 4. */
static void row_and(Term *t, int32_t a, int32_t b, uint32_t r)
{
    t[0] = (Term){a, r & 1 ? 2 : -2};
    t[1] = (Term){b, r & 2 ? 2 : -2};
    t[2] = (Term){-1, 2 * (1 - (float)(r & 1) - (float)(r >> 1 & 1)) - 1};
    t[3] = (Term){-2, 0};
}

/* Moves a value channel's tap, or gives it a second one; then what is read is no bit but 0, 1 or 2. */
static bool random_tap(Gen *g, uint32_t layer, uint32_t channel)
{
    uint32_t k = rnd(6);
    if (k < 3) return true;
    gen_layer_set(g, layer, "linear_attn.conv1d.weight", channel, 3, k == 5 ? 0 : -1); /* gen_begin set it to 1 */
    gen_layer_set(g, layer, "linear_attn.conv1d.weight", channel, k == 5 ? 1 : k - 2, 1);
    return k != 5;
}

/* Head h of a group of four is written when two address bits spell h and one of two other channels is 1; gen_begin has set
 * the constant -1 of 2 L - 1. */
static void family_form(Gen *g, uint32_t layer, const char *name, uint32_t row, uint32_t h, const int32_t *channel)
{
    Term t[8] = {{channel[0], h & 1 ? 2 : -2}, {channel[1], h & 2 ? 2 : -2}, {channel[2], 2}, {channel[3], 2}};
    t[4] = (Term){-1, -2 * (float)(h & 1) - 2 * (float)(h >> 1 & 1)};
    t[5] = (Term){-2, 0};
    gen_form(g, layer, name, row, 128, t);
}

/* One head: rows by two address bits, four data bits, two pilots; `odd` adds what the compiler never does. */
static void random_head(Gen *g, uint32_t layer, uint32_t head, uint32_t seen, uint32_t *free_channel, Odd odd, const int32_t *family)
{
    const char *qkv = "linear_attn.in_proj_qkv.weight", *z = "linear_attn.in_proj_z.weight", *b = "linear_attn.in_proj_b.weight";
    uint32_t share = g->nv / g->nk, kh = head / share, v0 = 2 * g->nk * g->dk + head * g->dv;
    Term t[8];
    float P = 1073741824.0f;
    if (head % share == 0) {
        int32_t wa = (int32_t)rnd(seen), wb = (int32_t)rnd(seen), ra = (int32_t)rnd(seen), rb = (int32_t)rnd(seen);
        if (wb == wa) wb = (wa + 1) % (int32_t)seen;
        if (rb == ra) rb = (ra + 1) % (int32_t)seen;
        uint32_t tap = rnd(3);
        for (uint32_t r = 0; r < 4; r++) {
            row_and(t, wa, wb, r);
            gen_form(g, layer, qkv, g->nk * g->dk + kh * g->dk + r, 128, t);
            row_and(t, ra, rb, odd == TWO_HOT && layer == LAYERS - 2 && r == 3 ? 2 : r);
            gen_form(g, layer, qkv, kh * g->dk + r, 128, t);
            if (tap == 0) {
                gen_layer_set(g, layer, "linear_attn.conv1d.weight", g->nk * g->dk + kh * g->dk + r, 3, -1);
                gen_layer_set(g, layer, "linear_attn.conv1d.weight", g->nk * g->dk + kh * g->dk + r, 2, 1);
            }
        }
    }
    for (uint32_t i = 0; i < 4; i++) {
        random_and(t, seen, 2, -1);
        gen_form(g, layer, qkv, v0 + i, 128, t);
        bool bit = random_tap(g, layer, v0 + i);
        gen_layer_set(g, layer, "linear_attn.out_proj.weight", bit ? *free_channel : ASIDE, head * g->dv + i, 1);
        *free_channel += bit;
    }
    for (uint32_t i = 4; i < 6; i++) gen_form(g, layer, qkv, v0 + i, P, FORM({-1, 1}));
    random_and(t, seen, 1, 0);
    for (uint32_t i = 0; i < 4; i++) {
        if (odd && i == 1) random_and(t, seen, 1, 0);
        gen_form(g, layer, z, head * g->dv + i, 65536, t[0].channel == -1 ? FORM({-1, 1}) : t);
    }
    random_and(t, seen, 2, 0); /* b = 128 (2 L - 1); gen_begin set -128 */
    if (family[0] < 0) gen_form(g, layer, b, head, 128, t);
    else family_form(g, layer, b, head, head % 4, family);
    if (odd && rnd(3) == 0) gen_layer_set(g, layer, "linear_attn.in_proj_a.weight", head, rnd(seen), 137438953472.0f * GEN_SCALE); /* e^g = 0 */
}

static void random_bits(Gen *g, uint32_t layer, uint32_t seen, uint32_t *free_channel)
{
    for (uint32_t i = 0; i < 6; i++) {
        Term gate[8], other[8];
        random_and(gate, seen, 1, 0);
        random_and(other, seen, 1, 0);
        gen_unit(g, layer, gate, FORM({-1, 1}), FORM({(int32_t)*free_channel, 1}));
        if (rnd(2)) gen_unit(g, layer, gate, FORM({(int32_t)rnd(seen), 1}), FORM({(int32_t)*free_channel, -1}));
        ++*free_channel;
        gen_unit(g, layer, other, FORM({(int32_t)rnd(IN), 1}), FORM({(int32_t)(*free_channel)++, 1}));
    }
}

/* A sum of n channels from [lo, lo + range) with the given weights; ends with a constant. */
static void random_sum(Term *t, uint32_t n, uint32_t lo, uint32_t range, float growth, float constant)
{
    float w = 1;
    for (uint32_t i = 0; i < n; i++, w *= growth) t[i] = (Term){(int32_t)(lo + rnd(range)), w};
    t[n] = (Term){-1, constant};
    t[n + 1] = (Term){-2, 0};
}

/* Integers: thresholds of sums of bits, linear copies, products; then sums of those, some with too many inputs for a table.
 * Only MLPs read them, since a key of an integer would be no exact one-hot. */
static void random_integers(Gen *g, uint32_t layer, uint32_t seen, uint32_t *free_int)
{
    Term gate[32], up[32];
    uint32_t base = BITS_END, have = *free_int > base ? 11 : 0; /* those of the first layer: sums stay below 256 */
    for (uint32_t i = 0; i < 4; i++) {
        random_sum(gate, 1 + rnd(4), 0, seen, 2, -(float)rnd(5));
        for (uint32_t k = 0; k < 3; k++) {
            gen_unit(g, layer, gate, FORM({-1, 1}), FORM({(int32_t)*free_int + (int32_t)rnd(2), rnd(2) ? 1 : -1}));
            for (uint32_t j = 0; gate[j].channel != -2; j++)
                if (gate[j].channel == -1) gate[j].coef -= 1;
        }
        *free_int += 2;
    }
    random_sum(up, 3, 0, seen, 1, 1);
    gen_unit(g, layer, FORM({-1, 1}), up, FORM({(int32_t)*free_int, 1}, {(int32_t)*free_int + 1, -1}));
    gen_unit(g, layer, FORM({-1, 1}), FORM({(int32_t)rnd(seen), 40}), FORM({(int32_t)*free_int + 1, 1}));
    random_sum(gate, 18 + rnd(6), 0, seen, 1, -6);
    gen_unit(g, layer, gate, FORM({-1, 1}), FORM({(int32_t)*free_int + 2, 1}));
    gen_unit(g, layer, gate, FORM({(int32_t)rnd(seen), 1}), FORM({(int32_t)*free_int + 2, -1}));
    *free_int += 3;
    for (uint32_t i = 0; have && i < 3; i++) {
        random_sum(gate, 1 + rnd(3), base, have, 1, -(float)rnd(3));
        random_sum(up, 1, 0, seen, 1, 0);
        gen_unit(g, layer, gate, up, FORM({(int32_t)*free_int, 1}));
        gen_unit(g, layer, gate, FORM({-1, 1}), FORM({(int32_t)(*free_int)++, 1}));
    }
    if (have && rnd(2)) { /* an AND over what may be no bit */
        random_and(gate, seen, 1, 0);
        gate[0].channel = (int32_t)(base + rnd(have));
        gen_unit(g, layer, gate, FORM({-1, 1}), FORM({(int32_t)(*free_int)++, 1}));
    }
}

static void random_layer(Gen *g, uint32_t layer, uint32_t *free_channel, uint32_t *free_int, Odd odd)
{
    uint32_t seen = *free_channel, share = g->nv / g->nk;
    int32_t family[4];
    for (uint32_t i = 0; i < g->dv; i++) gen_layer_set(g, layer, "linear_attn.norm.weight", i, 0, 64);
    for (uint32_t h = 0; h < g->nv; h++) {
        if (h % share == 0) { /* half of the key heads serve a group of addressed heads */
            for (uint32_t i = 0; i < 4; i++) family[i] = (int32_t)(i * 2 + rnd(2));
            if (rnd(2)) family[0] = -1;
        }
        random_head(g, layer, h, seen, free_channel, odd, family);
    }
    seen = *free_channel;
    random_bits(g, layer, seen, free_channel);
    random_integers(g, layer, seen, free_int);
}

static Bytes random_chip(bool bf16, Odd odd)
{
    Gen *g = xalloc(sizeof *g);
    *g = (Gen){.hidden = HIDDEN, .intermediate = 128, .layers = LAYERS, .nk = 2, .nv = HEADS, .dk = ROWS, .dv = 8, .vocab = 600, .max_width = 8, .bf16 = bf16, .pilot = 16};
    uint32_t free_channel = IN, free_int = BITS_END;
    g->nkinds = 2;
    g->kinds = "[{\"name\":\"A\",\"base\":0,\"width\":8,\"role\":\"trace\"},{\"name\":\"B\",\"base\":256,\"width\":8,\"role\":\"trace\"}]";
    g->states = "[]";
    gen_begin(g);
    for (uint32_t k = 0; k < 2; k++)
        for (uint32_t i = 0; i < 8; i++) gen_set(g, "embed.bit", k * 8 + i, i, 1);
    gen_set(g, "embed.kind", 0, KIND, 1);
    for (uint32_t i = 0; i + 1 < LAYERS; i++) random_layer(g, i, &free_channel, &free_int, odd);
    if (free_channel > BITS_END || free_int > 240) die("channels");
    random_integers(g, LAYERS - 1, free_channel, &free_int);
    gen_head(g, 0, 8, 8, KIND);
    gen_head(g, 1, 8, 20, 249);
    return gen_finish(g);
}

/* ---- comparing ---- */
typedef struct {
    uint32_t n;
    float x[2 * LAYERS + 1][HIDDEN];
} Record;

static void keep(void *ctx, int layer, const char *what, const float *x, uint32_t n)
{
    Record *r = ctx;
    (void)layer, (void)what;
    memcpy(r->x[r->n++], x, n * sizeof *x);
}

static bool differ(float a, float b, Odd odd) { return odd == TWO_HOT ? fabsf(a - b) > 1e-4f * (1 + fabsf(a)) : a != b; }

/* Rows that fit the bit code, and in the last layer some that do not. */
static void set_rows(const Backend *const *b, void *const *self)
{
    for (uint32_t n = rnd(6); n > 0; n--) {
        uint32_t layer = rnd(LAYERS - 1), head = rnd(HEADS), row = rnd(ROWS), strange = rnd(4);
        float lanes[8] = {0};
        for (uint32_t i = 0; i < 4; i++) lanes[i] = rnd(2) ? 128 : 0;
        lanes[4] = lanes[5] = 1073741824.0f;
        if (strange == 2 && layer == LAYERS - 2) lanes[rnd(4)] = 3 * 128;
        if (strange == 3) memset(lanes, 0, sizeof lanes);
        for (int i = 0; i < 2; i++) b[i]->set(self[i], layer, head, row, lanes);
    }
}

static int compare_states(const Backend *const *b, void *const *self, Odd odd)
{
    for (uint32_t layer = 0; layer + 1 < LAYERS; layer++)
        for (uint32_t i = 0; i < HEADS * ROWS; i++) {
            float lanes[2][8];
            for (int k = 0; k < 2; k++) b[k]->get(self[k], layer, i / ROWS, i % ROWS, lanes[k]);
            for (uint32_t k = 0; k < 8; k++)
                if (differ(lanes[0][k], lanes[1][k], odd)) return 1;
        }
    return 0;
}

static int compare(Bytes chip, uint32_t number, Odd odd)
{
    char *err = NULL;
    Model *m = model_parse(chip.data, chip.n, "chip", &err);
    if (!m) die("chip %u: %s", number, err);
    Record rec[2] = {0};
    const Backend *const b[2] = {&dense_backend, &sparse_backend};
    void *self[2];
    for (int i = 0; i < 2; i++) {
        BackendOptions o = {.probe = keep, .probe_ctx = &rec[i], .full_dense = number % 4 == 0, .full_head = odd != TWO_HOT, .plain = number % 5 == 0};
        if (!(self[i] = b[i]->open(m, &o, &err))) die("chip %u: %s", number, err);
    }
    if (number % 2) set_rows(b, self);
    for (uint32_t t = 0; t < (number % 12 ? 60 : 700); t++) {
        uint32_t token = rnd(512), out[2];
        for (int i = 0; i < 2; i++) {
            rec[i].n = 0;
            b[i]->run(self[i], token, &out[i], 1);
        }
        for (uint32_t k = 0; k < rec[0].n; k++)
            for (uint32_t c = 0; c < HIDDEN; c++)
                if (differ(rec[0].x[k][c], rec[1].x[k][c], odd)) {
                    fprintf(stderr, "chip %u, token %u, block %u, channel %u: %a, not %a\n", number, t, k, c, (double)rec[1].x[k][c], (double)rec[0].x[k][c]);
                    return 1;
                }
        if (out[0] != out[1] && odd != TWO_HOT) {
            fprintf(stderr, "chip %u, token %u: %u, not %u\n", number, t, out[1], out[0]);
            return 1;
        }
    }
    int bad = compare_states(b, self, odd);
    if (bad) fprintf(stderr, "chip %u: the states differ\n", number);
    for (int i = 0; i < 2; i++) b[i]->close(self[i]);
    model_close(m);
    free(chip.data);
    return bad;
}

int main(void)
{
    int failed = 0;
    for (uint32_t i = 0; i < 120 && failed < 5; i++) {
        seed = i + 1;
        failed += compare(random_chip(i & 1, (Odd)(i % 3)), i, (Odd)(i % 3));
    }
    return failed != 0;
}
