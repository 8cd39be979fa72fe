/* unit/prove.c: the proof tested like code, on the machines of tests/machines in float32 and in bfloat16 at the geometry of Qwen3.5-4B.
 *   - every machine is proved;
 *   - random tokens over random states, in dense arithmetic, never leave the proved bands: every channel is an integer in its range, every cell
 *     of the state holds what it may;
 *   - projections give the same number in adversarial orders of summation;
 *   - mutations of the weights turn the verdict. Where one does not, the mutated chip must still keep its own bands, and a change of one ulp
 *     must leave every token as it was.
 *   prove [CHIP...]     the first three for chip files */
#include "../../backend/build.h"
#include "../../backend/prove.h"
#include "../../frontend/frontend.h"
#include "random64.h"
#include <stdlib.h>
#include <unistd.h>

static int failures;
static const char *subject;
#define CHECK(cond, ...) \
    ((void)((cond) || (failures++, fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, subject), fprintf(stderr, __VA_ARGS__), fputc('\n', stderr))))

/* ---- chips ---- */
static Model *open_chip(const char *path)
{
    char *err = NULL;
    Model *m = model_open(path, &err);
    if (!m) fprintf(stderr, "%s\n", err), exit(1);
    return m;
}

static Model *compile(const char *source, const char *target, bool bf16)
{
    char path[] = "/tmp/tapeout-prove-XXXXXX";
    int fd = mkstemp(path);
    Design *d = design_load(source, NULL, 0);
    if (fd < 0 || !d) exit(1);
    close(fd);
    BuildOptions o = {.target = target_find(target), .bf16 = bf16};
    Build b = build_machine(circuit_optimize(d->circuit), &o);
    if (b.error || !chip_write(b.chip, path, NULL, NULL)) fprintf(stderr, "%s: %s\n", source, b.error ? b.error : b.chip->error), exit(1);
    Model *m = open_chip(path);
    unlink(path);
    return m;
}

static bool proved(const Model *m, Proof *out, bool bands) { return prove_run(m, &(ProveOptions){.bands = bands}, NULL, out); }

/* ---- bands ---- */
typedef struct {
    const Model *m;
    const Proof *proof;
    uint32_t outside;
} Watch;

static void watch(void *ctx, int layer, const char *what, const float *x, uint32_t n)
{
    Watch *w = ctx;
    uint32_t stage = layer < 0 ? 0 : 2 * (uint32_t)layer + (what[1] == 'l' ? 2 : 1);
    const Band *b = w->proof->bands + (size_t)stage * n;
    for (uint32_t c = 0; c < n; c++)
        if (!(x[c] >= (float)b[c].lo && x[c] <= (float)b[c].hi && x[c] == nearbyintf(x[c])) && w->outside++ < 3)
            fprintf(stderr, "%s: layer %d after %s: channel %u holds %g, proved %d to %d\n", subject, layer, what, c, x[c], b[c].lo, b[c].hi);
}

/* One row of the state: all 0, or the pilots stand and every other lane holds a multiple of its value. */
static bool row_holds(const CellBand *c, const float *lane, uint32_t n)
{
    bool any = false, ok = true;
    for (uint32_t i = 0; i < n; i++) any |= lane[i] != 0;
    for (uint32_t i = 0; any && i < n; i++) {
        float k = c[i].max ? lane[i] / c[i].value : 0;
        ok &= c[i].pilot ? lane[i] == c[i].value : c[i].max ? k >= 0 && k <= (float)c[i].max && k == nearbyintf(k) && k * c[i].value == lane[i] : lane[i] == 0;
    }
    return ok;
}

static void check_cells(Watch *w, void *self)
{
    const Geometry *g = &w->m->geo;
    float *lane = xrealloc(NULL, g->dv * sizeof *lane);
    for (uint32_t l = 0; l < g->layers; l++)
        for (uint32_t h = 0; !w->m->layer[l].full && h < g->nv; h++)
            for (uint32_t r = 0; r < g->dk; r++) {
                dense_backend.get(self, l, h, r, lane);
                if (!row_holds(w->proof->cells + ((size_t)l * g->nv + h) * g->dv, lane, g->dv) && w->outside++ < 3)
                    fprintf(stderr, "%s: layer %u, value head %u, row %u holds what is not proved\n", subject, l, h, r);
            }
    free(lane);
}

static bool has_rom(const Model *m)
{
    for (uint32_t i = 0; i < m->nstates; i++)
        if (m->state[i].ncopies == 0) return true;
    return false;
}

/* A random value in every row of a register and in one row of every other element; a count is never full, as the protocol grants. */
static void scramble(const Model *m, void *self)
{
    for (uint32_t i = 0; i < m->nstates; i++) {
        const ChipState *s = &m->state[i];
        uint64_t v = random64() & mask64(s->width);
        for (uint32_t c = 0; c < s->ncopies; c++)
            if (s->copy[c].piece[0].has_count) v &= ~(1ull << s->copy[c].piece[0].count_low);
        if (s->ncopies) state_set(m, &dense_backend, self, s, (uint32_t)(random64() % s->rows), v);
    }
}

static void check_bands(const Model *m, const Proof *proof, uint32_t tokens)
{
    Watch w = {m, proof, 0};
    BackendOptions o = {.probe = watch, .probe_ctx = &w};
    char *err = NULL;
    void *self = dense_backend.open(m, &o, &err);
    if (!self || !state_install(m, &dense_backend, self, NULL, &err)) fprintf(stderr, "%s\n", err), exit(1);
    for (uint32_t i = 0; i < tokens; i++) {
        uint32_t k = (uint32_t)(random64() % m->nkinds), out; /* kinds of few tokens as often as those of many */
        scramble(m, self);
        dense_backend.run(self, m->kind[k].base + (uint32_t)(random64() & mask64(m->kind[k].width)), &out, 1);
        if (i % 4 == 0) check_cells(&w, self);
    }
    dense_backend.close(self);
    CHECK(w.outside == 0, "%u values outside their bands", w.outside);
}

/* ---- orders of summation ---- */
static int rising(const void *a, const void *b) { return (*(const float *)a > *(const float *)b) - (*(const float *)a < *(const float *)b); }

static void add_orders(const float *v, uint32_t n, double exact, const char *what, uint32_t row)
{
    float up = 0, down = 0, zigzag = 0, pairs = 0;
    for (uint32_t i = 0; i < n; i++) up += v[i], down += v[n - 1 - i], zigzag += v[i % 2 ? n - 1 - i / 2 : i / 2];
    for (uint32_t i = 0; i < n; i += 2) pairs += i + 1 < n ? v[i] + v[i + 1] : v[i];
    CHECK(up == exact && down == exact && zigzag == exact && pairs == exact, "%s row %u: %.9g %.9g %.9g %.9g, exactly %.9g", what, row, up, down, zigzag,
          pairs, exact);
}

typedef struct {
    const Model *m;
    float scale;
} Orders;

/* Every row of a projection that reads this stream, in four orders. */
static void order_rows(const Orders *o, const Tensor *t, const float *x, const char *what)
{
    float *v = xrealloc(NULL, (t->cols + 1) * sizeof *v);
    for (uint32_t i = 0, j; i < t->n; i = j) {
        double exact = 0;
        for (j = i; j < t->n && t->row[j] == t->row[i]; j++) exact += (double)(v[j - i] = t->value[j] * (x[t->col[j]] / o->scale));
        qsort(v, j - i, sizeof *v, rising);
        add_orders(v, j - i, exact, what, (uint32_t)t->row[i]);
    }
    free(v);
}

static void order_probe(void *ctx, int layer, const char *what, const float *x, uint32_t n)
{
    const Orders *o = ctx;
    (void)n;
    if (layer >= 0 && what[1] == 'i') { /* after the mixer: the MLP reads it */
        order_rows(o, &o->m->layer[layer].t[T_GATE], x, "gate_proj");
        order_rows(o, &o->m->layer[layer].t[T_UP], x, "up_proj");
    }
    uint32_t next = (uint32_t)(layer + 1);
    if ((layer < 0 || what[1] == 'l') && next < o->m->geo.layers && !o->m->layer[next].full) {
        order_rows(o, &o->m->layer[next].t[T_QKV], x, "in_proj_qkv");
        order_rows(o, &o->m->layer[next].t[T_Z], x, "in_proj_z");
    }
}

static void check_orders(const Model *m, uint32_t tokens)
{
    Orders ctx = {m, ldexpf(1, m->pilot_scale)};
    BackendOptions o = {.probe = order_probe, .probe_ctx = &ctx};
    char *err = NULL;
    void *self = dense_backend.open(m, &o, &err);
    if (!self || !state_install(m, &dense_backend, self, NULL, &err)) fprintf(stderr, "%s\n", err), exit(1);
    for (uint32_t i = 0; i < tokens; i++) {
        uint32_t k = (uint32_t)(random64() % m->nkinds), out;
        scramble(m, self);
        dense_backend.run(self, m->kind[k].base + (uint32_t)(random64() & mask64(m->kind[k].width)), &out, 1);
    }
    dense_backend.close(self);
}

/* ---- mutations ---- */
/* The tensor's values as a copy that may be changed; restore() puts the file's back. */
static const float *saved;
static float *thaw(Tensor *t)
{
    float *copy = xrealloc(NULL, (t->n + 1) * sizeof *copy);
    if (t->n) memcpy(copy, t->value, t->n * sizeof *copy);
    saved = t->value;
    t->value = copy;
    return copy;
}

static void restore(Tensor *t)
{
    free((float *)t->value);
    t->value = saved;
}

/* The tokens that follow the start, from the initial state. */
static uint32_t run_tokens(const Model *m, uint32_t *out, uint32_t max)
{
    char *err = NULL;
    void *self = dense_backend.open(m, &(BackendOptions){0}, &err);
    if (!self || !state_install(m, &dense_backend, self, NULL, &err)) fprintf(stderr, "%s\n", err), exit(1);
    uint32_t n = 0, token = m->start;
    while (n < max) {
        dense_backend.run(self, token, &token, 1);
        const ChipKind *k = model_kind(m, token);
        out[n++] = token;
        if (!k || k->role == CHIP_EXIT || k->role == CHIP_FAULT) break;
    }
    dense_backend.close(self);
    return n;
}

static float ulp_up(const Model *m, float v)
{
    uint32_t u, step = m->bf16 ? 0x10000 : 1;
    memcpy(&u, &v, 4);
    u += step;
    memcpy(&v, &u, 4);
    return v;
}

enum { RUN = 60 };
typedef struct {
    uint32_t tried, turned, harmless;
    uint32_t n, base[RUN];
} Ulps;

/* One weight, one ulp: refused, or no token differs and the bands hold. */
static void one_ulp(Model *m, Tensor *t, const char *name, uint32_t i, Ulps *u)
{
    float *v = thaw(t);
    Proof p;
    v[i] = ulp_up(m, v[i]);
    u->tried++;
    if (!proved(m, &p, true)) u->turned++;
    else {
        uint32_t out[RUN], n = run_tokens(m, out, RUN);
        CHECK(n == u->n && !memcmp(out, u->base, n * sizeof *out), "%s element %u: one ulp is called exact and changes a token", name, i);
        if (!has_rom(m)) check_bands(m, &p, 4);
        u->harmless++;
    }
    proof_free(&p);
    restore(t);
}

static void all_ulps(Model *m, uint32_t most)
{
    static const TensorId ids[] = {T_GATE, T_UP, T_DOWN, T_QKV, T_Z, T_B, T_CONV, T_OUT};
    static const char *const names[] = {"gate_proj", "up_proj", "down_proj", "in_proj_qkv", "in_proj_z", "in_proj_b", "conv1d", "out_proj"};
    Ulps u = {0};
    u.n = run_tokens(m, u.base, RUN);
    for (uint32_t l = 0; l < m->geo.layers; l++)
        for (uint32_t k = 0; k < sizeof ids / sizeof *ids; k++) {
            Tensor *t = &m->layer[l].t[ids[k]];
            uint32_t step = t->n / most + 1;
            for (uint32_t i = 0; i < t->n; i += step) one_ulp(m, t, names[k], i, &u);
        }
    for (uint32_t i = 0; i < m->head_kind.n; i++) one_ulp(m, &m->head_kind, "head.kind", i, &u);
    for (uint32_t i = 0; i < m->embed_kind.n; i++) one_ulp(m, &m->embed_kind, "embed.kind", i, &u);
    CHECK(u.turned > u.harmless, "of %u changes of one ulp only %u are refused", u.tried, u.turned);
}

typedef bool Change(Model *m, float *v, const Tensor *t); /* false: nothing to change */

static bool halve_first(Model *m, float *v, const Tensor *t) { (void)m; return t->n && (v[0] /= 2, true); }
static bool negate_first(Model *m, float *v, const Tensor *t) { (void)m; return t->n && (v[0] = -v[0], true); }
/* Biases stand on the pilots. The largest of in_proj_qkv make the pilot lanes of the state. */
static bool is_bias(const Model *m, const Tensor *t, uint32_t i)
{
    for (uint32_t k = 0; k < m->npilots; k++)
        if ((uint32_t)t->col[i] == m->pilot[k]) return true;
    return false;
}
static bool drop_pilot_lanes(Model *m, float *v, const Tensor *t)
{
    float most = 0;
    for (uint32_t i = 0; i < t->n; i++)
        if (is_bias(m, t, i) && v[i] > most) most = v[i];
    for (uint32_t i = 0; i < t->n; i++)
        if (is_bias(m, t, i) && v[i] == most) v[i] = 0;
    return most > 0;
}
/* The weakest of them no longer holds beta at 0. */
static bool lower_bias(Model *m, float *v, const Tensor *t)
{
    uint32_t at = UINT32_MAX;
    for (uint32_t i = 0; i < t->n; i++)
        if (is_bias(m, t, i) && v[i] < 0 && (at == UINT32_MAX || v[i] > v[at])) at = i;
    return at != UINT32_MAX && (v[at] *= 0.7f, true);
}
/* A row that asks for a 0 no longer does: the first negative weight that is no bias. */
static bool drop_complement(Model *m, float *v, const Tensor *t)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (!is_bias(m, t, i) && v[i] < 0) return v[i] = 0, true;
    return false;
}
static bool scale_all(Model *m, float *v, const Tensor *t)
{
    (void)m;
    for (uint32_t i = 0; i < t->n; i++) v[i] *= 0.5f;
    return t->n > 0;
}

static bool quarter_all(Model *m, float *v, const Tensor *t)
{
    (void)m;
    for (uint32_t i = 0; i < t->n; i++) v[i] *= 0.25f;
    return t->n > 0;
}

/* One change to one tensor of each layer is refused: always, in some layer, or perhaps in none. Where it is not (another function can be as exact as
 * the right one: that the function is right is for the plan's and the netlist's comparison) the chip keeps the bands that are proved of it. */
typedef enum { ALWAYS, SOMEWHERE, OR_HARMLESS } Turned;
static void turns(Model *m, TensorId id, const char *what, Change *change, Turned how)
{
    uint32_t tried = 0, turned = 0;
    for (uint32_t l = 0; l < m->geo.layers; l++) {
        Tensor *t = &m->layer[l].t[id];
        if (m->layer[l].full) continue;
        float *v = thaw(t);
        Proof p;
        if (change(m, v, t)) {
            bool exact = proved(m, &p, true);
            tried++, turned += !exact;
            CHECK(how != ALWAYS || !exact, "layer %u: %s, and still called exact", l, what);
            if (exact && !has_rom(m)) check_bands(m, &p, 20);
            proof_free(&p);
        }
        restore(t);
    }
    CHECK(!tried || turned || how == OR_HARMLESS, "%s: never refused", what);
}

static void refused(const Model *m, const char *what)
{
    Proof p;
    CHECK(!proved(m, &p, false), "%s, and still called exact", what);
    CHECK(p.refusal && *p.refusal, "%s: no reason", what);
    proof_free(&p);
}

/* A new element of a tensor that has a fill and none of its own. */
static void with_element(Model *m, Tensor *t, int32_t row, float value, const char *what)
{
    Tensor old = *t;
    int32_t zero = 0;
    *t = (Tensor){.rows = old.rows, .cols = old.cols, .n = 1, .fill = old.fill, .row = &row, .col = &zero, .value = &value};
    refused(m, what);
    *t = old;
}

static void named_mutations(Model *m)
{
    turns(m, T_DOWN, "down_proj halved at one place", halve_first, SOMEWHERE);
    turns(m, T_UP, "a sign of up_proj", negate_first, SOMEWHERE);
    turns(m, T_OUT, "out_proj halved at one place", halve_first, ALWAYS);
    turns(m, T_CONV, "conv1d halved at one place", halve_first, ALWAYS);
    turns(m, T_CONV, "a sign of conv1d", negate_first, ALWAYS);
    turns(m, T_QKV, "the pilot lanes gone", drop_pilot_lanes, ALWAYS);
    if (m->nstates > 1) turns(m, T_QKV, "an address without one of its complements", drop_complement, SOMEWHERE);
    turns(m, T_GATE, "a gate without one of its complements", drop_complement, OR_HARMLESS);
    turns(m, T_GATE, "gates halved and halved again", quarter_all, SOMEWHERE);
    turns(m, T_B, "a weaker bias of in_proj_b", lower_bias, SOMEWHERE);
    turns(m, T_Z, "in_proj_z halved", scale_all, ALWAYS);
    float eps = m->geo.eps;
    m->geo.eps = 1e12f;
    refused(m, "an epsilon as large as the pilots");
    m->geo.eps = ldexpf(2, 2 * m->pilot_scale - (m->bf16 ? 8 : 24));
    refused(m, "an epsilon that shows beside the pilots");
    m->geo.eps = 0;
    refused(m, "no epsilon");
    m->geo.eps = eps;
    with_element(m, &m->layer[0].t[T_INPUT_NORM], 0, 0.5f, "a gain of 1.5");
    with_element(m, &m->layer[0].t[T_POST_NORM], (int32_t)m->pilot[0], 0.25f, "a gain of a pilot");
    with_element(m, &m->layer[0].t[T_NORM], 0, m->layer[0].t[T_NORM].fill * 1.5f, "a gain of linear_attn.norm");
    with_element(m, &m->layer[0].t[T_DT_BIAS], 0, 0, "a decay");
    with_element(m, &m->layer[0].t[T_A], 0, 1e12f, "a decay from the stream");
    float *v = thaw(&m->embed_kind);
    for (uint32_t i = 0; i < m->embed_kind.n; i++)
        if ((uint32_t)m->embed_kind.col[i] == m->pilot[0]) {
            v[i] = 0;
            break;
        }
    refused(m, "a kind of token without a pilot");
    restore(&m->embed_kind);
}

/* ---- ranks ---- */

/* The one weight of the kind's row that is no bias; NONE: it has none, or several. */
enum { NONE = UINT32_MAX };
static uint32_t kind_weight(const Model *m, uint32_t k)
{
    uint32_t at = NONE;
    for (uint32_t i = 0; i < m->head_kind.n; i++)
        if ((uint32_t)m->head_kind.row[i] == k && !is_bias(m, &m->head_kind, i)) {
            if (at != NONE) return NONE;
            at = i;
        }
    return at;
}

/* Two kinds get one score: refused, unless they are never on together, and then the bands hold. */
static void equal_ranks(Model *m)
{
    uint32_t tried = 0, turned = 0;
    for (uint32_t k = 0; k + 1 < m->nkinds; k++) {
        uint32_t a = kind_weight(m, k), b = kind_weight(m, k + 1);
        if (a == NONE || b == NONE || m->kind[k].width != m->kind[k + 1].width || m->head_kind.value[a] * m->head_kind.value[b] <= 0) continue;
        float *v = thaw(&m->head_kind);
        Proof p;
        v[a] = v[b];
        tried++;
        if (!proved(m, &p, true)) turned++;
        else check_bands(m, &p, 20);
        proof_free(&p);
        restore(&m->head_kind);
    }
    CHECK(!tried || turned, "equal scores of two kinds: never refused");
}

/* ---- float32 where the query's scale is no power of two ---- */

/* The channels that reads are added to begin as constants, for the addition to round: each with less than it needs is refused. */
static void weak_snaps(Model *m)
{
    uint32_t tried = 0;
    for (int32_t ch = 0; ch < (int32_t)m->geo.hidden; ch++) {
        float *v = thaw(&m->embed_kind), first = 0;
        uint32_t n = 0;
        for (uint32_t i = 0; i < m->embed_kind.n; i++)
            if (m->embed_kind.col[i] == ch) first = v[i], v[i] = 1, n++;
        if (n == m->nkinds && (first == 64 || first == 2048)) tried++, refused(m, "a read that nothing rounds");
        restore(&m->embed_kind);
    }
    CHECK(tried, "no channel begins as a constant");
}

/* ---- all ---- */
static void check_chip(Model *m, uint32_t tokens)
{
    Proof p;
    CHECK(proved(m, &p, true), "refused: %s", p.refusal ? p.refusal : "");
    CHECK(p.exact == (p.worst > 0), "verdict and worst margin %g disagree", p.worst);
    if (p.exact && !has_rom(m)) { /* rows of an attention memory come from a prompt */
        check_bands(m, &p, tokens);
        check_orders(m, tokens / 20 + 1);
    }
    proof_free(&p);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        uint32_t ulps;
        bool mutations;
    } machines[] = {{"count", 1000, true}, {"upper", 12, true}, {"subleq", 6, true}, {"fibonacci", 6, true}, {"stack", 0, false}, {"gcd", 0, false}, {"bf", 0, true}};
    for (int i = 1; i < argc; i++) {
        Model *m = open_chip(subject = argv[i]);
        check_chip(m, 200);
        model_close(m);
    }
    for (int bf16 = 0; argc < 2 && bf16 < 2; bf16++) {
        Model *m = compile("cpu-spec/rv32i.ckt", bf16 ? "qwen3.5-4b" : "native", bf16);
        subject = bf16 ? "rv32i, bfloat16" : "rv32i, float32";
        check_chip(m, bf16 ? 25 : 60);
        model_close(m);
    }
    for (int i = 0; argc < 2 && i < 3; i++) {
        static const char *const names[] = {"count", "subleq", "bf"};
        Model *m = compile(xfmt("tests/machines/%s.ckt", names[i]), "qwen3.5-0.8b", false);
        subject = xfmt("%s, float32, 128 rows", names[i]);
        check_chip(m, 200);
        weak_snaps(m);
        model_close(m);
    }
    for (uint32_t i = 0; argc < 2 && i < sizeof machines / sizeof *machines; i++)
        for (int bf16 = 0; bf16 < 2; bf16++) {
            Model *m = compile(xfmt("tests/machines/%s.ckt", machines[i].name), bf16 ? "qwen3.5-4b" : "native", bf16);
            subject = xfmt("%s, %s", machines[i].name, bf16 ? "bfloat16" : "float32");
            check_chip(m, bf16 ? 100 : 400);
            if (machines[i].mutations) named_mutations(m), equal_ranks(m);
            if (machines[i].ulps && !bf16) all_ulps(m, machines[i].ulps);
            model_close(m);
        }
    return failures != 0;
}
