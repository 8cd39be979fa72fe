/* stockgen.h: a small random Qwen3.5 checkpoint, the same on every machine: what a chip is put before in tests without the stock package. */
#ifndef TAPEOUT_STOCKGEN_H
#define TAPEOUT_STOCKGEN_H
#include "../../backend/export.h"
#include "random64.h"
#include <errno.h>
#include <jansson.h>
#include <sys/stat.h>

typedef struct {
    Geometry geo;
    bool bf16, tied;
    uint32_t full_every; /* layer i is one of attention where (i + 1) % full_every is 0 */
    uint64_t shard;
} RandomModel;

/* Heads that a chip fits. */
static const RandomModel random_model = {
    .geo = {.hidden = 192, .intermediate = 512, .layers = 4, .vocab = 500, .heads = 4, .kv_heads = 2, .head_dim = 32, .nk = 4, .nv = 16, .dk = 64, .dv = 16, .taps = 4, .conv_dim = 768,
            .eps = 1e-6f, .rope_theta = 10000, .rotary_factor = 0.25},
    .full_every = 4};

static float between(float low, float high) { return low + (high - low) * (float)(random64() >> 40) * 0x1p-24f; }

/* Norms with gains, as trained ones have, and projections of which each says something. */
static bool random_row(const Export *x, const Item *t, uint64_t r, float *out)
{
    float mean = 0, half = 1.7f / sqrtf((float)t->cols);
    (void)x, (void)r;
    if (t->dims == 1) half = 0.5f;
    if (strstr(t->name, "linear_attn.norm")) mean = 1;
    if (strstr(t->name, "A_log")) mean = 1, half = 1.3f;
    if (strstr(t->name, "embed_tokens")) half = 0.05f;
    for (uint64_t i = 0; i < t->cols; i++) out[i] = cast(t->half, between(mean - half, mean + half));
    return true;
}

static json_t *random_config(const RandomModel *m)
{
    const Geometry *g = &m->geo;
    const struct {
        const char *key;
        uint32_t value;
    } sizes[] = {{"vocab_size", g->vocab}, {"hidden_size", g->hidden}, {"intermediate_size", g->intermediate}, {"num_hidden_layers", g->layers}, {"num_attention_heads", g->heads},
                 {"num_key_value_heads", g->kv_heads}, {"head_dim", g->head_dim}, {"linear_num_key_heads", g->nk}, {"linear_num_value_heads", g->nv}, {"linear_key_head_dim", g->dk},
                 {"linear_value_head_dim", g->dv}, {"linear_conv_kernel_dim", g->taps}, {"full_attention_interval", m->full_every}, {"eos_token_id", 5}};
    json_t *o = json_pack("{s:s, s:s, s:f, s:b, s:s, s:{s:s, s:f, s:f}}", "model_type", "qwen3_5_text", "dtype", m->bf16 ? "bfloat16" : "float32", "rms_norm_eps", 1e-6, "tie_word_embeddings",
                          m->tied, "hidden_act", "silu", "rope_parameters", "rope_type", "default", "rope_theta", g->rope_theta, "partial_rotary_factor", g->rotary_factor);
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) json_object_set_new(o, sizes[i].key, json_integer(sizes[i].value));
    return o;
}

static void random_items(const RandomModel *m, Items *w)
{
    const Geometry *g = &m->geo;
    const Family *family = family_find("qwen3_5");
    const uint64_t vocab = g->vocab, hidden = g->hidden;
    export_add(w, (Item){.name = xfmt("model.embed_tokens.weight"), .dims = 2, .shape = {vocab, hidden}, .half = m->bf16, .row = random_row});
    for (uint32_t l = 0; l < g->layers; l++)
        for (unsigned i = 0; i < nfamily_tensors; i++) {
            const FamilyTensor *s = &family_tensors[i];
            Item t = {.name = xfmt("model.layers.%u.%s", l, s->name), .dims = s->dims, .half = m->bf16, .row = random_row};
            s->shape(g, t.shape);
            if (s->families & family->bit && s->scope & ((l + 1) % m->full_every ? IN_LINEAR : IN_FULL)) export_add(w, t);
        }
    export_add(w, (Item){.name = xfmt("model.norm.weight"), .dims = 1, .shape = {hidden}, .half = m->bf16, .row = random_row});
    if (!m->tied) export_add(w, (Item){.name = xfmt("lm_head.weight"), .dims = 2, .shape = {vocab, hidden}, .half = m->bf16, .row = random_row});
}

static void random_checkpoint(const RandomModel *m, const char *dir)
{
    char *err = NULL;
    ExportOptions o = {.dir = dir, .shard_bytes = m->shard};
    Export x = {.o = &o, .err = &err};
    Items w = {.x = &x};
    random_items(m, &w);
    if ((mkdir(dir, 0777) && errno != EEXIST) || !export_finish(&x, export_json(&x, "config.json", random_config(m)) && export_items(&w))) die("%s: %s", dir, err ? err : strerror(errno));
}
#endif
