/* chipgen.h: builds small chips by hand, as bytes, so that the runtime is tested without the compiler.
 *
 * A Gen collects sparse elements per tensor and writes a chip file as runtime/chip.md says. The helpers below it use the
 * recipes of a native chip: one pilot channel p * 2^20 with p^2 = hidden, data channels in units of 1. */
#ifndef TAPEOUT_CHIPGEN_H
#define TAPEOUT_CHIPGEN_H
#include "../../runtime/runtime.h"
#include <stdlib.h>

typedef struct {
    int32_t row, col;
    float value;
} GenElement;
typedef struct {
    char name[96];
    bool stock; /* stands in the manifest's `tensors` */
    int dims;
    uint32_t rows, cols;
    float fill;
    VEC(GenElement) e;
} GenTensor;
typedef struct {
    uint32_t hidden, intermediate, layers, nk, nv, dk, dv, vocab, max_width, nkinds;
    bool bf16;
    float pilot; /* p; the pilot channel is hidden - 1 */
    uint32_t units[8]; /* MLP units used, per layer */
    const char *kinds, *states; /* JSON lists */
    uint32_t start;
    VEC(GenTensor *) t;
} Gen;

enum { GEN_K = 20 };
#define GEN_SCALE 1048576.0f /* 2^GEN_K */
#define GEN_G 256.0f

static inline GenTensor *gen_tensor(Gen *g, const char *name)
{
    for (uint32_t i = 0; i < g->t.n; i++)
        if (strcmp(g->t.data[i]->name, name) == 0) return g->t.data[i];
    die("no tensor %s", name);
}

static inline void gen_add(Gen *g, const char *name, bool stock, int dims, uint32_t rows, uint32_t cols, float fill)
{
    GenTensor *t = xalloc(sizeof *t);
    snprintf(t->name, sizeof t->name, "%s", name);
    t->stock = stock, t->dims = dims, t->rows = rows, t->cols = cols, t->fill = fill;
    vec_push(&g->t, t);
}

/* Adds to the element, so that a form may name a channel twice. */
static inline void gen_set(Gen *g, const char *name, uint32_t row, uint32_t col, float value)
{
    GenTensor *t = gen_tensor(g, name);
    if (row >= t->rows || col >= t->cols) die("%s: %u %u", name, row, col);
    for (uint32_t i = 0; i < t->e.n; i++)
        if (t->e.data[i].row == (int32_t)row && t->e.data[i].col == (int32_t)col) {
            t->e.data[i].value += value;
            return;
        }
    GenElement e = {(int32_t)row, (int32_t)col, value};
    vec_push(&t->e, e);
}

static inline void gen_layer_set(Gen *g, uint32_t layer, const char *name, uint32_t row, uint32_t col, float value)
{
    gen_set(g, xfmt("model.layers.%u.%s", layer, name), row, col, value);
}

/* The stock tensors of one layer; A_log and dt_bias make heads that never forget. */
static inline void gen_layer(Gen *self, const Geometry *g, uint32_t layer, bool is_full)
{
    enum { LINEAR = 1, FULL = 2, ANY = 3 };
#define TENSOR(id, scope, dims, name, rows, cols)                                                              \
    if (scope & (is_full ? FULL : LINEAR)) {                                                                    \
        float fill = T_##id == T_A_LOG ? -20.0f : T_##id == T_DT_BIAS ? -100.0f : 0.0f;                         \
        gen_add(self, xfmt("model.layers.%u." name, layer), true, dims, rows, cols, fill);                      \
    }
#include "../../runtime/tensors.def"
#undef TENSOR
}

/* All tensors of g->layers layers, the last one full attention; every head's default is beta = 0. */
static inline void gen_begin(Gen *g)
{
    const Geometry geo = {.hidden = g->hidden, .intermediate = g->intermediate, .heads = 1, .kv_heads = 1, .head_dim = 8, .nk = g->nk,
                          .nv = g->nv, .dk = g->dk, .dv = g->dv, .taps = 4, .conv_dim = 2 * g->nk * g->dk + g->nv * g->dv};
    for (uint32_t i = 0; i < g->layers; i++) gen_layer(g, &geo, i, i == g->layers - 1);
    gen_add(g, "model.norm.weight", true, 1, g->hidden, 1, 0);
    gen_add(g, "embed.kind", false, 2, g->nkinds, g->hidden, 0);
    gen_add(g, "embed.bit", false, 2, g->nkinds * g->max_width, g->hidden, 0);
    gen_add(g, "head.kind", false, 2, g->nkinds, g->hidden, 0);
    gen_add(g, "head.bit", false, 2, g->nkinds * g->max_width, g->hidden, 0);
    for (uint32_t k = 0; k < g->nkinds; k++) gen_set(g, "embed.kind", k, g->hidden - 1, g->pilot * GEN_SCALE);
    for (uint32_t i = 0; i + 1 < g->layers; i++) {
        for (uint32_t c = 0; c < geo.conv_dim; c++) gen_layer_set(g, i, "linear_attn.conv1d.weight", c, 3, 1);
        for (uint32_t j = 0; j < g->nv; j++) gen_layer_set(g, i, "linear_attn.in_proj_b.weight", j, g->hidden - 1, -128 / g->pilot);
    }
}

/* ---- forms: c0 + sum coef * channel, written into one row with the weight `scale` per unit ---- */
typedef struct {
    int32_t channel; /* -1: the constant */
    float coef;
} Term;
#define FORM(...) (const Term[]){__VA_ARGS__, {-2, 0}}

static inline void gen_form(Gen *g, uint32_t layer, const char *name, uint32_t row, float scale, const Term *f)
{
    for (; f->channel != -2; f++)
        if (f->channel == -1) gen_layer_set(g, layer, name, row, g->hidden - 1, scale * f->coef / g->pilot);
        else gen_layer_set(g, layer, name, row, (uint32_t)f->channel, scale * f->coef * GEN_SCALE);
}

/* One MLP unit: each target channel += coef * relu(gate) * up. */
static inline void gen_unit(Gen *g, uint32_t layer, const Term *gate, const Term *up, const Term *down)
{
    uint32_t u = g->units[layer]++;
    gen_form(g, layer, "mlp.gate_proj.weight", u, GEN_G, gate);
    gen_form(g, layer, "mlp.up_proj.weight", u, 1, up);
    for (; down->channel != -2; down++) gen_layer_set(g, layer, "mlp.down_proj.weight", (uint32_t)down->channel, u, down->coef / GEN_G);
}

/* Head code: bit i of every payload of kind k is channel `bit0 + i`, present when channel `kind` is 1. */
static inline void gen_head(Gen *g, uint32_t k, uint32_t width, uint32_t bit0, uint32_t kind)
{
    gen_set(g, "head.kind", k, kind, 64 * GEN_SCALE);
    for (uint32_t i = 0; i < width; i++) {
        gen_set(g, "head.bit", k * g->max_width + i, bit0 + i, 2 * GEN_SCALE);
        gen_set(g, "head.bit", k * g->max_width + i, g->hidden - 1, -1 / g->pilot);
    }
}

/* ---- writing ---- */
typedef struct {
    uint8_t *data;
    size_t n;
} Bytes;
typedef struct {
    char *p;
    size_t n;
} Text;

static inline void text_add(Text *t, const char *s)
{
    size_t n = strlen(s);
    t->p = xrealloc(t->p, t->n + n + 1);
    memcpy(t->p + t->n, s, n + 1);
    t->n += n;
}

static inline int gen_by_place(const void *a, const void *b)
{
    const GenElement *x = a, *y = b;
    if (x->row != y->row) return x->row < y->row ? -1 : 1;
    return x->col < y->col ? -1 : x->col > y->col;
}

static inline char *gen_manifest(const Gen *g)
{
    Text t = {0};
    text_add(&t, xfmt("{\"version\":1,\"name\":\"hand\",\"target\":\"native\",\"family\":\"qwen3_5\",\"dtype\":\"%s\",", g->bf16 ? "bfloat16" : "float32"));
    text_add(&t, xfmt("\"geometry\":{\"hidden_size\":%u,\"intermediate_size\":%u,\"num_hidden_layers\":%u,\"layer_types\":[", g->hidden, g->intermediate, g->layers));
    for (uint32_t i = 0; i < g->layers; i++) text_add(&t, i + 1 < g->layers ? "\"linear_attention\"," : "\"full_attention\"],");
    text_add(&t, xfmt("\"num_attention_heads\":1,\"num_key_value_heads\":1,\"head_dim\":8,\"rms_norm_eps\":1e-6,\"linear_num_key_heads\":%u,"
                      "\"linear_num_value_heads\":%u,\"linear_key_head_dim\":%u,\"linear_value_head_dim\":%u,\"linear_conv_kernel_dim\":4,"
                      "\"vocab_size\":%u,\"rope_theta\":10000000,\"partial_rotary_factor\":0.25},\"tensors\":{",
                      g->nk, g->nv, g->dk, g->dv, g->vocab));
    bool first = true;
    for (uint32_t i = 0; i < g->t.n; i++) {
        const GenTensor *s = g->t.data[i];
        if (!s->stock) continue;
        const char *shape = s->dims == 1 ? xfmt("%u", s->rows) : s->dims == 2 ? xfmt("%u,%u", s->rows, s->cols) : xfmt("%u,1,%u", s->rows, s->cols);
        text_add(&t, xfmt("%s\"%s\":{\"shape\":[%s],\"fill\":%g}", first ? "" : ",", s->name, shape, (double)s->fill));
        first = false;
    }
    text_add(&t, xfmt("},\"pilot\":{\"log2_scale\":%d,\"channels\":[%u],\"values\":[%g]},", GEN_K, g->hidden - 1, (double)g->pilot));
    text_add(&t, xfmt("\"kinds\":%s,\"start\":%u,\"states\":%s}", g->kinds, g->start, g->states));
    return t.p;
}

/* JSON string escape: the manifest has quotes only. */
static inline void text_quoted(Text *t, const char *s)
{
    char c[3] = {0};
    for (; *s; s++) {
        c[0] = *s == '"' ? '\\' : *s, c[1] = *s == '"' ? '"' : 0;
        text_add(t, c);
    }
}

static inline Bytes gen_finish(Gen *g)
{
    Text h = {0};
    Bytes body = {xrealloc(NULL, 1), 0};
    text_add(&h, "{\"__metadata__\":{\"format\":\"tapeout-chip\",\"tapeout\":\"");
    char *manifest = gen_manifest(g);
    text_quoted(&h, manifest);
    free(manifest);
    text_add(&h, "\"}");
    for (uint32_t i = 0; i < g->t.n; i++) {
        GenTensor *t = g->t.data[i];
        uint32_t n = t->e.n;
        static const char *const part[] = {"rows", "cols", "values"};
        if (n) qsort(t->e.data, n, sizeof *t->e.data, gen_by_place);
        for (int p = 0; n && p < 3; p++) {
            size_t size = p == 2 && g->bf16 ? 2 : 4;
            text_add(&h, xfmt(",\"%s.%s\":{\"dtype\":\"%s\",\"shape\":[%u],\"data_offsets\":[%zu,%zu]}", t->name, part[p],
                              p < 2 ? "I32" : g->bf16 ? "BF16" : "F32", n, body.n, body.n + n * size));
            body.data = xrealloc(body.data, body.n + n * size);
            for (uint32_t k = 0; k < n; k++) {
                const GenElement *e = &t->e.data[k];
                const void *src = p == 0 ? (const void *)&e->row : p == 1 ? (const void *)&e->col : (const void *)&e->value;
                memcpy(body.data + body.n + k * size, (const uint8_t *)src + (size == 2 ? 2 : 0), size);
            }
            body.n += n * size;
        }
    }
    text_add(&h, "}");
    while (h.n % 8) text_add(&h, " ");
    Bytes out = {xrealloc(NULL, 8 + h.n + body.n), 8 + h.n + body.n};
    for (int i = 0; i < 8; i++) out.data[i] = (uint8_t)(h.n >> 8 * i);
    memcpy(out.data + 8, h.p, h.n);
    memcpy(out.data + 8 + h.n, body.data, body.n);
    free(h.p);
    free(body.data);
    return out;
}
#endif
